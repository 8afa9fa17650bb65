//! Reading, as a table: what is sent, what is read, what is said.

use proptest::prelude::*;
use serde_json::{Value, json};
use workflow_engine::{Annotations, Arguments, Call, Environment, Refusal, Reply, Settings, Target, Tool};

/// A tool with a parameter of every kind that the real ones have.
static SAMPLE: Tool = Tool {
    name: "sample",
    title: "Sample",
    description: "",
    annotations: Annotations { read_only: true, idempotent: true },
    gated: false,
    retryable: false,
    traced: false,
    schema,
    target: no_target,
    run: no_run,
};

static BARE: Tool = Tool {
    name: "bare",
    title: "Bare",
    description: "",
    annotations: Annotations { read_only: true, idempotent: true },
    gated: false,
    retryable: false,
    traced: false,
    schema: || json!({"type": "object", "properties": {}, "additionalProperties": false}),
    target: no_target,
    run: no_run,
};

fn no_target(_: &Environment<'_>, _: &Arguments) -> Result<Target, Refusal> {
    Err(Refusal::new("INTERNAL", "not run"))
}

fn no_run(_: &mut Call<'_>) -> Result<Reply, Refusal> {
    Err(Refusal::new("INTERNAL", "not run"))
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "session_index": {"type": "string", "pattern": "^[A-Z2-7]{6}$"},
            "checkpoint_handle": {"type": "string"},
            "planning_slug": {"type": "string"},
            "agent_id": {"type": "string", "minLength": 1},
            "user_request": {"type": "string"},
            "transition_condition": {"type": "string"},
            "context_tokens": {"type": "integer", "minimum": 1},
            "full": {"type": "boolean"},
            "auto_advance": {"type": "boolean"},
            "condition_not_met": {"type": "boolean"},
            "context_mode": {"type": "string", "enum": ["persistent", "fresh"]},
            "variables_changed": {"type": "object", "additionalProperties": true},
            "usage": {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": false},
            "trace_tokens": {"type": "array", "items": {"type": "string"}},
            "options": {"type": "array", "minItems": 2, "items": {"type": "string"}},
            "step_manifest": {"type": "array", "items": {
                "type": "object",
                "properties": {"step_id": {"type": "string", "minLength": 1}, "output": {"anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": true}]}},
                "required": ["step_id", "output"],
                "additionalProperties": false
            }}
        },
        "required": ["session_index"],
        "additionalProperties": false
    })
}

fn read(tool: &Tool, sent: &serde_json::Map<String, Value>) -> Result<Arguments, Refusal> {
    super::read(tool, sent, &Settings::default())
}

fn with_index(mut arguments: Value) -> Value {
    if let Value::Object(members) = &mut arguments {
        members.entry("session_index").or_insert_with(|| "ABCDE2".into());
    }
    arguments
}

/// `sent` is read as `expected`, with as many `W_ARGUMENT_READ` warnings as `warned`.
#[track_caller]
fn check(sent: Value, expected: Value, warned: usize) {
    let (sent, expected) = (with_index(sent), with_index(expected));
    let arguments = read(&SAMPLE, sent.as_object().unwrap()).unwrap_or_else(|refusal| panic!("{}", refusal.text()));
    assert_eq!(Value::Object(arguments.read), expected);
    assert_eq!(Value::Object(arguments.sent), sent);
    assert_eq!(arguments.warnings.len(), warned, "{:?}", arguments.warnings);
    assert!(arguments.warnings.iter().all(|warning| warning.code == "W_ARGUMENT_READ"));
}

/// `sent` is refused with `code`, and the text says each of `parts`.
#[track_caller]
fn check_refused(sent: Value, code: &str, parts: &[&str]) {
    let refusal = read(&SAMPLE, with_index(sent).as_object().unwrap()).expect_err("refused");
    assert_eq!(refusal.code, code, "{}", refusal.text());
    for part in parts {
        assert!(refusal.text().contains(part), "{part:?} is not in {:?}", refusal.text());
    }
}

#[test]
fn null_is_absent_without_a_word() {
    check(json!({"agent_id": null, "variables_changed": null}), json!({}), 0);
}

#[test]
fn a_blank_text_is_absent_with_a_warning() {
    check(json!({"user_request": "", "context_mode": ""}), json!({}), 2);
}

#[test]
fn a_blank_condition_is_a_value() {
    check(json!({"transition_condition": ""}), json!({"transition_condition": ""}), 0);
}

#[test]
fn a_blank_identity_is_refused() {
    for name in ["planning_slug", "agent_id", "checkpoint_handle"] {
        check_refused(json!({name: ""}), "INVALID_PARAMS", &[name, "must not be empty"]);
    }
}

#[test]
fn numbers_and_booleans_may_be_texts() {
    check(json!({"context_tokens": "200000", "full": "true"}), json!({"context_tokens": 200_000, "full": true}), 2);
    check(json!({"context_tokens": 200_000.0}), json!({"context_tokens": 200_000}), 0);
    check_refused(json!({"context_tokens": "many"}), "INVALID_PARAMS", &["`context_tokens`", "whole number", "many"]);
    check_refused(json!({"context_tokens": 0}), "INVALID_PARAMS", &["whole number ≥ 1"]);
    check_refused(json!({"context_tokens": 1.5}), "INVALID_PARAMS", &["whole number", "1.5"]);
}

#[test]
fn lists_and_objects_may_be_texts() {
    let manifest = json!([{"step_id": "a", "output": "done"}]);
    check(json!({"step_manifest": manifest.to_string()}), json!({"step_manifest": manifest}), 1);
    check(json!({"variables_changed": r#"{"n": "1"}"#}), json!({"variables_changed": {"n": "1"}}), 1);
    check_refused(json!({"step_manifest": "[{"}), "INVALID_PARAMS", &["`step_manifest`", "a list"]);
}

#[test]
fn free_values_are_taken_as_sent() {
    let free =
        json!({"count": "1", "flag": "true", "list": "[1]", "none": null, "blank": "", "__proto__": {"a": null}});
    check(json!({"variables_changed": free.clone()}), json!({"variables_changed": free}), 0);
    check(json!({"usage": {"n": "1", "other": null}}), json!({"usage": {"n": "1", "other": null}}), 0);
}

#[test]
fn a_manifest_output_may_be_an_object() {
    let manifest = json!([{"step_id": "a", "output": {"path": "x.md", "n": 1, "none": null}}]);
    check(json!({"step_manifest": manifest}), json!({"step_manifest": manifest}), 0);
}

#[test]
fn a_blank_output_is_a_value_and_a_blank_step_is_refused() {
    check(
        json!({"step_manifest": [{"step_id": "a", "output": ""}]}),
        json!({"step_manifest": [{"step_id": "a", "output": ""}]}),
        0,
    );
    check_refused(
        json!({"step_manifest": [{"step_id": "", "output": "x"}]}),
        "INVALID_PARAMS",
        &["`step_manifest[0].step_id` must not be empty"],
    );
}

#[test]
fn a_value_of_no_allowed_kind_hears_of_all_of_them() {
    for (output, shown) in [(json!(5), "received 5"), (json!(["a"]), "received a list of 1")] {
        check_refused(
            json!({"step_manifest": [{"step_id": "a", "output": output}]}),
            "INVALID_PARAMS",
            &["`step_manifest[0].output` expected a text or an object", shown],
        );
    }
    check_refused(
        json!({"step_manifest": [{"step_id": "a", "output": null}]}),
        "INVALID_PARAMS",
        &["`step_manifest[0].output` is required: a text or an object"],
    );
}

#[test]
fn manifest_entries_are_read_leniently_too() {
    check_refused(
        json!({"step_manifest": [{"step_id": "a"}, {"step": "b", "output": "x"}]}),
        "INVALID_PARAMS",
        &["`step_manifest[0].output` is required", "`step_manifest[1].step` is not known; did you mean `step_id`?"],
    );
    check_refused(
        json!({"step_manifest": [{"step_id": 7, "output": null}]}),
        "INVALID_PARAMS",
        &["`step_manifest[0].step_id` expected a text; received 7", "`step_manifest[0].output` is required"],
    );
}

#[test]
fn trap_03_14_13_false_is_no_mode() {
    check(json!({"auto_advance": false}), json!({}), 0);
    check(json!({"auto_advance": "false", "condition_not_met": "False"}), json!({}), 0);
    check(json!({"auto_advance": true}), json!({"auto_advance": true}), 0);
    check(json!({"condition_not_met": "true"}), json!({"condition_not_met": true}), 1);
    check(json!({"auto_advance": ""}), json!({}), 1);
    for other in [json!("yes"), json!(1), json!("TRUE"), json!([])] {
        check_refused(json!({"auto_advance": other}), "INVALID_PARAMS", &["`auto_advance` expected true"]);
    }
}

#[test]
fn unknown_names_are_refused_with_the_nearest() {
    check_refused(
        json!({"agentId": "w1"}),
        "INVALID_PARAMS",
        &[
            "INVALID_PARAMS: MCP error -32602: Input validation error: Invalid arguments for tool sample: ",
            "`agentId` is not known; did you mean `agent_id`?",
            "known: session_index, checkpoint_handle",
        ],
    );
    check_refused(json!({"session_token": "x"}), "INVALID_PARAMS", &["send session_index"]);
    let refusal = read(&BARE, json!({"verbose": true}).as_object().unwrap()).expect_err("refused");
    assert!(refusal.text().contains("bare takes no parameters"), "{}", refusal.text());
}

#[test]
fn enums_say_what_is_allowed() {
    check_refused(json!({"context_mode": "full"}), "INVALID_PARAMS", &[r#"one of "persistent", "fresh""#, r#""full""#]);
}

#[test]
fn too_few_entries_are_refused() {
    check_refused(json!({"options": ["a"]}), "INVALID_PARAMS", &["at least 2 entries"]);
}

#[test]
fn a_session_index_has_its_own_code() {
    for bad in ["abcde2", "ABCDE1", "ABCDEFG", "cp1.ABCDE2.x"] {
        check_refused(
            json!({"session_index": bad}),
            "INVALID_SESSION_INDEX",
            &["^[A-Z2-7]{6}$", "as returned by start_session", bad],
        );
    }
    check_refused(json!({"session_index": "bad", "full": 3}), "INVALID_PARAMS", &["`session_index` must", "`full`"]);
    let refusal = read(&SAMPLE, json!({}).as_object().unwrap()).expect_err("refused");
    assert_eq!(refusal.code, "INVALID_PARAMS");
    assert!(refusal.text().contains("`session_index` is required"), "{}", refusal.text());
}

#[test]
fn all_causes_are_reported() {
    check_refused(
        json!({"full": 3, "context_mode": "x", "nope": 1}),
        "INVALID_PARAMS",
        &["`full`", "`context_mode`", "`nope`"],
    );
}

#[test]
fn an_index_in_the_handle_is_an_index() {
    let sent = json!({"checkpoint_handle": "NU7LON"});
    let arguments = read(&SAMPLE, sent.as_object().unwrap());
    assert!(arguments.is_err(), "session_index is required by this tool");
    let sent = json!({"checkpoint_handle": "ABCDE2", "session_index": "ABCDE2"});
    let arguments = read(&SAMPLE, sent.as_object().unwrap()).unwrap();
    assert_eq!(Value::Object(arguments.read), json!({"session_index": "ABCDE2"}));
    assert_eq!(arguments.warnings[0].code, "W_HANDLE_WAS_INDEX");
    check_refused(
        json!({"checkpoint_handle": "NU7LON", "session_index": "ABCDE2"}),
        "CHECKPOINT_ADDRESS_CONFLICT",
        &["NU7LON", "ABCDE2"],
    );
    check(json!({"checkpoint_handle": "cp1.ABCDE2.x"}), json!({"checkpoint_handle": "cp1.ABCDE2.x"}), 0);
}

#[test]
fn sizes_are_limited() {
    let text = "x".repeat(256 * 1024);
    check(json!({"user_request": text}), json!({"user_request": text}), 0);
    check_refused(
        json!({"user_request": format!("{text}x")}),
        "PARAM_TOO_LARGE",
        &["user_request", "262145", "262144"],
    );
    check_refused(json!({"trace_tokens": vec!["t"; 1001]}), "PARAM_TOO_LARGE", &["trace_tokens", "1001"]);
}

#[test]
fn nesting_is_limited() {
    let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!({"a": inner}));
    check(json!({"variables_changed": nested(64)}), json!({"variables_changed": nested(64)}), 0);
    check_refused(json!({"variables_changed": nested(65)}), "PARAM_TOO_LARGE", &["variables_changed", "64"]);
    check_refused(json!({"variables_changed": nested(65).to_string()}), "PARAM_TOO_LARGE", &["64"]);
}

#[test]
fn every_pattern_of_the_tools_is_one_that_is_checked() {
    fn patterns(schema: &Value, found: &mut Vec<String>) {
        if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
            found.push(pattern.to_owned());
        }
        match schema {
            Value::Object(members) => members.values().for_each(|below| patterns(below, found)),
            Value::Array(list) => list.iter().for_each(|below| patterns(below, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    for tool in workflow_engine::TOOLS {
        patterns(&(tool.schema)(), &mut found);
    }
    found.retain(|pattern| pattern != super::shape::SESSION_INDEX_PATTERN);
    assert!(found.is_empty(), "{found:?}");
}

/// Any JSON value of moderate size.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[ -~é\u{1F600}]{0,12}".prop_map(Value::from),
        Just(json!("ABCDE2")),
        Just(json!("[{\"step_id\": 1}]")),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[a-z_]{0,8}", inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Whatever is sent to whatever tool is read or refused; what was read can be read again without a word.
    #[test]
    fn any_arguments_are_read_or_refused(number in 0_usize..18, values in prop::collection::vec(any_json(), 24)) {
        let tool = workflow_engine::TOOLS[number % workflow_engine::TOOLS.len()];
        let schema = (tool.schema)();
        let names = schema["properties"].as_object().cloned().unwrap_or_default();
        let sent: serde_json::Map<String, Value> = names.keys().cloned().zip(values).collect();
        if let Ok(arguments) = read(tool, &sent) {
            let again = read(tool, &arguments.read).expect("what was read is valid");
            prop_assert_eq!(&again.read, &arguments.read);
            prop_assert!(again.warnings.is_empty(), "{:?}", again.warnings);
        }
    }
}
