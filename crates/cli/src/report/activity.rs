//! Activities: which there are, how far they are, when they were worked on.

use workflow_corpus::TERMINAL;
use workflow_engine::Timestamp;
use workflow_engine::state::{Session, Status};

use super::Source;

/// One activity of the workflow, or one that was entered and is in the definition no more.
#[derive(Debug)]
pub(crate) struct Activity {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    pub(crate) state: State,
    /// In the definition as it is now.
    pub(crate) declared: bool,
    /// How often it was begun.
    pub(crate) visits: usize,
    /// First time it was entered.
    pub(crate) entered_at: Option<String>,
    /// Sum over its visits; the open one counts up to the last event.
    pub(crate) ms: Option<i64>,
    /// Where it stands on the way: by its first visit, then by the routes.
    pub(crate) place: (usize, usize),
    /// Steps reported with an output.
    pub(crate) steps: usize,
    pub(crate) outcomes: Vec<String>,
}

/// How far an activity is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Done,
    Current,
    Skipped,
    Ahead,
}

impl State {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Current => "current",
            Self::Skipped => "skipped",
            Self::Ahead => "ahead",
        }
    }
}

/// A stretch of time in one activity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Visit {
    pub(crate) activity: String,
    pub(crate) entered: Timestamp,
    /// `None` while it lasts.
    pub(crate) left: Option<Timestamp>,
    /// The end, or the last event of the session while it lasts.
    pub(crate) until: Timestamp,
}

/// The stretches of time in activities, in order. A re-entry of the same visit goes on with it (spec 03 §6.4).
pub(crate) fn visits(session: &Session) -> Vec<Visit> {
    let mut visits: Vec<Visit> = Vec::new();
    let mut last = Timestamp(i64::MIN);
    for event in &session.history {
        let Some(time) = event.time() else { continue };
        last = last.max(time);
        match event.kind() {
            "activity_exited" => {
                if let Some(open) = visits.last_mut().filter(|open| open.activity == event.activity()) {
                    open.left = open.left.or(Some(time));
                }
            }
            "activity_entered" => {
                let same = event.data_text("visit") == Some("same");
                match visits.last_mut() {
                    Some(before) if same && before.activity == event.activity() => before.left = None,
                    before => {
                        if let Some(before) = before {
                            before.left = before.left.or(Some(time));
                        }
                        if event.activity() != TERMINAL {
                            visits.push(Visit {
                                activity: event.activity().to_owned(),
                                entered: time,
                                left: None,
                                until: time,
                            });
                        }
                    }
                }
            }
            "workflow_completed" => {
                if let Some(open) = visits.last_mut() {
                    open.left = open.left.or(Some(time));
                }
            }
            _ => {}
        }
    }
    for visit in &mut visits {
        visit.until = visit.left.unwrap_or(last).max(visit.entered);
    }
    visits
}

pub(super) fn activities(source: &Source<'_>, visits: &[Visit]) -> Vec<Activity> {
    let session = source.session;
    let declared = source.workflow.map(|workflow| workflow.activities.as_slice()).unwrap_or_default();
    let mut ids: Vec<&str> = declared.iter().map(|activity| activity.id.as_str()).collect();
    let known = visits.iter().map(|visit| &visit.activity).chain(&session.completed_activities);
    for id in known.chain(&session.skipped_activities).chain(std::iter::once(&session.current_activity)) {
        if !id.is_empty() && id != TERMINAL && !ids.contains(&id.as_str()) {
            ids.push(id);
        }
    }
    let way = source.workflow.map(workflow_corpus::Workflow::activities_by_route).unwrap_or_default();
    ids.into_iter()
        .map(|id| {
            let first = visits.iter().position(|visit| visit.activity == id);
            let on_way = way.iter().position(|activity| activity.id == id);
            let own = || visits.iter().filter(|visit| visit.activity == id);
            let definition = declared.iter().find(|activity| activity.id == id);
            Activity {
                id: id.to_owned(),
                name: definition.map(|activity| activity.name.clone()),
                state: state(session, id),
                declared: definition.is_some(),
                visits: own().count(),
                entered_at: own().next().map(|visit| visit.entered.text()),
                ms: own().map(|visit| visit.until.0.saturating_sub(visit.entered.0)).reduce(i64::saturating_add),
                place: (first.unwrap_or(usize::MAX), on_way.unwrap_or(usize::MAX)),
                steps: steps(session, id),
                outcomes: outcomes(source, id),
            }
        })
        .collect()
}

fn state(session: &Session, id: &str) -> State {
    let is_in = |list: &[String]| list.iter().any(|known| known == id);
    if session.current_activity == id && session.status == Status::Running {
        State::Current
    } else if session.current_activity == id || is_in(&session.completed_activities) {
        State::Done
    } else if is_in(&session.skipped_activities) {
        State::Skipped
    } else {
        State::Ahead
    }
}

fn steps(session: &Session, id: &str) -> usize {
    let mut reported: Vec<&str> = session
        .history
        .iter()
        .filter(|event| event.kind() == "step_completed" && event.activity() == id)
        .filter_map(|event| event.data_text("stepId"))
        .collect();
    reported.sort_unstable();
    reported.dedup();
    reported.len()
}

fn outcomes(source: &Source<'_>, id: &str) -> Vec<String> {
    let events = source.session.history.iter();
    events
        .filter(|event| event.kind() == "activity_outcome" && event.activity() == id)
        .filter_map(|event| event.data_text("outcome"))
        .map(|outcome| source.redaction.text(outcome))
        .collect()
}
