//! Settings from flags, environment, a file and defaults, each with its origin (spec 04 §2).

mod file;
mod table;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use workflow_corpus::{Library, Root};
use workflow_engine::Settings;
use workflow_store::Options;

use crate::bundled;
use crate::cli::Flags;
use crate::log::Format;

use file::Found;
pub(crate) use file::NAME as FILE_NAME;
pub(crate) use table::{Kind, SETTINGS, Setting, Stage};

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A flag.
    Flag(&'static str),
    /// An environment variable.
    Environment(&'static str),
    /// A line of the configuration file.
    File {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
    },
    /// Nothing was said.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) => write!(f, "--{name}"),
            Self::Environment(name) => f.write_str(name),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

/// A setting with what was said about it; several texts only for what may be repeated.
#[derive(Clone, Debug)]
pub(crate) struct Effective {
    pub(crate) setting: &'static Setting,
    pub(crate) texts: Vec<String>,
    pub(crate) origin: Origin,
}

impl Effective {
    /// The origin, with the key where the origin alone does not say it.
    fn named(&self) -> String {
        match self.origin {
            Origin::File { .. } => format!("{}: {}", self.origin, self.setting.key),
            Origin::Flag(_) | Origin::Environment(_) | Origin::Default => self.origin.to_string(),
        }
    }
}

/// Reads the text of a file.
pub(crate) type ReadFile<'a> = dyn Fn(&Path) -> io::Result<String> + 'a;

/// The world that settings are read from.
pub(crate) struct Surroundings<'a> {
    /// Looks an environment variable up.
    pub(crate) env: &'a dyn Fn(&str) -> Option<String>,
    /// The current directory, absolute.
    pub(crate) cwd: PathBuf,
    /// Reads a configuration file; without it none is looked for.
    pub(crate) read: Option<&'a ReadFile<'a>>,
}

/// Everything that was set, read and checked.
#[derive(Debug)]
pub(crate) struct Config {
    /// Each setting with its origin.
    pub(crate) effective: Vec<Effective>,
    /// The configuration file that was read.
    pub(crate) file: Option<PathBuf>,
    /// Where a configuration file was looked for.
    pub(crate) file_places: Vec<PathBuf>,
    /// What the engine reads.
    pub(crate) engine: Settings,
    /// The workspace, if there is one.
    pub(crate) workspace: Option<PathBuf>,
    /// Level of the log.
    pub(crate) log_level: String,
    /// Look of the log.
    pub(crate) log_format: Format,
    /// Arguments in clear in the log.
    pub(crate) audit_full: bool,
    /// What to say about the settings.
    pub(crate) warnings: Vec<String>,
    explicit: Vec<PathBuf>,
    with_bundled: bool,
    user_workflows: Option<PathBuf>,
    state_dir: Option<PathBuf>,
    key_dir: Option<PathBuf>,
    engineering_dir: Option<PathBuf>,
    planning_dir: Option<String>,
    workspace_id: Option<String>,
    allow_open_key: bool,
}

impl Config {
    /// Reads all settings.
    ///
    /// # Errors
    /// Everything that cannot be understood, one line each.
    pub(crate) fn read(flags: &Flags, surroundings: &Surroundings<'_>) -> Result<Self, String> {
        let home = (surroundings.env)("HOME").filter(|home| !home.trim().is_empty()).map(PathBuf::from);
        let user_dir = (surroundings.env)("XDG_CONFIG_HOME")
            .filter(|dir| Path::new(dir).is_absolute())
            .map(PathBuf::from)
            .or_else(|| home.as_ref().map(|home| home.join(".config")))
            .map(|config| config.join("workflow-server"));
        let Found { file, places: file_places } = file::find(flags, surroundings, user_dir.as_deref())?;
        let effective: Vec<Effective> =
            SETTINGS.iter().map(|setting| lookup(setting, flags, surroundings, file.as_ref())).collect();
        let mut reader = Reader { effective: &effective, cwd: &surroundings.cwd, problems: Vec::new() };
        let state_dir = reader.path("state_dir").or_else(|| home.as_ref().map(|home| home.join(".workflow-server")));
        let mut engine = Settings::default();
        reader.text("server_name").into_iter().for_each(|name| engine.server_name = name);
        engine.server_version = reader.text("server_version").unwrap_or_else(|| env!("CARGO_PKG_VERSION").to_owned());
        reader.number("bundle_headroom_fraction", above_zero, &mut engine.bundle_headroom_fraction);
        reader.number("bundle_chars_per_token", above_zero, &mut engine.chars_per_token);
        reader.number("batch_headroom_fraction", finite, &mut engine.batch_headroom_fraction);
        reader.number("batch_max_activities", finite, &mut engine.batch_max_activities);
        engine.batch_headroom_fraction = engine.batch_headroom_fraction.clamp(0.0, 1.0);
        engine.batch_max_activities = engine.batch_max_activities.clamp(1.0, 100.0);
        reader.whole("checkpoint_min_response_ms", &mut engine.checkpoint_min_response_ms);
        reader.whole("large_session_bytes", &mut engine.large_session_bytes);
        reader.whole("max_session_bytes", &mut engine.max_session_bytes);
        reader.whole::<u16>("port", &mut 0);
        let log_level = reader.one_of("log_level", &["error", "warn", "info", "debug", "trace"], "info");
        let log_format = match reader.one_of("log_format", &["json", "text"], "json").as_str() {
            "text" => Format::Text,
            _ => Format::Json,
        };
        if reader.text("transport").is_some_and(|transport| transport != "stdio") {
            reader.problem("transport", "this version serves stdio only");
        }
        let planning_dir = reader.text("planning_dir");
        if planning_dir.as_deref().is_some_and(|dir| Path::new(dir).is_absolute()) {
            reader.problem("planning_dir", "a path relative to the engineering directory is wanted");
        }
        let config = Self {
            engine,
            workspace: reader.path("workspace").or_else(|| work_tree(&surroundings.cwd)),
            log_level,
            log_format,
            audit_full: reader.switch("audit_full"),
            warnings: warnings(&effective),
            explicit: directories(&effective, surroundings),
            with_bundled: reader.switch("with_bundled"),
            user_workflows: user_dir.map(|dir| dir.join("workflows")),
            key_dir: reader.path("key_dir").or_else(|| state_dir.clone()),
            state_dir,
            engineering_dir: reader.path("engineering_dir"),
            planning_dir,
            workspace_id: reader.text("workspace_id"),
            allow_open_key: reader.switch("allow_open_key"),
            effective: Vec::new(),
            file: file.map(|file| file.path),
            file_places,
        };
        let problems = reader.problems;
        if problems.is_empty() { Ok(Self { effective, ..config }) } else { Err(problems.join("\n")) }
    }

    /// A workspace that was named has to be there: sessions in a directory that nobody meant are lost.
    ///
    /// # Errors
    /// Who named it, what was said, and what to do.
    pub(crate) fn check_workspace(&self) -> Result<(), String> {
        let given = self.effective.iter().find(|effective| effective.setting.key == "workspace");
        let (Some(path), Some((given, text))) =
            (&self.workspace, given.and_then(|given| Some((given, given.texts.first()?.trim()))))
        else {
            return Ok(());
        };
        let problem = match std::fs::metadata(path) {
            Ok(found) if found.is_dir() => return Ok(()),
            Ok(_) => format!("{} is no directory", path.display()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => format!("{} does not exist", path.display()),
            Err(error) => format!("{}: {error}", path.display()),
        };
        Err(format!(
            "{}: {text:?} cannot be used: {problem}. Name the directory whose work is meant, or make it first; when none is \
             named, it is the git work tree that you are in.",
            given.named()
        ))
    }

    /// Directories with definitions that were named and are not there.
    ///
    /// # Errors
    /// One line for each.
    pub(crate) fn check_workflow_dirs(&self) -> Result<(), String> {
        let given = self.effective.iter().find(|effective| effective.setting.key == "workflow_dir");
        let named = given.map(Effective::named).unwrap_or_default();
        let missing = self.explicit.iter().filter(|path| !path.is_dir());
        let problems: Vec<String> = missing
            .map(|path| {
                format!(
                    "{named}: there is no directory {}. Name the one that holds the workflows, each in a folder.",
                    path.display()
                )
            })
            .collect();
        if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
    }

    /// Where a setting came from.
    pub(crate) fn origin(&self, key: &str) -> Origin {
        self.effective
            .iter()
            .find(|effective| effective.setting.key == key)
            .map_or(Origin::Default, |effective| effective.origin.clone())
    }

    /// The value that holds for a setting, as it is shown. Nothing among the settings is secret.
    pub(crate) fn value(&self, setting: &Setting) -> String {
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let given = self.effective.iter().find(|effective| effective.setting.key == setting.key);
        let given = given.and_then(|effective| effective.texts.first());
        let value = match setting.key {
            "workspace" => return path(&self.workspace).unwrap_or_else(|| "none".to_owned()),
            "workflow_dir" => return self.workflow_dirs().join(", "),
            "engineering_dir" => path(&self.engineering_dir).or_else(|| path(&self.workspace)),
            "planning_dir" if given.is_none() && self.engineering_dir.is_some() => {
                Some("artifacts/planning".to_owned())
            }
            "state_dir" => path(&self.state_dir),
            "key_dir" => path(&self.key_dir),
            "server_version" => Some(self.engine.server_version.clone()),
            "batch_headroom_fraction" => Some(self.engine.batch_headroom_fraction.to_string()),
            "batch_max_activities" => Some(self.engine.batch_max_activities.to_string()),
            _ => given.map(|text| text.trim().to_owned()),
        };
        value.unwrap_or_else(|| setting.default.to_owned())
    }

    /// The definitions (spec 01 §1).
    pub(crate) fn library(&self) -> Library {
        if !self.explicit.is_empty() {
            let mut roots: Vec<Root> =
                self.explicit.iter().map(|path| directory(path, &path.display().to_string())).collect();
            if self.with_bundled {
                roots.push(bundled::root());
                return Library::new(roots, None);
            }
            return Library::new(roots, Some(bundled::root()));
        }
        let mut roots = Vec::new();
        roots.extend(self.workspace.as_ref().map(|workspace| directory(&workspace.join(".workflows"), "workspace")));
        roots.extend(self.user_workflows.as_ref().map(|path| directory(path, "user")));
        let optional = roots.len();
        roots.push(bundled::root());
        (0..optional).fold(Library::new(roots, None), Library::optional)
    }

    /// Where definitions are looked for, as shown in the log.
    pub(crate) fn workflow_dirs(&self) -> Vec<String> {
        let shown = |path: &PathBuf| path.display().to_string();
        if self.explicit.is_empty() {
            let layers = self.workspace.iter().map(|workspace| workspace.join(".workflows"));
            let mut dirs: Vec<String> =
                layers.chain(self.user_workflows.iter().cloned()).map(|path| shown(&path)).collect();
            dirs.push("bundled".to_owned());
            return dirs;
        }
        let mut dirs: Vec<String> = self.explicit.iter().map(shown).collect();
        if self.with_bundled {
            dirs.push("bundled".to_owned());
        }
        dirs
    }

    /// Directories that were named and have to be there.
    pub(crate) fn explicit_dirs(&self) -> &[PathBuf] {
        &self.explicit
    }

    /// What the store is told.
    ///
    /// # Errors
    /// When there is no workspace, or no place for state.
    pub(crate) fn store(&self) -> Result<Options, String> {
        let workspace = self.workspace.clone().ok_or(
            "no workspace: the current directory is in no git work tree. Say which directory is meant with --workspace \
             DIR or WORKFLOW_WORKSPACE, or run `git init`.",
        )?;
        self.store_of(workspace)
    }

    /// The same for what touches no session: where no workspace is, the current directory stands in for one.
    pub(crate) fn store_without_sessions(&self) -> Result<Options, String> {
        let workspace = self.workspace.clone().map_or_else(std::env::current_dir, Ok);
        self.store_of(workspace.map_err(|error| format!("the current directory: {error}"))?)
    }

    fn store_of(&self, workspace: PathBuf) -> Result<Options, String> {
        let state_dir = self.state_dir.clone().ok_or(
            "no place for the server's state: HOME is not set. Name a directory in WORKFLOW_SERVER_STATE_DIR.",
        )?;
        let mut options = Options::new(workspace, state_dir);
        if let Some(dir) = &self.key_dir {
            options.key_dir.clone_from(dir);
        }
        options.workspace_id.clone_from(&self.workspace_id);
        options.engineering_dir.clone_from(&self.engineering_dir);
        options.planning_dir.clone_from(&self.planning_dir);
        options.allow_open_key = self.allow_open_key;
        Ok(options)
    }
}

fn directory(path: &Path, label: &str) -> Root {
    Root::Directory { path: path.to_owned(), label: label.to_owned() }
}

/// Flag, then environment, then file; a blank text counts as nothing said.
fn lookup(
    setting: &'static Setting,
    flags: &Flags,
    surroundings: &Surroundings<'_>,
    file: Option<&file::File>,
) -> Effective {
    let said = |texts: Vec<String>| {
        let texts: Vec<String> = texts.into_iter().filter(|text| !text.trim().is_empty()).collect();
        (!texts.is_empty()).then_some(texts)
    };
    if let (Some(flag), Some(texts)) = (setting.flag, said(flags.given(setting.key))) {
        return Effective { setting, texts, origin: Origin::Flag(flag) };
    }
    let variable = setting
        .env
        .iter()
        .find_map(|name| said((surroundings.env)(name).into_iter().collect()).map(|texts| (*name, texts)));
    if let Some((name, texts)) = variable {
        return Effective { setting, texts, origin: Origin::Environment(name) };
    }
    let entry = file.and_then(|file| file.entry(setting.key).map(|entry| (&file.path, entry)));
    match entry.and_then(|(path, entry)| said(entry.texts.clone()).map(|texts| (path, entry.line, texts))) {
        Some((path, line, texts)) => Effective { setting, texts, origin: Origin::File { path: path.clone(), line } },
        None => Effective { setting, texts: Vec::new(), origin: Origin::Default },
    }
}

/// The explicit directories: a repeated flag, or a list in the form of `PATH`.
fn directories(effective: &[Effective], surroundings: &Surroundings<'_>) -> Vec<PathBuf> {
    let Some(found) = effective.iter().find(|effective| effective.setting.key == "workflow_dir") else {
        return Vec::new();
    };
    let paths: Vec<PathBuf> = match found.origin {
        Origin::Environment(_) => found.texts.iter().flat_map(std::env::split_paths).collect(),
        Origin::Flag(_) | Origin::File { .. } | Origin::Default => found.texts.iter().map(PathBuf::from).collect(),
    };
    let base = base(&found.origin, &surroundings.cwd);
    paths.into_iter().filter(|path| !path.as_os_str().is_empty()).map(|path| base.join(path)).collect()
}

/// What a relative path is relative to.
fn base<'a>(origin: &'a Origin, cwd: &'a Path) -> &'a Path {
    match origin {
        Origin::File { path, .. } => path.parent().unwrap_or(cwd),
        Origin::Flag(_) | Origin::Environment(_) | Origin::Default => cwd,
    }
}

fn warnings(effective: &[Effective]) -> Vec<String> {
    let set = effective.iter().filter(|effective| effective.origin != Origin::Default);
    set.filter_map(|effective| match effective.setting.stage {
        Stage::Now => None,
        Stage::Later => Some(format!("{} is accepted and unused in this version", effective.named())),
        Stage::Ignored => Some(format!("{} is ignored: {}", effective.named(), effective.setting.about)),
    })
    .collect()
}

/// The git work tree that a directory lies in.
fn work_tree(start: &Path) -> Option<PathBuf> {
    start.ancestors().find(|directory| directory.join(".git").exists()).map(Path::to_owned)
}

fn above_zero(value: f64) -> Result<(), &'static str> {
    if value.is_finite() && value > 0.0 { Ok(()) } else { Err("a number above 0") }
}

fn finite(value: f64) -> Result<(), &'static str> {
    if value.is_finite() { Ok(()) } else { Err("a number") }
}

/// Takes values out of the table and collects what is wrong with them.
struct Reader<'a> {
    effective: &'a [Effective],
    cwd: &'a Path,
    problems: Vec<String>,
}

impl Reader<'_> {
    fn found(&self, key: &str) -> Option<(&str, &Effective)> {
        let found = self.effective.iter().find(|effective| effective.setting.key == key)?;
        Some((found.texts.first()?.trim(), found))
    }

    fn problem(&mut self, key: &str, wanted: &str) {
        let problem = match self.found(key) {
            Some((text, found)) => format!("{}: {text:?} cannot be used: {wanted}", found.named()),
            None => format!("{key}: {wanted}"),
        };
        self.problems.push(problem);
    }

    fn text(&self, key: &str) -> Option<String> {
        self.found(key).map(|(text, _)| text.to_owned())
    }

    fn path(&self, key: &str) -> Option<PathBuf> {
        self.found(key).map(|(text, found)| base(&found.origin, self.cwd).join(text))
    }

    fn switch(&mut self, key: &str) -> bool {
        match self.text(key).as_deref() {
            None | Some("false" | "0") => false,
            Some("true" | "1") => true,
            Some(_) => {
                self.problem(key, "true or false is wanted");
                false
            }
        }
    }

    fn number(&mut self, key: &str, check: fn(f64) -> Result<(), &'static str>, target: &mut f64) {
        let Some(text) = self.text(key) else { return };
        let parsed = text.parse::<f64>().map_err(|_| "a number").and_then(|value| check(value).map(|()| value));
        match parsed {
            Ok(value) => *target = value,
            Err(wanted) => self.problem(key, &format!("{wanted} is wanted")),
        }
    }

    fn whole<T: std::str::FromStr>(&mut self, key: &str, target: &mut T) {
        let Some(text) = self.text(key) else { return };
        match text.parse() {
            Ok(value) => *target = value,
            Err(_) => self.problem(key, "a whole number from 0 is wanted"),
        }
    }

    fn one_of(&mut self, key: &str, allowed: &[&str], default: &str) -> String {
        let Some(text) = self.text(key) else { return default.to_owned() };
        if allowed.contains(&text.as_str()) {
            return text;
        }
        self.problem(key, &format!("one of {} is wanted", allowed.join(", ")));
        default.to_owned()
    }
}

#[cfg(test)]
mod tests;
