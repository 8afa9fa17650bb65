//! The steps of an activity in one list, and finding one by what a caller wrote (spec 01 §4.3, §4.6).

use std::collections::HashMap;

use crate::{Activity, Checkpoint, Step, StepKind};

/// A step in document order, a loop before its body.
#[derive(Clone, Debug)]
pub struct FlatStep<'a> {
    /// The step.
    pub step: &'a Step,
    /// Its id; for the n-th step of equal id in the activity `id~n`.
    pub qualified_id: String,
    /// Not inside a loop.
    pub top_level: bool,
    /// It, or a loop around it, has a `when` or a `condition`.
    pub gated: bool,
    /// Position in the list of the loop around it.
    pub parent: Option<usize>,
}

impl Activity {
    /// All steps, depth first in document order, a loop before its body.
    pub fn flat_steps(&self) -> Vec<FlatStep<'_>> {
        let mut flat = Vec::new();
        flatten(&self.steps, None, false, &mut flat);
        let mut seen: HashMap<&str, usize> = HashMap::new();
        for entry in &mut flat {
            let count = seen.entry(entry.step.id.as_str()).or_default();
            *count += 1;
            if *count > 1 {
                entry.qualified_id = format!("{}~{count}", entry.step.id);
            }
        }
        flat
    }

    /// The step that a caller means: a bare id is the first of that id, `id~n` the n-th.
    pub fn find_step(&self, id: &str) -> Option<FlatStep<'_>> {
        let mut flat = self.flat_steps();
        let bare = |entry: &FlatStep<'_>| entry.step.id == id;
        let found = flat.iter().position(bare).or_else(|| flat.iter().position(|entry| entry.qualified_id == id));
        let found = found.or_else(|| {
            let first = id.strip_suffix("~1")?;
            flat.iter().position(|entry| entry.step.id == first)
        });
        found.map(|at| flat.swap_remove(at))
    }

    /// The checkpoint that a yielded id means: the exact id first, else the same base in front of the first `#`;
    /// document order decides (spec 03 §6.2).
    pub fn checkpoint(&self, yielded: &str) -> Option<(&Step, &Checkpoint)> {
        let mut checkpoints = Vec::new();
        collect_checkpoints(&self.steps, &mut checkpoints);
        let exact = checkpoints.iter().find(|(step, _)| step.id == yielded);
        let same_base = || checkpoints.iter().find(|(step, _)| checkpoint_base(&step.id) == checkpoint_base(yielded));
        exact.or_else(same_base).copied()
    }

    /// All checkpoints in document order, loop bodies included.
    pub fn checkpoints(&self) -> Vec<(&Step, &Checkpoint)> {
        let mut checkpoints = Vec::new();
        collect_checkpoints(&self.steps, &mut checkpoints);
        checkpoints
    }
}

/// The name of a checkpoint without the round of its loop: what stands in front of the first `#` (spec 03 §6.2).
pub fn checkpoint_base(id: &str) -> &str {
    id.split('#').next().unwrap_or_default()
}

fn collect_checkpoints<'a>(steps: &'a [Step], found: &mut Vec<(&'a Step, &'a Checkpoint)>) {
    for step in steps {
        match &step.kind {
            StepKind::Checkpoint(checkpoint) => found.push((step, checkpoint)),
            StepKind::Loop(repeat) => collect_checkpoints(&repeat.steps, found),
            StepKind::Technique { .. } | StepKind::Action { .. } => {}
        }
    }
}

fn flatten<'a>(steps: &'a [Step], parent: Option<usize>, gated: bool, flat: &mut Vec<FlatStep<'a>>) {
    for step in steps {
        let gated = gated || step.when.is_some() || step.condition.is_some();
        let at = flat.len();
        flat.push(FlatStep { step, qualified_id: step.id.clone(), top_level: parent.is_none(), gated, parent });
        if let StepKind::Loop(repeat) = &step.kind {
            flatten(&repeat.steps, Some(at), gated, flat);
        }
    }
}
