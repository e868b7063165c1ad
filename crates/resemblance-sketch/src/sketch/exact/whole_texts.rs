//! Finds short texts as wholes within others.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::error::Result;
use crate::invariant::bug;
use crate::sketch::hash::feature_hash;
use crate::text::{LocatedShingle, Text};

/// Short texts that are to be found as wholes in other texts: all their units (words, characters or
/// code tokens), one after the other. Windows of shingles miss texts that are shorter than a window;
/// this finds them for certain.
///
/// Units count as equal if their 64-bit hashes are equal. A unit of the short texts takes about 30
/// bytes of memory, unless others begin with the same units.
///
/// ```
/// use resemblance_sketch::Text;
/// use resemblance_sketch::exact::WholeTexts;
///
/// let mut questions = WholeTexts::new(&Text::words(8))?;
/// let question = questions.insert("Which river flows through Rome?");
/// let page = "He asked which river flows through ROME, and why.";
/// let found = questions.find(page)?;
/// assert_eq!((found.len(), found[0].0), (1, question));
/// assert_eq!(&page[found[0].1.clone()], "which river flows through ROME");
/// assert!(questions.find("Which river flows through Paris?")?.is_empty());
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
#[derive(Clone, Debug)]
pub struct WholeTexts {
    /// The recipe of single units.
    units: Text,
    /// The node that follows a node with a unit. The first node is 0.
    steps: HashMap<(usize, u64), usize>,
    /// The texts that end at a node.
    ends: HashMap<usize, Vec<usize>>,
    count: usize,
}

/// A run of units in a text, from a unit to the node that it has reached.
struct OpenText {
    node: usize,
    start: usize,
}

impl WholeTexts {
    /// Creates a set without texts. `text` defines the units; its length of shingles has no effect.
    ///
    /// # Errors
    ///
    /// The same as [`Text::validate`].
    pub fn new(text: &Text) -> Result<Self> {
        let units = text.with_length(1);
        units.validate()?;
        Ok(Self {
            units,
            steps: HashMap::new(),
            ends: HashMap::new(),
            count: 0,
        })
    }

    /// Adds a text, and returns its number, counted from 0. A text without units is found nowhere.
    pub fn insert(&mut self, text: &str) -> usize {
        let (steps, mut node) = (&mut self.steps, 0);
        self.units.for_each_shingle(text, |unit| {
            let new = steps.len() + 1;
            let step = (node, feature_hash(unit.as_bytes()));
            node = *steps.entry(step).or_insert(new);
        });
        let number = self.count;
        self.count += 1;
        if node > 0 {
            self.ends.entry(node).or_default().push(number);
        }
        number
    }

    /// Returns the texts that are wholly in another one, in the order in which they end there: their
    /// numbers, each once, and the byte ranges where they are first, on character boundaries.
    ///
    /// # Errors
    ///
    /// [`SketchError::Bug`](crate::SketchError::Bug) only.
    pub fn find(&self, text: &str) -> Result<Vec<(usize, Range<usize>)>> {
        let found = self.found_units(text);
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let mut places = Vec::new();
        let place_of = |LocatedShingle { place, .. }: LocatedShingle<'_>| places.push(place);
        self.units.for_each_located_shingle(text, place_of)?;
        let spans = found.into_iter().map(|(number, units)| {
            let ends = places.get(units.start).zip(places.get(units.end - 1));
            let (first, last) = ends.ok_or_else(|| bug("units that were read before"))?;
            Ok((number, first.start..last.end))
        });
        spans.collect()
    }

    /// Returns the texts that are in another one, and at which of its units.
    fn found_units(&self, text: &str) -> Vec<(usize, Range<usize>)> {
        let (mut found, mut seen) = (Vec::new(), HashSet::new());
        if self.steps.is_empty() {
            return found;
        }
        let (mut open, mut unit): (Vec<OpenText>, usize) = (Vec::new(), 0);
        self.units.for_each_shingle(text, |content| {
            let hash = feature_hash(content.as_bytes());
            open.push(OpenText {
                node: 0,
                start: unit,
            });
            unit += 1;
            open.retain_mut(|run| {
                let Some(next) = self.steps.get(&(run.node, hash)) else {
                    return false;
                };
                run.node = *next;
                for number in self.ends.get(next).into_iter().flatten() {
                    if seen.insert(*number) {
                        found.push((*number, run.start..unit));
                    }
                }
                true
            });
        });
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Random;

    fn units(text: &Text, document: &str) -> Vec<String> {
        let mut units = Vec::new();
        let recipe = text.with_length(1);
        recipe.for_each_shingle(document, |unit| units.push(unit.to_owned()));
        units
    }

    #[test]
    fn texts_are_found_where_all_their_units_are() {
        const PIECES: &str = "the |Cat |cat, |a |b |été |e\u{301}te\u{301} |日本|x-y |— |to be ";
        let mut random = Random(5);
        let mut piece = |most: usize| -> String {
            let count = random.index(most);
            (0..count).map(|_| random.word(PIECES)).collect()
        };
        let mut total = 0;
        for recipe in [
            Text::words(4),
            Text::auto(),
            Text::characters(9),
            Text::code(2),
        ] {
            for _ in 0..60 {
                let short: Vec<String> = (0..12).map(|_| piece(5)).collect();
                let mut whole = WholeTexts::new(&recipe).unwrap();
                for (number, text) in short.iter().enumerate() {
                    assert_eq!(whole.insert(text), number);
                }
                let document = piece(60);
                let of_document = units(&recipe, &document);
                let is_in = |text: &&String| {
                    let units = units(&recipe, text);
                    !units.is_empty() && of_document.windows(units.len()).any(|run| run == units)
                };
                let found = whole.find(&document).unwrap();
                assert_eq!(found.len(), short.iter().filter(is_in).count());
                for (number, span) in found {
                    // A letter and its marks are one place, of which a text may be a part.
                    let at_span = units(&recipe, &document[span]);
                    let expected = units(&recipe, &short[number]);
                    assert!(at_span.len() >= expected.len(), "{at_span:?} {expected:?}");
                    total += usize::from(at_span == expected);
                }
            }
        }
        assert!(total > 300, "{total}");
    }
}
