//! `session show` and `session export`.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Output, Stdio};

use serde_json::{Value, json};
use testkit::{Client, Sandbox};

use crate::{repository, sandbox};

const HOSTILE: &str = "</td><script>alert(1)</script><img src=x onerror=alert(2)>\" onload=\"alert(3)";
const TOKEN: &str = "ghp_a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2";

fn out(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn start(client: &mut Client, arguments: &Value) -> String {
    client.call("start_session", arguments.clone()).json()["session_index"].as_str().unwrap().to_owned()
}

/// A session with an answer, another question that waits, a child, usage, and hostile and secret values.
fn walked(sandbox: &Sandbox) -> String {
    let mut client = sandbox.connect();
    let request = "Please repair the login. ".repeat(20);
    let index = start(
        &mut client,
        &json!({"workflow_id": "mini", "planning_slug": "alpha", "agent_id": "orchestrator", "user_request": request}),
    );
    let mut call = |tool: &str, arguments: Value| {
        let mut arguments = arguments;
        arguments["session_index"] = index.as_str().into();
        let answer = client.call(tool, arguments);
        assert!(!answer.is_error, "{tool}: {}", answer.text);
        answer
    };
    call("next_activity", json!({"activity_id": "plan"}));
    call("get_activity", json!({"context_tokens": 200_000, "agent_id": "worker-1"}));
    call("get_technique", json!({"step_id": "say-hello", "agent_id": "worker-1"}));
    call("yield_checkpoint", json!({"checkpoint_id": "confirm"}));
    call("respond_checkpoint", json!({"option_id": "go"}));
    call("dispatch_child", json!({"workflow_id": "child", "agent_id": "child-1"}));
    call(
        "record_usage",
        json!({"activity": "plan", "basis": "delta", "agent_id": "worker-1",
        "usage": {"input_tokens": 1200, "output_tokens": 34, "note": HOSTILE}}),
    );
    let changed = json!({
        HOSTILE: HOSTILE, "api_key": "opensesame", "settings": {"db_password": "hunter2", "port": 5432},
        "remark": format!("use {TOKEN} for it"), "title\u{1b}[31m": "\u{202e}red",
    });
    call(
        "next_activity",
        json!({"activity_id": "ship", "variables_changed": changed, "transition_condition": "plan_approved == true",
        "step_manifest": [{"step_id": "say-hello", "output": "said"}]}),
    );
    call(
        "yield_checkpoint",
        json!({"checkpoint_id": "really", "message": HOSTILE, "options": [
        {"id": "yes", "label": HOSTILE}, {"id": "no", "label": "No"}]}),
    );
    index
}

fn exported(sandbox: &Sandbox, arguments: &[&str]) -> String {
    out(&sandbox.run(&[&["session", "export", "alpha", "--output", "-"], arguments].concat()))
}

fn json_of(sandbox: &Sandbox, arguments: &[&str]) -> Value {
    serde_json::from_str(&exported(sandbox, &[&["--format", "json"], arguments].concat())).unwrap()
}

#[test]
fn a_session_is_shown_for_people() {
    let sandbox = sandbox();
    let index = walked(&sandbox);
    for addressed in [index.as_str(), "alpha", &sandbox.folder("alpha").display().to_string()] {
        let shown = out(&sandbox.run(&["session", "show", addressed]));
        for part in [
            "Mini  blocked",
            &index,
            "mini 1.0.0",
            ".engineering/artifacts/planning/alpha",
            "Waiting for an answer",
            "really",
            "✓ plan",
            "▶ ship",
            "  walk_mode",
            "slow",
            "Children",
            "child",
            "Asked really",
            "1 200 input tokens",
        ] {
            assert!(shown.replace('\u{202f}', " ").contains(part), "{part} is not in\n{shown}");
        }
        assert!(!shown.contains(['\u{1b}', '\u{202e}']), "nothing moves the cursor: {shown:?}");
        for secret in ["opensesame", "hunter2", TOKEN] {
            assert!(!shown.contains(secret), "{secret} is in\n{shown}");
        }
        assert!(!shown.contains(sandbox.path().to_str().unwrap()), "{shown}");
    }
    let child = json_of(&sandbox, &[])["children"][0]["session_index"].as_str().unwrap().to_owned();
    let shown = out(&sandbox.run(&["session", "show", &child, "--json"]));
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((&shown["session"]["parent"], &shown["session"]["workflow_id"]), (&json!(index), &json!("child")));
    assert_eq!(shown["session"]["embedded_at"], "triggeredWorkflows.0.state");
    assert_eq!(shown.get("timeline"), None);
    for unknown in ["ABC234", "beta", "../alpha", "", "alpha/../beta"] {
        let output = sandbox.run(&["session", "show", unknown]);
        assert_eq!(output.status.code(), Some(1), "{unknown}");
        assert!(String::from_utf8_lossy(&output.stderr).starts_with("error: "), "{unknown}");
    }
}

/// What was visited first comes first, and what is ahead in the order in which it is come by.
#[test]
fn activities_are_shown_in_the_order_of_the_way() {
    let sandbox = sandbox();
    let shown = |expected: &[&str]| {
        let shown = out(&sandbox.run(&["session", "show", "tour", "--with-bundled"]));
        let rows = shown.split_once("\nActivities\n").unwrap().1.split("\n\n").next().unwrap();
        let rows: Vec<String> =
            rows.lines().map(|row| row.split_whitespace().take(2).collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(rows, expected);
    };
    let call = |arguments: &[&str]| out(&sandbox.run(&[&["call"], arguments, &["--with-bundled"]].concat()));
    let started = call(&["start_session", "workflow_id=quick-tour", "planning_slug=tour"]);
    let index = serde_json::from_str::<Value>(&started).unwrap()["session_index"].as_str().unwrap().to_owned();
    shown(&["· look-around", "· visit-stops", "· send-postcard", "· look-back", "· wrap-up"]);
    let index = format!("session_index={index}");
    call(&["next_activity", &index, "activity_id=look-around"]);
    call(&["next_activity", &index, "activity_id=look-back"]);
    shown(&["✓ look-around", "▶ look-back", "· visit-stops", "· send-postcard", "· wrap-up"]);
}

#[test]
fn a_session_that_does_not_open_is_not_told() {
    let sandbox = sandbox();
    walked(&sandbox);
    let file = sandbox.folder("alpha").join("session.json");
    let text = fs::read_to_string(&file).unwrap().replace("\"slow\"", "\"fast\"");
    fs::write(&file, text).unwrap();
    for command in ["show", "export"] {
        let output = sandbox.run(&["session", command, "alpha"]);
        assert_eq!(output.status.code(), Some(1));
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(error.contains("SEAL_MISMATCH") && output.stdout.is_empty(), "{error}");
    }
}

#[test]
fn a_report_tells_the_story() {
    let sandbox = sandbox();
    let index = walked(&sandbox);
    let report = json_of(&sandbox, &[]);
    assert_eq!(report["format"], json!({"name": "workflow-session-report", "version": 1}));
    let session = &report["session"];
    assert_eq!((&session["session_index"], &session["status"]), (&json!(index), &json!("blocked")));
    assert_eq!(report["activities"][0]["state"], "done");
    assert_eq!(
        (&report["activities"][1]["id"], &report["activities"][1]["state"]),
        (&json!("ship"), &json!("current"))
    );
    assert!(report["activities"][0]["duration_ms"].is_i64() && report["visits"][1]["left_at"].is_null());
    let answer = &report["checkpoints"][0];
    assert_eq!(
        (&answer["checkpoint"], &answer["option"], &answer["option_label"]),
        (&json!("confirm"), &json!("go"), &json!("Go on"))
    );
    assert_eq!((&answer["asked_by"], &answer["recorded_by"]), (&json!("worker-1"), &json!("orchestrator")));
    assert_eq!(answer["wording"]["message"], "Shall we go on?");
    assert_eq!(answer["wording"]["options"].as_array().unwrap().len(), 2);
    assert_eq!(answer["effects"]["variablesSet"], json!({"plan_approved": true}));
    let waiting = &report["checkpoints"][1];
    assert_eq!((&waiting["option"], &waiting["wording"]["adhoc"]), (&Value::Null, &json!(true)));
    assert_eq!(report["open_checkpoint"]["checkpoint"], "really");
    assert_eq!(report["usage"]["totals"], json!({"input_tokens": 1200, "output_tokens": 34}));
    let delivered = &report["delivered"];
    assert_eq!(delivered["by_agent"][0]["agent"], "worker-1");
    assert_eq!(delivered["total"]["deliveries"], 2);
    let sum: u64 = delivered["by_tool"].as_array().unwrap().iter().map(|tool| tool["chars"].as_u64().unwrap()).sum();
    assert!(sum > 0 && delivered["total"]["chars"] == sum);
    assert_eq!(report["children"][0]["workflow_id"], "child");
    let state: Value =
        serde_json::from_slice(&fs::read(sandbox.folder("alpha").join("session.json")).unwrap()).unwrap();
    assert_eq!(report["timeline"].as_array().unwrap().len(), state["history"].as_array().unwrap().len());
    let calls =
        report["trace"]["tools"].as_array().unwrap().iter().find(|tool| tool["tool"] == "yield_checkpoint").unwrap();
    assert_eq!((&calls["calls"], &calls["refused"]), (&json!(2), &json!(0)));
}

#[test]
fn secrets_are_hidden_and_long_texts_cut_unless_asked_otherwise() {
    let sandbox = sandbox();
    walked(&sandbox);
    let value = |report: &Value, name: &str| {
        let variables = report["variables"].as_array().unwrap();
        variables.iter().find(|variable| variable["name"] == name).unwrap()["value"].clone()
    };
    let report = json_of(&sandbox, &[]);
    assert_eq!(value(&report, "api_key"), "[hidden]");
    assert_eq!(value(&report, "settings"), json!({"db_password": "[hidden]", "port": 5432}));
    assert_eq!(value(&report, "remark"), "use ghp_[hidden] for it");
    assert!(value(&report, "user_request").as_str().unwrap().ends_with("… [cut: 500 characters]"), "{report:#}");
    assert_eq!(report["redaction"]["secrets"], "hidden");
    assert!(report["redaction"]["values_hidden"].as_u64().unwrap() >= 6, "{}", report["redaction"]);
    let full = json_of(&sandbox, &["--full"]);
    assert_eq!(value(&full, "user_request").as_str().unwrap().len(), 500);
    assert_eq!((value(&full, "api_key"), &full["redaction"]["texts"]), (json!("[hidden]"), &json!("whole")));
    let open = json_of(&sandbox, &["--show-secrets"]);
    assert_eq!((value(&open, "api_key"), &open["redaction"]["secrets"]), (json!("opensesame"), &json!("shown")));
    for form in ["html", "json"] {
        let text = exported(&sandbox, &["--format", form, "--full"]);
        for secret in ["opensesame", "hunter2", TOKEN, sandbox.path().to_str().unwrap()] {
            assert!(!text.contains(secret), "{secret} is in the {form}");
        }
    }
    assert!(exported(&sandbox, &[]).contains("read the report before you pass it on"));
    assert!(exported(&sandbox, &["--show-secrets"]).contains("Secrets are shown"));
}

/// Tags of a document in order, with their attributes as written. Enough of a parser for what this program writes.
fn tags(html: &str) -> Vec<&str> {
    let body = &html[html.find("</style>").unwrap()..];
    body.split('<').skip(1).map(|rest| rest.split('>').next().unwrap()).collect()
}

#[test]
fn the_page_is_one_file_that_runs_and_loads_nothing() {
    let sandbox = sandbox();
    walked(&sandbox);
    let html = exported(&sandbox, &["--full"]);
    assert!(html.starts_with("<!doctype html>") && html.trim_end().ends_with("</html>"));
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "hostile texts are shown as texts");
    let allowed: BTreeSet<&str> = [
        "style",
        "head",
        "body",
        "a",
        "header",
        "h1",
        "span",
        "p",
        "code",
        "dl",
        "div",
        "dt",
        "dd",
        "small",
        "ul",
        "li",
        "nav",
        "main",
        "section",
        "h2",
        "h3",
        "svg",
        "title",
        "desc",
        "line",
        "text",
        "g",
        "rect",
        "path",
        "i",
        "table",
        "caption",
        "thead",
        "tr",
        "th",
        "tbody",
        "td",
        "br",
        "time",
        "blockquote",
        "strong",
        "details",
        "summary",
        "footer",
        "html",
    ]
    .into();
    let mut open: Vec<&str> = Vec::new();
    for tag in tags(&html) {
        let name = tag.trim_start_matches('/').split(' ').next().unwrap();
        assert!(allowed.contains(name), "<{tag}>");
        assert!(!tag.contains(" on") || !tag.contains("=\"alert"), "<{tag}>");
        let attributes: Vec<&str> = tag.split('"').step_by(2).collect();
        for attribute in attributes.iter().filter_map(|part| part.trim().strip_suffix('=')) {
            let attribute = attribute.rsplit(' ').next().unwrap();
            assert!(
                !attribute.starts_with("on") && !["src", "style", "action", "xlink:href"].contains(&attribute),
                "<{tag}>"
            );
        }
        if let Some(name) = tag.strip_prefix('/') {
            if ["style", "head", "body", "html"].contains(&name) {
                continue;
            }
            assert_eq!(open.pop(), Some(name), "{open:?}");
        } else if !["br", "body"].contains(&name) {
            open.push(name);
        }
    }
    assert_eq!(open, [] as [&str; 0]);
    for link in html.split("href=\"").skip(1) {
        assert!(link.starts_with('#'), "{}", &link[..20]);
        let id = &link[1..link.find('"').unwrap()];
        assert!(html.contains(&format!("id=\"{id}\"")), "{id}");
    }
    assert!(!html.contains("http://") && !html.contains("https://") && !html.contains("url("), "nothing is loaded");
    for part in [
        "Content-Security-Policy",
        "default-src &#39;none&#39;",
        "prefers-color-scheme:dark",
        "<html lang=\"en\">",
        "scope=\"col\"",
        "scope=\"row\"",
        "<caption>",
        "role=\"img\"",
        "<title id=\"drawing-title\">",
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert_eq!(html.matches("<h1").count(), 1);
    assert!(!html.contains(['\u{1b}', '\u{202e}']));
}

#[test]
fn the_drawing_is_the_same_for_the_same_session() {
    let sandbox = sandbox();
    walked(&sandbox);
    let drawing = || {
        let html = exported(&sandbox, &[]);
        html[html.find("<svg").unwrap()..html.find("</svg>").unwrap()].to_owned()
    };
    let first = drawing();
    assert_eq!(first, drawing());
    for part in ["plan:", "ship:", "still open", "confirm answered go", "really waiting", "child"] {
        assert!(first.contains(part), "{part} is not in {first}");
    }
}

#[test]
fn a_report_is_written_to_a_file_whole_or_not_at_all() {
    let sandbox = sandbox();
    let index = walked(&sandbox);
    let told = out(&sandbox.run(&["session", "export", "alpha"]));
    let name = format!("alpha-{index}.html");
    assert!(told.contains(&format!("wrote {name}")) && told.contains("hidden"), "{told}");
    assert!(fs::read_to_string(sandbox.path().join(&name)).unwrap().ends_with("</html>\n"));
    let file = sandbox.path().join("report.json");
    fs::write(&file, "before").unwrap();
    out(&sandbox.run(&["session", "export", "alpha", "-o", file.to_str().unwrap()]));
    let report: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(report["format"]["version"], 1, "the ending says the form");
    let failed = sandbox.run(&["session", "export", "alpha", "--output", "none/report.html"]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&failed.stderr).contains("none/report.html"));
}

#[test]
fn a_session_without_its_definition_or_its_trace_is_told_all_the_same() {
    let sandbox = sandbox();
    walked(&sandbox);
    fs::remove_dir_all(sandbox.workflows().join("mini")).unwrap();
    fs::remove_dir_all(sandbox.home().join(".workflow-server/trace")).unwrap();
    let report = json_of(&sandbox, &[]);
    assert!(report["notes"][0].as_str().unwrap().contains("definition is not there"), "{}", report["notes"]);
    assert_eq!(report["checkpoints"][0]["wording"], Value::Null);
    assert_eq!((&report["checkpoints"][0]["option"], &report["trace"]["calls"]), (&json!("go"), &json!(0)));
    let ids: Vec<&str> = report["activities"].as_array().unwrap().iter().map(|a| a["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["plan", "ship"]);
    assert!(exported(&sandbox, &[]).contains("not in the definition"));
    out(&sandbox.run(&["session", "show", "alpha"]));
}

/// A page stays one that a browser shows at once; the data has everything.
#[test]
fn a_long_session_is_told_in_a_page_of_bounded_size() {
    let sandbox = sandbox();
    walked(&sandbox);
    let file = sandbox.folder("alpha").join("session.json");
    let mut state: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let newest = state["history"].as_array().unwrap().last().unwrap()["timestamp"].clone();
    let history = state["history"].as_array_mut().unwrap();
    for round in 0..2000 {
        let asked = json!({"timestamp": newest, "type": "checkpoint_reached", "activity": "ship", "checkpoint": format!("c#{round}")});
        let mut answered = asked.clone();
        answered["type"] = "checkpoint_response".into();
        answered["data"] = json!({"optionId": "a"});
        history.extend([asked, answered]);
    }
    fs::write(&file, state.to_string()).unwrap();
    out(&sandbox.run(&["session", "adopt", "alpha", "--yes"]));
    let page = exported(&sandbox, &[]);
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
    assert!(page.contains("questions came before") && page.contains("are left out here"));
    let report = json_of(&sandbox, &[]);
    assert_eq!(report["timeline"].as_array().unwrap().len(), state["history"].as_array().unwrap().len());
    assert_eq!(report["checkpoints"].as_array().unwrap().len(), 2002);
}

#[test]
fn warnings_that_agents_were_given_are_told() {
    let sandbox = sandbox();
    let index = walked(&sandbox);
    let given = json_of(&sandbox, &[])["warnings"].as_array().unwrap().clone();
    assert_eq!(given.len(), 1, "{given:#?}");
    let (text, at) = (given[0]["text"].as_str().unwrap(), given[0]["at"].as_str().unwrap());
    assert!(text.contains("`plan`") && text.contains("confirm"), "the manifest of plan is incomplete: {text}");
    assert!(at.ends_with('Z') && given[0]["tool"] == "next_activity", "{given:?}");
    let shown = out(&sandbox.run(&["session", "show", "alpha"]));
    assert!(shown.contains("\nWarnings\n") && shown.contains(text), "{text} is not in\n{shown}");

    let file = sandbox.home().join(format!(".workflow-server/trace/{index}.jsonl"));
    let mut lines = fs::read_to_string(&file).unwrap();
    let mut warn = |texts: Value| {
        let event =
            json!({"traceId": index, "name": "get_activity", "ts": 1_800_000_000, "ms": 1, "s": "ok", "vw": texts});
        lines.extend([event.to_string().as_str(), "\n"]);
    };
    (0..300).for_each(|nth| warn(json!([format!("warning number {nth} {}", "x".repeat(800))])));
    warn(json!([HOSTILE, format!("use {TOKEN}"), 7, "turned \u{202e}\u{1b}[31m"]));
    (0..4).for_each(|_| warn(json!(["the same again"])));
    fs::write(&file, lines).unwrap();

    let report = json_of(&sandbox, &[]);
    let told = report["warnings"].as_array().unwrap();
    assert_eq!((told.len(), &report["trace"]["warnings"]), (308, &json!(308)));
    assert_eq!(
        told[302],
        json!({"at": "2027-01-15T08:00:00.000Z", "tool": "get_activity", "text": "use ghp_[hidden]"})
    );
    assert!(told[5]["text"].as_str().unwrap().ends_with("… [cut: 817 characters]"), "{}", told[5]);
    let page = exported(&sandbox, &[]);
    assert!(page.contains("<h2 id=\"warnings-heading\">Warnings</h2>") && page.contains("108 warnings came before"));
    assert!(!page.contains("warning number 106 ") && page.contains("warning number 107 "));
    assert!(page.contains("&lt;script&gt;alert(1)") && !page.contains("<script>") && !page.contains(TOKEN));
    let shown = out(&sandbox.run(&["session", "show", "alpha"]));
    assert!(shown.contains("\nWarnings, the newest of 308\n"), "{shown}");
    assert!(shown.contains("get_activity  the same again  (4×)\n") && shown.contains("use ghp_[hidden]"), "{shown}");
    assert!(!shown.contains("warning number 298") && shown.contains("warning number 299"), "{shown}");
    assert!(!shown.contains(['\u{1b}', '\u{202e}']) && shown.lines().all(|line| line.chars().count() < 340), "{shown}");
    let shown: Value = serde_json::from_slice(&sandbox.run(&["session", "show", "alpha", "--json"]).stdout).unwrap();
    assert_eq!(shown["warnings"], report["warnings"]);
}

#[test]
fn transient_and_fresh_sessions_are_told() {
    let sandbox = sandbox();
    let started = sandbox.connect().call("start_session", json!({})).json();
    let slug = started["planning_slug"].as_str().unwrap();
    let shown = out(&sandbox.run(&["session", "show", slug]));
    assert!(shown.contains("not begun") && shown.contains(&format!("transient/{slug}")), "{shown}");
    let page = out(&sandbox.run(&["session", "export", slug, "--output", "-"]));
    assert!(page.contains("transient") && !page.contains("<svg viewBox"), "{page}");
}

/// The demo lets one gate run out of time.
#[test]
fn a_default_that_was_taken_is_no_answer() {
    let sandbox = sandbox();
    let played = out(&sandbox.run(&["demo", "--keep"]));
    let workspace = played.lines().find_map(|line| line.strip_prefix("workspace")).unwrap().trim();
    let export = |format: &str| {
        let arguments = ["session", "export", "my-tour", "--format", format, "--output", "-", "--workspace", workspace];
        out(&sandbox.command(arguments).stdin(Stdio::null()).output().unwrap())
    };
    let report: Value = serde_json::from_str(&export("json")).unwrap();
    let rounds = report["checkpoints"].as_array().unwrap().iter();
    let by_default: Vec<_> =
        rounds.filter(|round| round["by_default"] == true).map(|round| &round["checkpoint"]).collect();
    assert_eq!(by_default, ["keep-stop#delivery"]);
    let page = export("html");
    assert_eq!(page.matches("not answered; default taken").count(), 1);
    assert!(page.contains("not answered, default keep taken"));
    let told = "Default taken for keep-stop#delivery: keep";
    let is_told = |line: &Value| line["text"] == told && line["type"] == "checkpoint_response";
    assert!(report["timeline"].as_array().unwrap().iter().any(is_told), "{:#}", report["timeline"]);
    assert!(page.contains(told) && page.contains("default taken: ") && page.contains("— taken by default"));
    assert!(page.contains("<dt>Answers</dt><dd>5<"), "a default is none of them");
    let arguments = ["session", "show", "my-tour", "--events", "999", "--workspace", workspace];
    let shown = out(&sandbox.command(arguments).stdin(Stdio::null()).output().unwrap());
    assert!(shown.contains(told) && !shown.contains("Answered keep-stop#delivery"), "{shown}");
}

#[test]
fn a_dismissal_is_no_answer() {
    let sandbox = sandbox();
    let file = sandbox.workflows().join("mini/activities/01-plan.yaml");
    let text = fs::read_to_string(&file).unwrap();
    let condition = "    condition: { type: simple, variable: walk_mode, operator: '==', value: fast }\n";
    fs::write(&file, text.replace("    id: confirm\n", &format!("    id: confirm\n{condition}"))).unwrap();
    let mut client = sandbox.connect();
    let index = start(&mut client, &json!({"workflow_id": "mini", "planning_slug": "alpha"}));
    for (tool, name, value) in [
        ("next_activity", "activity_id", json!("plan")),
        ("yield_checkpoint", "checkpoint_id", json!("confirm")),
        ("respond_checkpoint", "condition_not_met", json!(true)),
        ("yield_checkpoint", "checkpoint_id", json!("confirm")),
    ] {
        client.call(tool, json!({"session_index": index, name: value})).ok();
    }
    let shown = out(&sandbox.run(&["session", "show", "alpha"]));
    let (page, report) = (exported(&sandbox, &[]), json_of(&sandbox, &[]));
    for told in ["Dismissed confirm: its condition did not hold", "confirm stays dismissed: its condition did not hold"]
    {
        assert!(shown.contains(told) && page.contains(told), "{told} is not in\n{shown}");
        assert!(report["timeline"].as_array().unwrap().iter().any(|line| line["text"] == told), "{report:#}");
    }
    assert!(page.contains("dismissed: its condition did not hold") && page.contains(" · dismissed "));
    assert!(page.contains("<dt>Answers</dt><dd>0<"));
    for text in [shown, page] {
        assert!(!text.contains("__condition_not_met__"), "{text}");
    }
    assert_eq!(
        (&report["checkpoints"][0]["dismissed"], &report["checkpoints"][0]["replays"]),
        (&json!(true), &json!(1))
    );
}

/// `docs/session-report.md` names every member of the JSON form, and no other.
#[test]
fn the_format_is_described() {
    let sandbox = sandbox();
    walked(&sandbox);
    let page = fs::read_to_string(repository().join("docs/session-report.md")).unwrap();
    let described: BTreeSet<&str> =
        page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let mut found: BTreeSet<String> = BTreeSet::new();
    let report = json_of(&sandbox, &[]);
    names(&report, "", &mut found);
    let found: BTreeSet<&str> = found.iter().map(String::as_str).collect();
    assert_eq!(found.difference(&described).collect::<Vec<_>>(), [] as [&&str; 0], "not described");
    assert_eq!(described.difference(&found).collect::<Vec<_>>(), [] as [&&str; 0], "not there");
}

/// Paths of members; what is free in them is not gone into.
fn names(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    const FREE: [&str; 5] =
        ["variables[].value", "usage", "timeline[].data", "checkpoints[].effects", "open_checkpoint.wording"];
    if FREE.contains(&path) {
        return;
    }
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                found.insert(path.clone());
                names(value, &path, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| names(item, &format!("{path}[]"), found)),
        _ => {}
    }
}
