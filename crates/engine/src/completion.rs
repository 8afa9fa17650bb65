//! Telling the parent that a session has ended (spec 03 §1.9).

use crate::{
    Environment, Timestamp, TraceEntry, Workset, lineage,
    state::{Event, Session},
};

/// Closes the running reference to the addressed session at its parent: the enclosing session of an embedded child, or
/// the session of another folder that it recorded as its parent. Without either nothing happens. Answers the event for
/// the parent's trace when the link itself was missing.
pub(crate) fn tell_parent(env: &Environment<'_>, workset: &mut Workset) -> Option<TraceEntry> {
    let mut enclosing = workset.path.clone();
    let Some(position) = enclosing.0.pop() else { return lineage::complete_link(env, workset) };
    let root = workset.families.first_mut().and_then(|family| family.root.as_mut());
    if let Some(parent) = root.and_then(|root| root.at_mut(&enclosing)) {
        close_reference(parent, position, env.now);
    }
    None
}

/// The parent as it is open for this call, if it is; what a child recorded of it when it began is older.
pub(crate) fn parent(workset: &Workset) -> Option<&Session> {
    let (family, others) = workset.families.split_first()?;
    let root = family.root.as_ref()?;
    let mut enclosing = workset.path.clone();
    if enclosing.0.pop().is_some() {
        return root.at(&enclosing);
    }
    let recorded = root.parent_session.as_ref()?;
    let parent = others.first()?.root.as_ref()?;
    (parent.session_index == recorded.session_index).then_some(parent)
}

/// The state of an embedded child is part of its parent, so that both are written at once.
fn close_reference(parent: &mut Session, position: usize, now: Timestamp) {
    let Some(reference) = parent.triggered_workflows.get(position).filter(|child| child.status == "running") else {
        return;
    };
    let returned = Event::new("workflow_returned")
        .with_data("sessionIndex", reference.session_index.as_str())
        .with_data("workflowId", reference.workflow_id.as_str());
    let stamp = parent.record(returned, now);
    let reference = &mut parent.triggered_workflows[position];
    "completed".clone_into(&mut reference.status);
    reference.completed_at = Some(stamp);
    parent.advance(now);
}
