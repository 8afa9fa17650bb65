//! The emitter's rules of spec 02 §4.1, each with its exact text.

use serde_json::{Value, json};
use workflow_yaml::{parse, scalar, to_string};

/// Checks the text of a value, and that the text reads back as the value.
#[track_caller]
fn writes(value: &Value, expected: &str) {
    let text = to_string(value);
    assert_eq!(text, expected);
    let document = parse(&text);
    assert_eq!(document.problems, [], "{text}");
    assert_eq!(&document.root.to_value(), value, "{text}");
}

#[test]
fn scalars_at_the_root() {
    writes(&json!(null), "null\n");
    writes(&json!(true), "true\n");
    writes(&json!(1.5), "1.5\n");
    writes(&json!(1e21), "1e+21\n");
    writes(&json!("text"), "text\n");
    writes(&json!(""), "\"\"\n");
    writes(&json!({}), "{}\n");
    writes(&json!([]), "[]\n");
    writes(&json!("a\nb"), "|-\n  a\n  b\n");
    writes(&json!("--- a\nb\n"), "|\n  --- a\n  b\n");
    writes(&json!("  a\nb"), "\"  a\\nb\"\n");
    writes(&json!("# a\nb"), "|-\n  # a\n  b\n");
}

#[test]
fn collections_in_block_style() {
    writes(
        &json!({"a": {"b": {"c": 1}, "d": []}, "e": ["x", {}], "f": {}}),
        "a:\n  b:\n    c: 1\n  d: []\ne:\n  - x\n  - {}\nf: {}\n",
    );
    writes(&json!([["a", "b"], [["c"]], []]), "- - a\n  - b\n- - - c\n- []\n");
    writes(
        &json!([{"a": 1, "b": {"c": 2}, "d": ["e"]}, {"f": null}]),
        "- a: 1\n  b:\n    c: 2\n  d:\n    - e\n- f: null\n",
    );
    writes(&json!({"z": 1, "10": 2, "a": 3}), "z: 1\n\"10\": 2\na: 3\n");
}

#[test]
fn numbers_as_ecmascript() {
    assert_eq!(
        to_string(&json!([1.0, -0.0, 1e-7, 1e20, u64::MAX])),
        "- 1\n- 0\n- 1e-7\n- 100000000000000000000\n- 18446744073709551615\n"
    );
}

#[test]
fn literal_blocks_with_chomping() {
    writes(&json!({"a": "x\ny", "b": 1}), "a: |-\n  x\n  y\nb: 1\n");
    writes(&json!({"a": "x\ny\n", "b": 1}), "a: |\n  x\n  y\nb: 1\n");
    writes(&json!({"a": "x\n", "b": 1}), "a: |\n  x\nb: 1\n");
    writes(&json!({"a": "x\n\n", "b": 1}), "a: |+\n  x\n\nb: 1\n");
    writes(&json!({"a": "x\n\n\n", "b": 1}), "a: |+\n  x\n\n\nb: 1\n");
    writes(&json!({"a": "x\n\n  y\n\nz"}), "a: |-\n  x\n\n    y\n\n  z\n");
    writes(&json!({"a": "\nx\n"}), "a: |\n\n  x\n");
    writes(&json!({"a": "x \n y\t\n---\n...\n# z\n"}), "a: |\n  x \n   y\t\n  ---\n  ...\n  # z\n");
    writes(
        &json!(["x\ny\n", ["z\nw"], {"k": "v\nw\n"}]),
        "- |\n  x\n  y\n- - |-\n    z\n    w\n- k: |\n    v\n    w\n",
    );
}

#[test]
fn literal_blocks_with_an_indentation_indicator() {
    writes(&json!({"a": " x\ny"}), "a: |2-\n   x\n  y\n");
    writes(&json!({"a": "\n x\n"}), "a: |2\n\n   x\n");
    writes(&json!({"a": " x\n\n", "b": 1}), "a: |2+\n   x\n\nb: 1\n");
    writes(&json!({"a": "   \nx"}), "a: |2-\n     \n  x\n");
    writes(&json!([" x\ny", [" x\n"], {"k": " v\n"}]), "- |2-\n   x\n  y\n- - |2\n     x\n- k: |2\n     v\n");
}

#[test]
fn texts_that_a_literal_block_cannot_hold() {
    writes(&json!({"a": "x\n  "}), "a: \"x\\n  \"\n");
    writes(&json!({"a": "x\n\t\n"}), "a: \"x\\n\\t\\n\"\n");
    writes(&json!({"a": "\n"}), "a: \"\\n\"\n");
    writes(&json!({"a": "\n\n", "b": 1}), "a: \"\\n\\n\"\nb: 1\n");
    writes(&json!({"a": "\tx\ny"}), "a: \"\\tx\\ny\"\n");
    writes(&json!({"a": "x\r\ny"}), "a: \"x\\r\\ny\"\n");
    writes(&json!({"a": "x\n\u{85}y"}), "a: \"x\\n\\u0085y\"\n");
    writes(&json!({"a": "x\n\u{7f}y"}), "a: \"x\\n\\u007fy\"\n");
}

#[test]
fn the_text_ends_with_exactly_one_newline() {
    // Kept newlines would be extra newlines at the end of the text.
    writes(&json!({"a": "x\n\n"}), "a: \"x\\n\\n\"\n");
    writes(&json!({"a": ["y\n\n", {"b": "x\n\n"}]}), "a:\n  - |+\n    y\n\n  - b: \"x\\n\\n\"\n");
    writes(&json!("x\n\n"), "\"x\\n\\n\"\n");
}

#[test]
fn keys_follow_the_rules_of_values() {
    writes(
        &json!({"": 1, "null": 2, "1.0": 3, "a b": 4, "a: b": 5, "x\ny": 6, "\"q\"": 7, "<<": 8, "-": 9, "a\tb": 10}),
        "\"\": 1\n\"null\": 2\n\"1.0\": 3\na b: 4\n\"a: b\": 5\n\"x\\ny\": 6\n'\"q\"': 7\n<<: 8\n\"-\": 9\n\"a\\tb\": 10\n",
    );
}

#[test]
fn keys_too_long_for_a_simple_key() {
    let key = "é".repeat(1500);
    writes(&json!({"a": {key.clone(): "v"}}), &format!("a:\n  ? {key}\n  : v\n"));
    writes(&json!([{key.clone(): {"b": 1}, "c": 2}]), &format!("- ? {key}\n  :\n    b: 1\n  c: 2\n"));
    writes(&json!({key.clone(): ["x"], "d": "l\nm"}), &format!("? {key}\n:\n  - x\nd: |-\n  l\n  m\n"));
    writes(&json!({key.clone(): "l\n m\n"}), &format!("? {key}\n: |\n  l\n   m\n"));
    for length in 990..1030 {
        let value = json!({"k".repeat(length): 1, "\n".repeat(length / 2): 2});
        assert_eq!(parse(&to_string(&value)).root.to_value(), value);
    }
}

#[test]
fn long_lines_are_not_folded() {
    let long = "word ".repeat(500) + "end";
    writes(&json!({"a": long}), &format!("a: {long}\n"));
}

#[test]
fn scalars_for_one_line() {
    assert_eq!(scalar("plain"), "plain");
    assert_eq!(scalar("two\nlines"), "\"two\\nlines\"");
}
