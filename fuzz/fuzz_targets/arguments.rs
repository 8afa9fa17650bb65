//! Any JSON object is read as arguments of any tool; what is taken runs the tool, which refuses or leaves a valid state.
#![no_main]

use serde_json::Value;
use workflow_engine::TOOLS;
use workflow_fuzz::{run, settings, stages};
use workflow_mcp::{line, read_arguments};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let [tool, stage, text @ ..] = data else { return };
    let line::Decoded::Value(Value::Object(mut sent)) = line::decode(text) else { return };
    let tool = &TOOLS[usize::from(tool.wrapping_sub(b'a')) % TOOLS.len()];
    let (stages, index) = stages();
    // The input cannot guess the index: `$` stands for it.
    for value in sent.values_mut().filter(|value| *value == "$") {
        *value = index.as_str().into();
    }
    let settings = settings();
    let mut work = stages[usize::from(stage.wrapping_sub(b'0')) % stages.len()].clone();
    match read_arguments(tool, &sent, &settings) {
        Ok(arguments) => {
            let _outcome = run(&mut work, 9, tool, &arguments);
            // A second time: retries, spent handles, ended sessions.
            let _outcome = run(&mut work, 10, tool, &arguments);
        }
        Err(refusal) => assert!(refusal.text().len() < 64 * 1024, "a refusal does not grow with what it refuses"),
    }
});
