//! The language in which the tables say what a value may look like.

/// What a value may look like.
pub(crate) enum Shape {
    /// Any string.
    Text,
    /// A string of a given form.
    Formed(&'static Form),
    /// One of these strings.
    Choice(&'static [&'static str]),
    /// `true` or `false`.
    Boolean,
    /// `false` and nothing else.
    OnlyFalse,
    /// A whole number from `least` up.
    Whole {
        /// Smallest value.
        least: u64,
    },
    /// Anything.
    Any,
    /// `null` and nothing else.
    Null,
    /// Any number.
    Number,
    /// A list.
    List {
        /// Shape of every item.
        of: &'static Self,
        /// Least number of items.
        least: usize,
    },
    /// A map with free keys.
    Map(&'static Self),
    /// A map with known keys.
    Object(&'static Object),
    /// One of several objects, selected by a member.
    Tagged(&'static Tagged),
    /// One of several shapes, at most one per JSON type.
    Either(&'static [Self]),
    /// Written in JSON Schema; for documents that this crate does not decode.
    Written(fn() -> serde_json::Value),
    /// Only "is a map" is checked here; the object is checked on its own later.
    Later(&'static Object),
}

/// A form of strings.
pub(crate) struct Form {
    /// The regular expression, for schemas.
    pub(crate) pattern: &'static str,
    /// The same as code.
    pub(crate) fits: fn(&str) -> bool,
    /// What is expected, for messages.
    pub(crate) expected: &'static str,
    /// One that fits.
    pub(crate) example: &'static str,
    /// Diagnostic code, where it is not the one of the file.
    pub(crate) code: Option<&'static str>,
}

/// A map with known keys.
pub(crate) struct Object {
    /// Name of the definition in the schemas; empty for one that is written in place.
    pub(crate) name: &'static str,
    /// One sentence for editors.
    pub(crate) about: &'static str,
    /// Are unknown keys refused when loading? (Schemas refuse them always.)
    pub(crate) closed: bool,
    /// Known keys.
    pub(crate) fields: &'static [Field],
}

/// One known key.
pub(crate) struct Field {
    /// The key.
    pub(crate) name: &'static str,
    /// Must it be there?
    pub(crate) need: Need,
    /// Its value.
    pub(crate) shape: Shape,
    /// One sentence for editors.
    pub(crate) about: &'static str,
}

/// Must a key be there?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// It may be left out.
    Optional,
    /// A missing key is a problem.
    Required,
    /// A missing key is a problem that the decoder reports with a code of its own.
    RequiredElsewhere,
    /// Optional, and only known in the workflow `meta`.
    OnlyMeta,
}

/// Several objects that share a member which tells them apart.
pub(crate) struct Tagged {
    /// Name of the definition in the schemas.
    pub(crate) name: &'static str,
    /// The member.
    pub(crate) tag: &'static str,
    /// Its values and what each stands for.
    pub(crate) choices: &'static [(&'static str, &'static Object)],
}

impl Object {
    /// The field of this name.
    pub(crate) fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}
