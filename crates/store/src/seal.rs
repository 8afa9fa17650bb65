//! What `.session-token` says, and whether it fits (spec 03 §3.4). Pure.
//!
//! Our seal is an envelope that binds the bytes to key, folder and workspace. The original's is a bare MAC of the bytes.

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::key::{Key, KeyRing, equal_in_constant_time};

const PREFIX: &str = "wst1.";
const SEAL_LABEL: &str = "workflow-server/session-seal/v1";

/// What an envelope binds together. The order of the members is the order on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Envelope {
    pub(crate) session_index: String,
    /// Relative to the planning root, or `transient/<slug>`.
    pub(crate) folder: String,
    pub(crate) workspace: String,
    pub(crate) seq: u64,
    pub(crate) sha256: String,
    pub(crate) key: String,
}

/// What is on disk and should be what was sealed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found<'a> {
    /// `session.json` as found.
    pub(crate) bytes: &'a [u8],
    /// `sessionIndex` of the state.
    pub(crate) session_index: &'a str,
    /// `seq` of the state.
    pub(crate) seq: u64,
    /// The folder it lies in, in the form of [`Envelope::folder`].
    pub(crate) folder: &'a str,
    /// The workspace of this server.
    pub(crate) workspace: &'a str,
}

/// Form of a seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Envelope,
    Bare,
    /// Neither: something from before either existed, or damage.
    Other,
}

/// A seal that fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fit {
    pub(crate) form: Form,
    /// Made with a key of `secret.prev.*`.
    pub(crate) previous_key: bool,
}

/// The first check that failed, in the order of the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    Key,
    Content,
    Folder,
    Workspace,
    Downgraded,
}

impl Reason {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Content => "content",
            Self::Folder => "folder",
            Self::Workspace => "workspace",
            Self::Downgraded => "downgraded",
        }
    }
}

/// A seal that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch {
    pub(crate) reason: Reason,
    /// A sentence.
    pub(crate) problem: &'static str,
    pub(crate) sealed: String,
    pub(crate) found: String,
    form: Form,
}

impl Mismatch {
    /// Whether the key may be the cause.
    pub(crate) fn names_key(&self) -> bool {
        self.reason == Reason::Key || (self.form == Form::Bare && self.reason == Reason::Content)
    }
}

/// The envelope's text for new bytes.
pub(crate) fn envelope(key: &Key, found: Found<'_>) -> String {
    let envelope = Envelope {
        session_index: found.session_index.to_owned(),
        folder: found.folder.to_owned(),
        workspace: found.workspace.to_owned(),
        seq: found.seq,
        sha256: sha256(found.bytes),
        key: key.id(),
    };
    // Strings and a number: serialising them cannot fail.
    let payload = serde_json::to_vec(&envelope).unwrap_or_default();
    let signed = format!("{PREFIX}{}", BASE64URL_NOPAD.encode(&payload));
    let mac = HEXLOWER.encode(&key.mac_for(SEAL_LABEL, signed.as_bytes()));
    format!("{signed}.{mac}")
}

/// The original's seal.
pub(crate) fn bare(key: &Key, bytes: &[u8]) -> String {
    HEXLOWER.encode(&key.mac(bytes))
}

/// Form of the text of a seal file.
pub(crate) fn form(token: &[u8]) -> Form {
    let token = token.trim_ascii();
    if token.starts_with(PREFIX.as_bytes()) {
        Form::Envelope
    } else if token.len() == 64 && token.iter().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte)) {
        Form::Bare
    } else {
        Form::Other
    }
}

/// Whether a seal has the form of an envelope of a later version, `wst2.` and so on.
pub(crate) fn is_newer(token: &[u8]) -> bool {
    let version = token.trim_ascii().strip_prefix(b"wst").and_then(|rest| rest.split(|byte| *byte == b'.').next());
    let version = version.and_then(|digits| std::str::from_utf8(digits).ok()?.parse::<u32>().ok());
    version.is_some_and(|version| version > 1)
}

/// Folder that an envelope claims, unverified: tells a moved folder from one in its place.
pub(crate) fn claimed_folder(token: &[u8]) -> Option<String> {
    let token = std::str::from_utf8(token.trim_ascii()).ok()?;
    let (signed, _) = token.rsplit_once('.')?;
    payload(signed).map(|envelope| envelope.folder)
}

/// Checks a seal: MAC, sha256, index and seq, folder, workspace, in this order.
///
/// `enveloped` says whether a session index has been seen under an envelope.
pub(crate) fn check(
    token: &[u8],
    keys: &KeyRing,
    found: Found<'_>,
    enveloped: &dyn Fn(&str) -> bool,
) -> Result<Fit, Mismatch> {
    let form = form(token);
    let text = std::str::from_utf8(token.trim_ascii()).unwrap_or_default();
    match form {
        Form::Envelope => check_envelope(text, keys, found),
        Form::Bare => check_bare(text, keys, found, enveloped),
        Form::Other => Err(Mismatch {
            reason: Reason::Content,
            problem: "the seal has neither form that this server knows.",
            sealed: format!("{} bytes of another form", token.len()),
            found: "expected wst1.… or 64 hexadecimal characters".to_owned(),
            form,
        }),
    }
}

fn check_envelope(text: &str, keys: &KeyRing, found: Found<'_>) -> Result<Fit, Mismatch> {
    let wrong = |reason, problem, sealed: &str, found: &str| {
        Err(Mismatch { reason, problem, sealed: sealed.to_owned(), found: found.to_owned(), form: Form::Envelope })
    };
    let (signed, mac) = text.rsplit_once('.').unwrap_or((text, ""));
    let fits = |key: &Key| {
        let expected = HEXLOWER.encode(&key.mac_for(SEAL_LABEL, signed.as_bytes()));
        equal_in_constant_time(expected.as_bytes(), mac.as_bytes())
    };
    let previous_key = if fits(&keys.current) {
        false
    } else if keys.previous.iter().any(fits) {
        true
    } else {
        // Nobody vouches for what this envelope says: it is quoted only if it looks like a key id.
        let is_id = |id: &String| id.len() == 8 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let sealed = payload(signed).map(|envelope| envelope.key).filter(is_id);
        let sealed = sealed.unwrap_or_else(|| "unknown".to_owned());
        let problem = "it was made with another key, or changed since.";
        return wrong(Reason::Key, problem, &format!("key id {sealed}"), &format!("key id {}", keys.current.id()));
    };
    let Some(envelope) = payload(signed) else {
        return wrong(Reason::Content, "its envelope does not read.", "an envelope of another version", "version 1");
    };
    let actual = sha256(found.bytes);
    if envelope.sha256 != actual {
        let problem = "session.json was changed after it was sealed, or one of the two files was replaced alone.";
        return wrong(Reason::Content, problem, &format!("sha256 {}", envelope.sha256), &format!("sha256 {actual}"));
    }
    if envelope.session_index != found.session_index {
        let problem = "the seal names another session.";
        return wrong(Reason::Content, problem, &envelope.session_index, found.session_index);
    }
    if envelope.seq != found.seq {
        let problem = "the seal names another write of the session.";
        return wrong(Reason::Content, problem, &format!("seq {}", envelope.seq), &format!("seq {}", found.seq));
    }
    if envelope.folder != found.folder {
        let problem = "the folder was moved, copied or renamed.";
        return wrong(Reason::Folder, problem, &envelope.folder, found.folder);
    }
    if envelope.workspace != found.workspace {
        let problem = "it belongs to another workspace.";
        return wrong(Reason::Workspace, problem, &envelope.workspace, found.workspace);
    }
    Ok(Fit { form: Form::Envelope, previous_key })
}

fn check_bare(text: &str, keys: &KeyRing, found: Found<'_>, enveloped: &dyn Fn(&str) -> bool) -> Result<Fit, Mismatch> {
    let wrong = |reason, problem, sealed: &str, found: String| {
        Err(Mismatch { reason, problem, sealed: sealed.to_owned(), found, form: Form::Bare })
    };
    let fits = |key: &Key| equal_in_constant_time(bare(key, found.bytes).as_bytes(), text.as_bytes());
    let previous_key = if fits(&keys.current) {
        false
    } else if keys.previous.iter().any(fits) {
        true
    } else {
        let problem = "either session.json was changed after it was sealed, or it was sealed with another key.";
        // The seal that would fit is never told: whoever may write the two files could put it there.
        let found = format!("sha256 {}, for which key {} makes another", sha256(found.bytes), keys.current.id());
        // Nor is the text of a seal that fits nothing: under its name may lie, or be linked, somebody's secret.
        let sealed = format!("a bare seal, sha256 {}", sha256(text.as_bytes()));
        return wrong(Reason::Content, problem, &sealed, found);
    };
    if enveloped(found.session_index) {
        let problem =
            "this session was sealed with an envelope before, and the old form proves neither place nor time.";
        return wrong(Reason::Downgraded, problem, "bare seal", "an envelope was seen for this session".to_owned());
    }
    Ok(Fit { form: Form::Bare, previous_key })
}

fn payload(signed: &str) -> Option<Envelope> {
    let encoded = signed.strip_prefix(PREFIX)?;
    serde_json::from_slice(&BASE64URL_NOPAD.decode(encoded.as_bytes()).ok()?).ok()
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] =
        b"{\n  \"schemaVersion\": 1,\n  \"status\": \"running\",\n  \"variables\": {},\n  \"history\": []\n}";
    const B: &str = "eyJzZXNzaW9uX2luZGV4IjoiQUJDREUyIiwiZm9sZGVyIjoiMjAyNi0wNy0xMy1hbHBoYSIsIndvcmtzcGFjZSI6Ii9zcnYvd3MiLCJzZXEi\
                     OjAsInNoYTI1NiI6IjEwOGQzMmQ3YTZhNjkxY2ZkNDBhOTI5MWE1Zjc5N2Q4ZDU3OTMxYjk5NDhiNzU0YTgxNjc3NDc4MWJhMDVjOGUiLCJr\
                     ZXkiOiJmZDY3OGYyZCJ9";
    const M: &str = "f4534e1d2a18db6699e87ce5d829794ee885159f75608a0eb937d64f9a49091a";
    const BARE: &str = "9e70297322f59dd6e1c45e6374c89dfb6090f38d75dd6f1ebffe173e3fd9d30e";

    fn found() -> Found<'static> {
        Found { bytes: TEXT, session_index: "ABCDE2", seq: 0, folder: "2026-07-13-alpha", workspace: "/srv/ws" }
    }

    fn ring() -> KeyRing {
        KeyRing::of(Key::counting(), Vec::new())
    }

    #[track_caller]
    fn check_seal(token: &str, keys: &KeyRing, found: Found<'_>, expected: Result<Fit, Reason>) {
        let outcome = check(token.as_bytes(), keys, found, &|_| false);
        assert_eq!(outcome.map_err(|mismatch| mismatch.reason), expected, "{token}");
    }

    const FITS: Result<Fit, Reason> = Ok(Fit { form: Form::Envelope, previous_key: false });

    #[test]
    fn the_envelope_is_the_vector() {
        assert_eq!(TEXT.len(), 83);
        assert_eq!(sha256(TEXT), "108d32d7a6a691cfd40a9291a5f797d8d57931b9948b754a816774781ba05c8e");
        assert_eq!(Key::counting().id(), "fd678f2d");
        assert_eq!(envelope(&Key::counting(), found()), format!("wst1.{B}.{M}"));
        check_seal(&format!("wst1.{B}.{M}"), &ring(), found(), FITS);
    }

    #[test]
    fn the_bare_seal_is_the_vector() {
        assert_eq!(bare(&Key::counting(), TEXT), BARE);
        check_seal(BARE, &ring(), found(), Ok(Fit { form: Form::Bare, previous_key: false }));
        check_seal(&BARE.replace('9', "8"), &ring(), found(), Err(Reason::Content));
        let seen = check(BARE.as_bytes(), &ring(), found(), &|index| index == "ABCDE2").unwrap_err();
        assert_eq!(seen.reason, Reason::Downgraded);
    }

    #[test]
    fn the_first_failing_check_is_the_reason() {
        let token = format!("wst1.{B}.{M}");
        let other = KeyRing::of(Key::random().unwrap(), Vec::new());
        check_seal(&token, &other, found(), Err(Reason::Key));
        check_seal(&format!("wst1.{B}.{}", M.replace('4', "5")), &ring(), found(), Err(Reason::Key));
        check_seal("wst1.", &ring(), found(), Err(Reason::Key));
        check_seal("wst1..", &ring(), found(), Err(Reason::Key));
        check_seal(&token, &ring(), Found { bytes: b"{}", folder: "x", ..found() }, Err(Reason::Content));
        check_seal(&token, &ring(), Found { session_index: "ABCDE3", ..found() }, Err(Reason::Content));
        check_seal(&token, &ring(), Found { seq: 1, ..found() }, Err(Reason::Content));
        check_seal(&token, &ring(), Found { folder: "x", workspace: "/y", ..found() }, Err(Reason::Folder));
        check_seal(&token, &ring(), Found { workspace: "/y", ..found() }, Err(Reason::Workspace));
        check_seal("", &ring(), found(), Err(Reason::Content));
        check_seal("eyJ3ZiI6Im1ldGEifQ.abc", &ring(), found(), Err(Reason::Content));
    }

    #[test]
    fn old_keys_verify() {
        let token = envelope(&Key::counting(), found());
        let rotated = KeyRing::of(Key::random().unwrap(), vec![Key::counting()]);
        check_seal(&token, &rotated, found(), Ok(Fit { form: Form::Envelope, previous_key: true }));
        check_seal(BARE, &rotated, found(), Ok(Fit { form: Form::Bare, previous_key: true }));
    }

    /// An editor's newline after the seal is fine, one in the state is another content.
    #[test]
    fn trap_03_14_09_a_newline_in_the_seal_is_ignored() {
        check_seal(&format!("wst1.{B}.{M}\n"), &ring(), found(), FITS);
        check_seal(&format!("{BARE}\r\n"), &ring(), found(), Ok(Fit { form: Form::Bare, previous_key: false }));
        let longer = [TEXT, b"\n"].concat();
        check_seal(&format!("wst1.{B}.{M}"), &ring(), Found { bytes: &longer, ..found() }, Err(Reason::Content));
        check_seal(BARE, &ring(), Found { bytes: &longer, ..found() }, Err(Reason::Content));
    }

    #[test]
    fn forms_are_told_apart() {
        for (token, expected) in [
            (format!("wst1.{B}.{M}\n"), Form::Envelope),
            (format!(" {BARE}"), Form::Bare),
            (BARE.to_uppercase(), Form::Other),
            ("eyJ3ZiI6Im1ldGEifQ.00ff".to_owned(), Form::Other),
            (String::new(), Form::Other),
        ] {
            assert_eq!(form(token.as_bytes()), expected, "{token}");
        }
        assert_eq!(claimed_folder(format!("wst1.{B}.{M}").as_bytes()).as_deref(), Some("2026-07-13-alpha"));
        assert_eq!(claimed_folder(BARE.as_bytes()), None);
    }

    proptest::proptest! {
        /// Whatever stands in the seal file, only the seal that was written fits; and whatever it claims can be asked.
        #[test]
        fn only_the_seal_that_was_written_fits(
            noise in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300),
            at in 0_usize..400,
            with in proptest::prelude::any::<u8>(),
            cut in 0_usize..400,
        ) {
            let good = envelope(&Key::counting(), found()).into_bytes();
            let mut edited = good.clone();
            let at = at % edited.len();
            edited[at] = with;
            let cut = good[..cut.min(good.len() - 1)].to_vec();
            let hex = HEXLOWER.encode(&sha256(&noise).into_bytes()[..32]).into_bytes();
            for token in [noise, edited, cut, hex] {
                let fits = check(&token, &ring(), found(), &|_| false).is_ok();
                proptest::prop_assert_eq!(fits, token.trim_ascii() == good.as_slice());
                let _claimed = claimed_folder(&token);
            }
        }
    }
}
