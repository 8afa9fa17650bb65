//! The decoded definitions, as every other crate sees them (spec 01 §3–§6).

use serde_json::{Map, Value};

/// A file of a corpus: which root it lives in and its path below that root, with `/`.
///
/// Two references that end at one `FileId` are the same technique, however they were spelled.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    /// Position of the root among the corpus roots, nearest first.
    pub root: usize,
    /// Path below the root, segments joined with `/`.
    pub path: String,
}

/// Which workflow directory is meant: an id may exist in several roots.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkflowKey {
    /// Position of the root among the corpus roots, nearest first.
    pub root: usize,
    /// The directory name (for a legacy file its stem).
    pub id: String,
}

/// One workflow, loaded with its activities; rule and checkpoint fragments are already materialised.
#[derive(Clone, Debug)]
pub struct Workflow {
    /// Root and directory name; `key.id` is what clients call the workflow.
    pub key: WorkflowKey,
    /// The `id:` written in the manifest.
    pub declared_id: String,
    /// `X.Y.Z`.
    pub version: String,
    /// Display name.
    pub title: String,
    /// Free text.
    pub description: Option<String>,
    /// Who wrote it; metadata only.
    pub author: Option<String>,
    /// Goal matching in `list_workflows`.
    pub tags: Vec<String>,
    /// Rules by audience.
    pub rules: AudienceRules,
    /// Variable declarations in file order.
    pub variables: Vec<Variable>,
    /// Technique references by audience.
    pub techniques: TechniqueRefs,
    /// `techniques.core` of a `meta` workflow.
    pub core: Option<TechniqueRefs>,
    /// First activity.
    pub initial_activity: Option<String>,
    /// Local activities by file number, then borrowed and inline ones in listed order.
    pub activities: Vec<std::sync::Arc<Activity>>,
    /// Activities that were left out, with the reason.
    pub load_errors: Vec<ActivityLoadError>,
    /// All problems found while loading this workflow (its excluded activities included).
    pub diagnostics: Vec<crate::Diagnostic>,
}

/// Rules by audience, as plain strings (spec 01 §3.3).
#[derive(Clone, Debug, Default)]
pub struct AudienceRules {
    /// For the orchestrator.
    pub workflow: Vec<String>,
    /// For workers, inherited by every activity.
    pub activity: Vec<String>,
    /// For both.
    pub universal: Vec<String>,
}

/// Technique references by audience (spec 01 §3.4).
#[derive(Clone, Debug, Default)]
pub struct TechniqueRefs {
    /// Orchestrator bundle.
    pub workflow: Vec<String>,
    /// Worker bundle of every activity.
    pub activity: Vec<String>,
}

/// A declared variable (spec 01 §3.2).
#[derive(Clone, Debug)]
pub struct Variable {
    /// Bag name.
    pub name: String,
    /// Declared type.
    pub kind: ValueType,
    /// `defaultValue`; `Some(Null)` when the key is there without a value.
    pub default: Option<Value>,
    /// The declaration as validated, for delivery: known members in order `name, type, description, defaultValue,
    /// required`, `required: false` filled in.
    pub declaration: Map<String, Value>,
}

/// JSON type names used by declarations and type checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum ValueType {
    String,
    Number,
    Boolean,
    Array,
    Object,
}

/// An activity that was excluded from its workflow (spec 01 §10.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActivityLoadError {
    /// Corpus-relative file; for an entry of `activities` the reference as written.
    pub file: String,
    /// Line from 1.
    pub line: usize,
    /// Column from 1.
    pub column: usize,
    /// Diagnostic code of the first error in that file.
    pub code: String,
    /// The file id (or the activity's own id for a fragment failure).
    pub activity_id: String,
    /// All issues, joined with `; `.
    pub error: String,
}

/// One activity (spec 01 §4).
#[derive(Clone, Debug)]
pub struct Activity {
    /// Navigation key.
    pub id: String,
    /// `X.Y.Z`.
    pub version: String,
    /// Display name.
    pub name: String,
    /// Free text.
    pub description: Option<String>,
    /// Activity-wide technique references.
    pub techniques: Vec<String>,
    /// `bundleTechniques.maxChars`.
    pub bundle_max_chars: Option<u64>,
    /// The single ordered execution list.
    pub steps: Vec<Step>,
    /// Decisions (routing by the orchestrator).
    pub decisions: Vec<Decision>,
    /// Transitions in order.
    pub transitions: Vec<Transition>,
    /// Child workflows this activity announces.
    pub triggers: Vec<Trigger>,
    /// Expected outcomes.
    pub outcome: Vec<String>,
    /// Advisory; shown in stubs. Default true.
    pub required: bool,
    /// Activity rules.
    pub rules: Vec<String>,
    /// File number as written; absent for inline activities.
    pub artifact_prefix: Option<String>,
    /// The workflow whose directory holds the file: the executing workflow for its steps and own `techniques`.
    pub source: WorkflowKey,
    /// The file, absent for inline activities.
    pub file: Option<FileId>,
    /// The text that `get_activity` serves: the file as written with derived step ids and checkpoint fragments
    /// injected, `\n` line ends, without BOM, directives and document markers (spec 01 §10.1); no `artifacts`.
    /// Ends with exactly one newline.
    pub body: String,
}

/// One step (spec 01 §4.2).
#[derive(Clone, Debug)]
pub struct Step {
    /// Explicit or derived id (spec 01 §4.3).
    pub id: String,
    /// Inline gate.
    pub when: Option<String>,
    /// Structured gate.
    pub condition: Option<Condition>,
    /// False only when the step says `required: false`.
    pub required: bool,
    /// What the step does.
    pub kind: StepKind,
}

/// The four step kinds.
#[derive(Clone, Debug)]
pub enum StepKind {
    /// Binds a technique.
    Technique {
        /// The reference with its deviations.
        binding: Binding,
        /// Verbs the agent carries out.
        actions: Vec<Action>,
    },
    /// Verbs only.
    Action {
        /// Verbs the agent carries out; may be empty (a marker).
        actions: Vec<Action>,
    },
    /// A gate.
    Checkpoint(Checkpoint),
    /// A repeated body.
    Loop(Loop),
}

/// Technique binding of a step (spec 01 §4.4).
#[derive(Clone, Debug)]
pub struct Binding {
    /// The reference as written.
    pub name: String,
    /// Input deviations, in file order: string, number or boolean.
    pub inputs: Map<String, Value>,
    /// Output remaps: op output id → bag name (values are strings).
    pub outputs: Map<String, Value>,
}

/// One entry of `actions[]` (spec 01 §4.5).
#[derive(Clone, Debug)]
pub struct Action {
    /// `log`, `validate`, `set`, `emit` or `message`.
    pub verb: String,
    /// What it applies to; for `set` the variable.
    pub target: Option<String>,
    /// Text.
    pub message: Option<String>,
    /// Literal unless written `"{name}"`.
    pub value: Option<Value>,
    /// Explains what to do.
    pub description: Option<String>,
    /// Gate.
    pub condition: Option<Condition>,
}

/// A checkpoint, fragment already materialised (spec 01 §4.6).
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// Text presented to the user.
    pub message: String,
    /// At least one.
    pub options: Vec<CheckpointOption>,
    /// Option taken on auto-advance.
    pub default_option: Option<String>,
    /// Earliest auto-advance.
    pub auto_advance_ms: Option<u64>,
    /// Advice to the orchestrator.
    pub blocking: Option<bool>,
    /// How long an answer is replayed.
    pub replay: Replay,
}

/// How long a recorded answer is replayed instead of asking again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replay {
    /// Within the visit of the activity in which it was given.
    #[default]
    Visit,
    /// For the whole session.
    Session,
}

/// One option of a checkpoint.
#[derive(Clone, Debug)]
pub struct CheckpointOption {
    /// Id sent back by `respond_checkpoint`.
    pub id: String,
    /// Short text.
    pub label: String,
    /// Long text.
    pub description: Option<String>,
    /// What choosing it does.
    pub effect: Option<Effect>,
}

/// Effect of an option.
#[derive(Clone, Debug, Default)]
pub struct Effect {
    /// Bag writes, applied by the server.
    pub set_variable: Map<String, Value>,
    /// Returned; the orchestrator navigates.
    pub transition_to: Option<String>,
    /// Recorded as bookkeeping.
    pub skip_activities: Vec<String>,
    /// The effect as written (known and unknown members), for `present_checkpoint`.
    pub source: Map<String, Value>,
}

/// A loop step (spec 01 §4.11).
#[derive(Clone, Debug)]
pub struct Loop {
    /// Display name.
    pub name: Option<String>,
    /// `forEach`, `while` or `doWhile`.
    pub loop_type: String,
    /// Bag name bound per iteration.
    pub variable: Option<String>,
    /// Collection expression.
    pub over: Option<String>,
    /// Early exit.
    pub break_condition: Option<Condition>,
    /// Safety bound, enforced by the agent.
    pub max_iterations: Option<u64>,
    /// The body.
    pub steps: Vec<Step>,
}

/// Routing by the orchestrator (spec 01 §4.7).
#[derive(Clone, Debug)]
pub struct Decision {
    /// Id.
    pub id: String,
    /// Display name.
    pub name: String,
    /// Free text.
    pub description: Option<String>,
    /// At least two.
    pub branches: Vec<Branch>,
}

/// One branch of a decision.
#[derive(Clone, Debug)]
pub struct Branch {
    /// Id.
    pub id: String,
    /// Short text.
    pub label: String,
    /// Gate.
    pub condition: Option<Condition>,
    /// Target activity, if it has a route of its own.
    pub transition_to: Option<String>,
    /// Taken when nothing else is.
    pub is_default: bool,
}

/// One transition (spec 01 §4.8).
#[derive(Clone, Debug)]
pub struct Transition {
    /// Activity id or `__terminal__`.
    pub to: String,
    /// Gate.
    pub condition: Option<Condition>,
    /// Taken when nothing else is.
    pub is_default: bool,
}

/// A child workflow that an activity announces (spec 01 §4.10).
#[derive(Clone, Debug)]
pub struct Trigger {
    /// Workflow id.
    pub workflow: String,
    /// Free text.
    pub description: Option<String>,
    /// Names passed on by the orchestrator.
    pub pass_context: Vec<String>,
}

/// A structured condition (spec 01 §5.1).
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// One comparison.
    Simple {
        /// Dotted path.
        variable: String,
        /// One of `== != > < >= <= exists notExists`.
        operator: String,
        /// Absent, string, number, boolean or null.
        value: Option<Value>,
    },
    /// All hold (at least two).
    And(Vec<Self>),
    /// Any holds (at least two).
    Or(Vec<Self>),
    /// Does not hold.
    Not(Box<Self>),
}

/// Name of the sentinel that ends a workflow.
pub const TERMINAL: &str = "__terminal__";
/// Entering an activity of this id completes the session.
pub const COMPLETE: &str = "complete";
/// The reserved workflow: default of a new session and fallback namespace of techniques and fragments.
pub const META: &str = "meta";
