//! Visits of an activity, derived from the history (spec 03 §6.4).
//!
//! A visit begins when the session enters an activity from another one (or from none), or re-enters it by its own
//! declared route. Any other re-entry, such as a resumed orchestrator's, goes on with the same visit.

use workflow_corpus::Activity;

use crate::{
    checkpoint,
    state::{Event, Session},
};

const ENTERED: &str = "activity_entered";
/// Value of `data.visit` of a re-entry that begins a visit.
pub(crate) const NEW: &str = "new";
/// Value of `data.visit` of a re-entry that does not.
pub(crate) const SAME: &str = "same";

/// Position in the history at which the current visit of the current activity began.
///
/// `activity` is its definition, if it still has one: it decides only for re-entries that do not say themselves what
/// they were.
pub(crate) fn start(session: &Session, activity: Option<&Activity>) -> usize {
    let entries: Vec<usize> = entries(session).collect();
    newest_start(session, activity, &entries)
}

fn entries(session: &Session) -> impl Iterator<Item = usize> {
    session.history.iter().enumerate().filter(|(_, event)| event.kind() == ENTERED).map(|(at, _)| at)
}

fn newest_start(session: &Session, activity: Option<&Activity>, entries: &[usize]) -> usize {
    let mut begun = entries.first().copied().unwrap_or(0);
    for pair in entries.windows(2) {
        let (before, at) = (&session.history[pair[0]], pair[1]);
        let event = &session.history[at];
        let begins = before.activity() != event.activity()
            || match event.data_text("visit") {
                Some(visit) => visit == NEW,
                None => activity
                    .filter(|activity| activity.id == event.activity())
                    .is_some_and(|activity| leads_back(session, activity, begun, at)),
            };
        if begins {
            begun = at;
        }
    }
    begun
}

/// What re-entering the current activity now is: [`NEW`] or [`SAME`].
pub(crate) fn of_reentry(session: &Session, activity: Option<&Activity>) -> &'static str {
    let led_back = activity
        .is_some_and(|activity| leads_back(session, activity, start(session, Some(activity)), session.history.len()));
    if led_back { NEW } else { SAME }
}

/// Does a declared route lead from the visit that lasted from `begun` to `until` to the activity itself: a transition,
/// a branch, or an answer of that visit?
fn leads_back(session: &Session, activity: &Activity, begun: usize, until: usize) -> bool {
    let answered_back = |event: &Event| {
        let key = checkpoint::key(event.activity(), event.checkpoint());
        session.checkpoint_responses.get(&key).is_some_and(|response| {
            event.data_text("optionId") == Some(&response.option_id)
                && checkpoint::transition_of(response) == Some(activity.id.as_str())
        })
    };
    activity.own_route_to_itself()
        || session.history[begun..until]
            .iter()
            .filter(|event| event.kind() == "checkpoint_response" && event.activity() == activity.id)
            .any(answered_back)
}
