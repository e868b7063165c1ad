//! The numbers, tables and figures of the page by their names, and the prose that they are set into.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;

use resemblance_eval::Chart;
use resemblance_eval::printable::{for_terminal, grouped};

/// The result of a chapter.
pub(crate) type Chapter = Result<(), Box<dyn Error>>;

/// Returns a number in HTML, with its name and its full value, so that a test can compute it again.
pub(crate) fn number(name: &str, value: f64, digits: usize) -> String {
    let shown = match value.abs() {
        0.0 => "0".to_owned(),
        1e3.. => grouped(value.round() as u64),
        small if small < 0.5 * 10_f64.powi(-(digits as i32)) => format!("{value:.1e}"),
        _ => format!("{value:.digits$}"),
    };
    format!("<data class=\"{name}\" value=\"{value}\">{shown}</data>")
}

/// Returns a whole number in HTML.
pub(crate) fn count(name: &str, value: u64) -> String {
    let shown = grouped(value);
    format!("<data class=\"{name}\" value=\"{value}\">{shown}</data>")
}

/// Returns words of the corpus in HTML.
pub(crate) fn quote(words: &str) -> String {
    format!("<q>{}</q>", escaped(words))
}

/// Escapes a text for HTML.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = for_terminal(text).replace('&', "&amp;");
    safe = safe.replace('<', "&lt;").replace('>', "&gt;");
    safe.replace('"', "&quot;")
}

/// The parts of the page that are computed.
#[derive(Default)]
pub(crate) struct PageParts(BTreeMap<String, String>);

impl PageParts {
    /// Adds a piece of HTML.
    pub(crate) fn html(&mut self, name: &str, html: String) {
        self.0.insert(name.into(), html);
    }

    pub(crate) fn number(&mut self, name: &str, value: f64, digits: usize) {
        self.html(name, number(name, value, digits));
    }

    pub(crate) fn count(&mut self, name: &str, value: u64) {
        self.html(name, count(name, value));
    }

    /// Adds a table. Its cells are HTML.
    pub(crate) fn table(&mut self, name: &str, columns: &[&str], rows: Vec<Vec<String>>) {
        let head: String = columns
            .iter()
            .map(|c| format!("<th scope=\"col\">{c}</th>"))
            .collect();
        let mut html =
            format!("<div class=\"wide\" tabindex=\"0\"><table id=\"{name}\"><tr>{head}</tr>\n");
        for row in rows {
            let mut cells = row.iter();
            let first = cells.next().map_or("", |cell| cell.as_str());
            let rest: String = cells.map(|cell| format!("<td>{cell}</td>")).collect();
            html += &format!("<tr><th scope=\"row\">{first}</th>{rest}</tr>\n");
        }
        self.html(name, html + "</table></div>");
    }

    /// Adds a chart and its legend.
    pub(crate) fn chart(&mut self, name: &str, chart: &Chart) -> Chapter {
        let mut html = format!("<b>{}</b>\n{}<ul>", escaped(&chart.title), chart.figure()?);
        for (series, colour) in chart.legend() {
            let colour = colour.trim_start_matches('#');
            let series = escaped(series);
            html += &format!("<li><i class=\"c{colour}\"></i><span>{series}</span></li>");
        }
        self.html(name, html + "</ul>");
        Ok(())
    }

    /// Sets everything into the prose.
    ///
    /// # Errors
    ///
    /// The names that the prose has and no chapter computed, and the reverse.
    pub(crate) fn fill(self, prose: &str) -> Result<String, Box<dyn Error>> {
        let (mut page, mut used) = (String::new(), BTreeSet::new());
        for part in prose.split("{{") {
            // There is no name before the first brace.
            let Some((name, rest)) = part.split_once("}}") else {
                page += part;
                continue;
            };
            let html = self.0.get(name);
            page += html.ok_or_else(|| format!("the prose names {name}, which is not computed"))?;
            page += rest;
            used.insert(name);
        }
        match self.0.keys().find(|name| !used.contains(&***name)) {
            Some(name) => Err(format!("the prose does not use {name}").into()),
            None => Ok(page),
        }
    }
}
