//! Markdown as the definitions use it: regions of source lines, headings outside code fences, paragraphs, list items.
//!
//! Everything is cut from the source text by lines; CommonMark (through `pulldown-cmark`) only says where fenced code
//! and list items are (spec 01 §7.1, FIX-20, FIX-21, FIX-25).

use std::borrow::Cow;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};

/// The text without byte order mark and with `\n` line ends. Line numbers stay what they are in the file.
pub(crate) fn normalise(text: &str) -> Cow<'_, str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.contains("\r\n") { Cow::Owned(text.replace("\r\n", "\n")) } else { Cow::Borrowed(text) }
}

/// Lines of a text, each with the answer whether it belongs to fenced code (fences included).
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    text: Vec<&'a str>,
    fenced: Vec<bool>,
    first: usize,
}

impl<'a> Lines<'a> {
    /// `first` is the number, from 1, that the first line has in its file.
    pub(crate) fn new(text: &'a str, first: usize) -> Self {
        let lines: Vec<&str> = text.split('\n').collect();
        let mut fenced = vec![false; lines.len()];
        let starts = line_starts(text);
        for (event, range) in Parser::new_ext(text, Options::empty()).into_offset_iter() {
            if let Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) = event {
                let from = line_of(&starts, range.start);
                let last = line_of(&starts, range.end.saturating_sub(1).max(range.start));
                for line in fenced.iter_mut().take(last + 1).skip(from) {
                    *line = true;
                }
            }
        }
        Self { text: lines, fenced, first }
    }

    /// All lines.
    pub(crate) fn region(&self) -> Region<'_> {
        Region { lines: &self.text, fenced: &self.fenced, first: self.first }
    }
}

fn line_starts(text: &str) -> Vec<usize> {
    std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect()
}

fn line_of(starts: &[usize], offset: usize) -> usize {
    starts.partition_point(|start| *start <= offset).saturating_sub(1)
}

/// Some consecutive lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Region<'a> {
    lines: &'a [&'a str],
    fenced: &'a [bool],
    first: usize,
}

/// A heading with what stands below it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section<'a> {
    /// Text of the heading, trimmed, otherwise verbatim.
    pub(crate) title: &'a str,
    /// Line of the heading in its file, from 1.
    pub(crate) line: usize,
    /// The lines below, up to the next heading of the same level.
    pub(crate) body: Region<'a>,
}

/// The text of a heading of exactly this level at the start of a line.
pub(crate) fn heading(line: &str, level: usize) -> Option<&str> {
    let rest = line.trim_start_matches('#');
    let title = rest.trim();
    (line.len() - rest.len() == level && rest.starts_with(char::is_whitespace) && !title.is_empty()).then_some(title)
}

impl<'a> Region<'a> {
    fn part(self, from: usize, to: usize) -> Self {
        Self { lines: &self.lines[from..to], fenced: &self.fenced[from..to], first: self.first + from }
    }

    /// What stands before the first heading of this level, and the sections of that level.
    pub(crate) fn sections(self, level: usize) -> (Self, Vec<Section<'a>>) {
        let found: Vec<(usize, &str)> = (0..self.lines.len())
            .filter(|index| !self.fenced[*index])
            .filter_map(|index| heading(self.lines[index], level).map(|title| (index, title)))
            .collect();
        let before = self.part(0, found.first().map_or(self.lines.len(), |(index, _)| *index));
        let ends = found.iter().skip(1).map(|(index, _)| *index).chain([self.lines.len()]);
        let sections = found
            .iter()
            .zip(ends)
            .map(|((index, title), end)| Section { title, line: self.first + index, body: self.part(index + 1, end) })
            .collect();
        (before, sections)
    }

    /// The lines as text from one position up to another one.
    fn text(self, from: usize, to: usize) -> String {
        self.lines[from..to].join("\n")
    }

    /// The lines behind a document title, a heading of the first level that nothing precedes.
    pub(crate) fn behind_title(self) -> Self {
        let text = self.lines.iter().position(|line| !line.trim().is_empty());
        match text {
            Some(index) if heading(self.lines[index], 1).is_some() => self.part(index + 1, self.lines.len()),
            _ => self,
        }
    }

    /// Line number, in the file, of the first line.
    pub(crate) fn line(self) -> usize {
        self.first
    }

    /// Line number, in the file, of the first line that is not blank.
    pub(crate) fn first_text_line(self) -> Option<usize> {
        self.lines.iter().position(|line| !line.trim().is_empty()).map(|index| self.first + index)
    }

    /// The text as paragraphs: pieces between blank lines, trimmed, joined with exactly one blank line. Fenced code
    /// is copied as it stands (FIX-21).
    pub(crate) fn paragraphs(self) -> String {
        let mut pieces: Vec<(usize, usize)> = Vec::new();
        let mut open = None;
        for (index, line) in self.lines.iter().enumerate() {
            let blank = line.trim().is_empty() && !self.fenced[index];
            match (blank, open) {
                (false, None) => open = Some(index),
                (true, Some(from)) => {
                    pieces.push((from, index));
                    open = None;
                }
                (true, None) | (false, Some(_)) => {}
            }
        }
        pieces.extend(open.map(|from| (from, self.lines.len())));
        let trimmed = pieces.into_iter().map(|(from, to)| self.trimmed(from, to));
        trimmed.filter(|piece| !piece.is_empty()).collect::<Vec<_>>().join("\n\n")
    }

    fn trimmed(self, from: usize, to: usize) -> String {
        let text = self.text(from, to);
        let head = if self.fenced[from] { text.as_str() } else { text.trim_start() };
        if self.fenced[to - 1] { head.trim_end_matches('\n').to_owned() } else { head.trim_end().to_owned() }
    }

    /// The steps of a protocol block (FIX-25): one per list item of the outermost level, with everything up to the
    /// next item; what precedes the first item is a step of its own. Without any item the paragraphs are one step.
    pub(crate) fn steps(self) -> Vec<String> {
        let margin = self.margin();
        let lines: Vec<&str> = self.lines.iter().map(|line| line.get(margin..).unwrap_or_default()).collect();
        let text = lines.join("\n");
        let starts = line_starts(&text);
        let mut items: Vec<usize> = Vec::new();
        let mut depth = 0usize;
        for (event, range) in Parser::new_ext(&text, Options::empty()).into_offset_iter() {
            match event {
                Event::Start(tag) => {
                    if depth == 1 && tag == Tag::Item {
                        items.push(line_of(&starts, range.start));
                    }
                    depth += 1;
                }
                Event::End(_) => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        items.dedup();
        let Some(first) = items.first().copied() else {
            return Some(self.paragraphs()).filter(|text| !text.is_empty()).into_iter().collect();
        };
        let mut steps = vec![self.part(0, first).paragraphs()];
        let ends = items.iter().skip(1).copied().chain([lines.len()]);
        for (from, to) in items.iter().copied().zip(ends) {
            steps.push(item(&lines[from..to], &self.fenced[from..to]));
        }
        steps.retain(|step| !step.is_empty());
        steps
    }

    /// Columns of blank space that all lines begin with.
    fn margin(self) -> usize {
        let indents = self.lines.iter().filter(|line| !line.trim().is_empty()).map(|line| indent(line));
        indents.min().unwrap_or(0)
    }
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// One list item: marker and continuation indentation removed, runs of blank lines outside fences made one.
fn item(lines: &[&str], fenced: &[bool]) -> String {
    let first = lines[0];
    let outer = indent(first);
    let marker = marker_width(&first[outer..]);
    let rest = &first[outer + marker..];
    let gap = match indent(rest) {
        _ if rest.trim().is_empty() => 1,
        wide if wide > 4 => 1,
        gap => gap,
    };
    let inner = outer + marker + gap;
    let mut text = rest.get(gap..).unwrap_or_default().trim_start().to_owned();
    let mut pending = 0;
    for (line, fenced) in lines.iter().zip(fenced).skip(1) {
        if line.trim().is_empty() && !fenced {
            pending = 1;
            continue;
        }
        for _ in 0..=pending {
            text.push('\n');
        }
        pending = 0;
        text.push_str(&line[indent(line).min(inner)..]);
    }
    text.trim().to_owned()
}

/// Bytes of a list marker: one of `-`, `*`, `+`, or digits with `.` or `)`.
fn marker_width(text: &str) -> usize {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let mark = usize::from(text[digits..].starts_with(['-', '*', '+', '.', ')']));
    digits + mark
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_steps(text: &str, expected: &[&str]) {
        assert_eq!(Lines::new(text, 1).region().steps(), expected, "{text}");
    }

    #[track_caller]
    fn check_paragraphs(text: &str, expected: &str) {
        assert_eq!(Lines::new(text, 1).region().paragraphs(), expected, "{text}");
    }

    #[test]
    fn items_of_the_outermost_level_are_steps() {
        check_steps("- a\n- b\n", &["a", "b"]);
        check_steps("1. a\n2. b\n\n3. c", &["a", "b", "c"]);
        check_steps("1) a\n2) b", &["a", "b"]);
        check_steps("+ a\n* b\n- c", &["a", "b", "c"]);
        check_steps("  - a\n  - b", &["a", "b"]);
        check_steps("    - a\n      more\n    - b", &["a\nmore", "b"]);
        check_steps("", &[]);
        check_steps("- \n- b", &["b"]);
        check_steps("1.  wide\n    more", &["wide\nmore"]);
        check_steps("just\nprose\n\nmore", &["just\nprose\n\nmore"]);
        check_steps("intro\n\n- a", &["intro", "a"]);
    }

    #[test]
    fn nothing_between_items_is_lost() {
        check_steps("- a\n\n| x |\n|---|\n| 1 |\n\n- b", &["a\n\n| x |\n|---|\n| 1 |", "b"]);
        check_steps("- a\n  > note\n", &["a\n> note"]);
        check_steps("- a\n  ```sh\n  - x\n\n\n    y\n  ```\n- b", &["a\n```sh\n- x\n\n\n  y\n```", "b"]);
        check_steps("- a\n\n\n\n  more\nlazy", &["a\n\nmore\nlazy"]);
        check_steps("- a\n\nend\n", &["a\n\nend"]);
        check_steps("```\n- no item\n```\n- a", &["```\n- no item\n```", "a"]);
        check_steps("- a\n\n#### Deep\n\ntext", &["a\n\n#### Deep\n\ntext"]);
    }

    #[test]
    fn paragraphs_collapse_blank_lines_but_not_in_fences() {
        check_paragraphs("\n  a\nb  \n\n \n\n c", "a\nb\n\nc");
        check_paragraphs("a\n\n```\n  x\n\n\ny  \n```\n\nb\n", "a\n\n```\n  x\n\n\ny  \n```\n\nb");
        check_paragraphs("\n\n", "");
    }

    #[test]
    fn headings_in_fences_are_code() {
        let text = "## A\n\n~~~\n## no\n~~~\n## B ##\n####\n##C\n### D\n";
        let lines = Lines::new(text, 10);
        let (before, sections) = lines.region().sections(2);
        assert!(before.lines.is_empty());
        let titles: Vec<(&str, usize)> = sections.iter().map(|section| (section.title, section.line)).collect();
        assert_eq!(titles, [("A", 10), ("B ##", 15)]);
    }

    #[test]
    fn byte_order_mark_and_line_ends() {
        assert_eq!(normalise("\u{feff}a\r\nb\n"), "a\nb\n");
        assert!(matches!(normalise("a\nb"), Cow::Borrowed(_)));
    }
}
