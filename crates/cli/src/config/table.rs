//! The settings: one row each (spec 04 §2). Adding one means adding a row here and reading it in `config/mod.rs`.

/// One thing that can be set.
#[derive(Debug)]
pub(crate) struct Setting {
    /// Name in messages and in the configuration file.
    pub(crate) key: &'static str,
    /// What kind of value it takes.
    pub(crate) kind: Kind,
    /// Flag, without dashes; absent for what only the environment or the file sets.
    pub(crate) flag: Option<&'static str>,
    /// Environment variables, the first that is set and not blank wins.
    pub(crate) env: &'static [&'static str],
    /// What holds when nothing is set, as it is shown.
    pub(crate) default: &'static str,
    /// One line.
    pub(crate) about: &'static str,
    /// Whether it does anything.
    pub(crate) stage: Stage,
}

/// Kind of a value. Flags and environment variables give all kinds as text, a file gives them as TOML values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A text.
    Text,
    /// A path; in a file relative to the file, else to the current directory.
    Path,
    /// Several paths.
    Paths,
    /// On or off.
    Switch,
    /// A number.
    Number,
    /// A whole number.
    Whole,
}

/// Whether a setting does anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It does.
    Now,
    /// Accepted for a later version; unused.
    Later,
    /// Of the original; accepted and ignored with a warning.
    Ignored,
}

const fn setting(
    key: &'static str,
    kind: Kind,
    flag: Option<&'static str>,
    env: &'static [&'static str],
    default: &'static str,
    about: &'static str,
) -> Setting {
    Setting { key, kind, flag, env, default, about, stage: Stage::Now }
}

const fn later(
    key: &'static str,
    kind: Kind,
    flag: Option<&'static str>,
    env: &'static [&'static str],
    about: &'static str,
) -> Setting {
    Setting { key, kind, flag, env, default: "", about, stage: Stage::Later }
}

/// All settings, in the order in which they are shown.
pub(crate) static SETTINGS: &[Setting] = &[
    setting(
        "workspace",
        Kind::Path,
        Some("workspace"),
        &["WORKFLOW_WORKSPACE", "WORKTREE_ROOT"],
        "the enclosing git work tree",
        "directory whose work this server keeps sessions for",
    ),
    setting(
        "workflow_dir",
        Kind::Paths,
        Some("workflow-dir"),
        &["WORKFLOW_DIR"],
        "<workspace>/.workflows, the user's workflows, the bundled ones",
        "directories with workflow definitions, nearest first; replaces the default ones",
    ),
    setting(
        "with_bundled",
        Kind::Switch,
        Some("with-bundled"),
        &[],
        "false",
        "adds the bundled workflows to explicit directories",
    ),
    setting(
        "workspace_id",
        Kind::Text,
        Some("workspace-id"),
        &["WORKFLOW_SERVER_WORKSPACE_ID"],
        "the canonical workspace path",
        "name of the workspace in seals, the same on every machine that shares it",
    ),
    setting(
        "engineering_dir",
        Kind::Path,
        None,
        &["WORKFLOW_SERVER_ENGINEERING_DIR"],
        "the workspace",
        "directory below which planning folders lie, when that is not the workspace",
    ),
    setting(
        "planning_dir",
        Kind::Text,
        None,
        &["PLANNING_SLUG"],
        ".engineering/artifacts/planning",
        "planning root, relative to the engineering directory",
    ),
    setting(
        "state_dir",
        Kind::Path,
        None,
        &["WORKFLOW_SERVER_STATE_DIR"],
        "~/.workflow-server",
        "transient sessions, traces, and what was seen of sealed sessions",
    ),
    setting(
        "key_dir",
        Kind::Path,
        None,
        &["WORKFLOW_SERVER_KEY_DIR", "WORKFLOW_SERVER_STATE_DIR"],
        "~/.workflow-server",
        "directory of the server key, file name `secret`",
    ),
    setting(
        "allow_open_key",
        Kind::Switch,
        Some("allow-open-key"),
        &["WORKFLOW_SERVER_ALLOW_OPEN_KEY"],
        "false",
        "accepts a key file that others may read, or that is a link (mounted secrets)",
    ),
    setting("transport", Kind::Text, Some("transport"), &["TRANSPORT"], "stdio", "how clients talk to the server"),
    setting("server_name", Kind::Text, None, &["SERVER_NAME"], "workflow-server", "name shown to clients"),
    setting(
        "server_version",
        Kind::Text,
        None,
        &["SERVER_VERSION"],
        "the version of the binary",
        "version shown to clients",
    ),
    setting(
        "checkpoint_min_response_ms",
        Kind::Whole,
        None,
        &["CHECKPOINT_MIN_RESPONSE_MS"],
        "3000",
        "shortest time between a question and its answer, in milliseconds",
    ),
    setting(
        "bundle_headroom_fraction",
        Kind::Number,
        None,
        &["BUNDLE_HEADROOM_FRACTION"],
        "0.8",
        "part of a context that a delivery may fill",
    ),
    setting(
        "bundle_chars_per_token",
        Kind::Number,
        None,
        &["BUNDLE_CHARS_PER_TOKEN"],
        "4",
        "characters counted for a token",
    ),
    setting(
        "batch_headroom_fraction",
        Kind::Number,
        None,
        &["BATCH_HEADROOM_FRACTION"],
        "0.35",
        "part of its context that a worker may be sent over several activities, 0 to 1",
    ),
    setting(
        "batch_max_activities",
        Kind::Number,
        None,
        &["BATCH_MAX_ACTIVITIES"],
        "3",
        "activities that one worker may take, 1 to 100",
    ),
    setting(
        "large_session_bytes",
        Kind::Whole,
        None,
        &["WORKFLOW_SERVER_LARGE_SESSION_BYTES"],
        "8388608",
        "size of a session file from which calls warn",
    ),
    setting(
        "max_session_bytes",
        Kind::Whole,
        None,
        &["WORKFLOW_SERVER_MAX_SESSION_BYTES"],
        "67108864",
        "size of a session file above which it may not grow",
    ),
    setting(
        "log_level",
        Kind::Text,
        Some("log-level"),
        &["WORKFLOW_SERVER_LOG_LEVEL"],
        "info",
        "error, warn, info, debug or trace",
    ),
    setting("log_format", Kind::Text, Some("log-format"), &["WORKFLOW_SERVER_LOG_FORMAT"], "json", "json or text"),
    setting(
        "audit_full",
        Kind::Switch,
        Some("audit-full"),
        &["WORKFLOW_SERVER_AUDIT_FULL"],
        "false",
        "writes arguments into the log as they are, not only their sizes",
    ),
    later(
        "repo",
        Kind::Text,
        Some("repo"),
        &["WORKFLOW_SERVER_REPO"],
        "the repository of a projects layout, owner/name",
    ),
    later(
        "install_dir",
        Kind::Path,
        Some("install-dir"),
        &["WORKFLOW_SERVER_INSTALL_DIR"],
        "install directory of a projects layout",
    ),
    later("port", Kind::Whole, Some("port"), &["PORT"], "port of the HTTP transport"),
    later("host", Kind::Text, Some("host"), &["HOST"], "address of the HTTP transport"),
    later(
        "host_projects_root",
        Kind::Path,
        None,
        &["HOST_PROJECTS_ROOT", "HOST_PROJECTS_DIR"],
        "projects root as the host sees it",
    ),
    later(
        "host_worktree_root",
        Kind::Path,
        None,
        &["HOST_WORKTREE_ROOT", "HOST_WORKTREE_DIR"],
        "worktrees as the host sees them",
    ),
    Setting {
        key: "schemas_dir",
        kind: Kind::Path,
        flag: None,
        env: &["SCHEMAS_DIR"],
        default: "",
        about: "schemas are part of the binary",
        stage: Stage::Ignored,
    },
];
