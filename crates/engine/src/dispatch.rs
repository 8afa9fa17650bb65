//! Who received what: arrivals, re-deliveries and begun steps of delivery scopes (spec 02 §10.7, §13).

use workflow_corpus::Warning;

use crate::{
    Timestamp,
    batch::{scope_of, size},
    state::{Event, Session},
};

const DISPATCHED: &str = "activity_dispatched";

/// Whether the session has met this scope before: `resume` instead of `fresh`.
pub(crate) fn is_met(session: &Session, scope: &str) -> bool {
    session.history.iter().any(|event| event.kind() == DISPATCHED && scope_of(event) == Some(scope))
}

/// `resume` for a scope that was met before, else `fresh`.
pub(crate) fn kind(session: &Session, scope: &str) -> &'static str {
    if is_met(session, scope) { "resume" } else { "fresh" }
}

/// Records the first arrival of a scope by something else than an activity: without a size, so that it takes nothing.
pub(crate) fn record_arrival(session: &mut Session, scope: &str, now: Timestamp) {
    if !is_met(session, scope) {
        let event = Event::new(DISPATCHED)
            .with_activity(&session.current_activity)
            .with_data("agentId", scope)
            .with_data("dispatch", "fresh");
        session.record(event, now);
    }
}

/// Records that a scope took an activity of this size, and that another scope had it before (only sized deliveries
/// count).
pub(crate) fn record_activity(session: &mut Session, scope: &str, activity: &str, chars: u64, now: Timestamp) {
    let dispatched = Event::new(DISPATCHED)
        .with_activity(activity)
        .with_data("agentId", scope)
        .with_data("dispatch", kind(session, scope))
        .with_data("chars", chars);
    let redelivered = prior_holder(session, scope, activity).map(|prior| {
        Event::new("activity_redelivered")
            .with_activity(activity)
            .with_data("agentId", scope)
            .with_data("priorAgentId", prior)
            .with_data("chars", chars)
    });
    session.record(dispatched, now);
    if let Some(event) = redelivered {
        session.record(event, now);
    }
}

/// The latest other scope that took the activity, when this scope never did.
fn prior_holder<'s>(session: &'s Session, scope: &str, activity: &str) -> Option<&'s str> {
    let mut holders = session
        .history
        .iter()
        .rev()
        .filter(|event| event.kind() == DISPATCHED && event.activity() == activity && size(event).is_some())
        .filter_map(scope_of)
        .peekable();
    let latest = *holders.peek()?;
    if holders.any(|holder| holder == scope) { None } else { Some(latest) }
}

/// Records that a scope was handed a step, once per activity, step and scope.
pub(crate) fn record_step(session: &mut Session, scope: &str, step_id: &str, now: Timestamp) {
    let activity = session.current_activity.clone();
    let begun = session.history.iter().any(|event| {
        event.kind() == "step_started"
            && event.activity() == activity
            && event.data_text("stepId") == Some(step_id)
            && scope_of(event) == Some(scope)
    });
    if !begun {
        let event = Event::new("step_started")
            .with_activity(&activity)
            .with_data("stepId", step_id)
            .with_data("agentId", scope);
        session.record(event, now);
    }
}

/// The warning of a delivery without `agent_id` in a session where other scopes take activities (spec 02 §10.4).
pub(crate) fn warn_omitted_agent(session: &Session) -> Option<Warning> {
    let others = session
        .history
        .iter()
        .filter(|event| event.kind() == DISPATCHED)
        .filter_map(scope_of)
        .any(|scope| scope != session.agent_id);
    others.then(|| Warning {
        code: "W_AGENT_ID_OMITTED",
        message: format!(
            "get_activity came without agent_id, so it counts for the session's own agent '{}', whose batch is \
             unbounded. Other agents work in this session: a dispatched worker passes the agent_id of its dispatch.",
            session.agent_id
        ),
    })
}
