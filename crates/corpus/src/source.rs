//! One definition file as it was read, and what is derived from its text alone.

use std::path::PathBuf;
use std::sync::OnceLock;

use sha2::{Digest as _, Sha256};
use workflow_yaml::{Document, LineIndex};

use crate::FileId;
use crate::resource::ResourceText;
use crate::technique::Parsed;

/// Files above this many bytes are reported, not read.
pub(crate) const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// Where definitions come from.
#[derive(Clone, Debug)]
pub enum Root {
    /// A directory that holds workflow directories; looked at again for every snapshot.
    Directory {
        /// The directory.
        path: PathBuf,
        /// Name shown as `source` of its workflows.
        label: String,
    },
    /// Files compiled into the program; they never change.
    Embedded {
        /// Name shown as `source` of its workflows.
        label: String,
        /// Path below the root (segments joined with `/`) and text.
        files: &'static [(&'static str, &'static str)],
    },
}

impl Root {
    /// The name shown as `source`.
    pub fn label(&self) -> &str {
        match self {
            Self::Directory { label, .. } | Self::Embedded { label, .. } => label,
        }
    }
}

/// Why the text of a file is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FileProblem {
    /// It is listed but cannot be opened (dangling link, permissions).
    Unreadable(String),
    /// Larger than [`MAX_FILE_BYTES`].
    TooLarge(u64),
    /// Not UTF-8; place of the first bad byte, from 1.
    NotUtf8 { line: usize, column: usize },
}

impl FileProblem {
    /// What to say about it.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::Unreadable(reason) => format!("the file cannot be read: {reason}"),
            Self::TooLarge(bytes) => {
                format!("the file has {bytes} bytes; definitions may have {MAX_FILE_BYTES} at most")
            }
            Self::NotUtf8 { .. } => "the file is not valid UTF-8".to_owned(),
        }
    }

    /// What to do about it.
    pub(crate) fn help(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => {
                "put a file there that can be read and lies in the directory of the workflows; keep data elsewhere"
            }
            Self::TooLarge(_) => "keep data elsewhere, and split the definition",
            Self::NotUtf8 { .. } => "save it as UTF-8",
        }
    }

    /// Line and column, from 1.
    pub(crate) fn position(&self) -> (usize, usize) {
        match self {
            Self::NotUtf8 { line, column } => (*line, *column),
            Self::Unreadable(_) | Self::TooLarge(_) => (1, 1),
        }
    }
}

/// A definition file. Shared between snapshots as long as its content stays the same, so whatever is derived from
/// the text alone is kept here.
#[derive(Debug)]
pub struct SourceFile {
    /// Root and path.
    pub id: FileId,
    /// The text; empty when the file has a problem.
    pub text: String,
    /// SHA-256 of the bytes.
    pub hash: [u8; 32],
    /// Why there is no text.
    pub(crate) problem: Option<FileProblem>,
    yaml: OnceLock<Document>,
    lines: OnceLock<LineIndex>,
    fragments: OnceLock<bool>,
    technique: OnceLock<Parsed>,
    resource: OnceLock<ResourceText>,
}

impl SourceFile {
    fn new(id: FileId, text: String, hash: [u8; 32], problem: Option<FileProblem>) -> Self {
        let (yaml, lines, fragments) = Default::default();
        let (technique, resource) = Default::default();
        Self { id, text, hash, problem, yaml, lines, fragments, technique, resource }
    }

    /// The text read as a technique; parsed once.
    pub(crate) fn technique(&self) -> &Parsed {
        self.technique.get_or_init(|| crate::technique::parse(&self.text))
    }

    /// The text read as a resource; parsed once.
    pub(crate) fn resource(&self) -> &ResourceText {
        self.resource.get_or_init(|| crate::resource::parse(&self.text))
    }

    /// The text read as YAML; parsed once.
    pub(crate) fn yaml(&self) -> &Document {
        self.yaml.get_or_init(|| workflow_yaml::parse(&self.text))
    }

    /// Line starts of the text.
    pub(crate) fn line_index(&self) -> &LineIndex {
        self.lines.get_or_init(|| LineIndex::new(&self.text))
    }

    /// Whether the `fragments` of this manifest can be used; worked out once.
    pub(crate) fn fragments_usable(&self, check: impl FnOnce() -> bool) -> bool {
        *self.fragments.get_or_init(check)
    }

    /// A file with this content.
    pub(crate) fn from_bytes(id: FileId, bytes: Vec<u8>) -> Self {
        let hash = Sha256::digest(&bytes).into();
        let (text, problem) = match String::from_utf8(bytes) {
            Ok(text) => (text, None),
            Err(error) => {
                let good = error.utf8_error().valid_up_to();
                let head = String::from_utf8_lossy(&error.as_bytes()[..good]).into_owned();
                let line = head.matches('\n').count() + 1;
                let column = head.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
                (String::new(), Some(FileProblem::NotUtf8 { line, column }))
            }
        };
        Self::new(id, text, hash, problem)
    }

    /// A file that is listed but has no usable content.
    pub(crate) fn without_text(id: FileId, problem: FileProblem) -> Self {
        let hash = Sha256::digest(problem.message().as_bytes()).into();
        Self::new(id, String::new(), hash, Some(problem))
    }

    /// Last segment of the path.
    pub(crate) fn name(&self) -> &str {
        self.id.path.rsplit('/').next().unwrap_or_default()
    }
}
