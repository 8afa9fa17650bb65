//! Data to stdout, everything else to stderr; colours where the terminal has them.

use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::LazyLock;

use anstyle::{AnsiColor, Style};
use workflow_corpus::{Diagnostic, Severity};

use crate::plain::{plain, plain_lines};

/// Headings and names.
pub(crate) const STRONG: Style = Style::new().bold();
/// What is fine.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// What needs attention.
pub(crate) const POOR: Style = AnsiColor::Yellow.on_default();
/// What is broken.
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
/// What matters less.
pub(crate) const DIM: Style = Style::new().dimmed();

/// Stands for the escape character of this program's own styles until they are printed. Nobody outside knows it, so no
/// text from outside passes for a style.
static MARK: LazyLock<String> = LazyLock::new(|| format!("\u{1b}{:016x}", RandomState::new().hash_one("style")));

/// Text for people, line by line. Nothing that was put into it can steer the terminal or make a line of its own.
#[derive(Debug, Default)]
pub(crate) struct Text(String);

impl Text {
    /// A text of one line.
    pub(crate) fn of(line: &str) -> Self {
        let mut text = Self::default();
        text.line(line);
        text
    }

    /// A line; what is no style of this program in it is made plain.
    pub(crate) fn line(&mut self, line: &str) {
        self.0.push_str(&safe(line));
        self.0.push('\n');
    }

    /// Each line of something that is meant to have several.
    pub(crate) fn lines(&mut self, indent: &str, lines: &str) {
        lines.lines().for_each(|line| self.line(&format!("{indent}{line}")));
    }

    /// Rows in columns, the last one ragged. Widths are counted without styles, so cells are styled by column.
    pub(crate) fn table(rows: &[Vec<(Style, String)>]) -> Self {
        let mut text = Self::default();
        let rows: Vec<Vec<(Style, String)>> =
            rows.iter().map(|row| row.iter().map(|(style, cell)| (*style, plain(cell))).collect()).collect();
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            rows.iter().filter_map(|row| row.get(column)).map(|(_, cell)| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &rows {
            let mut line = String::new();
            for (column, (style, cell)) in row.iter().enumerate() {
                line.push_str(&styled(*style, cell));
                if column + 1 < row.len() {
                    let gap = widths.get(column).copied().unwrap_or(0).saturating_sub(cell.chars().count()) + 2;
                    line.extend(std::iter::repeat_n(' ', gap));
                }
            }
            text.line(&line);
        }
        text
    }

    /// All lines of another text.
    pub(crate) fn append(&mut self, other: &Self) {
        self.0.push_str(&other.0);
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.replace(MARK.as_str(), "\u{1b}").into_bytes()
    }
}

/// One line in which only this program's styles steer the terminal.
fn safe(line: &str) -> String {
    let mut parts = line.split(MARK.as_str());
    let mut safe = plain(parts.next().unwrap_or_default());
    for part in parts {
        safe.push_str(&MARK);
        safe.push_str(&plain(part));
    }
    safe
}

/// Text in a style, on one line; the stream drops the style where it cannot be shown.
pub(crate) fn styled(style: Style, text: &str) -> String {
    let mark = |style: String| style.replace('\u{1b}', &MARK);
    format!("{}{}{}", mark(format!("{style}")), safe(text), mark(format!("{style:#}")))
}

/// Writes text to stdout.
pub(crate) fn print(text: &Text) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(&text.bytes())?;
    out.flush()
}

/// Writes one line to stdout.
pub(crate) fn print_line(line: &str) -> io::Result<()> {
    print(&Text::of(line))
}

/// Writes to stdout what is meant to have several lines.
pub(crate) fn print_lines(lines: &str) -> io::Result<()> {
    let mut text = Text::default();
    text.lines("", lines);
    print(&text)
}

/// Writes to stdout what others read: an answer, JSON, a definition. It stays as it is, except on a terminal, which
/// would do what is in it.
pub(crate) fn data(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if out.is_terminal() {
        out.write_all(plain_lines(text).as_bytes())?;
    } else {
        out.write_all(text.as_bytes())?;
    }
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// Says one line on stderr; a closed stderr is no reason to fail.
pub(crate) fn say(line: &str) {
    say_all(&Text::of(line));
}

fn say_all(text: &Text) {
    drop(anstream::stderr().lock().write_all(&text.bytes()));
}

/// Says what went wrong. Further lines of the message are indented, so that none passes for another message.
pub(crate) fn complain(message: &str) {
    let mut lines = message.lines();
    let first = lines.next().unwrap_or_default();
    let mut text = Text::of(&format!("{}: {first}", styled(BAD.bold(), "error")));
    lines.for_each(|line| text.line(&format!("  {line}")));
    say_all(&text);
}

/// Says what to look at.
pub(crate) fn warn(message: &str) {
    say(&format!("{}: {message}", styled(POOR.bold(), "warning")));
}

/// Says what is wrong in a definition, in the file at `path`, and, indented below it, what to do about it.
pub(crate) fn diagnose(found: &Diagnostic, path: &str) {
    let sign = match found.severity {
        Severity::Error => styled(BAD.bold(), "error"),
        _ => styled(POOR.bold(), "warning"),
    };
    let place = match (found.line, found.column) {
        (Some(line), Some(column)) => format!("{path}:{line}:{column}"),
        _ => path.to_owned(),
    };
    say(&format!("{sign}: {place}: {} [{}]", found.issue(), found.code));
    for line in found.help.iter().flat_map(|help| help.lines()) {
        say(&format!("  {line}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_styles_are_the_only_ones() {
        let hostile = "a\u{1b}[31mb\nerror: c\u{9b}2K\u{202e}";
        let shown = "a\u{fffd}[31mb error: c\u{fffd}2K\u{fffd}";
        let mut text = Text::of(hostile);
        text.line(&format!("{hostile} {}", styled(STRONG, hostile)));
        text.append(&Text::table(&[vec![(DIM, hostile.to_owned()), (Style::new(), hostile.to_owned())]]));
        let expected = format!("{shown}\n{shown} \u{1b}[1m{shown}\u{1b}[0m\n\u{1b}[2m{shown}\u{1b}[0m  {shown}\n");
        assert_eq!(String::from_utf8(text.bytes()).unwrap(), expected);
    }
}
