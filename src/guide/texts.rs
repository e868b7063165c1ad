//! Texts: the steps that turn them into features, texts too long for memory, and weights for rare
//! words.
//!
//! A text becomes the set of its shingles: n words, n characters (Unicode scalar values) or n tokens of source
//! code in a row ([`Text`](crate::Text)). Steps for languages need the feature `languages`.
//!
//! ```
//! # #[cfg(feature = "languages")] {
//! use resemblance::{Text, schema::Language};
//!
//! let text = Text::words(2).strip_accents().stop_words(Language::French).stem(Language::French);
//! let mut shingles = Vec::new();
//! text.for_each_shingle("Les élèves de la classe", |shingle| shingles.push(shingle.to_owned()));
//! assert_eq!(shingles, ["elev class"]);
//! # }
//! ```
//!
//! # Long texts
//!
//! [`Sketcher::text_reader`](crate::Sketcher::text_reader) reads a text piece by piece and returns
//! the same signature as for the whole text. It keeps a few shingles and the hashes in memory.
//! SimHash takes 19 to 30 bytes more for each distinct shingle, and weighted MinHash 16 to 48,
//! because both need to know which shingles repeat.
//!
//! ```
//! use resemblance::{MinHash, Schema, Text};
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("long.txt");
//! # std::fs::write(&path, "a long text that is never in memory as a whole").unwrap();
//!
//! let schema = Schema::builder().text(Text::words(3)).minhash(MinHash::new(128)).build()?;
//! let sketcher = schema.sketcher();
//! let signature = sketcher.text_reader(std::fs::File::open(&path)?)?;
//! # assert_eq!(signature, sketcher.text(&std::fs::read_to_string(&path)?)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Sketcher::streamed_text`](crate::Sketcher::streamed_text) accepts pieces as they arrive. They
//! may be cut anywhere.
//!
//! # Rare shingles weigh more
//!
//! [`DocumentFrequencies`](crate::schema::DocumentFrequencies) counts in how many documents of a
//! corpus each shingle occurs; SimHash and weighted MinHash use the weights that follow (tf-idf,
//! Salton and Buckley 1988). All documents of a store must have the same weights, so count first,
//! then insert.
//!
//! ```
//! use resemblance::{MinHash, Schema, Text, schema::DocumentFrequencies};
//!
//! let schema = Schema::builder().text(Text::words(1)).minhash(MinHash::weighted(128)).build()?;
//! let sketcher = schema.sketcher();
//! let corpus = ["the cat", "the dog", "the bird and the bee"];
//! let mut frequencies = DocumentFrequencies::new();
//! for text in corpus {
//!     frequencies.add_text(&sketcher, text)?;
//! }
//! assert!(frequencies.weight_of(b"cat") > frequencies.weight_of(b"the"));
//! let signature = sketcher.weighted_text("the cat and the dog", &frequencies)?;
//! # assert!(!signature.is_empty());
//! # Ok::<(), resemblance::Error>(())
//! ```
