//! Which planning folders a call needs, before anything is read.

/// What the store opens and locks for a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// No session at all.
    Nothing,
    /// The session holding this index; with `parent`, also the folder of its own-folder parent, when it has one.
    Session {
        /// `^[A-Z2-7]{6}$`.
        index: String,
        /// Whether the call may end the session, which its parent is told.
        parent: bool,
    },
    /// The session of a slug, created when there is none.
    Slug {
        /// One path segment.
        slug: String,
        /// Minted in this call: never looked up.
        minted: bool,
        /// Where a new one is created: below the state directory instead of the planning root.
        transient: bool,
        /// Slug of the parent of an own-folder child.
        parent: Option<String>,
    },
    /// The session holding this index, which is about to get a child; a transient one is promoted to a folder.
    Dispatch {
        /// `^[A-Z2-7]{6}$`.
        index: String,
        /// Folder to promote to, if the caller named one.
        slug: Option<String>,
        /// Folder name to promote to otherwise; `-2`, `-3` … are tried while it is occupied.
        fallback: String,
    },
}
