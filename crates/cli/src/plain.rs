//! Characters that have no place in what is shown: those that steer a terminal, turn the direction of writing, or cannot be
//! seen and so make one text look like another.

/// What stands in the place of such a character.
const REPLACEMENT: char = '\u{fffd}';

/// A text on one line, with nothing in it that changes how others are shown.
pub(crate) fn plain(text: &str) -> String {
    replaced(text, |c| if matches!(c, '\n' | '\t') { Some(' ') } else { None })
}

/// A text that is meant to have several lines; its line ends and tabs stay.
pub(crate) fn plain_lines(text: &str) -> String {
    replaced(&text.replace("\r\n", "\n"), |c| if matches!(c, '\n' | '\t') { Some(c) } else { None })
}

fn replaced(text: &str, exception: impl Fn(char) -> Option<char>) -> String {
    let mut before = None;
    text.chars()
        .map(|c| {
            let safe = exception(c).unwrap_or_else(|| if is_unsafe(before, c) { REPLACEMENT } else { c });
            before = Some(c);
            safe
        })
        .collect()
}

/// Whether a character changes how others are shown, or is not seen. `before` is the one in front of it: joiners and
/// selectors of variants belong to many scripts and to emoji, and stay behind what they can belong to.
pub(crate) fn is_unsafe(before: Option<char>, c: char) -> bool {
    match c {
        '\u{200c}' | '\u{200d}' => before.is_none_or(|before| before.is_ascii() || is_joiner(before)),
        '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => {
            let takes_one = |before: char| !before.is_ascii() || matches!(before, '0'..='9' | '#' | '*');
            before.is_none_or(|before| !takes_one(before) || is_selector(before) || is_joiner(before))
        }
        _ => c.is_control() || is_hidden(c),
    }
}

fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
}

fn is_selector(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

/// Marks of direction, separators of lines, characters of no width, letters without a shape, tags, no characters at all.
fn is_hidden(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{fffe}'
            | '\u{ffff}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_a_terminal_or_hides() {
        for c in ('\0'..='\u{10ffff}').filter(|c| c.is_control()) {
            let line = plain(&format!("a{c}b"));
            assert!(!line.contains(char::is_control), "{c:?}");
            let kept = matches!(c, '\n' | '\t');
            assert_eq!(plain_lines(&format!("a{c}b")).contains(char::is_control), kept, "{c:?}");
        }
        for c in "\u{ad}\u{61c}\u{200b}\u{200c}\u{200d}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\u{2060}\u{2066}\u{2069}\u{206f}\u{3164}\u{fe0f}\u{feff}\u{fff9}\u{ffff}\u{e0001}\u{e0041}\u{e0100}"
            .chars()
        {
            for text in [format!("a{c}b"), c.to_string()] {
                assert!(!plain(&text).contains(c) && !plain_lines(&text).contains(c), "{c:?}");
            }
        }
        assert_eq!(plain("a\nb\tc\rd\u{1b}[31m"), "a b c\u{fffd}d\u{fffd}[31m");
        assert_eq!(plain_lines("a\r\nb\tc\rd"), "a\nb\tc\u{fffd}d");
        assert_eq!(plain("é\u{fe0f}\u{fe0f}"), "é\u{fe0f}\u{fffd}", "bytes are not hidden behind one character");
    }

    #[test]
    fn ordinary_text_stays() {
        for text in [
            "plan, größer, 日本語, عربي, עברית, e\u{301}, ─▷ ◆ ✓",
            "❤️‍🔥 👩‍👩‍👧 1️⃣ 🇩🇪 👍🏽",
            "می\u{200c}خواهم क्\u{200d}ष 葛\u{e0100}",
            "",
        ] {
            assert_eq!(plain(text), text);
            assert_eq!(plain_lines(text), text);
        }
    }
}
