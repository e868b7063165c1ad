//! The program that extracts text from HTML, as schemas identify it.

use std::fmt;

use resemblance::Schema;

use crate::bad_document::{BadDocument, builds_in};
use crate::error::CorpusError;

/// The upper half of the seed of schemas for HTML: "HTML".
const MARK: u64 = 0x4854_4d4c;

/// A release of html5ever, and an edition of the rules that turn its tokens into a text.
///
/// A schema for HTML texts has it as its seed. Signatures of texts from different extractors
/// therefore differ, as they must, and a comparison of schemas shows why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HtmlExtractor {
    version: [u8; 3],
    rules: u8,
}

impl HtmlExtractor {
    /// The extractor of this release, whether or not it is part of this build.
    pub const CURRENT: Self = Self {
        version: [0, 40, 1],
        rules: 1,
    };

    /// The seed of schemas for texts from this extractor.
    pub const fn seed(self) -> u64 {
        let [major, minor, patch] = self.version;
        MARK << 32 | u32::from_be_bytes([major, minor, patch, self.rules]) as u64
    }

    /// Returns the extractor of a seed, if the seed is that of a schema for HTML.
    pub fn of_seed(seed: u64) -> Option<Self> {
        let [.., major, minor, patch, rules] = seed.to_be_bytes();
        (seed >> 32 == MARK).then_some(Self {
            version: [major, minor, patch],
            rules,
        })
    }

    /// Returns the extractor of a schema, if its texts are HTML.
    pub fn of(schema: &Schema) -> Option<Self> {
        schema.text().and_then(|_| Self::of_seed(schema.seed()))
    }

    /// Checks that this extractor is part of this build.
    ///
    /// # Errors
    ///
    /// An error that names the required extractor and the one of this build, if any.
    pub fn must_be_here(self) -> Result<(), CorpusError> {
        let current = Self::CURRENT;
        if self != current {
            return Err(CorpusError::bad(format!(
                "the schema is for texts that {self} extracts from HTML, and this build has {current}, \
                 which extracts different ones"
            )).with_advice(format!("use a build with {self}, or build a new store")));
        }
        if !cfg!(feature = "html") {
            return Err(CorpusError::bad(format!(
                "{self} extracts texts from HTML, and is not part of this build"
            ))
            .with_advice(builds_in("html")));
        }
        Ok(())
    }

    /// Returns the text of an HTML document.
    ///
    /// # Errors
    ///
    /// An error if this build extracts no text from HTML. [`must_be_here`](Self::must_be_here)
    /// reports that before anything is read.
    pub fn text(self, html: &str) -> Result<String, BadDocument> {
        #[cfg(feature = "html")]
        let text = Ok(super::markup::text_of_html(html));
        #[cfg(not(feature = "html"))]
        let text = Err(BadDocument::new(format!(
            "this build extracts no text from {} bytes of HTML",
            html.len()
        )));
        text
    }
}

impl fmt::Display for HtmlExtractor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.version;
        write!(
            f,
            "html5ever {major}.{minor}.{patch} (rules {})",
            self.rules
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    #[test]
    fn extractor_round_trips_through_its_seed() {
        let current = HtmlExtractor::CURRENT;
        assert_eq!(current.to_string(), "html5ever 0.40.1 (rules 1)");
        assert_eq!(current.seed(), 0x4854_4d4c_0028_0101);
        assert_eq!(HtmlExtractor::of_seed(current.seed()), Some(current));
        for plain in [0, 1, u64::MAX, MARK, MARK << 31] {
            assert_eq!(HtmlExtractor::of_seed(plain), None);
        }
        let other = HtmlExtractor::of_seed(current.seed() + 1).unwrap();
        let refused = other.must_be_here().unwrap_err().to_string();
        assert!(refused.contains("html5ever 0.40.1 (rules 2)"), "{refused}");
        assert!(refused.contains("html5ever 0.40.1 (rules 1)"), "{refused}");
    }

    /// The linked release is the one that the extractor names.
    #[test]
    fn extractor_release_matches_the_linked_crate() {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        // That of the workspace, or of the published archive.
        let here = [package.join("../../Cargo.lock"), package.join("Cargo.lock")];
        let lock = here
            .iter()
            .find_map(|path| fs::read_to_string(path).ok())
            .expect("a Cargo.lock");
        let [major, minor, patch] = HtmlExtractor::CURRENT.version;
        let entry = format!("name = \"html5ever\"\nversion = \"{major}.{minor}.{patch}\"\n");
        assert!(lock.replace('\r', "").contains(&entry));
    }
}
