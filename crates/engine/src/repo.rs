//! Repository names as sessions carry them: `owner/name` (spec 03 §1.10).

use crate::{Refusal, state::Session};

/// Reads `owner/name`, `https://host/owner/name` or `git@host:owner/name`, with or without `.git` and trailing slashes.
///
/// # Errors
/// `REPO_INVALID`.
pub(crate) fn normalise(text: &str) -> Result<String, Refusal> {
    parse(text).ok_or_else(|| {
        let shown: String = text.chars().take(200).collect();
        Refusal::new(
            "REPO_INVALID",
            format!(
                "'{shown}' names no repository. Accepted forms: owner/name, https://host/owner/name, git@host:owner/name; \
                 both parts of letters, digits, '.', '_' and '-', not beginning with a dot. It is what `git remote get-url origin` prints."
            ),
        )
        .with("repo", shown)
    })
}

/// Binds a session to a repository; says whether that changed anything.
///
/// # Errors
/// `REPO_CONFLICT` when it is bound to another one.
pub(crate) fn bind(session: &mut Session, repo: &str) -> Result<bool, Refusal> {
    match &session.repo {
        None => {
            session.repo = Some(repo.to_owned());
            Ok(true)
        }
        Some(bound) if bound == repo => Ok(false),
        Some(bound) => Err(Refusal::new(
            "REPO_CONFLICT",
            format!(
                "Session {} is bound to repository {bound} and cannot be bound to {repo}. Omit repo to go on with \
                 {bound}, or start a session under another planning slug.",
                session.session_index
            ),
        )
        .with("bound", bound.as_str())
        .with("repo", repo)),
    }
}

fn parse(text: &str) -> Option<String> {
    let text = text.trim().trim_end_matches('/');
    let text = match text.len().checked_sub(4) {
        Some(at) if text.is_char_boundary(at) && text[at..].eq_ignore_ascii_case(".git") => &text[..at],
        _ => text,
    };
    let path = if let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) {
        rest.split_once('/').filter(|(host, _)| !host.is_empty())?.1
    } else if let Some(rest) = text.strip_prefix("git@") {
        rest.split_once(':').filter(|(host, _)| !host.is_empty())?.1
    } else {
        text
    };
    let (owner, name) = path.split_once('/')?;
    (is_part(owner) && is_part(name)).then(|| format!("{owner}/{name}"))
}

fn is_part(part: &str) -> bool {
    !part.is_empty()
        && !part.starts_with('.')
        && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories_are_owner_and_name() {
        for (text, expected) in [
            ("acme/tool", Some("acme/tool")),
            ("  acme/tool.git/ ", Some("acme/tool")),
            ("acme/tool/", Some("acme/tool")),
            ("acme/tool.GIT", Some("acme/tool")),
            ("https://example.org/acme/tool.git", Some("acme/tool")),
            ("http://example.org/acme/tool/", Some("acme/tool")),
            ("git@example.org:acme/tool.git", Some("acme/tool")),
            ("acme/my.tool_1-x", Some("acme/my.tool_1-x")),
            ("acme", None),
            ("acme/tool/more", None),
            ("https://example.org/acme", None),
            ("https:///acme/tool", None),
            ("git@:acme/tool", None),
            ("../x", None),
            ("acme/..", None),
            ("acme/.hidden", None),
            ("acme/.git", None),
            ("ac me/tool", None),
            ("\u{fc}/tool", None),
            ("", None),
        ] {
            assert_eq!(normalise(text).ok().as_deref(), expected, "{text}");
        }
        assert_eq!(normalise("x").unwrap_err().code, "REPO_INVALID");
    }
}
