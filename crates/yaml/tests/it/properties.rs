//! Properties: round trip of every value, and safety on every text.

use proptest::prelude::*;
use serde_json::{Map, Number, Value};
use workflow_yaml::{Kind, LineIndex, Node, parse, scalar, to_string};

/// Compares values; numbers are equal when they are the same number, whatever holds them.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|(left, right)| left.0 == right.0 && same(left.1, right.1))
        }
        _ => left == right,
    }
}

/// Text of the pieces that mean something to YAML.
fn nasty_text() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        " ",
        "  ",
        "\n",
        "\n\n",
        "\t",
        "\r",
        "\r\n",
        "a",
        "b c",
        "é",
        "日本",
        "😀",
        "-",
        "- ",
        "---",
        "...",
        "?",
        "? ",
        ":",
        ": ",
        ",",
        "[",
        "]",
        "{",
        "}",
        "#",
        " #",
        "# ",
        "&",
        "*",
        "!",
        "|",
        ">",
        "'",
        "\"",
        "%",
        "@",
        "`",
        "~",
        "\\",
        "\\n",
        "null",
        "true",
        "0",
        "1",
        "0x1",
        "1e3",
        ".",
        ".inf",
        "+",
        "<<",
        "=",
        "\u{0}",
        "\u{1}",
        "\u{7}",
        "\u{8}",
        "\u{b}",
        "\u{c}",
        "\u{1b}",
        "\u{7f}",
        "\u{85}",
        "\u{9b}",
        "\u{a0}",
        "\u{2028}",
        "\u{2029}",
        "\u{feff}",
        "\u{fffd}",
        "\u{fffe}",
        "\u{ffff}",
        "\u{1fffe}",
        "\u{10ffff}",
        "\u{3000}",
        "\u{200b}",
        "\u{ad}",
    ]);
    prop::collection::vec(pieces, 0..8).prop_map(|pieces| pieces.concat())
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![4 => nasty_text(), 1 => any::<String>(), 1 => "[ -~\n]{0,60}"]
}

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter_map("finite", |float| Number::from_f64(float).map(Value::Number)),
        (-1e25..1e25).prop_filter_map("finite", |float| Number::from_f64(float).map(Value::Number)),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::Bool),
        1 => number(),
        6 => any_text().prop_map(Value::String),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::vec((any_text(), inner), 0..5)
                .prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Text that is nearly YAML.
fn source() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "a: ",
        "b:\n",
        "- ",
        "-\n",
        "? ",
        ": ",
        "\n",
        "\n  ",
        "\n    ",
        " ",
        "\t",
        "[",
        "]",
        "{",
        "}",
        ", ",
        "|",
        ">",
        "|+\n",
        ">-\n",
        "|2\n",
        "|\n  x\n",
        "# c\n",
        "&x ",
        "*x",
        "!t ",
        "!!str ",
        "!!int ",
        "! ",
        "'",
        "\"",
        "'q'",
        "\"d\\n\"",
        "---\n",
        "...\n",
        "%YAML 1.2\n",
        "é",
        "日本",
        "😀",
        "\u{feff}",
        "\r",
        "\r\n",
        "\0",
        "\u{7f}",
        "1",
        "~",
        "true",
        ".nan",
        "<<: ",
        "`",
        "@",
        "\\",
    ]);
    prop_oneof![
        3 => prop::collection::vec(pieces, 0..30).prop_map(|pieces| pieces.concat()),
        1 => any::<String>(),
        1 => value().prop_map(|value| to_string(&value)),
    ]
}

fn check_spans(node: &Node, text: &str) {
    assert!(node.span.start <= node.span.end, "{node:?}");
    let own = node.span.slice(text).expect("spans lie in the text on character boundaries");
    match &node.kind {
        Kind::Scalar(value) => {
            use workflow_yaml::Style;
            // An alias stands for its value.
            if own.starts_with('*') {
                return;
            }
            match node.style {
                Style::SingleQuoted => {
                    assert!(own.len() >= 2 && own.starts_with('\'') && own.ends_with('\''), "{own:?}");
                }
                Style::DoubleQuoted => assert!(own.len() >= 2 && own.starts_with('"') && own.ends_with('"'), "{own:?}"),
                Style::Literal => assert!(own.starts_with('|'), "{own:?}"),
                Style::Folded => assert!(own.starts_with('>'), "{own:?}"),
                Style::Plain => {
                    if let (Some(value), false) = (value.as_str(), own.contains(['\n', '\r'])) {
                        assert_eq!(value, own);
                    }
                }
                Style::Block | Style::Flow => panic!("a scalar with the style of a collection: {node:?}"),
            }
        }
        Kind::Sequence(items) => items.iter().for_each(|item| check_spans(item, text)),
        Kind::Mapping(entries) => {
            for entry in entries {
                assert!(entry.key_span.slice(text).is_some(), "{entry:?}");
                check_spans(&entry.value, text);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn values_round_trip(value in value()) {
        let text = to_string(&value);
        prop_assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{:?}", text);
        let document = parse(&text);
        prop_assert!(document.problems.is_empty(), "{:?}\n{}", document.problems, text);
        prop_assert!(same(&document.root.to_value(), &value), "{}\n{:?}", text, document.root.to_value());
    }

    #[test]
    fn texts_round_trip_in_every_position(text in any_text()) {
        let value = serde_json::json!({"a": text, "b": [text, [text], {"c": text}], (text.clone()): {"d": text}, "e": 1});
        let yaml = to_string(&value);
        let document = parse(&yaml);
        prop_assert!(document.problems.is_empty(), "{:?}\n{}", document.problems, yaml);
        prop_assert_eq!(document.root.to_value(), value, "{}", yaml);
        prop_assert!(!scalar(&text).contains(['\n', '\r']));
    }

    #[test]
    fn writing_what_was_read_changes_nothing(text in source()) {
        let document = parse(&text);
        if !document.has_errors() {
            let value = document.root.to_value();
            let again = parse(&to_string(&value));
            prop_assert!(again.problems.is_empty(), "{:?}", again.problems);
            prop_assert_eq!(again.root.to_value(), value);
        }
    }

    #[test]
    fn reading_never_panics_and_spans_lie_in_the_text(text in source()) {
        let document = parse(&text);
        check_spans(&document.root, &text);
        let lines = LineIndex::new(&text);
        for problem in &document.problems {
            prop_assert!(problem.span.slice(&text).is_some(), "{:?}", problem);
            let _ = lines.position(&text, problem.span.start);
        }
    }

    #[test]
    fn positions_never_panic(text in any::<String>(), offset in any::<usize>()) {
        let lines = LineIndex::new(&text);
        for offset in [offset, offset % (text.len() + 1)] {
            let position = lines.position(&text, offset);
            prop_assert!(position.line >= 1 && position.column >= 1);
        }
    }
}

/// Returns how many cases to try; `PROPTEST_CASES` asks for more.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(512)
}
