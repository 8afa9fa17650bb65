//! `session show`: one session on the terminal.

use anstyle::Style;
use clap::Args;
use serde_json::Value;
use workflow_mcp::{Clock as _, SystemClock};

use crate::config::Config;
use crate::exit::Failure;
use crate::plain::plain;
use crate::printer::{self, BAD, DIM, GOOD, POOR, STRONG, Text, styled};
use crate::report::{self, Gate, Kept, Redaction, Report, State, Variable, Warned, counted, grouped, moment, span};

/// Characters of a value on its line.
const VALUE: usize = 90;
/// So many variables are shown whoever wrote them.
const FEW: usize = 15;
/// Variables that are shown at most.
const MANY: usize = 60;
/// Different warnings that are shown.
const WARNED: usize = 5;
/// Characters of a warning; what to do stands at its end.
const WARNING: usize = 3 * VALUE;

/// Shows one session: where it stands, what it waits for, what is done and what comes
///
/// Values that have the name or the look of a secret are hidden. `session export` writes the whole story as a page.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflow-server session show my-tour
  workflow-server session show ABC234 --events 50
  workflow-server session show ABC234 --json | jq .open_checkpoint")]
pub(crate) struct Show {
    /// Slug or index of the session, as `session list` shows them, or the path of its folder
    #[arg(value_name = "SLUG|INDEX")]
    session: String,
    /// How many of the newest events to show
    #[arg(long, value_name = "NUMBER", default_value_t = 8)]
    events: usize,
    /// Show all variables, and the user's request and long values whole
    #[arg(long)]
    full: bool,
    /// Hide nothing
    #[arg(long = "show-secrets")]
    secrets: bool,
    /// Print JSON: the report of `session export` without its timeline
    #[arg(long)]
    json: bool,
}

impl Show {
    pub(crate) fn run(&self, config: &Config) -> Result<(), Failure> {
        let server = super::server(config)?;
        let redaction = Redaction::new(self.full, self.secrets);
        let report = report::collect(&server, &self.session, SystemClock.now(), &redaction)?;
        if self.json {
            printer::data(&format!("{:#}", report::json::value(&report, false)))?;
            return Ok(());
        }
        printer::print(&self.text(&report))?;
        Ok(())
    }

    fn text(&self, report: &Report) -> Text {
        let mut text = heading(report);
        if let Some(gate) = &report.gate {
            text.append(&waiting(gate));
        }
        text.append(&progress(report));
        text.append(&self.variables(report));
        text.append(&children(report));
        text.append(&self.newest(report));
        text.append(&self.warnings(report));
        text.append(&costs(report));
        if report.redacted.hidden > 0 || report.redacted.cut > 0 {
            let hidden = counted(report.redacted.hidden, "value");
            let note = format!("{hidden} hidden, {} cut; see --full and --show-secrets", report.redacted.cut);
            text.line("");
            text.line(&styled(DIM, &note));
        }
        text
    }

    fn variables(&self, report: &Report) -> Text {
        if report.variables.is_empty() {
            return Text::default();
        }
        // Of many, those that the session has written say most.
        let shown = |variable: &&Variable| {
            self.full || report.variables.len() <= FEW || variable.writes > 0 || !variable.declared
        };
        let rows: Vec<_> = report
            .variables
            .iter()
            .filter(shown)
            .take(if self.full { usize::MAX } else { MANY })
            .map(|variable| {
                let value = match &variable.value {
                    Value::String(text) if text.is_empty() => "\"\"".to_owned(),
                    value => report::inline(value),
                };
                let value = if self.full { plain(&value) } else { shortened(&plain(&value), VALUE) };
                vec![(Style::new(), format!("  {}", variable.name)), (DIM, value)]
            })
            .collect();
        let left_out = report.variables.len() - rows.len();
        let mut body = table(rows);
        if left_out > 0 {
            let note = format!("  {left_out} more; see --full");
            body.line(&styled(DIM, &note));
        }
        section("Variables", &body)
    }

    fn newest(&self, report: &Report) -> Text {
        if report.lines.is_empty() || self.events == 0 {
            return Text::default();
        }
        let from = report.lines.len().saturating_sub(self.events);
        let rows: Vec<_> = report
            .lines
            .iter()
            .skip(from)
            .map(|line| {
                let agent = line.agent.as_ref().map(|agent| format!("  [{agent}]")).unwrap_or_default();
                let style = if line.is_milestone() { Style::new() } else { DIM };
                let sentence = plain(&format!("{}{agent}", line.text));
                vec![(DIM, format!("  {}", moment(&line.at))), (style, shortened(&sentence, VALUE + 30))]
            })
            .collect();
        let title =
            if from == 0 { "Events".to_owned() } else { format!("Events, the newest of {}", report.lines.len()) };
        section(&title, &table(rows))
    }

    /// The newest warnings, each with how often it was given.
    fn warnings(&self, report: &Report) -> Text {
        let mut newest: Vec<(&Warned, usize)> = Vec::new();
        for warned in report.trace.warnings.iter().rev() {
            let same = |(known, _): &(&Warned, usize)| (&known.tool, &known.text) == (&warned.tool, &warned.text);
            let full = newest.len() == WARNED;
            match newest.iter().position(same).and_then(|at| newest.get_mut(at)) {
                Some((_, times)) => *times += 1,
                None if full => {}
                None => newest.push((warned, 1)),
            }
        }
        let (all, shown) = (report.trace.warnings.len(), newest.iter().map(|(_, times)| times).sum::<usize>());
        let rows: Vec<_> = newest
            .into_iter()
            .rev()
            .map(|(warned, times)| {
                let text = plain(&warned.text);
                let text = if self.full { text } else { shortened(&text, WARNING) };
                let times = if times > 1 { format!("  ({times}×)") } else { String::new() };
                vec![
                    (DIM, format!("  {}", warned.at.as_deref().map_or("-".to_owned(), moment))),
                    (POOR, warned.tool.clone()),
                    (Style::new(), text + &times),
                ]
            })
            .collect();
        match all {
            0 => Text::default(),
            _ if shown < all => section(&format!("Warnings, the newest of {all}"), &table(rows)),
            _ => section("Warnings", &table(rows)),
        }
    }
}

fn section(title: &str, body: &Text) -> Text {
    let mut text = Text::default();
    text.line("");
    text.line(&styled(STRONG, title));
    text.append(body);
    text
}

fn heading(report: &Report) -> Text {
    let head = &report.head;
    let style = match head.status {
        "blocked" => POOR,
        "aborted" => BAD,
        "completed" => DIM,
        _ => GOOD,
    };
    let title = head.title.as_deref().unwrap_or(&head.workflow_id);
    let mut text = Text::of(&format!("{}  {}", styled(STRONG, title), styled(style, head.status)));
    let position = match head.current_activity.as_str() {
        "" => "not begun",
        workflow_corpus::TERMINAL => "at the end",
        activity => activity,
    };
    let mut place = head.folder.clone();
    if !head.embedded.is_empty() {
        place.extend([" at ", &head.embedded]);
    }
    let elapsed = head.elapsed_ms.map(|ms| format!(", {} to the last event", span(ms))).unwrap_or_default();
    let mut rows = vec![
        ("session", head.session_index.clone()),
        ("workflow", format!("{} {}", head.workflow_id, head.workflow_version)),
        ("folder", place),
        ("agent", head.agent_id.clone()),
        ("started", format!("{} UTC{elapsed}", moment(&head.started_at))),
        ("position", position.to_owned()),
    ];
    if let Some(parent) = &head.parent {
        rows.insert(3, ("parent", parent.clone()));
    }
    let rows: Vec<_> =
        rows.into_iter().map(|(name, value)| vec![(DIM, name.to_owned()), (Style::new(), value)]).collect();
    text.append(&table(rows));
    for note in &report.notes {
        text.line(&format!("{}  {note}", styled(POOR, "note")));
    }
    text
}

fn waiting(gate: &Gate) -> Text {
    let by = gate.yielded_by.as_ref().map(|agent| format!(" by {agent}")).unwrap_or_default();
    let mut body =
        Text::of(&format!("  {}  asked {} UTC{by}", styled(POOR, &gate.checkpoint), moment(&gate.yielded_at)));
    match &gate.wording {
        Some(wording) => {
            body.lines("  ", &wording.message);
            let rows: Vec<_> = wording
                .options
                .iter()
                .map(|option| {
                    let description = option.description.as_ref().map(|d| format!(": {d}")).unwrap_or_default();
                    vec![
                        (STRONG, format!("  - {}", option.id)),
                        (Style::new(), format!("{}{description}", option.label)),
                    ]
                })
                .collect();
            body.append(&table(rows));
        }
        None => body.line("  its wording is not in the definition any more; see `session release`"),
    }
    section("Waiting for an answer", &body)
}

fn progress(report: &Report) -> Text {
    let mut activities: Vec<_> = report.activities.iter().collect();
    activities.sort_by_key(|activity| activity.place);
    let rows: Vec<_> = activities
        .into_iter()
        .map(|activity| {
            let (sign, style) = match activity.state {
                State::Done => ("✓", GOOD),
                State::Current if report.gate.is_some() => ("▶", POOR),
                State::Current => ("▶", STRONG),
                State::Skipped => ("–", DIM),
                State::Ahead => ("·", DIM),
            };
            let mut notes = Vec::new();
            notes.extend(activity.ms.map(span));
            if activity.visits > 1 {
                notes.push(format!("{} visits", activity.visits));
            }
            if activity.steps > 0 {
                notes.push(format!("{} reported", counted(activity.steps, "step")));
            }
            if !activity.declared {
                notes.push("not in the definition".to_owned());
            }
            let name = activity.name.as_deref().unwrap_or_default();
            vec![
                (style, format!("  {sign} {}", activity.id)),
                (style, activity.state.as_str().to_owned()),
                (Style::new(), name.to_owned()),
                (DIM, notes.join(", ")),
            ]
        })
        .collect();
    if rows.is_empty() { Text::default() } else { section("Activities", &table(rows)) }
}

fn children(report: &Report) -> Text {
    let rows: Vec<_> = report
        .children
        .iter()
        .map(|child| {
            let style = match child.status.as_str() {
                "completed" => DIM,
                "blocked" => POOR,
                "aborted" | "error" => BAD,
                _ => GOOD,
            };
            let kept = if child.kept == Kept::Embedded { String::new() } else { child.kept.as_str().to_owned() };
            vec![
                (STRONG, format!("  {}{}", "  ".repeat(child.depth), child.session_index)),
                (style, child.status.clone()),
                (Style::new(), child.workflow_id.clone()),
                (Style::new(), child.current_activity.clone()),
                (DIM, format!("{} done", counted(child.completed, "activity"))),
                (DIM, kept),
            ]
        })
        .collect();
    if rows.is_empty() { Text::default() } else { section("Children", &table(rows)) }
}

fn costs(report: &Report) -> Text {
    let mut rows = Vec::new();
    if let Some(totals) = report.usage.get("totals").and_then(Value::as_object).filter(|totals| !totals.is_empty()) {
        let parts: Vec<String> = totals
            .iter()
            .map(|(key, value)| {
                format!("{} {}", value.as_u64().map_or_else(|| report::inline(value), grouped), key.replace('_', " "))
            })
            .collect();
        rows.push(vec![(DIM, "  reported".to_owned()), (Style::new(), parts.join(", "))]);
    }
    let sent = &report.delivered.total;
    if sent.calls > 0 {
        let noun = if sent.calls == 1 { "delivery" } else { "deliveries" };
        let text = format!("{} characters in {} {noun}", grouped(sent.chars), sent.calls);
        rows.push(vec![(DIM, "  sent".to_owned()), (Style::new(), text)]);
    }
    if report.trace.calls > 0 {
        let refused: usize = report.trace.tools.iter().map(|calls| calls.refused).sum();
        let text = format!("{}, {refused} refused", counted(report.trace.calls, "call"));
        rows.push(vec![(DIM, "  calls".to_owned()), (Style::new(), text)]);
    }
    if rows.is_empty() { Text::default() } else { section("Usage", &table(rows)) }
}

fn shortened(text: &str, length: usize) -> String {
    let mut short: String = text.chars().take(length).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// A table whose rows end with what they have.
fn table(mut rows: Vec<Vec<(Style, String)>>) -> Text {
    for row in &mut rows {
        while row.last().is_some_and(|(_, text)| text.is_empty()) {
            row.pop();
        }
    }
    Text::table(&rows)
}
