use serde_json::{Value, json};

use super::{TOKEN_LIMIT, kept, mint, open, parse_reference, payload_parts, segment_start, sign};
use crate::{
    TraceSlice,
    workspace::{KeySigner, Workspace},
};

/// Starts a session of a workflow and answers its index.
fn started(workspace: &Workspace, workflow: &str, slug: &str) -> String {
    let answer = workspace.json("start_session", json!({"workflow_id": workflow, "planning_slug": slug}));
    answer["session_index"].as_str().expect("an index").to_owned()
}

fn names(events: &Value) -> Vec<&str> {
    events.as_array().unwrap().iter().map(|event| event["name"].as_str().unwrap()).collect()
}

fn events(workspace: &Workspace, index: &str) -> Vec<Value> {
    workspace.traces.0.borrow().get(index).map(|slice| slice.events.clone()).unwrap_or_default()
}

#[test]
fn a_token_is_signed_text() {
    let payload =
        json!({"sid": "ABCDE2", "act": "plan", "from": 0, "to": 0, "n": 0, "t0": 0, "t1": 0, "ts": 1, "events": []});
    let token = sign(&KeySigner, &payload);
    assert_eq!(
        token,
        "eyJzaWQiOiJBQkNERTIiLCJhY3QiOiJwbGFuIiwiZnJvbSI6MCwidG8iOjAsIm4iOjAsInQwIjowLCJ0MSI6MCwidHMiOjEsImV2ZW50cyI6W119.\
         9a004acbcd7563f88979ab2c52dba7122402f44e4c7200bfbfe9181adc4c7c7c"
    );
    assert_eq!(open(&KeySigner, &token), Ok(payload));
}

#[track_caller]
fn check_token_error(token: &str, kind: &str) {
    let workspace = Workspace::new();
    let index = started(&workspace, "mini", "a");
    let answer = workspace.json("get_trace", json!({"session_index": index, "trace_tokens": [token]}));
    assert_eq!((&answer["event_count"], &answer["source"]), (&json!(0), &json!("tokens")));
    let error = answer["token_errors"][0].as_str().unwrap();
    assert!(error.contains(&format!("TRACE_TOKEN_{kind}:")), "{error}");
    assert!(error.contains("Omit trace_tokens"), "{error}");
}

#[test]
fn a_bad_token_is_named_and_never_fatal() {
    check_token_error("junk", "MALFORMED");
    check_token_error("", "MALFORMED");
    check_token_error("e30.00", "SIGNATURE");
    check_token_error(&sign(&KeySigner, &json!({})), "PAYLOAD");
    check_token_error(&sign(&KeySigner, &json!([])), "PAYLOAD");
    check_token_error("AAAAAA:0-1", "FOREIGN");
    check_token_error("AAAAAA:2-1", "MALFORMED");
    let foreign =
        json!({"sid": "ABCDE2", "act": "", "from": 0, "to": 0, "n": 0, "t0": 0, "t1": 0, "ts": 1, "events": [{}]});
    check_token_error(&sign(&KeySigner, &foreign), "FOREIGN");
}

#[test]
fn a_token_larger_than_a_mebibyte_is_not_read() {
    let workspace = Workspace::new();
    let index = started(&workspace, "mini", "a");
    let workset = workspace.with_env(|env| env.registry.find(&index)).unwrap();
    let error = workspace.with_env(|env| super::resolve(env, &workset, &"x".repeat((1 << 20) + 1))).unwrap_err();
    assert!(error.starts_with("TRACE_TOKEN_TOO_LARGE:"), "{error}");
}

/// The token of the first transition holds only `start_session`, that of the second begins with the first transition.
#[test]
fn trap_03_14_27_a_token_lags_by_one() {
    let workspace = Workspace::new();
    let index = started(&workspace, "mini", "a");
    let first = workspace.call("next_activity", json!({"session_index": index, "activity_id": "plan"}));
    let second = workspace.call("next_activity", json!({"session_index": index, "activity_id": "ship"}));
    for (reply, expected) in [(first, ["start_session"]), (second, ["next_activity"])] {
        let token = reply.meta["trace_token"].clone();
        let answer = workspace.json("get_trace", json!({"session_index": index, "trace_tokens": [token]}));
        assert_eq!(names(&answer["events"]), expected);
        let crate::Content::Json(members) = &reply.content else { panic!("no JSON") };
        let by_reference =
            workspace.json("get_trace", json!({"session_index": index, "trace_tokens": [members["trace_ref"]]}));
        assert_eq!(by_reference["events"], answer["events"]);
    }
}

/// An empty segment has its token, with `n` 0.
#[test]
fn trap_03_14_27_an_empty_segment_has_a_token() {
    let workspace = Workspace::new();
    let index = started(&workspace, "mini", "a");
    workspace.traces.0.borrow_mut().clear();
    let reply = workspace.call("next_activity", json!({"session_index": index, "activity_id": "plan"}));
    let payload = open(&KeySigner, reply.meta["trace_token"].as_str().unwrap()).unwrap();
    assert_eq!((&payload["n"], &payload["act"], &payload["events"]), (&json!(0), &json!("plan"), &json!([])));
}

#[test]
fn trap_03_14_28_an_event_names_the_activity_after_the_call() {
    let workspace = Workspace::new();
    let index = started(&workspace, "mini", "a");
    workspace.call("next_activity", json!({"session_index": index, "activity_id": "plan"}));
    let events = events(&workspace, &index);
    let members: Vec<&str> = events[1].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(members, ["traceId", "spanId", "name", "ts", "ms", "s", "wf", "act", "aid"]);
    assert_eq!(
        (&events[1]["name"], &events[1]["act"], &events[1]["ms"]),
        (&json!("next_activity"), &json!("plan"), &json!(7))
    );
    assert_eq!((&events[0]["act"], &events[0]["ms"], &events[0]["wf"]), (&json!(""), &json!(0), &json!("mini")));
}

#[test]
fn events_say_who_called_and_how_it_ended() {
    let workspace = Workspace::new();
    let index = started(&workspace, "mini", "a");
    workspace.refusal("next_activity", json!({"session_index": index, "activity_id": "none", "agent_id": "w1"}));
    workspace.refusal("next_activity", json!({"session_index": index}));
    workspace.call("get_workflow_status", json!({"session_index": index}));
    workspace.call("get_trace", json!({"session_index": index}));
    let reply = workspace.call("next_activity", json!({"session_index": index, "activity_id": "ship"}));
    let events = events(&workspace, &index);
    assert_eq!(events.len(), 3, "argument errors and reading calls leave no event");
    assert_eq!((&events[1]["s"], &events[1]["aid"]), (&json!("error"), &json!("w1")));
    assert!(events[1]["err"].as_str().unwrap().starts_with("ACTIVITY_NOT_FOUND"));
    let warnings: Vec<&str> = reply.warnings.iter().map(|warning| warning.message.as_str()).collect();
    assert_eq!(events[2]["vw"], json!(warnings));
}

/// `dispatch_child` names the child's agent; the parent's event belongs to the parent's.
#[test]
fn a_dispatch_is_attributed_to_the_parent() {
    let workspace = Workspace::new();
    let parent = started(&workspace, "mini", "a");
    let arguments = json!({"session_index": parent, "workflow_id": "bare", "agent_id": "child-agent"});
    let child = workspace.json("dispatch_child", arguments)["session_index"].clone();
    let event = events(&workspace, &parent)[1].clone();
    assert_eq!((&event["aid"], &event["csid"], &event["cwf"]), (&json!("orchestrator"), &child, &json!("bare")));
    workspace.call("next_activity", json!({"session_index": child, "activity_id": "only"}));
    let event = events(&workspace, child.as_str().unwrap())[0].clone();
    assert_eq!((&event["psid"], &event["pdepth"]), (&json!(parent), &json!(1)));
}

#[test]
fn a_promotion_is_traced_under_the_kept_index() {
    let workspace = Workspace::new();
    let parent = workspace.json("start_session", json!({}))["session_index"].clone();
    workspace.call("dispatch_child", json!({"session_index": parent, "workflow_id": "mini"}));
    assert_eq!(events(&workspace, parent.as_str().unwrap())[1]["name"], "dispatch_child");
}

#[test]
fn a_repetition_leaves_no_event() {
    let workspace = Workspace::new();
    let index = started(&workspace, "mini", "a");
    for _ in 0..2 {
        workspace.call("next_activity", json!({"session_index": index, "activity_id": "plan"}));
    }
    assert_eq!(events(&workspace, &index).len(), 2);
}

/// A valid token of another session is refused, one of a relative is not.
#[test]
fn hazard_h16_a_trace_is_shown_to_relatives_only() {
    let workspace = Workspace::new();
    let (own, other) = (started(&workspace, "mini", "a"), started(&workspace, "mini", "b"));
    let token = |index: &Value| {
        workspace.call("next_activity", json!({"session_index": index, "activity_id": "plan"})).meta["trace_token"]
            .clone()
    };
    let foreign = token(&json!(other));
    let child =
        workspace.json("dispatch_child", json!({"session_index": own, "workflow_id": "mini"}))["session_index"].clone();
    let related = token(&child);
    let answer = workspace.json("get_trace", json!({"session_index": own, "trace_tokens": [foreign, related]}));
    assert_eq!(answer["token_errors"].as_array().unwrap().len(), 1);
    assert!(answer["token_errors"][0].as_str().unwrap().starts_with("trace_tokens[0]: TRACE_TOKEN_FOREIGN"));
    assert_eq!(answer["source"], "tokens");
    let reference = format!("{other}:0-2");
    let answer = workspace.json("get_trace", json!({"session_index": own, "trace_tokens": [reference]}));
    assert!(answer["token_errors"][0].as_str().unwrap().contains("TRACE_TOKEN_FOREIGN"));
}

#[test]
fn the_own_trace_is_filtered_and_has_no_double_events() {
    let workspace = Workspace::new();
    let index = started(&workspace, "mini", "a");
    let reply =
        workspace.call("next_activity", json!({"session_index": index, "activity_id": "plan", "agent_id": "w1"}));
    let all = workspace.json("get_trace", json!({"session_index": index, "trace_tokens": []}));
    let members: Vec<&str> = all.keys().map(String::as_str).collect();
    assert_eq!(members, ["traceId", "source", "tracing_enabled", "event_count", "events", "session_index"]);
    assert_eq!((&all["source"], &all["event_count"]), (&json!("memory"), &json!(2)));
    let mine = workspace.json("get_trace", json!({"session_index": index, "agent_id": "w1"}));
    assert_eq!(names(&mine["events"]), ["next_activity"]);
    let token = reply.meta["trace_token"].clone();
    let twice = workspace.json("get_trace", json!({"session_index": index, "trace_tokens": [token, token]}));
    assert_eq!(twice["event_count"], 1);
    assert_eq!(workspace.session(&index).seq, 4, "each call counts");
}

#[test]
fn an_open_checkpoint_closes_the_trace() {
    let workspace = Workspace::new();
    let index = started(&workspace, "mini", "a");
    workspace.call("next_activity", json!({"session_index": index, "activity_id": "plan"}));
    workspace.call("yield_checkpoint", json!({"session_index": index, "checkpoint_id": "confirm"}));
    assert_eq!(workspace.refusal("get_trace", json!({"session_index": index})).code, "CHECKPOINT_ACTIVE");
}

#[test]
fn a_segment_begins_at_the_newest_transition() {
    let event = |name: &str, s: &str| json!({"name": name, "s": s});
    let slice = |dropped: u64, events: Vec<Value>| TraceSlice { dropped, events };
    let ok = || event("next_activity", "ok");
    for (slice, expected) in [
        (slice(0, vec![]), 0),
        (slice(0, vec![event("start_session", "ok")]), 0),
        (slice(0, vec![event("start_session", "ok"), ok(), event("get_activity", "ok")]), 1),
        (slice(0, vec![ok(), event("next_activity", "error")]), 0),
        (slice(40, vec![Value::Null, ok()]), 41),
        (slice(40, vec![event("get_activity", "ok")]), 40),
    ] {
        assert_eq!(segment_start(&slice), expected);
    }
}

/// A segment that is too large for one token is spread over several, in order and without loss.
#[test]
fn a_large_segment_is_split() {
    let workspace = Workspace::new();
    let index = started(&workspace, "mini", "a");
    for n in 0..30 {
        let event =
            json!({"spanId": n.to_string(), "name": "get_resource", "s": "ok", "ts": n, "err": "e".repeat(20_000)});
        workspace.traces.0.borrow_mut().get_mut(&index).unwrap().events.push(event);
    }
    let tokens = workspace.with_env(|env| mint(env, &index, "plan"));
    assert_eq!(tokens.reference, format!("{index}:0-31"));
    let meta = tokens.clone().meta();
    assert!(meta.contains_key("trace_token") && meta.contains_key("trace_tokens_more"));
    let mut next = 0;
    for token in std::iter::once(&tokens.first).chain(&tokens.more) {
        assert!(token.len() <= TOKEN_LIMIT, "{}", token.len());
        let payload = open(&KeySigner, token).unwrap();
        assert_eq!(payload["from"], next);
        next = payload["to"].as_u64().unwrap();
        assert_eq!(payload["n"], payload["events"].as_array().unwrap().len());
    }
    assert_eq!((next, tokens.more.len()), (31, 3));
    let mut sent = vec![json!(tokens.first)];
    sent.extend(tokens.more.iter().map(|token| json!(token)));
    let workset = workspace.with_env(|env| env.registry.find(&index)).unwrap();
    let found: usize = workspace.with_env(|env| {
        sent.iter().map(|token| super::resolve(env, &workset, token.as_str().unwrap()).unwrap().len()).sum()
    });
    assert_eq!(found, 31);
}

#[test]
fn unreadable_lines_keep_their_number() {
    let slice = TraceSlice { dropped: 2, events: vec![json!({"a": 1}), Value::Null, json!({"a": 2})] };
    assert_eq!(kept(&slice, 1), None);
    assert_eq!(kept(&slice, 3), None);
    assert_eq!(kept(&slice, 4), Some(&json!({"a": 2})));
    assert_eq!(kept(&slice, 5), None);
}

#[test]
fn references_are_an_index_and_a_range() {
    for (text, expected) in [
        ("NU7LON:3-17", Some(("NU7LON", 3, 17))),
        ("NU7LON:0-0", Some(("NU7LON", 0, 0))),
        ("NU7LON:3-2", None),
        ("nu7lon:3-4", None),
        ("NU7LON:+3-4", None),
        ("NU7LON:3", None),
        ("NU7LON:3-99999999999999999999", None),
    ] {
        assert_eq!(parse_reference(text), expected, "{text}");
    }
    assert_eq!(payload_parts(json!({"sid": 1})), None);
}
