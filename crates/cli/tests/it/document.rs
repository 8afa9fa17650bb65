//! What the documents say is true: their examples are run.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use testkit::Sandbox;

use crate::{binary, bundled, demo, repository, sandbox};

/// A fenced block, with the comment in front of it.
struct Block {
    note: String,
    language: String,
    text: String,
}

fn read(name: &str) -> String {
    fs::read_to_string(repository().join(name)).unwrap()
}

fn blocks(document: &str) -> Vec<Block> {
    let (mut blocks, mut note) = (Vec::new(), "");
    let mut lines = document.lines();
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            let text = body.iter().flat_map(|line| [line, "\n"]).collect();
            blocks.push(Block { note: note.to_owned(), language: language.to_owned(), text });
        }
        note = line.strip_prefix("<!-- ").and_then(|note| note.strip_suffix(" -->")).unwrap_or_default();
    }
    blocks
}

/// Commands with the lines that they are said to print.
fn console(text: &str) -> Vec<(String, Vec<&str>)> {
    let mut commands: Vec<(String, Vec<&str>)> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        match line.strip_prefix("$ ") {
            Some(command) => commands.push((command.to_owned(), Vec::new())),
            None if open => {
                let command = &mut commands.last_mut().unwrap().0;
                command.push('\n');
                command.push_str(line);
            }
            None => commands.last_mut().expect("a command comes first").1.push(line),
        }
        let command = &commands.last().unwrap().0;
        open = command.ends_with('\\') || command.matches('\'').count() % 2 == 1;
    }
    commands
}

/// Whether lines are as said: `…` alone stands for any lines, in a line for any text.
fn matches(said: &[&str], found: &[&str]) -> bool {
    match said {
        [] => found.is_empty(),
        ["…", rest @ ..] => (0..=found.len()).any(|skipped| matches(rest, &found[skipped..])),
        [line, rest @ ..] => match found {
            [first, others @ ..] => fits(line, first) && matches(rest, others),
            [] => false,
        },
    }
}

fn fits(said: &str, found: &str) -> bool {
    match said.split_once('…') {
        Some((before, after)) => {
            found.len() >= before.len() + after.len() && found.starts_with(before) && found.ends_with(after)
        }
        None => said == found,
    }
}

/// Runs a console block in the workspace. The session index that it names first is taken to be the one that was given.
fn run(sandbox: &Sandbox, text: &str, index: &mut Option<(String, String)>) {
    for (line, said) in console(text) {
        let line = index.as_ref().map_or_else(|| line.clone(), |(said, given)| line.replace(said, given));
        let path = format!("{}:{}", binary().parent().unwrap().display(), std::env::var("PATH").unwrap());
        let mut shell = sandbox.shell(&line);
        shell.env("PATH", path).current_dir(sandbox.workspace());
        let output = shell.stdin(Stdio::null()).output().unwrap();
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if line.contains("start_session") {
            let given: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
            let given = given["session_index"].as_str().unwrap().to_owned();
            let named = said.iter().find_map(|line| line.trim().strip_prefix("\"session_index\": \"")).unwrap();
            *index = Some((named[..6].to_owned(), given));
        }
        let text = index.as_ref().map_or_else(|| text.clone(), |(said, given)| text.replace(given, said));
        let found: Vec<&str> = text.lines().collect();
        assert!(matches(&said, &found), "$ {line}\nis said to print\n{}\nand prints\n{text}", said.join("\n"));
        assert!(!text.contains("validation:") && !text.contains("\"validation\""), "$ {line}\nwarns\n{text}");
    }
}

fn empty_tree() -> Sandbox {
    let sandbox = sandbox();
    fs::create_dir(sandbox.workspace().join(".git")).unwrap();
    sandbox
}

#[test]
fn the_readme_shows_what_the_demo_prints() {
    let transcript = demo::plain(&demo::played());
    let readme = read("README.md");
    let shown: Vec<Block> = blocks(&readme).into_iter().filter(|block| block.note == "test: demo").collect();
    assert_eq!(shown.len(), 1);
    assert!(transcript.contains(&demo::plain(&shown[0].text)), "the demo prints\n{transcript}");
}

#[test]
fn the_readme_is_walked() {
    let sandbox = empty_tree();
    let mut index = None;
    let mut files = 0;
    for block in blocks(&read("README.md")) {
        if let Some(path) = block.note.strip_prefix("file: ") {
            let path = sandbox.workspace().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, block.text).unwrap();
            files += 1;
        } else if block.note == "test: console" {
            run(&sandbox, &block.text, &mut index);
        }
    }
    assert_eq!(files, 4);
    bundled::assert_without_diagnostics(&sandbox.workspace().join(".workflows"), &["bug-fix"]);
}

#[test]
fn every_other_block_of_the_readme_is_what_it_says() {
    for block in blocks(&read("README.md")) {
        match block.language.as_str() {
            "json" => drop(serde_json::from_str::<Value>(&block.text).unwrap()),
            "toml" => drop(toml::de::DeTable::parse(&block.text).unwrap()),
            "yaml" | "markdown" => assert!(block.note.starts_with("file: "), "{}", block.text),
            "console" => assert_eq!(block.note, "test: console"),
            "text" => assert_eq!(block.note, "test: demo"),
            other => panic!("a block of {other:?} that nothing tests"),
        }
    }
}

#[test]
fn every_command_and_variable_of_the_readme_exists() {
    let sandbox = sandbox();
    let readme = read("README.md");
    let table: Vec<&str> = readme.lines().filter(|line| line.starts_with("| `")).collect();
    let help = sandbox.run(&["--help"]);
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    let shown = String::from_utf8(sandbox.run(&["config", "init"]).stdout).unwrap();
    let settings = fs::read_to_string(shown.trim().strip_prefix("wrote ").unwrap()).unwrap();
    let mut counted = (0, 0);
    for row in table {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        if cells.len() == 2 {
            let first = cells[0].trim_start_matches('`').split([' ', '`']).next().unwrap();
            assert!(help.lines().any(|line| line.trim_start().starts_with(&format!("{first} "))), "{first}");
            counted.0 += 1;
        } else {
            for cell in &cells[..3] {
                let name = cell.trim_matches('`');
                assert!(name == "–" || settings.contains(name), "{name} is no setting");
            }
            counted.1 += 1;
        }
    }
    assert_eq!(counted, (9, 7));
}

/// The technique page says that its examples are parsed by a test; they are used as well.
#[test]
fn the_examples_of_the_technique_page_hold() {
    let page = read("docs/technique-protocol.md");
    let mut blocks = blocks(&page).into_iter();
    let mut next = |language: &str| blocks.find(|block| block.language == language).unwrap().text;
    let (technique, step, report) = (next("markdown"), next("yaml"), next("json"));
    let sandbox = empty_tree();
    let workflow = sandbox.workspace().join(".workflows/tea-house");
    let write = |path: &str, text: &str| {
        let path = workflow.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write(
        "workflow.yaml",
        "id: tea-house\nversion: 1.0.0\ntitle: Tea\ndescription: Tea.\ninitialActivity: ask\nvariables:\n  \
         - { name: next_guest, type: string }\n",
    );
    let step: String = step.lines().flat_map(|line| ["  ", line, "\n"]).collect();
    let end = "transitions:\n  - { to: serve, isDefault: true }\n";
    write("activities/01-ask.yaml", &format!("id: ask\nversion: 1.0.0\nname: Ask\nsteps:\n{step}{end}"));
    let serve = "id: serve\nversion: 1.0.0\nname: Serve\nsteps:\n  - { kind: technique, id: take-order, technique: order }\n  \
                 - { kind: technique, id: set-table, technique: table }\n";
    write("activities/02-serve.yaml", serve);
    write("techniques/hospitality/ask-order.md", &technique);
    let other = |outputs: &str| {
        format!(
            "---\nmetadata:\n  version: 1.0.0\n---\n\n## Capability\n\nDoes it.\n\n## Outputs\n{outputs}\n## Protocol\n\n1. Do.\n"
        )
    };
    write("techniques/order.md", &other("\n### first_drink\n\nWhat.\n"));
    write("techniques/table.md", &other("\n### cup_count\n\nHow many.\n\n### table_name\n\nWhere.\n"));
    bundled::assert_without_diagnostics(&sandbox.workspace().join(".workflows"), &["tea-house"]);

    let mut client =
        testkit::Client::spawn(sandbox.command([format!("--workspace={}", sandbox.workspace().display())]));
    client.initialize("2025-06-18");
    let mut call = |tool: &str, arguments: Value| client.call(tool, arguments);
    let started =
        call("start_session", serde_json::json!({"workflow_id": "tea-house", "planning_slug": "page"})).json();
    let index = &started["session_index"];
    call("next_activity", serde_json::json!({"session_index": index, "activity_id": "ask"})).ok();
    let served = call("get_technique", serde_json::json!({"session_index": index, "step_id": "ask-order"}));
    for part in [
        "capability: One guest's order, confirmed.",
        "next_guest",
        "step-binding literal 2",
        "name: \"{guest_name}-order.json\"",
        "audience: agent",
        "first_order",
        "no-guessing: Never invent an order.",
    ] {
        assert!(served.ok().contains(part), "{part} is not in {}", served.text);
    }
    let manifest = serde_json::json!([{"step_id": "ask-order", "output": "tea"}]);
    let arguments = serde_json::json!({"session_index": index, "activity_id": "serve", "step_manifest": manifest});
    call("next_activity", arguments).ok();
    call("get_activity", serde_json::json!({"session_index": index, "context_tokens": 200_000})).ok();
    let manifest: Value = serde_json::from_str(&report).unwrap();
    let arguments =
        serde_json::json!({"session_index": index, "activity_id": "__terminal__", "step_manifest": manifest});
    let ended = call("next_activity", arguments).json();
    assert_eq!(ended.get("validation"), None, "{ended}");
}

#[test]
fn paths_that_the_documents_name_exist() {
    for (document, names) in [
        (
            "README.md",
            &["corpus/quick-tour", "docs/technique-protocol.md", "schemas/", "ARCHITECTURE.md", "CONTRIBUTING.md"][..],
        ),
        ("ARCHITECTURE.md", &["crates/cli/src/command/"][..]),
    ] {
        let text = read(document);
        for name in names {
            assert!(text.contains(name) && Path::new(repository()).join(name).exists(), "{document}: {name}");
        }
    }
}
