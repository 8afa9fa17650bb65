//! Resources: reading, addressing, sections (spec 01 §9; spec 02 §12).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use crate::frontmatter;
use crate::link::Target;
use crate::markdown::{heading, normalise};
use crate::snapshot::{Corpus, Has, is_plain_segment};
use crate::source::SourceFile;
use crate::{META, Workflow, WorkflowKey};

/// A resource as served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The `name` of its front matter, else the requested slug.
    pub id: String,
    /// As written.
    pub version: Option<String>,
    /// The text behind the front matter, or one section of it.
    pub content: String,
}

/// Why a resource is not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceError {
    /// Not of the form `[workflow/]slug[#section]` (FIX-4).
    InvalidId {
        /// As asked for.
        id: String,
    },
    /// No such file.
    NotFound {
        /// The slug.
        id: String,
        /// The workflow that was looked in.
        workflow: String,
        /// Ids of that workflow's resources that look alike.
        near: Vec<String>,
        /// Does `meta` have one of that slug?
        in_meta: bool,
        /// Why the file cannot be used, or that there is no such workflow.
        reason: Option<String>,
    },
    /// The resource has no such heading.
    SectionNotFound {
        /// The anchor, without `#`.
        section: String,
        /// The resource.
        resource: String,
        /// Anchors that exist, in order.
        available: Vec<String>,
    },
}

impl fmt::Display for ResourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidId { id } => {
                write!(f, "Resource not found: {id} (an id is `[workflow/]slug[#section]`, of plain names)")
            }
            Self::NotFound { id, workflow, near, in_meta, reason } => {
                write!(f, "Resource not found: {id} in workflow {workflow}")?;
                let mut hints: Vec<String> = reason.iter().cloned().collect();
                if *in_meta {
                    hints.push(format!("`{META}/{id}` exists; resources have no fallback to {META}"));
                }
                if !near.is_empty() {
                    hints.push(format!("close to it: {}", near.join(", ")));
                }
                if hints.is_empty() { Ok(()) } else { write!(f, " ({})", hints.join("; ")) }
            }
            Self::SectionNotFound { section, resource, available } if available.is_empty() => {
                write!(f, "Section not found: #{section} in resource {resource} (it has no headings)")
            }
            Self::SectionNotFound { section, resource, available } => {
                write!(
                    f,
                    "Section not found: #{section} in resource {resource} (available: #{})",
                    available.join(", #")
                )
            }
        }
    }
}

impl std::error::Error for ResourceError {}

/// A resource file, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResourceText {
    pub(crate) name: Option<String>,
    pub(crate) version: Option<String>,
    content: String,
    headings: Vec<Heading>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Heading {
    level: usize,
    /// Line in `content`, from 0.
    line: usize,
    /// Slug of the original's rule.
    plain: String,
    /// Slug as GitHub makes it, with `-1`, `-2` for repeats.
    github: String,
}

/// Reads a resource file.
pub(crate) fn parse(text: &str) -> ResourceText {
    let text = normalise(text);
    let front = frontmatter::split(&text);
    let content = front.as_ref().map_or(text.as_ref(), |front| text[front.body..].trim()).to_owned();
    let scalar = |path: &str| Some(front.as_ref()?.get(path)?.text.clone()).filter(|text| !text.is_empty());
    let nested = || Some(front.as_ref()?.nested("version")?.text.clone()).filter(|text| !text.is_empty());
    let name = scalar("name").map(|name| name.trim().to_owned());
    let version = scalar("version").or_else(nested);
    let headings = headings(&content);
    ResourceText { name, version, content, headings }
}

/// Headings outside fences. A line that begins with a fence toggles (spec 01 §9.4): templates nest fences of one length,
/// which CommonMark would end too early.
fn headings(content: &str) -> Vec<Heading> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut found = Vec::new();
    let mut fenced = false;
    for (number, line) in content.split('\n').enumerate() {
        let start = line.trim_start();
        if start.starts_with("```") || start.starts_with("~~~") {
            fenced = !fenced;
            continue;
        }
        let title = (1..=6).find_map(|level| Some((level, heading(line, level)?)));
        let Some((level, title)) = title.filter(|_| !fenced) else { continue };
        let base = github_slug(title);
        let count = seen.entry(base.clone()).or_insert(0);
        let github = if *count == 0 { base } else { format!("{base}-{count}") };
        *count += 1;
        found.push(Heading { level, line: number, plain: plain_slug(title), github });
    }
    found
}

/// Trimmed, lower-cased, everything but ASCII word characters, blanks and `-` deleted, runs of blanks to one `-`.
fn plain_slug(title: &str) -> String {
    let lower = title.trim().to_lowercase();
    let kept = |char: &char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-') || char.is_whitespace();
    let mut slug = String::new();
    let mut blank = false;
    for char in lower.chars().filter(kept) {
        if !char.is_whitespace() {
            slug.push(char);
        } else if !blank {
            slug.push('-');
        }
        blank = char.is_whitespace();
    }
    slug
}

/// As GitHub: letters and digits of any script stay, every blank becomes one `-`; a closing run of `#` is no text.
fn github_slug(title: &str) -> String {
    let open = title.trim().trim_end_matches('#');
    let text = if open.is_empty() || open.ends_with(char::is_whitespace) { open.trim_end() } else { title.trim() };
    let kept = text.chars().flat_map(char::to_lowercase).filter_map(|char| match char {
        ' ' => Some('-'),
        '-' | '_' => Some(char),
        _ => char.is_alphanumeric().then_some(char),
    });
    kept.collect()
}

impl ResourceText {
    /// The section of an anchor: the original's slug, then GitHub's, then either without regard to case (FIX-37).
    pub(crate) fn section(&self, anchor: &str) -> Option<String> {
        let lower = anchor.to_lowercase();
        let position = |test: &dyn Fn(&Heading) -> bool| self.headings.iter().position(test);
        let at = position(&|heading| heading.plain == anchor)
            .or_else(|| position(&|heading| heading.github == anchor))
            .or_else(|| position(&|heading| heading.plain == lower))
            .or_else(|| position(&|heading| heading.github.to_lowercase() == lower))?;
        let heading = &self.headings[at];
        let next = self.headings[at + 1..].iter().find(|other| other.level <= heading.level);
        let lines: Vec<&str> = self.content.split('\n').collect();
        let end = next.map_or(lines.len(), |next| next.line);
        Some(lines[heading.line..end].join("\n").trim().to_owned())
    }

    /// Anchors of all headings, in order, without repetition.
    pub(crate) fn anchors(&self) -> Vec<String> {
        let mut anchors: Vec<String> = Vec::new();
        let mut known: HashSet<&str> = HashSet::new();
        for heading in &self.headings {
            let anchor = if known.contains(heading.plain.as_str()) { &heading.github } else { &heading.plain };
            if !anchor.is_empty() && known.insert(anchor) {
                anchors.push(anchor.clone());
            }
        }
        anchors
    }
}

/// The resources of one workflow by slug and by declared name.
#[derive(Debug, Default)]
pub(crate) struct ResourceIndex {
    by_slug: BTreeMap<String, Arc<SourceFile>>,
    by_name: HashMap<String, Arc<SourceFile>>,
}

impl ResourceIndex {
    fn of(corpus: &Corpus, workflow: &WorkflowKey) -> Self {
        let directory = format!("{}/resources/", workflow.id);
        let mut index = Self::default();
        for file in corpus.files_below(workflow.root, &directory) {
            let below = file.id.path.strip_prefix(&directory).and_then(|path| path.strip_suffix(".md"));
            let Some(slug) = below else { continue };
            index.by_slug.insert(slug.to_owned(), Arc::clone(file));
            if !slug.contains('/')
                && slug != "README"
                && let Some(name) = &file.resource().name
            {
                index.by_name.entry(name.clone()).or_insert_with(|| Arc::clone(file));
            }
        }
        index
    }

    pub(crate) fn get(&self, slug: &str) -> Option<&Arc<SourceFile>> {
        self.by_slug.get(slug).or_else(|| self.by_name.get(slug))
    }

    fn near(&self, slug: &str) -> Vec<String> {
        let names = self.by_slug.keys().filter(|name| *name != "README");
        let mut scored: Vec<(f64, &String)> = names.map(|name| (strsim::jaro_winkler(slug, name), name)).collect();
        scored.retain(|(score, _)| *score > 0.8);
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        scored.into_iter().take(3).map(|(_, name)| name.clone()).collect()
    }
}

impl Corpus {
    /// Serves `[workflow/]slug[.md][#section]`; without a workflow that of the session, and never another one.
    pub fn resource(&self, workflow: &Workflow, resource_id: &str) -> Result<Resource, ResourceError> {
        let request = Request::parse(resource_id)?;
        let (key, slug) = self.resource_place(&workflow.key, &request)?;
        self.read_resource(&key, &slug, request.section.as_deref())
    }

    /// Raw text, front matter included, of `meta`'s bootstrap protocol; that of the nearest root that has a `meta`.
    pub fn bootstrap(&self) -> Option<String> {
        let meta = self.meta_for(0)?;
        let file = self.file(meta.root, &format!("{META}/resources/bootstrap-protocol.md"))?;
        file.problem.is_none().then(|| normalise(&file.text).into_owned())
    }

    /// Does a link of a technique file of this workflow lead somewhere?
    pub(crate) fn check_link(&self, workflow: &WorkflowKey, target: &Target) -> Result<(), ResourceError> {
        let request =
            Request { workflow: target.workflow.clone(), slug: target.slug.clone(), section: target.anchor.clone() };
        let (key, slug) = self.resource_place(workflow, &request)?;
        let text = self.resource_text(&key, &slug)?;
        match &target.anchor {
            Some(anchor) if text.section(anchor).is_none() => Err(section_not_found(anchor, &slug, text)),
            _ => Ok(()),
        }
    }

    /// Does the workflow have a resource of this slug or name?
    pub(crate) fn has_resource(&self, workflow: &WorkflowKey, slug: &str) -> bool {
        self.resources(workflow).get(slug).is_some()
    }

    fn resources(&self, workflow: &WorkflowKey) -> Arc<ResourceIndex> {
        self.derived.resources.get(workflow, || ResourceIndex::of(self, workflow))
    }

    fn resource_place(&self, own: &WorkflowKey, request: &Request) -> Result<(WorkflowKey, String), ResourceError> {
        let Some(prefix) = &request.workflow else { return Ok((own.clone(), request.slug.clone())) };
        if let Some(key) = self.find_workflow_dir(own.root, prefix, Has::Folder("resources")) {
            return Ok((key, request.slug.clone()));
        }
        // Not a workflow: perhaps a folder below the own `resources`.
        let nested = format!("{prefix}/{}", request.slug);
        if self.has_resource(own, &nested) {
            return Ok((own.clone(), nested));
        }
        Err(ResourceError::NotFound {
            id: request.slug.clone(),
            workflow: prefix.clone(),
            near: Vec::new(),
            in_meta: self.in_meta(own, &request.slug),
            reason: Some(format!("there is no workflow `{prefix}` with resources")),
        })
    }

    fn in_meta(&self, own: &WorkflowKey, slug: &str) -> bool {
        self.meta_for(own.root).is_some_and(|meta| self.has_resource(&meta, slug))
    }

    fn resource_text(&self, key: &WorkflowKey, slug: &str) -> Result<&ResourceText, ResourceError> {
        let index = self.resources(key);
        let not_found = |reason: Option<String>| ResourceError::NotFound {
            id: slug.to_owned(),
            workflow: key.id.clone(),
            near: index.near(slug),
            in_meta: key.id != META && self.in_meta(key, slug),
            reason,
        };
        let file = index.get(slug).ok_or_else(|| not_found(None))?;
        if let Some(problem) = &file.problem {
            return Err(not_found(Some(format!("{}: {}", file.id.path, problem.message()))));
        }
        // The same file as the corpus holds it, so that the text lives as long as the snapshot.
        self.file(file.id.root, &file.id.path).map(|file| file.resource()).ok_or_else(|| not_found(None))
    }

    fn read_resource(&self, key: &WorkflowKey, slug: &str, section: Option<&str>) -> Result<Resource, ResourceError> {
        let text = self.resource_text(key, slug)?;
        let content = match section {
            Some(section) => text.section(section).ok_or_else(|| section_not_found(section, slug, text))?,
            None => text.content.clone(),
        };
        let id = text.name.clone().unwrap_or_else(|| slug.to_owned());
        Ok(Resource { id, version: text.version.clone(), content })
    }
}

fn section_not_found(section: &str, resource: &str, text: &ResourceText) -> ResourceError {
    ResourceError::SectionNotFound {
        section: section.to_owned(),
        resource: resource.to_owned(),
        available: text.anchors(),
    }
}

/// `[workflow/]slug[.md][#section]`, taken apart.
#[derive(Debug)]
struct Request {
    workflow: Option<String>,
    slug: String,
    section: Option<String>,
}

impl Request {
    fn parse(id: &str) -> Result<Self, ResourceError> {
        let text = id.trim();
        let (path, section) = text.split_once('#').map_or((text, None), |(path, section)| (path, Some(section)));
        let path = path.strip_suffix(".md").unwrap_or(path);
        let (workflow, slug) = match path.split_once('/') {
            Some((workflow, slug)) if !workflow.is_empty() => (Some(workflow), slug),
            _ => (None, path),
        };
        let plain = slug.split('/').all(is_plain_segment) && workflow.is_none_or(is_plain_segment);
        if !plain {
            return Err(ResourceError::InvalidId { id: id.to_owned() });
        }
        Ok(Self {
            workflow: workflow.map(str::to_owned),
            slug: slug.to_owned(),
            section: section.filter(|section| !section.is_empty()).map(str::to_owned),
        })
    }
}

#[cfg(test)]
mod tests;
