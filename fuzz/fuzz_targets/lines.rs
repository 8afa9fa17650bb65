//! Any stream is cut into lines of bounded size, and any line is a JSON value or not.
#![no_main]

use std::io::BufReader;

use workflow_mcp::line::{Decoded, Line, decode, next_line};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let [capacity, max, stream @ ..] = data else { return };
    let (capacity, max) = (usize::from(*capacity) + 1, usize::from(*max) + 1);
    let mut reader = BufReader::with_capacity(capacity, stream);
    let mut lines = 0;
    while let Some(line) = next_line(&mut reader, max).expect("a slice can be read") {
        lines += 1;
        match line {
            Line::Text(text) => {
                assert!(!text.is_empty() && text.len() <= max && !text.contains(&b'\n'));
                check(&text);
            }
            Line::TooLong(_) => {}
        }
    }
    assert!(lines <= stream.split(|byte| *byte == b'\n').count());
    check(stream);
});

fn check(line: &[u8]) {
    match decode(line) {
        Decoded::Value(value) => assert_eq!(decode(value.to_string().as_bytes()), Decoded::Value(value)),
        Decoded::Unrepresentable(_, path) => assert!(!path.is_empty() || !line.starts_with(b"{"), "{path}"),
        Decoded::Malformed(reason) => assert!(!reason.is_empty()),
        Decoded::TooDeep(..) => {}
    }
}
