//! Data to stdout, everything else to stderr; colours where the terminal has them.

use std::io::{self, Write as _};

use anstyle::{AnsiColor, Style};
use workflow_corpus::{Diagnostic, Severity};

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

/// Text in a style; the stream drops the style where it cannot be shown.
pub(crate) fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Writes data to stdout.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// Says something on stderr; a closed stderr is no reason to fail.
pub(crate) fn say(text: &str) {
    drop(writeln!(anstream::stderr().lock(), "{text}"));
}

/// Says what went wrong.
pub(crate) fn complain(message: &str) {
    say(&format!("{}: {message}", styled(BAD.bold(), "error")));
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

/// Rows in columns, the last one ragged. Widths are counted without styles, so cells are styled by column.
pub(crate) fn table(rows: &[Vec<(Style, String)>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|(_, text)| text.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        for (column, (style, text)) in row.iter().enumerate() {
            out.push_str(&styled(*style, text));
            if column + 1 < row.len() {
                let gap = widths.get(column).copied().unwrap_or(0).saturating_sub(text.chars().count()) + 2;
                out.extend(std::iter::repeat_n(' ', gap));
            }
        }
        out.push('\n');
    }
    out
}
