//! Settings as a table: what is said, what holds.

use std::collections::HashMap;

use super::*;

fn read(flags: &Flags, env: &[(&str, &str)]) -> Result<Config, String> {
    let env: HashMap<&str, &str> = env.iter().copied().collect();
    let lookup = |name: &str| env.get(name).map(|text| (*text).to_owned());
    Config::read(flags, &Surroundings { env: &lookup, cwd: PathBuf::from("/nowhere/at/all"), read: None })
}

fn read_env(env: &[(&str, &str)]) -> Config {
    read(&Flags::default(), env).unwrap()
}

#[test]
fn keys_flags_and_variables_are_unique() {
    let mut keys: Vec<&str> = SETTINGS.iter().map(|setting| setting.key).collect();
    let mut flags: Vec<&str> = SETTINGS.iter().filter_map(|setting| setting.flag).collect();
    for names in [&mut keys, &mut flags] {
        let before = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), before);
    }
}

#[test]
fn a_flag_beats_the_environment_and_the_first_variable_the_second() {
    let flags = Flags { workspace: Some("/flag".into()), ..Flags::default() };
    let config = read(&flags, &[("WORKFLOW_WORKSPACE", "/env")]).unwrap();
    assert_eq!(config.workspace, Some("/flag".into()));
    assert_eq!(config.origin("workspace"), Origin::Flag("workspace"));
    let config = read_env(&[("WORKFLOW_WORKSPACE", " "), ("WORKTREE_ROOT", "/second")]);
    assert_eq!(config.workspace, Some("/second".into()));
    assert_eq!(config.origin("workspace"), Origin::Environment("WORKTREE_ROOT"));
}

#[test]
fn relative_paths_are_relative_to_the_current_directory() {
    assert_eq!(read_env(&[("WORKFLOW_WORKSPACE", "here")]).workspace, Some("/nowhere/at/all/here".into()));
    assert_eq!(read_env(&[("WORKFLOW_WORKSPACE", "~/here")]).workspace, Some("/nowhere/at/all/~/here".into()));
}

#[test]
fn workflow_dirs_are_a_repeated_flag_or_a_list() {
    let config = read_env(&[("WORKFLOW_DIR", "/a:b::")]);
    assert_eq!(config.explicit, [PathBuf::from("/a"), PathBuf::from("/nowhere/at/all/b")]);
    let flags = Flags { workflow_dir: vec!["/a:b".into(), "/c".into()], ..Flags::default() };
    let config = read(&flags, &[("WORKFLOW_DIR", "/env")]).unwrap();
    assert_eq!(config.explicit, [PathBuf::from("/a:b"), PathBuf::from("/c")]);
}

#[test]
fn numbers_are_read_clamped_and_never_guessed() {
    let config = read_env(&[
        ("BATCH_HEADROOM_FRACTION", "7"),
        ("BATCH_MAX_ACTIVITIES", "0"),
        ("CHECKPOINT_MIN_RESPONSE_MS", "0"),
        ("BUNDLE_CHARS_PER_TOKEN", ""),
    ]);
    assert!((config.engine.batch_headroom_fraction - 1.0).abs() < f64::EPSILON);
    assert!((config.engine.batch_max_activities - 1.0).abs() < f64::EPSILON);
    assert_eq!(config.engine.checkpoint_min_response_ms, 0);
    assert!((config.engine.chars_per_token - 4.0).abs() < f64::EPSILON);
    let bad = [
        ("CHECKPOINT_MIN_RESPONSE_MS", "-1"),
        ("CHECKPOINT_MIN_RESPONSE_MS", "3s"),
        ("BUNDLE_CHARS_PER_TOKEN", "0"),
        ("BUNDLE_HEADROOM_FRACTION", "NaN"),
        ("BATCH_MAX_ACTIVITIES", "inf"),
        ("PORT", "eighty"),
        ("TRANSPORT", "http"),
        ("WORKFLOW_SERVER_LOG_LEVEL", "loud"),
        ("PLANNING_SLUG", "/absolute"),
    ];
    for (name, text) in bad {
        let problem = read(&Flags::default(), &[(name, text)]).unwrap_err();
        assert!(problem.contains(name) && problem.contains(text), "{problem}");
    }
}

#[test]
fn all_problems_are_reported() {
    let problems = read(&Flags::default(), &[("PORT", "x"), ("BATCH_MAX_ACTIVITIES", "y")]).unwrap_err();
    assert_eq!(problems.lines().count(), 2, "{problems}");
}

#[test]
fn unused_and_ignored_variables_are_named() {
    let config = read_env(&[("SCHEMAS_DIR", "/s"), ("HOST_PROJECTS_DIR", "/p"), ("PORT", "0")]);
    assert_eq!(config.warnings.len(), 3, "{:?}", config.warnings);
    assert!(config.warnings.iter().any(|warning| warning.contains("SCHEMAS_DIR is ignored")));
    assert!(config.warnings.iter().any(|warning| warning.contains("HOST_PROJECTS_DIR is accepted and unused")));
}

#[test]
fn state_and_key_have_their_places() {
    let options = |env: &[(&str, &str)]| {
        let mut env = env.to_vec();
        env.push(("WORKFLOW_WORKSPACE", "/w"));
        read_env(&env).store()
    };
    let default = options(&[("HOME", "/home/ann")]).unwrap();
    assert_eq!(
        (default.state_dir, default.key_dir),
        ("/home/ann/.workflow-server".into(), "/home/ann/.workflow-server".into())
    );
    let state = options(&[("HOME", "/home/ann"), ("WORKFLOW_SERVER_STATE_DIR", "/s")]).unwrap();
    assert_eq!((state.state_dir, state.key_dir), ("/s".into(), "/s".into()));
    let key = options(&[("HOME", "/home/ann"), ("WORKFLOW_SERVER_KEY_DIR", "/k")]).unwrap();
    assert_eq!((key.state_dir, key.key_dir), ("/home/ann/.workflow-server".into(), "/k".into()));
    assert!(options(&[]).unwrap_err().contains("WORKFLOW_SERVER_STATE_DIR"));
}

#[test]
fn without_a_workspace_it_says_how_to_name_one() {
    let problem = read_env(&[("HOME", "/home/ann")]).store().unwrap_err();
    assert!(problem.contains("--workspace"), "{problem}");
}

#[test]
fn the_default_layers_are_workspace_user_and_bundled() {
    let config = read_env(&[("WORKFLOW_WORKSPACE", "/w"), ("XDG_CONFIG_HOME", "/x")]);
    assert_eq!(config.workflow_dirs(), ["/w/.workflows", "/x/workflow-server/workflows", "bundled"]);
    let config = read_env(&[("WORKFLOW_WORKSPACE", "/w"), ("HOME", "/h")]);
    assert_eq!(config.workflow_dirs()[1], "/h/.config/workflow-server/workflows");
}

#[track_caller]
fn check_file(flags: &Flags, env: &[(&str, &str)], files: &[(&str, &str)]) -> Result<Config, String> {
    let env: HashMap<&str, &str> = env.iter().copied().collect();
    let lookup = |name: &str| env.get(name).map(|text| (*text).to_owned());
    let read = |path: &Path| {
        let found = files.iter().find(|(name, _)| Path::new(name) == path);
        found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| io::ErrorKind::NotFound.into())
    };
    Config::read(flags, &Surroundings { env: &lookup, cwd: PathBuf::from("/nowhere/at/all"), read: Some(&read) })
}

#[test]
fn the_file_is_the_named_one_else_that_of_the_workspace_else_the_users() {
    let files = [
        ("/c.toml", "server_name = 'flag'"),
        ("/e.toml", "server_name = 'env'"),
        ("/w/workflow-server.toml", "server_name = 'workspace'"),
        ("/h/.config/workflow-server/workflow-server.toml", "server_name = 'user'"),
    ];
    let flags = Flags { config: Some("/c.toml".into()), ..Flags::default() };
    let env = [("HOME", "/h"), ("WORKFLOW_WORKSPACE", "/w"), ("WORKFLOW_SERVER_CONFIG", "/e.toml")];
    let name = |flags: &Flags, env: &[(&str, &str)]| check_file(flags, env, &files).unwrap().engine.server_name;
    assert_eq!(name(&flags, &env), "flag");
    assert_eq!(name(&Flags::default(), &env), "env");
    assert_eq!(name(&Flags::default(), &env[..2]), "workspace");
    assert_eq!(name(&Flags::default(), &env[..1]), "user");
    assert_eq!(name(&Flags::default(), &[("XDG_CONFIG_HOME", "/x")]), "workflow-server");
    let problem = check_file(&Flags::default(), &[("WORKFLOW_SERVER_CONFIG", "gone.toml")], &files).unwrap_err();
    assert!(problem.contains("WORKFLOW_SERVER_CONFIG") && problem.contains("/nowhere/at/all/gone.toml"), "{problem}");
}

#[test]
fn a_flag_beats_the_environment_beats_the_file_beats_the_default() {
    let files = [("/w/workflow-server.toml", "\nlog_level = 'debug'\n")];
    let level = |flag: Option<&str>, env: &[(&str, &str)]| {
        let flags = Flags { log_level: flag.map(str::to_owned), workspace: Some("/w".into()), ..Flags::default() };
        let config = check_file(&flags, env, &files).unwrap();
        (config.log_level.clone(), config.origin("log_level"))
    };
    let variable = [("WORKFLOW_SERVER_LOG_LEVEL", "warn")];
    assert_eq!(level(Some("error"), &variable), ("error".to_owned(), Origin::Flag("log-level")));
    assert_eq!(level(None, &variable), ("warn".to_owned(), Origin::Environment("WORKFLOW_SERVER_LOG_LEVEL")));
    let line = Origin::File { path: "/w/workflow-server.toml".into(), line: 2 };
    assert_eq!(level(None, &[]), ("debug".to_owned(), line));
    let default = check_file(&Flags::default(), &[], &files).unwrap();
    assert_eq!((default.log_level.as_str(), default.origin("log_level")), ("info", Origin::Default));
}

#[test]
fn paths_in_a_file_are_relative_to_it_and_values_are_checked_there() {
    let text = "workspace = 'app'\nworkflow_dir = ['defs', '/abs']\nport = 80\n";
    let flags = Flags { config: Some("/c/f.toml".into()), ..Flags::default() };
    let config = check_file(&flags, &[], &[("/c/f.toml", text)]).unwrap();
    assert_eq!(config.workspace, Some("/c/app".into()));
    assert_eq!(config.explicit, [PathBuf::from("/c/defs"), PathBuf::from("/abs")]);
    assert_eq!(config.warnings, ["/c/f.toml:3: port is accepted and unused in this version"]);
    let text = "checkpoint_min_response_ms = -1\nlog_level = 'loud'\n";
    let problem = check_file(&flags, &[], &[("/c/f.toml", text)]).unwrap_err();
    let lines: Vec<&str> = problem.lines().collect();
    assert!(lines[0].starts_with("/c/f.toml:1: checkpoint_min_response_ms: \"-1\""), "{problem}");
    assert!(lines[1].starts_with("/c/f.toml:2: log_level: \"loud\""), "{problem}");
}
