//! Settings as a table: what is said, what holds.

use std::collections::HashMap;

use super::*;

fn read(flags: &Flags, env: &[(&str, &str)]) -> Result<Config, String> {
    let env: HashMap<&str, &str> = env.iter().copied().collect();
    let lookup = |name: &str| env.get(name).map(|text| (*text).to_owned());
    Config::read(flags, &Surroundings { env: &lookup, cwd: PathBuf::from("/nowhere/at/all") })
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
