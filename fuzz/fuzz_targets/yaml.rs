//! Any text is read as YAML, and what reads without an error is written and read back as what is written the same.
#![no_main]

use workflow_yaml::{LineIndex, parse, scalar, to_string};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let document = parse(text);
    let index = LineIndex::new(text);
    for problem in &document.problems {
        let _place = (index.position(text, problem.span.start), problem.span.slice(text));
    }
    let value = document.root.to_value();
    if !document.has_errors() {
        let written = to_string(&value);
        let again = parse(&written);
        assert!(!again.has_errors(), "{written:?}: {:?}", again.problems);
        // Not the values are compared: a float without a fraction is written, and read again, as an integer.
        assert_eq!(to_string(&again.root.to_value()), written);
    }
    let quoted = scalar(text);
    let again = parse(&format!("k: {quoted}\n"));
    assert!(!again.has_errors(), "{quoted:?}: {:?}", again.problems);
    assert_eq!(again.root.get("k").and_then(|node| node.as_str()), Some(text), "{quoted:?}");
});
