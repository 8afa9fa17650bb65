//! A report as one page: no scripts, no other files, light and dark.

use serde_json::Value;

use super::page::Page;
use super::redaction::HIDDEN;
use super::{
    Delivered, Report, Round, Share, State, Wording, counted, date_time, drawing, grouped, inline, moment, span,
};

/// Events that are listed; of more, the first and the newest.
const LISTED: usize = 1000;
const LISTED_FIRST: usize = 200;
/// Questions that are shown, the newest.
const ASKED: usize = 300;
/// Warnings that are shown, the newest.
const WARNED: usize = 200;
/// Nothing is loaded and nothing runs, whatever got into the page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// The whole page.
pub(crate) fn render(report: &Report) -> String {
    let mut page = Page::default();
    let title = title(report);
    page.raw("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    page.open("meta", &[("http-equiv", "Content-Security-Policy"), ("content", POLICY)]);
    page.raw("\n<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n");
    page.raw("<meta name=\"color-scheme\" content=\"light dark\">\n");
    page.leaf("title", &[], &format!("{title} · {}", report.head.slug));
    page.raw("\n<style>\n");
    page.raw(include_str!("report.css"));
    page.raw("</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">To the report</a>\n");
    page.within("header", &[], |page| header(page, report, &title));
    page.raw("\n");
    contents(&mut page, report);
    page.raw("\n<main id=\"main\">\n");
    for (id, heading, has, fill) in SECTIONS {
        if has(report) {
            page.within("section", &[("id", id), ("aria-labelledby", &format!("{id}-heading"))], |page| {
                page.leaf("h2", &[("id", &format!("{id}-heading"))], heading);
                fill(page, report);
            });
            page.raw("\n");
        }
    }
    page.raw("</main>\n");
    page.within("footer", &[], |page| footer(page, report));
    page.raw("\n</body>\n</html>\n");
    page.finish()
}

type Section = (&'static str, &'static str, fn(&Report) -> bool, fn(&mut Page, &Report));

const SECTIONS: &[Section] = &[
    ("timeline", "Timeline", |report| !report.visits.is_empty(), timeline),
    ("activities", "Activities", |report| !report.activities.is_empty(), activities),
    ("checkpoints", "Checkpoints", |report| !report.rounds.is_empty(), checkpoints),
    ("variables", "Variables", |report| !report.variables.is_empty(), variables),
    ("usage", "Usage", |_| true, usage),
    ("delivered", "What was sent", |report| report.delivered.total.calls > 0, delivered),
    ("children", "Children", |report| !report.children.is_empty(), children),
    ("warnings", "Warnings", |report| !report.trace.warnings.is_empty(), warnings),
    ("trace", "Calls", |report| report.trace.calls > 0, trace),
    ("events", "Events", |report| !report.lines.is_empty(), events),
];

fn title(report: &Report) -> String {
    report.head.title.clone().unwrap_or_else(|| report.head.workflow_id.clone())
}

fn badge(page: &mut Page, state: &str) {
    // Only words of this program become a class.
    let known = [
        "active",
        "blocked",
        "completed",
        "aborted",
        "done",
        "current",
        "skipped",
        "ahead",
        "running",
        "waiting",
        "error",
    ];
    let class = match known.iter().find(|known| **known == state) {
        Some(state) => format!("badge {state}"),
        None => "badge".to_owned(),
    };
    page.leaf("span", &[("class", &class)], state);
}

fn header(page: &mut Page, report: &Report, title: &str) {
    let head = &report.head;
    page.within("h1", &[], |page| {
        page.text(title);
        page.raw(" ");
        badge(page, head.status);
    });
    page.within("p", &[("class", "place")], |page| {
        page.text("Session ");
        page.leaf("code", &[], &head.session_index);
        page.text(" in ");
        page.leaf("code", &[], &head.folder);
        if !head.embedded.is_empty() {
            page.text(" at ");
            page.leaf("code", &[], &head.embedded);
        }
        if let Some(parent) = &head.parent {
            page.text(", child of ");
            page.leaf("code", &[], parent);
        }
        page.text(" · workflow ");
        page.leaf("code", &[], &format!("{} {}", head.workflow_id, head.workflow_version));
        page.text(" · agent ");
        page.leaf("code", &[], &head.agent_id);
    });
    page.within("dl", &[("class", "tiles")], |page| tiles(page, report));
    page.within("div", &[("class", "note plain")], |page| page.text(&redaction_note(report)));
    if !report.notes.is_empty() {
        page.within("div", &[("class", "note"), ("role", "note")], |page| {
            page.within("ul", &[], |page| report.notes.iter().for_each(|note| page.leaf("li", &[], note)));
        });
    }
}

fn tile(page: &mut Page, name: &str, value: &str, detail: &str) {
    page.within("div", &[], |page| {
        page.leaf("dt", &[], name);
        page.within("dd", &[], |page| {
            page.text(value);
            if !detail.is_empty() {
                page.leaf("small", &[], detail);
            }
        });
    });
}

fn tiles(page: &mut Page, report: &Report) {
    let head = &report.head;
    let count = |state: State| report.activities.iter().filter(|activity| activity.state == state).count();
    let (done, skipped) = (count(State::Done), count(State::Skipped));
    let at = match head.current_activity.as_str() {
        "" => "not begun",
        workflow_corpus::TERMINAL => "at the end",
        activity => activity,
    };
    let waiting = report.gate.as_ref().map(|gate| format!("waiting at {}", gate.checkpoint)).unwrap_or_default();
    tile(page, "Position", at, &waiting);
    let skipped = if skipped > 0 { format!("{skipped} skipped") } else { String::new() };
    tile(page, "Activities done", &format!("{done} of {}", report.activities.len()), &skipped);
    let elapsed = head.elapsed_ms.map_or_else(|| "–".to_owned(), span);
    tile(page, "First to last event", &elapsed, &format!("from {} UTC", moment(&head.started_at)));
    let is_answered = |round: &&Round| round.option.is_some() && !round.dismissed && !round.by_default;
    let answered = report.rounds.iter().filter(is_answered).count();
    let waited: i64 = report.rounds.iter().filter_map(|round| round.waited_ms).sum();
    let waited = if waited > 0 { format!("waited {} in all", span(waited)) } else { String::new() };
    tile(page, "Answers", &answered.to_string(), &waited);
    if let Some((tokens, detail)) = tokens(report) {
        tile(page, "Tokens reported", &tokens, &detail);
    }
    if report.delivered.total.calls > 0 {
        let total = &report.delivered.total;
        let detail = format!("characters in {}", counted(total.calls, "delivery"));
        let chars =
            if total.chars == 0 && total.unknown > 0 { "not recorded".to_owned() } else { grouped(total.chars) };
        tile(page, "Sent", &chars, &detail);
    }
    tile(
        page,
        "Events",
        &grouped(report.lines.len() as u64),
        &counted(usize::try_from(head.writes).unwrap_or(0), "write"),
    );
}

/// The sum that says most, and what it is.
fn tokens(report: &Report) -> Option<(String, String)> {
    let totals = report.usage.get("totals")?.as_object()?;
    let number = |key: &str| totals.get(key).and_then(Value::as_u64);
    match (number("input_tokens"), number("output_tokens"), number("total_tokens")) {
        (Some(input), Some(output), _) => {
            Some((grouped(input + output), format!("{} in, {} out", grouped(input), grouped(output))))
        }
        (_, _, Some(total)) => Some((grouped(total), String::new())),
        _ => None,
    }
}

fn redaction_note(report: &Report) -> String {
    let told = &report.redacted;
    let mut parts = Vec::new();
    parts.push(if told.secrets {
        "Secrets are shown: nothing was looked for (--show-secrets).".to_owned()
    } else if told.hidden == 0 {
        "Nothing had to be hidden: no value has the name or the look of a secret.".to_owned()
    } else {
        format!(
            "{} with the name or the look of a secret {} hidden.",
            counted(told.hidden, "value"),
            if told.hidden == 1 { "is" } else { "are" }
        )
    });
    if told.full {
        parts.push("The user's request and long values are whole (--full).".to_owned());
    } else if told.cut > 0 {
        parts.push("The user's request and long values are cut (whole with --full).".to_owned());
    }
    if !told.secrets {
        parts.push("This is a net, not a proof: read the report before you pass it on.".to_owned());
    }
    parts.join(" ")
}

fn contents(page: &mut Page, report: &Report) {
    page.within("nav", &[("aria-label", "Sections")], |page| {
        page.within("ul", &[], |page| {
            for (id, heading, has, _) in SECTIONS {
                if has(report) {
                    page.within("li", &[], |page| page.leaf("a", &[("href", &format!("#{id}"))], heading));
                }
            }
        });
    });
}

/// A table that scrolls by itself when it is wider than the page. Headings that end with `#` are those of numbers.
fn table(page: &mut Page, caption: &str, headings: &[&str], rows: impl FnOnce(&mut Page)) {
    page.within(
        "div",
        &[("class", "scroll"), ("tabindex", "0"), ("role", "region"), ("aria-label", caption)],
        |page| {
            page.within("table", &[], |page| {
                page.leaf("caption", &[], caption);
                page.within("thead", &[], |page| {
                    page.within("tr", &[], |page| {
                        for heading in headings {
                            match heading.strip_suffix('#') {
                                Some(heading) => page.leaf("th", &[("scope", "col"), ("class", "number")], heading),
                                None => page.leaf("th", &[("scope", "col")], heading),
                            }
                        }
                    });
                });
                page.within("tbody", &[], rows);
            });
        },
    );
}

fn named(page: &mut Page, name: &str) {
    page.within("th", &[("scope", "row")], |page| page.leaf("code", &[], if name.is_empty() { "–" } else { name }));
}

fn cell(page: &mut Page, text: &str) {
    page.leaf("td", &[], if text.is_empty() { "–" } else { text });
}

fn number(page: &mut Page, text: &str) {
    page.leaf("td", &[("class", "number")], if text.is_empty() { "–" } else { text });
}

fn when(page: &mut Page, stamp: Option<&str>) {
    match stamp {
        Some(stamp) => page.within("td", &[("class", "when")], |page| {
            page.leaf("time", &[("datetime", stamp)], &moment(stamp));
        }),
        None => page.leaf("td", &[("class", "when")], "–"),
    }
}

fn timeline(page: &mut Page, report: &Report) {
    page.within(
        "div",
        &[("class", "scroll"), ("tabindex", "0"), ("role", "region"), ("aria-label", "Timeline, drawn")],
        |page| drawing::draw(page, report),
    );
    page.raw(
        "<ul class=\"legend\"><li><i></i>activity</li><li><i class=\"l-current\"></i>current activity</li>\
         <li><i class=\"l-gate\"></i>question, answered</li><li><i class=\"l-open\"></i>question, waiting</li>",
    );
    if !report.children.is_empty() {
        page.raw("<li><i class=\"l-child\"></i>child session</li>");
    }
    page.raw("<li><i class=\"l-fold\"></i>nothing happened, folded</li></ul>");
}

fn activities(page: &mut Page, report: &Report) {
    let caption = "In the order of the definition. Times are from entering to leaving, so they contain waiting.";
    let mut headings = vec!["Activity", "State", "Entered (UTC)", "Visits#", "Time#", "Steps reported#"];
    let with_outcomes = report.activities.iter().any(|activity| !activity.outcomes.is_empty());
    if with_outcomes {
        headings.push("Outcomes");
    }
    table(page, caption, &headings, |page| {
        for activity in &report.activities {
            page.within("tr", &[], |page| {
                page.within("th", &[("scope", "row")], |page| {
                    page.leaf("code", &[], &activity.id);
                    match &activity.name {
                        Some(name) if *name != activity.id => {
                            page.raw("<br>");
                            page.leaf("span", &[("class", "quiet")], name);
                        }
                        Some(_) => {}
                        None if activity.declared => {}
                        None => {
                            page.raw("<br>");
                            page.leaf("span", &[("class", "quiet")], "not in the definition");
                        }
                    }
                });
                page.within("td", &[], |page| badge(page, activity.state.as_str()));
                when(page, activity.entered_at.as_deref());
                number(page, &if activity.visits > 0 { activity.visits.to_string() } else { String::new() });
                number(page, &activity.ms.map(span).unwrap_or_default());
                number(page, &if activity.steps > 0 { activity.steps.to_string() } else { String::new() });
                if with_outcomes {
                    cell(page, &activity.outcomes.join("; "));
                }
            });
        }
    });
}

fn checkpoints(page: &mut Page, report: &Report) {
    let left_out = report.rounds.len().saturating_sub(ASKED);
    if left_out > 0 {
        let text = format!("{} came before; the JSON form has all.", counted(left_out, "question"));
        page.leaf("p", &[("class", "quiet")], &text);
    }
    for round in report.rounds.iter().skip(left_out) {
        page.within("div", &[("class", "question")], |page| question(page, round));
    }
}

fn question(page: &mut Page, round: &Round) {
    page.within("div", &[("class", "title")], |page| {
        page.within("h3", &[], |page| page.leaf("code", &[], &round.checkpoint));
        if !round.activity.is_empty() {
            page.leaf("span", &[("class", "quiet")], &format!("in {}", round.activity));
        }
        match (&round.option, round.dismissed) {
            (None, _) => badge(page, "waiting"),
            (Some(_), true) => page.leaf("span", &[("class", "badge")], "dismissed: its condition did not hold"),
            (Some(option), false) if round.by_default => {
                let text = format!("default taken: {}", round.label().unwrap_or(option));
                page.leaf("span", &[("class", "badge")], &text);
            }
            (Some(option), false) => page.leaf("span", &[("class", "badge ok")], round.label().unwrap_or(option)),
        }
    });
    match &round.wording {
        Some(wording) => question_wording(page, wording, round),
        None => page.leaf(
            "p",
            &[("class", "quiet")],
            "The wording is not known any more: an unforeseen question keeps only its answer, and a declared one stands in \
             the definition.",
        ),
    }
    page.within("p", &[("class", "facts")], |page| page.text(&facts(round).join(" · ")));
}

fn question_wording(page: &mut Page, wording: &Wording, round: &Round) {
    page.leaf("blockquote", &[], &wording.message);
    page.within("ul", &[("class", "options")], |page| {
        for option in &wording.options {
            let is_chosen = round.option.as_ref() == Some(&option.id);
            page.within("li", &[("class", if is_chosen { "chosen" } else { "other" })], |page| {
                page.leaf("strong", &[], &option.label);
                page.text(" ");
                page.leaf("code", &[], &option.id);
                if is_chosen {
                    page.text(if round.by_default { " — taken by default" } else { " — chosen" });
                }
                if let Some(description) = &option.description {
                    page.raw("<br>");
                    page.text(description);
                }
            });
        }
    });
}

fn facts(round: &Round) -> Vec<String> {
    let mut facts = Vec::new();
    match (&round.reached_at, &round.yielded_by) {
        (Some(at), Some(agent)) => facts.push(format!("asked {} UTC by {agent}", moment(at))),
        (Some(at), None) => facts.push(format!("asked {} UTC", moment(at))),
        (None, _) => facts.push("taken over from an older format".to_owned()),
    }
    if let Some(at) = &round.answered_at {
        let by = round.recorded_by.as_ref().map(|agent| format!(", recorded by {agent}")).unwrap_or_default();
        let after = round.waited_ms.map(|ms| format!(" after {}", span(ms))).unwrap_or_default();
        let how = match (round.dismissed, round.by_default) {
            (true, _) => "dismissed",
            (false, true) => "not answered; default taken",
            (false, false) => "answered",
        };
        facts.push(format!("{how} {} UTC{after}{by}", moment(at)));
    }
    if round.wording.as_ref().is_some_and(|wording| wording.adhoc) {
        facts.push("worded by the agent".to_owned());
    }
    if round.replays > 0 {
        facts.push(format!("used again {}", counted(round.replays, "time")));
    }
    if let Some(set) = round.effects.get("variablesSet").and_then(Value::as_object) {
        let set: Vec<String> = set.iter().map(|(name, value)| format!("{name} = {}", inline(value))).collect();
        facts.push(format!("set {}", set.join(", ")));
    }
    if let Some(to) = round.effects.get("transitionedTo").and_then(Value::as_str) {
        facts.push(format!("led to {to}"));
    }
    if let Some(skipped) = round.effects.get("activitiesSkipped").and_then(Value::as_array) {
        let skipped: Vec<String> = skipped.iter().map(inline).collect();
        facts.push(format!("skipped {}", skipped.join(", ")));
    }
    facts
}

fn variables(page: &mut Page, report: &Report) {
    let caption = "As they are now. Declared ones belong to the workflow; the others were added by agents.";
    table(page, caption, &["Name", "Value", "Written", "From", "Writes#"], |page| {
        for variable in &report.variables {
            page.within("tr", &[], |page| {
                page.within("th", &[("scope", "row")], |page| {
                    page.leaf("code", &[], &variable.name);
                    let note = match (&variable.description, variable.declared) {
                        (Some(description), _) => description.as_str(),
                        (None, true) => "",
                        (None, false) => "not declared",
                    };
                    if !note.is_empty() {
                        page.raw("<br>");
                        page.leaf("span", &[("class", "quiet")], note);
                    }
                });
                page.within("td", &[], |page| {
                    let text = match &variable.value {
                        Value::String(text) => text.clone(),
                        other => format!("{other:#}"),
                    };
                    let class = if text == HIDDEN { "mono value hidden" } else { "mono value" };
                    page.leaf("div", &[("class", class)], if text.is_empty() { "\"\"" } else { &text });
                });
                if let Some(write) = &variable.written {
                    when(page, Some(&write.at));
                    let source = match write.source.as_str() {
                        "setVariable" => "an answer",
                        "variables_changed" => "a report",
                        other => other,
                    };
                    let place =
                        if write.activity.is_empty() { String::new() } else { format!(" in {}", write.activity) };
                    cell(page, &format!("{source}{place}"));
                } else {
                    when(page, None);
                    cell(page, "the beginning");
                }
                number(page, &variable.writes.to_string());
            });
        }
    });
}

fn usage(page: &mut Page, report: &Report) {
    let rows = report.usage.get("rows").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if rows.is_empty() {
        page.leaf("p", &[("class", "quiet")], "Nobody reported what this session cost.");
        return;
    }
    let caption =
        "As agents reported it. Rows of basis delta are added up; of cumulative ones the newest of an agent counts.";
    let counts = ["input_tokens", "output_tokens", "total_tokens", "subagent_tokens"];
    let headings = [
        "Activity",
        "Agent",
        "Reported (UTC)",
        "Basis",
        "Input#",
        "Output#",
        "Total#",
        "Subagents#",
        "Wall clock#",
        "Other",
    ];
    table(page, caption, &headings, |page| {
        for row in rows {
            let text = |key: &str| row.get(key).and_then(Value::as_str).unwrap_or_default();
            let empty = Value::Null;
            let usage = row.get("usage").unwrap_or(&empty);
            page.within("tr", &[], |page| {
                named(page, text("activity"));
                cell(page, text("agentId"));
                when(page, Some(text("timestamp")));
                cell(page, text("basis"));
                for count in counts {
                    number(page, &usage.get(count).map(tokens_text).unwrap_or_default());
                }
                number(page, &row.get("wall_clock_ms").and_then(Value::as_i64).map(span).unwrap_or_default());
                let others = usage.as_object().into_iter().flatten().filter(|(key, _)| !counts.contains(&key.as_str()));
                let others: Vec<String> = others.map(|(key, value)| format!("{key} {}", inline(value))).collect();
                cell(page, &others.join(", "));
            });
        }
        if let Some(totals) = report.usage.get("totals").and_then(Value::as_object).filter(|totals| !totals.is_empty())
        {
            page.within("tr", &[], |page| {
                page.leaf("th", &[("scope", "row"), ("colspan", "4")], "Sum of the delta rows");
                for count in counts {
                    number(page, &totals.get(count).map(tokens_text).unwrap_or_default());
                }
                page.leaf("td", &[("colspan", "2")], "");
            });
        }
    });
    let without = report.usage.get("activities_without_usage").and_then(Value::as_array);
    if let Some(without) = without.filter(|without| !without.is_empty()) {
        let names: Vec<String> = without.iter().map(inline).collect();
        page.leaf("p", &[("class", "facts")], &format!("Done and without a report: {}.", names.join(", ")));
    }
}

fn tokens_text(value: &Value) -> String {
    value.as_u64().map_or_else(|| inline(value), grouped)
}

fn delivered(page: &mut Page, report: &Report) {
    let Delivered { total, by_activity, by_tool, by_agent } = &report.delivered;
    page.leaf(
        "p",
        &[("class", "quiet")],
        "Characters of activities, techniques and resources that were sent to agents. What next_activity and get_workflow \
         answer is not recorded.",
    );
    page.within("div", &[("class", "pair")], |page| {
        for (heading, parts) in [("Activity", by_activity), ("Agent", by_agent), ("Tool", by_tool)] {
            page.within("div", &[], |page| shares(page, heading, parts, total));
        }
    });
}

fn shares(page: &mut Page, heading: &str, parts: &[(String, Share)], total: &Share) {
    table(page, &format!("By {}", heading.to_lowercase()), &[heading, "Characters#", "Times#", "Markers#"], |page| {
        for (name, share) in parts {
            page.within("tr", &[], |page| {
                page.within("th", &[("scope", "row")], |page| {
                    page.leaf("code", &[], if name.is_empty() { "before the first" } else { name });
                    meter(page, share.chars, total.chars);
                });
                let unknown = if share.unknown > 0 { " + ?" } else { "" };
                number(page, &format!("{}{unknown}", grouped(share.chars)));
                number(page, &share.calls.to_string());
                number(page, &if share.unchanged > 0 { share.unchanged.to_string() } else { String::new() });
            });
        }
    });
}

/// A bar for a part of a whole; the number beside it says the same.
fn meter(page: &mut Page, part: u64, whole: u64) {
    let width = part.saturating_mul(1000).checked_div(whole).unwrap_or(0);
    let width = width.to_string();
    page.within(
        "svg",
        &[
            ("class", "meter"),
            ("viewBox", "0 0 1000 10"),
            ("preserveAspectRatio", "none"),
            ("aria-hidden", "true"),
            ("width", "100%"),
        ],
        |page| {
            page.leaf("rect", &[("width", &width), ("height", "10"), ("fill", "var(--bar)")], "");
        },
    );
}

fn children(page: &mut Page, report: &Report) {
    let caption = "Sessions that were dispatched from here. Each has a report of its own: session export INDEX.";
    table(
        page,
        caption,
        &[
            "Session",
            "Workflow",
            "State",
            "Position",
            "Activities done#",
            "Dispatched (UTC)",
            "From",
            "Ended (UTC)",
            "Kept",
        ],
        |page| {
            for child in &report.children {
                page.within("tr", &[], |page| {
                    named(page, &format!("{}{}", "↳ ".repeat(child.depth), child.session_index));
                    cell(page, &child.workflow_id);
                    page.within("td", &[], |page| badge(page, &child.status));
                    cell(page, &child.current_activity);
                    number(page, &child.completed.to_string());
                    when(page, Some(&child.triggered_at));
                    cell(page, &child.from);
                    when(page, child.completed_at.as_deref());
                    cell(page, child.kept.as_str());
                });
            }
        },
    );
}

fn warnings(page: &mut Page, report: &Report) {
    let warnings = &report.trace.warnings;
    let left_out = warnings.len().saturating_sub(WARNED);
    if left_out > 0 {
        let text = format!("{} came before; the JSON form has all.", counted(left_out, "warning"));
        page.leaf("p", &[("class", "quiet")], &text);
    }
    let caption = "What agents were told beside the answers to their calls, oldest first.";
    table(page, caption, &["Time (UTC)", "Tool", "Warning"], |page| {
        for warned in warnings.iter().skip(left_out) {
            page.within("tr", &[], |page| {
                when(page, warned.at.as_deref());
                page.within("td", &[], |page| page.leaf("code", &[], &warned.tool));
                page.leaf("td", &[("class", "value")], &warned.text);
            });
        }
    });
}

fn trace(page: &mut Page, report: &Report) {
    let trace = &report.trace;
    let mut caption =
        format!("{} in the trace, {}.", counted(trace.calls, "call"), counted(trace.warnings.len(), "warning"));
    if trace.dropped > 0 {
        caption.extend([" ", &grouped(trace.dropped), " older ones were dropped."]);
    }
    table(page, &caption, &["Tool", "Calls#", "Refused#", "Time in the server#", "Longest#"], |page| {
        for calls in &trace.tools {
            page.within("tr", &[], |page| {
                named(page, &calls.tool);
                number(page, &grouped(calls.count as u64));
                number(page, &if calls.refused > 0 { calls.refused.to_string() } else { String::new() });
                number(page, &span(i64::try_from(calls.total_ms).unwrap_or(i64::MAX)));
                number(page, &span(i64::try_from(calls.longest_ms).unwrap_or(i64::MAX)));
            });
        }
    });
    if !trace.refusals.is_empty() {
        let codes: Vec<String> = trace.refusals.iter().map(|(code, count)| format!("{code} {count}×")).collect();
        page.leaf("p", &[("class", "facts")], &format!("Refusals: {}.", codes.join(", ")));
    }
}

fn events(page: &mut Page, report: &Report) {
    let lines = &report.lines;
    let left_out = lines.len().saturating_sub(LISTED);
    page.within("details", &[], |page| {
        page.leaf("summary", &[], &format!("Show {}", counted(lines.len(), "event")));
        let caption = "The history of the session, oldest first.";
        table(page, caption, &["Time (UTC)", "Event", "Activity", "Agent", "Type"], |page| {
            for (at, line) in lines.iter().enumerate() {
                if left_out > 0 && at == LISTED_FIRST {
                    page.within("tr", &[], |page| {
                        let text = format!("{} are left out here; the JSON form has all.", counted(left_out, "event"));
                        page.leaf("td", &[("colspan", "5"), ("class", "quiet")], &text);
                    });
                }
                if left_out > 0 && at >= LISTED_FIRST && at < LISTED_FIRST + left_out {
                    continue;
                }
                page.within("tr", &[("class", if line.is_milestone() { "major" } else { "minor" })], |page| {
                    when(page, Some(&line.at));
                    page.leaf("td", &[("class", "value")], &line.text);
                    cell(page, &line.activity);
                    cell(page, line.agent.as_deref().unwrap_or_default());
                    page.within("td", &[], |page| page.leaf("code", &[("class", "kind")], &line.kind));
                });
            }
        });
    });
}

fn footer(page: &mut Page, report: &Report) {
    let head = &report.head;
    let made = workflow_engine::Timestamp::parse(&head.made_at).map(date_time).unwrap_or_default();
    page.leaf(
        "p",
        &[],
        &format!(
            "Made {made} UTC by workflow-server {} from the sealed state of session {}, {}. A report is a copy: it proves \
             nothing by itself.",
            head.server_version,
            head.session_index,
            counted(usize::try_from(head.writes).unwrap_or(0), "write")
        ),
    );
}
