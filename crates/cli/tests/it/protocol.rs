//! The protocol on the pipe: revisions, lists, and what is answered to what cannot be read.

use serde_json::{Value, json};

use crate::sandbox;

/// Revisions that begin with `initialize`.
const REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// The revision that begins with anything.
const INLINE: &str = "2026-07-28";

/// All tools, in the order of spec 04 §7.
const TOOLS: [&str; 18] = [
    "discover",
    "list_workflows",
    "health_check",
    "start_session",
    "dispatch_child",
    "get_workflow",
    "next_activity",
    "get_activity",
    "yield_checkpoint",
    "present_checkpoint",
    "respond_checkpoint",
    "resume_checkpoint",
    "get_technique",
    "get_resource",
    "record_usage",
    "get_trace",
    "get_workflow_status",
    "inspect_session",
];

#[test]
fn every_revision_is_spoken() {
    let sandbox = sandbox();
    for (asked, answered) in REVISIONS
        .iter()
        .map(|revision| (*revision, *revision))
        .chain([("2099-01-01", "2025-11-25"), (INLINE, "2025-11-25")])
    {
        let mut client = sandbox.start();
        let result = client.initialize(asked);
        assert_eq!(result["protocolVersion"], answered, "{asked}");
        assert_eq!(result["serverInfo"]["name"], "workflow-server");
        assert_eq!(result["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
        let instructions = result["instructions"].as_str().unwrap();
        assert!(instructions.contains("`discover`") && instructions.contains("`session_index`"), "{instructions}");
        for capability in ["tools", "resources", "prompts"] {
            assert!(result["capabilities"][capability].is_object(), "{capability}");
        }
        assert_eq!(client.request("ping", json!({})).result(), json!({}));
        let health = client.call("health_check", json!({})).json();
        assert_eq!(health["status"], "healthy", "{health}");
    }
}

#[test]
fn the_newest_revision_needs_no_handshake() {
    let sandbox = sandbox();
    let mut client = sandbox.start();
    client.inline(INLINE);
    let found = client.request("server/discover", json!({})).result();
    let versions = found["supportedVersions"].as_array().unwrap_or_else(|| panic!("{found}"));
    assert!(versions.contains(&INLINE.into()), "{found}");
    assert!(found["instructions"].as_str().unwrap().contains("`discover`"));
    let listed = client.request("tools/list", json!({})).result();
    assert_eq!(listed["tools"].as_array().unwrap().len(), 18);
    assert_eq!(listed["resultType"], "complete");
    assert!(!client.call("list_workflows", json!({})).is_error);

    let mut direct = sandbox.start();
    direct.inline(INLINE);
    let answer = direct.request("tools/call", json!({"name": "health_check", "arguments": {}})).result();
    assert_eq!(answer["isError"], false);
}

#[test]
fn discover_may_come_before_initialize() {
    let sandbox = sandbox();
    let mut client = sandbox.start();
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": INLINE,
        "io.modelcontextprotocol/clientCapabilities": {}
    });
    assert!(client.request("server/discover", json!({"_meta": meta})).result()["supportedVersions"].is_array());
    assert_eq!(client.initialize("2025-06-18")["protocolVersion"], "2025-06-18");
    assert!(!client.call("discover", json!({})).is_error);
}

#[test]
fn tools_are_listed_with_titles_annotations_and_flat_schemas() {
    let sandbox = sandbox();
    let listed = sandbox.connect().request("tools/list", json!({})).result();
    let tools = listed["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, TOOLS);
    for tool in tools {
        let name = &tool["name"];
        assert!(tool["title"].as_str().is_some_and(|title| !title.is_empty()), "{name}");
        assert!(tool["description"].as_str().unwrap().encode_utf16().count() <= 1500, "{name}");
        assert_eq!(tool["annotations"]["destructiveHint"], false, "{name}");
        assert_eq!(tool["annotations"]["openWorldHint"], false, "{name}");
        assert!(tool["annotations"]["readOnlyHint"].is_boolean(), "{name}");
        assert!(tool["annotations"]["idempotentHint"].is_boolean(), "{name}");
        assert!(tool.get("outputSchema").is_none(), "{name}");
        assert_eq!(tool["inputSchema"]["type"], "object", "{name}");
        for union in ["anyOf", "oneOf", "allOf"] {
            assert!(tool["inputSchema"].get(union).is_none(), "{name}: {union} at the root");
        }
    }
    let annotation = |name: &str, hint: &str| {
        tools.iter().find(|tool| tool["name"] == name).unwrap()["annotations"][hint].as_bool().unwrap()
    };
    for name in
        ["discover", "list_workflows", "health_check", "get_workflow_status", "inspect_session", "present_checkpoint"]
    {
        assert!(annotation(name, "readOnlyHint") && annotation(name, "idempotentHint"), "{name}");
    }
    for name in [
        "get_workflow",
        "get_activity",
        "get_technique",
        "get_resource",
        "get_trace",
        "yield_checkpoint",
        "resume_checkpoint",
    ] {
        assert!(!annotation(name, "readOnlyHint") && annotation(name, "idempotentHint"), "{name}");
    }
    for name in ["start_session", "dispatch_child", "next_activity", "respond_checkpoint", "record_usage"] {
        assert!(!annotation(name, "readOnlyHint") && !annotation(name, "idempotentHint"), "{name}");
    }
}

#[test]
fn resources_are_listed_and_read() {
    let sandbox = sandbox();
    let mut client = sandbox.connect();
    let listed = client.request("resources/list", json!({})).result();
    let uris: Vec<&str> = listed["resources"].as_array().unwrap().iter().map(|r| r["uri"].as_str().unwrap()).collect();
    let schemas = ["workflow", "activity", "condition", "technique", "state"];
    let six: Vec<String> = schemas
        .iter()
        .map(|id| format!("workflow-server://schemas/{id}"))
        .chain(["workflow-server://schemas".to_owned()])
        .collect();
    assert_eq!(uris[..6], six.iter().map(String::as_str).collect::<Vec<_>>());
    let templates = client.request("resources/templates/list", json!({})).result();
    assert_eq!(templates["resourceTemplates"].as_array().unwrap().len(), 4);
    let mut read = |uri: &str| {
        let result = client.request("resources/read", json!({"uri": uri})).result();
        result["contents"][0]["text"].as_str().unwrap().to_owned()
    };
    for uri in &uris {
        assert!(serde_json::from_str::<Value>(&read(uri)).is_ok(), "{uri}");
    }
    let all: Value = serde_json::from_str(&read("workflow-server://schemas")).unwrap();
    assert_eq!(all.as_object().unwrap().keys().collect::<Vec<_>>(), schemas);
    assert!(read("workflow-server://workflows/mini").contains("initialActivity: plan"));
    assert!(read("workflow-server://workflows/mini/activities/plan").contains("id: confirm"));
    assert!(read("workflow-server://workflows/mini/techniques/greet").contains("capability: Says hello."));
    assert!(read("workflow-server://workflows/mini/resources/notes").contains("Friendly."));
    for uri in [
        "workflow-server://nothing",
        "workflow-server://workflows/none",
        "workflow-server://workflows/mini/resources/..%2F..%2Fsecret",
        "file:///etc/passwd",
    ] {
        let error = client.request("resources/read", json!({"uri": uri})).error();
        assert_eq!(error["code"], -32002, "{error}");
        assert!(error["message"].as_str().unwrap().contains("not found"), "{error}");
    }
    client.inline(INLINE);
    let error = client.request("resources/read", json!({"uri": "workflow-server://nothing"})).error();
    assert_eq!(error["code"], -32602, "{error}");
}

#[test]
fn sessions_are_a_resource() {
    let sandbox = sandbox();
    let mut client = sandbox.connect();
    client.call("start_session", json!({"workflow_id": "mini", "planning_slug": "2026-07-13-alpha"})).ok();
    let result = client.request("resources/read", json!({"uri": "workflow-server://sessions"})).result();
    let text = result["contents"][0]["text"].as_str().unwrap();
    assert!(text.contains("2026-07-13-alpha") && text.contains("mini"), "{text}");
}

#[test]
fn every_workflow_is_a_prompt() {
    let sandbox = sandbox();
    let mut client = sandbox.connect();
    let listed = client.request("prompts/list", json!({})).result();
    let names: Vec<&str> = listed["prompts"].as_array().unwrap().iter().map(|p| p["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["child", "mini"]);
    let arguments = json!({"planning_slug": "2026-07-13-alpha", "user_request": "Do it."});
    let prompt = client.request("prompts/get", json!({"name": "mini", "arguments": arguments})).result();
    let text = prompt["messages"][0]["content"]["text"].as_str().unwrap();
    for part in ["`mini`", "`discover`", "2026-07-13-alpha", "Do it."] {
        assert!(text.contains(part), "{text}");
    }
    let error = client.request("prompts/get", json!({"name": "none"})).error();
    assert_eq!(error["code"], -32602);
}

#[test]
fn what_is_no_message_is_answered() {
    let sandbox = sandbox();
    let mut client = sandbox.connect();
    let mut check = |line: &[u8], code: i64, id: Value| {
        client.send_raw(line);
        let answer = client.receive();
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{answer}");
    };
    check(b"{nope\n", -32700, Value::Null);
    check(b"\n  \n\r\n\xff\n", -32700, Value::Null);
    check(b"{\"jsonrpc\":\"2.0\",\"id\":1\n", -32700, Value::Null);
    check(b"5\n", -32600, Value::Null);
    check(b"[]\n", -32600, Value::Null);
    check(b"{\"jsonrpc\":\"2.0\",\"id\":91,\"method\":\"no/such\"}\n", -32601, json!(91));
    check(b"{\"jsonrpc\":\"2.0\",\"id\":92,\"method\":\"tools/call\",\"params\":{\"name\":5}}\n", -32602, json!(92));
    check(b"{\"jsonrpc\":\"2.0\",\"id\":93,\"method\":\"prompts/get\",\"params\":{}}\n", -32602, json!(93));
    let mut long = vec![b'x'; 17 * 1024 * 1024];
    long.push(b'\n');
    check(&long, -32600, Value::Null);
    let deep = format!("{}{}\n", "[".repeat(2000), "]".repeat(2000));
    check(deep.as_bytes(), -32600, Value::Null);
    let incomplete = br#"{"jsonrpc":"2.0","id":94,"method":"initialize","params":{"protocolVersion":5}}"#;
    check(&[incomplete.as_slice(), b"\n"].concat(), -32602, json!(94));
    assert_eq!(client.request("ping", json!({})).result(), json!({}));
}

#[test]
fn answers_and_notifications_are_not_answered() {
    let sandbox = sandbox();
    let mut client = sandbox.connect();
    for line in [
        r#"{"jsonrpc":"2.0","id":90,"result":{},"error":{}}"#,
        r#"{"jsonrpc":"2.0","id":90,"error":{}}"#,
        r#"{"jsonrpc":"2.0","id":90,"result":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":5}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[]}}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"health_check"}}"#,
    ] {
        client.send_raw(line.as_bytes());
        client.send_raw(b"\n");
    }
    assert_eq!(client.request("ping", json!({})).result(), json!({}));
    let (status, _, rest) = client.finish();
    assert!(status.success() && rest.is_empty(), "{rest:?}");
}

#[test]
fn a_call_that_is_too_large_to_be_read_is_answered_as_one() {
    let sandbox = sandbox();
    let mut client = sandbox.connect();
    let deep = format!("{}{}", "[".repeat(2000), "]".repeat(2000));
    let long = format!("\"{}\"", "x".repeat(17 * 1024 * 1024));
    for (id, value) in [(95, deep), (96, long)] {
        // The id last, as some clients write it.
        let line = format!(
            "{{\"method\":\"tools/call\",\"params\":{{\"name\":\"start_session\",\"arguments\":{{\"user_request\":{value}}}}},\
             \"jsonrpc\":\"2.0\",\"id\":{id}}}\n"
        );
        client.send_raw(line.as_bytes());
        let answer = client.answer(id).result();
        assert_eq!(answer["isError"], true);
        assert_eq!(answer["_meta"]["error"]["code"], "PARAM_TOO_LARGE");
    }
}

#[test]
fn values_that_no_text_or_number_can_hold_are_refused_by_name() {
    let sandbox = sandbox();
    let mut client = sandbox.connect();
    for value in ["\"\\ud800\"", "1e999"] {
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":50,\"method\":\"tools/call\",\"params\":{{\"name\":\"next_activity\",\
             \"arguments\":{{\"variables_changed\":{{\"a\":{value}}}}}}}}}\n"
        );
        client.send_raw(line.as_bytes());
        let answer = client.answer(50).result();
        assert_eq!(answer["isError"], true);
        let text = answer["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("VALUE_NOT_JSON: `variables_changed.a`"), "{text}");
        assert_eq!(answer["_meta"]["error"]["code"], "VALUE_NOT_JSON");
    }
}

#[test]
fn a_batch_is_answered_together() {
    let sandbox = sandbox();
    let mut client = sandbox.connect();
    let ping = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    client.send(&json!([ping(201), note, ping(202), 7]));
    let answer = client.receive();
    let mut ids: Vec<String> = answer.as_array().unwrap().iter().map(|one| one["id"].to_string()).collect();
    ids.sort();
    assert_eq!(ids, ["201", "202", "null"], "{answer}");
    client.send(&json!([note]));
    assert_eq!(client.request("ping", json!({})).result(), json!({}));
}

#[test]
fn arguments_are_answered_as_tool_results() {
    let sandbox = sandbox();
    let mut client = sandbox.connect();
    let call = |client: &mut testkit::Client, parameters: Value| {
        let result = client.request("tools/call", parameters).result();
        assert_eq!(result["isError"], true, "{result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    };
    let text = call(&mut client, json!({"name": "nothing", "arguments": {}}));
    assert!(text.starts_with("UNKNOWN_TOOL: MCP error -32602: Tool nothing not found"), "{text}");
    let text = call(&mut client, json!({"name": "get_workflow_state", "arguments": {}}));
    assert!(text.contains("did you mean get_workflow_status?"), "{text}");
    let text = call(&mut client, json!({"name": "get_activity", "arguments": [1]}));
    assert!(text.starts_with(
        "INVALID_PARAMS: MCP error -32602: Input validation error: Invalid arguments for tool get_activity: "
    ));
    let text = call(&mut client, json!({"name": "get_activity", "arguments": {"session_index": "ABCDE2"}}));
    assert!(text.contains("`context_tokens` is required"), "{text}");
    let text = call(&mut client, json!({"name": "get_workflow_status", "arguments": {"session_token": "x"}}));
    assert!(text.contains("session_index"), "{text}");
    let deep = (0..490).fold(json!(1), |inner, _| json!([inner]));
    let arguments = json!({"session_index": "ABCDE2", "activity_id": "plan", "variables_changed": {"deep": deep}});
    let text = call(&mut client, json!({"name": "next_activity", "arguments": arguments}));
    assert!(text.starts_with("PARAM_TOO_LARGE: ") && text.contains("64"), "{text}");
    // Null and a JSON text are read as arguments.
    for arguments in [Value::Null, json!("{}")] {
        let result = client.request("tools/call", json!({"name": "health_check", "arguments": arguments})).result();
        assert_eq!(result["isError"], false, "{result}");
    }
}

#[test]
fn bootstrap_tools_carry_no_meta() {
    let sandbox = sandbox();
    let mut client = sandbox.connect();
    for tool in ["discover", "list_workflows", "health_check"] {
        let answer = client.call(tool, json!({}));
        assert!(!answer.is_error && answer.meta.is_null(), "{tool}: {answer:?}");
    }
    let text = client.call("discover", json!({})).text;
    assert!(text.starts_with("server: workflow-server\n") && text.contains("# Bootstrap"), "{text}");
    assert!(text.lines().last().is_some_and(|line| line.contains("mini")), "{text}");
}

#[test]
fn stdout_is_protocol_only_at_any_log_level() {
    let sandbox = sandbox();
    let mut places = sandbox.places();
    places.extend(["--log-level".to_owned(), "trace".to_owned()]);
    let mut client = testkit::Client::spawn(sandbox.command(places));
    client.initialize("2025-06-18");
    client.send_raw(b"{nope\n");
    assert_eq!(client.receive()["error"]["code"], -32700);
    let started =
        client.call("start_session", json!({"workflow_id": "mini", "planning_slug": "s1", "user_request": "hush"}));
    started.ok();
    let (status, _, _) = {
        let log = client.log();
        assert!(!log.contains("hush"), "content in the log: {log}");
        assert!(
            log.lines().all(|line| serde_json::from_str::<Value>(line).is_ok_and(|line| line["type"].is_string())),
            "{log}"
        );
        client.finish()
    };
    assert!(status.success());
}
