//! The site: some thousands of pages that are generated on demand.
//!
//! The content of a page depends only on its URL and on the day. An article is available at its
//! main address, under session ids, in a print version, on a mirror, and on another site with a few
//! words changed. Some articles show how often they were read, some are rewritten every day, some
//! appear on the second day, and some disappear on the third. Some links to old pages return a "not
//! found" page with status 200, others a proper 404.

use std::fmt::Write as _;

use super::http::Response;

/// Where a crawl begins.
pub(crate) const HOME: &str = "http://news.example/";

const MIRROR: &str = "http://mirror.example/";
const COPIES: &str = "http://copies.example/";

const ARTICLES_A_SECTION: u64 = 50;

/// Different words in all texts.
const VOCABULARY: u64 = 4_000;

pub(crate) struct Site {
    pub(crate) articles: u64,
}

/// The title of a page, its content, and its links.
type Content = (String, String, Vec<String>);

/// The meaning of a URL.
enum Place {
    Home,
    Section(u64),
    Article(u64, Form),
    /// "Not found", but with status 200, as many sites return it.
    Sorry,
}

/// In which form an article is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Itself,
    Print,
    /// With two words changed.
    Copy,
}

impl Site {
    /// The answer to a request on a day.
    pub(crate) fn answer(&self, url: &str, day: u64) -> Response {
        let page = match self.place(url) {
            Some(Place::Home) => home(),
            Some(Place::Section(section)) => self.section(section, day),
            Some(Place::Article(number, form)) if self.is_shown(number, day) => {
                self.article(number, form, day)
            }
            Some(Place::Sorry) => sorry(),
            _ => {
                let body = self.html("Not found", "There is no such page.", &[], day);
                return Response { status: 404, body };
            }
        };
        let (title, content, links) = page;
        let body = self.html(&title, &content, &links, day);
        Response { status: 200, body }
    }

    /// Returns the subject of a page. On any one day, pages with the same subject are
    /// near-duplicates of each other and of no other pages. Only tests call this; the crawler never
    /// does.
    #[allow(dead_code, reason = "for tests")]
    pub(crate) fn subject(&self, url: &str) -> Option<String> {
        Some(match self.place(url)? {
            Place::Home => "home".to_owned(),
            Place::Section(section) => format!("section {section}"),
            Place::Article(number, _) => format!("article {number}"),
            Place::Sorry => "sorry".to_owned(),
        })
    }

    fn place(&self, url: &str) -> Option<Place> {
        let article = |text: &str, form| {
            let number = text.parse().ok().filter(|number| *number < self.articles)?;
            Some(Place::Article(number, form))
        };
        if let Some(path) = url.strip_prefix(MIRROR) {
            return article(path.strip_prefix("article/")?, Form::Itself);
        }
        if let Some(path) = url.strip_prefix(COPIES) {
            return article(path.strip_prefix("story/")?, Form::Copy);
        }
        let path = url.strip_prefix(HOME)?;
        // The query does not change the answer.
        let path = path.split_once('?').map_or(path, |(path, _)| path);
        let mut parts = path.split('/');
        match (parts.next()?, parts.next(), parts.next()) {
            ("", None, None) => Some(Place::Home),
            ("section", Some(number), None) => {
                let number = number.parse().ok();
                Some(Place::Section(
                    number.filter(|number| *number < self.sections())?,
                ))
            }
            ("article", Some(number), None) => article(number, Form::Itself),
            ("article", Some(number), Some("print")) => article(number, Form::Print),
            ("old", Some(_), None) => Some(Place::Sorry),
            _ => None,
        }
    }

    fn sections(&self) -> u64 {
        self.articles.div_ceil(ARTICLES_A_SECTION)
    }

    fn is_shown(&self, number: u64, day: u64) -> bool {
        let first = if number % 8 == 5 { 2 } else { 1 };
        let is_gone = number % 25 == 9 && day > 2;
        number < self.articles && day >= first && !is_gone
    }

    /// The titles of the articles of a section.
    fn section(&self, section: u64, day: u64) -> Content {
        let first = section * ARTICLES_A_SECTION;
        let mut list = String::new();
        for number in first..first + ARTICLES_A_SECTION {
            if self.is_shown(number, day) {
                let title = title(number);
                let _ = write!(list, "<li><a href=\"/article/{number}\">{title}</a></li>");
            }
        }
        (
            format!("Section {section}"),
            format!("<ul>{list}</ul>"),
            Vec::new(),
        )
    }

    fn article(&self, number: u64, form: Form, day: u64) -> Content {
        let is_rewritten = number % 10 == 7;
        let seed = mix(number << 8 | if is_rewritten { day } else { 0 });
        let length = 150 + mix(number) % 200;
        let mut text = words(seed, length);
        if form == Form::Copy {
            for place in [length / 3, length / 2] {
                text[place as usize] = "allegedly".to_owned();
            }
        }
        let mut content = format!("<p>{}</p>", sentences(&text));
        if number % 10 == 3 {
            let count = number + day * 137;
            let _ = write!(content, "<p>Read {count} times until day {day}.</p>");
        }
        if form == Form::Print {
            content.push_str("<p>Printed page.</p>");
        }
        (title(number), content, self.links(number, day))
    }

    /// The links of an article, the same in all its forms.
    fn links(&self, number: u64, day: u64) -> Vec<String> {
        let mut links = vec![format!("/article/{number}/print")];
        if number.is_multiple_of(3) {
            links.push(format!("{MIRROR}article/{number}"));
        }
        if number.is_multiple_of(4) {
            links.push(format!("{COPIES}story/{number}"));
        }
        if number % 5 == 1 {
            links.push(format!("{HOME}old/{number}"));
        }
        if number % 7 == 2 {
            links.push(format!("{HOME}missing/{number}"));
        }
        for turn in 1..=2 {
            let related = mix(number + turn * self.articles) % self.articles;
            if self.is_shown(related, day) {
                links.push(format!("{HOME}article/{related}?session={number}-{turn}"));
            }
        }
        links
    }

    /// A page: its content within what all pages have around theirs.
    fn html(&self, title: &str, content: &str, links: &[String], day: u64) -> String {
        let mut menu = String::new();
        for section in 0..self.sections() {
            let _ = write!(
                menu,
                "<a href=\"{HOME}section/{section}\">Section {section}</a> "
            );
        }
        let mut aside = String::new();
        for link in links {
            let _ = write!(aside, "<a href=\"{link}\">See also</a> ");
        }
        format!(
            "<!DOCTYPE html>\n<html><head><title>{title}</title>\
             <style>main {{ max-width: 40em }}</style></head>\n<body><header>The news of every \
             day, for everybody</header>\n<nav>{menu}</nav>\n<main><h1>{title}</h1>{content}</main>\n\
             <aside>{aside}</aside>\n<footer>Day {day}. Write to us.</footer></body></html>\n"
        )
    }
}

fn home() -> Content {
    let text = format!("<p>{}</p>", sentences(&words(1, 120)));
    ("The news".to_owned(), text, Vec::new())
}

fn sorry() -> Content {
    let text = format!("<p>Sorry, nothing here. {}</p>", sentences(&words(2, 100)));
    ("Sorry".to_owned(), text, Vec::new())
}

fn title(number: u64) -> String {
    words(mix(number + 1_000_000_000), 6).join(" ")
}

fn sentences(words: &[String]) -> String {
    let sentences: Vec<String> = words.chunks(12).map(|words| words.join(" ")).collect();
    format!("{}.", sentences.join(". "))
}

fn words(seed: u64, count: u64) -> Vec<String> {
    (0..count)
        .map(|place| word(mix(seed.wrapping_add(mix(place))) % VOCABULARY))
        .collect()
}

/// One of the vocabulary: two or three syllables.
fn word(number: u64) -> String {
    const SYLLABLES: [&str; 16] = [
        "ba", "den", "fi", "gor", "ha", "jun", "ke", "lor", "mi", "nas", "po", "rel", "si", "tam",
        "vo", "zun",
    ];
    let mut word = String::new();
    let mut rest = number + 16;
    while rest > 0 {
        word.push_str(SYLLABLES[(rest % 16) as usize]);
        rest /= 16;
    }
    word
}

/// The number at a place of a splitmix64 stream (Steele, Lea and Flood 2014).
fn mix(place: u64) -> u64 {
    let number = place.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
