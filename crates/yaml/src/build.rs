//! Builds the tree from the parser's events, within limits.
//!
//! Aliases are expanded here. Each anchored value carries its weight (values, text, depth), so that the cost of an
//! alias is known before anything is copied: a few lines that expand to billions of values are refused at once.

use std::collections::{HashMap, HashSet};

use crate::position::Span;
use crate::scalar::{self, Tag};
use crate::tree::{Entry, Kind, Node, Problem, Severity, Style};

/// What to do about a document that is too large.
const SMALLER: &str = "use fewer aliases, or split the file";
/// What to do about a document that is too deep.
pub(crate) const FLATTER: &str = "look for a bracket that is not closed, or nest less";

/// Limits on what a text may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The length of the text in bytes, and the text that aliases may copy.
    pub bytes: usize,
    /// How deep collections nest. Never more than 512, whatever is asked for, to protect the stack.
    pub depth: usize,
    /// The number of keys and values, counted after alias expansion.
    pub nodes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 4 * 1024 * 1024, depth: 128, nodes: 200_000 }
    }
}

impl Limits {
    /// Returns the depth that is really allowed: the tree is walked and dropped by recursion.
    pub(crate) fn safe_depth(&self) -> usize {
        self.depth.min(512)
    }
}

/// The text cannot be read any further; the reason is among the problems.
#[derive(Debug)]
pub(crate) struct Stop;

/// What a scalar event says.
pub(crate) struct ScalarEvent<'a> {
    pub(crate) text: &'a str,
    pub(crate) span: Span,
    pub(crate) style: Style,
    pub(crate) tag: Tag,
    /// Where the tag is; the value itself if it has none.
    pub(crate) tag_span: Span,
    /// Identifies the anchor; 0 for none.
    pub(crate) anchor: usize,
}

/// What the start of a collection says.
pub(crate) struct CollectionEvent {
    pub(crate) is_mapping: bool,
    pub(crate) span: Span,
    pub(crate) style: Style,
    pub(crate) tag: Tag,
    /// Where the tag is; the value itself if it has none.
    pub(crate) tag_span: Span,
    /// Identifies the anchor; 0 for none.
    pub(crate) anchor: usize,
}

/// What a value costs to copy.
#[derive(Clone, Copy, Default)]
struct Weight {
    nodes: usize,
    bytes: usize,
    depth: usize,
}

impl Weight {
    fn scalar(text: &str) -> Self {
        Self { nodes: 1, bytes: text.len(), depth: 0 }
    }

    fn add(&mut self, child: Self) {
        self.nodes += child.nodes;
        self.bytes += child.bytes;
        self.depth = self.depth.max(child.depth);
    }
}

/// A collection whose end has not been seen.
struct Frame {
    span: Span,
    style: Style,
    anchor: usize,
    weight: Weight,
    content: Content,
}

enum Content {
    Sequence(Vec<Node>),
    Mapping { entries: Vec<Entry>, keys: HashSet<String>, pending: Pending },
}

/// The key that waits for its value.
enum Pending {
    /// None: what comes next is a key.
    None,
    /// A key that cannot be used; its value is read and dropped.
    Refused,
    Key(String, Span),
}

/// The builder. Feed it events; take the tree and the problems with [`Builder::finish`].
pub(crate) struct Builder {
    limits: Limits,
    problems: Vec<Problem>,
    stack: Vec<Frame>,
    root: Option<Node>,
    anchors: HashMap<usize, (Node, Weight)>,
    /// Values in the tree.
    nodes: usize,
    /// Values kept aside for aliases.
    kept_nodes: usize,
    /// Text copied for anchors and aliases.
    copied_bytes: usize,
}

impl Builder {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            problems: Vec::new(),
            stack: Vec::new(),
            root: None,
            anchors: HashMap::new(),
            nodes: 0,
            kept_nodes: 0,
            copied_bytes: 0,
        }
    }

    pub(crate) fn problem(&mut self, severity: Severity, span: Span, message: String, help: Option<&str>) {
        self.problems.push(Problem { severity, message, span, help: help.map(str::to_owned) });
    }

    /// Returns the tree as far as it was built. Collections that are still open end where their content ends.
    pub(crate) fn finish(mut self) -> (Option<Node>, Vec<Problem>) {
        while let Some(frame) = self.stack.last_mut() {
            // Nothing can refer to it any more.
            frame.anchor = 0;
            // A key whose value was never seen keeps its place in the tree.
            if let Some(Content::Mapping { pending: Pending::Key(_, span), .. }) =
                self.stack.last().map(|frame| &frame.content)
            {
                let null = Node::null(Span::empty(span.end));
                self.attach(null, Weight::scalar(""));
            }
            if self.close(None).is_err() {
                break;
            }
        }
        (self.root, self.problems)
    }

    pub(crate) fn scalar(&mut self, event: &ScalarEvent<'_>) -> Result<(), Stop> {
        let weight = Weight::scalar(event.text);
        self.charge(weight, event.span)?;
        let (value, warning) = scalar::resolve(event.text, event.style == Style::Plain, &event.tag);
        if let Some(warning) = warning {
            self.problem(Severity::Warning, event.tag_span, warning, Some("quote the value if it is meant as text"));
        }
        let node = Node { span: event.span, kind: Kind::Scalar(value), style: event.style };
        self.keep(event.anchor, &node, weight)?;
        self.attach(node, weight);
        Ok(())
    }

    /// Returns whether the next value stands in a mapping.
    pub(crate) fn is_in_mapping(&self) -> bool {
        self.stack.last().is_some_and(|frame| matches!(frame.content, Content::Mapping { .. }))
    }

    pub(crate) fn open(&mut self, event: &CollectionEvent) -> Result<(), Stop> {
        self.charge(Weight { nodes: 1, ..Weight::default() }, event.span)?;
        if self.stack.len() >= self.limits.safe_depth() {
            return Err(self.too_deep(event.span));
        }
        let expected = if event.is_mapping { "map" } else { "seq" };
        match &event.tag {
            Tag::Core(name) if name != expected => {
                self.problem(
                    Severity::Warning,
                    event.tag_span,
                    format!("the value does not fit the tag `!!{name}`"),
                    None,
                );
            }
            Tag::Unknown(tag) => self.problem(Severity::Warning, event.tag_span, format!("unknown tag `{tag}`"), None),
            Tag::None | Tag::NonSpecific | Tag::Core(_) => {}
        }
        let content = if event.is_mapping {
            Content::Mapping { entries: Vec::new(), keys: HashSet::new(), pending: Pending::None }
        } else {
            Content::Sequence(Vec::new())
        };
        let weight = Weight { nodes: 1, ..Weight::default() };
        self.stack.push(Frame { span: event.span, style: event.style, anchor: event.anchor, weight, content });
        Ok(())
    }

    /// Ends the innermost collection; `end` is the end of its closing bracket, if it has one.
    pub(crate) fn close(&mut self, end: Option<usize>) -> Result<(), Stop> {
        let Some(frame) = self.stack.pop() else { return Ok(()) };
        let mut span = frame.span;
        let kind = match frame.content {
            Content::Sequence(items) => Kind::Sequence(items),
            Content::Mapping { entries, .. } => Kind::Mapping(entries),
        };
        if let Some(end) = end {
            span.end = end;
        }
        let node = Node { span, kind, style: frame.style };
        let weight = Weight { depth: frame.weight.depth + 1, ..frame.weight };
        let kept = self.keep(frame.anchor, &node, weight);
        self.attach(node, weight);
        kept
    }

    /// Puts a copy of an anchored value in the place of an alias.
    pub(crate) fn alias(&mut self, anchor: usize, span: Span) -> Result<(), Stop> {
        let Some(weight) = self.anchors.get(&anchor).map(|(_, weight)| *weight) else {
            self.problem(
                Severity::Error,
                span,
                "the alias stands inside the value it refers to".to_owned(),
                Some("write the value out"),
            );
            self.charge(Weight::scalar(""), span)?;
            self.attach(Node::null(span), Weight::scalar(""));
            return Ok(());
        };
        self.charge(weight, span)?;
        self.charge_copy(weight, span)?;
        if self.stack.len() + weight.depth > self.limits.safe_depth() {
            return Err(self.too_deep(span));
        }
        if let Some((node, _)) = self.anchors.get(&anchor) {
            let node = Node { span, ..node.clone() };
            self.attach(node, weight);
        }
        Ok(())
    }

    /// Puts a null in the place of an alias that refers to nothing.
    pub(crate) fn unknown_alias(&mut self, name: &str, span: Span) -> Result<(), Stop> {
        let help = "define the anchor earlier in the file, or quote the value if it is meant as text";
        self.problem(Severity::Error, span, format!("unknown alias `*{name}`"), Some(help));
        self.charge(Weight::scalar(""), span)?;
        self.attach(Node::null(span), Weight::scalar(""));
        Ok(())
    }

    /// Adds a finished value to the collection it stands in.
    fn attach(&mut self, node: Node, weight: Weight) {
        let Some(frame) = self.stack.last_mut() else {
            self.root = Some(node);
            return;
        };
        frame.weight.add(weight);
        frame.span.end = frame.span.end.max(node.span.end);
        let (entries, keys, pending) = match &mut frame.content {
            Content::Sequence(items) => {
                items.push(node);
                return;
            }
            Content::Mapping { entries, keys, pending } => (entries, keys, pending),
        };
        match std::mem::replace(pending, Pending::None) {
            Pending::Key(key, key_span) => entries.push(Entry { key, key_span, value: node }),
            Pending::Refused => {}
            Pending::None => {
                let span = node.span;
                let (key, refusal) = match node.kind {
                    Kind::Scalar(value) => {
                        let key = scalar::key_text(value);
                        let refusal = if keys.insert(key.clone()) {
                            None
                        } else {
                            Some((format!("duplicate key `{}`", abbreviate(&key)), "keep one of the two"))
                        };
                        (key, refusal)
                    }
                    Kind::Sequence(_) | Kind::Mapping(_) => (
                        String::new(),
                        Some(("a list or a map cannot be a key".to_owned(), "put it in quotes if it is meant as text")),
                    ),
                };
                *pending = match refusal {
                    None => Pending::Key(key, span),
                    Some((message, help)) => {
                        self.problem(Severity::Error, span, message, Some(help));
                        return self.refuse_key();
                    }
                };
            }
        }
    }

    fn refuse_key(&mut self) {
        if let Some(Content::Mapping { pending, .. }) = self.stack.last_mut().map(|frame| &mut frame.content) {
            *pending = Pending::Refused;
        }
    }

    /// Remembers an anchored value for its aliases.
    fn keep(&mut self, anchor: usize, node: &Node, weight: Weight) -> Result<(), Stop> {
        if anchor == 0 {
            return Ok(());
        }
        self.kept_nodes = self.kept_nodes.saturating_add(weight.nodes);
        if self.kept_nodes > self.limits.nodes {
            return Err(self.too_many(node.span));
        }
        self.charge_copy(weight, node.span)?;
        self.anchors.insert(anchor, (node.clone(), weight));
        Ok(())
    }

    /// Counts values before they are made.
    fn charge(&mut self, weight: Weight, span: Span) -> Result<(), Stop> {
        self.nodes = self.nodes.saturating_add(weight.nodes);
        if self.nodes > self.limits.nodes { Err(self.too_many(span)) } else { Ok(()) }
    }

    /// Counts text before it is copied.
    fn charge_copy(&mut self, weight: Weight, span: Span) -> Result<(), Stop> {
        self.copied_bytes = self.copied_bytes.saturating_add(weight.bytes);
        if self.copied_bytes > self.limits.bytes {
            let message = format!("aliases copy more than {} bytes of text", self.limits.bytes);
            self.problem(Severity::Error, span, message, Some(SMALLER));
            return Err(Stop);
        }
        Ok(())
    }

    fn too_many(&mut self, span: Span) -> Stop {
        let message = format!("more than {} values, counted with aliases expanded", self.limits.nodes);
        self.problem(Severity::Error, span, message, Some(SMALLER));
        Stop
    }

    fn too_deep(&mut self, span: Span) -> Stop {
        let message = format!("lists and maps nest deeper than {} levels", self.limits.safe_depth());
        self.problem(Severity::Error, span, message, Some(FLATTER));
        Stop
    }
}

/// Shortens a key for a message.
fn abbreviate(key: &str) -> String {
    const LONGEST: usize = 80;
    let mut shown: String = key.chars().take(LONGEST).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if key.chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    shown
}
