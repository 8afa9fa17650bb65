//! Where an activity may lead (spec 01 §4.7, §4.8).

use crate::Activity;

/// One entry of a transition list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransitionEntry {
    /// Activity id or `__terminal__`.
    pub to: String,
    /// Rendered text; `checkpoint:<checkpoint>:<option>` for the target of an option.
    pub condition: Option<String>,
    /// Taken when nothing else is.
    pub is_default: bool,
}

impl Activity {
    /// Legal targets: of transitions, then of decision branches, then of checkpoint options, each once.
    pub fn targets(&self) -> Vec<String> {
        let mut targets: Vec<String> = Vec::new();
        for entry in self.transition_entries() {
            if !targets.contains(&entry.to) {
                targets.push(entry.to);
            }
        }
        targets
    }

    /// Every transition in order, then each branch and each option that leads to a target not seen before.
    pub fn transition_entries(&self) -> Vec<TransitionEntry> {
        let mut entries: Vec<TransitionEntry> = self
            .transitions
            .iter()
            .map(|transition| TransitionEntry {
                to: transition.to.clone(),
                condition: transition.condition.as_ref().map(crate::Condition::text),
                is_default: transition.is_default,
            })
            .collect();
        let mut add = |to: &str, condition: Option<String>, is_default: bool| {
            if !entries.iter().any(|entry| entry.to == to) {
                entries.push(TransitionEntry { to: to.to_owned(), condition, is_default });
            }
        };
        for branch in self.decisions.iter().flat_map(|decision| &decision.branches) {
            if let Some(to) = &branch.transition_to {
                add(to, branch.condition.as_ref().map(crate::Condition::text), branch.is_default);
            }
        }
        for (step, checkpoint) in self.checkpoints() {
            for option in &checkpoint.options {
                if let Some(to) = option.effect.as_ref().and_then(|effect| effect.transition_to.as_deref()) {
                    add(to, Some(format!("checkpoint:{}:{}", step.id, option.id)), false);
                }
            }
        }
        entries
    }

    /// Does any transition, branch or option lead anywhere? Without a route an activity is the last one.
    pub fn has_route(&self) -> bool {
        !self.transition_entries().is_empty()
    }

    /// Does a transition or a decision branch lead back to this activity?
    pub fn own_route_to_itself(&self) -> bool {
        let branches = self.decisions.iter().flat_map(|decision| &decision.branches);
        self.transitions.iter().any(|transition| transition.to == self.id)
            || branches.filter_map(|branch| branch.transition_to.as_ref()).any(|to| *to == self.id)
    }
}
