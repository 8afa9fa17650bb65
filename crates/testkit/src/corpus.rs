//! A small corpus: three workflows that use what tests of the whole way need.

use std::fs;
use std::path::Path;

/// Path below the corpus root and text.
pub const MINI: &[(&str, &str)] = &[
    (
        "meta/workflow.yaml",
        "id: meta\nversion: 1.0.0\ntitle: Meta\ndescription: Where every session begins.\ninitialActivity: discover-session\n",
    ),
    (
        "meta/activities/01-discover-session.yaml",
        "id: discover-session\nversion: 1.0.0\nname: Discover the session\nsteps:\n  - kind: action\n    id: look\n",
    ),
    (
        "meta/resources/bootstrap-protocol.md",
        "---\nname: bootstrap-protocol\nmetadata:\n  version: 1.0.0\n---\n\n# Bootstrap\n\nCall start_session next.\n",
    ),
    (
        "mini/workflow.yaml",
        "\
id: mini
version: 1.0.0
title: Mini
description: Two activities and a question.
tags: [test]
initialActivity: plan
rules:
  activity:
    - Keep it short.
variables:
  - { name: walk_mode, type: string, defaultValue: slow }
  - { name: plan_approved, type: boolean }
",
    ),
    (
        "mini/activities/01-plan.yaml",
        "\
id: plan
version: 1.0.0
name: Plan
techniques: [greet]
steps:
  - kind: technique
    id: say-hello
    technique: greet
  - kind: checkpoint
    id: confirm
    message: Shall we go on?
    options:
      - { id: go, label: Go on, effect: { setVariable: { plan_approved: true } } }
      - { id: stop, label: Stop, effect: { setVariable: { plan_approved: false } } }
transitions:
  - to: ship
    condition: { type: simple, variable: plan_approved, operator: '==', value: true }
  - { to: plan, isDefault: true }
",
    ),
    (
        "mini/activities/02-ship.yaml",
        "\
id: ship
version: 1.0.0
name: Ship
steps:
  - kind: action
    id: send
    actions:
      - { action: log, message: Sent. }
",
    ),
    (
        "mini/techniques/greet.md",
        "\
---
metadata:
  version: 1.0.0
---

## Capability

Says hello.

## Outputs

### greeting

The words.

## Protocol

1. Say hello as `{greeting}`; see [notes](../resources/notes.md#tone).
",
    ),
    (
        "mini/resources/notes.md",
        "---\nname: notes\nmetadata:\n  version: 1.0.0\n---\n\n# Notes\n\n## Tone\n\nFriendly.\n\n## End\n\nBye.\n",
    ),
    (
        "child/workflow.yaml",
        "id: child\nversion: 1.0.0\ntitle: Child\ndescription: A workflow to dispatch.\ninitialActivity: only\n",
    ),
    ("child/activities/01-only.yaml", "id: only\nversion: 1.0.0\nname: Only\nsteps:\n  - kind: action\n    id: act\n"),
];

/// Writes files below a directory.
///
/// # Panics
/// When one cannot be written.
pub fn write_corpus(root: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let file = root.join(path);
        fs::create_dir_all(file.parent().unwrap_or(root)).expect("a new directory");
        fs::write(&file, text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
}
