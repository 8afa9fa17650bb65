//! `show`: a workflow or one of its activities.

use clap::Args;
use workflow_corpus::Workflow;
use workflow_mcp::definition;

use crate::config::Config;
use crate::exit::Failure;
use crate::printer;

/// Shows a workflow, or one of its activities, as YAML
///
/// A workflow is shown with its rules, variables and activities and where these lead; an activity as agents are served
/// it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  workflow-server show quick-tour\n  workflow-server show quick-tour/welcome")]
pub(crate) struct Show {
    /// What to show
    #[arg(value_name = "WORKFLOW[/ACTIVITY]")]
    what: String,
}

impl Show {
    pub(crate) fn run(&self, config: &Config) -> Result<(), Failure> {
        let corpus = config.library().snapshot();
        let (id, activity) = match self.what.split_once('/') {
            Some((id, activity)) => (id, Some(activity)),
            None => (self.what.as_str(), None),
        };
        let workflow = corpus.workflow(id).map_err(|error| Failure::failed(error.to_string()))?;
        for diagnostic in &workflow.diagnostics {
            printer::warn(&diagnostic.to_string());
        }
        match activity {
            None => printer::print(&workflow_yaml::to_string(&definition::workflow(&workflow)))?,
            Some(activity) => printer::print(&body(&workflow, activity)?)?,
        }
        Ok(())
    }
}

fn body(workflow: &Workflow, id: &str) -> Result<String, Failure> {
    if let Some(activity) = workflow.activity(id) {
        return Ok(activity.body.clone());
    }
    if let Some(error) = workflow.load_error(id) {
        let place = format!("{}:{}:{}", error.file, error.line, error.column);
        return Err(Failure::failed(format!("{place}: error[{}]: {}", error.code, error.error)));
    }
    let ids: Vec<&str> = workflow.activities.iter().map(|activity| activity.id.as_str()).collect();
    Err(Failure::failed(format!("{} has no activity {id}; it has {}", workflow.key.id, ids.join(", "))))
}
