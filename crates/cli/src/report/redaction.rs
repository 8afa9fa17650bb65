//! What a report does not tell: secrets, and texts that are long or the user's own.
//!
//! A name makes a value a secret (`api_key`, `dbPassword`), and so does the look of the value itself, wherever it
//! stands. This is a net, not a proof: who passes a report on should read it first, and the report says so.

use std::cell::Cell;

use serde_json::{Map, Value};

/// What stands in place of a secret.
pub(crate) const HIDDEN: &str = "[hidden]";
/// The variable that holds what the user wrote.
const REQUEST: &str = "user_request";
/// Characters of it that are kept.
const REQUEST_LENGTH: usize = 120;
/// Characters of any other text that are kept.
const TEXT_LENGTH: usize = 600;
/// Entries of a list or an object that are kept.
const ENTRIES: usize = 60;
/// Words that make a name that of a secret.
const WORDS: [&str; 20] = [
    "auth",
    "authorization",
    "bearer",
    "cert",
    "certificate",
    "cookie",
    "cred",
    "creds",
    "dsn",
    "jwt",
    "key",
    "keys",
    "otp",
    "pass",
    "passwd",
    "pat",
    "pin",
    "pwd",
    "salt",
    "sig",
];
/// Parts that make a name that of a secret wherever they stand.
const PARTS: [&str; 9] =
    ["apikey", "credential", "passphrase", "password", "privatekey", "secret", "signature", "token", "accesskey"];
/// How well-known secrets begin, with how many characters have to follow.
const BEGINNINGS: [(&str, usize); 18] = [
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("sk-", 16),
    ("sk_live_", 12),
    ("rk_live_", 12),
    ("xoxb-", 12),
    ("xoxp-", 12),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("npm_", 30),
    ("hf_", 20),
    ("eyJ", 40),
];

/// How much a report tells.
#[derive(Clone, Debug, Default)]
pub(crate) struct Redaction {
    /// Long texts and the user's request are told whole.
    pub(crate) full: bool,
    /// Secrets are told.
    pub(crate) secrets: bool,
    hidden: Cell<usize>,
    cut: Cell<usize>,
}

impl Redaction {
    pub(crate) fn new(full: bool, secrets: bool) -> Self {
        Self { full, secrets, ..Self::default() }
    }

    /// Values that were hidden so far.
    pub(crate) fn hidden(&self) -> usize {
        self.hidden.get()
    }

    /// Texts and lists that were cut so far.
    pub(crate) fn cut(&self) -> usize {
        self.cut.get()
    }

    /// A value as it is told under its name.
    pub(crate) fn value(&self, name: &str, value: &Value) -> Value {
        match value {
            Value::Null | Value::Bool(_) => value.clone(),
            Value::String(text) if text.is_empty() => value.clone(),
            _ if !self.secrets && is_secret_name(name) => self.hide().into(),
            Value::Number(_) => value.clone(),
            Value::String(text) if name == REQUEST => self.cut_to(&self.unveiled(text), REQUEST_LENGTH).into(),
            Value::String(text) => self.text(text).into(),
            Value::Array(items) => {
                let mut told: Vec<Value> = items.iter().take(self.entries()).map(|item| self.value("", item)).collect();
                told.extend(self.rest(items.len()).map(Value::from));
                told.into()
            }
            Value::Object(members) => {
                let mut told: Map<String, Value> = members
                    .iter()
                    .take(self.entries())
                    .map(|(key, value)| (self.unveiled(key), self.value(key, value)))
                    .collect();
                if let Some(rest) = self.rest(members.len()) {
                    told.insert("…".to_owned(), rest.into());
                }
                told.into()
            }
        }
    }

    /// A free text as it is told.
    pub(crate) fn text(&self, text: &str) -> String {
        self.cut_to(&self.unveiled(text), TEXT_LENGTH)
    }

    fn entries(&self) -> usize {
        if self.full { usize::MAX } else { ENTRIES }
    }

    fn rest(&self, len: usize) -> Option<String> {
        let rest = len.checked_sub(self.entries()).filter(|rest| *rest > 0)?;
        self.cut.set(self.cut.get() + 1);
        Some(format!("[{rest} more]"))
    }

    fn hide(&self) -> &'static str {
        self.hidden.set(self.hidden.get() + 1);
        HIDDEN
    }

    fn cut_to(&self, text: &str, length: usize) -> String {
        let count = text.chars().count();
        // A text that is hardly longer is not worth a cut.
        if self.full || count <= length + length / 8 {
            return text.to_owned();
        }
        self.cut.set(self.cut.get() + 1);
        let kept: String = text.chars().take(length).collect();
        format!("{}… [cut: {count} characters]", kept.trim_end())
    }

    /// The text without what looks like a secret in it.
    fn unveiled(&self, text: &str) -> String {
        if self.secrets {
            return text.to_owned();
        }
        if let Some(at) = text.find("-----BEGIN ")
            && text[at..].contains("PRIVATE KEY")
        {
            return format!("{}{}", self.unveiled(&text[..at]), self.hide());
        }
        let mut told = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find(is_of_word) {
            let end = rest[start..].find(|c| !is_of_word(c)).map_or(rest.len(), |length| start + length);
            told.push_str(&rest[..start]);
            match secret_in(&rest[start..end]) {
                Some(prefix) => {
                    told.push_str(prefix);
                    told.push_str(self.hide());
                }
                None => told.push_str(&rest[start..end]),
            }
            rest = &rest[end..];
        }
        told.push_str(rest);
        self.without_assigned(&self.without_logins(&told))
    }

    /// `https://user:password@host` without the password.
    fn without_logins(&self, text: &str) -> String {
        let mut told = String::new();
        let mut rest = text;
        while let Some(at) = rest.find("://") {
            let (before, after) = rest.split_at(at + 3);
            told.push_str(before);
            let authority = after.find(|c: char| "/?# \n\t\"'<>".contains(c)).unwrap_or(after.len());
            let login = after[..authority].rfind('@').and_then(|end| after[..end].find(':').map(|colon| (colon, end)));
            rest = match login {
                Some((colon, end)) if colon + 1 < end && &after[colon + 1..end] != HIDDEN => {
                    told.push_str(&after[..=colon]);
                    told.push_str(self.hide());
                    &after[end..]
                }
                _ => after,
            };
        }
        told.push_str(rest);
        told
    }

    /// `password: hunter2`, `API_KEY=…`, `Bearer …` without what is assigned.
    fn without_assigned(&self, text: &str) -> String {
        let mut told = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['=', ':', ' ']) {
            let name: String = {
                let reversed = rest[..at].trim_end_matches(['"', '\'']).chars().rev();
                let word: Vec<char> = reversed.take_while(|c| c.is_alphanumeric() || "_-.".contains(*c)).collect();
                word.into_iter().rev().collect()
            };
            let separator = rest.as_bytes().get(at).copied();
            let begins = rest[at + 1..].len() - rest[at + 1..].trim_start_matches([' ', '"', '\'']).len();
            let from = at + 1 + begins;
            let word = rest[from..].find(|c: char| c.is_whitespace() || "\"',;&".contains(c));
            let until = word.map_or(rest.len(), |length| from + length);
            let told_of = |name: &str| match separator {
                Some(b' ') => name.eq_ignore_ascii_case("bearer") && until - from >= 12,
                // A sentence may say "key: the file"; an assignment has no blank before its sign.
                _ => is_assigned_name(name) && until - from >= 4,
            };
            if !name.is_empty()
                && told_of(&name)
                && !rest[from..until].contains(HIDDEN)
                && !rest[from..].starts_with("//")
            {
                told.push_str(&rest[..from]);
                told.push_str(self.hide());
                rest = &rest[until..];
            } else {
                told.push_str(&rest[..=at]);
                rest = &rest[at + 1..];
            }
        }
        told.push_str(rest);
        told
    }
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-' || c == '.'
}

/// A word that is a secret: answers its telltale beginning.
fn secret_in(word: &str) -> Option<&'static str> {
    let found = BEGINNINGS.iter().find(|(beginning, length)| {
        word.strip_prefix(beginning).is_some_and(|rest| {
            rest.len() >= *length && rest.bytes().any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
        })
    });
    found.map(|(beginning, _)| *beginning)
}

/// Whether a name is that of a secret.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let words = words(name);
    let joined = words.concat();
    words.iter().any(|word| WORDS.contains(&word.as_str())) || PARTS.iter().any(|part| joined.contains(part))
}

/// Names that are telling in front of `=` or `:` in any text.
fn is_assigned_name(name: &str) -> bool {
    let words = words(name);
    let joined = words.concat();
    let strong =
        ["password", "passwd", "passphrase", "secret", "token", "credential", "apikey", "privatekey", "accesskey"];
    strong.iter().any(|part| joined.contains(part)) || words.last().is_some_and(|word| word == "pwd")
}

/// Lower-case words of `snake_case`, `kebab-case`, `camelCase` and `SCREAMING`.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    let mut before = ' ';
    let letters: Vec<char> = name.chars().collect();
    for (at, letter) in letters.iter().enumerate() {
        if letter.is_alphanumeric() {
            let next_is_small = letters.get(at + 1).is_some_and(|next| next.is_lowercase());
            let begins = letter.is_uppercase() && (before.is_lowercase() || (before.is_uppercase() && next_is_small));
            if begins {
                words.push(String::new());
            }
            if let Some(word) = words.last_mut() {
                word.extend(letter.to_lowercase());
            }
        } else {
            words.push(String::new());
        }
        before = *letter;
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_of_secrets_are_known() {
        for name in [
            "token",
            "github_token",
            "accessToken",
            "API_KEY",
            "apiKey",
            "api-key",
            "APIKey",
            "key",
            "ssh.key",
            "secret",
            "client_secret",
            "dbPassword",
            "DB_PASS",
            "passphrase",
            "credentials",
            "aws_credential_file",
            "auth",
            "bearer",
            "cookie",
            "sessionCookie",
            "jwt",
            "privateKey",
            "keys",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "keyboard",
            "monkey",
            "passed",
            "compass",
            "author",
            "plan_approved",
            "pattern",
            "user_request",
            "keystone",
            "spinner",
            "signal",
            "",
            "certain",
            "pinned_version",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[track_caller]
    fn check(name: &str, value: impl Into<Value>, told: impl Into<Value>) {
        let (value, told) = (value.into(), told.into());
        assert_eq!(Redaction::default().value(name, &value), told, "{name}");
        assert_eq!(Redaction::new(true, true).value(name, &value), value, "{name}");
    }

    #[test]
    fn values_under_such_names_are_hidden_at_any_depth() {
        check("token", json!("abc"), json!(HIDDEN));
        check("token", json!({"a": [1]}), json!(HIDDEN));
        check("pin", json!(1234), json!(HIDDEN));
        check("has_token", json!(true), json!(true));
        check("token", json!(null), json!(null));
        check("token", json!(""), json!(""));
        check(
            "config",
            json!({"url": "x", "password": "y", "list": [{"apiKey": "z"}]}),
            json!({"url": "x", "password": HIDDEN, "list": [{"apiKey": HIDDEN}]}),
        );
    }

    #[test]
    fn values_that_look_like_secrets_are_hidden_anywhere() {
        let token = format!("ghp_{}", "a1B2".repeat(9));
        check("note", json!(format!("use {token}, please")), json!(format!("use ghp_{HIDDEN}, please")));
        check("note", json!("AKIAABCDEFGHIJKLMNOP"), json!(format!("AKIA{HIDDEN}")));
        check(
            "note",
            json!("see https://ann:hunter2@example.org/x?y"),
            json!(format!("see https://ann:{HIDDEN}@example.org/x?y")),
        );
        check("note", json!("a -----BEGIN RSA PRIVATE KEY-----\nMII\n"), json!(format!("a {HIDDEN}")));
        check(
            "note",
            json!("Authorization: Bearer abcdefghijklmnop"),
            json!(format!("Authorization: Bearer {HIDDEN}")),
        );
        check("note", json!("run with DB_PASSWORD=hunter2 now"), json!(format!("run with DB_PASSWORD={HIDDEN} now")));
        check(
            "note",
            json!(r#"{"password": "hunter2", "n": 1}"#),
            json!(format!(r#"{{"password": "{HIDDEN}", "n": 1}}"#)),
        );
        for plain in [
            "task-sk-check",
            "see https://example.org:8080/a@b",
            "the key: first of all",
            "a = b",
            "sk-learn-is-a-library",
            "https://example.org",
            "tokens are counted",
            "ünïcode: é=ö ",
            "::",
            "=",
            "x=",
            "://",
            "://@:",
        ] {
            check("note", json!(plain), json!(plain));
        }
    }

    #[test]
    fn the_request_and_long_values_are_cut() {
        let redaction = Redaction::default();
        let told = redaction.value("user_request", &json!("é".repeat(500)));
        assert_eq!(told.as_str().unwrap(), format!("{}… [cut: 500 characters]", "é".repeat(120)));
        assert!(redaction.value("other", &json!("x".repeat(500))).as_str().unwrap().len() == 500);
        assert!(redaction.value("other", &json!("x".repeat(5000))).as_str().unwrap().contains("[cut: 5000"));
        let list = redaction.value("list", &json!((0..100).collect::<Vec<_>>()));
        assert_eq!((list.as_array().unwrap().len(), &list[60]), (61, &json!("[40 more]")));
        assert_eq!((redaction.hidden(), redaction.cut()), (0, 3));
        let full = Redaction::new(true, false);
        assert_eq!(full.value("user_request", &json!("é".repeat(500))), json!("é".repeat(500)));
        assert_eq!(full.value("token", &json!("x")), json!(HIDDEN), "--full tells no secrets");
    }
}
