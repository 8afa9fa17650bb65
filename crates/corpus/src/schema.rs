//! The published JSON Schemas (spec 01 §11, FIX-43): draft-07, made from the tables that the loader checks with, and
//! for techniques, states and session files from tables of the same kind.

mod session;
mod technique;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::decode::shape::{Field, Need, Object, Shape, Tagged};
use crate::decode::tables::{ACTIVITY, CONDITION, MANIFEST};

/// The six schemas with their ids, in the order `workflow, activity, condition, technique, state, session-file`.
pub fn schemas() -> Vec<(&'static str, Value)> {
    vec![
        ("workflow", closed(&Shape::Object(&MANIFEST), "workflow")),
        ("activity", closed(&Shape::Object(&ACTIVITY), "activity")),
        ("condition", closed(&Shape::Tagged(&CONDITION), "condition")),
        ("technique", closed(&Shape::Object(&technique::TECHNIQUE), "technique")),
        ("state", closed(&Shape::Object(&session::STATE), "state")),
        // Keys that a newer server wrote are kept, so a session file may have more than these.
        ("session-file", document(&Shape::Object(&session::SESSION), "session-file", false)),
    ]
}

fn closed(shape: &Shape, id: &str) -> Value {
    document(shape, id, true)
}

fn document(shape: &Shape, id: &str, closed: bool) -> Value {
    let mut writer = Writer { closed, definitions: BTreeMap::new() };
    writer.shape(shape);
    let definitions: Map<String, Value> =
        writer.definitions.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$ref": format!("#/definitions/{id}"),
        "definitions": definitions,
    })
}

/// Turns shapes into schemas and gathers the named objects on the way.
struct Writer {
    /// Are unknown keys refused?
    closed: bool,
    definitions: BTreeMap<&'static str, Value>,
}

impl Writer {
    fn shape(&mut self, shape: &Shape) -> Value {
        match shape {
            Shape::Text => json!({"type": "string"}),
            Shape::Formed(form) => json!({"type": "string", "pattern": form.pattern}),
            Shape::Choice([only]) => json!({"const": only}),
            Shape::Choice(choices) => json!({"type": "string", "enum": choices}),
            Shape::Boolean => json!({"type": "boolean"}),
            Shape::OnlyFalse => json!({"const": false}),
            Shape::Whole { least } => json!({"type": "integer", "minimum": least}),
            Shape::Any => json!({}),
            Shape::Null => json!({"type": "null"}),
            Shape::Number => json!({"type": "number"}),
            Shape::List { of, least: 0 } => json!({"type": "array", "items": self.shape(of)}),
            Shape::List { of, least } => json!({"type": "array", "items": self.shape(of), "minItems": least}),
            Shape::Map(of) => match self.shape(of) {
                Value::Object(of) if of.is_empty() => json!({"type": "object"}),
                of => json!({"type": "object", "additionalProperties": of}),
            },
            Shape::Object(object) | Shape::Later(object) => self.object(object),
            Shape::Tagged(tagged) => self.tagged(tagged),
            Shape::Either(shapes) => {
                let shapes: Vec<Value> = shapes.iter().map(|shape| self.shape(shape)).collect();
                json!({"anyOf": shapes})
            }
            Shape::Written(schema) => schema(),
        }
    }

    fn object(&mut self, object: &'static Object) -> Value {
        self.define(object.name, |writer| {
            let fields = || object.fields.iter();
            let properties: Map<String, Value> =
                fields().map(|field| (field.name.to_owned(), writer.field(field))).collect();
            let needed = |field: &&Field| matches!(field.need, Need::Required | Need::RequiredElsewhere);
            let required: Vec<&str> = fields().filter(needed).map(|field| field.name).collect();
            let mut schema = json!({"type": "object", "description": object.about, "properties": properties});
            if !required.is_empty() {
                schema["required"] = json!(required);
            }
            if writer.closed {
                schema["additionalProperties"] = json!(false);
            }
            if object.name == "checkpointStep" {
                schema["anyOf"] = json!([{"required": ["ref"]}, {"required": ["message", "options"]}]);
            }
            schema
        })
    }

    fn tagged(&mut self, tagged: &'static Tagged) -> Value {
        self.define(tagged.name, |writer| {
            let choices: Vec<Value> = tagged.choices.iter().map(|(_, object)| writer.object(object)).collect();
            json!({"oneOf": choices})
        })
    }

    fn field(&mut self, field: &'static Field) -> Value {
        let schema = self.shape(&field.shape);
        match schema {
            // Draft-07 reads nothing beside a reference.
            Value::Object(map) if map.contains_key("$ref") => json!({"description": field.about, "allOf": [map]}),
            Value::Object(map) => {
                let mut with = json!({"description": field.about});
                for (key, value) in map {
                    with[key] = value;
                }
                with
            }
            other => other,
        }
    }

    /// A reference to a definition, which is made when it is first needed.
    fn define(&mut self, name: &'static str, make: impl FnOnce(&mut Self) -> Value) -> Value {
        if !self.definitions.contains_key(name) {
            self.definitions.insert(name, Value::Null);
            let schema = make(self);
            self.definitions.insert(name, schema);
        }
        json!({"$ref": format!("#/definitions/{name}")})
    }
}

#[cfg(test)]
mod tests;
