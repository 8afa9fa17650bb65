//! Front matter of markdown definitions: real YAML first, a forgiving line reader when that fails (spec 01 §7.1,
//! FIX-19).

use workflow_yaml::{Kind, LineIndex, Node};

/// What stands between the first two `---` lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FrontMatter {
    fields: Vec<Field>,
    /// Byte offset of the text behind it.
    pub(crate) body: usize,
    /// Number of the first line behind it, from 1.
    pub(crate) body_line: usize,
}

/// One scalar, with the keys that lead to it joined by dots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    path: String,
    /// As written, without quotes: `1.10` stays `1.10`.
    pub(crate) text: String,
    /// From 1.
    pub(crate) line: usize,
    /// From 1.
    pub(crate) column: usize,
}

impl FrontMatter {
    /// The scalar at a dotted path.
    pub(crate) fn get(&self, path: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.path == path)
    }

    /// The first scalar that lies below the top level and whose key is `key`.
    pub(crate) fn nested(&self, key: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.path.rsplit_once('.').is_some_and(|(_, last)| last == key))
    }
}

/// The front matter of a text with `\n` line ends and no byte order mark.
pub(crate) fn split(text: &str) -> Option<FrontMatter> {
    let mut start = None;
    let mut offset = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let fence = line.strip_prefix("---").is_some_and(|rest| rest.trim().is_empty());
        offset += line.len();
        match start {
            None if fence && line.ends_with('\n') => start = Some(offset),
            None => return None,
            Some(start) if fence => {
                let yaml = &text[start..offset - line.len()];
                return Some(FrontMatter { fields: fields(yaml), body: offset, body_line: number + 2 });
            }
            Some(_) => {}
        }
    }
    None
}

fn fields(yaml: &str) -> Vec<Field> {
    let document = workflow_yaml::parse(yaml);
    if document.has_errors() || document.root.as_mapping().is_none() {
        return lines(yaml);
    }
    let mut found = Vec::new();
    collect(yaml, &LineIndex::new(yaml), &document.root, "", &mut found);
    found
}

fn collect(yaml: &str, index: &LineIndex, node: &Node, path: &str, found: &mut Vec<Field>) {
    match &node.kind {
        Kind::Mapping(entries) => {
            for entry in entries {
                let dot = if path.is_empty() { "" } else { "." };
                collect(yaml, index, &entry.value, &format!("{path}{dot}{}", entry.key), found);
            }
        }
        Kind::Scalar(value) => {
            let text = value.as_str().or_else(|| node.span.slice(yaml)).unwrap_or_default().to_owned();
            let place = index.position(yaml, node.span.start);
            if !node.is_null() {
                found.push(Field { path: path.to_owned(), text, line: place.line + 1, column: place.column });
            }
        }
        Kind::Sequence(_) => {}
    }
}

/// `key: scalar` lines, and one level of maps by indentation.
fn lines(yaml: &str) -> Vec<Field> {
    let mut found = Vec::new();
    let mut map = None;
    for (number, line) in yaml.lines().enumerate() {
        let content = line.trim();
        let indent = line.len() - line.trim_start().len();
        let Some((key, value)) = content.split_once(':') else { continue };
        let key = key.trim_end();
        if content.starts_with('#') || !is_key(key) {
            continue;
        }
        let value = unquote(value.trim());
        let path = match (&map, indent) {
            (_, 0) if value.is_empty() => {
                map = Some(key.to_owned());
                continue;
            }
            (_, 0) => {
                map = None;
                key.to_owned()
            }
            (Some(map), 2..) => format!("{map}.{key}"),
            _ => continue,
        };
        let column = line.find(':').unwrap_or(0) + 1;
        found.push(Field { path, text: value.to_owned(), line: number + 2, column });
    }
    found
}

fn is_key(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.chars().all(|char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-'))
}

fn unquote(text: &str) -> &str {
    ['"', '\''].into_iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, path: &str, value: Option<&str>) {
        assert_eq!(split(text).and_then(|front| front.get(path).map(|field| field.text.clone())).as_deref(), value);
    }

    #[test]
    fn yaml_is_read_as_yaml() {
        check("---\nmetadata:\n  version: 1.0.0\n---\n", "metadata.version", Some("1.0.0"));
        check("---\nmetadata: {version: 1.0.0} # note\n---\n", "metadata.version", Some("1.0.0"));
        check("---\nversion: 1.10\n---\n", "version", Some("1.10"));
        check("---\nversion: \"2.0\"\n---\n", "version", Some("2.0"));
        check("---\nname: |\n  x\n---\n", "name", Some("x\n"));
        check("---  \nmetadata:\n  version:\n---\n", "metadata.version", None);
    }

    #[test]
    fn what_is_no_yaml_is_read_by_lines() {
        check(
            "---\ndescription: a: b: c\nmetadata:\n  # note\n  version: '1.0.0'\n---\n",
            "metadata.version",
            Some("1.0.0"),
        );
        check("---\nname: @home\n---\n", "name", Some("@home"));
        check("---\nname: @x\nmetadata:\n version: 1.0.0\n---\n", "metadata.version", None);
    }

    #[test]
    fn the_fences_decide() {
        assert_eq!(split("\n---\na: b\n---\n"), None);
        assert_eq!(split("---\na: b\n"), None);
        assert_eq!(split("--- x\na: b\n---\n"), None);
        let front = split("---\na: b\n---\n\nbody").unwrap();
        assert_eq!((front.body, front.body_line), (13, 4));
        let nested = split("---\na:\n  version: 1\nmetadata:\n  version: 2\n---\n").unwrap();
        assert_eq!(nested.nested("version").unwrap().text, "1");
    }
}
