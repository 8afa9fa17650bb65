//! `call`: an agent's calls from the shell.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Output, Stdio};

use serde_json::{Value, json};
use testkit::Sandbox;

use crate::sandbox;

fn out(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn err(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

fn call(sandbox: &Sandbox, arguments: &[&str]) -> Output {
    sandbox.run(&[&["call"], arguments].concat())
}

#[track_caller]
fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", err(output));
    assert_eq!(err(output), "");
    serde_json::from_str(out(output)).unwrap()
}

/// Starts a session of the small workflow; answers the argument that names it.
fn start(sandbox: &Sandbox) -> String {
    let started = json(&call(sandbox, &["start_session", "workflow_id=mini", "planning_slug=alpha"]));
    format!("session_index={}", started["session_index"].as_str().unwrap())
}

fn piped(sandbox: &Sandbox, arguments: &[&str], input: &str) -> Output {
    let mut command = sandbox.command([&["call"], arguments].concat());
    command.args(sandbox.places()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn a_workflow_is_walked_from_the_shell() {
    let sandbox = sandbox();
    let index = start(&sandbox);
    json(&call(&sandbox, &["next_activity", &index, "activity_id=plan"]));
    let served = call(&sandbox, &["get_activity", &index, "context_tokens=200000", "agent_id=w1"]);
    assert!(out(&served).contains("id: confirm") && !out(&served).contains("validation:"), "{}", out(&served));
    json(&call(&sandbox, &["yield_checkpoint", &index, "checkpoint_id=confirm"]));
    json(&call(&sandbox, &["respond_checkpoint", &index, "option_id=go"]));
    let manifest =
        r#"step_manifest=[{"step_id": "say-hello", "output": "hi"}, {"step_id": "confirm", "output": "go"}]"#;
    let variables = r#"variables_changed:={"walk_mode": "fast"}"#;
    let condition = "transition_condition=plan_approved == true";
    let entered = json(&call(&sandbox, &["next_activity", &index, "activity_id=ship", manifest, variables, condition]));
    assert_eq!((&entered["activity_id"], entered.get("validation")), (&json!("ship"), None));
    let status = json(&call(&sandbox, &["get_workflow_status", &index]));
    assert_eq!(status["variables"]["walk_mode"], "fast");
}

#[test]
fn a_refusal_goes_to_stderr_and_is_exit_code_1() {
    let sandbox = sandbox();
    for arguments in [
        &["get_workflow_status", "session_index=ABC234"][..],
        &["get_workflow_status", "session_index=nope"],
        &["get_workflow_status", "sesion_index=ABC234"],
        &["start_session", "workflow_id=none", "planning_slug=x"],
    ] {
        let output = call(&sandbox, arguments);
        assert_eq!((output.status.code(), out(&output)), (Some(1), ""), "{arguments:?}");
        assert!(err(&output).starts_with("error: "), "{}", err(&output));
    }
    let unknown = call(&sandbox, &["get_workflow_status", "sesion_index=ABC234"]);
    assert!(err(&unknown).contains("session_index"), "{}", err(&unknown));
}

#[test]
fn a_full_batch_is_an_answer_and_exit_code_1() {
    let sandbox = sandbox().with_env("BATCH_MAX_ACTIVITIES", "1");
    let index = start(&sandbox);
    for (activity, code) in [("plan", 0), ("ship", 1)] {
        json(&call(&sandbox, &["next_activity", &index, &format!("activity_id={activity}")]));
        let output = call(&sandbox, &["get_activity", &index, "context_tokens=200000", "agent_id=w1"]);
        assert_eq!(output.status.code(), Some(code), "{}", err(&output));
        assert_eq!(out(&output).starts_with("status: refused"), code == 1, "{}", out(&output));
        assert_eq!(err(&output), "");
    }
}

#[test]
fn json_prints_the_whole_result() {
    let sandbox = sandbox();
    let index = start(&sandbox);
    let whole = json(&call(&sandbox, &["next_activity", &index, "activity_id=plan", "--json"]));
    assert_eq!(whole["isError"], false);
    assert!(whole["_meta"]["trace_token"].is_string() && whole["text"].as_str().unwrap().contains("Plan"), "{whole}");
    let refused = call(&sandbox, &["next_activity", &index, "activity_id=none", "--json"]);
    assert_eq!(refused.status.code(), Some(1));
    let whole: Value = serde_json::from_str(out(&refused)).unwrap();
    assert_eq!((&whole["isError"], &whole["_meta"]["error"]["code"]), (&json!(true), &json!("ACTIVITY_NOT_FOUND")));
    let bare = json(&call(&sandbox, &["list_workflows", "--json"]));
    assert_eq!(bare["_meta"], Value::Null);
}

#[test]
fn arguments_come_from_stdin_too() {
    let sandbox = sandbox();
    let index = start(&sandbox);
    let object = format!("{{\"session_index\": \"{}\"}}", &index["session_index=".len()..]);
    assert_eq!(json(&piped(&sandbox, &["get_workflow_status", "-"], &object))["status"], "active");
    let unasked = piped(&sandbox, &["get_workflow_status"], &object);
    assert_eq!(serde_json::from_str::<Value>(out(&unasked)).unwrap()["status"], "active");
    let told = err(&unasked);
    assert!(told.starts_with("reading the arguments of get_workflow_status as JSON from stdin; "), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
    let resumed = piped(&sandbox, &["start_session"], "{\"planning_slug\": \"my-work\", \"workflow_id\": \"mini\"}");
    let resumed: Value = serde_json::from_str(out(&resumed)).unwrap();
    assert_eq!(resumed["planning_slug"], "my-work", "what is piped in is never left out");
    let view = json(&piped(&sandbox, &["inspect_session", "-", "view=identity"], &object));
    assert_eq!(view["workflowId"], "mini");
    for (arguments, input) in [(&["get_workflow_status", "-"][..], "[]"), (&["get_workflow_status"], "{")] {
        let output = piped(&sandbox, arguments, input);
        assert_eq!(output.status.code(), Some(2));
        assert!(err(&output).contains("JSON object"), "{}", err(&output));
    }
}

/// An agent's shell leaves stdin open: no call waits for it silently, and none of a tool that takes nothing.
#[test]
fn an_open_stdin_is_waited_for_only_by_tools_that_take_something() {
    let sandbox = sandbox();
    for tool in workflow_engine::TOOLS {
        let schema = (tool.schema)();
        let takes_some = schema["properties"].as_object().is_some_and(|all| !all.is_empty());
        let mut command = sandbox.command(["call", tool.name]);
        command.args(sandbox.places()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut told = String::new();
        if takes_some {
            stderr.read_line(&mut told).unwrap();
            assert!(told.starts_with(&format!("reading the arguments of {} as JSON from stdin", tool.name)), "{told}");
            assert!(child.try_wait().unwrap().is_none(), "{} did not wait", tool.name);
            drop(stdin);
            child.wait().unwrap();
        } else {
            // Ends with stdin open; this would hang otherwise.
            child.wait().unwrap();
            drop(stdin);
        }
        stderr.read_to_string(&mut told).unwrap();
        assert_eq!(told.matches("reading the arguments").count(), usize::from(takes_some), "{told}");
    }
}

#[test]
fn what_cannot_be_understood_is_exit_code_2() {
    let sandbox = sandbox();
    for (arguments, part) in [
        (&["get_activty"][..], "get_activity"),
        (&["get_workflow_status", "ABC234"], "KEY=VALUE"),
        (&["get_workflow_status", "session_index:=ABC234"], "session_index:="),
        (&["get_workflow_status", "--schma"], "--schema"),
    ] {
        let output = call(&sandbox, arguments);
        assert_eq!((output.status.code(), out(&output)), (Some(2), ""), "{arguments:?}");
        assert!(err(&output).contains(part), "{}", err(&output));
    }
}

#[test]
fn help_and_schema_tell_what_there_is() {
    let sandbox = sandbox();
    let help = call(&sandbox, &["--help"]);
    let titles = workflow_engine::TOOLS.iter().map(|tool| format!("- {}:", tool.name));
    for line in titles.chain(workflow_engine::TOOLS.iter().map(|tool| tool.title.to_owned())) {
        assert!(out(&help).contains(&line), "{line}");
    }
    for tool in workflow_engine::TOOLS {
        let schema = json(&call(&sandbox, &[tool.name, "--schema"]));
        assert_eq!(schema["type"], "object", "{}", tool.name);
    }
}

#[test]
fn calls_work_beside_a_running_server() {
    let sandbox = sandbox();
    let mut client = sandbox.connect();
    let index = start(&sandbox);
    let named = json!({"session_index": &index["session_index=".len()..]});
    assert_eq!(client.call("get_workflow_status", named.clone()).json()["current_activity"], "none");
    json(&call(&sandbox, &["next_activity", &index, "activity_id=plan"]));
    assert_eq!(client.call("get_workflow_status", named.clone()).json()["current_activity"], "plan");
    client.call("yield_checkpoint", json!({"session_index": named["session_index"], "checkpoint_id": "confirm"})).ok();
    json(&call(&sandbox, &["respond_checkpoint", &index, "option_id=go"]));
    assert_eq!(client.call("resume_checkpoint", named).json()["resolved_option"], "go");
}

/// What the demo recommends works everywhere, also in an archive that is no git work tree.
#[test]
fn tools_that_take_nothing_need_no_workspace() {
    let sandbox = sandbox();
    for tool in workflow_engine::TOOLS {
        let takes_some = (tool.schema)()["properties"].as_object().is_some_and(|all| !all.is_empty());
        let mut command = sandbox.command(["call", tool.name]);
        // Without a parent that is a git work tree.
        let output = command.current_dir("/").stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.success(), !takes_some, "{}: {}", tool.name, err(&output));
        assert_eq!(err(&output).contains("no workspace"), takes_some, "{}: {}", tool.name, err(&output));
    }
}
