//! Text to tree. The only file that knows the parser library.

use granit_parser::{ErrorKind, Event, Options, Parser, ScalarStyle, ScanError, StructureStyle};

use crate::build::{Builder, CollectionEvent, Limits, ScalarEvent, Stop};
use crate::position::Span;
use crate::scalar::Tag;
use crate::tree::{Document, Node, Severity, Style};

/// Reads a text with the default limits.
///
/// Never fails and never panics: what is wrong with the text is among the problems (spec 01 §2).
pub fn parse(text: &str) -> Document {
    parse_with(text, &Limits::default())
}

/// Reads a text with the given limits.
pub fn parse_with(text: &str, limits: &Limits) -> Document {
    let mut builder = Builder::new(*limits);
    if text.len() > limits.bytes {
        let message = format!("the text is longer than {} bytes", limits.bytes);
        builder.problem(Severity::Error, Span::empty(0), message, None);
    } else {
        // Stopping early is not an error of its own; its reason is among the problems.
        let (Ok(()) | Err(Stop)) = read(text, limits, &mut builder);
    }
    let (root, problems) = builder.finish();
    let nothing =
        || Node::null(Span::empty(if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len_utf8() } else { 0 }));
    Document { root: root.unwrap_or_else(nothing), problems }
}

const BYTE_ORDER_MARK: char = '\u{feff}';
const STANDARD_TAGS: &str = "tag:yaml.org,2002:";
const CORE_TAGS: [&str; 7] = ["str", "int", "float", "bool", "null", "map", "seq"];

fn read(text: &str, limits: &Limits, builder: &mut Builder) -> Result<(), Stop> {
    let mut options = Options::default();
    options.set_emit_comments(false);
    options.emit_unresolved_aliases = true;
    // One more than ours, so that our own check, which counts both kinds together, is the one that speaks.
    options.flow_nesting_limit = limits.safe_depth() + 1;
    options.block_nesting_limit = limits.safe_depth() + 1;

    let mut parser = Parser::new_from_str_with_options(text, options);
    let mut documents = 0;
    // Where the last event ended: the indicator of a block scalar is searched from here.
    let mut seen = 0;
    while let Some(next) = parser.next_event() {
        let (event, place) = match next {
            Ok(next) => next,
            Err(error) => {
                report(text, &error, limits, builder);
                return Err(Stop);
            }
        };
        let mut span = place.byte_range().map_or(Span::empty(seen), |range| Span::new(range.start, range.end));
        let tag_span =
            place.tag_span().and_then(|tag| tag.byte_range()).map_or(span, |tag| Span::new(tag.start, tag.end));
        match event {
            Event::DocumentStart(is_explicit, version) => {
                documents += 1;
                if documents > 1 {
                    let help = "keep one document per file";
                    builder.problem(Severity::Error, span, "a second document in one file".to_owned(), Some(help));
                    return Err(Stop);
                }
                if let Some(version) = version.filter(|version| (version.major, version.minor) != (1, 2)) {
                    let message = format!("YAML {}.{} is read as YAML 1.2", version.major, version.minor);
                    builder.problem(Severity::Warning, span, message, None);
                }
                if !is_explicit {
                    // This span is that of the first value; an indicator may stand before it.
                    continue;
                }
            }
            Event::Scalar(value, style, anchor, tag) => {
                let style = scalar_style(style);
                let span = match style {
                    Style::Literal | Style::Folded => block_scalar_span(text, seen, span),
                    Style::Plain if span.is_empty() => left_out_span(text, span),
                    _ => span,
                };
                builder.scalar(&ScalarEvent {
                    text: &value,
                    span,
                    style,
                    tag: tag_of(tag.as_deref()),
                    tag_span,
                    anchor,
                })?;
            }
            Event::SequenceStart(style, anchor, tag) => {
                if style == StructureStyle::Block && builder.is_in_mapping() {
                    // The parser puts a list that is not indented under its key at its first item.
                    span = Span::empty(indicator_offset(text, seen, &['-']).unwrap_or(span.start).min(span.start));
                }
                builder.open(&collection(false, style, anchor, tag.as_deref(), span, tag_span))?;
            }
            Event::MappingStart(style, anchor, tag) => {
                builder.open(&collection(true, style, anchor, tag.as_deref(), span, tag_span))?;
            }
            // A block collection ends with its content; the parser sees that only at the next token.
            Event::SequenceEnd | Event::MappingEnd => builder.close((!span.is_empty()).then_some(span.end))?,
            Event::Alias(anchor) => builder.alias(anchor, span)?,
            Event::UnresolvedAlias(name) => builder.unknown_alias(&name, span)?,
            _ => {}
        }
        seen = seen.max(span.end);
    }
    Ok(())
}

fn collection(
    is_mapping: bool,
    style: StructureStyle,
    anchor: usize,
    tag: Option<&granit_parser::Tag>,
    span: Span,
    tag_span: Span,
) -> CollectionEvent {
    let style = match style {
        StructureStyle::Flow => Style::Flow,
        StructureStyle::Block => Style::Block,
    };
    CollectionEvent { is_mapping, span, style, tag: tag_of(tag), tag_span, anchor }
}

fn scalar_style(style: ScalarStyle) -> Style {
    match style {
        ScalarStyle::Plain => Style::Plain,
        ScalarStyle::SingleQuoted => Style::SingleQuoted,
        ScalarStyle::DoubleQuoted => Style::DoubleQuoted,
        ScalarStyle::Literal => Style::Literal,
        ScalarStyle::Folded => Style::Folded,
    }
}

fn tag_of(tag: Option<&granit_parser::Tag>) -> Tag {
    let Some(tag) = tag else { return Tag::None };
    let full = format!("{}{}", tag.handle(), tag.suffix());
    match full.strip_prefix(STANDARD_TAGS) {
        Some(name) if CORE_TAGS.contains(&name) => Tag::Core(name.to_owned()),
        None if full == "!" => Tag::NonSpecific,
        _ => Tag::Unknown(tag.original()),
    }
}

/// Returns the span of a block scalar from its indicator to the end of its last line of text.
///
/// The parser's span covers only the content, and the blank lines after it.
fn block_scalar_span(text: &str, seen: usize, content: Span) -> Span {
    let start = indicator_offset(text, seen, &['|', '>']).unwrap_or(content.start).min(content.start);
    let body = text.get(start..content.end).unwrap_or("");
    let used = body.trim_end().len();
    let line_end = body.get(used..).and_then(|rest| rest.find(['\n', '\r'])).map_or(body.len(), |length| used + length);
    Span::new(start, start + line_end)
}

/// Finds one of the indicators behind the comments, other indicators, tags and anchors that may precede it.
fn indicator_offset(text: &str, from: usize, indicators: &[char]) -> Option<usize> {
    let mut offset = from;
    loop {
        let rest = text.get(offset..)?;
        offset += match rest.chars().next()? {
            found if indicators.contains(&found) => return Some(offset),
            '#' => rest.find(['\n', '\r'])?,
            '&' | '!' => rest.find([' ', '\t', '\n', '\r'])?,
            other => other.len_utf8(),
        };
    }
}

/// Returns the place of a value that was left out: after the colon rather than before it.
fn left_out_span(text: &str, span: Span) -> Span {
    let after_colon = text.get(span.end..).is_some_and(|rest| rest.starts_with(':'));
    Span::empty(span.end + usize::from(after_colon))
}

/// Finds the tab an error is about: the parser may stop before the text that holds it, or after the tab.
fn tab_offset(text: &str, offset: usize) -> usize {
    let (before, after) = text.split_at_checked(offset).unwrap_or((text, ""));
    let blanks = before.len() - before.trim_end_matches([' ', '\t']).len();
    let in_blanks = before.get(offset - blanks..).and_then(|blanks| blanks.find('\t')).map(|at| offset - blanks + at);
    if after.starts_with('\t') {
        return offset;
    }
    in_blanks.or_else(|| after.find('\t').map(|at| offset + at)).unwrap_or(offset)
}

/// Turns a syntax error into a problem that points at the character and says what to do.
fn report(text: &str, error: &ScanError, limits: &Limits, builder: &mut Builder) {
    let mut offset = text.floor_char_boundary(error.marker().byte_offset().unwrap_or(text.len()));
    let rest = text.get(offset..).unwrap_or("");
    let mut message = error.info();
    let mut help = None;
    match error.kind() {
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabInPlainScalar
        | ErrorKind::TabAtBlockScalarStart => {
            offset = tab_offset(text, offset);
            "a tab where only spaces may stand".clone_into(&mut message);
            help = Some("indent with spaces");
        }
        ErrorKind::UnexpectedCharacter { character } => {
            offset += rest.find(*character).unwrap_or(0);
            if character.is_control() {
                message = format!("the control character U+{:04X} is not allowed here", u32::from(*character));
                help = Some("write it as an escape in double quotes");
            } else {
                message = format!("a value cannot start with `{character}`");
                help = Some("put the value in quotes");
            }
        }
        ErrorKind::MappingValueNotAllowed => {
            "a `:` where no key can stand".clone_into(&mut message);
            help = Some(
                "put a value that contains `: ` in quotes; put a second key on its own line, indented as the first",
            );
        }
        ErrorKind::UnclosedQuotedScalar => help = Some("close the quote"),
        ErrorKind::InvalidTrailingSingleQuotedScalar | ErrorKind::InvalidTrailingDoubleQuotedScalar => {
            help = Some(
                "the quoted text ends here; look for a quote that is not closed, maybe lines above, or one too many",
            );
        }
        ErrorKind::UnclosedFlowCollection { .. } => help = Some("close the bracket"),
        ErrorKind::RecursionLimitExceeded => {
            message = format!("lists and maps nest deeper than {} levels", limits.safe_depth());
            help = Some(crate::build::FLATTER);
        }
        _ => {}
    }
    let length = text
        .get(offset..)
        .and_then(|rest| rest.chars().next())
        .filter(|c| !matches!(c, '\n' | '\r'))
        .map_or(0, char::len_utf8);
    builder.problem(Severity::Error, Span::new(offset, offset + length), message, help);
}
