//! Static pages of HTML: no scripts, nothing from elsewhere.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::printable::for_terminal;

/// The one style sheet. Colours are those of Okabe and Ito; everything that they mark is
/// underlined, too.
const STYLE: &str = "\
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.25rem; margin-top: 2.2rem; } h3 { font-size: 1rem; margin-bottom: .3rem; }
table { border-collapse: collapse; margin: .5rem 0; } th, td { text-align: left; padding: .2rem .8rem .2rem 0; vertical-align: top; border-bottom: 1px solid #ddd; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
td.bar { width: 24rem; } .bar span { display: block; height: .9rem; min-width: 1px; background: #0072b2; } pre { white-space: pre-wrap; }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; }
.text { border: 1px solid #ccc; padding: .6rem; white-space: pre-wrap; overflow-wrap: anywhere; font-size: .9rem; }
.shared { background: #d5efe6; } .alone { background: #fbe3d3; text-decoration: underline; text-decoration-color: #d55e00; }
.note { color: #555; font-size: .9rem; } .key { font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
svg { max-width: 100%; height: auto; }
@media (max-width: 48rem) { .pair { grid-template-columns: 1fr; } }";

/// Text as HTML shows it, whatever it contains. What HTML forbids, and what turns the order of text, is
/// escaped as in a terminal.
pub(super) fn text(text: &str) -> Cow<'_, str> {
    let safe = for_terminal(text);
    if !safe.contains(['&', '<', '>', '"', '\'']) {
        return safe;
    }
    let mut out = String::with_capacity(safe.len() + 16);
    for character in safe.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    Cow::Owned(out)
}

/// A page with this title, which is text, and this body, which is HTML.
pub(super) fn page(title: &str, body: &str) -> String {
    let title = text(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <title>{title}</title>\n<style>\n{STYLE}\n</style>\n</head>\n<body>\n<h1>{title}</h1>\n\
         {body}</body>\n</html>\n"
    )
}

/// A table with these columns. Cells are HTML; those that are numbers are aligned to the right.
pub(super) struct HtmlTable {
    html: String,
}

impl HtmlTable {
    pub(super) fn new(columns: &[&str]) -> Self {
        let mut html = String::from("<table>\n<tr>");
        for column in columns {
            let _ = write!(html, "<th>{}</th>", text(column));
        }
        html.push_str("</tr>\n");
        Self { html }
    }

    pub(super) fn row<'c>(&mut self, cells: impl IntoIterator<Item = HtmlCell<'c>>) {
        self.html.push_str("<tr>");
        for cell in cells {
            let _ = match cell {
                HtmlCell::Text(words) => write!(self.html, "<td>{}</td>", text(words)),
                HtmlCell::Key(key) => {
                    write!(self.html, "<td class=\"key\">{}</td>", text(key))
                }
                HtmlCell::Number(number) => {
                    write!(self.html, "<td class=\"number\">{}</td>", text(&number))
                }
                HtmlCell::Bar(0.0) => write!(self.html, "<td class=\"bar\"></td>"),
                HtmlCell::Bar(share) => write!(
                    self.html,
                    "<td class=\"bar\"><span style=\"width: {:.1}%\"></span></td>",
                    100.0 * share.clamp(0.0, 1.0)
                ),
            };
        }
        self.html.push_str("</tr>\n");
    }

    pub(super) fn finish(mut self) -> String {
        self.html.push_str("</table>\n");
        self.html
    }
}

/// One cell of a table.
pub(super) enum HtmlCell<'c> {
    Text(&'c str),
    Key(&'c str),
    Number(String),
    /// A bar of this share of the column, 0 to 1.
    Bar(f64),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_shown_and_not_read() {
        assert_eq!(text("plain é"), "plain é");
        let wild = "<script>alert('1 & 2')</script>\"\u{0}\u{202e}\n";
        let shown =
            "&lt;script&gt;alert(&#39;1 &amp; 2&#39;)&lt;/script&gt;&quot;\\x00\\xE2\\x80\\xAE\n";
        assert_eq!(text(wild), shown);
    }
}
