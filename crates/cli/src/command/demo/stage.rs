//! Who speaks, and how it is shown.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use serde_json::{Map, Value};
use workflow_mcp::Server;

use super::client::{Answer, Client};
use super::workspace::Writing;
use crate::exit::Failure;
use crate::printer::{self, DIM, POOR, STRONG, styled};

/// Columns before the text.
const INDENT: usize = 13;

/// Longest line of an excerpt, in characters.
const WIDTH: usize = 98 - INDENT - 2;

/// Pause between two lines when somebody watches.
const PAUSE: Duration = Duration::from_millis(1200);

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    User,
    Orchestrator,
    Worker,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Orchestrator => "orchestrator",
            Self::Worker => "worker",
        }
    }

    fn style(self) -> Style {
        match self {
            Self::User => AnsiColor::Yellow.on_default().bold(),
            Self::Orchestrator => AnsiColor::Cyan.on_default().bold(),
            Self::Worker => AnsiColor::Green.on_default().bold(),
        }
    }
}

/// One connection for each agent, and the transcript.
pub(super) struct Stage {
    orchestrator: Client,
    worker: Client,
    writing: Writing,
    watched: bool,
    scenes: usize,
    scene: usize,
}

impl Stage {
    /// Connects the agents.
    pub(super) fn new(server: &Arc<Server>, writing: Writing, watched: bool, scenes: usize) -> Result<Self, Failure> {
        let (orchestrator, worker) = (Client::connect(server)?, Client::connect(server)?);
        Ok(Self { orchestrator, worker, writing, watched, scenes, scene: 0 })
    }

    /// Connects the agents to another server.
    pub(super) fn reconnect(&mut self, server: &Arc<Server>) -> Result<(), Failure> {
        self.orchestrator = Client::connect(server)?;
        self.worker = Client::connect(server)?;
        Ok(())
    }

    /// Begins a scene.
    pub(super) fn scene(&mut self, title: &str) -> Result<(), Failure> {
        self.scene += 1;
        let progress = format!("[{}/{}]", self.scene, self.scenes);
        printer::print_lines(&format!("\n{} {}", styled(DIM, &progress), styled(STRONG, title)))?;
        Ok(())
    }

    /// Something that a person says.
    pub(super) fn says(&self, role: Role, text: &str) -> Result<(), Failure> {
        self.pause();
        printer::print_line(&format!("{} \"{text}\"", label(role)))?;
        Ok(())
    }

    /// Something that happens without a call.
    pub(super) fn tells(&self, text: &str) -> Result<(), Failure> {
        self.pause();
        printer::print_line(&remark(text))?;
        Ok(())
    }

    /// Makes a call without showing it.
    pub(super) fn quietly(&mut self, role: Role, tool: &str, arguments: &Value) -> Result<Answer, Failure> {
        let client = if role == Role::Worker { &mut self.worker } else { &mut self.orchestrator };
        Ok(self.writing.during(|| client.call(tool, arguments))?)
    }

    /// Makes a call and shows it: of a JSON answer the members that `excerpt` names (or points at with a `/` in front),
    /// of another one the first lines that begin so; then what it means.
    pub(super) fn call(
        &mut self,
        role: Role,
        tool: &str,
        arguments: &Value,
        excerpt: &[&str],
        meaning: &str,
    ) -> Result<Answer, Failure> {
        self.pause();
        let answer = self.quietly(role, tool, arguments)?;
        show(role, tool, arguments, &answer, excerpt, meaning)?;
        if answer.is_error {
            return Err(Failure::failed(format!("{tool} was refused, which the demo did not expect: {}", answer.text)));
        }
        Ok(answer)
    }

    /// Makes a call that is refused.
    pub(super) fn refused(&mut self, role: Role, tool: &str, arguments: &Value, meaning: &str) -> Result<(), Failure> {
        self.pause();
        let answer = self.quietly(role, tool, arguments)?;
        show(role, tool, arguments, &answer, &[""], meaning)?;
        if answer.is_error { Ok(()) } else { Err(Failure::failed(format!("{tool} was expected to be refused"))) }
    }

    fn pause(&self) {
        if self.watched {
            thread::sleep(PAUSE);
        }
    }
}

/// Shows a call that was made.
pub(super) fn show(
    role: Role,
    tool: &str,
    arguments: &Value,
    answer: &Answer,
    excerpt: &[&str],
    meaning: &str,
) -> Result<(), Failure> {
    let written = written(arguments);
    let mut lines = vec![format!("{} → {}{written}", label(role), styled(STRONG, tool))];
    let (sign, style) = if answer.is_error { ("✗", POOR) } else { ("←", Style::new()) };
    let mut shown = parts(&answer.text, excerpt);
    shown.extend(warnings(&answer.text));
    let length = INDENT + 2 + tool.chars().count() + written.chars().count();
    if let ([part], false) = (shown.as_slice(), written.contains('\n'))
        && length + part.chars().count() + 4 <= 90
    {
        lines = vec![format!("{}  {sign} {}", lines.concat(), styled(style, part))];
        shown.clear();
    }
    for (number, part) in shown.iter().enumerate() {
        let sign = if number == 0 { sign } else { " " };
        lines.push(format!("{:INDENT$}{sign} {}", "", styled(style, &cut(part))));
    }
    lines.push(remark(meaning));
    printer::print_lines(&lines.join("\n"))?;
    Ok(())
}

fn remark(text: &str) -> String {
    format!("{:INDENT$}{}", "", styled(DIM, &format!("· {text}")))
}

fn label(role: Role) -> String {
    let width = INDENT - 1;
    styled(role.style(), &format!("{:width$}", role.name()))
}

/// Arguments as `call` takes them, without the session index that every call carries.
fn written(arguments: &Value) -> String {
    let none = Map::new();
    let mut text = String::new();
    for (name, value) in arguments.as_object().unwrap_or(&none).iter().filter(|(name, _)| *name != "session_index") {
        let value = match value {
            Value::String(value) => value.clone(),
            Value::Array(entries) if name == "step_manifest" => {
                let step = |entry: &Value| entry.get("step_id").and_then(Value::as_str).unwrap_or_default().to_owned();
                format!("[{}]", entries.iter().map(step).collect::<Vec<_>>().join(", "))
            }
            other => other.to_string(),
        };
        let value = if value.contains(' ') && !value.starts_with(['[', '{']) { format!("\"{value}\"") } else { value };
        text.push_str("\n                ");
        text.push_str(name);
        text.push('=');
        text.push_str(&value);
    }
    fold(&text)
}

/// Puts as many arguments on a line as fit.
fn fold(text: &str) -> String {
    let (mut out, mut column) = (String::new(), INDENT + 24);
    for argument in text.split("\n                ").skip(1) {
        let width = argument.chars().count() + 1;
        if column + width > 100 {
            out.push_str("\n                 ");
            column = 17;
        } else {
            out.push(' ');
        }
        out.push_str(argument);
        column += width;
    }
    out
}

/// The parts of an answer that are shown.
fn parts(text: &str, excerpt: &[&str]) -> Vec<String> {
    if let Some(whole) =
        serde_json::from_str(text).ok().filter(|answer: &Value| answer.is_object() || answer.is_array())
    {
        let find = |name: &&str| {
            let pointer = if name.starts_with('/') { (*name).to_owned() } else { format!("/{name}") };
            let value = whole.pointer(&pointer)?;
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            Some(format!("{}: {value}", name.rsplit('/').next().unwrap_or(name)))
        };
        return excerpt.iter().filter_map(find).collect();
    }
    let mut lines = text.lines().map(str::trim);
    let mut found = Vec::new();
    for start in excerpt {
        found.extend(lines.by_ref().find(|line| line.starts_with(start)).map(str::to_owned));
    }
    found
}

/// Warnings are for whoever reads the answer, so they are never left out.
fn warnings(text: &str) -> Vec<String> {
    let json: Option<Value> = serde_json::from_str(text).ok();
    if let Some(listed) = json.as_ref().and_then(|answer| answer.get("validation")).and_then(Value::as_array) {
        return listed.iter().filter_map(Value::as_str).map(|warning| format!("warning: {warning}")).collect();
    }
    let block = text.rsplit_once("\nvalidation:\n").map(|(_, block)| block);
    block.into_iter().flat_map(str::lines).map(|line| format!("warning: {line}")).collect()
}

fn cut(text: &str) -> String {
    if text.chars().count() <= WIDTH {
        return text.to_owned();
    }
    let head: String = text.chars().take(WIDTH - 1).collect();
    format!("{head}…")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_and_lines_are_picked() {
        let answer = r#"{"a": "x", "b": {"c": [1, 2]}}"#;
        assert_eq!(parts(answer, &["a", "/b/c", "none"]), ["a: x", "c: [1,2]"]);
        assert_eq!(parts("one: 1\n  two: 2\nthree: 3\n", &["two", "three", "one"]), ["two: 2", "three: 3"]);
    }

    #[test]
    fn warnings_are_never_left_out() {
        assert_eq!(warnings(r#"{"validation": ["careful"]}"#), ["warning: careful"]);
        assert_eq!(warnings("id: x\n\nvalidation:\n- \"careful\"\n"), ["warning: - \"careful\""]);
        assert!(warnings("id: x\n").is_empty() && warnings("[]").is_empty());
    }

    #[test]
    fn arguments_are_written_as_call_takes_them() {
        let arguments = json!({
            "session_index": "ABC234", "activity_id": "a", "condition": "x == 1",
            "step_manifest": [{"step_id": "one", "output": "1"}, {"step_id": "two", "output": "2"}]
        });
        assert_eq!(written(&arguments), " activity_id=a condition=\"x == 1\" step_manifest=[one, two]");
    }
}
