//! The options that decide which of several near-duplicates survive.

use std::cmp::Ordering;
use std::fmt;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use resemblance_corpus::dedup::Preference;
use resemblance_corpus::{Corpus, CorpusDocument, ScoreRule};

/// The argument of `--keep`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeepRule {
    First,
    Last,
    Longest,
    Score(ScoreRule),
}

impl FromStr for KeepRule {
    type Err = String;

    fn from_str(rule: &str) -> Result<Self, String> {
        Ok(match rule {
            "first" => Self::First,
            "last" => Self::Last,
            "longest" => Self::Longest,
            _ => Self::Score(rule.parse::<ScoreRule>().map_err(|_| {
                "expected first, last, longest, or a field with :max or :min, such as quality:max"
            })?),
        })
    }
}

impl fmt::Display for KeepRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First => f.write_str("first"),
            Self::Last => f.write_str("last"),
            Self::Longest => f.write_str("longest"),
            Self::Score(rule) => rule.fmt(f),
        }
    }
}

impl KeepRule {
    /// Asks the corpus for the values that the rule needs.
    pub(crate) fn apply(&self, corpus: &mut Corpus) {
        if let Self::Score(rule) = self {
            corpus.settings.score_field = Some(rule.field.clone());
        }
    }

    /// Returns true if documents have scores.
    pub(crate) fn has_scores(&self) -> bool {
        matches!(self, Self::Longest | Self::Score(_))
    }

    /// Returns a text that names everything scores depend on.
    pub(crate) fn scoring(&self) -> String {
        match self {
            Self::First | Self::Last => String::new(),
            Self::Longest | Self::Score(_) => format!("{self:?}"),
        }
    }

    /// Returns the score of a document: documents with higher scores are preferred. `None` without
    /// a score.
    pub(crate) fn score(&self, document: &CorpusDocument<'_>) -> Option<[f64; 2]> {
        match self {
            Self::First | Self::Last => None,
            Self::Longest => Some([document.content.length() as f64, 0.0]),
            Self::Score(rule) => Some(rule.score(document.score?)),
        }
    }

    /// Returns the rule for documents with these scores, in the order of their ids; NaN for a
    /// missing score.
    pub(crate) fn preference(&self, scores: &[[f64; 2]]) -> Preference {
        match self {
            Self::First => Preference::Earliest,
            Self::Last => Preference::Latest,
            Self::Longest | Self::Score(_) => Preference::Highest(ranks(scores)),
        }
    }
}

/// Returns the ranks of scores, each as one exact number; equal scores have the same rank.
fn ranks(scores: &[[f64; 2]]) -> Vec<f64> {
    let compared = |a: &[f64; 2], b: &[f64; 2]| a.partial_cmp(b).unwrap_or(Ordering::Equal);
    let mut scored: Vec<(usize, [f64; 2])> = scores.iter().copied().enumerate().collect();
    scored.retain(|(_, score)| !score[0].is_nan());
    scored.sort_by(|(_, a), (_, b)| compared(a, b));
    let mut ranks = vec![f64::NAN; scores.len()];
    let mut rank = 0.0;
    let mut last = None;
    for (index, score) in scored {
        rank += f64::from(u8::from(last.is_some_and(|last| last != score)));
        last = Some(score);
        if let Some(place) = ranks.get_mut(index) {
            *place = rank;
        }
    }
    ranks
}

/// The rule by which near-duplicates are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PolicyName {
    /// Drop each document that is a near-duplicate of a document kept before it
    First,
    /// Keep one document of each cluster, as `clusters` lists them
    Cluster,
    /// Like first, but documents with the most near-duplicates are considered first
    Representative,
}

impl fmt::Display for PolicyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::First => "first",
            Self::Cluster => "cluster",
            Self::Representative => "representative",
        })
    }
}

impl PolicyName {
    /// Returns why a document is removed.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::First => "each is a near-duplicate of a document kept before it",
            Self::Cluster => "each is in the cluster of a kept document",
            Self::Representative => {
                "each is a near-duplicate of a kept document; those with the most near-duplicates are kept \
                 first"
            }
        }
    }
}

/// Options that decide which documents survive.
#[derive(Debug, Args)]
pub(crate) struct SurvivorOptions {
    /// Also drop near-duplicates of documents in this store, and use its schema. Similarities to documents of the store
    /// are estimates unless it is exact, because a store has no texts
    #[arg(long, value_name = "STORE")]
    pub(crate) against: Option<PathBuf>,
    /// The corpus from which this store was built, or a part of it: similarities to documents whose texts are in it are
    /// exact
    #[arg(long, value_name = "CORPUS", num_args = 1.., requires = "against")]
    pub(crate) texts: Vec<PathBuf>,
    /// The rule by which documents survive
    #[arg(long, value_name = "POLICY", default_value = "first")]
    pub(crate) policy: PolicyName,
    /// The near-duplicate that survives: first, last, longest, or the one with the greatest or least number in a field,
    /// such as quality:max or price:min. Documents without that number come last; among equals the earlier one
    /// survives. With any rule but first, all documents are read before one is dropped
    #[arg(long, value_name = "RULE", default_value = "first")]
    pub(crate) keep: KeepRule,
    /// Compare a document with at most N candidates, those that share the most buckets with it. This bounds the time
    /// for texts with much boilerplate, but some near-duplicates may remain. Documents with more candidates are
    /// counted. Only for --policy first
    #[arg(long, value_name = "N")]
    pub(crate) budget: Option<NonZeroU64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keep_rule_parses_words_and_fields() {
        let field = |path: &str, is_highest| {
            let field = path.parse().unwrap();
            KeepRule::Score(ScoreRule { field, is_highest })
        };
        for (rule, expected) in [
            ("first", KeepRule::First),
            ("last", KeepRule::Last),
            ("longest", KeepRule::Longest),
            ("a.b:max", field("a.b", true)),
            ("a:b:min", field("a:b", false)),
            ("first:max", field("first", true)),
        ] {
            assert_eq!(rule.parse(), Ok(expected), "{rule}");
        }
        let scores = [
            [2.0, 1.0],
            [f64::NAN, 0.0],
            [2.0, -1.0],
            [0.0, 0.0],
            [-0.0, 0.0],
            [2.0, 1.0],
        ];
        let [a, none, b, zero, minus, again] = ranks(&scores)[..] else {
            panic!("a rank for each");
        };
        assert!(a > b && b > zero && zero == minus && a == again && none.is_nan());
        for wrong in ["", "best", "quality", "quality:most", ":max"] {
            assert!(wrong.parse::<KeepRule>().is_err(), "{wrong}");
        }
    }
}
