//! `workflow-server.toml`: where it lies, and what it may say (spec 04 §2.4).

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use super::{Kind, SETTINGS, Surroundings, base, work_tree};
use crate::cli::Flags;
use crate::config::Origin;

/// Name of the file.
pub(crate) const NAME: &str = "workflow-server.toml";

/// Environment variable that names the file.
const VARIABLE: &str = "WORKFLOW_SERVER_CONFIG";

/// What a file says.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: PathBuf,
    entries: Vec<Entry>,
}

/// One setting in a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) key: &'static str,
    /// As a flag or a variable would give it; several only for what may be repeated.
    pub(super) texts: Vec<String>,
    /// From 1.
    pub(super) line: usize,
}

impl File {
    pub(super) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }
}

/// The file, and the places where it was looked for.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) file: Option<File>,
    pub(super) places: Vec<PathBuf>,
}

/// Finds the file: named by `--config`, else by `WORKFLOW_SERVER_CONFIG`, else in the workspace, else in the user's
/// configuration directory. What is named has to be there.
///
/// # Errors
/// A file that cannot be read or says what cannot be understood; one line for each problem.
pub(super) fn find(flags: &Flags, surroundings: &Surroundings<'_>, user_dir: Option<&Path>) -> Result<Found, String> {
    let mut places = Vec::new();
    let Some(read) = surroundings.read else { return Ok(Found { file: None, places }) };
    let text = |name: &str| (surroundings.env)(name).filter(|text| !text.trim().is_empty());
    let named = match &flags.config {
        Some(path) => Some(("--config", path.clone())),
        None => text(VARIABLE).map(|path| (VARIABLE, PathBuf::from(path))),
    };
    if let Some((by, path)) = named {
        let path = surroundings.cwd.join(path);
        let text = read(&path).map_err(|error| format!("{by}: {} cannot be read: {error}", path.display()))?;
        return Ok(Found { file: Some(parse(&path, &text)?), places: vec![path] });
    }
    let workspace = flags.workspace.clone().filter(|path| !path.as_os_str().is_empty());
    let workspace = workspace
        .or_else(|| ["WORKFLOW_WORKSPACE", "WORKTREE_ROOT"].iter().find_map(|name| text(name)).map(PathBuf::from));
    let workspace = match workspace {
        Some(path) => Some(base(&Origin::Default, &surroundings.cwd).join(path)),
        None => work_tree(&surroundings.cwd),
    };
    places.extend(workspace.iter().map(|dir| dir.join(NAME)));
    places.extend(user_dir.map(|dir| dir.join(NAME)));
    for path in &places {
        match read(path) {
            Ok(text) => return Ok(Found { file: Some(parse(path, &text)?), places }),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            // What is wrong is the workspace and no file in it, and whoever needs one says so.
            Err(_) if workspace.as_ref().is_some_and(|dir| dir.join(NAME) == *path && dir.metadata().is_err()) => {}
            Err(error) => return Err(format!("{} cannot be read: {error}", path.display())),
        }
    }
    Ok(Found { file: None, places })
}

/// Reads the text of a file; all problems at once, in the order of their lines.
fn parse(path: &Path, text: &str) -> Result<File, String> {
    let line = |offset: usize| text.get(..offset).map_or(1, |before| before.matches('\n').count() + 1);
    let place = |offset: usize| format!("{}:{}", path.display(), line(offset));
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or_else(|| path.display().to_string(), |span| place(span.start));
        format!("{at}: {}", error.message().replace('\n', "; "))
    })?;
    let known: Vec<&str> = SETTINGS.iter().map(|setting| setting.key).collect();
    let (mut entries, mut problems) = (Vec::new(), Vec::new());
    for (key, value) in table.get_ref() {
        let name: &str = key.get_ref();
        let at = key.span().start;
        let Some(setting) = SETTINGS.iter().find(|setting| setting.key == name) else {
            let hint = match nearest(name, &known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known: {}", known.join(", ")),
            };
            problems.push((at, format!("{}: `{name}` is not known; {hint}", place(at))));
            continue;
        };
        if let Some(texts) = texts(setting.kind, value.get_ref()) {
            entries.push(Entry { key: setting.key, texts, line: line(at) });
        } else {
            let (wanted, found) = (wanted(setting.kind), value.get_ref().type_str());
            problems.push((at, format!("{}: `{name}` wants {wanted}, not {found}", place(at))));
        }
    }
    problems.sort();
    let problems: Vec<String> = problems.into_iter().map(|(_, problem)| problem).collect();
    if problems.is_empty() { Ok(File { path: path.to_owned(), entries }) } else { Err(problems.join("\n")) }
}

/// The value as texts, when it is of the kind.
fn texts(kind: Kind, value: &DeValue<'_>) -> Option<Vec<String>> {
    let text = match (kind, value) {
        (Kind::Text | Kind::Path | Kind::Paths, DeValue::String(text)) => text.to_string(),
        (Kind::Paths, DeValue::Array(entries)) => {
            let text = |entry: &toml::Spanned<DeValue<'_>>| entry.get_ref().as_str().map(str::to_owned);
            return entries.iter().map(text).collect();
        }
        (Kind::Switch, DeValue::Boolean(on)) => on.to_string(),
        (Kind::Whole | Kind::Number, DeValue::Integer(number)) => {
            i64::from_str_radix(number.as_str(), number.radix()).ok()?.to_string()
        }
        (Kind::Number, DeValue::Float(number)) => number.as_str().to_owned(),
        _ => return None,
    };
    Some(vec![text])
}

fn wanted(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => "a text in quotes",
        Kind::Path => "a path in quotes",
        Kind::Paths => "a list of paths, each in quotes",
        Kind::Switch => "true or false",
        Kind::Number => "a number",
        Kind::Whole => "a whole number",
    }
}

/// The known key that is nearest to `name`, when one is near.
fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let name = name.to_ascii_lowercase().replace('-', "_");
    let scored = known.iter().map(|known| (strsim::jaro_winkler(&name, known), *known));
    scored.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|best| best.0 > 0.75).map(|best| best.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Key, texts, line.
    type Row<'a> = (&'a str, &'a [&'a str], usize);

    #[track_caller]
    fn check(text: &str, expected: Result<&[Row<'_>], &[&str]>) {
        match (parse(Path::new("/w/workflow-server.toml"), text), expected) {
            (Ok(file), Ok(expected)) => {
                let mut found: Vec<(&str, Vec<&str>, usize)> = file
                    .entries
                    .iter()
                    .map(|entry| (entry.key, entry.texts.iter().map(String::as_str).collect(), entry.line))
                    .collect();
                found.sort_by_key(|entry| entry.2);
                let expected: Vec<_> =
                    expected.iter().map(|(key, texts, line)| (*key, texts.to_vec(), *line)).collect();
                assert_eq!(found, expected);
            }
            (Err(problems), Err(expected)) => assert_eq!(problems.lines().collect::<Vec<_>>(), expected),
            (found, _) => panic!("{found:?}"),
        }
    }

    #[test]
    fn values_of_every_kind_are_read_with_their_line() {
        check(
            "# a comment\nworkspace = \"sub\"\nworkflow_dir = [\"a\", 'b']\nwith_bundled = true\n\nport = 0x50\n\
             bundle_chars_per_token = 3.5\nbatch_max_activities = 1_0\n",
            Ok(&[
                ("workspace", &["sub"], 2),
                ("workflow_dir", &["a", "b"], 3),
                ("with_bundled", &["true"], 4),
                ("port", &["80"], 6),
                ("bundle_chars_per_token", &["3.5"], 7),
                ("batch_max_activities", &["10"], 8),
            ]),
        );
        check("workflow_dir = \"one\"", Ok(&[("workflow_dir", &["one"], 1)]));
        check("", Ok(&[]));
    }

    #[test]
    fn what_is_unknown_or_of_another_type_is_refused_with_its_line() {
        check(
            "\nworkspce = \"a\"\nlog_level = 3\nwith_bundled = \"yes\"\n\n[server]\nname = 1\n",
            Err(&[
                "/w/workflow-server.toml:2: `workspce` is not known; did you mean `workspace`?",
                "/w/workflow-server.toml:3: `log_level` wants a text in quotes, not integer",
                "/w/workflow-server.toml:4: `with_bundled` wants true or false, not string",
                "/w/workflow-server.toml:6: `server` is not known; did you mean `server_name`?",
            ]),
        );
        check(
            "checkpoint-min-response-ms = 1\nworkflow_dir = [1]\ncheckpoint_min_response_ms = 1.5",
            Err(&[
                "/w/workflow-server.toml:1: `checkpoint-min-response-ms` is not known; did you mean \
                 `checkpoint_min_response_ms`?",
                "/w/workflow-server.toml:2: `workflow_dir` wants a list of paths, each in quotes, not array",
                "/w/workflow-server.toml:3: `checkpoint_min_response_ms` wants a whole number, not float",
            ]),
        );
    }

    #[test]
    fn what_is_no_toml_is_refused_with_its_line() {
        for (text, line) in [("a = 1\nb c\n", 2), ("port = 1\nport = 2\n", 2), ("x = \"\n", 1)] {
            let problem = parse(Path::new("f"), text).unwrap_err();
            assert!(problem.starts_with(&format!("f:{line}: ")) && !problem.contains('\n'), "{problem}");
        }
    }
}
