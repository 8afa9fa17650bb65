//! Any text is read as a `when`, and what reads is worked out.
#![no_main]

use workflow_corpus::{claims_match, when};
use workflow_fuzz::bag;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let mixed = when::mixes_operators(text);
    assert!(mixed.is_none_or(|at| at < text.chars().count()));
    match when::parse(text) {
        Ok(expr) => {
            let held = expr.holds(&bag());
            assert_eq!(held, !when::Expr::Not(Box::new(expr.clone())).holds(&bag()));
            let _none = expr.holds(&serde_json::Map::new());
            assert!(expr.reads().iter().all(|path| text.contains(*path)), "{expr:?}");
        }
        Err(error) => {
            assert!(error.offset <= text.chars().count(), "{error:?}");
            let _excerpt = error.excerpt(text);
        }
    }
    let half = (0..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let (declared, claimed) = text.split_at(half);
    assert!(claims_match(declared, declared));
    assert_eq!(claims_match(declared, claimed), claims_match(claimed, declared));
});
