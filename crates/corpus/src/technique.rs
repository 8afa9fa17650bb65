//! One technique file: from text to parts (spec 01 §7).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use workflow_yaml::LineIndex;

use crate::diagnostic::{Diagnostic, Severity};
use crate::frontmatter;
use crate::link::{self, Target};
use crate::markdown::{Lines, Region, Section, normalise};
use crate::near::nearest;

/// The sections of a technique, as they are written in the documentation.
const SECTIONS: [&str; 5] = ["Capability", "Inputs", "Outputs", "Protocol", "Rules"];

/// A technique as its file says it, uncomposed. Prose has its resource links rewritten already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Technique {
    pub(crate) version: String,
    pub(crate) capability: String,
    pub(crate) inputs: Vec<Item>,
    pub(crate) outputs: Vec<Item>,
    pub(crate) protocol: Vec<Block>,
    /// Name and text in file order; of equal names the last text.
    pub(crate) rules: Vec<(String, String)>,
    /// Every link that names, or may name, a resource.
    pub(crate) links: Vec<PlacedLink>,
}

/// An input or output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) id: String,
    pub(crate) description: Option<String>,
    /// Inputs only.
    pub(crate) default: Option<String>,
    pub(crate) components: Vec<(String, String)>,
    /// Outputs only: the file name as written.
    pub(crate) artifact: Option<String>,
    /// Outputs only: `human` or `agent`.
    pub(crate) audience: Option<String>,
}

/// A titled group of steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) title: Option<String>,
    pub(crate) steps: Vec<String>,
}

/// A link with its place in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlacedLink {
    pub(crate) target: Target,
    /// From a path; else written as a bare slug, which only the corpus can tell from something else.
    pub(crate) rewritten: bool,
    pub(crate) line: usize,
    pub(crate) column: usize,
}

/// Something wrong with a technique or resource file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Issue {
    pub(crate) code: &'static str,
    pub(crate) severity: Severity,
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

impl Issue {
    /// As a diagnostic of a file.
    pub(crate) fn diagnostic(&self, workflow: &str, file: &str) -> Diagnostic {
        Diagnostic {
            code: self.code,
            severity: self.severity,
            workflow: workflow.to_owned(),
            file: file.to_owned(),
            line: Some(self.line),
            column: Some(self.column),
            path: None,
            message: self.message.clone(),
            help: self.help.clone(),
        }
    }
}

/// What reading one file gave: a technique unless it is malformed, and everything that was noticed.
#[derive(Clone, Debug)]
pub(crate) struct Parsed {
    pub(crate) technique: Option<Arc<Technique>>,
    pub(crate) issues: Vec<Issue>,
}

/// Reads a technique file.
pub(crate) fn parse(text: &str) -> Parsed {
    let text = normalise(text);
    let mut reader = Reader { issues: Vec::new() };
    let technique = reader.technique(&text).map(Arc::new);
    reader.issues.sort_by_key(|issue| (issue.line, issue.column));
    Parsed { technique, issues: reader.issues }
}

/// Is this one file name with an extension, `{token}` placeholders allowed (spec 01 §7.2)?
pub(crate) fn is_artifact_name(text: &str) -> bool {
    let Some((mut stem, extension)) = text.rsplit_once('.') else { return false };
    if stem.is_empty() || extension.is_empty() || !extension.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return false;
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    while let Some(first) = stem.bytes().next() {
        if plain(first) {
            stem = &stem[1..];
            continue;
        }
        let Some((token, rest)) = stem.strip_prefix('{').and_then(|rest| rest.split_once('}')) else { return false };
        if token.is_empty() || !token.bytes().all(|byte| plain(byte) || byte == b'$') {
            return false;
        }
        stem = rest;
    }
    true
}

/// The file names that an artifact text stands for: itself, or the pieces of `a.md / b.md` and `a.md and b.md`
/// (FIX-23); nothing when it is no such list.
pub(crate) fn artifact_names(text: &str) -> Vec<String> {
    if is_artifact_name(text) {
        return vec![text.to_owned()];
    }
    let names: Vec<String> = artifact_pieces(text)
        .into_iter()
        .map(|piece| {
            let piece = piece.trim();
            let bare = match (piece.ends_with(')'), piece.rfind('(')) {
                (true, Some(open)) => piece[..open].trim_end(),
                _ => piece,
            };
            bare.trim_matches('`').trim().to_owned()
        })
        .collect();
    if names.len() > 1 && names.iter().all(|name| is_artifact_name(name)) { names } else { Vec::new() }
}

/// The parts between ` / ` and ` and `, where these do not stand in a parenthesised remark.
fn artifact_pieces(text: &str) -> Vec<&str> {
    let (mut pieces, mut start, mut depth) = (Vec::new(), 0, 0usize);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 && at >= start => {
                let separator = [" / ", " and "].into_iter().find(|separator| text[at..].starts_with(separator));
                if let Some(separator) = separator {
                    pieces.push(&text[start..at]);
                    start = at + separator.len();
                }
            }
            _ => {}
        }
    }
    pieces.push(&text[start..]);
    pieces
}

struct Reader {
    issues: Vec<Issue>,
}

impl Reader {
    fn report(&mut self, code: &'static str, severity: Severity, line: usize, message: impl Into<String>, help: &str) {
        let help = (!help.is_empty()).then(|| help.to_owned());
        self.issues.push(Issue { code, severity, line, column: 1, message: message.into(), help });
    }

    fn technique(&mut self, text: &str) -> Option<Technique> {
        let Some(front) = frontmatter::split(text) else {
            let help = "begin the file with `---`, `metadata:`, `  version: 1.0.0`, `---`";
            self.report("technique.parse", Severity::Error, 1, "the file has no front matter", help);
            return None;
        };
        let version = self.version(&front);
        let original = &text[front.body..];
        let (body, links) = link::rewrite(original);
        let links = place(text, front.body, links);
        let lines = Lines::new(&body, front.body_line);
        let (preamble, sections) = lines.region().sections(2);
        self.lost(preamble.behind_title(), "text before the first `##` section is not part of the technique");
        let mut known: [Option<Region<'_>>; SECTIONS.len()] = [None; SECTIONS.len()];
        let mut malformed = false;
        for section in sections {
            let title = section.title.to_lowercase();
            if let Some(place) = SECTIONS.iter().position(|name| name.to_lowercase() == title) {
                if known[place].is_some() {
                    let message = format!("`## {}` occurs twice; only the first one counts", section.title);
                    self.report(
                        "technique.section",
                        Severity::Warning,
                        section.line,
                        message,
                        "merge the two sections",
                    );
                } else {
                    known[place] = Some(section.body);
                }
            } else if matches!(title.as_str(), "input" | "output" | "output(s)") {
                malformed = true;
                let plural = if title == "input" { "Inputs" } else { "Outputs" };
                let message = format!("`## {}` is not a section", section.title);
                let help = format!("write `## {plural}`");
                self.report("technique.section", Severity::Error, section.line, message, &help);
            } else {
                let message = format!("`## {}` is not a section of a technique and is ignored", section.title);
                let help = nearest(section.title, SECTIONS)
                    .map_or_else(String::new, |name| format!("did you mean `## {name}`?"));
                self.report("technique.section", Severity::Warning, section.line, message, &help);
            }
        }
        let [capability, inputs, outputs, protocol, rules] = known;
        let capability_text = capability.map(Region::paragraphs).filter(|text| !text.is_empty());
        if capability_text.is_none() {
            let line = capability.map_or(1, |region| region.line().saturating_sub(1).max(1));
            let message = "the section `## Capability` is missing or empty";
            self.report(
                "technique.capability",
                Severity::Error,
                line,
                message,
                "say in it what the technique achieves",
            );
        }
        let inputs = inputs.map(|region| self.items(region, Side::Input)).unwrap_or_default();
        let outputs = outputs.map(|region| self.items(region, Side::Output)).unwrap_or_default();
        let protocol = protocol.map(|region| self.protocol(region)).unwrap_or_default();
        let rules = rules.map(|region| self.rules(region)).unwrap_or_default();
        if malformed {
            return None;
        }
        Some(Technique { version: version?, capability: capability_text?, inputs, outputs, protocol, rules, links })
    }

    fn version(&mut self, front: &frontmatter::FrontMatter) -> Option<String> {
        let Some(field) = front.get("metadata.version") else {
            let help = "add `metadata:` with `version: X.Y.Z`";
            self.report("technique.version", Severity::Error, 1, "the front matter has no `metadata.version`", help);
            return None;
        };
        let parts: Vec<&str> = field.text.split('.').collect();
        let digits = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if parts.len() == 3 && parts.iter().all(digits) {
            return Some(field.text.clone());
        }
        self.issues.push(Issue {
            code: "technique.version",
            severity: Severity::Error,
            line: field.line,
            column: field.column,
            message: format!("the version `{}` is not of the form X.Y.Z", field.text),
            help: Some("write three numbers, for instance `1.0.0`".to_owned()),
        });
        None
    }

    /// Reports text that has no place in the result.
    fn lost(&mut self, region: Region<'_>, message: &str) {
        if let Some(line) = region.first_text_line() {
            self.report("technique.lost-content", Severity::Warning, line, message, "put it under a heading");
        }
    }

    fn items(&mut self, region: Region<'_>, side: Side) -> Vec<Item> {
        let (before, sections) = region.sections(3);
        self.lost(before, "text before the first `###` entry is dropped");
        let mut items: Vec<Item> = Vec::new();
        let mut seen = HashSet::new();
        for section in sections {
            if !seen.insert(section.title) {
                let message = format!("the {} `{}` is declared twice", side.name(), section.title);
                self.report("technique.duplicate-id", Severity::Warning, section.line, message, "rename or merge one");
            }
            items.push(self.item(section, side));
        }
        items
    }

    fn item(&mut self, section: Section<'_>, side: Side) -> Item {
        let (before, parts) = section.body.sections(4);
        let description = Some(before.paragraphs()).filter(|text| !text.is_empty());
        let mut item = Item { id: section.title.to_owned(), description, ..Item::default() };
        for part in parts {
            let text = part.body.paragraphs();
            let reserved = || text.trim_matches('`').trim().to_owned();
            match (part.title.to_lowercase().as_str(), side) {
                ("default", Side::Input) => item.default = Some(reserved()),
                ("artifact", Side::Output) => {
                    let name = reserved();
                    if !is_artifact_name(&name) {
                        let message = format!("`{name}` is not one file name with an extension");
                        let help =
                            "write one name; placeholders in braces are allowed, remarks belong into the description";
                        self.report("technique.artifact-name", Severity::Error, part.line, message, help);
                    }
                    item.artifact = Some(name);
                }
                ("audience", Side::Output) => {
                    let audience = reserved();
                    if matches!(audience.as_str(), "human" | "agent") {
                        item.audience = Some(audience);
                    } else {
                        let message = format!("`{audience}` is not an audience; the value is ignored");
                        self.report(
                            "technique.audience",
                            Severity::Error,
                            part.line,
                            message,
                            "write `human` or `agent`",
                        );
                    }
                }
                _ => set(&mut item.components, part.title, text),
            }
        }
        item
    }

    fn protocol(&mut self, region: Region<'_>) -> Vec<Block> {
        let (before, sections) = region.sections(3);
        let mut blocks = vec![Block { title: None, steps: before.steps() }];
        for section in sections {
            let title = without_ordinal(section.title);
            let steps = section.body.steps();
            if steps.is_empty() {
                let message = format!("the protocol block `{}` has no steps and is dropped", section.title);
                self.report(
                    "technique.lost-content",
                    Severity::Warning,
                    section.line,
                    message,
                    "add a step or remove it",
                );
            }
            blocks.push(Block { title: (!title.is_empty()).then(|| title.to_owned()), steps });
        }
        blocks.retain(|block| !block.steps.is_empty());
        blocks
    }

    fn rules(&mut self, region: Region<'_>) -> Vec<(String, String)> {
        let (before, sections) = region.sections(3);
        if let Some(line) = before.first_text_line() {
            let message = "rules without a `###` heading have no name and are not delivered";
            self.report("technique.rules-shape", Severity::Error, line, message, "give each rule a heading `### name`");
        }
        let mut rules: Vec<(String, String)> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for section in sections {
            let text = section.body.paragraphs();
            if text.is_empty() {
                let message = format!("the rule `{}` has no text and is dropped", section.title);
                self.report(
                    "technique.lost-content",
                    Severity::Warning,
                    section.line,
                    message,
                    "write the rule below it",
                );
                continue;
            }
            if let Some(&place) = places.get(section.title) {
                let message = format!("the rule `{}` is written twice; the last one counts", section.title);
                self.report("technique.duplicate-id", Severity::Warning, section.line, message, "rename or merge one");
                rules[place].1 = text;
            } else {
                places.insert(section.title, rules.len());
                rules.push((section.title.to_owned(), text));
            }
        }
        rules
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Input,
    Output,
}

impl Side {
    fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
        }
    }
}

/// A block title without `<digits>.` in front.
pub(crate) fn without_ordinal(title: &str) -> &str {
    let rest = title.trim_start_matches(|char: char| char.is_ascii_digit());
    match rest.strip_prefix('.') {
        Some(rest) if title.starts_with(|char: char| char.is_ascii_digit()) => rest.trim(),
        _ => title.trim(),
    }
}

/// Sets the value of a name, at the position of an equal name or at the end.
fn set(entries: &mut Vec<(String, String)>, name: &str, text: String) {
    match entries.iter_mut().find(|(known, _)| known == name) {
        Some(entry) => entry.1 = text,
        None => entries.push((name.to_owned(), text)),
    }
}

fn place(text: &str, body: usize, links: Vec<link::Link>) -> Vec<PlacedLink> {
    if links.is_empty() {
        return Vec::new();
    }
    let index = LineIndex::new(text);
    let placed = links.into_iter().map(|link| {
        let position = index.position(text, body + link.offset);
        PlacedLink { target: link.target, rewritten: link.rewritten, line: position.line, column: position.column }
    });
    placed.collect()
}

#[cfg(test)]
mod tests;
