//! One value against one schema.

use std::fmt::Write as _;

use serde_json::{Map, Number, Value};
use workflow_engine::{Refusal, Warning};

/// Pattern of a session index, as the schemas write it.
pub(super) const SESSION_INDEX_PATTERN: &str = "^[A-Z2-7]{6}$";

/// Parameters whose inside is taken as sent.
const FREE: &[&str] = &["variables_changed", "usage"];

/// Longest piece of a received text that a message repeats, in characters.
const SHOWN: usize = 60;

/// Most causes that a message tells.
const TOLD: usize = 10;

/// Reads the values of one call and remembers what there is to say.
pub(super) struct Reader {
    tool: &'static str,
    causes: Vec<Cause>,
    warnings: Vec<Warning>,
}

struct Cause {
    path: String,
    text: String,
    index: bool,
}

impl Reader {
    pub(super) fn new(tool: &'static str) -> Self {
        Self { tool, causes: Vec::new(), warnings: Vec::new() }
    }

    /// Something about the value at `path` that cannot be read.
    pub(super) fn cause(&mut self, path: &str, text: &str) {
        self.causes.push(Cause { path: path.to_owned(), text: text.to_owned(), index: false });
    }

    /// Something that was read although it was not what the schema says.
    pub(super) fn note(&mut self, message: String) {
        self.warnings.push(Warning { code: "W_ARGUMENT_READ", message });
    }

    /// The warnings, when nothing was refused.
    pub(super) fn finish(self) -> Result<Vec<Warning>, Refusal> {
        let [first, rest @ ..] = self.causes.as_slice() else { return Ok(self.warnings) };
        let told = || self.causes.iter().take(TOLD);
        let mut texts: Vec<String> = told().map(|cause| format!("`{}` {}", cause.path, cause.text)).collect();
        if first.index && rest.is_empty() {
            let message = format!(
                "{}. Nothing was changed. Call start_session with the planning slug of the session to get its index again.",
                texts[0]
            );
            return Err(Refusal::new("INVALID_SESSION_INDEX", message).with("parameter", first.path.as_str()));
        }
        let causes: Vec<Value> =
            told().map(|cause| serde_json::json!({"path": cause.path, "message": cause.text})).collect();
        if self.causes.len() > TOLD {
            texts.push(format!("and {} more", self.causes.len() - TOLD));
        }
        Err(Refusal::invalid_params(self.tool, &format!("{}. Nothing was changed.", texts.join("; ")))
            .with("causes", causes))
    }

    /// A name that the schema does not know.
    pub(super) fn unknown(&mut self, name: &str, properties: &Map<String, Value>) {
        self.unknown_at("", name, properties);
    }

    fn unknown_at(&mut self, parent: &str, name: &str, properties: &Map<String, Value>) {
        let path = join(parent, name);
        let known: Vec<&str> = properties.keys().map(String::as_str).collect();
        let text = if known.is_empty() {
            format!("is not known: {} takes no parameters", self.tool)
        } else if parent.is_empty() && name == "session_token" && properties.contains_key("session_index") {
            format!(
                "is not known: send session_index, the six characters that start_session returned. Known: {}",
                known.join(", ")
            )
        } else {
            let nearest = nearest(name, &known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            format!("is not known{nearest} (known: {})", known.join(", "))
        };
        self.cause(&path, &text);
    }

    /// Notes every required member that is missing and has no cause yet.
    pub(super) fn required(&mut self, parent: &str, schema: &Value, read: &Map<String, Value>) {
        let names = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        for name in names {
            let path = join(parent, name);
            let explained = self.causes.iter().any(|cause| {
                cause.path == path
                    || cause.path.starts_with(&format!("{path}."))
                    || cause.path.starts_with(&format!("{path}["))
            });
            if !read.contains_key(name) && !explained {
                let expected = schema.pointer(&format!("/properties/{name}")).map(expectation).unwrap_or_default();
                self.cause(&path, &format!("is required: {expected}"));
            }
        }
    }

    /// Reads one value; `None` when a cause was noted.
    pub(super) fn value(&mut self, path: &str, schema: &Value, value: &Value) -> Option<Value> {
        if let Some(branches) = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array) {
            let Some(branch) = branches.iter().find(|branch| fits(branch, value)) else {
                self.cause(path, &format!("expected {}; received {}", expectation(schema), received(value)));
                return None;
            };
            return self.value(path, branch, value);
        }
        let kinds = kinds(schema);
        if kinds.is_empty() {
            return self.listed(path, schema, value.clone());
        }
        let read = match kinds.iter().find(|kind| is_of(value, kind)) {
            Some(_) => value.clone(),
            None => self.converted(path, schema, &kinds, value)?,
        };
        match read {
            Value::Array(entries) => self.entries(path, schema, &entries),
            Value::Object(members) if free(path, schema) => Some(Value::Object(members)),
            Value::Object(members) => self.members(path, schema, &members),
            Value::String(text) => self.text(path, schema, text),
            Value::Number(number) => self.number(path, schema, number, &kinds),
            other => self.listed(path, schema, other),
        }
    }

    /// A value of another type, read as what the schema wants.
    fn converted(&mut self, path: &str, schema: &Value, kinds: &[&str], value: &Value) -> Option<Value> {
        if let Value::String(text) = value {
            for kind in kinds {
                if let Some(read) = from_text(kind, text) {
                    self.note(format!(
                        "`{path}` was sent as a text and read as {}; send it as JSON, without quotes.",
                        received(&read)
                    ));
                    return Some(read);
                }
            }
        }
        self.cause(path, &format!("expected {}; received {}", expectation(schema), received(value)));
        None
    }

    fn entries(&mut self, path: &str, schema: &Value, entries: &[Value]) -> Option<Value> {
        let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        if (entries.len() as u64) < least {
            self.cause(path, &format!("expected at least {least} entries; received {}", entries.len()));
            return None;
        }
        let Some(items) = schema.get("items") else { return Some(Value::Array(entries.to_vec())) };
        let read: Vec<Option<Value>> = entries
            .iter()
            .enumerate()
            .map(|(position, entry)| self.value(&format!("{path}[{position}]"), items, entry))
            .collect();
        read.into_iter().collect::<Option<Vec<_>>>().map(Value::Array)
    }

    fn members(&mut self, path: &str, schema: &Value, members: &Map<String, Value>) -> Option<Value> {
        let none = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
        let before = self.causes.len();
        let mut read = Map::new();
        for (name, member) in members {
            match properties.get(name) {
                None if schema.get("additionalProperties") == Some(&Value::Bool(false)) => {
                    self.unknown_at(path, name, properties);
                }
                None => {
                    read.insert(name.clone(), member.clone());
                }
                Some(_) if member.is_null() => {}
                Some(below) => {
                    if let Some(member) = self.value(&join(path, name), below, member) {
                        read.insert(name.clone(), member);
                    }
                }
            }
        }
        self.required(path, schema, &read);
        (self.causes.len() == before).then_some(Value::Object(read))
    }

    fn text(&mut self, path: &str, schema: &Value, text: String) -> Option<Value> {
        let least = schema.get("minLength").and_then(Value::as_u64).unwrap_or(0);
        if (text.chars().count() as u64) < least {
            self.cause(path, "must not be empty");
            return None;
        }
        if schema.get("pattern").and_then(Value::as_str) == Some(SESSION_INDEX_PATTERN) && !is_session_index(&text) {
            let case = if is_session_index(&text.to_ascii_uppercase()) { " (capital letters)" } else { "" };
            self.causes.push(Cause {
                path: path.to_owned(),
                text: format!(
                    "must match {SESSION_INDEX_PATTERN}{case}, as returned by start_session; received {}",
                    quoted(&text)
                ),
                index: true,
            });
            return None;
        }
        self.listed(path, schema, Value::String(text))
    }

    fn number(&mut self, path: &str, schema: &Value, number: Number, kinds: &[&str]) -> Option<Value> {
        let value = number.as_f64().unwrap_or(f64::NAN);
        let low = schema.get("minimum").and_then(Value::as_f64).is_some_and(|least| value < least);
        let low = low || schema.get("exclusiveMinimum").and_then(Value::as_f64).is_some_and(|bound| value <= bound);
        let high = schema.get("maximum").and_then(Value::as_f64).is_some_and(|most| value > most);
        if low || high {
            self.cause(path, &format!("expected {}; received {number}", expectation(schema)));
            return None;
        }
        let whole = kinds.contains(&"integer").then(|| integer(&number)).flatten();
        self.listed(path, schema, Value::Number(whole.unwrap_or(number)))
    }

    /// The last check of a value: one of the listed ones.
    fn listed(&mut self, path: &str, schema: &Value, value: Value) -> Option<Value> {
        let allowed = match (schema.get("enum").and_then(Value::as_array), schema.get("const")) {
            (Some(values), _) => values.as_slice(),
            (None, Some(only)) => std::slice::from_ref(only),
            (None, None) => return Some(value),
        };
        if allowed.contains(&value) {
            return Some(value);
        }
        self.cause(path, &format!("expected {}; received {}", expectation(schema), received(&value)));
        None
    }
}

/// Whether a text is a session index.
pub(super) fn is_session_index(text: &str) -> bool {
    text.len() == 6 && text.bytes().all(|byte| matches!(byte, b'A'..=b'Z' | b'2'..=b'7'))
}

/// What came, in a few words.
pub(super) fn received(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => quoted(text),
        Value::Array(entries) => format!("a list of {}", entries.len()),
        Value::Object(members) => format!("an object with {} members", members.len()),
    }
}

fn quoted(text: &str) -> String {
    if text.chars().count() <= SHOWN {
        return Value::from(text).to_string();
    }
    let head: String = text.chars().take(SHOWN).collect();
    format!("{}… ({} bytes)", Value::from(head), text.len())
}

/// The known name that is nearest to `name`, when one is near.
pub(crate) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let lower = name.to_ascii_lowercase();
    let best =
        known.iter().map(|known| (strsim::jaro_winkler(&lower, known), *known)).max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 > 0.75).then_some(best.1)
}

fn join(parent: &str, name: &str) -> String {
    if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") }
}

fn kinds(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn is_of(value: &Value, kind: &str) -> bool {
    match (value, kind) {
        (Value::Null, "null")
        | (Value::Bool(_), "boolean")
        | (Value::Number(_), "number")
        | (Value::String(_), "string")
        | (Value::Array(_), "array")
        | (Value::Object(_), "object") => true,
        (Value::Number(number), "integer") => integer(number).is_some(),
        _ => false,
    }
}

fn fits(branch: &Value, value: &Value) -> bool {
    let kinds = kinds(branch);
    kinds.is_empty() || kinds.iter().any(|kind| is_of(value, kind))
}

/// Whether the inside of an object is taken as sent.
fn free(path: &str, schema: &Value) -> bool {
    FREE.contains(&path)
        || (schema.get("properties").is_none() && schema.get("additionalProperties") != Some(&Value::Bool(false)))
}

/// A number without a fraction, as an integer.
fn integer(number: &Number) -> Option<Number> {
    if number.is_i64() || number.is_u64() {
        return Some(number.clone());
    }
    let value = number.as_f64()?;
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
    (value.fract() == 0.0 && value.abs() < 9_007_199_254_740_992.0).then(|| Number::from(value as i64))
}

/// A text read as a value of the wanted kind.
fn from_text(kind: &str, text: &str) -> Option<Value> {
    let read = match kind {
        "boolean" => match text.trim().to_ascii_lowercase().as_str() {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => return None,
        },
        "integer" | "number" | "array" | "object" => serde_json::from_str(text.trim()).ok()?,
        _ => return None,
    };
    is_of(&read, kind).then_some(read)
}

/// What a schema wants, in a few words.
pub(super) fn expectation(schema: &Value) -> String {
    if let Some(branches) = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array) {
        return branches.iter().map(expectation).collect::<Vec<_>>().join(" or ");
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let values: Vec<String> = values.iter().map(Value::to_string).collect();
        return format!("one of {}", values.join(", "));
    }
    if let Some(only) = schema.get("const") {
        return only.to_string();
    }
    if schema.get("pattern").and_then(Value::as_str) == Some(SESSION_INDEX_PATTERN) {
        return format!("a text matching {SESSION_INDEX_PATTERN}, as returned by start_session");
    }
    let names: Vec<&str> = kinds(schema)
        .into_iter()
        .map(|kind| match kind {
            "string" => "a text",
            "integer" => "a whole number",
            "number" => "a number",
            "boolean" => "true or false",
            "array" => "a list",
            "object" => "an object",
            other => other,
        })
        .collect();
    let mut text = if names.is_empty() { "a value".to_owned() } else { names.join(" or ") };
    for (key, relation) in [("minimum", "≥"), ("exclusiveMinimum", ">"), ("maximum", "≤")] {
        if let Some(bound) = schema.get(key).and_then(Value::as_f64) {
            let _ = write!(text, " {relation} {bound}");
        }
    }
    text
}
