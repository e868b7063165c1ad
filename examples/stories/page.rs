//! One page of HTML without anything outside of it: a picture of the stories over the days, and their articles.

use std::collections::BTreeMap;
use std::fmt::Write;

use resemblance::{ClusterId, DocumentId};

use crate::history::{Article, History};

const DAY: u64 = 96;
const LANE: usize = 56;
const LEFT: u64 = 200;
const TOP: usize = 40;

const STYLE: &str = "
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #1b1e23; background: #fbfbf9 }
svg { max-width: 100%; height: auto } small { color: #6a7078 }
article { margin: .6rem 0; padding-left: .8rem; border-left: 3px solid #c9ced6 } h2 { margin: 2rem 0 .5rem }
";

/// The style of the picture, which some engines apply only if it is inside.
const PICTURE_STYLE: &str = "
text { font: 13px system-ui, sans-serif; fill: #4a5058 } .lane { stroke: #c9ced6; stroke-width: 2 }
.dot { fill: #2f6fb5 } .gone { fill: #fbfbf9; stroke: #b5482f; stroke-width: 2 } path { fill: none; stroke-width: 2.5 }
.united { stroke: #2f6fb5 } .split { stroke: #b5482f; stroke-dasharray: 5 4 }
";

pub(crate) fn draw(history: &History) -> String {
    let mut page = String::from(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Stories</title>",
    );
    let (stories, articles) = (history.all.len(), history.articles.len());
    // Writing to a string cannot fail.
    let _ = write!(
        page,
        "<style>{STYLE}</style><h1>Stories</h1><p>{articles} articles, {stories} stories. A dot is an article, \
         a line leads to the story that another became part of, a dashed one to a story that was split off, and a \
         ring is an article that was retracted or stands alone again.</p>{}",
        picture(history)
    );
    for (id, articles) in history.stories() {
        let title = articles.first().map_or("", |article| &article.title);
        let _ = write!(
            page,
            "<h2 id=\"story-{id}\">{}</h2>{}",
            escaped(title),
            origin(history, id)
        );
        for Article {
            day,
            key,
            title,
            text,
        } in articles
        {
            let [key, title, text] = [key, title, text].map(|it| escaped(it));
            let _ = write!(
                page,
                "<article><small>Day {day}, {key}</small><br><b>{title}</b><br>{text}</article>"
            );
        }
    }
    page + "</html>\n"
}

/// Returns what a story was made of, in words.
fn origin(history: &History, id: ClusterId) -> String {
    let mut words = format!("<small>Story {id}");
    if let Some((day, from)) = history.all.get(&id).and_then(|story| story.split_from) {
        let _ = write!(words, ", split from story {from} on day {day}");
    }
    for (other, story) in &history.all {
        if let Some((day, _)) = story.united.filter(|(_, into)| *into == id) {
            let _ = write!(words, ", united with story {other} on day {day}");
        }
    }
    words + "</small>"
}

/// Draws a line for each story, from its first day to its last.
fn picture(history: &History) -> String {
    let lanes: BTreeMap<ClusterId, usize> = history.all.keys().copied().zip(0..).collect();
    let y = |id: &ClusterId| TOP + lanes.get(id).map_or(0, |lane| lane * LANE + LANE / 2);
    let x = |day: u64| LEFT + day * DAY - DAY / 2;
    let last_day = history
        .articles
        .values()
        .map(|article| article.day)
        .max()
        .unwrap_or(1);
    let (width, height) = (LEFT + last_day * DAY, TOP + lanes.len() * LANE);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"Stories over the days\">\
         <style>{PICTURE_STYLE}</style>"
    );
    for day in 1..=last_day {
        let _ = write!(
            svg,
            "<text x=\"{}\" y=\"20\" text-anchor=\"middle\">day {day}</text>",
            x(day)
        );
    }
    for (id, story) in &history.all {
        let first = story.joined.first().map(|(day, _)| *day);
        let first = first
            .into_iter()
            .chain(story.split_from.map(|(day, _)| day))
            .min()
            .unwrap_or(1);
        let end = story.united.map_or(last_day, |(day, _)| day);
        let title = history
            .articles
            .iter()
            .find(|(document, _)| is_of(history, *id, **document));
        let title = escaped(title.map_or("", |(_, article)| &article.title));
        let (y_own, title_y) = (y(id), y(id) + 4);
        let _ = write!(
            svg,
            "<text x=\"0\" y=\"{title_y}\">{id} {title}</text>\
             <line class=\"lane\" x1=\"{}\" y1=\"{y_own}\" x2=\"{}\" y2=\"{y_own}\"/>",
            x(first),
            x(end)
        );
        let mut curve = |class: &str, day: u64, from: &ClusterId, to: &ClusterId| {
            let (from, to, middle, end) = (y(from), y(to), x(day) + DAY / 6, x(day) + DAY / 3);
            let start = x(day);
            let _ = write!(
                svg,
                "<path class=\"{class}\" d=\"M{start} {from} C{middle} {from} {middle} {to} {end} {to}\"/>"
            );
        };
        if let Some((day, into)) = story.united {
            curve("united", day, id, &into);
        }
        if let Some((day, from)) = story.split_from {
            curve("split", day, &from, id);
        }
        for (class, documents) in [("dot", &story.joined), ("gone", &story.left)] {
            let mut of_day: BTreeMap<u64, u64> = BTreeMap::new();
            for (day, document) in documents {
                let title = history
                    .articles
                    .get(document)
                    .map_or("", |article| &article.title);
                let place = of_day.entry(*day).or_default();
                let _ = write!(
                    svg,
                    "<circle class=\"{class}\" cx=\"{}\" cy=\"{y_own}\" r=\"6\"><title>{}</title></circle>",
                    x(*day) + *place * 15,
                    escaped(title)
                );
                *place += 1;
            }
        }
    }
    svg + "</svg>"
}

/// Returns true if an article came to a story, or is in it.
fn is_of(history: &History, id: ClusterId, document: DocumentId) -> bool {
    history.all.get(&id).is_some_and(|story| {
        let mut joined = story.joined.iter().map(|(_, joined)| joined);
        joined.any(|joined| *joined == document) || story.articles.contains(&document)
    })
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
