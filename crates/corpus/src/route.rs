//! Where an activity may lead (spec 01 §4.7, §4.8).

use std::collections::HashMap;

use crate::{Activity, Workflow};

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

impl Workflow {
    /// Activities in the order in which they are come by, from the initial one along the routes: each after all that lead
    /// to it, as far as routes make no circle, branches as declared. Those that no route reaches follow as served.
    pub fn activities_by_route(&self) -> Vec<&Activity> {
        let positions: HashMap<&str, usize> =
            self.activities.iter().enumerate().map(|(position, activity)| (activity.id.as_str(), position)).collect();
        let mut left: Vec<&Activity> = Vec::with_capacity(self.activities.len());
        let mut is_seen = vec![false; self.activities.len()];
        let mut open: Vec<(&Activity, Vec<String>)> = Vec::new();
        let mut next = self.initial_activity.clone();
        // In depth, the last branch first: what is left last comes first.
        loop {
            let position = next.take().and_then(|id| positions.get(id.as_str()).copied());
            if let Some(position) = position.filter(|position| !is_seen[*position]) {
                is_seen[position] = true;
                let activity = &self.activities[position];
                open.push((activity, activity.targets()));
            }
            let Some((activity, targets)) = open.last_mut() else { break };
            next = targets.pop();
            if next.is_none() {
                left.push(*activity);
                open.pop();
            }
        }
        left.reverse();
        left.extend(
            self.activities.iter().zip(is_seen).filter(|(_, is_seen)| !is_seen).map(|(activity, _)| &**activity),
        );
        left
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::{activity, corpus, manifest, workflow};

    /// Routes of activities, served in the order of their names; `a` is the initial one.
    #[track_caller]
    fn check(routes: &[(&str, &[&str])], expected: &[&str]) {
        let mut files = vec![("w/workflow.yaml".to_owned(), manifest("w", "initialActivity: a\n"))];
        for (number, (id, targets)) in routes.iter().enumerate() {
            let transitions: String = targets.iter().flat_map(|to| ["  - to: ", to, "\n"]).collect();
            let more = if targets.is_empty() { String::new() } else { format!("transitions:\n{transitions}") };
            files.push((format!("w/activities/{:02}-{id}.yaml", number + 1), activity(id, &more)));
        }
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let workflow = workflow(&corpus(&files), "w");
        let found: Vec<&str> = workflow.activities_by_route().iter().map(|activity| activity.id.as_str()).collect();
        assert_eq!(found, expected, "{routes:?}");
    }

    #[test]
    fn activities_stand_in_the_order_of_the_route() {
        // A chain that is served in another order.
        check(&[("c", &[]), ("b", &["c"]), ("a", &["b"])], &["a", "b", "c"]);
        // A way round leaves the longer one in order.
        check(
            &[("a", &["d", "b"]), ("b", &["c", "d"]), ("c", &["d"]), ("d", &["__terminal__"])],
            &["a", "b", "c", "d"],
        );
        // Branches as declared.
        check(&[("a", &["c", "b"]), ("b", &["d"]), ("c", &["d"]), ("d", &[])], &["a", "c", "b", "d"]);
        // Circles, and an activity that leads to itself.
        check(&[("a", &["b"]), ("b", &["a", "b", "c"]), ("c", &["a"])], &["a", "b", "c"]);
        // What cannot be reached, or is not there, changes nothing.
        check(&[("x", &["a"]), ("b", &["nowhere"]), ("a", &["b"]), ("y", &["x"])], &["a", "b", "x", "y"]);
        check(&[("c", &["b"]), ("b", &[])], &["c", "b"]);
    }
}
