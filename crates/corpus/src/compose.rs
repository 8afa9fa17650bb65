//! Composition: a technique with the contracts above it, as it is delivered (spec 02 §2; spec 01 §8.4).
//!
//! There is one function for every path ([`Corpus::compose`]). The groups above a technique come from where its file
//! lives; the one outermost root is the executing workflow's, or that of the workflow that the reference names (D-1).

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::link::{self, Target};
use crate::resolve::{Found, Resolved, Scope, Search, Unresolved};
use crate::snapshot::Corpus;
use crate::technique::{Block, Item, Technique, without_ordinal};
use crate::{Activity, FileId, FlatStep, StepKind, Warning, Workflow, WorkflowKey};

/// A composed technique, ready to be served.
#[derive(Clone, Debug)]
pub struct Composed {
    /// What the reference led to.
    pub resolved: Resolved,
    /// The projection in the member order of spec 02 §11.2, without `content_hash`.
    pub value: Map<String, Value>,
    /// Malformed files that were passed over, and, when step-bound, unresolved inputs.
    pub warnings: Vec<Warning>,
    /// Links in the text that lead to no resource or no heading.
    pub dangling: Vec<Warning>,
    /// Ids of the resources that the text links to, as served, in order of appearance (FIX-38).
    pub resources: Vec<String>,
}

/// An input or output of a composition, with its texts as served.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) item: Item,
    /// Declared by the technique itself.
    pub(crate) own: bool,
    /// `source` of an input, `destination` of an output.
    pub(crate) annotation: Option<String>,
}

/// The parts of a composed technique.
#[derive(Clone, Debug)]
pub(crate) struct Composition {
    id: String,
    version: String,
    capability: String,
    pub(crate) inputs: Vec<Member>,
    pub(crate) outputs: Vec<Member>,
    protocol: Vec<Block>,
    rules: Vec<(String, String)>,
    /// Set when the delivery is bound to a step.
    pub(crate) step_bound: bool,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) links: Vec<(WorkflowKey, Target)>,
}

/// One file of a chain of contracts.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub(crate) file: FileId,
    pub(crate) workflow: WorkflowKey,
    pub(crate) technique: Arc<Technique>,
}

const SCOPE_NOTE: &str = "From the workflow or group contract; every technique in that scope shares these entries.";
const SOURCE_NOTE: &str = " An entry has a `source` line only where its value comes from outside the ordinary scope; a missing line is no gap.";
const PROVENANCE_NOTE: &str = "Report every output in the step-manifest `output`: one output as a short text, several \
     as a JSON object keyed by output id. What a later step reads goes into `variables_changed` too, under the id of \
     the output or the name in its `destination` line (shown only on a remapped output). See the technique protocol, §7.5.";

impl Corpus {
    /// The technique that a reference names, composed, for a session of the executing workflow.
    pub fn technique(&self, reference: &str, scope: &Scope<'_>) -> Result<Arc<Composed>, Unresolved> {
        self.technique_for(scope.executing, reference, scope)
    }

    /// The same for a session of another workflow than the executing one (borrowed activities): resource links are
    /// qualified for `reader` (FIX-27).
    pub fn technique_for(
        &self,
        reader: &WorkflowKey,
        reference: &str,
        scope: &Scope<'_>,
    ) -> Result<Arc<Composed>, Unresolved> {
        let activity = scope.activity.map(str::to_owned);
        let key = (reader.clone(), scope.executing.clone(), activity, reference.to_owned());
        let made = self.derived.techniques.get(&key, || {
            let (found, search) = self.find(reference, scope)?;
            let composition = self.compose(&found, scope.executing, reader);
            Ok(Arc::new(self.composed(found, &search, composition)))
        });
        made.as_ref().clone()
    }

    /// The technique of a step, composed and annotated with where its inputs come from and its outputs go (spec 02
    /// §8). `workflow` is the session's.
    pub fn step_technique(
        &self,
        workflow: &Workflow,
        activity: &Activity,
        step: &FlatStep<'_>,
    ) -> Result<Arc<Composed>, Unresolved> {
        let StepKind::Technique { binding, .. } = &step.step.kind else {
            let reason = format!("step `{}` binds no technique", step.qualified_id);
            return Err(Unresolved { reference: String::new(), reason });
        };
        let key = (workflow.key.clone(), activity.id.clone(), step.qualified_id.clone());
        let made = self.derived.steps.get(&key, || {
            let scope = Scope { executing: &activity.source, activity: Some(&activity.id) };
            let (found, search) = self.find(&binding.name, &scope)?;
            let mut composition = self.compose(&found, &activity.source, &workflow.key);
            self.annotate(workflow, activity, step, binding, &found.resolved.id, &mut composition);
            Ok(Arc::new(self.composed(found, &search, composition)))
        });
        made.as_ref().clone()
    }

    fn composed(&self, found: Found, search: &Search, mut composition: Composition) -> Composed {
        let value = composition.projection();
        let mut warnings = search.warnings();
        warnings.append(&mut composition.warnings);
        let mut known = BTreeSet::new();
        warnings.retain(|warning| known.insert(warning.message.clone()));
        let (mut dangling, mut resources) = (Vec::new(), Vec::new());
        for (workflow, target) in &composition.links {
            let id = target.id();
            if resources.contains(&id) {
                continue;
            }
            if let Err(error) = self.check_link(workflow, target) {
                let message = format!("technique `{}` links to `{id}`: {error}", found.resolved.id);
                dangling.push(Warning { code: "W_RESOURCE_UNRESOLVED", message });
            }
            resources.push(id);
        }
        Composed { resolved: found.resolved, value, warnings, dangling, resources }
    }

    /// The contracts above a technique, outermost first: the root of the executing (or named) workflow, then the
    /// groups on the path where the file lives. Missing ones are left out, malformed ones noted in `search`.
    pub(crate) fn ancestors(&self, found: &Resolved, executing: &WorkflowKey, search: &mut Search) -> Vec<Link> {
        let root = if found.prefixed { &found.workflow } else { executing };
        let link = |workflow: &WorkflowKey, (file, technique): (&Arc<crate::SourceFile>, Arc<Technique>)| Link {
            file: file.id.clone(),
            workflow: workflow.clone(),
            technique,
        };
        let mut chain: Vec<Link> =
            self.root_contract(root, search).map(|found| link(root, found)).into_iter().collect();
        for end in 1..found.segments.len() {
            if let Some(group) = self.technique_file(&found.workflow, &found.segments[..end], search) {
                chain.push(link(&found.workflow, group));
            }
        }
        chain.retain(|ancestor| ancestor.file != found.file);
        chain
    }

    /// Composes a technique for a session of the workflow `reader`.
    pub(crate) fn compose(&self, found: &Found, executing: &WorkflowKey, reader: &WorkflowKey) -> Composition {
        let mut search = Search::default();
        let ancestors = self.ancestors(&found.resolved, executing, &mut search);
        let own = Link {
            file: found.resolved.file.clone(),
            workflow: found.resolved.workflow.clone(),
            technique: Arc::clone(&found.technique),
        };
        let mut texts = Texts { corpus: self, reader, links: Vec::new() };
        let capability = texts.serve(&own, &own.technique.capability);
        let inputs = texts.members(&ancestors, &own, |technique| &technique.inputs);
        let protocol = texts.protocol(&ancestors, &own);
        let outputs = texts.members(&ancestors, &own, |technique| &technique.outputs);
        let mut rules: Vec<(String, (&Link, &str))> = Vec::new();
        for link in ancestors.iter().chain([&own]) {
            for (name, text) in &link.technique.rules {
                match rules.iter_mut().find(|(known, _)| known == name) {
                    Some(entry) => entry.1 = (link, text),
                    None => rules.push((name.clone(), (link, text))),
                }
            }
        }
        let rules = rules.into_iter().map(|(name, (link, text))| (name, texts.serve(link, text))).collect();
        let id = match found.resolved.segments.as_slice() {
            [only] => only.clone(),
            [_, rest @ ..] => rest.join("/"),
            [] => String::new(),
        };
        Composition {
            id,
            version: own.technique.version.clone(),
            capability,
            inputs,
            outputs,
            protocol,
            rules,
            step_bound: false,
            warnings: search.warnings(),
            links: texts.links,
        }
    }

    /// A text of a file as a session of `reader` gets it.
    pub(crate) fn served_text(&self, reader: &WorkflowKey, link: &Link, text: &str) -> String {
        Texts { corpus: self, reader, links: Vec::new() }.serve(link, text)
    }
}

/// Serves texts of several files to one reader and notes the resource links in them.
struct Texts<'a> {
    corpus: &'a Corpus,
    reader: &'a WorkflowKey,
    links: Vec<(WorkflowKey, Target)>,
}

impl Texts<'_> {
    /// Qualifies the resource links of a text (FIX-27): those that were paths, and those whose slug names a resource
    /// of the file's workflow.
    fn serve(&mut self, from: &Link, text: &str) -> String {
        if !text.contains("](") {
            return text.to_owned();
        }
        let foreign = from.workflow != *self.reader;
        let rewritten =
            |target: &Target| from.technique.links.iter().any(|link| link.rewritten && link.target == *target);
        for mut target in link::slug_targets(text) {
            let bare = target.workflow.is_none();
            if rewritten(&target) || (bare && self.corpus.has_resource(&from.workflow, &target.slug)) {
                if foreign && bare {
                    target.workflow = Some(from.workflow.id.clone());
                }
                self.links.push((from.workflow.clone(), target));
            }
        }
        if !foreign {
            return text.to_owned();
        }
        let bare_path = |slug: &str| {
            let mut links = from.technique.links.iter();
            links.any(|link| link.rewritten && link.target.workflow.is_none() && link.target.slug == slug)
        };
        let is_resource = |slug: &str| bare_path(slug) || self.corpus.has_resource(&from.workflow, slug);
        link::qualify(text, &from.workflow.id, &is_resource).into_owned()
    }

    fn item(&mut self, from: &Link, item: &Item) -> Item {
        let mut serve = |text: &String| self.serve(from, text);
        Item {
            id: item.id.clone(),
            description: item.description.as_ref().map(&mut serve),
            default: item.default.as_ref().map(&mut serve),
            components: item.components.iter().map(|(name, text)| (name.clone(), serve(text))).collect(),
            artifact: item.artifact.clone(),
            audience: item.audience.clone(),
        }
    }

    /// Merges the entries of a chain: outermost first, an override takes the place of what it overrides, whole.
    fn members(&mut self, ancestors: &[Link], own: &Link, of: fn(&Technique) -> &Vec<Item>) -> Vec<Member> {
        let mut merged: Vec<(&Link, &Item, bool)> = Vec::new();
        let ancestors = ancestors.iter().map(|link| (link, false));
        for (link, is_own) in ancestors.chain([(own, true)]) {
            for item in of(&link.technique) {
                let entry = (link, item, is_own);
                match merged.iter_mut().find(|(_, known, _)| known.id == item.id) {
                    // A second declaration in one file stays an entry of its own.
                    Some(known) if !std::ptr::eq(known.0, link) => *known = entry,
                    _ => merged.push(entry),
                }
            }
        }
        let served =
            merged.into_iter().map(|(link, item, own)| Member { item: self.item(link, item), own, annotation: None });
        served.collect()
    }

    /// Wraps the own blocks in the ancestors' `Initial` and `Final` ones and numbers the result if any did.
    fn protocol(&mut self, ancestors: &[Link], own: &Link) -> Vec<Block> {
        let titled = |link: &Link, title: &str| -> Vec<Block> {
            let has = |block: &&Block| {
                block.title.as_deref().is_some_and(|text| without_ordinal(text).to_lowercase() == title)
            };
            link.technique.protocol.iter().filter(has).cloned().collect()
        };
        let mut blocks: Vec<(&Link, Block)> = Vec::new();
        for link in ancestors {
            blocks.extend(titled(link, "initial").into_iter().map(|block| (link, block)));
        }
        blocks.extend(own.technique.protocol.iter().map(|block| (own, block.clone())));
        for link in ancestors.iter().rev() {
            blocks.extend(titled(link, "final").into_iter().map(|block| (link, block)));
        }
        let wrapped = blocks.len() > own.technique.protocol.len();
        let served = blocks.into_iter().enumerate().map(|(index, (link, block))| {
            let title = match (wrapped, block.title) {
                (false, title) => title,
                (true, Some(title)) => Some(format!("{}. {title}", index + 1)),
                (true, None) => Some(format!("{}.", index + 1)),
            };
            Block { title, steps: block.steps.iter().map(|step| self.serve(link, step)).collect() }
        });
        served.collect()
    }
}

impl Composition {
    /// The members of a technique that is served on its own (spec 02 §11.2).
    fn projection(&self) -> Map<String, Value> {
        let mut map = Map::new();
        map.insert("id".to_owned(), self.id.clone().into());
        map.insert("version".to_owned(), self.version.clone().into());
        map.insert("capability".to_owned(), self.capability.clone().into());
        if self.step_bound {
            map.insert("provenance_note".to_owned(), PROVENANCE_NOTE.into());
        }
        self.body_members(&mut map);
        if !self.rules.is_empty() {
            let rules = self.rules.iter().map(|(name, text)| (name.clone(), text.clone().into()));
            map.insert("rules".to_owned(), Value::Object(rules.collect()));
        }
        map
    }

    /// The members of an entry in a bundle (spec 02 §3.2).
    pub(crate) fn body(&self) -> Map<String, Value> {
        let mut map = Map::new();
        map.insert("capability".to_owned(), self.capability.clone().into());
        self.body_members(&mut map);
        map
    }

    fn body_members(&self, map: &mut Map<String, Value>) {
        let note = if self.step_bound { format!("{SCOPE_NOTE}{SOURCE_NOTE}") } else { SCOPE_NOTE.to_owned() };
        insert_members(map, "inputs", "inherited_inputs", &note, &self.inputs, "source");
        if !self.protocol.is_empty() {
            map.insert("protocol".to_owned(), self.protocol.iter().map(block_value).collect());
        }
        insert_members(map, "outputs", "inherited_outputs", SCOPE_NOTE, &self.outputs, "destination");
    }
}

fn insert_members(
    map: &mut Map<String, Value>,
    own: &str,
    inherited: &str,
    note: &str,
    members: &[Member],
    annotation: &str,
) {
    let values = |is_own: bool| -> Vec<Value> {
        let chosen = members.iter().filter(|member| member.own == is_own);
        chosen.map(|member| member_value(member, annotation)).collect()
    };
    let (own_values, others) = (values(true), values(false));
    if !own_values.is_empty() {
        map.insert(own.to_owned(), own_values.into());
    }
    if !others.is_empty() {
        let mut scope = Map::new();
        scope.insert("note".to_owned(), note.into());
        scope.insert("items".to_owned(), others.into());
        map.insert(inherited.to_owned(), scope.into());
    }
}

fn member_value(member: &Member, annotation: &str) -> Value {
    let mut map = Map::new();
    let item = &member.item;
    map.insert("id".to_owned(), item.id.clone().into());
    if let Some(description) = &item.description {
        map.insert("description".to_owned(), description.clone().into());
    }
    if let Some(default) = &item.default {
        map.insert("default".to_owned(), default.clone().into());
    }
    if !item.components.is_empty() {
        let components = item.components.iter().map(|(name, text)| (name.clone(), text.clone().into()));
        map.insert("components".to_owned(), Value::Object(components.collect()));
    }
    if let Some(name) = &item.artifact {
        map.insert("artifact".to_owned(), Value::Object(Map::from_iter([("name".to_owned(), name.clone().into())])));
    }
    if let Some(audience) = &item.audience {
        map.insert("audience".to_owned(), audience.clone().into());
    }
    if let Some(text) = &member.annotation {
        map.insert(annotation.to_owned(), text.clone().into());
    }
    map.into()
}

fn block_value(block: &Block) -> Value {
    let mut map = Map::new();
    if let Some(title) = &block.title {
        map.insert("title".to_owned(), title.clone().into());
    }
    map.insert("steps".to_owned(), block.steps.clone().into());
    map.into()
}

#[cfg(test)]
pub(crate) mod tests;
