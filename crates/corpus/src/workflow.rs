//! Loading one workflow (spec 01 §10.3).
use crate::{Corpus, Workflow, WorkflowError, WorkflowKey};

pub(crate) fn load(_corpus: &Corpus, key: &WorkflowKey) -> Result<Workflow, WorkflowError> {
    Err(WorkflowError::Invalid { id: key.id.clone(), issues: Vec::new() })
}
