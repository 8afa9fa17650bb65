//! Every span slices back to the text it stands for.

use workflow_yaml::{Kind, LineIndex, Node, Position, Span, Style, parse};

/// Lists the spans of a tree as text: keys as `key`, values as their own text.
fn outline(node: &Node, text: &str, out: &mut Vec<String>) {
    let slice = |span: Span| span.slice(text).expect("spans lie in the text").to_owned();
    out.push(slice(node.span));
    match &node.kind {
        Kind::Scalar(_) => {}
        Kind::Sequence(items) => items.iter().for_each(|item| outline(item, text, out)),
        Kind::Mapping(entries) => {
            for entry in entries {
                out.push(format!("key {}", slice(entry.key_span)));
                outline(&entry.value, text, out);
            }
        }
    }
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let document = parse(text);
    assert!(!document.has_errors(), "{:?}", document.problems);
    let mut spans = Vec::new();
    outline(&document.root, text, &mut spans);
    assert_eq!(spans, expected, "{text:?}");
}

#[test]
fn scalars_with_their_quotes() {
    check(
        "a: 'b c' # d\n\"e\" : \"f\\n\"\n",
        &["a: 'b c' # d\n\"e\" : \"f\\n\"", "key a", "'b c'", "key \"e\"", "\"f\\n\""],
    );
    check(
        "a: one\n  two\nb: 'x\n\n  y'\n",
        &["a: one\n  two\nb: 'x\n\n  y'", "key a", "one\n  two", "key b", "'x\n\n  y'"],
    );
}

#[test]
fn spans_count_bytes_after_other_scripts_and_the_byte_order_mark() {
    check(
        "\u{feff}é: ü😀\n日本: [語, x]\n",
        &["é: ü😀\n日本: [語, x]", "key é", "ü😀", "key 日本", "[語, x]", "語", "x"],
    );
    check(
        "a: |\n  日本語 é\n  ü\nb: é\nc: x\n",
        &["a: |\n  日本語 é\n  ü\nb: é\nc: x", "key a", "|\n  日本語 é\n  ü", "key b", "é", "key c", "x"],
    );
}

#[test]
fn collections_from_their_first_to_their_last_byte() {
    check(
        "a:\n  - x\n  - y # c\n\n# d\nb: {c: [1, 2 ], }\n",
        &[
            "a:\n  - x\n  - y # c\n\n# d\nb: {c: [1, 2 ], }",
            "key a",
            "- x\n  - y",
            "x",
            "y",
            "key b",
            "{c: [1, 2 ], }",
            "key c",
            "[1, 2 ]",
            "1",
            "2",
        ],
    );
    check(
        "a:\n- x\nb:\n- - y\n  - k: v\n    l: w\n",
        &[
            "a:\n- x\nb:\n- - y\n  - k: v\n    l: w",
            "key a",
            "- x",
            "x",
            "key b",
            "- - y\n  - k: v\n    l: w",
            "- y\n  - k: v\n    l: w",
            "y",
            "k: v\n    l: w",
            "key k",
            "v",
            "key l",
            "w",
        ],
    );
    check("[a: b]", &["[a: b]", "a: b", "key a", "b"]);
    check("? a\n: b\n", &["? a\n: b", "key a", "b"]);
}

#[test]
fn tags_and_anchors_are_not_part_of_a_value() {
    check(
        "a: &x !!map\n  b: &y !!str c\nd: *x\n",
        &["a: &x !!map\n  b: &y !!str c\nd: *x", "key a", "b: &y !!str c", "key b", "c", "key d", "*x", "key b", "c"],
    );
}

#[test]
fn block_scalars_from_their_indicator_to_their_last_line() {
    check(
        "a: |\n  x\n  y  \n\n\nb: >- # note | with > marks\n  z\n# after\nc: 1\n",
        &[
            "a: |\n  x\n  y  \n\n\nb: >- # note | with > marks\n  z\n# after\nc: 1",
            "key a",
            "|\n  x\n  y  ",
            "key b",
            ">- # note | with > marks\n  z",
            "key c",
            "1",
        ],
    );
    check(
        "- &a|b !t |2-\n   x\n- # c | d\n  |+\n  y\n\n- |\n- >\n\n",
        &["- &a|b !t |2-\n   x\n- # c | d\n  |+\n  y\n\n- |\n- >", "|2-\n   x", "|+\n  y", "|", ">"],
    );
    check("--- |\n a\n", &["|\n a"]);
    check("# |\n\n|\n a\n", &["|\n a"]);
    check("a: |\r\n  x\r\n\r\nb: 1\r\n", &["a: |\r\n  x\r\n\r\nb: 1", "key a", "|\r\n  x", "key b", "1"]);
    check("? |\n  k\n: |\n  v\n", &["? |\n  k\n: |\n  v", "key |\n  k", "|\n  v"]);
    check(
        "a: \"x\"\nb: >\n x\n\n   y\n\n z",
        &["a: \"x\"\nb: >\n x\n\n   y\n\n z", "key a", "\"x\"", "key b", ">\n x\n\n   y\n\n z"],
    );
}

#[test]
fn values_that_were_left_out_have_a_place() {
    let text = "a:\nb: \nc :\n- \n";
    let document = parse(text);
    let places: Vec<_> = document.root.as_mapping().unwrap().iter().map(|entry| entry.value.span).collect();
    assert_eq!(places[0], Span::empty(2));
    assert_eq!(places[1], Span::empty(5));
    let empty = parse("\u{feff}");
    assert_eq!(empty.root.span, Span::empty(3));
}

#[test]
fn styles_are_kept() {
    let document = parse("[plain, 'single', \"double\"]");
    let styles: Vec<_> = document.root.as_sequence().unwrap().iter().map(|item| item.style).collect();
    assert_eq!(styles, [Style::Plain, Style::SingleQuoted, Style::DoubleQuoted]);
    assert_eq!(document.root.style, Style::Flow);
    let document = parse("- |\n  a\n- >\n  b\n");
    let styles: Vec<_> = document.root.as_sequence().unwrap().iter().map(|item| item.style).collect();
    assert_eq!(styles, [Style::Literal, Style::Folded]);
    assert_eq!(document.root.style, Style::Block);
}

#[test]
fn problems_have_positions() {
    let text = "é: 1\nü: 2\n日本: x\nü: 3\n";
    let document = parse(text);
    let position = LineIndex::new(text).position(text, document.problems[0].span.start);
    assert_eq!(position, Position { line: 4, column: 1 });
}
