//! The session file (spec 03 §3.1) and the abstract execution state (spec 01 §11).

use serde_json::{Value, json};

use crate::decode::shape::{
    Field,
    Need::{self, Optional, Required},
    Object, Shape,
};
use crate::decode::tables::VERSION;

const fn field(name: &'static str, need: Need, shape: Shape, about: &'static str) -> Field {
    Field { name, need, shape, about }
}

fn not_empty() -> Value {
    json!({"type": "string", "minLength": 1})
}

fn timestamp() -> Value {
    json!({"type": "string", "format": "date-time"})
}

fn hash() -> Value {
    json!({"type": "string", "pattern": "^[0-9a-f]{16}$"})
}

fn session_index() -> Value {
    json!({"type": "string", "pattern": "^[A-Z2-7]{6}$"})
}

fn one() -> Value {
    json!({"const": 1})
}

fn only_true() -> Value {
    json!({"const": true})
}

fn distinct() -> Value {
    json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true})
}

const NOT_EMPTY: Shape = Shape::Written(not_empty);
const TIMESTAMP: Shape = Shape::Written(timestamp);
const DISTINCT: Shape = Shape::Written(distinct);
const HASHES: Shape = Shape::Map(&Shape::Map(&Shape::Written(hash)));
const VALUES: Shape = Shape::Map(&Shape::Any);
static EVENT_SHAPE: Shape = Shape::Object(&EVENT);
static CHILD_SHAPE: Shape = Shape::Object(&CHILD);
static RESPONSE_SHAPE: Shape = Shape::Object(&RESPONSE);
static DECLARED_SHAPE: Shape = Shape::Object(&DECLARED);
static QUESTION_OPTION_SHAPE: Shape = Shape::Object(&QUESTION_OPTION);

pub(super) static SESSION: Object = Object {
    name: "session-file",
    about: "A session, as it is kept next to the work.",
    closed: false,
    fields: &[
        field("schemaVersion", Required, Shape::Written(one), "Version of this format."),
        field("sessionIndex", Required, Shape::Written(session_index), "Names the session."),
        field("workflowId", Required, NOT_EMPTY, "The workflow."),
        field("workflowVersion", Required, Shape::Formed(&VERSION), "Its version when the session began."),
        field("agentId", Required, NOT_EMPTY, "The session's own agent."),
        field("seq", Required, Shape::Whole { least: 0 }, "One more with each write."),
        field("ts", Required, Shape::Whole { least: 0 }, "Unix seconds of the last write."),
        field("startedAt", Required, TIMESTAMP, "When the session began."),
        field("currentActivity", Optional, Shape::Text, "Where it is; `__terminal__` after the end."),
        field("currentTechnique", Optional, Shape::Text, "The technique read last."),
        field("condition", Optional, Shape::Text, "The transition condition claimed last."),
        field("activeCheckpoint", Optional, Shape::Object(&ACTIVE), "The question that is open."),
        field("variables", Optional, VALUES, "The variables."),
        field("completedActivities", Optional, DISTINCT, "In the order of first completion."),
        field("skippedActivities", Optional, DISTINCT, "Left out by an answer."),
        field("checkpointResponses", Optional, Shape::Map(&RESPONSE_SHAPE), "Answers by `<activity>-<checkpoint>`."),
        field("history", Optional, Shape::List { of: &EVENT_SHAPE, least: 0 }, "Events, in order."),
        field("status", Optional, Shape::Choice(&["running", "completed", "aborted"]), "Does it go on?"),
        field("triggeredWorkflows", Optional, Shape::List { of: &CHILD_SHAPE, least: 0 }, "Its children."),
        field("parentSession", Optional, Shape::Object(&SESSION), "Its parent when it began."),
        field("snapshotTrimmed", Optional, Shape::Written(only_true), "The snapshot of a parent lost older parts."),
        field("lastCall", Optional, Shape::Object(&LAST_CALL), "The last call that may be repeated."),
        field("planningFolderPath", Optional, Shape::Text, "Where the work is planned."),
        field("repo", Optional, NOT_EMPTY, "`owner/name`."),
        field("contextMode", Optional, Shape::Choice(&["persistent", "fresh"]), "Do agents keep what they read?"),
        field("deliveredContent", Optional, HASHES, "What each agent has read, by content key."),
        field(
            "declaredArtifacts",
            Optional,
            Shape::List { of: &DECLARED_SHAPE, least: 0 },
            "Files that were announced.",
        ),
    ],
};
static ACTIVE: Object = Object {
    name: "activeCheckpoint",
    about: "The question that is open.",
    closed: false,
    fields: &[
        field("checkpointId", Required, NOT_EMPTY, "As yielded."),
        field("activityId", Required, NOT_EMPTY, "Its activity."),
        field("yieldedAt", Required, TIMESTAMP, "When it was yielded."),
        field("adhoc", Optional, Shape::Object(&QUESTION), "A question that no definition holds."),
    ],
};
static QUESTION: Object = Object {
    name: "adhocQuestion",
    about: "A question that no definition holds.",
    closed: false,
    fields: &[
        field("message", Required, NOT_EMPTY, "The question."),
        field("options", Required, Shape::List { of: &QUESTION_OPTION_SHAPE, least: 2 }, "The possible answers."),
    ],
};
static QUESTION_OPTION: Object = Object {
    name: "adhocOption",
    about: "One possible answer.",
    closed: false,
    fields: &[
        field("id", Required, NOT_EMPTY, "Id."),
        field("label", Required, NOT_EMPTY, "Short text."),
        field("description", Optional, Shape::Text, "Long text."),
    ],
};
static RESPONSE: Object = Object {
    name: "checkpointResponse",
    about: "The answer to a checkpoint.",
    closed: false,
    fields: &[
        field("optionId", Required, Shape::Text, "The chosen option."),
        field("respondedAt", Required, TIMESTAMP, "When it was chosen."),
        field("effects", Optional, Shape::Object(&EFFECTS), "What it did."),
    ],
};
static EFFECTS: Object = Object {
    name: "responseEffects",
    about: "What an answer did.",
    closed: false,
    fields: &[
        field("variablesSet", Optional, VALUES, "Variables written."),
        field("transitionedTo", Optional, Shape::Text, "Activity that follows."),
        field("activitiesSkipped", Optional, Shape::List { of: &Shape::Text, least: 0 }, "Activities left out."),
    ],
};
static EVENT: Object = Object {
    name: "historyEvent",
    about: "Something that happened. Types that a newer server wrote are kept.",
    closed: false,
    fields: &[
        field("timestamp", Required, TIMESTAMP, "When."),
        field("type", Required, Shape::Text, "What."),
        field("activity", Optional, Shape::Text, "In which activity."),
        field("step", Optional, Shape::Whole { least: 1 }, "At which step."),
        field("checkpoint", Optional, Shape::Text, "At which checkpoint."),
        field("decision", Optional, Shape::Text, "At which decision."),
        field("loop", Optional, Shape::Text, "In which loop."),
        field("data", Optional, VALUES, "Details."),
        field("error", Optional, Shape::Object(&FAILURE), "What went wrong."),
    ],
};
static FAILURE: Object = Object {
    name: "failure",
    about: "What went wrong.",
    closed: false,
    fields: &[field("message", Required, Shape::Text, "Text."), field("code", Optional, Shape::Text, "Code.")],
};
static CHILD: Object = Object {
    name: "triggeredWorkflow",
    about: "A child session.",
    closed: false,
    fields: &[
        field("workflowId", Required, Shape::Text, "Its workflow."),
        field("sessionIndex", Required, Shape::Text, "Its name."),
        field("triggeredAt", Required, TIMESTAMP, "When it began."),
        field("triggeredFrom", Required, Shape::Object(&CHILD_ORIGIN), "What began it."),
        field("status", Required, Shape::Choice(&["running", "completed", "aborted", "error"]), "Does it go on?"),
        field("completedAt", Optional, TIMESTAMP, "When it ended."),
        field("returnedContext", Optional, VALUES, "What it returned."),
        field("state", Optional, Shape::Object(&SESSION), "Its session, when it is kept inside."),
    ],
};
static CHILD_ORIGIN: Object = Object {
    name: "triggerOrigin",
    about: "What began a child session.",
    closed: false,
    fields: &[
        field("activityId", Required, Shape::Text, "The activity."),
        field("stepIndex", Optional, Shape::Whole { least: 1 }, "The step."),
    ],
};
static LAST_CALL: Object = Object {
    name: "lastCall",
    about: "The last call that may be repeated without effect.",
    closed: false,
    fields: &[
        field("tool", Required, Shape::Text, "The tool."),
        field("arguments", Required, Shape::Written(hash), "Hash of its arguments."),
        field("seq", Required, Shape::Whole { least: 0 }, "`seq` after the call."),
        field("result", Required, Shape::Text, "What it answered."),
    ],
};
static DECLARED: Object = Object {
    name: "declaredArtifact",
    about: "A file that was announced.",
    closed: false,
    fields: &[
        field("id", Required, NOT_EMPTY, "Output id."),
        field("name", Required, NOT_EMPTY, "File name."),
        field("path", Optional, Shape::Text, "Where it is."),
    ],
};

pub(super) static STATE: Object = Object {
    name: "state",
    about: "The state of an execution, independent of how it is kept.",
    closed: true,
    fields: &[
        field("workflowId", Required, Shape::Text, "The workflow."),
        field("workflowVersion", Required, Shape::Formed(&VERSION), "Its version."),
        field("stateVersion", Required, Shape::Written(one), "Version of this format."),
        field("startedAt", Required, TIMESTAMP, "When it began."),
        field("updatedAt", Required, TIMESTAMP, "When it changed last."),
        field("completedAt", Optional, TIMESTAMP, "When it ended."),
        field("currentActivity", Optional, Shape::Text, "Where it is."),
        field("currentStep", Optional, Shape::Whole { least: 1 }, "At which step."),
        field("completedActivities", Required, DISTINCT, "In the order of first completion."),
        field("skippedActivities", Required, DISTINCT, "Left out."),
        field("completedSteps", Required, Shape::Map(&Shape::Any), "By activity."),
        field("checkpointResponses", Required, Shape::Map(&RESPONSE_SHAPE), "Answers by `<activity>-<checkpoint>`."),
        field("decisionOutcomes", Required, VALUES, "Branches taken, by decision."),
        field("activeLoops", Required, Shape::List { of: &Shape::Any, least: 0 }, "Loops that are running."),
        field("variables", Required, VALUES, "The variables."),
        field("history", Required, Shape::List { of: &EVENT_SHAPE, least: 0 }, "Events, in order."),
        field(
            "status",
            Required,
            Shape::Choice(&["running", "paused", "suspended", "completed", "aborted", "error"]),
            "Does it go on?",
        ),
        field("parentWorkflow", Optional, VALUES, "What began it."),
        field("triggeredWorkflows", Required, Shape::List { of: &Shape::Any, least: 0 }, "What it began."),
        field("lastError", Optional, Shape::Object(&FAILURE), "What went wrong last."),
    ],
};
