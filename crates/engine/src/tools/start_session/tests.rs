use serde_json::{Value, json};

use crate::{
    Content, Reply,
    state::{ContextMode, Event, Status},
    workspace::{PLANNING, Workspace},
};

/// Starts a session of `mini` under a slug and answers its index.
fn started(workspace: &Workspace, slug: &str) -> String {
    let answer = workspace.json("start_session", json!({"workflow_id": "mini", "planning_slug": slug}));
    answer["session_index"].as_str().expect("an index").to_owned()
}

fn members(reply: &Reply) -> &serde_json::Map<String, Value> {
    match &reply.content {
        Content::Json(members) => members,
        other => panic!("no JSON: {other:?}"),
    }
}

#[test]
fn a_new_session_answers_who_and_where_it_is() {
    let workspace = Workspace::new();
    let reply = workspace.call(
        "start_session",
        json!({"agent_id": "orc", "workflow_id": "mini", "planning_slug": "2026-07-13-alpha",
               "context_mode": "persistent", "repo": "https://example.org/acme/tool.git"}),
    );
    let expected = json!({
        "workflow": {"id": "mini", "version": "1.2.0", "title": "Mini"},
        "session_index": "NU7LON",
        "planning_slug": "2026-07-13-alpha",
        "planning_folder_path": format!("{PLANNING}/2026-07-13-alpha"),
        "repo": "acme/tool",
        "context_mode": "persistent",
        "resumed": false
    });
    assert_eq!(reply.plain_text(), serde_json::to_string_pretty(&expected).unwrap());
    assert_eq!(reply.render().meta.unwrap()["session_index"], "NU7LON");
    let session = workspace.session("NU7LON");
    assert_eq!((session.seq, session.status, session.current_activity.as_str()), (0, Status::Running, ""));
    assert_eq!(session.planning_folder_path.as_deref(), Some(expected["planning_folder_path"].as_str().unwrap()));
}

#[test]
fn without_a_slug_meta_is_transient_and_found_by_its_minted_slug() {
    let workspace = Workspace::new();
    let first = workspace.json("start_session", json!({}));
    assert_eq!(first["workflow"]["id"], "meta");
    assert_eq!(first["workflow"]["description"], "Finds work.");
    assert!(!first.contains_key("planning_folder_path"));
    let slug = first["planning_slug"].as_str().unwrap();
    assert!(crate::slug::is_minted(slug));
    let again = workspace.json("start_session", json!({"planning_slug": slug}));
    assert_eq!(again["session_index"], first["session_index"]);
    assert_eq!(again["resumed"], true);
    assert!(workspace.session(first["session_index"].as_str().unwrap()).planning_folder_path.is_none());
    let workflow = workspace.call("get_workflow", json!({"session_index": first["session_index"]})).plain_text();
    let real = format!("planning_folder_path: /srv/state/transient/{slug}\n");
    assert!(workflow.ends_with(&real), "get_workflow names the real folder (spec 03 §1.4)");

    let second = workspace.json("start_session", json!({}));
    assert_ne!(second["session_index"], first["session_index"]);
    let other = workspace.json("start_session", json!({"workflow_id": "mini"}));
    assert!(other["planning_folder_path"].as_str().unwrap().contains("/transition-"));
}

#[test]
fn a_meta_session_with_a_slug_is_durable() {
    let workspace = Workspace::new();
    let answer = workspace.json("start_session", json!({"planning_slug": "home"}));
    assert_eq!(answer["planning_folder_path"], format!("{PLANNING}/home"));
}

#[track_caller]
fn check_refused(arguments: &Value, code: &str) {
    let workspace = Workspace::new();
    assert_eq!(workspace.refusal("start_session", arguments.clone()).code, code, "{arguments}");
}

#[test]
fn what_cannot_be_started_is_refused() {
    check_refused(&json!({"planning_slug": ""}), "INVALID_SLUG");
    check_refused(&json!({"planning_slug": "a/b"}), "INVALID_SLUG");
    check_refused(&json!({"planning_slug": "con"}), "INVALID_SLUG");
    check_refused(&json!({"planning_slug": "x.", "workflow_id": "mini"}), "INVALID_SLUG");
    check_refused(&json!({"planning_folder": "alpha"}), "PLANNING_FOLDER_NOT_ABSOLUTE");
    check_refused(&json!({"planning_folder": ""}), "PLANNING_FOLDER_NOT_ABSOLUTE");
    check_refused(&json!({"planning_folder": "/a/alpha", "planning_slug": "beta"}), "SLUG_CONFLICT");
    check_refused(&json!({"planning_slug": "a", "parent_planning_slug": "a"}), "SLUG_CONFLICT");
    check_refused(&json!({"planning_slug": "a", "parent_planning_slug": "nobody"}), "PARENT_NOT_FOUND");
    check_refused(&json!({"planning_slug": "a", "parent_planning_slug": ".."}), "INVALID_SLUG");
    check_refused(&json!({"planning_slug": "a", "workflow_id": "none"}), "WORKFLOW_NOT_FOUND");
    check_refused(&json!({"planning_slug": "a", "repo": "tool"}), "REPO_INVALID");
    check_refused(&json!({"agent_id": ""}), "INVALID_PARAMS");
    check_refused(&json!({"workflow_id": ""}), "INVALID_PARAMS");
    check_refused(&json!({"session_token": "x"}), "INVALID_PARAMS");
    check_refused(&json!({"planning_slug": "transition-0e7a1c2d-1111-4222-8333-444455556666"}), "SESSION_NOT_FOUND");
}

/// `workflow_id: "../outside"` must not load a definition from outside the root.
#[test]
fn hazard_h01_a_workflow_id_is_one_plain_segment() {
    for id in ["../outside", "a/b", "/etc", ".", "..", ".hidden", "a\\b"] {
        check_refused(&json!({"planning_slug": "a", "workflow_id": id}), "INVALID_WORKFLOW_ID");
    }
}

/// An unknown workflow leaves nothing behind.
#[test]
fn hazard_h09_a_refused_start_writes_nothing() {
    let workspace = Workspace::new();
    workspace.refusal("start_session", json!({"planning_slug": "a", "workflow_id": "none"}));
    let answer = workspace.json("start_session", json!({"planning_slug": "a", "workflow_id": "mini"}));
    assert_eq!(answer["resumed"], false);
}

#[test]
fn a_planning_folder_counts_by_its_last_segment() {
    let workspace = Workspace::new();
    let reply = workspace.call("start_session", json!({"workflow_id": "mini", "planning_folder": "/any/where/alpha"}));
    assert_eq!(Workspace::codes(&reply), ["W_PATH_HINT"]);
    assert!(reply.warnings[0].message.contains("/any/where/alpha"));
    assert!(reply.warnings[0].message.contains(&format!("{PLANNING}/alpha")));
    let exact = format!("{PLANNING}/alpha/");
    let reply = workspace.call("start_session", json!({"planning_folder": exact, "planning_slug": "alpha"}));
    assert!(reply.warnings.is_empty());
    assert_eq!(members(&reply)["resumed"], true);
}

/// A folder that was renamed and adopted keeps the index it holds, and lookups use that.
#[test]
fn trap_03_14_01_the_stored_index_is_the_index() {
    let workspace = Workspace::new();
    let index = started(&workspace, "a");
    workspace.rename("a", "b");
    let answer = workspace.json("start_session", json!({"planning_slug": "b"}));
    assert_eq!(answer["session_index"], index.as_str());
    let recorded = workspace.session(&index).planning_folder_path;
    assert_eq!(recorded, Some(format!("{PLANNING}/b")));
}

/// Rename `a`, create `a` again: the second gets another index, and both stay usable.
#[test]
fn hazard_h07_a_recreated_slug_gets_another_index() {
    let workspace = Workspace::new();
    let index = started(&workspace, "2026-07-13-alpha");
    workspace.rename("2026-07-13-alpha", "beta");
    assert_eq!(started(&workspace, "2026-07-13-alpha"), "37UK7W");
    for index in [index.as_str(), "37UK7W"] {
        workspace.call("get_workflow_status", json!({"session_index": index}));
    }
}

#[test]
fn trap_03_14_10_a_resume_rebinds_the_agent_only_when_sent() {
    let workspace = Workspace::new();
    let start = json!({"agent_id": "first", "workflow_id": "mini", "planning_slug": "a"});
    let index = workspace.json("start_session", start)["session_index"].as_str().unwrap().to_owned();
    workspace.call("start_session", json!({"planning_slug": "a"}));
    assert_eq!((workspace.session(&index).agent_id.as_str(), workspace.session(&index).seq), ("first", 0));
    workspace.call("start_session", json!({"planning_slug": "a", "agent_id": "second"}));
    assert_eq!((workspace.session(&index).agent_id.as_str(), workspace.session(&index).seq), ("second", 1));
}

#[test]
fn trap_03_14_11_an_omitted_context_mode_keeps_the_recorded_one() {
    let workspace = Workspace::new();
    let index = started(&workspace, "a");
    assert_eq!(workspace.session(&index).context_mode, None);
    workspace.call("start_session", json!({"planning_slug": "a", "context_mode": "persistent"}));
    let answer = workspace.json("start_session", json!({"planning_slug": "a"}));
    assert_eq!(answer["context_mode"], "persistent");
    assert_eq!(workspace.session(&index).context_mode, Some(ContextMode::Persistent));
}

#[test]
fn a_change_to_fresh_drops_the_ledger_of_the_resuming_agent_only() {
    let workspace = Workspace::new();
    let arguments = json!({"workflow_id": "mini", "planning_slug": "a", "context_mode": "persistent"});
    let index = workspace.json("start_session", arguments)["session_index"].as_str().unwrap().to_owned();
    workspace.change(&index, |session| {
        for scope in ["orchestrator", "w1"] {
            let entry = std::iter::once(("technique:x".to_owned(), "2cf24dba5fb0a30e".to_owned())).collect();
            session.delivered_content.insert(scope.to_owned(), entry);
        }
    });
    workspace.call("start_session", json!({"planning_slug": "a", "context_mode": "fresh"}));
    let scopes: Vec<String> = workspace.session(&index).delivered_content.keys().cloned().collect();
    assert_eq!(scopes, ["w1"]);
}

#[test]
fn trap_03_14_12_falsy_defaults_are_seeded() {
    let workspace = Workspace::new();
    let session = workspace.session(&started(&workspace, "a"));
    assert_eq!(Value::Object(session.variables), json!({"is_ready": false, "plan_note": "", "item_count": 0}));
    let kinds: Vec<&str> = session.history.iter().map(Event::kind).collect();
    assert_eq!(kinds, ["workflow_started", "variables_seeded"]);
    assert_eq!(session.history[0].timestamp(), session.history[1].timestamp());

    let bare = workspace.json("start_session", json!({"workflow_id": "bare", "planning_slug": "b"}));
    let session = workspace.session(bare["session_index"].as_str().unwrap());
    assert_eq!(session.history.len(), 1);
}

#[test]
fn a_resume_changes_only_what_was_sent() {
    let workspace = Workspace::new();
    let index = started(&workspace, "a");
    let reply = workspace.call(
        "start_session",
        json!({"planning_slug": "a", "workflow_id": "bare", "user_request": "Do it", "repo": "acme/tool"}),
    );
    assert_eq!(Workspace::codes(&reply), ["W_WORKFLOW_ID_IGNORED"]);
    let session = workspace.session(&index);
    assert_eq!((session.workflow_id.as_str(), session.seq), ("mini", 1));
    assert_eq!(session.repo.as_deref(), Some("acme/tool"));
    assert_eq!(session.variables["user_request"], "Do it");
    let event = session.history.last().unwrap();
    assert_eq!((event.kind(), event.data_text("source")), ("variable_set", Some("user_request")));

    let refusal = workspace.refusal("start_session", json!({"planning_slug": "a", "repo": "acme/other"}));
    assert_eq!((refusal.code, &refusal.details["bound"]), ("REPO_CONFLICT", &json!("acme/tool")));
    let same = json!({"planning_slug": "a", "repo": "acme/tool.git", "user_request": "Do it"});
    workspace.call("start_session", same);
    assert_eq!(workspace.session(&index).seq, 1);
}

#[test]
fn a_resume_keeps_the_recorded_version_and_warns_of_drift() {
    let workspace = Workspace::new();
    let index = started(&workspace, "a");
    workspace.change(&index, |session| session.workflow_version = "1.0.0".to_owned());
    let reply = workspace.call("start_session", json!({"planning_slug": "a"}));
    assert_eq!(Workspace::codes(&reply), ["W_VERSION_DRIFT"]);
    assert_eq!(members(&reply)["workflow"]["version"], "1.2.0");
    assert_eq!(workspace.session(&index).workflow_version, "1.0.0");
}

#[test]
fn a_repeated_start_answers_the_same() {
    let workspace = Workspace::new();
    let arguments = json!({"workflow_id": "mini", "planning_slug": "a", "user_request": "Do it"});
    let first = workspace.json("start_session", arguments.clone());
    let index = first["session_index"].as_str().unwrap().to_owned();
    let before = workspace.session(&index);
    let mut expected = first;
    expected.insert("already_done".to_owned(), true.into());
    assert_eq!(workspace.json("start_session", arguments.clone()), expected);
    assert_eq!(workspace.session(&index), before);
    workspace.call("get_trace", json!({"session_index": index}));
    assert_eq!(workspace.json("start_session", arguments)["resumed"], true);
}

/// A repository is metadata: the session is where the server looks.
#[test]
fn hazard_h12_a_repo_moves_no_folder() {
    let workspace = Workspace::new();
    let answer =
        workspace.json("start_session", json!({"workflow_id": "mini", "planning_slug": "a", "repo": "acme/x"}));
    assert_eq!(answer["planning_folder_path"], format!("{PLANNING}/a"));
    workspace.call("get_workflow_status", json!({"session_index": answer["session_index"]}));
}

/// Starts `parent` of `meta` and `child` of `mini` below it; answers their indexes.
fn pair(workspace: &Workspace) -> (String, String) {
    let parent =
        workspace.json("start_session", json!({"planning_slug": "parent", "user_request": "Do it", "repo": "a/b"}));
    let child = workspace.json(
        "start_session",
        json!({"agent_id": "orc", "workflow_id": "mini", "planning_slug": "child", "parent_planning_slug": "parent"}),
    );
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&parent["session_index"]), text(&child["session_index"]))
}

#[test]
fn a_child_with_its_own_folder_keeps_its_parent_verbatim() {
    let workspace = Workspace::new();
    let parent = workspace.json("start_session", json!({"planning_slug": "parent"}))["session_index"].clone();
    let before = workspace.session(parent.as_str().unwrap());
    let reply = workspace.call(
        "start_session",
        json!({"workflow_id": "mini", "planning_slug": "child", "parent_planning_slug": "parent"}),
    );
    assert_eq!(members(&reply)["planning_folder_path"], format!("{PLANNING}/child"));
    let child = workspace.session(members(&reply)["session_index"].as_str().unwrap());
    assert_eq!(child.parent_session.as_deref(), Some(&before));

    let after = workspace.session(parent.as_str().unwrap());
    assert_eq!(after.seq, before.seq + 1);
    let reference = &after.triggered_workflows[0];
    assert_eq!((reference.workflow_id.as_str(), reference.status.as_str()), ("mini", "running"));
    assert_eq!(reference.session_index, child.session_index);
    assert!(reference.state.is_none());
    let event = after.history.last().unwrap();
    assert_eq!((event.kind(), event.activity()), ("workflow_triggered", ""));
    assert_eq!(event.data_text("sessionIndex"), Some(child.session_index.as_str()));
    assert_eq!(reply.traces.len(), 1);
    assert_eq!(reply.traces[0].event["csid"], child.session_index.as_str());
    assert_eq!(reply.traces[0].session_index, after.session_index);
}

#[test]
fn an_own_folder_child_inherits_the_request_and_the_repository() {
    let workspace = Workspace::new();
    let (_, child) = pair(&workspace);
    let child = workspace.session(&child);
    assert_eq!(child.variables["user_request"], "Do it");
    assert_eq!(child.variables["is_ready"], false);
    assert_eq!(child.repo.as_deref(), Some("a/b"));
}

#[test]
fn a_transient_parent_stays_when_it_gets_an_own_folder_child() {
    let workspace = Workspace::new();
    let parent = workspace.json("start_session", json!({}));
    let child = json!({"workflow_id": "mini", "planning_slug": "c", "parent_planning_slug": parent["planning_slug"]});
    workspace.call("start_session", child);
    let session = workspace.session(parent["session_index"].as_str().unwrap());
    assert_eq!(session.triggered_workflows.len(), 1);
}

#[test]
fn a_resume_adds_a_missing_link_and_keeps_the_snapshot() {
    let workspace = Workspace::new();
    let (parent, child) = pair(&workspace);
    let snapshot = workspace.session(&child).parent_session;
    workspace.change(&parent, |session| {
        session.triggered_workflows.clear();
        session.history.truncate(2);
    });
    let reply = workspace.call("start_session", json!({"planning_slug": "child", "parent_planning_slug": "parent"}));
    assert!(reply.warnings.is_empty());
    assert_eq!(workspace.session(&parent).triggered_workflows[0].session_index, child);
    assert_eq!(workspace.session(&child).parent_session, snapshot);
    let seq = workspace.session(&parent).seq;
    workspace.call("start_session", json!({"planning_slug": "child"}));
    assert_eq!(workspace.session(&parent).seq, seq);
}

/// A start that was interrupted between child and parent is repeated: the link is completed.
#[test]
fn a_repeated_start_completes_the_link() {
    let workspace = Workspace::new();
    let (parent, child) = pair(&workspace);
    workspace.change(&parent, |session| session.triggered_workflows.clear());
    let answer = workspace.json(
        "start_session",
        json!({"agent_id": "orc", "workflow_id": "mini", "planning_slug": "child", "parent_planning_slug": "parent"}),
    );
    assert_eq!((&answer["already_done"], &answer["resumed"]), (&json!(true), &json!(false)));
    assert_eq!(workspace.session(&parent).triggered_workflows[0].session_index, child);
}

#[track_caller]
fn check_link_warning(slug: &str, named: &str, code: &str) {
    let workspace = Workspace::new();
    let (parent, child) = pair(&workspace);
    started(&workspace, "other");
    let reply = workspace.call("start_session", json!({"planning_slug": slug, "parent_planning_slug": named}));
    assert_eq!(Workspace::codes(&reply), [code]);
    assert!(workspace.session(&child).triggered_workflows.is_empty());
    assert_eq!(workspace.session(&parent).triggered_workflows.len(), 1);
}

#[test]
fn a_resume_with_an_unknown_or_other_parent_only_warns() {
    check_link_warning("other", "nobody", "W_PARENT_NOT_FOUND");
    check_link_warning("child", "other", "W_PARENT_LINK");
    check_link_warning("parent", "child", "W_PARENT_LINK");
}

#[test]
fn a_parent_can_be_named_later() {
    let workspace = Workspace::new();
    let (parent, _) = pair(&workspace);
    let other = started(&workspace, "other");
    let reply = workspace.call("start_session", json!({"planning_slug": "other", "parent_planning_slug": "parent"}));
    assert!(reply.warnings.is_empty());
    assert_eq!(workspace.session(&parent).triggered_workflows[1].session_index, other);
    assert!(workspace.session(&other).parent_session.is_none(), "the snapshot is kept as recorded");
}

/// A parent learns at its next opening what an interrupted call did not tell it.
#[test]
fn hazard_h11_a_reopened_parent_takes_its_references_from_the_children() {
    let workspace = Workspace::new();
    let (parent, child) = pair(&workspace);
    workspace.change(&child, |session| session.status = Status::Completed);
    workspace.call("start_session", json!({"planning_slug": "parent"}));
    let after = workspace.session(&parent);
    let reference = &after.triggered_workflows[0];
    assert_eq!(reference.status, "completed");
    assert!(reference.completed_at.is_some());
    assert_eq!(after.history.last().unwrap().kind(), "workflow_returned");

    workspace.change(&parent, |session| session.triggered_workflows.clear());
    workspace.call("start_session", json!({"planning_slug": "parent", "agent_id": "again"}));
    let reference = &workspace.session(&parent).triggered_workflows[0];
    assert_eq!((reference.session_index.as_str(), reference.status.as_str()), (child.as_str(), "completed"));
}

#[test]
fn more_than_five_ancestors_warn_and_more_than_32_are_refused() {
    let workspace = Workspace::new();
    workspace.call("start_session", json!({"planning_slug": "s0"}));
    for depth in 1..=32 {
        let arguments =
            json!({"planning_slug": format!("s{depth}"), "parent_planning_slug": format!("s{}", depth - 1)});
        let codes = Workspace::codes(&workspace.call("start_session", arguments));
        let expected: &[&str] = if depth > 5 { &["W_DEPTH"] } else { &[] };
        assert_eq!(codes, expected, "{depth}");
    }
    let refusal = workspace.refusal("start_session", json!({"planning_slug": "s33", "parent_planning_slug": "s32"}));
    assert_eq!((refusal.code, &refusal.details["depth"]), ("DEPTH_LIMIT", &json!(33)));
}

#[test]
fn rebinding_while_a_checkpoint_waits_warns() {
    let workspace = Workspace::new();
    let index = started(&workspace, "a");
    workspace.call("next_activity", json!({"session_index": index, "activity_id": "plan"}));
    workspace.call("yield_checkpoint", json!({"session_index": index, "checkpoint_id": "confirm"}));
    let reply = workspace.call("start_session", json!({"planning_slug": "a", "agent_id": "new"}));
    assert_eq!(Workspace::codes(&reply), ["W_AGENT_REBOUND"]);
    assert!(workspace.session(&index).active_checkpoint.is_some());
}

/// Told when the session begins, when it is resumed, when a child is dispatched, and when the activity is asked for.
#[test]
fn an_activity_that_does_not_load_is_told_with_what_to_do() {
    let workspace = Workspace::over(&[
        ("torn/workflow.yaml", "id: torn\nversion: 1.0.0\ntitle: Torn\ninitialActivity: one\n"),
        ("torn/activities/01-one.yaml", "id: one\nversion: 1.0.0\nname: One\nsteps:\n  - kind: acton\n    id: s\n"),
        ("torn/activities/02-two.yaml", "id: two\nversion: 1.0.0\nname: Two\nsteps:\n  - kind: action\n    id: s\n"),
    ]);
    let arguments = json!({"workflow_id": "torn", "planning_slug": "a"});
    let reply = workspace.call("start_session", arguments.clone());
    let index = workspace.json("start_session", arguments)["session_index"].clone();
    let resume = workspace.call("start_session", json!({"planning_slug": "a", "agent_id": "another"}));
    let child = workspace.call("dispatch_child", json!({"session_index": index, "workflow_id": "torn"}));
    for reply in [reply, resume, child] {
        assert_eq!(Workspace::codes(&reply), ["W_ACTIVITY_UNLOADED"]);
        let message = &reply.warnings[0].message;
        for part in
            ["`one`, with which the workflow begins,", "torn/activities/01-one.yaml", "line 5", "acton", "`action`"]
        {
            assert!(message.contains(part), "{part}: {message}");
        }
    }
    let refusal = workspace.refusal("next_activity", json!({"session_index": index, "activity_id": "one"}));
    assert_eq!(refusal.code, "ACTIVITY_NOT_FOUND");
    for part in ["torn/activities/01-one.yaml", "line 5", "acton", "`action`", "two"] {
        assert!(refusal.text().contains(part), "{part}: {}", refusal.text());
    }
}

#[test]
fn errors_that_leave_every_activity_in_place_are_told_too() {
    let workspace = Workspace::over(&[
        ("bent/workflow.yaml", "id: bent\nversion: 1.0.0\ntitle: Bent\ninitialActivity: one\n"),
        (
            "bent/activities/01-one.yaml",
            "id: one\nversion: 1.0.0\nname: One\nsteps:\n  - kind: action\n    id: s\ntransitions:\n  - to: tow\n",
        ),
    ]);
    let reply = workspace.call("start_session", json!({"workflow_id": "bent", "planning_slug": "a"}));
    assert_eq!(Workspace::codes(&reply), ["W_DEFINITION_ERRORS"]);
    let message = &reply.warnings[0].message;
    for part in ["bent/activities/01-one.yaml:8:", "`tow`", "workflow-server show bent"] {
        assert!(message.contains(part), "{part}: {message}");
    }
}

#[test]
fn errors_in_techniques_are_told_and_many_errors_shortly() {
    let workspace = Workspace::over(&[
        ("lame/workflow.yaml", "id: lame\nversion: 1.0.0\ntitle: Lame\ninitialActivity: one\n"),
        (
            "lame/activities/01-one.yaml",
            "id: one\nversion: 1.0.0\nname: One\nsteps: [{ kind: technique, id: s, technique: nope }]\n",
        ),
    ]);
    let reply = workspace.call("start_session", json!({"workflow_id": "lame", "planning_slug": "a"}));
    assert_eq!(Workspace::codes(&reply), ["W_DEFINITION_ERRORS"]);
    assert!(reply.warnings[0].message.contains("`nope`"), "{:?}", reply.warnings);

    let mut files = vec![("many/workflow.yaml".to_owned(), "id: many\nversion: 1.0.0\ntitle: Many\n".to_owned())];
    files.extend((10..60).map(|number| (format!("many/activities/{number}-x{number}.yaml"), "id: x\n".to_owned())));
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let files: &'static [(&'static str, &'static str)] = Vec::leak(
        files
            .into_iter()
            .map(|(path, text)| (&*String::leak(path.to_owned()), &*String::leak(text.to_owned())))
            .collect(),
    );
    let workspace = Workspace::over(files);
    let reply = workspace.call("start_session", json!({"workflow_id": "many", "planning_slug": "a"}));
    let told = reply.warnings.iter().filter(|warning| warning.code == "W_ACTIVITY_UNLOADED").count();
    assert_eq!(told, 6, "{:#?}", reply.warnings);
    assert!(reply.warnings[5].message.starts_with("45 more"), "{:?}", reply.warnings[5]);
}

#[test]
fn a_session_that_is_over_is_said_to_be() {
    let workspace = Workspace::new();
    let index = started(&workspace, "a");
    let resumed = || workspace.json("start_session", json!({"planning_slug": "a", "agent_id": "b"}));
    assert!(!resumed().contains_key("next"));
    workspace.call("next_activity", json!({"session_index": index, "activity_id": "__terminal__"}));
    let next = resumed()["next"].as_str().unwrap().to_owned();
    assert!(next.contains("over (completed)") && next.contains("planning_slug"), "{next}");
}
