//! Telling the parent that a session has ended (spec 03 §1.9).

use crate::{
    Timestamp, Workset,
    state::{Event, Session},
};

/// Closes the running reference to the addressed session at its parent: the enclosing session of an embedded child, or
/// the session of another folder that refers to it. Without either nothing happens.
pub(crate) fn tell_parent(workset: &mut Workset, now: Timestamp) {
    let Some(index) = workset.session().map(|session| session.session_index.clone()) else { return };
    let mut enclosing = workset.path.clone();
    if enclosing.0.pop().is_some() {
        let root = workset.families.first_mut().and_then(|family| family.root.as_mut());
        if let Some(parent) = root.and_then(|root| root.at_mut(&enclosing)) {
            close_reference(parent, &index, now);
        }
        return;
    }
    let others = workset.families.iter_mut().skip(1).filter_map(|family| family.root.as_mut());
    for root in others {
        let path = root.walk().find(|(_, session)| refers_to(session, &index)).map(|(path, _)| path);
        if let Some(parent) = path.and_then(|path| root.at_mut(&path)) {
            close_reference(parent, &index, now);
            return;
        }
    }
}

fn refers_to(session: &Session, child: &str) -> bool {
    session.triggered_workflows.iter().any(|reference| reference.session_index == child)
}

fn close_reference(parent: &mut Session, child: &str, now: Timestamp) {
    let running = parent
        .triggered_workflows
        .iter()
        .position(|reference| reference.session_index == child && reference.status == "running");
    let Some(position) = running else { return };
    let returned = Event::new("workflow_returned")
        .with_data("sessionIndex", child)
        .with_data("workflowId", parent.triggered_workflows[position].workflow_id.as_str());
    let stamp = parent.record(returned, now);
    let reference = &mut parent.triggered_workflows[position];
    "completed".clone_into(&mut reference.status);
    reference.completed_at = Some(stamp);
    parent.advance(now);
}
