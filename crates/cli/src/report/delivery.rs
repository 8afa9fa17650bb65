//! How much was sent, to whom and for what (spec 03 §3.2, `chars`).

use indexmap::IndexMap;
use workflow_engine::state::{Event, Session};

/// What was sent in this session.
#[derive(Debug, Default)]
pub(crate) struct Delivered {
    pub(crate) total: Share,
    pub(crate) by_activity: Vec<(String, Share)>,
    pub(crate) by_tool: Vec<(String, Share)>,
    pub(crate) by_agent: Vec<(String, Share)>,
}

/// A part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    /// Deliveries.
    pub(crate) calls: usize,
    /// Characters, in UTF-16 code units, of those whose size was recorded.
    pub(crate) chars: u64,
    /// Those that were only a marker, since the reader had the content.
    pub(crate) unchanged: usize,
    /// Those whose size was not recorded.
    pub(crate) unknown: usize,
}

impl Share {
    fn add(&mut self, event: &Event) {
        self.calls += 1;
        match event.data("chars").and_then(serde_json::Value::as_u64) {
            Some(chars) => self.chars = self.chars.saturating_add(chars),
            None => self.unknown += 1,
        }
        self.unchanged += usize::from(event.data_text("delivery") == Some("unchanged"));
    }
}

pub(super) fn delivered(session: &Session) -> Delivered {
    let mut total = Share::default();
    let mut groups: [IndexMap<String, Share>; 3] = Default::default();
    for event in &session.history {
        let Some(tool) = tool(event) else { continue };
        total.add(event);
        let agent = event.data_text("agentId").unwrap_or(&session.agent_id);
        for (group, name) in groups.iter_mut().zip([event.activity(), tool, agent]) {
            group.entry(name.to_owned()).or_default().add(event);
        }
    }
    let [by_activity, by_tool, by_agent] = groups.map(|group| {
        let mut shares: Vec<(String, Share)> = group.into_iter().collect();
        shares.sort_by_key(|(_, share)| std::cmp::Reverse(share.chars));
        shares
    });
    Delivered { total, by_activity, by_tool, by_agent }
}

/// The tool that sent what an event says. Bundled techniques and redeliveries are told by other events once more and
/// counted there.
fn tool(event: &Event) -> Option<&'static str> {
    match event.kind() {
        // Without a size it only says that an agent appeared.
        "activity_dispatched" => event.data("chars").map(|_| "get_activity"),
        "technique_fetched" => Some("get_technique"),
        "resource_fetched" if event.data("bundled").is_none() => Some("get_resource"),
        _ => None,
    }
}
