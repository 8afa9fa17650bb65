//! The artifact contract of an activity (spec 01 §10.6; spec 02 §6.7).

use crate::resolve::Scope;
use crate::snapshot::Corpus;
use crate::technique::artifact_names;
use crate::{Activity, StepKind};

/// A file that an activity is expected to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// The output that declares it.
    pub id: String,
    /// File name without the activity's prefix; may hold `{token}` placeholders.
    pub name: String,
    /// `human` or `agent`; absent means human.
    pub audience: Option<String>,
}

impl Corpus {
    /// The artifacts that the techniques of an activity's steps declare in their own outputs: steps in document order,
    /// loop bodies included, resolved as the steps are, in the workflow the activity comes from (FIX-41, FIX-42). A
    /// text that is no file name is left out, a list of file names gives one entry each (FIX-23).
    pub fn artifacts(&self, activity: &Activity) -> Vec<Artifact> {
        let key = (activity.source.clone(), activity.id.clone());
        self.derived.artifacts.get(&key, || self.artifact_contract(activity)).as_ref().clone()
    }

    fn artifact_contract(&self, activity: &Activity) -> Vec<Artifact> {
        let scope = Scope { executing: &activity.source, activity: Some(&activity.id) };
        let mut artifacts: Vec<Artifact> = Vec::new();
        let mut references: Vec<&str> = Vec::new();
        for step in activity.flat_steps() {
            let StepKind::Technique { binding, .. } = &step.step.kind else { continue };
            if references.contains(&binding.name.as_str()) {
                continue;
            }
            references.push(&binding.name);
            let Ok((found, _)) = self.search(&binding.name, &scope) else { continue };
            for output in &found.technique.outputs {
                for name in output.artifact.iter().flat_map(|text| artifact_names(text)) {
                    if artifacts.iter().all(|known| known.name != name) {
                        artifacts.push(Artifact { id: output.id.clone(), name, audience: output.audience.clone() });
                    }
                }
            }
        }
        artifacts
    }
}
