//! Input schemas of the tools, in the flat form that every client understands (spec 03 §4.2, spec 04 §7).

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value, json};

/// What a session index looks like (spec 03 §1.3).
const SESSION_INDEX: &str = "^[A-Z2-7]{6}$";

/// The input schema of a parameter struct.
///
/// `type: object` at the root, subschemas inlined, optional parameters merely not required (no union with `null`), plain
/// `enum` lists, no `format`, `title` or `$schema`, and `additionalProperties: false`.
pub(crate) fn input_schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    flatten(&mut schema);
    if let Value::Object(root) = &mut schema {
        root.remove("description");
        root.remove("$defs");
        root.insert("type".to_owned(), "object".into());
        let properties = root.entry("properties").or_insert_with(|| json!({}));
        if let Some(Value::Object(index)) = properties.get_mut("session_index") {
            index.insert("pattern".to_owned(), SESSION_INDEX.into());
        }
        root.insert("additionalProperties".to_owned(), false.into());
    }
    schema
}

/// Flattens one schema and everything below it.
fn flatten(schema: &mut Value) {
    let Value::Object(members) = schema else { return };
    for key in ["$schema", "title", "format"] {
        members.remove(key);
    }
    if members.get("default").is_some_and(Value::is_null) {
        members.remove("default");
    }
    drop_null_type(members);
    drop_null_union(members);
    plain_enum(members);
    if let Some(Value::Object(properties)) = members.get_mut("properties") {
        properties.values_mut().for_each(flatten);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(below) = members.get_mut(key) {
            flatten(below);
        }
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        if let Some(Value::Array(branches)) = members.get_mut(key) {
            branches.iter_mut().for_each(flatten);
        }
    }
}

/// `type: [T, null]` becomes `type: T`, and `null` leaves an `enum`.
fn drop_null_type(members: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = members.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            members.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = members.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
}

/// A union of one schema with `null` becomes that schema; what stands beside the union wins.
fn drop_null_union(members: &mut Map<String, Value>) {
    let Some(Value::Array(branches)) = members.get_mut("anyOf") else { return };
    branches.retain(|branch| branch.get("type").is_none_or(|kind| kind != "null"));
    let [Value::Object(only)] = branches.as_slice() else { return };
    let only = only.clone();
    members.remove("anyOf");
    for (key, value) in only {
        members.entry(key).or_insert(value);
    }
    drop_null_type(members);
}

/// `oneOf` over constants becomes `enum`; what the variants say moves into the description.
fn plain_enum(members: &mut Map<String, Value>) {
    let Some(Value::Array(variants)) = members.get("oneOf") else { return };
    let mut values = Vec::new();
    let mut notes = Vec::new();
    for variant in variants {
        let Some(value) = variant.get("const").cloned().or_else(|| single(variant.get("enum"))) else { return };
        if let (Some(name), Some(note)) = (value.as_str(), variant.get("description").and_then(Value::as_str)) {
            notes.push(format!("`{name}`: {}", note.trim_end_matches('.')));
        }
        values.push(value);
    }
    members.remove("oneOf");
    members.insert("type".to_owned(), "string".into());
    members.insert("enum".to_owned(), values.into());
    if notes.is_empty() {
        return;
    }
    let notes = format!("{}.", notes.join("; "));
    let text = match members.get("description").and_then(Value::as_str) {
        Some(own) => format!("{own} {notes}"),
        None => notes,
    };
    members.insert("description".to_owned(), text.into());
}

fn single(values: Option<&Value>) -> Option<Value> {
    match values?.as_array()?.as_slice() {
        [only] => Some(only.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::TOOLS;

    /// Longest tool description, in UTF-16 code units (spec 04 §7).
    const DESCRIPTION_LIMIT: usize = 1500;

    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its schema is read")]
    struct Sample {
        /// A name.
        name: String,
        /// A size.
        size: Option<u32>,
        /// A colour.
        colour: Option<Colour>,
        /// Things.
        things: Option<Vec<Thing>>,
        /// Anything by name.
        values: Option<Map<String, Value>>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum Colour {
        /// Warm.
        Red,
        /// Cold.
        DarkBlue,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its schema is read")]
    struct Thing {
        /// Its id.
        #[schemars(length(min = 1))]
        id: String,
    }

    #[test]
    fn every_session_index_has_its_pattern() {
        let indexes = TOOLS.iter().filter_map(|tool| (tool.schema)().pointer("/properties/session_index").cloned());
        let patterns: Vec<Value> = indexes.map(|index| index["pattern"].clone()).collect();
        assert!(patterns.len() > 10 && patterns.iter().all(|pattern| pattern == SESSION_INDEX), "{patterns:?}");
    }

    #[test]
    fn input_schemas_are_flat() {
        let expected = json!({
            "type": "object",
            "properties": {
                "name": {"description": "A name.", "type": "string"},
                "size": {"description": "A size.", "type": "integer", "minimum": 0},
                "colour": {
                    "description": "A colour. `red`: Warm; `dark_blue`: Cold.", "type": "string",
                    "enum": ["red", "dark_blue"]
                },
                "things": {"description": "Things.", "type": "array", "items": {
                    "type": "object", "properties": {"id": {"description": "Its id.", "type": "string", "minLength": 1}},
                    "required": ["id"], "additionalProperties": false
                }},
                "values": {"description": "Anything by name.", "type": "object", "additionalProperties": true}
            },
            "required": ["name"],
            "additionalProperties": false
        });
        assert_eq!(input_schema::<Sample>(), expected);
    }

    #[track_caller]
    fn check_flat(tool: &str, path: &str, schema: &Value) {
        let Value::Object(members) = schema else { return };
        for key in ["format", "title", "$schema", "$ref", "$defs", "oneOf", "allOf"] {
            assert!(!members.contains_key(key), "{tool}: {path} has `{key}`");
        }
        assert_ne!(members.get("type"), Some(&json!("null")), "{tool}: {path} admits null");
        if let Some(Value::Array(types)) = members.get("type") {
            assert!(!types.contains(&json!("null")), "{tool}: {path} admits null");
        }
        for (key, below) in members {
            match below {
                Value::Object(_) => check_flat(tool, &format!("{path}.{key}"), below),
                Value::Array(list) => list.iter().for_each(|item| check_flat(tool, &format!("{path}.{key}[]"), item)),
                _ => {}
            }
        }
    }

    #[test]
    fn every_tool_has_a_flat_documented_schema() {
        for tool in TOOLS {
            let schema = (tool.schema)();
            assert_eq!(schema["type"], "object", "{}", tool.name);
            assert_eq!(schema["additionalProperties"], false, "{}", tool.name);
            assert!(schema.get("anyOf").is_none(), "{}: union at the root", tool.name);
            check_flat(tool.name, "root", &schema);
            for (name, parameter) in schema["properties"].as_object().expect("properties") {
                let text = parameter["description"].as_str().unwrap_or_default();
                assert!(!text.trim().is_empty(), "{}.{name} is not described", tool.name);
            }
        }
    }

    #[test]
    fn the_surface_has_eighteen_tools_in_order() {
        let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
        let expected = "discover list_workflows health_check start_session dispatch_child get_workflow next_activity \
                        get_activity yield_checkpoint present_checkpoint respond_checkpoint resume_checkpoint \
                        get_technique get_resource record_usage get_trace get_workflow_status inspect_session";
        assert_eq!(names, expected.split(' ').collect::<Vec<_>>());
    }

    #[test]
    fn every_tool_describes_itself_in_bounds() {
        for tool in TOOLS {
            let length = tool.description.encode_utf16().count();
            assert!((40..=DESCRIPTION_LIMIT).contains(&length), "{}: description of {length} characters", tool.name);
            assert!(!tool.title.is_empty() && tool.title.len() <= 40, "{}: title", tool.name);
            assert_eq!(tool.description.trim(), tool.description, "{}: blank edges", tool.name);
        }
    }
}
