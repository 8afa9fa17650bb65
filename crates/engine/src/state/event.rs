//! History events (spec 03 §3.2).

use serde_json::{Map, Value};

use crate::{Timestamp, state::Event};

impl Event {
    /// An event of this type; [`Session::record`](crate::state::Session::record) gives it its timestamp.
    pub fn new(kind: &str) -> Self {
        let mut members = Map::new();
        members.insert("timestamp".to_owned(), "".into());
        members.insert("type".to_owned(), kind.into());
        Self(members)
    }

    /// Says where it happened; an empty id is left out.
    #[must_use]
    pub fn with_activity(self, activity: &str) -> Self {
        if activity.is_empty() { self } else { self.with_member("activity", activity) }
    }

    /// Says at which checkpoint.
    #[must_use]
    pub fn with_checkpoint(self, checkpoint: &str) -> Self {
        self.with_member("checkpoint", checkpoint)
    }

    /// Adds a member of `data`.
    #[must_use]
    pub fn with_data(mut self, key: &str, value: impl Into<Value>) -> Self {
        let data = self.0.entry("data").or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(data) = data {
            data.insert(key.to_owned(), value.into());
        }
        self
    }

    /// Adds a member of `data` if there is a value.
    #[must_use]
    pub fn with_optional_data(self, key: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with_data(key, value),
            None => self,
        }
    }

    fn with_member(mut self, key: &str, value: &str) -> Self {
        self.0.insert(key.to_owned(), value.into());
        self
    }

    /// The type.
    pub fn kind(&self) -> &str {
        self.member("type")
    }

    /// The activity, `""` when none is named.
    pub fn activity(&self) -> &str {
        self.member("activity")
    }

    /// The checkpoint, `""` when none is named.
    pub fn checkpoint(&self) -> &str {
        self.member("checkpoint")
    }

    /// A member of `data`.
    pub fn data(&self, key: &str) -> Option<&Value> {
        self.0.get("data")?.get(key)
    }

    /// A member of `data` that is a text.
    pub fn data_text(&self, key: &str) -> Option<&str> {
        self.data(key)?.as_str()
    }

    /// When it happened, as written.
    pub fn timestamp(&self) -> &str {
        self.member("timestamp")
    }

    /// When it happened.
    pub fn time(&self) -> Option<Timestamp> {
        Timestamp::parse(self.timestamp())
    }

    pub(super) fn stamp(&mut self, text: &str) {
        self.0.insert("timestamp".to_owned(), text.into());
    }

    fn member(&self, key: &str) -> &str {
        self.0.get(key).and_then(Value::as_str).unwrap_or_default()
    }
}
