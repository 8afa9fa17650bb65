//! Every refusal that calls can provoke, with what its message must hold (spec 03 §11).

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use workflow_mcp::Outcome;

use crate::bench::{Bench, code};

/// What a provoked refusal must say besides its code.
struct Provoked {
    outcome: Outcome,
    must: Vec<String>,
}

fn said(outcome: Outcome, must: &[&str]) -> Provoked {
    Provoked { outcome, must: must.iter().map(|text| (*text).to_owned()).collect() }
}

type Case = (&'static str, fn() -> Provoked);

/// Codes of the catalogue that no call can provoke here, and why.
const NOT_BY_CALLS: &[(&str, &str)] = &[
    ("VALUE_NOT_JSON", "a value that is no JSON does not get past the protocol, whose tests provoke it"),
    ("REPO_REQUIRED", "several roots are a later stage"),
    ("REPO_CHECKOUT_CONFLICT", "several roots are a later stage"),
    ("MIGRATION_FAILED", "of the command `session migrate`"),
    ("MIGRATION_REFUSED", "of the command `session migrate`"),
    ("STATE_MOVED", "needs a writer without lock in the middle of a call; the store's tests have one"),
    ("INTERNAL_INVALID_STATE", "a defect by definition"),
];

/// All codes of spec 03 §11.
const CATALOGUE: &[&str] = &[
    "INVALID_PARAMS",
    "PARAM_TOO_LARGE",
    "VALUE_NOT_JSON",
    "UNKNOWN_TOOL",
    "INVALID_SESSION_INDEX",
    "INVALID_SLUG",
    "SLUG_CONFLICT",
    "PLANNING_FOLDER_NOT_ABSOLUTE",
    "INVALID_WORKFLOW_ID",
    "RESOURCE_ID_INVALID",
    "PATH_ESCAPE",
    "REPO_INVALID",
    "REPO_REQUIRED",
    "REPO_CONFLICT",
    "REPO_CHECKOUT_CONFLICT",
    "CHECKPOINT_ADDRESS_MISSING",
    "CHECKPOINT_ADDRESS_CONFLICT",
    "CHECKPOINT_MODE",
    "SESSION_NOT_FOUND",
    "SESSION_COLLISION",
    "SLUG_COLLISION",
    "SLUG_IN_USE",
    "PARENT_NOT_FOUND",
    "CHILD_NOT_FOUND",
    "SEAL_MISMATCH",
    "SEAL_MISSING",
    "SESSION_CORRUPT",
    "SESSION_SCHEMA_UNSUPPORTED",
    "MIGRATION_REQUIRED",
    "MIGRATION_FAILED",
    "MIGRATION_REFUSED",
    "KEY_UNREADABLE",
    "KEY_NOT_WRITABLE",
    "KEY_INVALID",
    "KEY_PERMISSIONS",
    "WORKSPACE_INVALID",
    "DEPTH_LIMIT",
    "WORKFLOW_NOT_FOUND",
    "WORKFLOW_INVALID",
    "ACTIVITY_NOT_FOUND",
    "TECHNIQUE_NOT_FOUND",
    "NO_WORKFLOW_TECHNIQUE",
    "NO_ACTIVITY_TECHNIQUE",
    "STEP_NOT_FOUND",
    "STEP_HAS_NO_TECHNIQUE",
    "RESOURCE_NOT_FOUND",
    "SECTION_NOT_FOUND",
    "NO_CURRENT_ACTIVITY",
    "SESSION_TERMINAL",
    "ACTIVITY_MOVED",
    "CHECKPOINT_ACTIVE",
    "CHECKPOINT_ALREADY_ACTIVE",
    "CHECKPOINT_STILL_ACTIVE",
    "NO_ACTIVE_CHECKPOINT",
    "CHECKPOINT_NOT_FOUND",
    "CHECKPOINT_IS_DECLARED",
    "CHECKPOINT_ID_REUSED",
    "CHECKPOINT_DEFINITION_INVALID",
    "CHECKPOINT_HANDLE_INVALID",
    "CHECKPOINT_HANDLE_SPENT",
    "CHECKPOINT_TOO_FAST",
    "AUTO_ADVANCE_TOO_EARLY",
    "CHECKPOINT_OPTION_INVALID",
    "AUTO_ADVANCE_UNAVAILABLE",
    "CHECKPOINT_NOT_CONDITIONAL",
    "BATCH_FULL",
    "VARIABLE_NOT_FOUND",
    "SESSION_BUSY",
    "SESSION_TOO_LARGE",
    "STATE_MOVED",
    "WRITE_FAILED",
    "INTERNAL_INVALID_STATE",
];

/// Refusals that the same call may get past later.
const RETRYABLE: &[&str] = &["CHECKPOINT_TOO_FAST", "AUTO_ADVANCE_TOO_EARLY", "SESSION_BUSY"];

/// A call on a session of `walk` that has gone so far.
fn on(activity: &str, tool: &str, arguments: Value) -> (Bench, String, Outcome) {
    let bench = Bench::new();
    let index = bench.start("a");
    if !activity.is_empty() {
        bench.go(&index, activity);
    }
    let outcome = with_index(&bench, &index, tool, arguments);
    (bench, index, outcome)
}

fn with_index(bench: &Bench, index: &str, tool: &str, mut arguments: Value) -> Outcome {
    arguments["session_index"] = index.into();
    bench.call(tool, &arguments)
}

/// A call while a checkpoint of `plan` waits for the given time.
fn waiting(checkpoint: &str, milliseconds: i64, tool: &str, arguments: Value) -> (String, Outcome) {
    let bench = Bench::new();
    let index = bench.start("a");
    bench.go(&index, "plan");
    let handle = bench.stop(&index, checkpoint);
    bench.wait(milliseconds);
    (handle, with_index(&bench, &index, tool, arguments))
}

fn fresh(tool: &str, arguments: &Value) -> Outcome {
    Bench::new().call(tool, arguments)
}

const ARGUMENTS: &[Case] = &[
    ("INVALID_PARAMS", || {
        let (_, _, outcome) = on("", "get_activity", json!({"contxt_tokens": 1, "bundle": "both"}));
        said(
            outcome,
            &[
                "MCP error -32602: Input validation error: Invalid arguments for tool get_activity:",
                "`contxt_tokens`",
                "did you mean `context_tokens`",
                "`bundle`",
                "\"reference\", \"full\"",
                "\"both\"",
                "`context_tokens` is required",
            ],
        )
    }),
    ("INVALID_PARAMS", || {
        said(on("", "get_resource", json!({"resource_id": ""})).2, &["`resource_id`", "not be empty"])
    }),
    ("INVALID_PARAMS", || said(fresh("get_workflow", &json!({"session_token": "x"})), &["session_index"])),
    ("PARAM_TOO_LARGE", || {
        let long = json!({"activity_id": "plan", "variables_changed": {"a": "x".repeat(262_145)}});
        said(on("", "next_activity", long).2, &["variables_changed", "262145", "262144"])
    }),
    ("UNKNOWN_TOOL", || {
        said(fresh("get_activty", &json!({})), &["MCP error -32602: Tool get_activty not found", "get_activity?"])
    }),
    ("INVALID_SESSION_INDEX", || {
        said(
            fresh("get_workflow", &json!({"session_index": "abc"})),
            &["\"abc\"", "^[A-Z2-7]{6}$", "as returned by start_session", "Call start_session"],
        )
    }),
    ("INVALID_SLUG", || said(fresh("start_session", &json!({"planning_slug": "a/b"})), &["'a/b'", "segment", "omit"])),
    ("INVALID_SLUG", || {
        let bench = Bench::new();
        bench.start("alpha");
        said(bench.call("start_session", &json!({"planning_slug": "Alpha"})), &["'Alpha'", "'alpha'"])
    }),
    ("SLUG_CONFLICT", || {
        let both = json!({"planning_slug": "a", "planning_folder": "/x/b"});
        said(fresh("start_session", &both), &["'a'", "'b'", "omit", "meta bootstrap"])
    }),
    ("SLUG_CONFLICT", || {
        let own = json!({"planning_slug": "a", "parent_planning_slug": "a"});
        said(fresh("start_session", &own), &["'a'", "own parent", "omit"])
    }),
    ("PLANNING_FOLDER_NOT_ABSOLUTE", || {
        said(
            fresh("start_session", &json!({"planning_folder": "x/b"})),
            &["'x/b'", "absolute", "omit", "meta bootstrap"],
        )
    }),
    ("INVALID_WORKFLOW_ID", || {
        let outside = json!({"workflow_id": "../outside", "planning_slug": "a"});
        said(fresh("start_session", &outside), &["../outside", "plain name", "list_workflows"])
    }),
    ("RESOURCE_ID_INVALID", || {
        said(on("", "get_resource", json!({"resource_id": "walk/../../x"})).2, &["walk/../../x", "plain names"])
    }),
    ("REPO_INVALID", || {
        let bad = json!({"workflow_id": "walk", "planning_slug": "a", "repo": "../x"});
        said(fresh("start_session", &bad), &["'../x'", "owner/name", "https://host/owner/name", "git@host:owner/name"])
    }),
    ("REPO_CONFLICT", || {
        let bench = Bench::new();
        bench.ok("start_session", &json!({"workflow_id": "walk", "planning_slug": "a", "repo": "acme/tool"}));
        let other = json!({"planning_slug": "a", "repo": "acme/other"});
        said(bench.call("start_session", &other), &["acme/tool", "acme/other"])
    }),
    ("CHECKPOINT_ADDRESS_MISSING", || {
        said(fresh("present_checkpoint", &json!({})), &["checkpoint_handle", "session_index", "neither"])
    }),
    ("CHECKPOINT_ADDRESS_CONFLICT", || {
        let both = json!({"session_index": "ABCDE2", "checkpoint_handle": "cp1.NU7LON.OoYG17oXA0k83PJBm9bC-4"});
        said(fresh("present_checkpoint", &both), &["ABCDE2", "NU7LON"])
    }),
    ("CHECKPOINT_MODE", || {
        let off = json!({"auto_advance": false, "condition_not_met": "false"});
        let (_, outcome) = waiting("confirm", 3000, "respond_checkpoint", off);
        said(outcome, &["none", "exactly one of option_id, auto_advance: true, condition_not_met: true"])
    }),
    ("CHECKPOINT_MODE", || {
        let two = json!({"option_id": "go", "auto_advance": "true"});
        said(waiting("timed", 9000, "respond_checkpoint", two).1, &["option_id, auto_advance were given"])
    }),
];

const OPENING: &[Case] = &[
    ("SESSION_NOT_FOUND", || {
        let bench = Bench::new();
        bench.start("a");
        fs::write(bench.folder("a").join("session.json"), "{").unwrap();
        let outcome = bench.call("get_workflow", &json!({"session_index": "AAAAAA"}));
        let (root, folder) = (bench.planning().display().to_string(), bench.folder("a").display().to_string());
        said(outcome, &["AAAAAA", &root, &folder, "start_session with the planning slug"])
    }),
    ("SESSION_NOT_FOUND", || {
        let minted = "transition-0e7a1c2d-1111-4222-8333-444455556666";
        said(fresh("start_session", &json!({"planning_slug": minted})), &[minted])
    }),
    ("SESSION_COLLISION", || {
        let mut bench = Bench::new();
        let index = bench.start("a");
        let state = bench.state("a");
        for slug in ["a", "b"] {
            bench.write_bare(&bench.folder(slug), &state);
        }
        // who knows where the index is does not look for it elsewhere
        bench.restart();
        let outcome = bench.call("get_workflow", &json!({"session_index": index}));
        said(outcome, &[&index, &bench.folder("a").display().to_string(), &operate("adopt", &bench.folder("b"))])
    }),
    ("SLUG_COLLISION", || {
        let bench = Bench::new();
        bench.start("x");
        let below = bench.folder("group/x");
        bench.write_bare(&below, &bench.state("x"));
        let outcome = bench.call("start_session", &json!({"planning_slug": "x"}));
        said(outcome, &["'x'", &bench.folder("x").display().to_string(), &below.display().to_string()])
    }),
    ("SLUG_IN_USE", || {
        let bench = Bench::new();
        let occupant = bench.start("x");
        let parent = crate::bench::index(&bench.ok("start_session", &json!({})));
        let into = json!({"session_index": parent, "workflow_id": "bare", "planning_slug": "x"});
        let both = ["'x'", "walk", "start_session {planning_slug: \"x\"}", "another planning_slug", &occupant];
        said(bench.call("dispatch_child", &into), &both)
    }),
    ("PARENT_NOT_FOUND", || {
        let bench = Bench::new();
        let outcome = bench.call("start_session", &json!({"planning_slug": "a", "parent_planning_slug": "none"}));
        said(outcome, &["'none'", &bench.planning().display().to_string()])
    }),
    ("CHILD_NOT_FOUND", || {
        let (_, index, outcome) = on("", "inspect_session", json!({"child_index": 3}));
        said(outcome, &[&index, "0 children", "child_index 3"])
    }),
    ("CHILD_NOT_FOUND", || {
        said(on("", "inspect_session", json!({"child_index": 99_999_999_999_u64})).2, &["child_index 99999999999"])
    }),
    ("SEAL_MISMATCH", || {
        let (bench, index) = sealed();
        append(&bench.folder("a").join("session.json"), "\n");
        mismatch(&bench, &index, "a", "content")
    }),
    ("SEAL_MISMATCH", || {
        let (bench, index) = sealed();
        fs::rename(bench.folder("a"), bench.folder("b")).unwrap();
        mismatch(&bench, &index, "b", "folder")
    }),
    ("SEAL_MISMATCH", || {
        let (mut bench, index) = sealed();
        bench.options.workspace_id = Some("another".to_owned());
        bench.restart();
        mismatch(&bench, &index, "a", "workspace")
    }),
    ("SEAL_MISMATCH", || {
        let (mut bench, index) = sealed();
        fs::write(bench.options.key_dir.join("secret"), [7; 32]).unwrap();
        bench.restart();
        let mut provoked = mismatch(&bench, &index, "a", "key");
        provoked.must.push(bench.options.key_dir.join("secret").display().to_string());
        provoked
    }),
    ("SEAL_MISMATCH", || {
        let (bench, index) = sealed();
        let seen = bench.options.state_dir.join("seen").join(format!("{index}.json"));
        let known = fs::read(&seen).unwrap();
        bench.write_bare(&bench.folder("a"), &bench.state("a"));
        fs::create_dir_all(seen.parent().unwrap()).unwrap();
        fs::write(&seen, known).unwrap();
        mismatch(&bench, &index, "a", "downgraded")
    }),
    ("SEAL_MISSING", || {
        let (bench, index) = sealed();
        fs::remove_file(bench.folder("a").join(".session-token")).unwrap();
        let outcome = bench.call("get_workflow", &json!({"session_index": index}));
        said(outcome, &[&bench.folder("a").display().to_string(), ".session-token"])
    }),
    ("SESSION_CORRUPT", || {
        let (bench, _) = sealed();
        fs::write(bench.folder("a").join("session.json"), "{\n  \"a\": ]").unwrap();
        let outcome = bench.call("start_session", &json!({"planning_slug": "a"}));
        said(outcome, &[&bench.folder("a").display().to_string(), "line 2"])
    }),
    ("SESSION_SCHEMA_UNSUPPORTED", || {
        let (bench, index) = sealed();
        let mut state = bench.state("a");
        state["history"][0]["timestamp"] = "yesterday".into();
        bench.write_bare(&bench.folder("a"), &state);
        let outcome = bench.call("get_workflow", &json!({"session_index": index}));
        said(outcome, &["history.0.timestamp", "yesterday", "another server version", "not tampering"])
    }),
    ("MIGRATION_REQUIRED", || {
        let bench = Bench::new();
        fs::create_dir_all(bench.folder("old")).unwrap();
        fs::write(bench.folder("old").join("workflow-state.json"), "{}").unwrap();
        let outcome = bench.call("start_session", &json!({"planning_slug": "old"}));
        let folder = bench.folder("old").display().to_string();
        said(outcome, &[&folder, &operate("migrate", Path::new(&folder))])
    }),
    ("KEY_UNREADABLE", || key(&Bench::with(|options, _| options.key_dir = options.workspace.join("x".repeat(300))))),
    ("KEY_NOT_WRITABLE", || {
        key(&Bench::with(|options, _| {
            options.key_dir = options.workspace.join("file/keys");
            fs::write(options.workspace.join("file"), "").unwrap();
        }))
    }),
    ("KEY_INVALID", || {
        let bench = Bench::new();
        fs::create_dir_all(&bench.options.key_dir).unwrap();
        write_private(&bench.options.key_dir.join("secret"), &[1; 31]);
        key(&bench)
    }),
    #[cfg(unix)]
    ("KEY_PERMISSIONS", || {
        use std::os::unix::fs::PermissionsExt as _;
        let bench = Bench::new();
        fs::create_dir_all(&bench.options.key_dir).unwrap();
        let path = bench.options.key_dir.join("secret");
        fs::write(&path, [1; 32]).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        key(&bench)
    }),
    ("WORKSPACE_INVALID", || {
        let bench = Bench::with(|options, _| options.workspace = options.workspace.join("missing"));
        let outcome = bench.call("start_session", &json!({"workflow_id": "walk", "planning_slug": "a"}));
        said(outcome, &[&bench.options.workspace.display().to_string(), "--workspace"])
    }),
    #[cfg(unix)]
    ("PATH_ESCAPE", || {
        let bench = Bench::new();
        bench.start("a");
        std::os::unix::fs::symlink(&bench.options.state_dir, bench.folder("link")).unwrap();
        let outcome = bench.call("start_session", &json!({"workflow_id": "walk", "planning_slug": "link"}));
        said(outcome, &[&bench.folder("link").display().to_string()])
    }),
    ("DEPTH_LIMIT", || {
        let bench = Bench::new();
        let mut index = bench.start("a");
        for _ in 0..32 {
            let child = bench.ok("dispatch_child", &json!({"session_index": index, "workflow_id": "bare"}));
            index = crate::bench::index(&child);
        }
        said(bench.call("dispatch_child", &json!({"session_index": index, "workflow_id": "bare"})), &["33", "32"])
    }),
    ("SESSION_BUSY", || {
        let (bench, index) = sealed();
        let lock = fs::File::open(bench.folder("a").join(".session.lock")).unwrap();
        lock.lock().unwrap();
        let outcome = bench.call("get_workflow", &json!({"session_index": index}));
        said(outcome, &[&bench.folder("a").display().to_string(), "same call again"])
    }),
    ("WRITE_FAILED", || {
        let bench = Bench::with(|options, _| {
            options.key_dir = options.workspace.join("keys");
            options.state_dir = options.workspace.join("file/state");
            fs::write(options.workspace.join("file"), "").unwrap();
        });
        let path = bench.options.state_dir.display().to_string();
        said(bench.call("start_session", &json!({})), &[&path, "Nothing was changed"])
    }),
    ("SESSION_TOO_LARGE", || {
        let bench = Bench::with(|_, settings| settings.max_session_bytes = 2000);
        let index = bench.start("a");
        let more = json!({"activity_id": "plan", "variables_changed": {"note": "x".repeat(2000)}});
        said(
            with_index(&bench, &index, "next_activity", more),
            &["bytes", "2000", "respond_checkpoint", "__terminal__"],
        )
    }),
];

fn sealed() -> (Bench, String) {
    let bench = Bench::new();
    let index = bench.start("a");
    (bench, index)
}

fn append(path: &Path, text: &str) {
    let mut bytes = fs::read(path).unwrap();
    bytes.extend_from_slice(text.as_bytes());
    fs::write(path, bytes).unwrap();
}

/// The command that a refusal names; where the temporary directory has a space in its name, the path has quotes.
fn operate(command: &str, folder: &Path) -> String {
    let folder = folder.display().to_string();
    let quote = if folder.contains(' ') { "'" } else { "" };
    format!("workflow-server session {command} {quote}{folder}{quote}")
}

fn mismatch(bench: &Bench, index: &str, slug: &str, reason: &str) -> Provoked {
    let outcome = bench.call("get_workflow", &json!({"session_index": index}));
    let details = &outcome.meta.as_ref().unwrap()["error"]["details"];
    assert_eq!(details["reason"], reason, "{}", outcome.text);
    let (sealed, found) = (details["sealed"].as_str().unwrap(), details["found"].as_str().unwrap());
    let must = [
        format!("reason: {reason}"),
        operate("adopt", &bench.folder(slug)),
        sealed.to_owned(),
        found.to_owned(),
        "or restore session.json and .session-token together".to_owned(),
    ];
    Provoked { must: must.to_vec(), outcome }
}

/// A call that needs the key.
fn key(bench: &Bench) -> Provoked {
    let outcome = bench.call("start_session", &json!({"workflow_id": "walk", "planning_slug": "a"}));
    let path = bench.options.key_dir.display().to_string();
    said(outcome, &[&path, "WORKFLOW_SERVER_KEY_DIR", "WORKFLOW_SERVER_STATE_DIR"])
}

fn write_private(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }
}

const DEFINITIONS: &[Case] = &[
    ("WORKFLOW_NOT_FOUND", || {
        let none = json!({"workflow_id": "none", "planning_slug": "a"});
        said(fresh("start_session", &none), &["none", "walk", "bare", "list_workflows"])
    }),
    ("WORKFLOW_INVALID", || {
        let broken = json!({"workflow_id": "broken", "planning_slug": "a"});
        said(fresh("start_session", &broken), &["broken", "version"])
    }),
    ("ACTIVITY_NOT_FOUND", || {
        let (_, _, outcome) = on("", "next_activity", json!({"activity_id": "none"}));
        said(outcome, &["`none`", "walk", "plan, ship, tidy, rest, complete", "__terminal__", "next_activity"])
    }),
    ("TECHNIQUE_NOT_FOUND", || {
        said(on("plan", "get_technique", json!({"step_id": "gone"})).2, &["no-such-technique", "gone"])
    }),
    ("TECHNIQUE_NOT_FOUND", || {
        let bench = Bench::new();
        let index = bench.start_of("lost", "a");
        said(bench.call("get_technique", &json!({"session_index": index})), &["nowhere"])
    }),
    ("NO_WORKFLOW_TECHNIQUE", || {
        let bench = Bench::new();
        let index = bench.start_of("bare", "a");
        said(bench.call("get_technique", &json!({"session_index": index})), &["bare", "next_activity"])
    }),
    ("NO_ACTIVITY_TECHNIQUE", || said(on("ship", "get_technique", json!({})).2, &["ship", "step_id"])),
    ("STEP_NOT_FOUND", || {
        said(on("plan", "get_technique", json!({"step_id": "none"})).2, &["'none'", "plan", "hello", "confirm", "gone"])
    }),
    ("STEP_HAS_NO_TECHNIQUE", || {
        said(on("plan", "get_technique", json!({"step_id": "confirm"})).2, &["'confirm'", "plan", "hello", "gone"])
    }),
    ("RESOURCE_NOT_FOUND", || {
        said(on("", "get_resource", json!({"resource_id": "note"})).2, &["note", "workflow walk", "notes"])
    }),
    ("SECTION_NOT_FOUND", || {
        said(on("", "get_resource", json!({"resource_id": "notes#ton"})).2, &["#ton", "#notes", "#tone"])
    }),
];

const STATE: &[Case] = &[
    ("NO_CURRENT_ACTIVITY", || {
        said(on("", "get_activity", json!({"context_tokens": 1})).2, &["next_activity", "\"plan\""])
    }),
    ("SESSION_TERMINAL", || {
        let (_, _, outcome) = on("__terminal__", "get_activity", json!({"context_tokens": 1}));
        said(outcome, &["__terminal__", "completed", "nothing is left to deliver"])
    }),
    ("ACTIVITY_MOVED", || {
        let (_, _, outcome) = on("ship", "get_technique", json!({"activity_id": "plan"}));
        said(outcome, &["'plan'", "'ship'", "Do not retry without", "report"])
    }),
    ("CHECKPOINT_ACTIVE", || {
        let (handle, outcome) = waiting("confirm", 0, "get_workflow", json!({}));
        said(outcome, &["`confirm`", "`plan`", "since 2026-", &handle, "respond_checkpoint"])
    }),
    ("CHECKPOINT_ALREADY_ACTIVE", || {
        let (handle, outcome) = waiting("confirm", 0, "yield_checkpoint", json!({"checkpoint_id": "timed"}));
        said(outcome, &["`confirm`", &handle])
    }),
    ("CHECKPOINT_STILL_ACTIVE", || {
        let (handle, outcome) = waiting("confirm", 0, "resume_checkpoint", json!({}));
        said(outcome, &["`confirm`", &handle])
    }),
    ("NO_ACTIVE_CHECKPOINT", || {
        let (_, index, outcome) = on("plan", "present_checkpoint", json!({}));
        said(outcome, &[&index, "a worker must yield first"])
    }),
    ("CHECKPOINT_NOT_FOUND", || {
        let (_, _, outcome) = on("plan", "yield_checkpoint", json!({"checkpoint_id": "none"}));
        said(outcome, &["`none`", "`plan`", "confirm, timed, misnamed", "message", "two options"])
    }),
    ("CHECKPOINT_IS_DECLARED", || {
        let own = json!({"checkpoint_id": "confirm#1", "message": "Why?"});
        said(on("plan", "yield_checkpoint", own).2, &["`confirm#1`", "`confirm`", "`plan`"])
    }),
    ("CHECKPOINT_ID_REUSED", || {
        let bench = Bench::new();
        let index = bench.start("a");
        bench.go(&index, "plan");
        let ask = |message: &str| {
            let options = json!([{"id": "a", "label": "A"}, {"id": "b", "label": "B"}]);
            with_index(
                &bench,
                &index,
                "yield_checkpoint",
                json!({"checkpoint_id": "own", "message": message, "options": options}),
            )
        };
        ask("One?");
        bench.wait(3000);
        bench.ok("respond_checkpoint", &json!({"session_index": index, "option_id": "a"}));
        said(ask("Two?"), &["`own`", "`plan`", "new checkpoint_id"])
    }),
    ("CHECKPOINT_DEFINITION_INVALID", || {
        let (_, outcome) = waiting("misnamed", 3000, "respond_checkpoint", json!({"auto_advance": true}));
        said(outcome, &["`misnamed`", "`plan`", "`nothing`"])
    }),
    ("CHECKPOINT_HANDLE_INVALID", || {
        let (bench, index, _) = on("plan", "get_workflow_status", json!({}));
        let forged = format!("cp1.{index}.OoYG17oXA0k83PJBm9bC-4");
        said(bench.call("present_checkpoint", &json!({"checkpoint_handle": forged})), &[&forged, "<checkpoint_yield>"])
    }),
    ("CHECKPOINT_HANDLE_SPENT", || {
        let bench = Bench::new();
        let index = bench.start("a");
        bench.go(&index, "plan");
        let handle = bench.stop(&index, "confirm");
        bench.wait(3000);
        bench.ok("respond_checkpoint", &json!({"checkpoint_handle": handle, "option_id": "go"}));
        let answer = json!({"checkpoint_handle": handle, "option_id": "stop"});
        said(bench.call("respond_checkpoint", &answer), &["`confirm`", "`go`", " at 2026-"])
    }),
    ("CHECKPOINT_TOO_FAST", || {
        let (_, outcome) = waiting("confirm", 1000, "respond_checkpoint", json!({"option_id": "wrong"}));
        said(outcome, &["1000 ms", "3000 ms", "in 2 s", "to the user first"])
    }),
    ("AUTO_ADVANCE_TOO_EARLY", || {
        let (_, outcome) = waiting("timed", 4000, "respond_checkpoint", json!({"auto_advance": true}));
        said(outcome, &["4000 ms", "9000 ms", "in 5 s"])
    }),
    ("CHECKPOINT_OPTION_INVALID", || {
        let (_, outcome) = waiting("confirm", 3000, "respond_checkpoint", json!({"option_id": "wrong"}));
        said(outcome, &["`wrong`", "go, stop"])
    }),
    ("AUTO_ADVANCE_UNAVAILABLE", || {
        let (_, outcome) = waiting("confirm", 3000, "respond_checkpoint", json!({"auto_advance": true}));
        said(outcome, &["defaultOption", "autoAdvanceMs", "option_id"])
    }),
    ("CHECKPOINT_NOT_CONDITIONAL", || {
        let (_, outcome) = waiting("confirm", 3000, "respond_checkpoint", json!({"condition_not_met": true}));
        said(outcome, &["`condition`", "option_id"])
    }),
    ("BATCH_FULL", || {
        let bench = Bench::with(|_, settings| settings.batch_max_activities = 1.0);
        let index = bench.start("a");
        let take = json!({"context_tokens": 200_000, "agent_id": "w1"});
        bench.go(&index, "plan");
        with_index(&bench, &index, "get_activity", take.clone());
        bench.go(&index, "ship");
        said(with_index(&bench, &index, "get_activity", take), &["activity_cap", "1 of 1", "Stop", "new agent_id"])
    }),
    ("VARIABLE_NOT_FOUND", || {
        let (_, _, outcome) = on("", "inspect_session", json!({"view": "variables", "variable": "is_redy"}));
        said(outcome, &["'is_redy'", "is_ready"])
    }),
];

/// Provokes a refusal and holds its text and `_meta.error` against what they must be.
fn check((expected, provoke): &Case) {
    let Provoked { outcome, must } = provoke();
    assert_eq!(code(&outcome), *expected, "{}", outcome.text);
    for text in must {
        assert!(outcome.text.contains(&text), "{expected} does not say {text:?}: {}", outcome.text);
    }
    if outcome.is_error {
        let error = &outcome.meta.as_ref().unwrap()["error"];
        let members: Vec<&str> = error.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(members, ["code", "retryable", "details"], "{expected}");
        assert_eq!(error["retryable"], RETRYABLE.contains(expected), "{expected}");
        assert!(error["details"].is_object(), "{expected}");
    }
}

#[test]
fn refusals_of_arguments() {
    ARGUMENTS.iter().for_each(check);
}

#[test]
fn refusals_of_opening_and_writing() {
    OPENING.iter().for_each(check);
}

#[test]
fn refusals_of_definitions() {
    DEFINITIONS.iter().for_each(check);
}

#[test]
fn refusals_of_state() {
    STATE.iter().for_each(check);
}

#[test]
fn no_code_of_the_catalogue_is_left_out() {
    let provoked: BTreeSet<&str> =
        [ARGUMENTS, OPENING, DEFINITIONS, STATE].iter().flat_map(|cases| cases.iter()).map(|case| case.0).collect();
    let excused: BTreeSet<&str> = NOT_BY_CALLS.iter().map(|(code, _)| *code).collect();
    for code in CATALOGUE.iter().filter(|code| !(cfg!(not(unix)) && ["KEY_PERMISSIONS", "PATH_ESCAPE"].contains(code)))
    {
        assert!(provoked.contains(code) || excused.contains(code), "{code} is neither provoked nor excused");
    }
    assert!(provoked.iter().all(|code| CATALOGUE.contains(code)));
}
