//! How much one context may take: the run of activities of a delivery scope and its two limits (spec 02 §10).
//!
//! A batch is never declared; it is derived from the history.

use serde_json::{Map, Value};

use crate::{
    Settings,
    state::{Event, Session},
};

/// Which limit a refused activity ran into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Too many activities; named first when both limits bind.
    ActivityCap,
    /// Too many characters.
    DeliveryBudget,
}

impl Limit {
    /// Name on the wire and in events.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::ActivityCap => "activity_cap",
            Self::DeliveryBudget => "delivery_budget",
        }
    }
}

/// Where a scope stands (`_meta.batch`); sizes in UTF-16 code units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Distinct activities taken.
    pub(crate) activities: u64,
    /// How many it may take.
    pub(crate) max_activities: u64,
    /// Characters received.
    pub(crate) delivered_chars: u64,
    /// Characters it may have received when it asks for another activity.
    pub(crate) budget_chars: u64,
    /// Whether another activity is served.
    pub(crate) may_continue: bool,
}

impl Reading {
    /// The object of `_meta.batch` and of the `batch` block.
    pub(crate) fn to_map(self) -> Map<String, Value> {
        let mut members = Map::new();
        members.insert("activities".to_owned(), self.activities.into());
        members.insert("max_activities".to_owned(), self.max_activities.into());
        members.insert("delivered_chars".to_owned(), self.delivered_chars.into());
        members.insert("budget_chars".to_owned(), self.budget_chars.into());
        members.insert("may_continue".to_owned(), self.may_continue.into());
        members
    }
}

/// Reads where `scope` stands now, as `get_activity` reports it (spec 02 §10.5).
pub(crate) fn reading(session: &Session, scope: &str, context_tokens: u64, settings: &Settings) -> Reading {
    let taken = Taken::by(session, scope);
    let limits = Limits::of(context_tokens, settings);
    Reading {
        activities: count(taken.activities.len()),
        max_activities: whole(limits.activities),
        delivered_chars: whole(taken.chars),
        budget_chars: whole(limits.chars),
        may_continue: taken.exempt(session, scope) || limits.bound(&taken).is_none(),
    }
}

/// Reads whether `scope` would be served `target`: like [`reading`], but an activity it already holds is continuable.
pub(crate) fn may_continue(
    session: &Session,
    scope: &str,
    context_tokens: u64,
    settings: &Settings,
    target: &str,
) -> Reading {
    let may_continue = refused(session, scope, context_tokens, settings, target).is_none();
    Reading { may_continue, ..reading(session, scope, context_tokens, settings) }
}

/// The limit that keeps `activity` from being served to `scope`, if one does (spec 02 §10.3).
pub(crate) fn refused(
    session: &Session,
    scope: &str,
    context_tokens: u64,
    settings: &Settings,
    activity: &str,
) -> Option<Limit> {
    let taken = Taken::by(session, scope);
    if taken.exempt(session, scope) || taken.activities.contains(&activity) {
        return None;
    }
    Limits::of(context_tokens, settings).bound(&taken)
}

/// Characters that step techniques bundled into one activity may take; compared as it is, not rounded (spec 02 §7.1).
pub(crate) fn bundle_budget(context_tokens: u64, settings: &Settings) -> f64 {
    real(context_tokens) * settings.bundle_headroom_fraction * settings.chars_per_token
}

/// Whether a size is beyond a budget; equality is within.
pub(crate) fn exceeds(chars: u64, budget: f64) -> bool {
    real(chars) > budget
}

/// What a scope has received so far.
struct Taken<'s> {
    activities: Vec<&'s str>,
    chars: f64,
}

impl<'s> Taken<'s> {
    fn by(session: &'s Session, scope: &str) -> Self {
        let mut taken = Self { activities: Vec::new(), chars: 0.0 };
        for event in &session.history {
            let Some(chars) = size(event).filter(|_| scope_of(event) == Some(scope)) else { continue };
            if event.data_text("delivery") == Some("unchanged") {
                continue;
            }
            match event.kind() {
                "activity_dispatched" => {
                    taken.chars += chars;
                    let activity = event.activity();
                    if !activity.is_empty() && !taken.activities.contains(&activity) {
                        taken.activities.push(activity);
                    }
                }
                "technique_fetched" => taken.chars += chars,
                "resource_fetched" if event.data("bundled") != Some(&Value::Bool(true)) => taken.chars += chars,
                _ => {}
            }
        }
        taken
    }

    /// The session's own agent is unbounded, and a first activity is always served.
    fn exempt(&self, session: &Session, scope: &str) -> bool {
        scope == session.agent_id || self.activities.is_empty()
    }
}

/// The two limits of a context.
struct Limits {
    activities: f64,
    chars: f64,
}

impl Limits {
    fn of(context_tokens: u64, settings: &Settings) -> Self {
        Self {
            activities: settings.batch_max_activities.floor().max(1.0),
            chars: (real(context_tokens) * settings.batch_headroom_fraction * settings.chars_per_token).floor(),
        }
    }

    fn bound(&self, taken: &Taken<'_>) -> Option<Limit> {
        if real(count(taken.activities.len())) >= self.activities {
            Some(Limit::ActivityCap)
        } else if taken.chars > self.chars {
            Some(Limit::DeliveryBudget)
        } else {
            None
        }
    }
}

/// The delivery scope an event belongs to.
pub(crate) fn scope_of(event: &Event) -> Option<&str> {
    event.data_text("agentId")
}

/// The recorded size; sizes that are no finite number ≥ 0 are none.
pub(crate) fn size(event: &Event) -> Option<f64> {
    event.data("chars")?.as_f64().filter(|chars| chars.is_finite() && *chars >= 0.0)
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "budgets are IEEE doubles by definition (spec 02 T-31)")]
fn real(number: u64) -> f64 {
    number as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates; sizes and limits are not negative"
)]
fn whole(number: f64) -> u64 {
    number as u64
}
