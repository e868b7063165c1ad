//! The parts of a page that the crawler uses.

/// Elements whose text every page has, or that is not for reading: their links count all the same.
const AROUND: [&str; 7] = [
    "head", "script", "style", "header", "nav", "aside", "footer",
];

/// Title, text and links of a page.
pub(crate) struct Page {
    pub(crate) title: String,
    pub(crate) text: String,
    pub(crate) links: Vec<String>,
}

impl Page {
    /// Strips the tags in the simplest way, without support for entities, comments or missing
    /// closing tags. Menus and footers must not count, because they would make all pages with
    /// little content similar. On the web, this requires an HTML parser and heuristics that
    /// separate them from the content.
    pub(crate) fn of(url: &str, html: &str) -> Self {
        let mut page = Self {
            title: String::new(),
            text: String::new(),
            links: Vec::new(),
        };
        let mut around = None;
        for piece in html.split('<').skip(1) {
            let (tag, text) = piece.split_once('>').unwrap_or((piece, ""));
            let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
            match name.strip_prefix('/') {
                Some(closed) if around == Some(closed) => around = None,
                None if around.is_none() && AROUND.contains(&name) => around = Some(name),
                _ => {}
            }
            if name == "title" {
                page.title.push_str(text);
            } else if around.is_none() {
                page.text.push_str(text);
                page.text.push(' ');
            }
            if let Some(link) = link(attributes) {
                page.links.push(absolute(url, link));
            }
        }
        page
    }
}

fn link(attributes: &str) -> Option<&str> {
    let (_, value) = attributes.split_once("href=\"")?;
    value.split('"').next()
}

/// A link as a URL. Those within a host begin with a slash.
fn absolute(url: &str, link: &str) -> String {
    if !link.starts_with('/') {
        return link.to_owned();
    }
    let host_at = url.find("://").map_or(0, |place| place + 3);
    let path_at = url[host_at..]
        .find('/')
        .map_or(url.len(), |at| host_at + at);
    format!("{}{link}", &url[..path_at])
}
