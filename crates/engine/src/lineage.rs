//! Parents, ancestors and children of a session, for children of both kinds (spec 03 §1.9).

use serde_json::{Map, Value};

use crate::{
    Environment, Refusal, StatePath, Timestamp, TraceEntry, Workset,
    state::{ChildReference, Event, Session, Status, canonical_json},
    trace,
};

/// Ancestors above which a session warns.
pub(crate) const DEPTH_WARNING: usize = 5;
/// Ancestors above which no session is made.
pub(crate) const DEPTH_LIMIT: usize = 32;
/// Size above which a parent snapshot is trimmed, in bytes as written.
const SNAPSHOT_LIMIT: usize = 1 << 20;
/// History events that a trimmed snapshot keeps.
const SNAPSHOT_EVENTS: usize = 1000;

/// Ancestors of the session at an address of a family, nearest first: the enclosing sessions, then the recorded
/// parents of the root.
pub(crate) fn ancestors<'a>(root: &'a Session, path: &StatePath) -> Vec<&'a Session> {
    let mut above: Vec<&Session> =
        (0..path.0.len()).rev().filter_map(|length| root.at(&StatePath(path.0[..length].to_vec()))).collect();
    let mut next = root.parent_session.as_deref();
    while let Some(parent) = next {
        above.push(parent);
        next = parent.parent_session.as_deref();
    }
    above
}

/// Ancestors of the addressed session, nearest first.
pub(crate) fn of(workset: &Workset) -> Vec<&Session> {
    let root = workset.families.first().and_then(|family| family.root.as_ref());
    root.map(|root| ancestors(root, &workset.path)).unwrap_or_default()
}

/// Refuses a session with too many ancestors and says whether there are so many that it warns.
///
/// # Errors
/// `DEPTH_LIMIT`.
pub(crate) fn check_depth(depth: usize) -> Result<Option<String>, Refusal> {
    if depth > DEPTH_LIMIT {
        return Err(Refusal::new(
            "DEPTH_LIMIT",
            format!(
                "The new session would have {depth} ancestors; at most {DEPTH_LIMIT} are possible. Dispatch it from a \
                 session nearer to the top, or start it without a parent."
            ),
        )
        .with("depth", depth)
        .with("limit", DEPTH_LIMIT));
    }
    Ok((depth > DEPTH_WARNING).then(|| {
        format!(
            "This session has {depth} ancestors; more than {DEPTH_WARNING} usually mean that a dispatch repeats itself."
        )
    }))
}

/// Whether a root session or one embedded in it holds an index.
pub(crate) fn holds(root: &Session, index: &str) -> bool {
    root.walk().any(|(_, session)| session.session_index == index)
}

/// Whether an index belongs to the addressed session, an ancestor or a descendant of it.
pub(crate) fn is_related(env: &Environment<'_>, workset: &Workset, index: &str) -> bool {
    let Some(session) = workset.session() else { return false };
    if holds(session, index) || of(workset).iter().any(|ancestor| ancestor.session_index == index) {
        return true;
    }
    let mut open = own_folder_children(session);
    let mut seen = vec![session.session_index.clone()];
    while let Some(child) = open.pop() {
        if child == index {
            return true;
        }
        if seen.contains(&child) {
            continue;
        }
        if let Some(found) = env.registry.find(&child)
            && let Some(below) = found.session()
        {
            if holds(below, index) {
                return true;
            }
            open.extend(own_folder_children(below));
        }
        seen.push(child);
    }
    false
}

/// Indexes of the own-folder children of a session and of those embedded in it.
fn own_folder_children(session: &Session) -> Vec<String> {
    session
        .walk()
        .flat_map(|(_, below)| &below.triggered_workflows)
        .filter(|reference| reference.state.is_none())
        .map(|reference| reference.session_index.clone())
        .collect()
}

/// What a child with its own folder keeps of its parent: the parent's state as it is, trimmed only when it is larger
/// than 1 MiB as written: ancestors go, oldest first, then the parent's history down to its newest 1,000 events.
pub(crate) fn snapshot(parent: &Session) -> Session {
    let mut copy = parent.clone();
    if written_size(&copy) <= SNAPSHOT_LIMIT {
        return copy;
    }
    while written_size(&copy) > SNAPSHOT_LIMIT && drop_oldest_ancestor(&mut copy) {}
    if written_size(&copy) > SNAPSHOT_LIMIT && copy.history.len() > SNAPSHOT_EVENTS {
        copy.history.drain(..copy.history.len() - SNAPSHOT_EVENTS);
        copy.snapshot_trimmed = true;
    }
    copy
}

/// Removes the outermost recorded parent and marks the one that is outermost then.
fn drop_oldest_ancestor(session: &mut Session) -> bool {
    match session.parent_session.as_deref_mut() {
        None => false,
        Some(parent) => {
            if !drop_oldest_ancestor(parent) {
                session.parent_session = None;
                session.snapshot_trimmed = true;
            }
            true
        }
    }
}

/// Bytes of a snapshot inside its child's file, where every line is indented once more.
fn written_size(session: &Session) -> usize {
    let text = canonical_json(&session.to_json());
    text.len() + 2 * text.matches('\n').count()
}

/// Adds a child to a session: the reference and `workflow_triggered`.
pub(crate) fn link(parent: &mut Session, child: &Session, state: Option<Session>, now: Timestamp) {
    let activity = parent.current_activity.clone();
    let event = Event::new("workflow_triggered")
        .with_activity(&activity)
        .with_data("workflowId", child.workflow_id.as_str())
        .with_data("sessionIndex", child.session_index.as_str());
    let stamp = parent.record(event, now);
    let mut from = Map::new();
    from.insert("activityId".to_owned(), activity.into());
    parent.triggered_workflows.push(ChildReference {
        workflow_id: child.workflow_id.clone(),
        session_index: child.session_index.clone(),
        triggered_at: stamp,
        triggered_from: from,
        status: Status::Running.as_str().to_owned(),
        completed_at: None,
        returned_context: None,
        state: state.map(Box::new),
        extra: Map::new(),
    });
}

/// Whether a session has a reference to a child.
pub(crate) fn is_linked(parent: &Session, child_index: &str) -> bool {
    parent.triggered_workflows.iter().any(|reference| reference.session_index == child_index)
}

/// Brings what a session knows of an own-folder child up to date: the reference is added when it is missing, and a
/// running one takes its status from a child that has ended. Says whether anything changed.
pub(crate) fn reconcile(parent: &mut Session, child: &Session, now: Timestamp) -> bool {
    let was_missing = !is_linked(parent, &child.session_index);
    if was_missing {
        link(parent, child, None, now);
    }
    let open = parent.triggered_workflows.iter().position(|reference| {
        reference.session_index == child.session_index
            && reference.state.is_none()
            && reference.status == Status::Running.as_str()
    });
    match open {
        Some(position) if child.status != Status::Running => {
            settle(parent, position, child, now);
            true
        }
        _ => was_missing,
    }
}

/// [`reconcile`]s the recorded parent, if it is open beside the addressed root session, with it. Answers the event for
/// the parent's trace when the link was missing.
pub(crate) fn complete_link(env: &Environment<'_>, workset: &mut Workset) -> Option<TraceEntry> {
    let [child, parent, ..] = workset.families.as_mut_slice() else { return None };
    let (child, parent) = (child.root.as_ref()?, parent.root.as_mut()?);
    let recorded = child.parent_session.as_ref()?;
    if !workset.path.0.is_empty() || recorded.session_index != parent.session_index {
        return None;
    }
    join(env, parent, child)
}

/// [`reconcile`] as a write of the parent, with the event for its trace when the link was missing.
pub(crate) fn join(env: &Environment<'_>, parent: &mut Session, child: &Session) -> Option<TraceEntry> {
    let was_linked = is_linked(parent, &child.session_index);
    if reconcile(parent, child, env.now) {
        parent.advance(env.now);
    }
    (!was_linked).then(|| trace::link_event(env, parent, child))
}

/// [`reconcile`]s a root session with every own-folder child that it names or that names it, after calls that may have
/// been interrupted. Says whether anything changed.
pub(crate) fn converge(env: &Environment<'_>, root: &mut Session) -> bool {
    let mut children: Vec<String> = root
        .triggered_workflows
        .iter()
        .filter(|reference| reference.state.is_none() && reference.status == Status::Running.as_str())
        .map(|reference| reference.session_index.clone())
        .collect();
    let named = env.registry.children_of(&root.session_index);
    children.extend(named.into_iter().filter(|index| !is_linked(root, index)));
    let mut changed = false;
    for index in children {
        let Some(found) = env.registry.find(&index) else { continue };
        let Some(child) = found.session() else { continue };
        let names_it = child.parent_session.as_ref().is_some_and(|parent| parent.session_index == root.session_index);
        if names_it || is_linked(root, &index) {
            changed |= reconcile(root, child, env.now);
        }
    }
    changed
}

/// Closes the reference to a child that has ended.
fn settle(parent: &mut Session, position: usize, child: &Session, now: Timestamp) {
    let event = Event::new("workflow_returned")
        .with_data("sessionIndex", child.session_index.as_str())
        .with_data("workflowId", child.workflow_id.as_str());
    let stamp = parent.record(event, now);
    let ended = child.history.iter().rev().find(|event| event.kind() == "workflow_completed");
    let reference = &mut parent.triggered_workflows[position];
    child.status.as_str().clone_into(&mut reference.status);
    reference.completed_at = Some(ended.map_or(stamp, |event| event.timestamp().to_owned()));
}

/// The `parent` member of a status answer.
pub(crate) fn digest(parent: &Session) -> Value {
    serde_json::json!({
        "session_index": parent.session_index,
        "workflow_id": parent.workflow_id,
        "activity": parent.current_activity,
        "version": parent.workflow_version,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::workspace::Workspace;

    fn session(workspace: &Workspace, slug: &str) -> Session {
        let answer = workspace.json("start_session", json!({"workflow_id": "mini", "planning_slug": slug}));
        workspace.session(answer["session_index"].as_str().unwrap())
    }

    /// A chain of `length` sessions, each the parent of the next; `padding` bytes in each.
    fn chain(workspace: &Workspace, length: usize, padding: usize) -> Session {
        let mut newest = session(workspace, "s");
        newest.variables.insert("padding".to_owned(), "x".repeat(padding).into());
        for _ in 1..length {
            let mut next = newest.clone();
            next.parent_session = Some(Box::new(newest));
            newest = next;
        }
        newest
    }

    fn length(session: &Session) -> usize {
        ancestors(session, &StatePath::default()).len() + 1
    }

    fn marks(session: &Session) -> Vec<bool> {
        let mut marks = vec![session.snapshot_trimmed];
        marks.extend(ancestors(session, &StatePath::default()).iter().map(|above| above.snapshot_trimmed));
        marks
    }

    #[test]
    fn a_snapshot_is_verbatim_up_to_a_mebibyte() {
        let parent = chain(&Workspace::new(), 3, 300_000);
        assert_eq!(snapshot(&parent), parent);
    }

    #[test]
    fn a_larger_snapshot_loses_its_oldest_ancestors() {
        let parent = chain(&Workspace::new(), 6, 300_000);
        let kept = snapshot(&parent);
        assert_eq!(length(&kept), 3);
        assert_eq!(marks(&kept), [false, false, true]);
        assert!(written_size(&kept) <= SNAPSHOT_LIMIT);
    }

    #[test]
    fn then_it_loses_its_older_history() {
        let mut parent = chain(&Workspace::new(), 2, 10);
        for n in 0..1500 {
            let event = Event::new("technique_fetched").with_data("n", n).with_data("text", "y".repeat(800));
            parent.record(event, Timestamp(1_800_000_000_000));
        }
        let kept = snapshot(&parent);
        assert_eq!((length(&kept), kept.snapshot_trimmed, kept.history.len()), (1, true, 1000));
        assert_eq!(kept.history[0].data("n"), Some(&json!(500)));
        assert_eq!(kept.variables, parent.variables);
    }

    #[test]
    fn ancestors_are_those_around_and_those_recorded() {
        let workspace = Workspace::new();
        let outer = session(&workspace, "outer");
        let arguments = json!({"workflow_id": "mini", "planning_slug": "p", "parent_planning_slug": "outer"});
        let parent = workspace.json("start_session", arguments)["session_index"].clone();
        let child = workspace.json("dispatch_child", json!({"session_index": parent, "workflow_id": "bare"}));
        let root = workspace.session(parent.as_str().unwrap());
        let above: Vec<&str> =
            ancestors(&root, &StatePath(vec![0])).iter().map(|above| above.session_index.as_str()).collect();
        assert_eq!(above, [parent.as_str().unwrap(), outer.session_index.as_str()]);
        let status = workspace.json("get_workflow_status", json!({"session_index": child["session_index"]}));
        assert_eq!(status["parent"]["session_index"], parent);
    }

    #[test]
    fn relations_reach_over_folders_in_both_directions() {
        let workspace = Workspace::new();
        let index = |answer: &serde_json::Map<String, Value>| answer["session_index"].as_str().unwrap().to_owned();
        let top = session(&workspace, "top").session_index;
        let start = |slug: &str, parent: &str| {
            let arguments = json!({"workflow_id": "mini", "planning_slug": slug, "parent_planning_slug": parent});
            index(&workspace.json("start_session", arguments))
        };
        let (child, sibling) = (start("child", "top"), start("sibling", "top"));
        let embedded = index(&workspace.json("dispatch_child", json!({"session_index": child, "workflow_id": "bare"})));
        let related = |from: &str, to: &str| {
            workspace.with_env(|env| is_related(env, &env.registry.find(from).expect("a session"), to))
        };
        for (from, to, expected) in [
            (&top, &embedded, true),
            (&embedded, &top, true),
            (&child, &child, true),
            (&child, &sibling, false),
            (&embedded, &sibling, false),
        ] {
            assert_eq!(related(from, to), expected, "{from} and {to}");
        }
    }
}
