//! Finds which pages contain a paragraph, and where, although the page as a whole is unlike it.
//!
//! `cargo run --bin containment` prints:
//!
//! ```text
//! essay contains 100 % of the paragraph
//!   shingles 2..3 are shingles 12..13 of the page
//!   shingles 6..7 are shingles 16..17 of the page
//! the text quotes paragraph
//! ```

use resemblance::{Containment, Schema, Store, Text};

const ESSAY: &str = "we set out before dawn and the road was empty the quick brown fox jumps over \
    the lazy dog while nobody watches and so we walked on until the town came into view";
const RECIPE: &str = "peel the apples and cut them into slices then mix the flour with the butter";
const PARAGRAPH: &str = "the quick brown fox jumps over the lazy dog while nobody watches";

fn main() -> resemblance::Result<()> {
    // Every common passage of 3 + 4 - 1 words is found. With positions the store knows where it is.
    let passages = Containment::new(3).window(4).positions(true);
    let schema = Schema::builder()
        .text(Text::words(3))
        .containment(passages)
        .build()?;
    let store = Store::in_memory(schema)?;
    store.insert("essay", &store.sketch_text(ESSAY)?)?;
    store.insert("recipe", &store.sketch_text(RECIPE)?)?;

    let paragraph = store.sketch_text(PARAGRAPH)?;
    let snapshot = store.snapshot()?;
    for found in snapshot.contained_in(&paragraph).min_share(0.5).run()? {
        let key = found.key_str().unwrap_or_default();
        println!(
            "{key} contains {:.0} % of the paragraph",
            100.0 * found.query_share()
        );
        for passage in found.passages().unwrap_or_default() {
            let (query, page) = (&passage.query, &passage.document);
            println!("  shingles {query:?} are shingles {page:?} of the page");
        }
    }

    // The other direction: which stored documents does a long text contain?
    store.insert("paragraph", &paragraph)?;
    let quoted = store.sketch_text(&format!("as they say: {PARAGRAPH}, whatever that means"))?;
    for found in store
        .snapshot()?
        .contents_of(&quoted)
        .min_share(0.9)
        .run()?
    {
        println!("the text quotes {}", found.key_str().unwrap_or_default());
    }
    Ok(())
}
