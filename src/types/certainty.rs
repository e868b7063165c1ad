//! How sure an answer is that it misses no document.

use std::fmt;

use resemblance_sketch::lanes::Banding;
use resemblance_sketch::sketch::ValueLayout;

/// How sure an answer is that it misses no document, and about what: see
/// [`Matches::certainty`](crate::Matches::certainty),
/// [`Pairs::certainty`](crate::Pairs::certainty) and
/// [`Bounds::certainty`](crate::Bounds::certainty).
///
/// The probability is that of one document at the bound of the search, over the hash functions.
/// Nearer documents are missed less often. It covers the whole search, and assumes that the values
/// of two signatures agree independently of each other, which all kinds but bottom-k are made for.
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text, search::Certainty};
/// let minhash = MinHash::new(128).threshold(0.8).recall(0.99);
/// let schema = Schema::builder().text(Text::words(2)).minhash(minhash);
/// # let page = "some text or other";
/// let estimating = Store::in_memory(schema.clone().build()?)?;
/// let answer = estimating.snapshot()?.query(&estimating.sketch_text(page)?).run()?;
/// assert!(matches!(answer.certainty(), Certainty::Estimate { missed_at_most } if missed_at_most < 0.01));
///
/// let exact = Store::in_memory(schema.exact().build()?)?;
/// let answer = exact.snapshot()?.query(&exact.sketch_text(page)?).run()?;
/// assert!(matches!(answer.certainty(), Certainty::Truth { missed_at_most } if missed_at_most < 0.01));
/// println!("a document {}", answer.certainty());
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Certainty {
    /// A document whose true similarity is within the bound is missed with this probability at
    /// most.
    Truth {
        /// The bound on the probability.
        missed_at_most: f64,
    },
    /// A document whose estimated similarity is within the bound is missed with this probability at
    /// most. About half of the documents whose true similarity is right at the bound have a lower
    /// estimate, whatever the bands: see [`Bounds::margin`](crate::Bounds::margin).
    Estimate {
        /// The bound on the probability.
        missed_at_most: f64,
    },
    /// A document whose signature is within the bounds is missed with this probability at most. For
    /// SimHash it says nothing about the cosine of the texts.
    Signature {
        /// The bound on the probability.
        missed_at_most: f64,
    },
    /// Nothing is certified: a budget or a limited bucket left documents out, a closure that
    /// verifies did not know a similarity, or estimates of bottom-k decide.
    Uncertified,
}

impl Certainty {
    /// Returns the probability, 0 to 1, with which a document is missed at most, or `None` if
    /// nothing is certified.
    ///
    /// ```
    /// use resemblance::search::Certainty;
    /// let certainty = Certainty::Truth { missed_at_most: 0.04 };
    /// assert_eq!(certainty.missed_at_most(), Some(0.04));
    /// assert_eq!(Certainty::Uncertified.missed_at_most(), None);
    /// ```
    #[must_use]
    pub fn missed_at_most(self) -> Option<f64> {
        match self {
            Self::Truth { missed_at_most }
            | Self::Estimate { missed_at_most }
            | Self::Signature { missed_at_most } => Some(missed_at_most),
            Self::Uncertified => None,
        }
    }

    /// Returns what is certified: `truth`, `estimate` or `signature`, or `None` if nothing is.
    ///
    /// ```
    /// use resemblance::search::Certainty;
    /// assert_eq!(Certainty::Estimate { missed_at_most: 0.04 }.about(), Some("estimate"));
    /// ```
    #[must_use]
    pub fn about(self) -> Option<&'static str> {
        match self {
            Self::Truth { .. } => Some("truth"),
            Self::Estimate { .. } => Some("estimate"),
            Self::Signature { .. } => Some("signature"),
            Self::Uncertified => None,
        }
    }
}

/// Prints what follows "a document": "is missed with probability 0.0469 at most if its true
/// similarity is within the bound".
impl fmt::Display for Certainty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let condition = match self {
            Self::Truth { .. } => "its true similarity is within the bound",
            Self::Estimate { .. } => "its estimate is within the bound",
            Self::Signature { .. } => "its signature is within the bounds",
            Self::Uncertified => "",
        };
        match self.missed_at_most() {
            None => f.write_str("is not certified to be found"),
            Some(0.0) => write!(f, "is certainly found if {condition}"),
            // Rounded up, so that the printed number is true as well.
            Some(missed) => {
                let missed = (missed * 1e4).ceil() / 1e4;
                write!(
                    f,
                    "is missed with probability {missed:.4} at most if {condition}"
                )
            }
        }
    }
}

/// The numbers from which a certainty is computed, which takes time for estimates.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CertaintyBasis {
    /// A certainty that is computed already.
    Known(Certainty),
    /// Estimates decide.
    Estimates {
        /// `None` if every document was compared.
        banding: Option<Banding>,
        layout: ValueLayout,
        /// The bound on the similarity.
        similarity: f64,
        /// The least estimate that is accepted, if there is a margin.
        accepted_from: Option<f64>,
    },
}

impl CertaintyBasis {
    /// The basis of an answer that no signature within the bounds is missing from.
    pub(crate) const COMPLETE: Self = Self::Known(Certainty::Signature {
        missed_at_most: 0.0,
    });

    /// Computes the certainty.
    pub fn certainty(self) -> Certainty {
        let (banding, layout, similarity, accepted_from) = match self {
            Self::Known(certainty) => return certainty,
            Self::Estimates {
                banding,
                layout,
                similarity,
                accepted_from,
            } => (banding, layout, similarity, accepted_from),
        };
        if let Some(accepted_from) = accepted_from {
            let missed = layout.missed_similarity(banding, similarity, accepted_from);
            return missed.map_or(Certainty::Uncertified, |missed_at_most| Certainty::Truth {
                missed_at_most,
            });
        }
        let missed = match banding {
            Some(banding) => layout.missed_estimate(banding, similarity),
            None => Some(0.0),
        };
        missed.map_or(Certainty::Uncertified, |missed_at_most| {
            Certainty::Estimate { missed_at_most }
        })
    }
}
