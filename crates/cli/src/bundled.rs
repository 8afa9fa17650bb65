//! The workflows that come with the binary.

use workflow_corpus::Root;

/// Path below the corpus root and text.
static FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/bundled.rs"));

/// The bundled corpus as a root.
pub(crate) fn root() -> Root {
    Root::Embedded { label: "bundled".to_owned(), files: FILES }
}
