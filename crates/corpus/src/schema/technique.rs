//! The technique object, as it is delivered (spec 01 §7.5).

use crate::decode::shape::{
    Field, Form,
    Need::{self, Optional, Required},
    Object, Shape,
};
use crate::decode::tables::VERSION;
use crate::technique::is_artifact_name;

const fn field(name: &'static str, need: Need, shape: Shape, about: &'static str) -> Field {
    Field { name, need, shape, about }
}

static ARTIFACT_NAME: Form = Form {
    pattern: r"^(?:[A-Za-z0-9._-]|\{[A-Za-z0-9._$-]+\})+\.[A-Za-z0-9]+$",
    fits: is_artifact_name,
    expected: "one file name with an extension",
    example: "plan.md",
    code: None,
};

static INPUT: Shape = Shape::Object(&INPUT_ITEM);
static OUTPUT: Shape = Shape::Object(&OUTPUT_ITEM);
static BLOCK: Shape = Shape::Object(&PROTOCOL_BLOCK);

pub(super) static TECHNIQUE: Object = Object {
    name: "technique",
    about: "A technique.",
    closed: true,
    fields: &[
        field("id", Required, Shape::Text, "Id, from the path of its file."),
        field("version", Required, Shape::Formed(&VERSION), "Version of the definition."),
        field("capability", Required, Shape::Text, "What it does."),
        field("provenance_note", Optional, Shape::Text, "How a step binds it; on delivery only."),
        field("inputs", Optional, Shape::List { of: &INPUT, least: 0 }, "What it reads."),
        field("inherited_inputs", Optional, Shape::Object(&INHERITED_INPUTS), "From its contracts; on delivery only."),
        field("protocol", Optional, Shape::List { of: &BLOCK, least: 0 }, "What to do."),
        field("outputs", Optional, Shape::List { of: &OUTPUT, least: 0 }, "What it yields."),
        field(
            "inherited_outputs",
            Optional,
            Shape::Object(&INHERITED_OUTPUTS),
            "From its contracts; on delivery only.",
        ),
        field(
            "rules",
            Optional,
            Shape::Map(&Shape::Either(&[Shape::Text, Shape::List { of: &Shape::Text, least: 0 }])),
            "Rules by name.",
        ),
        field("content_hash", Optional, Shape::Text, "Names this content in later references; on delivery only."),
    ],
};
static INPUT_ITEM: Object = Object {
    name: "inputItem",
    about: "One input.",
    closed: true,
    fields: &[
        field("id", Required, Shape::Text, "Id."),
        field("description", Optional, Shape::Text, "What it is."),
        field("default", Optional, Shape::Text, "Value when nothing provides one."),
        field("components", Optional, Shape::Map(&Shape::Text), "Parts by name."),
        field("source", Optional, Shape::Text, "Where its value comes from; on delivery only."),
    ],
};
static OUTPUT_ITEM: Object = Object {
    name: "outputItem",
    about: "One output.",
    closed: true,
    fields: &[
        field("id", Required, Shape::Text, "Id."),
        field("description", Optional, Shape::Text, "What it is."),
        field("components", Optional, Shape::Map(&Shape::Text), "Parts by name."),
        field("artifact", Optional, Shape::Object(&ARTIFACT), "The file it is written to."),
        field("audience", Optional, Shape::Choice(&["human", "agent"]), "Who reads the file."),
        field("destination", Optional, Shape::Text, "Where its value goes; on delivery only."),
    ],
};
static ARTIFACT: Object = Object {
    name: "outputArtifact",
    about: "The file an output is written to.",
    closed: true,
    fields: &[
        field("name", Required, Shape::Formed(&ARTIFACT_NAME), "File name."),
        field("action", Optional, Shape::Choice(&["create", "update"]), "Is the file new?"),
    ],
};
static PROTOCOL_BLOCK: Object = Object {
    name: "protocolBlock",
    about: "Steps under one title.",
    closed: true,
    fields: &[
        field("title", Optional, Shape::Text, "Title."),
        field("steps", Required, Shape::List { of: &Shape::Text, least: 0 }, "The steps."),
    ],
};
static INHERITED_INPUTS: Object = Object {
    name: "inheritedInputs",
    about: "Inputs of the contracts.",
    closed: true,
    fields: &[
        field("note", Required, Shape::Text, "How to read them."),
        field("items", Required, Shape::List { of: &INPUT, least: 0 }, "The inputs."),
    ],
};
static INHERITED_OUTPUTS: Object = Object {
    name: "inheritedOutputs",
    about: "Outputs of the contracts.",
    closed: true,
    fields: &[
        field("note", Required, Shape::Text, "How to read them."),
        field("items", Required, Shape::List { of: &OUTPUT, least: 0 }, "The outputs."),
    ],
};
