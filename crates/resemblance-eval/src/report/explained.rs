//! Shows two texts side by side, and what they share.

use std::fmt::Write as _;
use std::ops::Range;

use resemblance::Schema;
use resemblance::schema::ShingleUnit;
use resemblance_corpus::verification::Explanation;
use serde_json::json;

use super::html;
use crate::printable::{for_terminal, grouped};

/// Two texts and what they share.
#[derive(Debug)]
pub struct ExplainedPair {
    /// The labels of the texts: printed keys, or names of files.
    pub labels: [String; 2],
    texts: [String; 2],
    found: Explanation,
    /// True if shingles consist of words, so that text between words makes no difference.
    is_by_words: bool,
}

impl ExplainedPair {
    /// Compares two texts by the rules and the signatures of a schema for texts.
    pub fn new(
        schema: &Schema,
        labels: [String; 2],
        texts: [String; 2],
    ) -> resemblance::Result<Self> {
        let [a, b] = &texts;
        Ok(Self {
            found: Explanation::new(schema, a, b)?,
            labels,
            texts,
            is_by_words: schema
                .text()
                .is_some_and(|text| matches!(text.unit(), ShingleUnit::Words | ShingleUnit::Auto)),
        })
    }

    /// Returns the facts as lines of text.
    pub fn facts(&self) -> Vec<String> {
        let shared = &self.found.shared;
        let mut facts = vec![format!("similarity {:.6} (exact)", shared.jaccard)];
        let of_what = match self.found.weighted_similarity {
            Some(_) => "from signatures, of the weighted similarity",
            None => "from signatures",
        };
        let estimate = self.found.estimate;
        facts.extend(estimate.map(|s| format!("similarity_estimate {s:.6} ({of_what})")));
        let weighted = self.found.weighted_similarity;
        facts.extend(weighted.map(|s| format!("weighted similarity {s:.6} (exact)")));
        let distance = self.found.distance;
        facts.extend(distance.map(|d| format!("distance {d} (of fingerprints)")));
        facts.push(format!(
            "cosine {:.6}, Dice {:.6}, overlap {:.6} (exact, of the sets of shingles)",
            shared.cosine, shared.dice, shared.overlap
        ));
        let cosine = self.found.weighted_cosine;
        facts.extend(cosine.map(|s| format!("cosine of counted shingles {s:.6} (exact)")));
        facts.push(format!(
            "shared shingles {}: {:.6} of the {} of a, {:.6} of the {} of b",
            shared.shared,
            shared.share_of_a,
            shared.shingles_a,
            shared.share_of_b,
            shared.shingles_b
        ));
        facts.push(match &self.found.longest {
            None => "no shared passage".into(),
            Some(passage) => format!(
                "longest shared passage: {} shingles, bytes {} to {} of a, {} to {} of b",
                passage.shingles, passage.a.start, passage.a.end, passage.b.start, passage.b.end
            ),
        });
        facts
    }

    /// Returns the facts and both texts for a terminal. Shared parts are coloured if `has_colour`,
    /// and between ⟦ and ⟧ otherwise.
    pub fn text(&self, has_colour: bool) -> String {
        let mut out = String::new();
        for (name, label) in ["a", "b"].iter().zip(&self.labels) {
            let _ = writeln!(out, "{name}: {}", for_terminal(label));
        }
        for fact in self.facts() {
            let _ = writeln!(out, "{fact}");
        }
        let (before, after) = match has_colour {
            true => ("\x1b[32m", "\x1b[0m"),
            false => ("⟦", "⟧"),
        };
        let sides = self.sides();
        for (name, (text, spans)) in ["a", "b"].iter().zip(sides) {
            let _ = writeln!(out, "\n--- {name}");
            for (part, is_shared) in parts(text, spans) {
                let part = for_terminal(part);
                let _ = match is_shared {
                    true => write!(out, "{before}{part}{after}"),
                    false => write!(out, "{part}"),
                };
            }
            out.push('\n');
        }
        out
    }

    /// Returns an object with all figures. Spans are pairs of byte positions.
    pub fn json(&self) -> serde_json::Value {
        let pair = |range: &Range<usize>| json!([range.start, range.end]);
        let pairs = |spans: &[Range<usize>]| spans.iter().map(pair).collect::<Vec<_>>();
        let [a, b] = &self.labels;
        let shared = &self.found.shared;
        json!({
            "a": a,
            "b": b,
            "similarity": shared.jaccard,
            "similarity_estimate": self.found.estimate,
            "estimate_is_weighted": self.found.weighted_similarity.is_some(),
            "weighted_similarity": self.found.weighted_similarity,
            "cosine": shared.cosine,
            "dice": shared.dice,
            "overlap": shared.overlap,
            "weighted_cosine": self.found.weighted_cosine,
            "distance": self.found.distance,
            "shingles_a": shared.shingles_a,
            "shingles_b": shared.shingles_b,
            "shared": shared.shared,
            "share_of_a": shared.share_of_a,
            "share_of_b": shared.share_of_b,
            "spans_a": pairs(&shared.spans_a),
            "spans_b": pairs(&shared.spans_b),
            "longest": self.found.longest.as_ref().map(|longest| json!({
                "shingles": longest.shingles,
                "a": pair(&longest.a),
                "b": pair(&longest.b),
            })),
        })
    }

    /// Shows both texts side by side as HTML, with the differences marked. Shows at most about
    /// `max_bytes` bytes of each, beginning a little before the first difference.
    pub fn html(&self, max_bytes: usize) -> String {
        let mut out = String::from("<div class=\"pair\">\n");
        for (label, (text, spans)) in self.labels.iter().zip(self.sides()) {
            let shown = self.side(text, spans, max_bytes, |class, part| {
                format!("<span class=\"{class}\">{}</span>", html::text(part))
            });
            let _ = writeln!(
                out,
                "<div><h3 class=\"key\">{}</h3><div class=\"text\" tabindex=\"0\">{shown}</div></div>",
                html::text(label)
            );
        }
        out.push_str("</div>\n");
        out
    }

    /// Returns the exact shares of the shingles of each text that the other one has.
    pub(super) fn shares(&self) -> [f64; 2] {
        [self.found.shared.share_of_a, self.found.shared.share_of_b]
    }

    /// Returns at most about `max_bytes` bytes of each text, as [`html`](Self::html) shows them. What
    /// only the first one has is between `[-` and `-]`, and what only the second one has between
    /// `{+` and `+}`.
    pub fn marked(&self, max_bytes: usize) -> [String; 2] {
        let [a, b] = self.sides();
        [(a, ["[-", "-]"]), (b, ["{+", "+}"])].map(|((text, spans), [before, after])| {
            self.side(text, spans, max_bytes, |class, part| match class {
                "alone" => format!("{before}{part}{after}"),
                _ => part.to_owned(),
            })
        })
    }

    /// Returns at most about `max_bytes` bytes of a text, beginning a little before the first
    /// difference, and notes of what is left out. `show` receives the class of each part.
    fn side(
        &self,
        text: &str,
        spans: &[Range<usize>],
        max_bytes: usize,
        show: impl Fn(&str, &str) -> String,
    ) -> String {
        let window = excerpt(text, spans, max_bytes);
        let (mut out, mut at, mut hidden) = (String::new(), 0, 0);
        if window.start > 0 {
            out += &show("note", &left_out(window.start, 0));
        }
        for (part, is_shared) in parts(text, spans) {
            let (from, to) = (at.max(window.start), (at + part.len()).min(window.end));
            let shown = (from < to).then(|| text.get(from..to)).flatten();
            at += part.len();
            let class = match is_shared {
                true => "shared",
                false if self.is_by_words && !part.contains(char::is_alphanumeric) => "between",
                false => "alone",
            };
            hidden += u64::from(class == "alone" && at > window.end);
            out += &shown.map_or_else(String::new, |shown| show(class, shown));
        }
        if window.end < text.len() {
            out += &show("note", &left_out(text.len() - window.end, hidden));
        }
        out
    }

    fn sides(&self) -> [(&str, &[Range<usize>]); 2] {
        let [a, b] = &self.texts;
        [
            (a, &self.found.shared.spans_a),
            (b, &self.found.shared.spans_b),
        ]
    }
}

/// Notes that bytes are left out, and the number of differences that they touch.
fn left_out(bytes: usize, differences: u64) -> String {
    let among = match differences {
        0 => String::new(),
        1 => ", with a difference".into(),
        several => format!(", with {} differences", grouped(several)),
    };
    format!("[{} bytes not shown{among}]", grouped(bytes as u64))
}

/// Returns the parts of a text in order, each with whether it is one of the spans.
fn parts<'t>(
    text: &'t str,
    spans: &'t [Range<usize>],
) -> impl Iterator<Item = (&'t str, bool)> + 't {
    let gaps_end = spans.iter().map(|span| span.start).chain([text.len()]);
    let gaps_start = std::iter::once(0).chain(spans.iter().map(|span| span.end));
    let gaps = gaps_start
        .zip(gaps_end)
        .map(|(start, end)| (start..end, false));
    let shared = spans.iter().map(|span| (span.clone(), true));
    let ranges = itertools::Itertools::interleave(gaps, shared);
    let parts = ranges.filter_map(|(range, is_shared)| Some((text.get(range)?, is_shared)));
    parts.filter(|(part, _)| !part.is_empty())
}

/// The number of bytes to show before the first difference.
const LEAD_BYTES: usize = 200;

/// Returns the range of a text to show. It has at most `max_bytes` and contains the first
/// difference.
fn excerpt(text: &str, spans: &[Range<usize>], max_bytes: usize) -> Range<usize> {
    if text.len() <= max_bytes {
        return 0..text.len();
    }
    let mut differences = parts(text, spans).scan(0, |at, (part, is_shared)| {
        let start = *at;
        *at += part.len();
        Some((start, is_shared))
    });
    let first = differences
        .find(|&(_, is_shared)| !is_shared)
        .map_or(0, |(start, _)| start);
    let start = first.saturating_sub(LEAD_BYTES).min(text.len() - max_bytes);
    let start = text.floor_char_boundary(start);
    start..text.floor_char_boundary(start + max_bytes)
}

/// Returns a page about some pairs.
pub fn explained_page(title: &str, pairs: &[ExplainedPair]) -> String {
    let mut body = legend();
    for pair in pairs {
        let [a, b] = &pair.labels;
        let _ = writeln!(
            body,
            "<h2 class=\"key\">{} | {}</h2>\n<p>",
            html::text(a),
            html::text(b)
        );
        for fact in pair.facts() {
            let _ = writeln!(body, "{}<br/>", html::text(&fact));
        }
        body.push_str("</p>\n");
        body.push_str(&pair.html(usize::MAX));
    }
    html::page("resemblance explain", title, &body)
}

/// Returns an explanation of the marks.
pub(super) fn legend() -> String {
    "<p class=\"note\"><span class=\"alone\">Marked words</span> occur in this text alone. Shingles of both texts \
     cover everything else.</p>\n"
        .into()
}

#[cfg(test)]
mod tests {
    use resemblance::{MinHash, SimHash, Text};

    use super::*;

    fn pair(a: &str, b: &str) -> ExplainedPair {
        let text = Text::words(2);
        let schema = Schema::builder()
            .text(text)
            .minhash(MinHash::new(64))
            .simhash(SimHash::bits64())
            .build()
            .unwrap();
        let labels = ["one".into(), "<two>".into()];
        ExplainedPair::new(&schema, labels, [a.into(), b.into()]).unwrap()
    }

    #[test]
    fn explained_pair_marks_shared_spans() {
        let pair = pair("So: the <b>cat</b> sat.", "b cat, b\u{1b}[2J dog");
        let text = pair.text(false);
        assert!(
            text.contains("--- a\nSo: the <⟦b>cat</b⟧> sat.\n"),
            "{text}"
        );
        assert!(text.contains("--- b\n⟦b cat, b⟧\\x1B[2J dog\n"), "{text}");
        let coloured = pair.text(true);
        assert!(
            coloured.contains("\x1b[32mb>cat</b\x1b[0m> sat."),
            "{coloured}"
        );
        let html = pair.html(usize::MAX);
        assert!(
            html.contains("&lt;two&gt;") && !html.contains("<b>"),
            "{html}"
        );
        let shared = "<span class=\"shared\">b&gt;cat&lt;/b</span>";
        assert!(html.contains(shared), "{html}");
        let json = pair.json();
        assert_eq!(json["spans_a"], json!([[9, 17]]));
        assert_eq!(json["longest"]["shingles"], 2);
        assert_eq!(
            json["distance"].as_u64(),
            pair.found.distance.map(u64::from)
        );
    }

    #[test]
    fn marked_texts_show_what_one_alone_has() {
        let both = pair(
            "One two. (Three?) five six seven",
            "one two, five six 7 seven",
        );
        let marked = [
            "One two[-. (Three?) -]five six[- seven-]",
            "one two, five six{+ 7 seven+}",
        ];
        assert_eq!(both.marked(100), marked);
        assert_eq!(pair("a b", "A, b!").marked(100), ["a b", "A, b!"]);
    }

    #[test]
    fn long_texts_are_shown_around_their_first_difference() {
        let same = "é same ".repeat(1_000);
        let a = format!("{same}here{same}");
        let b = format!("{same}there{same}");
        let pair = pair(&a, &b);
        let html = pair.html(1_000);
        assert!(html.contains("here") && html.contains("there"), "{html}");
        assert!(html.len() < 4_000, "{}", html.len());
        let start = same.len() - 5 - LEAD_BYTES;
        let note = |bytes: usize| format!("[{} bytes not shown]", grouped(bytes as u64));
        assert!(
            (start - 8..start + 8).any(|bytes| html.contains(&note(bytes))),
            "{html}"
        );
        assert!(!pair.html(a.len() + 1).contains("not shown"));
        let [shown, _] = pair.marked(1_000);
        assert!(shown.contains("[-") && shown.starts_with('[') && shown.ends_with(" shown]"));
        assert!(shown.len() < 1_100, "{}", shown.len());
    }
}
