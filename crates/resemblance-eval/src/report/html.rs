//! HTML pages that load nothing, and show everything without their script.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::printable::for_terminal;

const STYLE: &str = include_str!("page.css");

/// Filters the pairs by similarity, and opens all sections before the page is printed.
const SCRIPT: &str = include_str!("page.js");

/// The browser loads nothing, whatever the texts contain.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// Escapes text for HTML. Characters that HTML forbids, or that change the order of text, are
/// escaped as for a terminal.
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

/// Returns a page. `title` and `heading` are text, and `body` is HTML.
pub(super) fn page(title: &str, heading: &str, body: &str) -> String {
    let [title, heading] = [title, heading].map(text);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <p class=\"title\">{title}</p>\n<h1>{heading}</h1>\n{body}\
         <script>\n{SCRIPT}</script>\n</body>\n</html>\n"
    )
}

/// A table with these columns. Cells are HTML. Numbers are aligned to the right.
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
    Number(String),
    /// A bar that fills this share of the column, 0 to 1.
    Bar(f64),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_escapes_texts() {
        assert_eq!(text("plain é"), "plain é");
        let wild = "<script>alert('1 & 2')</script>\"\u{0}\u{202e}\n";
        let shown =
            "&lt;script&gt;alert(&#39;1 &amp; 2&#39;)&lt;/script&gt;&quot;\\x00\\xE2\\x80\\xAE\n";
        assert_eq!(text(wild), shown);
    }

    /// Returns the relative luminance of a colour such as `#1b1f24`, by WCAG 2.
    fn luminance(colour: &str) -> f64 {
        let channel = |place: usize| {
            let part = u8::from_str_radix(&colour[place..place + 2], 16).unwrap();
            let part = f64::from(part) / 255.0;
            match part {
                ..=0.04045 => part / 12.92,
                _ => ((part + 0.055) / 1.055).powf(2.4),
            }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    #[test]
    fn html_colours_have_contrast_in_both_modes() {
        let themes: Vec<&str> = STYLE
            .lines()
            .filter(|line| line.contains("--paper: #"))
            .collect();
        assert_eq!(themes.len(), 2);
        for theme in themes {
            let colour = |name: &str| {
                let (_, value) = theme.split_once(&format!("--{name}: ")).unwrap();
                luminance(&value[..7])
            };
            let texts =
                ["ink", "muted", "accent"].map(|text| ["paper", "card"].map(|on| (text, on)));
            for (text, on) in texts.into_iter().flatten().chain([("ink", "alone")]) {
                let (light, dark) = (colour(text).max(colour(on)), colour(text).min(colour(on)));
                let contrast = (light + 0.05) / (dark + 0.05);
                assert!(contrast >= 4.5, "{text} on {on}: {contrast:.2}");
            }
        }
    }
}
