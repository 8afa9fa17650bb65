//! Times and sizes for people.

use workflow_engine::Timestamp;

/// A length of time by its two largest units.
pub(crate) fn span(ms: i64) -> String {
    let ms = ms.max(0);
    let seconds = ms / 1000;
    let two = |large: i64, unit: &str, small: i64, sub: &str| {
        if small == 0 { format!("{large} {unit}") } else { format!("{large} {unit} {small} {sub}") }
    };
    match seconds {
        0 => format!("{ms} ms"),
        1..60 => format!("{seconds} s"),
        60..3600 => two(seconds / 60, "min", seconds % 60, "s"),
        3600..86_400 => two(seconds / 3600, "h", seconds % 3600 / 60, "min"),
        _ => two(seconds / 86_400, "d", seconds % 86_400 / 3600, "h"),
    }
}

/// `2026-07-13 09:00:00` in UTC; a text that is no time stays as it is.
pub(crate) fn moment(stamp: &str) -> String {
    Timestamp::parse(stamp).map_or_else(|| stamp.to_owned(), date_time)
}

/// The same of a time.
pub(crate) fn date_time(time: Timestamp) -> String {
    time.text().get(..19).unwrap_or_default().replace('T', " ")
}

/// A whole number in groups of three.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// `1 event`, `2 events`, `2 activities`.
pub(crate) fn counted(number: usize, noun: &str) -> String {
    let number_text = grouped(number as u64);
    match noun.strip_suffix('y') {
        _ if number == 1 => format!("{number_text} {noun}"),
        Some(stem) => format!("{number_text} {stem}ies"),
        None => format!("{number_text} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_two_units() {
        for (ms, text) in [
            (-5, "0 ms"),
            (430, "430 ms"),
            (12_900, "12 s"),
            (300_000, "5 min"),
            (303_000, "5 min 3 s"),
            (11_520_000, "3 h 12 min"),
            (187_200_000, "2 d 4 h"),
        ] {
            assert_eq!(span(ms), text);
        }
    }

    #[test]
    fn numbers_and_moments() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!((counted(1, "event"), counted(2, "activity")), ("1 event".to_owned(), "2 activities".to_owned()));
        assert_eq!(moment("2026-07-13T09:00:00.123Z"), "2026-07-13 09:00:00");
        assert_eq!(moment("soon"), "soon");
    }
}
