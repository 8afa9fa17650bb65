//! The dialect of spec 01 §2, row by row, and the limits.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use workflow_yaml::{Document, Limits, Severity, parse, parse_with, to_string};

/// Checks that a text reads without any problem as the given value.
#[track_caller]
fn reads(text: &str, expected: &Value) {
    let document = parse(text);
    assert_eq!(document.problems, [], "{text:?}");
    assert_eq!(&document.root.to_value(), expected, "{text:?}");
}

/// Checks that a text has exactly the given problems, each as `severity: message @ text under the span`.
#[track_caller]
fn complains(text: &str, expected: &[&str]) -> Document {
    let document = parse(text);
    let problems: Vec<String> = document
        .problems
        .iter()
        .map(|problem| {
            let severity = match problem.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            };
            format!("{severity}: {} @ {:?}", problem.message, problem.span.slice(text).expect("spans lie in the text"))
        })
        .collect();
    assert_eq!(problems, expected, "{text:?}");
    document
}

#[test]
fn plain_scalars_follow_the_core_schema() {
    reads("[yes, no, on, off, y, n]", &json!(["yes", "no", "on", "off", "y", "n"]));
    reads("[true, True, TRUE, false, False, FALSE]", &json!([true, true, true, false, false, false]));
    reads("[~, null, Null, NULL]", &json!([null, null, null, null]));
    reads("- \n- a\n-\n", &json!([null, "a", null]));
    reads("a:\nb: 1\n", &json!({"a": null, "b": 1}));
    reads("[012, 0o17, 0x1F]", &json!([12, 15, 31]));
    reads("[1e3, .5, 1.0]", &json!([1000, 0.5, 1]));
    reads("[1_000, 2026-01-02]", &json!(["1_000", "2026-01-02"]));
    reads("[9223372036854775807, 18446744073709551615]", &json!([i64::MAX, u64::MAX]));
    reads("['1', \"true\", 'null']", &json!(["1", "true", "null"]));
    complains("a: .inf\n", &["warning: `.inf` is not a finite number and is kept as a string @ \".inf\""]);
}

#[test]
fn merge_keys_are_ordinary_keys() {
    reads("a: &b {x: 1}\nc:\n  <<: *b\n  y: 2\n", &json!({"a": {"x": 1}, "c": {"<<": {"x": 1}, "y": 2}}));
}

#[test]
fn aliases_copy_their_anchor() {
    reads("- &a [1, &b two]\n- *a\n- *b\n", &json!([[1, "two"], [1, "two"], "two"]));
    reads("&k key: v\nother: *k\n", &json!({"key": "v", "other": "key"}));
    reads("a: &k key\n*k : v\n", &json!({"a": "key", "key": "v"}));
    reads("- &a 1\n- &a 2\n- *a\n", &json!([1, 2, 2]));
    let document = complains("a: *nope\nb: 1\n", &["error: unknown alias `*nope` @ \"*nope\""]);
    assert_eq!(document.root.to_value(), json!({"a": null, "b": 1}));
    complains("&a [*a]", &["error: the alias stands inside the value it refers to @ \"*a\""]);
}

#[test]
fn tags() {
    let document = complains(
        "a: !foo bar\nb: !foo 12\n",
        &["warning: unknown tag `!foo` @ \"!foo\"", "warning: unknown tag `!foo` @ \"!foo\""],
    );
    assert!(!document.has_errors());
    assert_eq!(document.root.to_value(), json!({"a": "bar", "b": "12"}));
    reads("[!!str 1, !!int '3', !!float 1, !!bool \"true\", !!null '', ! 12]", &json!(["1", 3, 1, true, null, "12"]));
    reads("a: !!str\nb: !!map {}\nc: !!seq []\n", &json!({"a": "", "b": {}, "c": []}));
    reads("!<tag:yaml.org,2002:str> 1", &json!("1"));
    reads("%TAG !y! tag:yaml.org,2002:\n---\n!y!str 1\n", &json!("1"));
    let binary = complains("!!binary aGk=", &["warning: unknown tag `!!binary` @ \"!!binary\""]);
    assert_eq!(binary.root.to_value(), json!("aGk="));
    complains("a: !thing {b: 1}\n", &["warning: unknown tag `!thing` @ \"!thing\""]);
    complains("!!seq {a: 1}", &["warning: the value does not fit the tag `!!seq` @ \"!!seq\""]);
    complains("!!int x", &["warning: the value does not fit the tag `!!int` @ \"!!int\""]);
}

#[test]
fn duplicate_keys_are_errors_at_the_second_key() {
    let text = "a: 1\nb: {c: 1, c: 2}\n'a': 3\nd: 4\n";
    let document = complains(text, &["error: duplicate key `c` @ \"c\"", "error: duplicate key `a` @ \"'a'\""]);
    assert_eq!(document.problems[1].span.start, text.find("'a'").unwrap());
    assert_eq!(document.root.to_value(), json!({"a": 1, "b": {"c": 1}, "d": 4}));
    complains("1: a\n'1': b\n", &["error: duplicate key `1` @ \"'1'\""]);
    complains("{a: 1, a}", &["error: duplicate key `a` @ \"a\""]);
}

#[test]
fn keys_become_strings() {
    reads("1: x\ntrue: y\n1.0e3: z\n0x10: w\n", &json!({"1": "x", "true": "y", "1000": "z", "16": "w"}));
    reads("? a\n: 1\n", &json!({"a": 1}));
    reads("? |\n  a\n  b\n: 1\n", &json!({"a\nb\n": 1}));
    reads("~: x\n", &json!({"": "x"}));
    reads(": x\n", &json!({"": "x"}));
    reads("? a\n", &json!({"a": null}));
    let document = complains(
        "? [a]\n: 1\nb: 2\n? {c: d}\n",
        &["error: a list or a map cannot be a key @ \"[a]\"", "error: a list or a map cannot be a key @ \"{c: d}\""],
    );
    assert_eq!(document.root.to_value(), json!({"b": 2}));
    complains("a: &x [1]\n*x : 2\n", &["error: a list or a map cannot be a key @ \"*x\""]);
}

#[test]
fn one_document_per_file() {
    reads("", &json!(null));
    reads("# only a comment\n", &json!(null));
    reads("\u{feff}", &json!(null));
    reads("---\n", &json!(null));
    reads("---\na: 1\n...\n", &json!({"a": 1}));
    let document = complains("a: 1\n---\nb: 2\n", &["error: a second document in one file @ \"---\""]);
    assert_eq!(document.root.to_value(), json!({"a": 1}));
    complains("a: 1\n...\nb\n", &["error: a second document in one file @ \"b\""]);
    complains("%YAML 1.1\n---\na\n", &["warning: YAML 1.1 is read as YAML 1.2 @ \"---\""]);
    reads("%YAML 1.2\n---\na\n", &json!("a"));
}

#[test]
fn what_breaks_the_syntax_is_named_and_pointed_at() {
    complains("a: b\n\tc: d\n", &["error: a tab where only spaces may stand @ \"\\t\""]);
    complains("a:\n\tb: c\n", &["error: a tab where only spaces may stand @ \"\\t\""]);
    complains("a: `b`\n", &["error: a value cannot start with ``` @ \"`\""]);
    complains("a: @b\n", &["error: a value cannot start with `@` @ \"@\""]);
    complains("a: %b\n", &["error: a value cannot start with `%` @ \"%\""]);
    complains("a: b: c\n", &["error: a `:` where no key can stand @ \":\""]);
    complains("a: 1\n b: 2\n", &["error: a `:` where no key can stand @ \":\""]);
    complains("a: 'b\n", &["error: unclosed quote @ \"'\""]);
    complains("a: [b\n", &["error: unclosed bracket '[' @ \"[\""]);
    complains("a: b\0c\n", &["error: the control character U+0000 is not allowed here @ \"\\0\""]);
    complains("a: \u{1}\n", &["error: the control character U+0001 is not allowed here @ \"\\u{1}\""]);
    let document = complains(
        "a: 1\nb: [x, \u{7f}]\nc: 1\n",
        &["error: the control character U+007F is not allowed here @ \"\\u{7f}\""],
    );
    assert_eq!(document.root.to_value(), json!({"a": 1, "b": ["x"]}));
    let document = complains("a: 1\nb: 'x\n", &["error: unclosed quote @ \"'\""]);
    assert_eq!(document.root.to_value(), json!({"a": 1, "b": null}));
}

#[test]
fn problems_of_all_kinds_are_collected() {
    const E: Severity = Severity::Error;
    const W: Severity = Severity::Warning;
    let document = parse("a: !x 1\na: *nope\n? [k]\n: .nan\nb: 'open\n");
    let severities: Vec<_> = document.problems.iter().map(|problem| problem.severity).collect();
    assert_eq!(severities, [W, E, E, E, W, E]);
}

#[test]
fn line_breaks_and_byte_order_marks() {
    reads("a: 1\r\nb: |\r\n  x\r\n  y\r\n", &json!({"a": 1, "b": "x\ny\n"}));
    reads("a: 1\rb: 2\r", &json!({"a": 1, "b": 2}));
    reads("\u{feff}a: 1\n", &json!({"a": 1}));
}

#[test]
fn the_length_of_the_text_is_limited() {
    let limits = Limits { bytes: 3, ..Limits::default() };
    assert!(!parse_with("a:1", &limits).has_errors());
    let document = parse_with("a: 1", &limits);
    assert_eq!(document.problems[0].message, "the text is longer than 3 bytes");
    assert!(document.root.is_null());
}

#[test]
fn deep_nesting_is_refused() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(!parse(&nested(128)).has_errors());
    for text in [nested(129), nested(100_000), "- ".repeat(100_000), "{a: ".repeat(100_000), "[{a: ".repeat(100_000)] {
        let document = parse(&text);
        assert_eq!(document.problems.len(), 1);
        assert_eq!(document.problems[0].message, "lists and maps nest deeper than 128 levels");
    }
    let block = (0..200).map(|level| format!("{}a:\n", " ".repeat(level))).collect::<Vec<_>>().concat();
    assert_eq!(parse(&block).problems[0].message, "lists and maps nest deeper than 128 levels");
    // A caller cannot ask for more than the stack bears.
    let limits = Limits { depth: usize::MAX, ..Limits::default() };
    assert!(!parse_with(&nested(512), &limits).has_errors());
    assert!(parse_with(&nested(513), &limits).has_errors());
}

#[test]
fn aliases_cannot_nest_deeper_than_the_limit() {
    // Each line wraps the one before a hundred times more.
    let mut text = "- &a0 x\n".to_owned();
    for level in 1..10 {
        let (open, close) = ("[".repeat(100), "]".repeat(100));
        writeln!(text, "- &a{level} {open}*a{}{close}", level - 1).expect("writing to a string does not fail");
    }
    let document = parse(&text);
    assert_eq!(document.problems[0].message, "lists and maps nest deeper than 128 levels");
}

#[test]
fn alias_bombs_are_refused_quickly() {
    let mut lists = "a0: &a0 lol\n".to_owned();
    let mut texts = format!("a0: &a0 {}\n", "x".repeat(100_000));
    for level in 1..20 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        writeln!(lists, "a{level}: &a{level} [{aliases}]").expect("writing to a string does not fail");
        writeln!(texts, "a{level}: &a{level} [{aliases}]").expect("writing to a string does not fail");
    }
    let started = Instant::now();
    let document = parse(&lists);
    assert_eq!(document.problems.len(), 1);
    assert_eq!(document.problems[0].message, "more than 200000 values, counted with aliases expanded");
    let document = parse(&texts);
    assert_eq!(document.problems.len(), 1);
    assert_eq!(document.problems[0].message, "aliases copy more than 4194304 bytes of text");
    assert!(started.elapsed() < Duration::from_secs(5), "took {:?}", started.elapsed());
}

#[test]
fn the_number_of_values_is_limited() {
    let limits = Limits { nodes: 5, ..Limits::default() };
    assert!(!parse_with("[1, 2, 3, 4]", &limits).has_errors());
    let document = parse_with("[1, 2, 3, 4, 5]", &limits);
    assert_eq!(document.problems.len(), 1);
    assert_eq!(document.root.to_value(), json!([1, 2, 3, 4]));
    assert!(parse_with("[&a [1], *a, *a]", &limits).has_errors());
}

#[test]
fn wide_maps_are_read_in_reasonable_time() {
    let text = (0..90_000).map(|index| format!("key{index}: v\n")).collect::<Vec<_>>().concat();
    let started = Instant::now();
    let document = parse(&text);
    assert_eq!(document.problems, []);
    assert_eq!(document.root.as_mapping().unwrap().len(), 90_000);
    assert_eq!(to_string(&document.root.to_value()), text);
    assert!(started.elapsed() < Duration::from_secs(10), "took {:?}", started.elapsed());
}
