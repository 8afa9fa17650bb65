use std::path::PathBuf;

use super::*;
use crate::fixture::real_corpora;

fn validator(id: &str) -> jsonschema::Validator {
    let found = schemas().into_iter().find(|(name, _)| *name == id);
    let (_, schema) = found.unwrap_or_else(|| panic!("there is a schema `{id}`"));
    jsonschema::draft7::new(&schema).unwrap_or_else(|error| panic!("{id}: {error}"))
}

fn problems(validator: &jsonschema::Validator, value: &Value) -> Vec<String> {
    validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

#[test]
fn files_are_current() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../schemas");
    for (id, schema) in schemas() {
        let path = folder.join(format!("{id}.schema.json"));
        let text = format!("{schema:#}\n");
        if std::env::var_os("UPDATE_SCHEMAS").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(found == text, "{} is out of date; run the tests with UPDATE_SCHEMAS=1", path.display());
    }
}

#[test]
fn every_schema_has_the_published_form() {
    let ids: Vec<&str> = schemas().into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, ["workflow", "activity", "condition", "technique", "state", "session-file"]);
    for (id, schema) in schemas() {
        assert_eq!(schema["$ref"], json!(format!("#/definitions/{id}")));
        assert_eq!(schema["$schema"], json!("http://json-schema.org/draft-07/schema#"));
        validator(id);
    }
    let members = |id: &str| -> Vec<String> {
        let (_, schema) = schemas().into_iter().find(|(name, _)| *name == id).unwrap();
        schema["definitions"][id]["properties"].as_object().unwrap().keys().cloned().collect()
    };
    let session = "schemaVersion sessionIndex workflowId workflowVersion agentId seq ts startedAt currentActivity \
        currentTechnique condition activeCheckpoint variables completedActivities skippedActivities \
        checkpointResponses history status triggeredWorkflows parentSession snapshotTrimmed lastCall \
        planningFolderPath repo contextMode deliveredContent declaredArtifacts";
    assert_eq!(members("session-file"), session.split_whitespace().collect::<Vec<_>>());
    let state = "workflowId workflowVersion stateVersion startedAt updatedAt completedAt currentActivity currentStep \
        completedActivities skippedActivities completedSteps checkpointResponses decisionOutcomes activeLoops \
        variables history status parentWorkflow triggeredWorkflows lastError";
    assert_eq!(members("state"), state.split_whitespace().collect::<Vec<_>>());
}

#[test]
fn values_are_told_apart() {
    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "the values are literals at the calls")]
    fn check(id: &str, value: Value, fits: bool) {
        assert_eq!(problems(&validator(id), &value).is_empty(), fits, "{id}: {value}");
    }
    let activity = |steps: Value| json!({"id": "a", "version": "1.0.0", "name": "A", "steps": steps});
    check("activity", activity(json!([{"kind": "technique", "technique": "x::y"}])), true);
    check("activity", activity(json!([{"kind": "technique", "technique": {"name": "x", "inputs": {"a": []}}}])), false);
    check("activity", activity(json!([{"kind": "action"}])), false);
    check("activity", activity(json!([{"kind": "checkpoint", "id": "c"}])), false);
    check("activity", activity(json!([{"kind": "checkpoint", "id": "c", "ref": "f", "replay": "session"}])), true);
    check("activity", activity(json!([{"kind": "action", "id": "a", "when": true}])), false);
    check("activity", activity(json!([{"kind": "action", "id": "a", "name": "A"}])), false);
    let workflow = |more: Value| {
        let mut value = json!({"id": "w", "version": "1.0.0", "title": "W"});
        for (key, member) in more.as_object().unwrap() {
            value[key.as_str()] = member.clone();
        }
        value
    };
    check("workflow", workflow(json!({"activities": ["x/01-a.yaml", activity(json!([]))]})), true);
    check("workflow", workflow(json!({"activitiesDir": "parts", "techniques": {"core": {"workflow": ["a"]}}})), true);
    check("workflow", workflow(json!({"techniques": {"core": {"other": ["a"]}}})), false);
    check("workflow", workflow(json!({"variables": [{"name": "two_words", "type": "string"}]})), true);
    check("workflow", workflow(json!({"variables": [{"name": "word", "type": "string"}]})), false);
    check("workflow", workflow(json!({"modes": []})), false);
    check("workflow", workflow(json!({"version": 1})), false);
    check("condition", json!({"type": "simple", "variable": "a", "operator": "exists"}), true);
    check("condition", json!({"type": "and", "conditions": []}), false);
    let output = |name: &str| {
        let output = json!({"id": "o", "artifact": {"name": name}});
        json!({"id": "t", "version": "1.0.0", "capability": "c", "outputs": [output]})
    };
    check("technique", output("{x}-plan.md"), true);
    check("technique", output("two files / here"), false);
    let session = |index: &str| {
        json!({
            "schemaVersion": 1, "sessionIndex": index, "workflowId": "w", "workflowVersion": "1.0.0", "agentId": "a",
            "seq": 0, "ts": 0, "startedAt": "2026-07-13T10:00:00Z", "fromTheFuture": true,
        })
    };
    check("session-file", session("ABCDE2"), true);
    check("session-file", session("abc"), false);
}

#[test]
fn table_pattern_and_code_agree_on_variable_names() {
    for word in crate::decode::tables::SINGLE_WORD_VARIABLES.split_whitespace() {
        let variable = json!({"id": "w", "version": "1.0.0", "title": "W",
            "variables": [{"name": word, "type": "string"}]});
        assert_eq!(problems(&validator("workflow"), &variable), Vec::<String>::new(), "{word}");
    }
    for (name, fits) in
        [("a_b", true), ("a1_2", true), ("a__b", false), ("_a_b", false), ("A_b", false), ("1_b", false)]
    {
        assert_eq!(crate::decode::tables::is_variable_name(name), fits, "{name}");
    }
}

#[test]
fn real_definitions_validate() {
    let (workflow, activity) = (validator("workflow"), validator("activity"));
    for corpus in real_corpora() {
        let mut seen = 0;
        let mut folders = vec![corpus.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                if path.is_dir() && !name.starts_with('.') {
                    folders.push(path);
                } else if name.rsplit('.').next() == Some("yaml") {
                    let value = workflow_yaml::parse(&std::fs::read_to_string(&path).unwrap()).root.to_value();
                    let validator = if name == "workflow.yaml" { &workflow } else { &activity };
                    assert_eq!(problems(validator, &value), Vec::<String>::new(), "{}", path.display());
                    seen += 1;
                }
            }
        }
        assert!(seen > 50, "{}: {seen} definitions", corpus.display());
    }
}

#[test]
fn real_techniques_validate_as_delivered() {
    let technique = validator("technique");
    for path in real_corpora() {
        let root = crate::Root::Directory { path: path.clone(), label: "real".to_owned() };
        let corpus = crate::Library::new(vec![root], None).snapshot();
        let mut seen = 0;
        for workflow in corpus.workflow_keys().iter().filter_map(|key| corpus.workflow_at(key).ok()) {
            for activity in &workflow.activities {
                for step in &activity.flat_steps() {
                    let Ok(composed) = corpus.step_technique(&workflow, activity, step) else { continue };
                    let found = problems(&technique, &Value::Object(composed.value.clone()));
                    // Names that break the artifact rule are kept (FIX-23) and are the one thing that may not fit.
                    let other: Vec<&String> =
                        found.iter().filter(|problem| !problem.contains("/artifact/name: ")).collect();
                    assert_eq!(other, Vec::<&String>::new(), "{}", composed.resolved.id);
                    seen += 1;
                }
            }
        }
        println!("{}: {seen} techniques", path.display());
        assert!(seen > 0);
    }
}
