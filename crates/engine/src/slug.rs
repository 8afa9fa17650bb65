//! Planning slugs: the name of a session's folder (spec 03 §1.2).

use unicode_normalization::UnicodeNormalization as _;

use crate::Refusal;

/// Longest new slug, in bytes.
const LONGEST: usize = 120;
/// What a minted slug begins with.
const MINTED: &str = "transition-";
/// Names that some systems reserve for devices.
const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];

/// Why a text is no slug.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Broken(&'static str);

/// Checks a slug under which a folder may exist already: anything that is one path segment.
///
/// # Errors
/// `INVALID_SLUG`.
pub fn check(slug: &str) -> Result<(), Refusal> {
    segment(slug).map_err(|broken| refusal(slug, broken.0))
}

/// Checks a slug under which a folder is about to be made.
///
/// # Errors
/// `INVALID_SLUG`; twins among the existing folders are found with [`fold`] by whoever lists them.
pub fn check_new(slug: &str) -> Result<(), Refusal> {
    segment(slug).and_then(|()| creatable(slug)).map_err(|broken| refusal(slug, broken.0))
}

/// Refuses a slug that differs only by case or Unicode normalisation from an existing folder.
pub fn twin_refusal(slug: &str, twin: &str) -> Refusal {
    Refusal::new(
        "INVALID_SLUG",
        format!(
            "'{slug}' differs only by case or Unicode normalisation from the existing folder '{twin}'. \
             Use '{twin}' to resume that session, or choose another name."
        ),
    )
    .with("slug", slug)
    .with("twin", twin)
}

/// The form in which two slugs that a file system may take for one are equal.
pub fn fold(slug: &str) -> String {
    slug.nfc().flat_map(char::to_lowercase).nfc().collect()
}

/// The slug of a session that was started without one.
pub(crate) fn minted(uuid: &str) -> String {
    format!("{MINTED}{uuid}")
}

/// Whether a slug has the form of a minted one: `transition-` and a lower-case UUID.
pub fn is_minted(slug: &str) -> bool {
    let Some(uuid) = slug.strip_prefix(MINTED) else { return false };
    uuid.len() == 36
        && uuid.bytes().enumerate().all(|(i, byte)| match i {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
        })
}

/// The last segment of an absolute `planning_folder`, and the folder as normalised.
///
/// # Errors
/// `PLANNING_FOLDER_NOT_ABSOLUTE`; `INVALID_SLUG` when no segment is left.
pub(crate) fn of_folder(folder: &str) -> Result<(String, String), Refusal> {
    if !is_absolute(folder) {
        return Err(Refusal::new(
            "PLANNING_FOLDER_NOT_ABSOLUTE",
            format!(
                "planning_folder must be an absolute path, got '{folder}'. Only its last segment counts: pass that as \
                 planning_slug instead, or omit both for a meta bootstrap, when no slug is known yet."
            ),
        )
        .with("planning_folder", folder));
    }
    let windows = !folder.starts_with('/');
    let is_separator = |c: char| c == '/' || (windows && c == '\\');
    let mut segments: Vec<&str> = Vec::new();
    for segment in folder.split(is_separator) {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            name => segments.push(name),
        }
    }
    let slug = segments.last().copied().unwrap_or_default();
    if slug.is_empty() || (windows && slug.ends_with(':')) {
        return Err(refusal(folder, "planning_folder must end in the name of the planning folder"));
    }
    let lead = if folder.starts_with("\\\\") { "\\\\" } else { "" };
    let normal = if windows { format!("{lead}{}", segments.join("\\")) } else { format!("/{}", segments.join("/")) };
    Ok((slug.to_owned(), normal))
}

/// A slug made from other words, for a folder that nobody named; every character that is not allowed becomes `-`.
pub(crate) fn made_of(text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' })
        .take(LONGEST - 8)
        .collect();
    plain.trim_end_matches('.').to_owned()
}

fn is_absolute(path: &str) -> bool {
    let bytes = path.as_bytes();
    path.starts_with('/')
        || path.starts_with("\\\\")
        || matches!(bytes, [drive, b':', b'\\' | b'/', ..] if drive.is_ascii_alphabetic())
}

fn segment(slug: &str) -> Result<(), Broken> {
    match slug {
        "" => Err(Broken("a slug is not empty")),
        "." | ".." => Err(Broken("a slug is a name, not a relative path")),
        _ if slug.contains(['/', '\\', '\0']) => Err(Broken("a slug is one path segment, without / and \\")),
        _ => Ok(()),
    }
}

fn creatable(slug: &str) -> Result<(), Broken> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if slug.len() > LONGEST {
        return Err(Broken("a new slug has at most 120 characters"));
    }
    if !slug.bytes().all(allowed) || !slug.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return Err(Broken(
            "a new slug begins with a letter or digit and continues with letters, digits, '.', '_' and '-'",
        ));
    }
    if slug.ends_with('.') {
        return Err(Broken("a new slug does not end in a dot"));
    }
    if is_device(slug) {
        return Err(Broken("this name is reserved for a device on some systems, also before an extension"));
    }
    Ok(())
}

fn is_device(slug: &str) -> bool {
    let stem = slug.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let numbered = |prefix: &str| {
        stem.strip_prefix(prefix).is_some_and(|rest| matches!(rest.as_bytes(), [digit] if digit.is_ascii_digit()))
    };
    DEVICES.contains(&stem.as_str()) || numbered("com") || numbered("lpt")
}

fn refusal(slug: &str, rule: &str) -> Refusal {
    let shown: String = slug.chars().take(160).collect();
    Refusal::new(
        "INVALID_SLUG",
        format!(
            "'{shown}' is no planning slug: {rule}. Pass a name such as 2026-07-13-topic, the same one to resume, or omit it \
             for a meta bootstrap."
        ),
    )
    .with("slug", shown)
    .with("rule", rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_slug(slug: &str, existing: bool, new: bool) {
        assert_eq!(check(slug).is_ok(), existing, "existing: {slug:?}");
        assert_eq!(check_new(slug).is_ok(), new, "new: {slug:?}");
        for refused in [check(slug).err(), check_new(slug).err()].into_iter().flatten() {
            assert_eq!(refused.code, "INVALID_SLUG");
        }
    }

    #[test]
    fn slugs_are_one_segment_and_new_ones_are_plain() {
        let longest = "a".repeat(120);
        let longer = "a".repeat(121);
        for (slug, existing, new) in [
            ("2026-07-13-alpha", true, true),
            ("a", true, true),
            ("A_b.c-d", true, true),
            (longest.as_str(), true, true),
            (longer.as_str(), true, false),
            ("", false, false),
            (".", false, false),
            ("..", false, false),
            ("a/b", false, false),
            ("a\\b", false, false),
            (".git", true, false),
            ("-x", true, false),
            ("two words", true, false),
            ("line\nbreak", true, false),
            ("\u{fc}ber", true, false),
            ("dot.", true, false),
            ("CON", true, false),
            ("nul.txt", true, false),
            ("com1", true, false),
            ("lpt9.log", true, false),
            ("com10", true, true),
            ("console", true, true),
            ("auxiliary", true, true),
        ] {
            check_slug(slug, existing, new);
        }
    }

    #[test]
    fn twins_fold_to_one_form() {
        assert_eq!(fold("Alpha"), fold("aLPHA"));
        assert_eq!(fold("caf\u{e9}"), fold("cafe\u{301}"));
        assert_eq!(fold("\u{212a}ilo"), fold("kilo"));
        assert_ne!(fold("alpha"), fold("alpha-2"));
        assert!(twin_refusal("alpha", "Alpha").message.contains("'Alpha'"));
    }

    #[test]
    fn minted_slugs_are_recognised() {
        let slug = minted("0e7a1c2d-1111-4222-8333-444455556666");
        assert!(is_minted(&slug));
        assert!(check_new(&slug).is_ok());
        assert!(!is_minted("transition-plan"));
        assert!(!is_minted("transition-0E7A1C2D-1111-4222-8333-444455556666"));
    }

    #[track_caller]
    fn check_folder(folder: &str, expected: Result<(&str, &str), &str>) {
        let got = of_folder(folder).map_err(|refusal| refusal.code);
        assert_eq!(got, expected.map(|(slug, normal)| (slug.to_owned(), normal.to_owned())), "{folder}");
    }

    #[test]
    fn a_planning_folder_is_absolute_and_names_the_slug_last() {
        check_folder("/any/where/alpha", Ok(("alpha", "/any/where/alpha")));
        check_folder("/any/./where/../alpha/", Ok(("alpha", "/any/alpha")));
        check_folder("C:\\work\\alpha", Ok(("alpha", "C:\\work\\alpha")));
        check_folder("\\\\host\\share\\alpha", Ok(("alpha", "\\\\host\\share\\alpha")));
        check_folder("alpha", Err("PLANNING_FOLDER_NOT_ABSOLUTE"));
        check_folder("./alpha", Err("PLANNING_FOLDER_NOT_ABSOLUTE"));
        check_folder("", Err("PLANNING_FOLDER_NOT_ABSOLUTE"));
        check_folder("/", Err("INVALID_SLUG"));
        check_folder("/a/..", Err("INVALID_SLUG"));
        check_folder("C:\\", Err("INVALID_SLUG"));
    }

    #[test]
    fn made_slugs_can_be_created() {
        for text in ["2026-07-13-work-package", "2026-07-13-odd name \u{fc}", "2026-07-13-dots..."] {
            assert!(check_new(&made_of(text)).is_ok(), "{text}");
        }
        assert!(check_new(&made_of(&format!("2026-07-13-{}", "x".repeat(300)))).is_ok());
    }
}
