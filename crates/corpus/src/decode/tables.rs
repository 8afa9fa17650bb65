//! Every definition field: name, need, shape (spec 01 §3, §4, §5.1, §6).

use super::shape::{Field, Form, Need, Object, Shape, Tagged};
use Need::{OnlyMeta, Optional, Required, RequiredElsewhere};

const fn field(name: &'static str, need: Need, shape: Shape, about: &'static str) -> Field {
    Field { name, need, shape, about }
}

const TEXTS: Shape = Shape::List { of: &Shape::Text, least: 0 };

pub(crate) static VERSION: Form = Form {
    pattern: r"^\d+\.\d+\.\d+$",
    fits: is_version,
    expected: "a version of the form X.Y.Z",
    example: "1.0.0",
    code: None,
};

static VARIABLE_NAME: Form = Form {
    pattern: "^([a-z][a-z0-9]*(_[a-z0-9]+)+|requirements|features|exclusions|dimensions|tasks|results|submodules|paths|\
              fields|filters|stats|effects|substitutions|findings|assumptions|subsystems|transitions|options|branches|\
              agents|changes|failures|items|files|gaps|outcomes|body|query|repo|owner|number|title|branch|diff|limit|\
              name|sha|url|head|base|ref|labels|path|cursor|cql|jql|description|assignee|depth|direction|summary|state|\
              target|adr|type|mode|kind)$",
    fits: is_variable_name,
    expected: "a name of two or more snake_case words",
    example: "card_address",
    code: Some("variable.name"),
};

/// Single words that may name a variable.
pub(crate) const SINGLE_WORD_VARIABLES: &str = "requirements features exclusions dimensions tasks results submodules \
    paths fields filters stats effects substitutions findings assumptions subsystems transitions options branches agents \
    changes failures items files gaps outcomes body query repo owner number title branch diff limit name sha url head \
    base ref labels path cursor cql jql description assignee depth direction summary state target adr type mode kind";

/// Is it three decimal numbers with dots between?
pub(crate) fn is_version(text: &str) -> bool {
    let mut parts = text.split('.');
    let number =
        |part: Option<&str>| part.is_some_and(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
    number(parts.next()) && number(parts.next()) && number(parts.next()) && parts.next().is_none()
}

/// Does it follow the naming rule of variables (spec 01 §3.2)?
pub(crate) fn is_variable_name(name: &str) -> bool {
    let word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let snake = name.contains('_') && name.split('_').all(word) && name.starts_with(|c: char| c.is_ascii_lowercase());
    snake || SINGLE_WORD_VARIABLES.split(' ').any(|exempt| exempt == name)
}

// --- conditions -----------------------------------------------------------------------------------------------------

pub(crate) static CONDITION: Tagged = Tagged {
    name: "condition",
    tag: "type",
    choices: &[("simple", &SIMPLE), ("and", &AND), ("or", &OR), ("not", &NOT)],
};

static CONDITION_SHAPE: Shape = Shape::Tagged(&CONDITION);

static SIMPLE: Object = Object {
    name: "simpleCondition",
    about: "Compares one variable.",
    closed: false,
    fields: &[
        field("type", Required, Shape::Choice(&["simple"]), "Kind of condition."),
        field("variable", Required, Shape::Text, "Dotted path into the session's variables."),
        field("operator", Required, Shape::Choice(&crate::condition::OPERATORS), "How to compare."),
        field(
            "value",
            Optional,
            Shape::Either(&[Shape::Text, Shape::Number, Shape::Boolean, Shape::Null]),
            "What to compare with; without it `==` holds when the variable is missing.",
        ),
    ],
};
static AND: Object = Object {
    name: "andCondition",
    about: "Holds when all parts hold.",
    closed: false,
    fields: &[
        field("type", Required, Shape::Choice(&["and"]), "Kind of condition."),
        field("conditions", Required, Shape::List { of: &CONDITION_SHAPE, least: 2 }, "At least two parts."),
    ],
};
static OR: Object = Object {
    name: "orCondition",
    about: "Holds when any part holds.",
    closed: false,
    fields: &[
        field("type", Required, Shape::Choice(&["or"]), "Kind of condition."),
        field("conditions", Required, Shape::List { of: &CONDITION_SHAPE, least: 2 }, "At least two parts."),
    ],
};
static NOT: Object = Object {
    name: "notCondition",
    about: "Holds when its part does not.",
    closed: false,
    fields: &[
        field("type", Required, Shape::Choice(&["not"]), "Kind of condition."),
        field("condition", Required, Shape::Tagged(&CONDITION), "The part."),
    ],
};

// --- steps ----------------------------------------------------------------------------------------------------------

pub(crate) static STEP: Tagged = Tagged {
    name: "step",
    tag: "kind",
    choices: &[
        ("technique", &TECHNIQUE_STEP),
        ("action", &ACTION_STEP),
        ("checkpoint", &CHECKPOINT_STEP),
        ("loop", &LOOP_STEP),
    ],
};

static STEP_SHAPE: Shape = Shape::Tagged(&STEP);
static ACTION_SHAPE: Shape = Shape::Object(&ACTION);
static OPTION_SHAPE: Shape = Shape::Object(&OPTION);
const WHEN: Field = field("when", Optional, Shape::Text, "Inline gate, such as `count > 0 && mode == review`.");
const GATE: Field = field("condition", Optional, Shape::Tagged(&CONDITION), "Structured gate.");
const OPTIONAL_STEP: Field =
    field("required", Optional, Shape::OnlyFalse, "`false` marks a step that may be left out.");
const ACTIONS: Field =
    field("actions", Optional, Shape::List { of: &ACTION_SHAPE, least: 0 }, "What the agent carries out.");
const STEP_ID: Field = field("id", RequiredElsewhere, Shape::Text, "Id, unique among its neighbours.");

static TECHNIQUE_STEP: Object = Object {
    name: "techniqueStep",
    about: "A step that follows a technique.",
    closed: true,
    fields: &[
        field("kind", Required, Shape::Choice(&["technique"]), "Kind of step."),
        field("id", Optional, Shape::Text, "Without it, the last segment of the technique's name."),
        field(
            "technique",
            Required,
            Shape::Either(&[Shape::Text, Shape::Object(&BINDING)]),
            "The technique, or the technique with its deviations.",
        ),
        ACTIONS,
        WHEN,
        GATE,
        OPTIONAL_STEP,
    ],
};
static BINDING: Object = Object {
    name: "techniqueBinding",
    about: "A technique with inputs and outputs bound to other names or values.",
    closed: false,
    fields: &[
        field("name", Required, Shape::Text, "The technique."),
        field(
            "inputs",
            Optional,
            Shape::Map(&Shape::Either(&[Shape::Text, Shape::Number, Shape::Boolean])),
            "Input id to literal, `{variable}`, template or other name.",
        ),
        field("outputs", Optional, Shape::Map(&Shape::Text), "Output id to variable name."),
    ],
};
static ACTION_STEP: Object = Object {
    name: "actionStep",
    about: "A step without a technique.",
    closed: true,
    fields: &[
        field("kind", Required, Shape::Choice(&["action"]), "Kind of step."),
        STEP_ID,
        ACTIONS,
        WHEN,
        GATE,
        OPTIONAL_STEP,
    ],
};
static CHECKPOINT_STEP: Object = Object {
    name: "checkpointStep",
    about: "A question that a human decides.",
    closed: true,
    fields: &[
        field("kind", Required, Shape::Choice(&["checkpoint"]), "Kind of step."),
        STEP_ID,
        field("ref", Optional, Shape::Text, "A checkpoint fragment in place of message and options."),
        MESSAGE,
        OPTIONS,
        DEFAULT_OPTION,
        AUTO_ADVANCE,
        BLOCKING,
        field(
            "replay",
            Optional,
            Shape::Choice(&["visit", "session"]),
            "How long an answer is replayed instead of asking again; `visit` without it.",
        ),
        WHEN,
        GATE,
        OPTIONAL_STEP,
    ],
};
const MESSAGE: Field = field("message", Optional, Shape::Text, "The question.");
const OPTIONS: Field = field("options", Optional, Shape::List { of: &OPTION_SHAPE, least: 1 }, "The possible answers.");
const DEFAULT_OPTION: Field = field("defaultOption", Optional, Shape::Text, "Id of the option taken on auto-advance.");
const AUTO_ADVANCE: Field =
    field("autoAdvanceMs", Optional, Shape::Whole { least: 1 }, "Earliest auto-advance, in milliseconds.");
const BLOCKING: Field = field("blocking", Optional, Shape::Boolean, "Advice to the orchestrator to wait.");

/// Keys of a checkpoint step that a `ref` stands for.
pub(crate) const CHECKPOINT_BODY: [&str; 5] = ["message", "options", "defaultOption", "autoAdvanceMs", "blocking"];
/// Members of a checkpoint fragment in the order in which they are served.
pub(crate) const FRAGMENT_ORDER: [&str; 6] =
    ["condition", "message", "blocking", "defaultOption", "autoAdvanceMs", "options"];

static LOOP_STEP: Object = Object {
    name: "loopStep",
    about: "Steps that are repeated.",
    closed: true,
    fields: &[
        field("kind", Required, Shape::Choice(&["loop"]), "Kind of step."),
        STEP_ID,
        field("name", Optional, Shape::Text, "Display name."),
        field("loopType", Required, Shape::Choice(&["forEach", "while", "doWhile"]), "How it repeats."),
        field("variable", Optional, Shape::Text, "Variable bound in each round."),
        field("over", Optional, Shape::Text, "The collection, a path into the variables."),
        field("breakCondition", Optional, Shape::Tagged(&CONDITION), "Ends the loop early."),
        field("maxIterations", Optional, Shape::Whole { least: 1 }, "Upper bound, kept by the agent."),
        field("steps", Required, Shape::List { of: &STEP_SHAPE, least: 0 }, "The steps of one round."),
        WHEN,
        GATE,
        OPTIONAL_STEP,
    ],
};
static ACTION: Object = Object {
    name: "action",
    about: "Something the agent carries out.",
    closed: false,
    fields: &[
        field("action", Required, Shape::Choice(&["log", "validate", "set", "emit", "message"]), "What to do."),
        field("target", Optional, Shape::Text, "What it applies to; the variable of `set`."),
        field("message", Optional, Shape::Text, "Text."),
        field("value", Optional, Shape::Any, "A literal, unless written `\"{name}\"`."),
        field("description", Optional, Shape::Text, "Explains what to do."),
        field("condition", Optional, Shape::Tagged(&CONDITION), "Gate."),
    ],
};
static OPTION: Object = Object {
    name: "checkpointOption",
    about: "One possible answer.",
    closed: false,
    fields: &[
        field("id", Required, Shape::Text, "Id, unique in its checkpoint."),
        field("label", Required, Shape::Text, "Short text."),
        field("description", Optional, Shape::Text, "Long text."),
        field("effect", Optional, Shape::Object(&EFFECT), "What choosing it does."),
    ],
};
static EFFECT: Object = Object {
    name: "optionEffect",
    about: "What choosing an option does.",
    closed: false,
    fields: &[
        field("setVariable", Optional, Shape::Map(&Shape::Any), "Variables that the server writes."),
        field("transitionTo", Optional, Shape::Text, "Activity that follows."),
        field("skipActivities", Optional, TEXTS, "Activities that are left out."),
    ],
};

// --- activities -----------------------------------------------------------------------------------------------------

pub(crate) static ACTIVITY: Object = Object {
    name: "activity",
    about: "One activity of a workflow.",
    closed: true,
    fields: &[
        field("id", Required, Shape::Text, "Id of the activity; transitions name it."),
        field("version", Required, Shape::Formed(&VERSION), "Version of the definition."),
        field("name", Required, Shape::Text, "Display name."),
        field("description", Optional, Shape::Text, "What it is about."),
        field("techniques", Optional, TEXTS, "Techniques for the whole activity."),
        field("bundleTechniques", Optional, Shape::Object(&BUNDLE), "Limits what is delivered along."),
        field("steps", Optional, Shape::List { of: &STEP_SHAPE, least: 0 }, "The steps, in order."),
        field("decisions", Optional, Shape::List { of: &Shape::Object(&DECISION), least: 0 }, "Routing by branches."),
        field("transitions", Optional, Shape::List { of: &Shape::Object(&TRANSITION), least: 0 }, "Where it leads."),
        field("triggers", Optional, Shape::List { of: &Shape::Object(&TRIGGER), least: 0 }, "Workflows it starts."),
        field("outcome", Optional, TEXTS, "What is there when it is done."),
        field("required", Optional, Shape::Boolean, "Advice; true without it."),
        field("rules", Optional, TEXTS, "Rules for the worker."),
        field("artifactPrefix", Optional, Shape::Text, "Computed from the file name; do not write it."),
    ],
};
static BUNDLE: Object = Object {
    name: "bundleTechniques",
    about: "Limits what is delivered along.",
    closed: true,
    fields: &[field("maxChars", Required, Shape::Whole { least: 0 }, "Characters of one technique; 0 delivers none.")],
};
static DECISION: Object = Object {
    name: "decision",
    about: "A choice of branches that the orchestrator makes.",
    closed: false,
    fields: &[
        field("id", Required, Shape::Text, "Id."),
        field("name", Required, Shape::Text, "Display name."),
        field("description", Optional, Shape::Text, "What is decided."),
        field("branches", Required, Shape::List { of: &Shape::Object(&BRANCH), least: 2 }, "At least two branches."),
    ],
};
static BRANCH: Object = Object {
    name: "branch",
    about: "One branch of a decision.",
    closed: false,
    fields: &[
        field("id", Required, Shape::Text, "Id."),
        field("label", Required, Shape::Text, "Short text."),
        field("condition", Optional, Shape::Tagged(&CONDITION), "Gate."),
        field("transitionTo", Optional, Shape::Text, "Activity that follows."),
        field("isDefault", Optional, Shape::Boolean, "Taken when nothing else is."),
    ],
};
static TRANSITION: Object = Object {
    name: "transition",
    about: "Leads to another activity.",
    closed: false,
    fields: &[
        field("to", Required, Shape::Text, "Activity id or `__terminal__`."),
        field("condition", Optional, Shape::Tagged(&CONDITION), "Gate."),
        field("isDefault", Optional, Shape::Boolean, "Taken when nothing else is."),
    ],
};
static TRIGGER: Object = Object {
    name: "trigger",
    about: "A workflow that this activity starts.",
    closed: false,
    fields: &[
        field("workflow", Required, Shape::Text, "Workflow id."),
        field("description", Optional, Shape::Text, "When and why."),
        field("passContext", Optional, TEXTS, "Variables handed over by the orchestrator."),
    ],
};

// --- manifests ------------------------------------------------------------------------------------------------------

pub(crate) static MANIFEST: Object = Object {
    name: "workflow",
    about: "A workflow.",
    closed: false,
    fields: &[
        field("$schema", Optional, Shape::Text, "For editors."),
        field("id", Required, Shape::Text, "The name of its directory."),
        field("version", Required, Shape::Formed(&VERSION), "Version of the definition."),
        field("title", Required, Shape::Text, "Display name."),
        field("description", Optional, Shape::Text, "What it is for."),
        field("author", Optional, Shape::Text, "Who wrote it."),
        field("tags", Optional, TEXTS, "Words for finding it."),
        field("rules", Optional, Shape::Object(&RULES), "Rules by audience."),
        field("fragments", Optional, Shape::Object(&FRAGMENTS), "Shared rules and checkpoints."),
        field("variables", Optional, Shape::List { of: &Shape::Object(&VARIABLE), least: 0 }, "Session variables."),
        field("techniques", Optional, Shape::Object(&TECHNIQUES), "Techniques by audience."),
        field("initialActivity", Optional, Shape::Text, "First activity."),
        field(
            "activities",
            Optional,
            Shape::List { of: &Shape::Either(&[Shape::Text, Shape::Later(&ACTIVITY)]), least: 0 },
            "Further activities: borrowed by path, or written in place.",
        ),
        field("activitiesDir", Optional, Shape::Text, "Directory of the activity files; `activities` without it."),
    ],
};
static RULES: Object = Object {
    name: "workflowRules",
    about: "Rules by audience.",
    closed: false,
    fields: &[
        field("workflow", Optional, RULE_LIST, "For the orchestrator."),
        field("activity", Optional, RULE_LIST, "For every worker."),
        field("universal", Optional, RULE_LIST, "For both."),
    ],
};
const RULE_LIST: Shape = Shape::List { of: &Shape::Either(&[Shape::Text, Shape::Object(&RULE_REF)]), least: 0 };
static RULE_REF: Object = Object {
    name: "ruleReference",
    about: "Stands for a rule fragment.",
    closed: true,
    fields: &[field("ref", Required, Shape::Text, "`name` or `workflow::name`.")],
};
pub(crate) static FRAGMENTS: Object = Object {
    name: "fragments",
    about: "Shared rules and checkpoints.",
    closed: true,
    fields: &[
        field(
            "rules",
            Optional,
            Shape::Map(&Shape::Either(&[Shape::Text, Shape::List { of: &Shape::Text, least: 1 }])),
            "Rule texts by name.",
        ),
        field("checkpoints", Optional, Shape::Map(&Shape::Object(&CHECKPOINT_FRAGMENT)), "Checkpoint bodies by name."),
    ],
};
static CHECKPOINT_FRAGMENT: Object = Object {
    name: "checkpointFragment",
    about: "A checkpoint body that several steps share.",
    closed: true,
    fields: &[
        field("message", Required, Shape::Text, "The question."),
        field("options", Required, Shape::List { of: &OPTION_SHAPE, least: 1 }, "The possible answers."),
        DEFAULT_OPTION,
        AUTO_ADVANCE,
        BLOCKING,
        GATE,
    ],
};
static VARIABLE: Object = Object {
    name: "variable",
    about: "A session variable.",
    closed: false,
    fields: &[
        field("name", Required, Shape::Formed(&VARIABLE_NAME), "Name, two or more snake_case words."),
        field("type", Required, Shape::Choice(&["string", "number", "boolean", "array", "object"]), "Type."),
        field("description", Optional, Shape::Text, "What it holds."),
        field("defaultValue", Optional, Shape::Any, "Value at the start of a session."),
        field("required", Optional, Shape::Boolean, "For authors; nothing checks it."),
    ],
};
static TECHNIQUES: Object = Object {
    name: "workflowTechniques",
    about: "Techniques by audience.",
    closed: false,
    fields: &[
        field("workflow", Optional, TEXTS, "For the orchestrator."),
        field("activity", Optional, TEXTS, "For every activity."),
        field("core", OnlyMeta, Shape::Object(&CORE), "What the server adds for everybody; in `meta` only."),
    ],
};
static CORE: Object = Object {
    name: "coreTechniques",
    about: "What the server adds for everybody.",
    closed: true,
    fields: &[
        field("workflow", Optional, TEXTS, "For every orchestrator."),
        field("activity", Optional, TEXTS, "For every worker."),
    ],
};
