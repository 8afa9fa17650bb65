//! Places in a source text: byte spans, and their lines and columns.

/// A half-open range of byte offsets into the source text, including its byte order mark if it has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset after the last byte.
    pub end: usize,
}

impl Span {
    /// Makes a span from its two offsets.
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// Makes an empty span, which marks a place between two characters.
    pub const fn empty(offset: usize) -> Self {
        Self { start: offset, end: offset }
    }

    /// Returns whether the span covers no text.
    pub const fn is_empty(self) -> bool {
        self.start >= self.end
    }

    /// Returns the text the span covers, or nothing when `text` is not the text the span was made for.
    pub fn slice(self, text: &str) -> Option<&str> {
        text.get(self.start..self.end)
    }
}

/// A place for people: line and column, both from 1; the column counts characters (Unicode scalar values).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Line number, from 1.
    pub line: usize,
    /// Column number in characters, from 1.
    pub column: usize,
}

/// The line starts of one text, for turning offsets into positions.
///
/// Line feed, carriage return and the pair of both end a line, as in YAML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineIndex {
    starts: Vec<usize>,
}

impl LineIndex {
    /// Finds the line starts of `text`.
    pub fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut starts = vec![0];
        for (offset, byte) in bytes.iter().enumerate() {
            let ends_line = match byte {
                b'\n' => true,
                b'\r' => bytes.get(offset + 1) != Some(&b'\n'),
                _ => false,
            };
            if ends_line {
                starts.push(offset + 1);
            }
        }
        Self { starts }
    }

    /// Returns the position of a byte offset of `text`, which must be the text the index was made from.
    ///
    /// An offset past the end, or inside a character, counts as the nearest place before it. A byte order mark at the
    /// start takes no column, because no editor shows one.
    pub fn position(&self, text: &str, offset: usize) -> Position {
        let offset = text.floor_char_boundary(offset);
        let line = self.starts.partition_point(|start| *start <= offset).max(1);
        let start = self.starts.get(line - 1).copied().unwrap_or(0);
        let before = text.get(start..offset).unwrap_or("");
        let before = if start == 0 { before.strip_prefix('\u{feff}').unwrap_or(before) } else { before };
        Position { line, column: before.chars().count() + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, offset: usize, line: usize, column: usize) {
        assert_eq!(LineIndex::new(text).position(text, offset), Position { line, column }, "{text:?} at {offset}");
    }

    #[test]
    fn positions_count_characters_and_every_kind_of_line_break() {
        check("", 0, 1, 1);
        check("", 9, 1, 1);
        check("ab\ncd", 0, 1, 1);
        check("ab\ncd", 2, 1, 3);
        check("ab\ncd", 3, 2, 1);
        check("ab\ncd", 99, 2, 3);
        check("ab\r\ncd", 4, 2, 1);
        check("ab\rcd", 3, 2, 1);
        check("é😀x", 6, 1, 3);
        check("é😀x", 4, 1, 2); // inside the second character
        check("a\n", 2, 2, 1);
        check("\u{feff}ab", 3, 1, 1);
        check("\u{feff}ab", 0, 1, 1);
    }

    #[test]
    fn spans_slice_their_text() {
        assert_eq!(Span::new(0, 2).slice("éx"), Some("é"));
        assert_eq!(Span::new(1, 2).slice("éx"), None);
        assert!(Span::empty(3).is_empty());
    }
}
