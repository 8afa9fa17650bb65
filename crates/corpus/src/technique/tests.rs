use super::*;

/// A file with front matter and a capability around `rest`, which begins on line 8.
fn file(rest: &str) -> String {
    format!("---\nmetadata:\n  version: 1.0.0\n---\n## Capability\nDoes it.\n\n{rest}")
}

#[track_caller]
fn read(rest: &str) -> Technique {
    let parsed = parse(&file(rest));
    parsed.technique.unwrap_or_else(|| panic!("malformed: {:?}", parsed.issues)).as_ref().clone()
}

/// Checks code and line of everything that is noticed.
#[track_caller]
fn check_issues(text: &str, expected: &[(&str, usize)]) {
    let issues = parse(text).issues;
    let found: Vec<(&str, usize)> = issues.iter().map(|issue| (issue.code, issue.line)).collect();
    assert_eq!(found, expected, "{issues:#?}");
}

#[track_caller]
fn check_steps(protocol: &str, expected: &[(Option<&str>, &[&str])]) {
    let blocks = read(&format!("## Protocol\n\n{protocol}")).protocol;
    let found: Vec<(Option<&str>, Vec<&str>)> =
        blocks.iter().map(|block| (block.title.as_deref(), block.steps.iter().map(String::as_str).collect())).collect();
    let expected: Vec<(Option<&str>, Vec<&str>)> =
        expected.iter().map(|(title, steps)| (*title, steps.to_vec())).collect();
    assert_eq!(found, expected);
}

/// The example of spec 01 §7.8 in its structure, with other words.
#[test]
fn worked_example_01_7_8() {
    let technique = read(
        "## Inputs\n\n### guest\n\nWho is served.\n\n#### seat\n\nWhere.\n\n### sugar\n\n*(optional)* Spoons.\n\n\
         #### default\n\n`0`\n\n## Outputs\n\n### slip\n\nThe slip.\n\n#### artifact\n\n`{guest}-slip.json`\n\n\
         #### audience\n\n`agent`\n\n## Protocol\n\n### 1. Ask\n\n- Greet `{guest}`.\n  > Once only.\n- Bind `{$wish}`.\n\n\
         ## Rules\n\n### no-guess\n\nAsk instead.\n",
    );
    let item = |id: &str, description: &str| Item {
        id: id.to_owned(),
        description: Some(description.to_owned()),
        ..Item::default()
    };
    let expected = Technique {
        version: "1.0.0".to_owned(),
        capability: "Does it.".to_owned(),
        inputs: vec![
            Item { components: vec![("seat".to_owned(), "Where.".to_owned())], ..item("guest", "Who is served.") },
            Item { default: Some("0".to_owned()), ..item("sugar", "*(optional)* Spoons.") },
        ],
        outputs: vec![Item {
            artifact: Some("{guest}-slip.json".to_owned()),
            audience: Some("agent".to_owned()),
            ..item("slip", "The slip.")
        }],
        protocol: vec![Block {
            title: Some("Ask".to_owned()),
            steps: vec!["Greet `{guest}`.\n> Once only.".to_owned(), "Bind `{$wish}`.".to_owned()],
        }],
        rules: vec![("no-guess".to_owned(), "Ask instead.".to_owned())],
        links: Vec::new(),
    };
    assert_eq!(technique, expected);
}

/// Trap 25: a table behind a blank line stays with its step.
#[test]
fn trap_01_14_25_paragraph_after_a_blank_line() {
    check_steps("- Do:\n\n| a |\n|---|\n| 1 |\n", &[(None, &["Do:\n\n| a |\n|---|\n| 1 |"])]);
}

/// Trap 26: a sub-bullet is part of its step.
#[test]
fn trap_01_14_26_sub_bullets() {
    check_steps("- a\n  - b\n", &[(None, &["a\n- b"])]);
}

/// Trap T-11: a paragraph behind a step stays with it.
#[test]
fn trap_02_15_t11_dropped_prose() {
    check_steps("1. step\n\nplain paragraph\n", &[(None, &["step\n\nplain paragraph"])]);
}

/// Trap 28: only the reserved titles are special, each in its own section.
#[test]
fn trap_01_14_28_reserved_components() {
    let technique = read(
        "## Inputs\n### i\n#### artifact\na.md\n#### audience\nx\n## Outputs\n### o\n#### research_artifact\nprose\n\
         #### default\nd\n#### Artifact\n`b.md`\n",
    );
    let names = |item: &Item| item.components.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&technique.inputs[0]), ["artifact", "audience"]);
    assert_eq!(names(&technique.outputs[0]), ["research_artifact", "default"]);
    assert_eq!(technique.outputs[0].artifact.as_deref(), Some("b.md"));
}

#[test]
fn protocol_blocks() {
    check_steps(
        "### 2. Two\n- a\n### Flat\ntext\n\nmore\n",
        &[(Some("Two"), &["a"]), (Some("Flat"), &["text\n\nmore"])],
    );
    check_steps("before\n### T\n- a\n", &[(None, &["before"]), (Some("T"), &["a"])]);
    check_steps("### Empty\n### T\n- a\n", &[(Some("T"), &["a"])]);
    check_steps("```\n### no\n- x\n```\n- a\n", &[(None, &["```\n### no\n- x\n```", "a"])]);
    check_steps("", &[]);
}

#[test]
fn malformed_files() {
    check_issues("## Capability\nx\n", &[("technique.parse", 1)]);
    check_issues("\n---\nmetadata:\n  version: 1.0.0\n---\n## Capability\nx\n", &[("technique.parse", 1)]);
    check_issues("---\nversion: 1.0.0\n---\n## Capability\nx\n", &[("technique.version", 1)]);
    check_issues("---\nmetadata:\n  version: 1.0\n---\n## Capability\nx\n", &[("technique.version", 3)]);
    check_issues("---\nmetadata:\n  version: 1.0.0\n---\n## Rules\n### r\nx\n", &[("technique.capability", 1)]);
    check_issues(
        "---\nmetadata:\n  version: 1.0.0\n---\n\n## Capability\n\n## Rules\n### r\nx\n",
        &[("technique.capability", 6)],
    );
    for title in ["Input", "output", "Output(s)"] {
        let text = file(&format!("## {title}\n"));
        check_issues(&text, &[("technique.section", 8)]);
        assert!(parse(&text).technique.is_none());
    }
}

#[test]
fn kept_with_a_remark() {
    let keeps = |rest: &str, expected: &[(&str, usize)]| {
        check_issues(&file(rest), expected);
        assert!(parse(&file(rest)).technique.is_some());
    };
    keeps("## Notes\nx\n", &[("technique.section", 8)]);
    keeps("## Capability\nagain\n", &[("technique.section", 8)]);
    keeps("## Rules\n- loose\n### r\nx\n", &[("technique.rules-shape", 9)]);
    keeps("## Rules\n### r\nx\n### r\ny\n", &[("technique.duplicate-id", 11)]);
    keeps("## Rules\n### r\n", &[("technique.lost-content", 9)]);
    keeps("## Inputs\nloose\n### i\n", &[("technique.lost-content", 9)]);
    keeps("## Inputs\n### i\n### i\n", &[("technique.duplicate-id", 10)]);
    keeps("## Outputs\n### o\n#### artifact\nsome prose\n", &[("technique.artifact-name", 10)]);
    keeps("## Outputs\n### o\n#### audience\nrobots\n", &[("technique.audience", 10)]);
    keeps("## Protocol\n### Empty\n", &[("technique.lost-content", 9)]);
    keeps("## Protocol\n- a\n", &[]);
    let titled = |text: &str| file("").replace("## Capability", &format!("{text}\n## Capability"));
    check_issues(&titled("\n# Title\n"), &[]);
    check_issues(&titled("# Title\ntext\n"), &[("technique.lost-content", 6)]);
    assert_eq!(read("## Rules\n### r\nx\n### r\ny\n").rules, [("r".to_owned(), "y".to_owned())]);
}

#[test]
fn byte_order_mark_windows_lines_and_fences() {
    let text = format!("\u{feff}{}", file("## Rules\n### r\n```\n## Capability\n```\n").replace('\n', "\r\n"));
    let technique = parse(&text).technique.unwrap();
    assert_eq!(technique.rules, [("r".to_owned(), "```\n## Capability\n```".to_owned())]);
    check_issues(&text, &[]);
}

#[test]
fn links_have_places() {
    let links = read("## Rules\n### r\nsee [a](../resources/log.md#rows) and [b](other)\n").links;
    let places: Vec<(String, bool, usize, usize)> =
        links.iter().map(|link| (link.target.id(), link.rewritten, link.line, link.column)).collect();
    assert_eq!(places, [("log#rows".to_owned(), true, 10, 9), ("other".to_owned(), false, 10, 43)]);
}

#[test]
fn artifact_file_names() {
    for good in ["a.md", "{x}-b.json", "a.b.tar", "{a.b$}.c", "A_1-2.md", ".x.md"] {
        assert!(is_artifact_name(good), "{good}");
        assert_eq!(artifact_names(good), [good]);
    }
    for bad in ["", "a", "a b.md", "d/a.md", "a.", ".md", "{}.md", "{a b}.md", "a.m-d", "{a.md", "a}.md", "é.md"] {
        assert!(!is_artifact_name(bad), "{bad}");
        assert!(artifact_names(bad).is_empty(), "{bad}");
    }
    assert_eq!(artifact_names("`a.md` / b.md (when asked)"), ["a.md", "b.md"]);
    assert_eq!(artifact_names("a.md and `b.md`"), ["a.md", "b.md"]);
    assert_eq!(artifact_names("a.json` (this and that / those) / `b.json` (the rest"), Vec::<String>::new());
    assert_eq!(artifact_names("a.json` (this and that / those) / `b.json` (the rest)"), ["a.json", "b.json"]);
    assert!(artifact_names("a.md / some prose").is_empty());
    assert!(artifact_names("a.md and  and b.md").is_empty());
}

#[test]
fn ordinals_of_titles() {
    for (title, text) in
        [("1. Initial", "Initial"), ("12.x", "x"), ("Plain", "Plain"), ("2024 plan", "2024 plan"), ("3.", "")]
    {
        assert_eq!(without_ordinal(title), text);
    }
}

/// Sections are suggested as the documentation writes them, whatever was misspelt about them.
#[test]
fn a_misspelt_section_is_suggested_as_it_is_documented() {
    for name in super::SECTIONS {
        let half = name.len() / 2;
        let (begin, end) = name.split_at(half);
        for written in [format!("{begin}{}", &end[1..]), format!("{begin}x{end}").to_lowercase(), format!("{name}x")] {
            if ["input", "output"].contains(&written.to_lowercase().as_str()) {
                continue;
            }
            let parsed = parse(&format!("---\nmetadata:\n  version: 1.0.0\n---\n## {written}\n\nText.\n"));
            let issue = parsed.issues.iter().find(|issue| issue.code == "technique.section");
            let help = issue.and_then(|issue| issue.help.clone());
            assert_eq!(help, Some(format!("did you mean `## {name}`?")), "{written}");
        }
    }
}
