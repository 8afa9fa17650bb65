//! References to techniques: `[workflow::]technique[::nested…]` (spec 01 §8.1, §8.2; spec 02 §1.2).

use crate::snapshot::is_plain_segment;

/// File name of a container without `.md`; not a name that a reference may use.
pub(crate) const CONTAINER: &str = "TECHNIQUE";

/// A reference in its normalised form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    /// At least one.
    pub(crate) segments: Vec<String>,
    /// Written without `::` and `/`, so it may take the activity shorthand.
    pub(crate) bare: bool,
}

impl Reference {
    /// Every `/` becomes `::` before anything else (FIX-30); empty segments are dropped. The error says why there is
    /// nothing to look for.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let normalised = text.trim().replace('/', "::");
        let segments: Vec<String> =
            normalised.split("::").map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect();
        if segments.is_empty() {
            return Err("the reference is empty".to_owned());
        }
        if let Some(bad) = segments.iter().find(|segment| !is_plain_segment(segment)) {
            return Err(format!("`{bad}` is not a name"));
        }
        if segments.iter().any(|segment| segment == CONTAINER) {
            return Err(format!("`{CONTAINER}` is the contract of its directory, not a technique"));
        }
        let bare = !normalised.contains("::");
        Ok(Self { segments, bare })
    }

    /// `a::b::c`.
    pub(crate) fn id(&self) -> String {
        self.segments.join("::")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, id: &str, bare: bool) {
        let reference = Reference::parse(text).unwrap();
        assert_eq!((reference.id().as_str(), reference.bare), (id, bare), "{text}");
    }

    #[test]
    fn slashes_are_colons() {
        check("a", "a", true);
        check(" a ", "a", true);
        check("a/b/c", "a::b::c", false);
        check("wf/group::op", "wf::group::op", false);
        check("::a::", "a", false);
        check("a:b", "a:b", true);
    }

    #[test]
    fn some_texts_name_nothing() {
        for text in ["", "::", " / ", "..", "a::..::b", "a\\b", "a\0", "TECHNIQUE", "a::TECHNIQUE"] {
            assert!(Reference::parse(text).is_err(), "{text:?}");
        }
    }
}
