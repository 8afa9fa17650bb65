//! Links from techniques to resources: rewriting when a file is read, qualifying when its text is served (spec 01
//! §7.6, FIX-27).

use std::borrow::Cow;

/// What a resource link names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Target {
    /// The workflow, when the link names one.
    pub(crate) workflow: Option<String>,
    /// The resource.
    pub(crate) slug: String,
    /// Without `#`.
    pub(crate) anchor: Option<String>,
}

impl Target {
    /// `[workflow/]slug[#anchor]`.
    pub(crate) fn id(&self) -> String {
        let mut id = self.workflow.as_ref().map(|workflow| format!("{workflow}/")).unwrap_or_default();
        id.push_str(&self.slug);
        if let Some(anchor) = &self.anchor {
            id.push('#');
            id.push_str(anchor);
        }
        id
    }
}

/// One link of a text, recognised as one to a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// What it names, as served in its own workflow.
    pub(crate) target: Target,
    /// Byte offset of the target in the text that was searched.
    pub(crate) offset: usize,
    /// Rewritten from a path; else it was written as `slug` already.
    pub(crate) rewritten: bool,
}

/// Rewrites relative paths into `resources/` to `[workflow/]slug[#anchor]`. The links have offsets in `body` and
/// include those that were written as a bare slug.
pub(crate) fn rewrite(body: &str) -> (String, Vec<Link>) {
    let mut text = String::with_capacity(body.len());
    let mut links = Vec::new();
    let mut copied = 0;
    for start in target_starts(body) {
        if let Some((length, target)) = path_target(&body[start..]) {
            text.push_str(&body[copied..start]);
            text.push_str(&target.id());
            copied = start + length;
            links.push(Link { target, offset: start, rewritten: true });
        } else if let Some((_, target)) = slug_target(&body[start..]) {
            links.push(Link { target, offset: start, rewritten: false });
        }
    }
    text.push_str(&body[copied..]);
    (text, links)
}

/// Puts `workflow/` in front of every bare link target for which `is_resource(slug)` holds.
pub(crate) fn qualify<'a>(text: &'a str, workflow: &str, is_resource: &dyn Fn(&str) -> bool) -> Cow<'a, str> {
    let mut result = String::new();
    let mut copied = 0;
    for start in target_starts(text) {
        if slug_target(&text[start..]).is_some_and(|(_, target)| target.workflow.is_none() && is_resource(&target.slug))
        {
            result.push_str(&text[copied..start]);
            result.push_str(workflow);
            result.push('/');
            copied = start;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    result.push_str(&text[copied..]);
    Cow::Owned(result)
}

/// Targets of the links of a served text that look like `[workflow/]slug[#anchor]`.
pub(crate) fn slug_targets(text: &str) -> impl Iterator<Item = Target> {
    target_starts(text).filter_map(|start| slug_target(&text[start..]).map(|(_, target)| target))
}

/// Offsets just behind each `[label](`; a label is not empty and has no `]`.
fn target_starts(text: &str) -> impl Iterator<Item = usize> {
    text.match_indices("](").filter_map(|(at, found)| {
        let before = &text[..at];
        let label = &before[before.rfind(']').map_or(0, |close| close + 1)..];
        label.find('[').is_some_and(|open| open + 1 < label.len()).then_some(at + found.len())
    })
}

fn word(text: &str) -> usize {
    text.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')).count()
}

/// `(\.\.?/)+([A-Za-z0-9_-]+/)?resources/slug.md(#anchor)?` followed by `)`: its length and meaning.
fn path_target(text: &str) -> Option<(usize, Target)> {
    let mut rest = text;
    while let Some(after) = rest.strip_prefix("../").or_else(|| rest.strip_prefix("./")) {
        rest = after;
    }
    if rest.len() == text.len() {
        return None;
    }
    let folder = word(rest);
    let named = (folder > 0).then(|| rest[folder..].strip_prefix('/')).flatten().and_then(resource_path);
    let (left, slug, anchor, workflow) = if let Some((left, slug, anchor)) = named {
        (left, slug, anchor, Some(rest[..folder].to_owned()))
    } else {
        let (left, slug, anchor) = resource_path(rest)?;
        (left, slug, anchor, None)
    };
    Some((text.len() - left, Target { workflow, slug: slug.to_owned(), anchor: anchor.map(str::to_owned) }))
}

/// `resources/slug.md(#anchor)?` followed by `)`: length of what is left from `)` on, slug, anchor.
fn resource_path(text: &str) -> Option<(usize, &str, Option<&str>)> {
    let rest = text.strip_prefix("resources/")?;
    let slug = word(rest);
    let after = rest[slug..].strip_prefix(".md")?;
    let (anchor, left) = anchor_of(after)?;
    (slug > 0).then_some((left.len(), &rest[..slug], anchor))
}

/// An optional `#anchor` in front of `)`.
fn anchor_of(text: &str) -> Option<(Option<&str>, &str)> {
    if text.starts_with(')') {
        return Some((None, text));
    }
    let rest = text.strip_prefix('#')?;
    let length = word(rest);
    (length > 0 && rest[length..].starts_with(')')).then(|| (Some(&rest[..length]), &rest[length..]))
}

/// `[workflow/]slug[#anchor]` followed by `)`.
fn slug_target(text: &str) -> Option<(usize, Target)> {
    let first = word(text);
    if first == 0 {
        return None;
    }
    let rest = &text[first..];
    let (workflow, slug, rest) = match rest.strip_prefix('/') {
        Some(second) => {
            let length = word(second);
            if length == 0 {
                return None;
            }
            (Some(text[..first].to_owned()), &second[..length], &second[length..])
        }
        None => (None, &text[..first], rest),
    };
    let (anchor, left) = anchor_of(rest)?;
    Some((text.len() - left.len(), Target { workflow, slug: slug.to_owned(), anchor: anchor.map(str::to_owned) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_rewrite(written: &str, served: &str) {
        assert_eq!(rewrite(written).0, served);
    }

    #[test]
    fn examples_of_the_specification() {
        check_rewrite("[a](../resources/log.md)", "[a](log)");
        check_rewrite("[a](../../resources/log.md#rows)", "[a](log#rows)");
        check_rewrite("[a](../../../meta/resources/style.md#tone)", "[a](meta/style#tone)");
        check_rewrite("[guide](../../meta/resources/guide.md#part-a)", "[guide](meta/guide#part-a)");
        check_rewrite("[a](./resources/log.md)", "[a](log)");
        for unchanged in [
            "[a](resources/log.md)",
            "[a](../resources/x/log.md)",
            "[op](./grp/op.md)",
            "[op](../util/op.md)",
            "[a](../resources/lo.g.md)",
            "[a](../resources/log.md \"title\")",
            "[a](../resources/log.md#)",
            "[](../resources/log.md)",
            "](../resources/log.md)",
            "[a] (../resources/log.md)",
        ] {
            check_rewrite(unchanged, unchanged);
        }
        check_rewrite("`[a](../resources/b.md)` [c](../resources/d.md)", "`[a](b)` [c](d)");
        check_rewrite("[a](../resources/resources/b.md)", "[a](resources/b)");
    }

    #[test]
    fn qualifies_bare_resources_only() {
        let known = |slug: &str| slug == "log";
        let check = |text: &str, served: &str| assert_eq!(qualify(text, "tea", &known), served);
        check("[a](log) and [b](log#x).", "[a](tea/log) and [b](tea/log#x).");
        check(
            "[a](other) [b](meta/log) [c](#log) [d](log.md) [e](https://log)",
            "[a](other) [b](meta/log) [c](#log) [d](log.md) [e](https://log)",
        );
    }

    #[test]
    fn links_say_where_they_are() {
        let (_, links) = rewrite("x [a](../resources/b.md#c) [d](e)");
        assert_eq!(links.len(), 2);
        assert_eq!((links[0].target.id(), links[0].offset, links[0].rewritten), ("b#c".to_owned(), 6, true));
        assert_eq!((links[1].target.id(), links[1].offset, links[1].rewritten), ("e".to_owned(), 31, false));
    }
}
