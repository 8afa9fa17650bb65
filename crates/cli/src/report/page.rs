//! Writing markup so that nothing but markup of this program can get into it: what is not known when this is compiled
//! goes through [`Page::text`] or into an attribute, and is escaped there.

use crate::plain::is_unsafe;

/// A document under construction.
#[derive(Debug, Default)]
pub(super) struct Page(String);

/// Name and value.
pub(super) type Attribute<'a> = (&'static str, &'a str);

impl Page {
    pub(super) fn finish(self) -> String {
        self.0
    }

    /// Markup.
    pub(super) fn raw(&mut self, markup: &'static str) {
        self.0.push_str(markup);
    }

    /// Text between tags.
    pub(super) fn text(&mut self, text: &str) {
        escape(&mut self.0, text);
    }

    pub(super) fn open(&mut self, tag: &'static str, attributes: &[Attribute<'_>]) {
        self.0.push('<');
        self.0.push_str(tag);
        for (name, value) in attributes {
            self.0.push(' ');
            self.0.push_str(name);
            self.0.push_str("=\"");
            escape(&mut self.0, value);
            self.0.push('"');
        }
        self.0.push('>');
    }

    pub(super) fn close(&mut self, tag: &'static str) {
        self.0.push_str("</");
        self.0.push_str(tag);
        self.0.push('>');
    }

    /// A tag with text and nothing else in it.
    pub(super) fn leaf(&mut self, tag: &'static str, attributes: &[Attribute<'_>], text: &str) {
        self.open(tag, attributes);
        self.text(text);
        self.close(tag);
    }

    /// A tag with something in it.
    pub(super) fn within(&mut self, tag: &'static str, attributes: &[Attribute<'_>], fill: impl FnOnce(&mut Self)) {
        self.open(tag, attributes);
        fill(self);
        self.close(tag);
    }
}

/// Control characters have no place in a document, and those that turn the direction of writing could make a text look
/// like another one.
fn escape(out: &mut String, text: &str) {
    let mut before = None;
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if is_unsafe(before, c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
        before = Some(c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_gets_out_of_its_place() {
        let mut page = Page::default();
        let hostile = "</td><script>alert('1')</script>\" onload=\"x\u{0}\u{1b}[31m\u{202e}&amp;";
        page.within("td", &[("title", hostile)], |page| page.text(hostile));
        let escaped = "&lt;/td&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&quot; onload=&quot;x\u{fffd}\u{fffd}[31m\u{fffd}&amp;amp;";
        assert_eq!(page.finish(), format!("<td title=\"{escaped}\">{escaped}</td>"));
    }
}
