//! The page.

use std::fmt::Write as _;

use super::bands::PairBand;
use super::explained::{ExplainedPair, legend};
use super::findings::{Findings, SurvivorRule};
use super::groups::ShownCluster;
use super::html::{self, HtmlCell, HtmlTable};
use crate::chart::{Chart, ChartAxis};

/// The maximum number of bytes that are shown of a text.
const SHOWN_BYTES: usize = 3_000;

/// Two documents that are shown.
pub(super) struct SamplePair {
    pub(super) labels: [String; 2],
    /// The comparison of their texts, or `None` if these are unavailable, or too long.
    pub(super) explained: Option<ExplainedPair>,
}

/// Everything that the page shows.
pub(super) struct ReportPage<'f> {
    pub(super) inputs: &'f [String],
    pub(super) found: &'f Findings,
    pub(super) rule: &'f SurvivorRule,
    pub(super) samples: Vec<(&'f PairBand, Vec<SamplePair>)>,
    pub(super) chains: Vec<(&'f ShownCluster, SamplePair)>,
}

impl ReportPage<'_> {
    pub(super) fn html(&self) -> Result<String, String> {
        let sections = [
            self.figures(),
            self.curve()?,
            self.histogram(),
            self.sizes(),
            self.pairs(),
            self.suspicious(),
            self.losses(),
        ];
        let title = match self.inputs {
            [one] => format!("Near-duplicates of {one}"),
            [first, rest @ ..] => format!("Near-duplicates of {first} and {} more", rest.len()),
            [] => "Near-duplicates".into(),
        };
        Ok(html::page(&title, &sections.concat()))
    }

    /// Names the kind of similarity.
    fn likeness(&self) -> &'static str {
        match (self.found.bands.are_by_similarity(), self.found.is_exact) {
            (false, _) => "distance",
            (true, true) => "similarity",
            (true, false) => "similarity_estimate",
        }
    }

    fn figures(&self) -> String {
        let documents = self.found.collected.len();
        let share = |part: u64| percentage(part, documents);
        let clusters = &self.found.clusters;
        let of_clusters = clusters.members - clusters.clusters;
        let mut table = HtmlTable::new(&["figure", "number", "share of the documents"]);
        let mut row = |name: &str, number: u64, share: String| {
            table.row([
                HtmlCell::Text(name),
                HtmlCell::Number(number.to_string()),
                HtmlCell::Number(share),
            ]);
        };
        row("documents", documents, String::new());
        row(
            "near-duplicate pairs",
            self.found.bands.pairs,
            String::new(),
        );
        row("clusters", clusters.clusters, String::new());
        row(
            "documents in clusters",
            clusters.members,
            share(clusters.members),
        );
        let dropped = &self.found.dropped;
        let of_dedup = format!("dropped by dedup ({})", self.rule.options);
        row(&of_dedup, dropped.dropped, share(dropped.dropped));
        if dropped.in_store > 0 {
            let in_store = dropped.in_store;
            row(
                "of these, like documents of the store",
                in_store,
                share(in_store),
            );
        }
        if !self.rule.is_one_of_each_cluster {
            row(
                "documents in clusters but one of each (--policy cluster)",
                of_clusters,
                share(of_clusters),
            );
        }
        let mut out = table.finish();
        let how = match self.likeness() {
            "distance" => "Documents are compared by the distance of their fingerprints, in bits.",
            "similarity" => "Similarities are exact Jaccard similarities of the sets of shingles.",
            _ => "Similarities are estimates from signatures.",
        };
        let schema = self.found.schema().to_string();
        let _ = writeln!(
            out,
            "<p>{how} The schema:</p>\n<pre>{}</pre>",
            html::text(&schema)
        );
        let left_out = &self.found.left_out;
        if !left_out.is_empty() {
            let _ = writeln!(
                out,
                "<p>--max-bucket left {} pairs out in {} buckets: they were not compared.</p>",
                left_out.pairs, left_out.buckets
            );
        }
        out
    }

    fn curve(&self) -> Result<String, String> {
        let mut out = "<h2>Which pairs are found</h2>\n".to_owned();
        let Some(minhash) = self.found.schema().minhash() else {
            out.push_str("<p>All pairs within the distance are found.</p>\n");
            return Ok(out);
        };
        let mut chart = Chart::new(
            format!("{} bands of {} rows", minhash.bands(), minhash.rows()),
            ChartAxis::share("Jaccard similarity"),
            ChartAxis::share("probability that a pair is found"),
        );
        chart.curve("by MinHash", |similarity| minhash.probability(similarity));
        chart.upright("threshold", minhash.threshold());
        out.push_str(&chart.svg()?);
        let _ = writeln!(
            out,
            "<p>A pair at the threshold of {} is found with the probability {:.4}.</p>",
            minhash.threshold(),
            minhash.recall_at_threshold()
        );
        Ok(out)
    }

    fn histogram(&self) -> String {
        let mut out = "<h2>How alike pairs are</h2>\n".to_owned();
        let mut table = HtmlTable::new(&[self.likeness(), "pairs", ""]);
        let counts = &self.found.bands.counts;
        let first = counts
            .iter()
            .position(|count| *count > 0)
            .unwrap_or(counts.len());
        let rows: Vec<(String, u64)> = match self.found.bands.are_by_similarity() {
            false => counts
                .iter()
                .enumerate()
                .skip(first)
                .map(|(distance, count)| (distance.to_string(), *count))
                .collect(),
            true => similarity_rows(first, counts),
        };
        let most = rows.iter().map(|(_, count)| *count).fold(1, u64::max);
        for (name, count) in &rows {
            let bar = *count as f64 / most as f64;
            table.row([
                HtmlCell::Text(name),
                HtmlCell::Number(count.to_string()),
                HtmlCell::Bar(bar),
            ]);
        }
        out.push_str(&table.finish());
        out
    }

    fn sizes(&self) -> String {
        let mut out = "<h2>Sizes of clusters</h2>\n".to_owned();
        let mut rows: Vec<(usize, usize, u64, u64)> = Vec::new();
        for (&size, &clusters) in &self.found.clusters.sizes {
            let (from, to) = size_class(size);
            let members = size as u64 * clusters;
            match rows.last_mut().filter(|(start, ..)| *start == from) {
                Some((_, _, all, documents)) => {
                    (*all, *documents) = (*all + clusters, *documents + members)
                }
                None => rows.push((from, to, clusters, members)),
            }
        }
        let most = rows.iter().map(|(.., members)| *members).fold(1, u64::max);
        let mut table = HtmlTable::new(&["documents in a cluster", "clusters", "documents", ""]);
        for (from, to, clusters, members) in rows {
            let name = if from == to {
                from.to_string()
            } else {
                format!("{from} to {to}")
            };
            table.row([
                HtmlCell::Text(&name),
                HtmlCell::Number(clusters.to_string()),
                HtmlCell::Number(members.to_string()),
                HtmlCell::Bar(members as f64 / most as f64),
            ]);
        }
        out.push_str(&table.finish());
        out
    }

    fn pairs(&self) -> String {
        let mut out = "<h2>Pairs of each band</h2>\n".to_owned();
        out.push_str(&legend());
        for (band, pairs) in &self.samples {
            if band.pairs == 0 {
                continue;
            }
            let _ = writeln!(
                out,
                "<h3>{}: {} of {} pairs</h3>",
                html::text(&band.name),
                pairs.len(),
                band.pairs
            );
            for pair in pairs {
                out.push_str(&pair.html());
            }
        }
        out
    }

    fn suspicious(&self) -> String {
        let mut out = "<h2>Clusters to look at</h2>\n".to_owned();
        out.push_str(
            "<p>Near is not transitive: a chain of near-duplicates can connect documents that have little in \
             common. Here are the largest clusters, then those whose members are least alike. Of a large \
             cluster some members are compared, evenly spread.</p>\n",
        );
        let clusters = &self.found.clusters;
        if clusters.uncompared > 0 {
            let _ = writeln!(
                out,
                "<p>The members of {} further clusters were not compared.</p>",
                clusters.uncompared
            );
        }
        let what = self.likeness();
        for (place, (cluster, pair)) in self.chains.iter().enumerate() {
            let kind = match place < clusters.largest.len() {
                true => "One of the largest",
                false => "One of the least alike",
            };
            let _ = writeln!(
                out,
                "<h3>{kind}: {} documents; the least alike of {} that were compared have the {what} {}</h3>",
                cluster.documents, cluster.compared, cluster.least_alike.likeness
            );
            out.push_str(&pair.html());
        }
        out
    }

    fn losses(&self) -> String {
        let mut out = "<h2>What dedup drops</h2>\n".to_owned();
        let tally = &self.found.dropped;
        let samples = tally.least_alike();
        let documents = tally.kept + tally.dropped;
        let why = self.rule.reason;
        let _ = writeln!(
            out,
            "<p>With {}: {} of {documents} documents, {}; {why}. {} of them are equal to the one that stays. \
             The {} that are least like their survivors:</p>",
            html::text(&self.rule.options),
            tally.dropped,
            percentage(tally.dropped, documents),
            tally.equal,
            samples.len()
        );
        if tally.estimated > 0 {
            let _ = writeln!(
                out,
                "<p>{} of them were compared with their survivors by estimate, because these have no texts \
                 here.</p>",
                tally.estimated
            );
        }
        if tally.budget_exceeded > 0 {
            let _ = writeln!(
                out,
                "<p>{} documents were compared with a part of their candidates only.</p>",
                tally.budget_exceeded
            );
        }
        let mut table = HtmlTable::new(&["dropped", "survivor", self.likeness()]);
        for sample in samples {
            let likeness = match sample.is_estimate {
                true => format!("{} (estimate)", sample.likeness),
                false => sample.likeness.to_string(),
            };
            table.row([
                HtmlCell::Key(&sample.document),
                HtmlCell::Key(&sample.survivor),
                HtmlCell::Number(likeness),
            ]);
        }
        out.push_str(&table.finish());
        out
    }
}

impl SamplePair {
    fn html(&self) -> String {
        let Some(explained) = &self.explained else {
            let [a, b] = &self.labels;
            return format!(
                "<p class=\"key\">{} | {}</p>\n<p class=\"note\">No texts, or too long to be shown.</p>\n",
                html::text(a),
                html::text(b)
            );
        };
        let facts = explained.facts().join("; ");
        format!(
            "<p class=\"note\">{}</p>\n{}",
            html::text(&facts),
            explained.html(SHOWN_BYTES)
        )
    }
}

fn percentage(part: u64, whole: u64) -> String {
    format!("{:.2} %", 100.0 * part as f64 / whole.max(1) as f64)
}

/// Returns the counts from one hundredth on, with enough hundredths in a row that there are at most
/// 25 rows; those of equal documents have a separate row.
fn similarity_rows(first: usize, counts: &[u64]) -> Vec<(String, u64)> {
    let last = counts.len().saturating_sub(1);
    let widths = [1, 2, 5];
    let width = widths
        .into_iter()
        .find(|width| last.saturating_sub(first) <= 25 * width)
        .unwrap_or(5);
    let start = first - first % width;
    let below = counts.get(..last).unwrap_or(&[]);
    let chunks = below.get(start..).unwrap_or(&[]).chunks(width).zip(0..);
    let edge = |part: usize| part as f64 / last.max(1) as f64;
    let row = |(chunk, number): (&[u64], usize)| {
        let from = start + number * width;
        let name = format!("{:.2} to below {:.2}", edge(from), edge(from + width));
        (name, chunk.iter().sum())
    };
    let equal = counts.last().map(|equal| ("1".to_owned(), *equal));
    chunks.map(row).chain(equal).collect()
}

/// Returns the range of sizes that one row shows: 2, 3, 4, 5 to 9, 10 to 99, and so on.
fn size_class(size: usize) -> (usize, usize) {
    match size {
        ..5 => (size, size),
        5..10 => (5, 9),
        _ => {
            let from = 10_usize.pow(size.ilog10());
            (from, from.saturating_mul(10) - 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_tell_all_pairs() {
        let mut counts = vec![0; 101];
        for part in [30, 31, 59, 99] {
            counts[part] = part as u64;
        }
        counts[100] = 7;
        let rows = similarity_rows(30, &counts);
        assert_eq!(
            rows.iter().map(|(_, count)| count).sum::<u64>(),
            30 + 31 + 59 + 99 + 7
        );
        assert_eq!(rows[0], ("0.30 to below 0.35".into(), 61));
        assert_eq!(rows.last(), Some(&("1".into(), 7)));
        assert_eq!(similarity_rows(80, &counts).len(), 21);
        assert_eq!(similarity_rows(101, &[0; 101]).len(), 1);
    }

    #[test]
    fn sizes_of_clusters_have_classes() {
        let classes = [2, 4, 7, 10, 99, 100].map(size_class);
        assert_eq!(
            classes,
            [(2, 2), (4, 4), (5, 9), (10, 99), (10, 99), (100, 999)]
        );
    }
}
