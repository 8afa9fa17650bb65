//! The log: one line per event on stderr, JSON unless asked otherwise (spec 04 §8). Stdout is never touched.

use std::fmt;
use std::io::{IsTerminal as _, Write as _};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, registry};
use workflow_engine::Timestamp;

use crate::plain::{plain, plain_lines};

/// Longest text of one field, in characters.
const FIELD: usize = 8192;

/// Target of audit lines.
const AUDIT: &str = "audit";

/// How lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// One JSON object per line.
    Json,
    /// For people.
    Text,
}

/// Starts logging, and turns panics into one line each.
pub(crate) fn start(level: &str, format: Format) {
    // The SDK writes whole requests at its debug level; arguments belong in no log (spec 04 §8).
    let sdk = if matches!(level, "debug" | "trace") { "info" } else { "error" };
    let filter = EnvFilter::new(format!("{level},rmcp={sdk}"));
    // A second start in one process (tests) keeps the first.
    drop(registry().with(filter).with(Lines { format }).try_init());
    std::panic::set_hook(Box::new(move |panic| {
        let mut fields = Map::new();
        let text = panic.payload_as_str().unwrap_or("panic without a message");
        fields.insert("error".to_owned(), text.into());
        if let Some(place) = panic.location() {
            fields.insert("location".to_owned(), format!("{}:{}", place.file(), place.line()).into());
        }
        write(format, "error", "internal error", fields);
    }));
}

struct Lines {
    format: Format,
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let metadata = event.metadata();
        let kind = if metadata.target() == AUDIT { AUDIT } else { name(*metadata.level()) };
        write(self.format, kind, &fields.message, fields.rest);
    }
}

fn name(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    }
}

fn write(format: Format, kind: &str, message: &str, fields: Map<String, Value>) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    let now = Timestamp(i64::try_from(now).unwrap_or(i64::MAX)).text();
    let line = match format {
        Format::Json => {
            let mut line = Map::new();
            line.insert("type".to_owned(), kind.into());
            line.insert("timestamp".to_owned(), now.into());
            if !message.is_empty() {
                line.insert("message".to_owned(), message.into());
            }
            line.extend(fields);
            format!("{}\n", Value::Object(line))
        }
        Format::Text => {
            let mut line = format!("{now} {kind:<5} {message}");
            for (name, value) in fields {
                line.push_str(&format_field(&name, &value));
            }
            format!("{}\n", plain(&line))
        }
    };
    // JSON escapes what a program could stumble over, not all that a terminal obeys.
    let mut out = std::io::stderr().lock();
    let line = if out.is_terminal() { plain_lines(&line) } else { line };
    // One write, so that lines of several threads do not mix; a closed stderr is nobody's problem.
    drop(out.write_all(line.as_bytes()));
}

fn format_field(name: &str, value: &Value) -> String {
    match value {
        Value::String(text) if !text.contains(' ') => format!(" {name}={text}"),
        other => format!(" {name}={other}"),
    }
}

#[derive(Default)]
struct Fields {
    message: String,
    rest: Map<String, Value>,
}

impl Fields {
    fn add(&mut self, field: &Field, value: Value) {
        if field.name() == "message" {
            self.message = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        } else {
            self.rest.insert(field.name().to_owned(), value);
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let length = value.chars().count();
        // Structured values travel as JSON text.
        let parsed = if value.starts_with('{') { serde_json::from_str(value).ok() } else { None };
        let value = match parsed {
            Some(value) if length <= FIELD => value,
            _ if length > FIELD => {
                let head: String = value.chars().take(FIELD).collect();
                format!("{head}… truncated {} chars", length - FIELD).into()
            }
            _ => value.into(),
        };
        self.add(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.into());
    }
}
