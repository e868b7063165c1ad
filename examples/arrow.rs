//! Reads texts from a record batch of Arrow, and writes near-duplicate pairs as an Arrow IPC file.
//!
//! `cargo run -p resemblance-examples --features arrow --bin arrow` prints:
//!
//! ```text
//! 1 pair, similarity 0.758
//! ```

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use arrow_array::{cast::AsArray, types::Float64Type};
use arrow_ipc::writer::FileWriter;
use resemblance::{MinHash, Schema, Store, Text};

const KEYS: [&str; 3] = ["a", "b", "c"];
const TEXTS: [&str; 3] = [
    "rain in the north tonight and wind",
    "a new bridge over the river",
    "rain in the north tonight and snow",
];

fn strings(column: Vec<&str>) -> ArrayRef {
    Arc::new(StringArray::from(column))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [keys, texts] = [KEYS, TEXTS].map(|column| strings(column.to_vec()));
    let articles = RecordBatch::try_from_iter([("id", keys), ("text", texts)])?;

    let builder = Schema::builder().text(Text::words(1));
    let schema = builder.minhash(MinHash::new(128).threshold(0.6)).build()?;
    let store = Store::in_memory(schema)?;
    let keys = articles.column(0).as_string::<i32>();
    let texts = articles.column(1).as_string::<i32>();
    for (key, text) in keys.iter().flatten().zip(texts.iter().flatten()) {
        store.insert(key, &store.sketch_text(text)?)?;
    }

    // In an empty store the id of a document is its place among the rows.
    let (mut a, mut b, mut similarities) = (Vec::new(), Vec::new(), Vec::new());
    for pair in store.snapshot()?.pairs().run()? {
        let pair = pair?;
        a.push(keys.value(pair.a.get() as usize));
        b.push(keys.value(pair.b.get() as usize));
        similarities.push(pair.similarity);
    }
    let [a, b] = [a, b].map(strings);
    let similarities: ArrayRef = Arc::new(Float64Array::from(similarities));
    let pairs = RecordBatch::try_from_iter([("a", a), ("b", b), ("similarity", similarities)])?;

    let mut writer = FileWriter::try_new(tempfile::tempfile()?, &pairs.schema())?;
    writer.write(&pairs)?;
    writer.finish()?;
    let similarity = pairs.column(2).as_primitive::<Float64Type>().value(0);
    println!("{} pair, similarity {similarity:.3}", pairs.num_rows());
    Ok(())
}
