//! `call`: one tool call from the shell, on the same sessions as everybody else's.

use std::io::{self, IsTerminal as _, Read as _};

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use serde_json::{Map, Value, json};
use workflow_engine::TOOLS;
use workflow_mcp::{Outcome, Server};
use workflow_store::{FileStore, Options};

use crate::config::{Config, Origin};
use crate::exit::Failure;
use crate::log;
use crate::printer;

/// Calls one tool, as an agent would
///
/// The call works on the same sessions as running servers do, which may go on meanwhile. The answer goes to stdout; a
/// refusal goes to stderr and gives exit code 1, as does a batch that is full.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:
  workflow-server call list_workflows
  workflow-server call start_session workflow_id=quick-tour planning_slug=my-tour
  workflow-server call next_activity session_index=ABC234 activity_id=look-around
  workflow-server call get_activity session_index=ABC234 context_tokens=200000
  workflow-server call next_activity session_index=ABC234 activity_id=visit-stops \\
      step_manifest:='[{\"step_id\": \"explain-session\", \"output\": \"told\"}]'
  echo '{\"session_index\": \"ABC234\"}' | workflow-server call get_workflow_status --json -

`workflow-server call TOOL --schema` prints which parameters a tool takes."
)]
pub(crate) struct Call {
    /// The tool
    #[arg(value_name = "TOOL", value_parser = tools())]
    tool: String,
    /// Arguments: KEY=VALUE, or KEY:=JSON. A value that the tool wants as a number, boolean, list or object is read as
    /// JSON. `-` reads a JSON object from stdin, and single arguments go over it. Without any argument stdin is read
    /// too, when it is no terminal and the tool takes any
    #[arg(value_name = "KEY=VALUE")]
    arguments: Vec<String>,
    /// Print the whole result as JSON: text, isError and _meta
    #[arg(long)]
    json: bool,
    /// Print the input schema of the tool instead of calling it
    #[arg(long)]
    schema: bool,
}

/// The names of the tools with their titles.
fn tools() -> PossibleValuesParser {
    PossibleValuesParser::new(TOOLS.iter().map(|tool| PossibleValue::new(tool.name).help(tool.title)))
}

impl Call {
    pub(crate) fn run(&self, config: &Config) -> Result<(), Failure> {
        if self.schema {
            printer::data(&format!("{:#}", self.input_schema()))?;
            return Ok(());
        }
        let arguments = self.read(io::stdin().is_terminal(), |asked| {
            if !asked {
                // The other end may never close, and nothing else would tell what this waits for.
                printer::say(&format!(
                    "reading the arguments of {} as JSON from stdin; write them as KEY=VALUE to be independent of it",
                    self.tool
                ));
            }
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).map(|_| text)
        })?;
        let level = if config.origin("log_level") == Origin::Default { "warn" } else { config.log_level.as_str() };
        let options = if self.takes_some() { config.store() } else { config.store_without_sessions() };
        let server = server(config, options.map_err(Failure::Usage)?, level)?;
        let outcome = server.call(&self.tool, &arguments, "call", &|| false);
        self.show(outcome)
    }

    /// The input schema of the tool.
    fn input_schema(&self) -> Value {
        workflow_engine::tool(&self.tool).map(|tool| (tool.schema)()).unwrap_or_default()
    }

    /// Whether the tool has parameters: one without needs no stdin and no workspace.
    fn takes_some(&self) -> bool {
        self.input_schema().get("properties").and_then(Value::as_object).is_some_and(|all| !all.is_empty())
    }

    fn show(&self, outcome: Outcome) -> Result<(), Failure> {
        let full = outcome.meta.as_ref().is_some_and(|meta| meta.contains_key("refusal"));
        if self.json {
            let meta = outcome.meta.map(Value::Object);
            let whole = json!({"text": outcome.text, "isError": outcome.is_error, "_meta": meta});
            printer::data(&format!("{whole:#}"))?;
        } else if outcome.is_error {
            return Err(Failure::Failed(outcome.text));
        } else {
            printer::data(&outcome.text)?;
        }
        if full || outcome.is_error { Err(Failure::Told) } else { Ok(()) }
    }

    /// The arguments of the call. `stdin` is told whether it was asked for.
    fn read(
        &self,
        terminal: bool,
        stdin: impl FnOnce(bool) -> io::Result<String>,
    ) -> Result<Map<String, Value>, Failure> {
        let schema = self.input_schema();
        let asked = self.arguments.iter().any(|argument| argument == "-");
        let mut arguments = Map::new();
        if asked || (self.arguments.is_empty() && !terminal && self.takes_some()) {
            let text = stdin(asked).map_err(|error| Failure::Usage(format!("stdin: {error}")))?;
            arguments = from_stdin(&text, asked)?;
        }
        let mut given: Vec<&str> = Vec::new();
        for argument in self.arguments.iter().filter(|argument| *argument != "-") {
            let (key, value) = pair(argument, &schema).map_err(Failure::Usage)?;
            if given.contains(&key) {
                return Err(Failure::Usage(format!("{key} is given twice")));
            }
            given.push(key);
            arguments.insert(key.to_owned(), value);
        }
        Ok(arguments)
    }
}

/// A server on the settings' sessions and definitions.
fn server(config: &Config, options: Options, level: &str) -> Result<Server, Failure> {
    log::start(level, config.log_format);
    for warning in &config.warnings {
        printer::warn(warning);
    }
    let store = FileStore::open(options)?;
    Ok(Server::new(config.library(), store, config.engine.clone()).with_full_audit(config.audit_full))
}

fn from_stdin(text: &str, asked: bool) -> Result<Map<String, Value>, Failure> {
    if text.trim().is_empty() && !asked {
        return Ok(Map::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(Failure::Usage("stdin: a JSON object with the arguments is wanted".to_owned())),
        Err(error) => Err(Failure::Usage(format!("stdin: a JSON object with the arguments is wanted: {error}"))),
    }
}

/// `KEY=VALUE` or `KEY:=JSON`.
fn pair<'a>(argument: &'a str, schema: &Value) -> Result<(&'a str, Value), String> {
    let Some((key, text)) = argument.split_once('=') else {
        return Err(format!("{argument:?} is no argument: KEY=VALUE or KEY:=JSON is wanted"));
    };
    let (key, explicit) = match key.strip_suffix(':') {
        Some(key) => (key, true),
        None => (key, false),
    };
    if key.is_empty() {
        return Err(format!("{argument:?} has no key: KEY=VALUE or KEY:=JSON is wanted"));
    }
    let parsed = || serde_json::from_str::<Value>(text);
    if explicit {
        return parsed().map(|value| (key, value)).map_err(|error| format!("{key}:= is followed by no JSON: {error}"));
    }
    // Quotes are the shell's business, so what the schema wants is not worth a warning; the server reads the rest.
    let kinds = schema.pointer(&format!("/properties/{key}")).map(kinds).unwrap_or_default();
    let fits = |value: &Value| !kinds.contains(&"string") && kinds.iter().any(|kind| is_of(value, kind));
    let value = parsed().ok().filter(fits);
    Ok((key, value.unwrap_or_else(|| text.into())))
}

/// The types that a schema allows; a schema without any allows all.
fn kinds(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn is_of(value: &Value, kind: &str) -> bool {
    match value {
        Value::Bool(_) => kind == "boolean",
        Value::Number(_) => matches!(kind, "integer" | "number"),
        Value::Array(_) => kind == "array",
        Value::Object(_) => kind == "object",
        Value::Null | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(arguments: &[&str], terminal: bool, stdin: &str, expected: Result<Value, &str>) {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let call = Call { tool: "next_activity".to_owned(), arguments, json: false, schema: false };
        match (call.read(terminal, |_| Ok(stdin.to_owned())), expected) {
            (Ok(read), Ok(expected)) => assert_eq!(Value::Object(read), expected),
            (Err(Failure::Usage(problem)), Err(part)) => assert!(problem.contains(part), "{problem}"),
            (read, _) => panic!("{read:?}"),
        }
    }

    #[test]
    fn values_are_texts_where_texts_are_wanted() {
        check(&["activity_id=7"], true, "", Ok(json!({"activity_id": "7"})));
        check(&["transition_condition=a == true"], true, "", Ok(json!({"transition_condition": "a == true"})));
        check(&["transition_condition="], true, "", Ok(json!({"transition_condition": ""})));
        check(&["unknown=7"], true, "", Ok(json!({"unknown": "7"})));
    }

    #[test]
    fn values_are_json_where_json_is_wanted_or_written() {
        check(&["context_tokens=200000"], true, "", Ok(json!({"context_tokens": 200_000})));
        check(&["context_tokens=many"], true, "", Ok(json!({"context_tokens": "many"})));
        check(&["step_manifest=[]"], true, "", Ok(json!({"step_manifest": []})));
        check(&["variables_changed={\"a\":\"1\"}"], true, "", Ok(json!({"variables_changed": {"a": "1"}})));
        check(&["activity_id:=7"], true, "", Ok(json!({"activity_id": 7})));
        check(&["activity_id:=seven"], true, "", Err("activity_id:="));
    }

    #[test]
    fn stdin_gives_an_object_and_arguments_go_over_it() {
        let object = r#"{"activity_id": "plan", "context_tokens": 1}"#;
        check(&["-", "activity_id=ship"], true, object, Ok(json!({"activity_id": "ship", "context_tokens": 1})));
        check(&[], false, object, Ok(json!({"activity_id": "plan", "context_tokens": 1})));
        check(&["context_tokens=2"], false, object, Ok(json!({"context_tokens": 2})));
        check(&[], true, object, Ok(json!({})));
        check(&[], false, "\n", Ok(json!({})));
        check(&["-"], false, "", Err("a JSON object"));
        check(&[], false, "[1]", Err("a JSON object"));
    }

    #[test]
    fn what_is_no_argument_is_refused() {
        check(&["plan"], true, "", Err("\"plan\""));
        check(&["=plan"], true, "", Err("no key"));
        check(&[":=1"], true, "", Err("no key"));
        check(&["activity_id=a", "activity_id:=\"b\""], true, "", Err("twice"));
    }
}
