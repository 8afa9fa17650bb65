//! Answers taken apart.

use serde_json::{Map, Value, json};

use super::world::World;
use crate::{
    Rendered,
    delivery::{SEPARATOR, chars},
};

impl World {
    pub(super) fn get_activity(&mut self, more: &Value) -> Answer {
        let mut args = json!({"context_tokens": 200_000});
        args.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        Answer::of(self.answer("get_activity", &args))
    }

    pub(super) fn events(&self, kind: &str) -> Vec<Value> {
        let events = self.session().history.iter().filter(|event| event.kind() == kind);
        events.map(|event| Value::Object(event.0.clone())).collect()
    }
}

/// A text answer taken apart.
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) meta: Map<String, Value>,
    pub(super) above: Value,
    pub(super) below: Value,
}

impl Answer {
    pub(super) fn of(rendered: Rendered) -> Self {
        let meta = rendered.meta.unwrap_or_default();
        let text = rendered.text;
        let (above, below) = match text.split_once(SEPARATOR) {
            Some((above, below)) => (above.to_owned(), below.to_owned()),
            None => (String::new(), text.clone()),
        };
        let below = below.split("\nvalidation:\n").next().unwrap_or_default().to_owned();
        Self { above: parsed(&above), below: parsed(&below), text, meta }
    }

    pub(super) fn steps(&self) -> Vec<&str> {
        self.above["step_techniques"].as_object().into_iter().flatten().map(|(id, _)| id.as_str()).collect()
    }

    pub(super) fn step(&self, id: &str) -> &Value {
        &self.above["step_techniques"][id]
    }

    pub(super) fn warnings(&self) -> Vec<&str> {
        self.meta["validation"]["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    }
}

/// A text that is one YAML document without a problem.
pub(super) fn parsed(text: &str) -> Value {
    let document = workflow_yaml::parse(text);
    assert!(!document.has_errors(), "{:?} in\n{text}", document.problems);
    document.root.to_value()
}

/// The text without the blocks that count in no size.
pub(super) fn counted(text: &str) -> u64 {
    let mut end = text.len();
    for block in ["\nvalidation:\n", "\nbatch:\n"] {
        end = text[..end].rfind(block).unwrap_or(end);
    }
    chars(&text[..end])
}

pub(super) fn is_marker(value: &Value) -> bool {
    value["delivery"] == "unchanged"
}

pub(super) fn keys(value: &Value) -> Vec<&str> {
    value.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect()
}
