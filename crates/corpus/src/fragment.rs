//! Shared rule texts and checkpoint bodies, and what a reference to one means (spec 01 §6).

use std::sync::Arc;

use workflow_yaml::Node;

use crate::decode::check::{Context, check};
use crate::decode::shape::Shape;
use crate::decode::sink::{Path, Sink};
use crate::decode::tables::FRAGMENTS;
use crate::near::did_you_mean;
use crate::snapshot::{Corpus, Has};
use crate::source::SourceFile;
use crate::{META, WorkflowKey};

/// Resolves the fragment references of one declaring workflow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FragmentScope<'a> {
    pub(crate) corpus: &'a Corpus,
    pub(crate) declaring: &'a WorkflowKey,
}

/// Why a reference gives no fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FragmentError {
    /// Neither `name` nor `workflow::name`.
    Malformed,
    /// No such fragment.
    Unresolved {
        /// Ids of the workflows looked into.
        workflows: Vec<String>,
        /// Advice, when a similar name exists.
        nearest: Option<String>,
    },
}

impl FragmentScope<'_> {
    /// The texts of a rule fragment.
    pub(crate) fn rules(&self, reference: &str) -> Result<Vec<String>, FragmentError> {
        let node = self.find(reference, "rules")?;
        let text = node.as_str().map(|text| vec![text.to_owned()]);
        let list =
            || node.as_sequence().unwrap_or_default().iter().filter_map(Node::as_str).map(str::to_owned).collect();
        Ok(text.unwrap_or_else(list))
    }

    /// The body of a checkpoint fragment.
    pub(crate) fn checkpoint(&self, reference: &str) -> Result<Node, FragmentError> {
        self.find(reference, "checkpoints")
    }

    fn find(&self, reference: &str, kind: &str) -> Result<Node, FragmentError> {
        let (workflows, name) = self.places(reference)?;
        let mut names: Vec<&str> = Vec::new();
        for (_, manifest) in &workflows {
            let Some(map) = manifest.as_ref().and_then(|file| declared(file)).and_then(|node| node.get(kind)) else {
                continue;
            };
            if let Some(node) = map.get(name) {
                return Ok(node.clone());
            }
            names.extend(map.as_mapping().unwrap_or_default().iter().map(|entry| entry.key.as_str()));
        }
        let nearest = did_you_mean(name, names);
        Err(FragmentError::Unresolved { workflows: workflows.into_iter().map(|(id, _)| id).collect(), nearest })
    }

    /// The workflows to look into, and the name to look for.
    #[expect(clippy::type_complexity, reason = "one private tuple")]
    fn places<'r>(
        &self,
        reference: &'r str,
    ) -> Result<(Vec<(String, Option<Arc<SourceFile>>)>, &'r str), FragmentError> {
        let manifest = |key: &WorkflowKey| self.corpus.manifest(key.root, &key.id).cloned();
        let segments: Vec<&str> = reference.split("::").collect();
        match segments.as_slice() {
            [name] if !name.is_empty() => {
                let mut places = vec![(self.declaring.id.clone(), manifest(self.declaring))];
                if self.declaring.id != META {
                    let meta = self.corpus.meta_for(self.declaring.root);
                    places.push((META.to_owned(), meta.as_ref().and_then(manifest)));
                }
                Ok((places, name))
            }
            [workflow, name] if !workflow.is_empty() && !name.is_empty() => {
                let key = self.corpus.find_workflow_dir(self.declaring.root, workflow, Has::Manifest);
                Ok((vec![((*workflow).to_owned(), key.as_ref().and_then(manifest))], name))
            }
            _ => Err(FragmentError::Malformed),
        }
    }
}

/// The `fragments` of a manifest; nothing when the file or that block has an error.
fn declared(file: &SourceFile) -> Option<&Node> {
    let document = file.yaml();
    let node = document.root.get("fragments")?;
    let usable = file.fragments_usable(|| {
        let mut sink = Sink::new("", file);
        let context = Context { code: "manifest.schema", meta: false };
        check(node, &Shape::Object(&FRAGMENTS), &Path::Root, context, &mut sink);
        file.problem.is_none() && !document.has_errors() && !sink.has_errors()
    });
    usable.then_some(node)
}
