//! The name that was probably meant: the one place where names are suggested.

/// The known name closest to `word`, if one is close. A word that is known itself was not misspelt, whatever else is
/// wrong with it.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain =
        |text: &str| text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect::<String>();
    let wanted = plain(word);
    let limit = 1.max(wanted.chars().count() / 3);
    let mut best: Option<(usize, &str)> = None;
    for name in known {
        if name == word {
            return None;
        }
        let distance = strsim::damerau_levenshtein(&wanted, &plain(name));
        if distance <= limit && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, name));
        }
    }
    best.map(|(_, name)| name)
}

/// The same as advice.
pub(crate) fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, known).map(|name| format!("did you mean `{name}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_close_is_suggested_and_what_was_written_never_is() {
        let known = ["title", "variables", "tags", "group::brew-tea"];
        for (word, expected) in [
            ("titel", Some("title")),
            ("Title", Some("title")),
            ("variable", Some("variables")),
            ("group::brew_tee", Some("group::brew-tea")),
            ("tag", Some("tags")),
            ("colour", None),
            ("", None),
            // Also where another name is close.
            ("tags", None),
        ] {
            assert_eq!(nearest(word, known), expected, "{word}");
        }
        assert_eq!(nearest("tags", ["tag", "tags", "tagss"]), None);
        assert_eq!(did_you_mean("titel", known).as_deref(), Some("did you mean `title`?"));
    }
}
