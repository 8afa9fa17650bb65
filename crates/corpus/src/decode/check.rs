//! Compares a tree with its shape and reports everything that does not fit.

use serde_json::Value;
use workflow_yaml::{Entry, Kind, Node};

use super::shape::{Field, Need, Object, Shape, Tagged};
use super::sink::{Path, Sink};
use crate::near::did_you_mean;

/// What the check of a file has to know besides the tables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context {
    /// Code of problems without a code of their own.
    pub(crate) code: &'static str,
    /// Is it a definition of `meta`?
    pub(crate) meta: bool,
}

/// Reports everything in `node` that does not fit `shape`.
pub(crate) fn check(node: &Node, shape: &Shape, path: &Path<'_>, context: Context, sink: &mut Sink<'_>) {
    match shape {
        Shape::Any | Shape::Written(_) => {}
        Shape::List { of, least } => list(node, of, *least, path, context, sink),
        Shape::Map(of) => match node.as_mapping() {
            Some(entries) => {
                for entry in entries {
                    check(&entry.value, of, &path.key(&entry.key), context, sink);
                }
            }
            None => mismatch(node, shape, path, context, sink),
        },
        Shape::Object(object) => match node.as_mapping() {
            Some(entries) => members(node, entries, object, path, context, sink),
            None => mismatch(node, shape, path, context, sink),
        },
        Shape::Later(_) if node.as_mapping().is_some() => {}
        Shape::Tagged(tagged) => tagged_object(node, tagged, path, context, sink),
        Shape::Either(shapes) => match shapes.iter().find(|shape| same_type(node, shape)) {
            Some(shape) => check(node, shape, path, context, sink),
            None => mismatch(node, shape, path, context, sink),
        },
        Shape::Formed(form) => match node.as_str() {
            Some(text) if (form.fits)(text) => {}
            _ => {
                let message = format!("expected {}, found {}", form.expected, found(node));
                let code = form.code.unwrap_or(context.code);
                sink.error(code, node.span, path, message).help = Some(match node.kind {
                    Kind::Scalar(Value::Number(_)) if form.code.is_none() => {
                        "a number is no version; write all three parts, as in 1.0.0".to_owned()
                    }
                    _ => format!("write for instance `{}`", form.example),
                });
            }
        },
        Shape::Choice(choices) => match node.as_str() {
            Some(text) if choices.contains(&text) => {}
            Some(text) => {
                let message = format!("expected {}, found `{text}`", expected(shape));
                let near = did_you_mean(text, choices.iter().copied());
                sink.error(context.code, node.span, path, message).help = near.or_else(|| Some(how(shape)));
            }
            None => mismatch(node, shape, path, context, sink),
        },
        Shape::OnlyFalse => match node.as_scalar() {
            Some(Value::Bool(false)) => {}
            Some(Value::Bool(true)) => {
                let message = "only `false` may stand here".to_owned();
                let help = "steps are required unless they say otherwise; remove the key";
                sink.error(context.code, node.span, path, message).help = Some(help.to_owned());
            }
            _ => mismatch(node, shape, path, context, sink),
        },
        Shape::Whole { least } => match node.as_scalar().and_then(whole) {
            Some(number) if number >= *least => {}
            _ => mismatch(node, shape, path, context, sink),
        },
        Shape::Text | Shape::Boolean | Shape::Null | Shape::Number | Shape::Later(_) => {
            if !same_type(node, shape) {
                mismatch(node, shape, path, context, sink);
            }
        }
    }
}

fn list(node: &Node, of: &Shape, least: usize, path: &Path<'_>, context: Context, sink: &mut Sink<'_>) {
    let Some(items) = node.as_sequence() else {
        let message = format!("expected a list, found {}", found(node));
        sink.error(context.code, node.span, path, message).help = Some(LIST.to_owned());
        return;
    };
    if items.len() < least {
        let message =
            format!("expected at least {least} item{}, found {}", if least == 1 { "" } else { "s" }, items.len());
        let help = if least == 1 { "add one" } else { "add another: one alone combines and decides nothing" };
        sink.error(context.code, node.span, path, message).help = Some(help.to_owned());
    }
    for (position, item) in items.iter().enumerate() {
        check(item, of, &path.item(position), context, sink);
    }
}

fn members(node: &Node, entries: &[Entry], object: &Object, path: &Path<'_>, context: Context, sink: &mut Sink<'_>) {
    for field in object.fields {
        if field.need == Need::Required && !entries.iter().any(|entry| entry.key == field.name) {
            let message = format!("the key `{}` is missing", field.name);
            sink.error(context.code, node.span, &path.key(field.name), message).help = Some(addition(field));
        }
    }
    for entry in entries {
        match object.field(&entry.key) {
            Some(field) if field.need != Need::OnlyMeta || context.meta => {
                check(&entry.value, &field.shape, &path.key(&entry.key), context, sink);
            }
            known => {
                let message = format!("unknown key `{}`", entry.key);
                let place = path.key(&entry.key);
                let diagnostic = if object.closed {
                    sink.error(context.code, entry.key_span, &place, message)
                } else {
                    sink.warning("workflow.unknown-key", entry.key_span, &place, message)
                };
                diagnostic.help = if known.is_some() {
                    Some("only the workflow `meta` may have it".to_owned())
                } else {
                    let names = object.fields.iter().map(|field| field.name);
                    did_you_mean(&entry.key, names.clone())
                        .or_else(|| Some(format!("known keys: {}", names.collect::<Vec<_>>().join(", "))))
                };
            }
        }
    }
}

fn tagged_object(node: &Node, tagged: &Tagged, path: &Path<'_>, context: Context, sink: &mut Sink<'_>) {
    let Some(entries) = node.as_mapping() else {
        let message = format!("expected a map, found {}", found(node));
        sink.error(context.code, node.span, path, message).help =
            Some(format!("write `{}: …` there, and the other keys below it", tagged.tag));
        return;
    };
    let names: Vec<&str> = tagged.choices.iter().map(|(name, _)| *name).collect();
    let one_of = names.join(", ");
    let Some(tag) = node.get(tagged.tag) else {
        let message = format!("the key `{}` is missing; it is one of {one_of}", tagged.tag);
        let help = format!("add `{}: {}`, or another of these", tagged.tag, names.first().unwrap_or(&"…"));
        sink.error(context.code, node.span, &path.key(tagged.tag), message).help = Some(help);
        return;
    };
    let object = tag.as_str().and_then(|text| tagged.choices.iter().find(|(name, _)| *name == text));
    if let Some((_, object)) = object {
        members(node, entries, object, path, context, sink);
    } else {
        let message = format!("expected one of {one_of}, found {}", found(tag));
        let help = tag.as_str().and_then(|text| did_you_mean(text, names));
        let help = help.or_else(|| Some("write one of these".to_owned()));
        sink.error(context.code, tag.span, &path.key(tagged.tag), message).help = help;
    }
}

/// A whole number, also one written with a fraction of zero.
pub(crate) fn whole(value: &Value) -> Option<u64> {
    let written = |number: f64| (number.fract() == 0.0).then(|| format!("{number:.0}"))?.parse().ok();
    value.as_u64().or_else(|| value.as_f64().and_then(written))
}

/// Is the node of the JSON type that the shape begins with?
fn same_type(node: &Node, shape: &Shape) -> bool {
    match shape {
        Shape::Any | Shape::Written(_) => true,
        Shape::Text | Shape::Formed(_) | Shape::Choice(_) => node.type_name() == "string",
        Shape::Boolean | Shape::OnlyFalse => node.type_name() == "boolean",
        Shape::Whole { .. } | Shape::Number => node.type_name() == "number",
        Shape::Null => node.is_null(),
        Shape::List { .. } => node.as_sequence().is_some(),
        Shape::Map(_) | Shape::Object(_) | Shape::Tagged(_) | Shape::Later(_) => node.as_mapping().is_some(),
        Shape::Either(shapes) => shapes.iter().any(|shape| same_type(node, shape)),
    }
}

fn mismatch(node: &Node, shape: &Shape, path: &Path<'_>, context: Context, sink: &mut Sink<'_>) {
    let message = format!("expected {}, found {}", expected(shape), found(node));
    let diagnostic = sink.error(context.code, node.span, path, message);
    diagnostic.help = match (shape, &node.kind) {
        (Shape::Boolean | Shape::OnlyFalse, Kind::Scalar(Value::String(text)))
            if matches!(text.to_ascii_lowercase().as_str(), "yes" | "no" | "on" | "off" | "y" | "n") =>
        {
            Some("in YAML 1.2 only true and false are booleans".to_owned())
        }
        (Shape::Text | Shape::Choice(_), Kind::Scalar(Value::Number(_) | Value::Bool(_))) => {
            Some("put the value in quotes".to_owned())
        }
        (_, Kind::Scalar(Value::Null)) => Some("give it a value or remove the key".to_owned()),
        _ => Some(how(shape)),
    };
}

/// How to write a list.
const LIST: &str = "write one item a line, each behind `- `";

/// How to write what is expected.
fn how(shape: &Shape) -> String {
    match shape {
        Shape::Text | Shape::Any | Shape::Written(_) => "write one text".to_owned(),
        Shape::Formed(form) => format!("write for instance `{}`", form.example),
        Shape::Choice([only]) => format!("write `{only}`"),
        Shape::Choice(_) => "write one of these".to_owned(),
        Shape::Boolean => "write `true` or `false`, without quotes".to_owned(),
        Shape::OnlyFalse => "write `false`, or remove the key".to_owned(),
        Shape::Whole { least } => format!("write a number such as {}, without quotes", least.max(&1)),
        Shape::Number => "write a number, without quotes".to_owned(),
        Shape::Null => "write `null`".to_owned(),
        Shape::List { .. } => LIST.to_owned(),
        Shape::Map(_) | Shape::Object(_) | Shape::Tagged(_) | Shape::Later(_) => {
            "write `key: value` lines below it, indented".to_owned()
        }
        Shape::Either(_) => "write one of the two, or remove the key".to_owned(),
    }
}

/// What to add for a key that is missing.
pub(crate) fn addition(field: &Field) -> String {
    let example = match &field.shape {
        Shape::Formed(form) => form.example,
        Shape::Choice([only]) => only,
        _ => "…",
    };
    format!("add `{}: {example}`, {}: {}", field.name, expected(&field.shape), field.about)
}

fn expected(shape: &Shape) -> String {
    match shape {
        Shape::Any | Shape::Written(_) => "any value".to_owned(),
        Shape::Text => "a string".to_owned(),
        Shape::Formed(form) => form.expected.to_owned(),
        Shape::Choice(choices) => match choices {
            [only] => format!("`{only}`"),
            _ => format!("one of {}", choices.join(", ")),
        },
        Shape::Boolean => "true or false".to_owned(),
        Shape::OnlyFalse => "false".to_owned(),
        Shape::Whole { least } => format!("a whole number from {least}"),
        Shape::Number => "a number".to_owned(),
        Shape::Null => "null".to_owned(),
        Shape::List { .. } => "a list".to_owned(),
        Shape::Map(_) | Shape::Object(_) | Shape::Tagged(_) | Shape::Later(_) => "a map".to_owned(),
        Shape::Either(shapes) => shapes.iter().map(expected).collect::<Vec<_>>().join(" or "),
    }
}

fn found(node: &Node) -> String {
    match &node.kind {
        Kind::Sequence(_) => "a list".to_owned(),
        Kind::Mapping(_) => "a map".to_owned(),
        Kind::Scalar(Value::Null) => "nothing".to_owned(),
        Kind::Scalar(Value::String(text)) => {
            let short: String = text.chars().take(40).collect();
            let more = if short.len() < text.len() { "…" } else { "" };
            format!("the string `{short}{more}`")
        }
        Kind::Scalar(Value::Bool(value)) => format!("the boolean {value}"),
        Kind::Scalar(value) => format!("the number {value}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileId;
    use crate::decode::tables::{ACTIVITY, MANIFEST};
    use crate::source::SourceFile;

    /// Nodes of every kind, as they are written where something else is wanted.
    const WRONG: [&str; 11] = [
        "x y",
        "''",
        "1",
        "1.5",
        "-1",
        "true",
        "null",
        "[]",
        "[x, 1, {}]",
        "{}",
        "{x y: 1, kind: x, type: x, action: x}",
    ];

    /// Whatever is wrong with a value, whatever is wanted in its place: the diagnostic says what to do.
    #[test]
    fn every_mismatch_says_what_to_do() {
        let mut seen = 0;
        let tops = [Shape::Object(&ACTIVITY), Shape::Object(&MANIFEST)];
        let mut shapes: Vec<&Shape> = tops.iter().collect();
        let mut objects: Vec<*const Object> = Vec::new();
        while let Some(shape) = shapes.pop() {
            let text =
                |yaml: &str| SourceFile::from_bytes(FileId { root: 0, path: "w/f.yaml".to_owned() }, yaml.into());
            for wrong in WRONG {
                let file = text(wrong);
                let mut sink = Sink::new("w", &file);
                let context = Context { code: "a.b", meta: false };
                check(&file.yaml().root, shape, &Path::Root, context, &mut sink);
                for found in &sink.found {
                    seen += 1;
                    let help = found.help.as_deref().unwrap_or_default();
                    assert!(!help.is_empty(), "{wrong}: {found}");
                }
            }
            let mut object = |object: &'static Object, shapes: &mut Vec<&Shape>| {
                if !objects.contains(&std::ptr::from_ref(object)) {
                    objects.push(object);
                    shapes.extend(object.fields.iter().map(|field| &field.shape));
                }
            };
            match shape {
                Shape::List { of, .. } | Shape::Map(of) => shapes.push(of),
                Shape::Object(inner) | Shape::Later(inner) => object(inner, &mut shapes),
                Shape::Tagged(tagged) => tagged.choices.iter().for_each(|(_, inner)| object(inner, &mut shapes)),
                Shape::Either(either) => shapes.extend(either.iter()),
                _ => {}
            }
        }
        assert!(objects.len() > 20 && seen > 500, "{} objects, {seen} problems", objects.len());
    }

    #[test]
    fn a_missing_key_is_told_with_its_type() {
        for (name, expected) in [
            ("id", "add `id: …`, a string: Id of the activity; transitions name it."),
            ("version", "add `version: 1.0.0`, a version of the form X.Y.Z: Version of the definition."),
        ] {
            assert_eq!(addition(ACTIVITY.field(name).unwrap()), expected);
        }
    }
}
