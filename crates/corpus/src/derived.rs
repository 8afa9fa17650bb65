//! What a snapshot works out once and then only looks up.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use crate::bundle::Bundle;
use crate::compose::Composed;
use crate::provenance::ProducerIndex;
use crate::resolve::Unresolved;
use crate::resource::ResourceIndex;
use crate::{Artifact, Diagnostic, WorkflowKey};

/// A table that fills itself on demand.
#[derive(Debug)]
pub(crate) struct Memo<K, V>(Mutex<HashMap<K, Arc<V>>>);

impl<K, V> Default for Memo<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash + Clone, V> Memo<K, V> {
    /// The value of a key; made outside the lock, so that making one may look up others.
    pub(crate) fn get(&self, key: &K, make: impl FnOnce() -> V) -> Arc<V> {
        if let Some(value) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key) {
            return Arc::clone(value);
        }
        let value = Arc::new(make());
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(table.entry(key.clone()).or_insert(value))
    }
}

/// Reader, executing workflow, activity for the shorthand, reference.
pub(crate) type TechniqueKey = (WorkflowKey, WorkflowKey, Option<String>, String);
/// Workflow, activity, qualified step id.
pub(crate) type StepKey = (WorkflowKey, String, String);

/// All tables of one snapshot.
#[derive(Debug, Default)]
pub(crate) struct Derived {
    pub(crate) resources: Memo<WorkflowKey, ResourceIndex>,
    pub(crate) techniques: Memo<TechniqueKey, Result<Arc<Composed>, Unresolved>>,
    pub(crate) steps: Memo<StepKey, Result<Arc<Composed>, Unresolved>>,
    pub(crate) producers: Memo<WorkflowKey, ProducerIndex>,
    /// By workflow and activity; without an activity the bundle of the workflow.
    pub(crate) bundles: Memo<(WorkflowKey, Option<String>), Bundle>,
    /// By source workflow and activity.
    pub(crate) artifacts: Memo<(WorkflowKey, String), Vec<Artifact>>,
    pub(crate) diagnostics: Memo<WorkflowKey, Vec<Diagnostic>>,
}
