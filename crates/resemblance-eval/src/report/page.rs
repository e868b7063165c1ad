//! The report page.

use std::fmt::Write as _;

use super::bands::PairBand;
use super::dropped::{DropOrder, DroppedSample};
use super::explained::{ExplainedPair, legend};
use super::findings::{Findings, SurvivorRule};
use super::groups::{Likeness, ShownCluster};
use super::html::{self, HtmlCell, HtmlTable};
use crate::chart::{Chart, ChartAxis};
use crate::printable::{byte_size, grouped};
use resemblance::key_text;
use resemblance::schema::{VectorMetric, noun};

/// The maximum number of bytes of a text to show.
const SHOWN_BYTES: usize = 3_000;

/// Texts that are longer are not shown.
pub const MAX_TEXT_BYTES: usize = 1 << 20;

/// A pair of documents to show.
pub(super) struct SamplePair {
    pub(super) labels: [String; 2],
    pub(super) likeness: Likeness,
    /// `None` if the texts are unknown or too long.
    pub(super) explained: Option<ExplainedPair>,
}

/// A cluster to show.
pub(super) struct ClusterSample<'f> {
    pub(super) cluster: &'f ShownCluster,
    /// The printed keys of the members that were compared.
    pub(super) members: Vec<String>,
    pub(super) least_alike: SamplePair,
}

/// The contents of the page.
pub(super) struct ReportPage<'f> {
    pub(super) inputs: &'f [String],
    pub(super) found: &'f Findings,
    pub(super) rule: &'f SurvivorRule,
    pub(super) samples: Vec<(&'f PairBand, Vec<SamplePair>)>,
    /// The largest clusters first, then those whose members are least similar.
    pub(super) clusters: Vec<ClusterSample<'f>>,
    /// Removed documents, with their texts and those of their survivors where both are known.
    pub(super) drops: Vec<(Option<ExplainedPair>, DroppedSample)>,
}

impl ReportPage<'_> {
    pub(super) fn html(&self) -> Result<String, String> {
        let sections = [
            ("similarity", "How similar the pairs are", self.histogram()),
            ("pairs", "Pairs to look at", self.pairs()),
            ("clusters", "Clusters to look at", self.suspicious()),
            ("sizes", "Sizes of clusters", self.sizes()),
            ("removed", "What dedup would remove", self.losses()),
            ("method", "How pairs are found", self.method()?),
        ];
        let title = match self.inputs {
            [one] => format!("Near-duplicates of {one}"),
            [first, rest @ ..] => format!("Near-duplicates of {first} and {} more", rest.len()),
            [] => "Near-duplicates".into(),
        };
        let mut body = self.tiles() + "<nav aria-label=\"Contents\">\n<ul>\n";
        for (id, name, _) in &sections {
            let _ = writeln!(body, "<li><a href=\"#{id}\">{name}</a></li>");
        }
        body.push_str("</ul>\n</nav>\n");
        for (id, name, html) in &sections {
            let _ = writeln!(
                body,
                "<section id=\"{id}\">\n<h2>{name}</h2>\n{html}</section>"
            );
        }
        Ok(html::page(&title, &self.headline(), &body))
    }

    fn headline(&self) -> String {
        let dropped = &self.found.dropped;
        let documents = dropped.kept + dropped.dropped;
        let share = match (
            dropped.dropped,
            100.0 * dropped.dropped as f64 / documents.max(1) as f64,
        ) {
            (0, _) => {
                return format!(
                    "Nothing would be removed from {} {}",
                    grouped(documents),
                    noun(documents, "document")
                );
            }
            (few, ..0.05) => grouped(few),
            (_, share) => format!("{share:.1} %"),
        };
        let size = match dropped.bytes {
            0 => String::new(),
            bytes => format!(", {},", byte_size(bytes)),
        };
        format!(
            "{share} of {} {}{size} would be removed",
            grouped(documents),
            noun(documents, "document")
        )
    }

    /// Returns the name of the similarities.
    fn likeness(&self) -> &'static str {
        match (self.found.bands.are_by_similarity(), self.found.is_exact) {
            (false, _) => "distance",
            (true, true) => "similarity",
            (true, false) => "estimated similarity",
        }
    }

    /// Explains the marks in texts, if the documents are texts.
    fn legend(&self) -> String {
        let text = self.found.schema().text();
        text.map_or_else(String::new, |_| legend())
    }

    fn tiles(&self) -> String {
        let documents = self.found.collected.len();
        let (clusters, dropped) = (&self.found.clusters, &self.found.dropped);
        let mut out = String::from("<dl class=\"tiles\">\n");
        let mut tile = |name: &str, number: u64| {
            let number = grouped(number);
            let _ = writeln!(out, "<div><dt>{name}</dt><dd>{number}</dd></div>");
        };
        tile("documents", documents);
        tile("near-duplicate pairs", self.found.bands.pairs);
        tile("clusters", clusters.clusters);
        tile("documents in clusters", clusters.members);
        tile("removed by dedup", dropped.dropped);
        tile("of these, exact copies", dropped.equal);
        if dropped.in_store > 0 {
            tile("of these, like documents of the store", dropped.in_store);
        }
        out.push_str("</dl>\n");
        out
    }

    fn method(&self) -> Result<String, String> {
        let vectors = self.found.schema().vector();
        let how = match (self.likeness(), vectors.map(|vector| vector.metric())) {
            ("distance", _) => {
                "Documents are compared by the distance of their fingerprints, in bits."
            }
            ("similarity", None) => {
                "Similarities are exact Jaccard similarities of the sets of shingles."
            }
            ("similarity", Some(VectorMetric::Cosine)) => "Similarities are cosines of vectors.",
            ("similarity", Some(VectorMetric::Euclidean(_))) => {
                "Vectors at a Euclidean distance of d have the similarity 1 / (1 + d)."
            }
            _ => "Similarities are estimates from signatures.",
        };
        let (axis, curve) = match vectors {
            Some(_) => ("similarity", "by hash values"),
            None => ("Jaccard similarity", "by MinHash"),
        };
        let mut out = format!("<p>{how}");
        match self.found.schema().minhash() {
            None => out.push_str(" All pairs within the distance are found.</p>\n"),
            Some(minhash) => {
                let estimates = match self.likeness() {
                    "similarity" => "",
                    _ => " About half of the pairs right at the threshold have a lower estimate.",
                };
                let bands = format!(
                    "{} {} of {} {}",
                    minhash.bands(),
                    noun(minhash.bands().into(), "band"),
                    minhash.rows(),
                    noun(minhash.rows().into(), "row")
                );
                let mut chart = Chart::new(
                    bands,
                    ChartAxis::share(axis),
                    ChartAxis::share("probability that a pair is compared"),
                );
                chart.curve(curve, |similarity| minhash.probability(similarity));
                chart.upright("threshold", minhash.threshold());
                let _ = writeln!(
                    out,
                    " A pair at the threshold of {} is compared with a probability of {:.1} %, a more similar pair \
                     with a higher one.{estimates}</p>\n<figure>\n{}</figure>",
                    (minhash.threshold() * 1e4).round() / 1e4,
                    100.0 * minhash.recall_at_threshold(),
                    chart.svg()?
                );
            }
        }
        let schema = self.found.schema().to_string();
        let _ = writeln!(
            out,
            "<p>The schema:</p>\n<pre>{}</pre>",
            html::text(&schema)
        );
        let left_out = &self.found.left_out;
        if !left_out.is_empty() {
            let counted = |count, what| format!("{} {}", grouped(count), noun(count, what));
            let _ = writeln!(
                out,
                "<p>Not compared, because of --max-bucket: {} in {}.</p>",
                counted(left_out.pairs, "pair"),
                counted(left_out.buckets, "bucket")
            );
        }
        Ok(out)
    }

    fn histogram(&self) -> String {
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
                HtmlCell::Number(grouped(*count)),
                HtmlCell::Bar(bar),
            ]);
        }
        table.finish()
    }

    fn sizes(&self) -> String {
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
                format!("{} to {}", grouped(from as u64), grouped(to as u64))
            };
            table.row([
                HtmlCell::Text(&name),
                HtmlCell::Number(grouped(clusters)),
                HtmlCell::Number(grouped(members)),
                HtmlCell::Bar(members as f64 / most as f64),
            ]);
        }
        table.finish()
    }

    fn pairs(&self) -> String {
        let (name, most, step) = match self.found.bands.are_by_similarity() {
            true => ("Similarity", 1, "0.01"),
            false => ("Distance", self.found.bands.counts.len() - 1, "1"),
        };
        // Without scripts, the filter remains hidden.
        let mut out = format!(
            "{}<form id=\"filter\" hidden>\n\
             <label>{name} from<input name=\"from\" type=\"number\" min=\"0\" max=\"{most}\" step=\"{step}\" \
             value=\"0\"/></label>\n\
             <label>to<input name=\"to\" type=\"number\" min=\"0\" max=\"{most}\" step=\"{step}\" \
             value=\"{most}\"/></label>\n<output name=\"shown\"></output>\n</form>\n",
            self.legend()
        );
        for (band, pairs) in self.samples.iter().filter(|(band, _)| band.pairs > 0) {
            let (shown, all) = (grouped(pairs.len() as u64), grouped(band.pairs));
            let (name, of) = (html::text(&band.name), noun(band.pairs, "pair"));
            let _ = writeln!(out, "<h3>{name}: {shown} of {all} {of}</h3>");
            for (number, pair) in pairs.iter().enumerate() {
                let [a, b] = pair.labels.each_ref().map(|label| html::text(label));
                let (likeness, open) = (pair.likeness, if number == 0 { " open" } else { "" });
                let _ = write!(
                    out,
                    "<details data-near=\"{likeness}\"{open}>\n<summary><b>{likeness}</b> \
                     <span class=\"key\">{a}</span> <span class=\"key\">{b}</span></summary>\n{}</details>\n",
                    pair.html()
                );
            }
        }
        out
    }

    fn suspicious(&self) -> String {
        let mut out = "<p>A chain of near-duplicates can connect documents that have little in common. Look at the \
                       two members of each cluster that differ most: if they are no duplicates, raise the \
                       threshold.</p>\n"
            .to_owned();
        let figures = &self.found.clusters;
        if figures.uncompared > 0 {
            let uncompared = grouped(figures.uncompared);
            let _ = writeln!(
                out,
                "<p>Further clusters, whose members were not compared: {uncompared}.</p>"
            );
        }
        let (largest, chains) = self.clusters.split_at(figures.largest.len());
        let is_chain = |sample: &&ClusterSample<'_>| {
            let first = sample.cluster.first;
            chains.iter().any(|chain| chain.cluster.first == first)
        };
        let others: Vec<_> = largest.iter().filter(|sample| !is_chain(sample)).collect();
        let groups = [
            (
                "Clusters whose members differ most",
                chains.iter().collect(),
            ),
            ("The largest clusters", others),
        ];
        for (name, clusters) in groups.iter().filter(|(_, clusters)| !clusters.is_empty()) {
            let _ = writeln!(out, "<h3>{name}</h3>");
            for cluster in clusters {
                out.push_str(&cluster.html(self.likeness()));
            }
        }
        out
    }

    fn losses(&self) -> String {
        let tally = &self.found.dropped;
        let [dropped, documents, equal] =
            [tally.dropped, tally.kept + tally.dropped, tally.equal].map(grouped);
        let mut out = format!(
            "<p><code>resemblance dedup {}</code> removes {dropped} of {documents} {} ({}): {}. Exact copies among \
             them: {equal}.</p>\n",
            html::text(&self.rule.options),
            noun(tally.kept + tally.dropped, "document"),
            percentage(tally.dropped, tally.kept + tally.dropped),
            self.rule.reason,
        );
        if !self.rule.is_one_of_each_cluster {
            let clusters = &self.found.clusters;
            let _ = writeln!(
                out,
                "<p>With <code>--policy cluster</code>, which keeps one document of each cluster, it would remove {}.</p>",
                grouped(clusters.members - clusters.clusters)
            );
        }
        if tally.estimated > 0 {
            let _ = writeln!(
                out,
                "<p>Similarities that are estimates, because the texts of the documents that stay are not here: {}.</p>",
                grouped(tally.estimated)
            );
        }
        if tally.budget_exceeded > 0 {
            let _ = writeln!(
                out,
                "<p>Documents compared with only some of their candidates, because of --budget: {}.</p>",
                grouped(tally.budget_exceeded)
            );
        }
        out + &self.drops()
    }

    /// Shows removed documents beside those that stay.
    fn drops(&self) -> String {
        let tally = &self.found.dropped;
        let order = match tally.order {
            DropOrder::Lost => {
                "Documents that lose the greatest share of their features come first, then those whose share is \
                 not known."
            }
            DropOrder::Similarity => "Documents that are least like those that stay come first.",
        };
        let mut out = format!(
            "<h3>{} of {} removed {}</h3>\n<p>{order} <code>--drops</code> sets their number. At most {} bytes of a text are shown, around the first \
             difference, and no text longer than {}.</p>\n{}",
            grouped(self.drops.len() as u64),
            grouped(tally.dropped),
            noun(tally.dropped, "document"),
            grouped(SHOWN_BYTES as u64),
            byte_size(MAX_TEXT_BYTES as u64),
            self.legend()
        );
        for (number, (explained, drop)) in self.drops.iter().enumerate() {
            let open = if number == 0 { " open" } else { "" };
            let known = drop.shares.map(|it| [it.held, it.covered]);
            let shares = known.or(explained.as_ref().map(ExplainedPair::shares));
            let [lost, held, covered] = match shares {
                Some([held, covered]) => [1.0 - held, held, covered].map(percent),
                None => ["unknown", "an unknown share", "an unknown share"].map(str::to_owned),
            };
            let estimate = if drop.is_estimate { " (estimate)" } else { "" };
            let document = html::text(&key_text(&drop.document)).into_owned();
            let _ = write!(
                out,
                "<details{open}>\n<summary><b>lost: {lost}</b> <span class=\"key\">{document}</span> \
                 <span class=\"key\">{}</span></summary>\n<p class=\"note\">What stays has {held} of the removed \
                 document's features, and {covered} of its features are in the removed document; {} {}{estimate}; \
                 decided by: {}</p>\n{}</details>\n",
                html::text(&drop.survivor_label),
                self.likeness(),
                drop.likeness,
                html::text(&drop.rule),
                texts_html(explained.as_ref())
            );
        }
        out
    }
}

impl ClusterSample<'_> {
    fn html(&self, likeness: &str) -> String {
        let (cluster, pair) = (self.cluster, &self.least_alike);
        let members = self
            .members
            .iter()
            .map(|member| format!("<li class=\"key\">{}</li>\n", html::text(member)));
        let others = match cluster.documents - self.members.len() {
            0 => String::new(),
            others => format!(
                "<p class=\"note\">and {} more</p>\n",
                grouped(others as u64)
            ),
        };
        format!(
            "<details>\n<summary><b>{} documents</b> least {likeness} {} <span class=\"key\">{}</span></summary>\n\
             <ul class=\"members\">\n{}</ul>\n{others}<p>The two members that differ most:</p>\n{}</details>\n",
            grouped(cluster.documents as u64),
            cluster.least_alike.likeness,
            html::text(self.members.first().map_or("", String::as_str)),
            members.collect::<String>(),
            pair.html()
        )
    }
}

impl SamplePair {
    fn html(&self) -> String {
        let [a, b] = self.labels.each_ref().map(|label| html::text(label));
        match &self.explained {
            None => format!("<p class=\"key\">{a} | {b}</p>\n{}", texts_html(None)),
            explained => texts_html(explained.as_ref()),
        }
    }
}

/// Shows two texts side by side, and what they have in common.
fn texts_html(explained: Option<&ExplainedPair>) -> String {
    let Some(explained) = explained else {
        return "<p class=\"note\">No texts, or too long to be shown.</p>\n".into();
    };
    let facts = explained.facts().join("; ");
    format!(
        "{}<p class=\"note\">{}</p>\n",
        explained.html(SHOWN_BYTES),
        html::text(&facts)
    )
}

fn percentage(part: u64, whole: u64) -> String {
    percent(part as f64 / whole.max(1) as f64)
}

fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

/// Returns the counts, beginning with one hundredth, in at most 25 rows of several hundredths each.
/// Equal documents have a separate row.
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

/// Returns the range of sizes in one row: 2, 3, 4, 5 to 9, 10 to 99, and so on.
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
    fn partner_rows_list_all_pairs() {
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
    fn cluster_sizes_are_grouped_into_classes() {
        let classes = [2, 4, 7, 10, 99, 100].map(size_class);
        assert_eq!(
            classes,
            [(2, 2), (4, 4), (5, 9), (10, 99), (10, 99), (100, 999)]
        );
    }
}
