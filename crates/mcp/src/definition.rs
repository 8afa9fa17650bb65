//! A workflow definition as a value to show to people and clients.

use serde_json::{Map, Value, json};
use workflow_corpus::{Activity, Workflow};

/// A workflow with its activities in short.
pub fn workflow(workflow: &Workflow) -> Value {
    let mut shown = Map::new();
    shown.insert("id".to_owned(), workflow.key.id.as_str().into());
    shown.insert("version".to_owned(), workflow.version.as_str().into());
    shown.insert("title".to_owned(), workflow.title.as_str().into());
    optional(&mut shown, "description", workflow.description.as_deref());
    optional(&mut shown, "author", workflow.author.as_deref());
    list(&mut shown, "tags", &workflow.tags);
    let mut rules = Map::new();
    list(&mut rules, "workflow", &workflow.rules.workflow);
    list(&mut rules, "activity", &workflow.rules.activity);
    list(&mut rules, "universal", &workflow.rules.universal);
    object(&mut shown, "rules", rules);
    let mut techniques = Map::new();
    list(&mut techniques, "workflow", &workflow.techniques.workflow);
    list(&mut techniques, "activity", &workflow.techniques.activity);
    object(&mut shown, "techniques", techniques);
    if !workflow.variables.is_empty() {
        let variables: Vec<Value> = workflow.variables.iter().map(|v| Value::Object(v.declaration.clone())).collect();
        shown.insert("variables".to_owned(), variables.into());
    }
    optional(&mut shown, "initialActivity", workflow.initial_activity.as_deref());
    let activities: Vec<Value> = workflow.activities.iter().map(|activity| short(workflow, activity)).collect();
    shown.insert("activities".to_owned(), activities.into());
    if !workflow.load_errors.is_empty() {
        let errors: Vec<Value> = workflow
            .load_errors
            .iter()
            .map(|error| json!({"file": error.file, "line": error.line, "column": error.column, "code": error.code, "error": error.error}))
            .collect();
        shown.insert("load_errors".to_owned(), errors.into());
    }
    Value::Object(shown)
}

/// One line of a workflow: the activity, and where it leads.
fn short(workflow: &Workflow, activity: &Activity) -> Value {
    let mut shown = Map::new();
    shown.insert("id".to_owned(), activity.id.as_str().into());
    shown.insert("name".to_owned(), activity.name.as_str().into());
    optional(&mut shown, "description", activity.description.as_deref());
    shown.insert("required".to_owned(), activity.required.into());
    if activity.source != workflow.key {
        shown.insert("source".to_owned(), activity.source.id.as_str().into());
    }
    shown.insert("steps".to_owned(), activity.flat_steps().len().into());
    let to = activity.targets();
    list(&mut shown, "to", &to);
    Value::Object(shown)
}

fn optional(shown: &mut Map<String, Value>, key: &str, value: Option<&str>) {
    if let Some(value) = value {
        shown.insert(key.to_owned(), value.into());
    }
}

fn list(shown: &mut Map<String, Value>, key: &str, values: &[String]) {
    if !values.is_empty() {
        shown.insert(key.to_owned(), json!(values));
    }
}

fn object(shown: &mut Map<String, Value>, key: &str, value: Map<String, Value>) {
    if !value.is_empty() {
        shown.insert(key.to_owned(), Value::Object(value));
    }
}
