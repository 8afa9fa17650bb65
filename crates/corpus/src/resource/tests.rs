use super::*;

#[track_caller]
fn check_section(text: &str, anchor: &str, expected: Option<&str>) {
    assert_eq!(parse(text).section(anchor).as_deref(), expected, "#{anchor}");
}

/// Trap 29: `&`, `/` and repeats; the original's slug first, then GitHub's (FIX-37).
#[test]
fn trap_01_14_29_section_slugs() {
    let text = "# Top\n\n## A & B\none\n## Proposal / Strategy\ntwo\n### Deep\nthree\n## Same\nfour\n## Same\nfive\n## Über\nsix\n## Foo ##\nseven\n";
    check_section(text, "a-b", Some("## A & B\none"));
    check_section(text, "a--b", Some("## A & B\none"));
    check_section(text, "proposal-strategy", Some("## Proposal / Strategy\ntwo\n### Deep\nthree"));
    check_section(text, "proposal--strategy", Some("## Proposal / Strategy\ntwo\n### Deep\nthree"));
    check_section(text, "same", Some("## Same\nfour"));
    check_section(text, "same-1", Some("## Same\nfive"));
    check_section(text, "ber", Some("## Über\nsix"));
    check_section(text, "über", Some("## Über\nsix"));
    check_section(text, "foo-", Some("## Foo ##\nseven"));
    check_section(text, "foo", Some("## Foo ##\nseven"));
    check_section(text, "SAME", Some("## Same\nfour"));
    check_section(text, "none", None);
    assert_eq!(parse(text).anchors(), ["top", "a-b", "proposal-strategy", "deep", "same", "same-1", "ber", "foo-"]);
}

#[test]
fn headings_in_fences_do_not_count() {
    check_section("```\n## A\n```\n  ~~~\n## A\n  ~~~\n## A\nx\n", "a", Some("## A\nx"));
    check_section("## A\n```\n## B\n```\n", "b", None);
    // A template that shows a fence stays whole.
    let template = "## T\n```markdown\n# In\n```mermaid\nx\n```\n## In too\n```\n## Next\n";
    check_section(template, "t", template.strip_suffix("\n## Next\n"));
    check_section(template, "in-too", None);
}

#[test]
fn front_matter() {
    let check = |text: &str, name: Option<&str>, version: Option<&str>, content: &str| {
        let read = parse(text);
        assert_eq!((read.name.as_deref(), read.version.as_deref()), (name, version), "{text}");
        assert_eq!(read.content, content, "{text}");
    };
    check("---\nname: x\nversion: \"2.0\"\n---\n\n body \n\n", Some("x"), Some("2.0"), "body");
    check("---\nmetadata:\n  version: 1.2.3\n---\nb", None, Some("1.2.3"), "b");
    check("---\nname: 'q'\ndescription: |\n  a: b: c\nversion: 1.10\n---\r\nb", Some("q"), Some("1.10"), "b");
    check("\u{feff}---\nname: x\n---\nb\n", Some("x"), None, "b");
    check(" no front matter \r\n", None, None, " no front matter \n");
}

#[test]
fn requests() {
    let check = |id: &str, workflow: Option<&str>, slug: &str, section: Option<&str>| {
        let request = Request::parse(id).unwrap();
        let found = (request.workflow.as_deref(), request.slug.as_str(), request.section.as_deref());
        assert_eq!(found, (workflow, slug, section), "{id}");
    };
    check("a", None, "a", None);
    check(" a.md ", None, "a", None);
    check("a.md#b", None, "a", Some("b"));
    check("a#", None, "a", None);
    check("a#b#c", None, "a", Some("b#c"));
    check("w/a#b", Some("w"), "a", Some("b"));
    check("w/d/a.md", Some("w"), "d/a", None);
    for bad in ["", "#x", "..", "../x", "w/../x", "/x", "w/", "a\\b", "w//x", ".md"] {
        assert!(matches!(Request::parse(bad), Err(ResourceError::InvalidId { .. })), "{bad:?}");
    }
}
