//! Tables that declare more than they can hold, and damaged tables.

use std::collections::HashMap;

use arrow_array::types::{Int8Type, Int64Type};
use arrow_array::{ArrayRef, DictionaryArray, ListArray, RecordBatch, StringArray};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::Schema;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};

use super::*;

/// Returns two rows with a long text and a word of a dictionary.
fn batch() -> RecordBatch {
    let words: DictionaryArray<Int8Type> = ["word", "word"].into_iter().collect();
    let texts = StringArray::from(vec!["a".repeat(999), "b".into()]);
    let columns: [(&str, ArrayRef); 2] = [("text", Arc::new(texts)), ("id", Arc::new(words))];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// Returns the batch twice, as Arrow.
fn arrow(batch: &RecordBatch, codec: Option<CompressionType>, is_file: bool) -> Vec<u8> {
    let options = IpcWriteOptions::default()
        .try_with_compression(codec)
        .unwrap();
    let schema = batch.schema();
    if is_file {
        let mut writer = FileWriter::try_new_with_options(Vec::new(), &schema, options).unwrap();
        (0..2).for_each(|_| writer.write(batch).unwrap());
        return writer.into_inner().unwrap();
    }
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &schema, options).unwrap();
    (0..2).for_each(|_| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

fn parquet(batch: &RecordBatch, metadata: Option<&str>) -> Vec<u8> {
    let value = |value: &str| vec![KeyValue::new("huggingface".into(), value.to_owned())];
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_key_value_metadata(metadata.map(value))
        .build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    bytes
}

/// The compression of a file, and whether it is a file rather than a stream.
const FORMS: [(Option<CompressionType>, bool); 4] = [
    (None, true),
    (None, false),
    (Some(CompressionType::ZSTD), true),
    (Some(CompressionType::LZ4_FRAME), false),
];

#[test]
fn declared_lengths_are_checked_before_allocation() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |name: &str, bytes: &[u8]| refusal(dir.path(), name, bytes, &settings());
    for (codec, is_file) in FORMS {
        let whole = arrow(&batch(), codec, is_file);
        assert_eq!(refused("a.arrow", &whole), None);
        if codec.is_some() {
            let length = 1000_u64.to_le_bytes();
            let place = memchr::memmem::rfind(&whole, &length).unwrap();
            let mut bytes = whole.clone();
            bytes[place..place + 8].copy_from_slice(&((1_u64 << 40) - 1).to_le_bytes());
            let found = refused("a.arrow", &bytes).unwrap();
            assert!(found.contains("declares 1099511627775 bytes"), "{found}");
        }
        // Whatever number is at any position, nothing aborts.
        for place in (0..whole.len() - 8).step_by(8) {
            for number in [(1_u64 << 40) - 1, i32::MAX as u64] {
                let mut bytes = whole.clone();
                bytes[place..place + 8].copy_from_slice(&number.to_le_bytes());
                let _ = refused("a.arrow", &bytes);
            }
        }
    }
    let whole = parquet(&batch(), None);
    assert_eq!(refused("a.parquet", &whole), None);
    for place in (4..whole.len() - 5).step_by(7) {
        let mut bytes = whole.clone();
        bytes[place..place + 5].copy_from_slice(&[0xfe, 0xff, 0xff, 0xff, 0x0f]);
        let _ = refused("a.parquet", &bytes);
    }
    // The number of row groups.
    let place = memchr::memmem::rfind(&whole, b"\x16\x04\x19\x1c").unwrap() + 3;
    let groups = b"\xfc\xff\xff\xff\xff\x07";
    let mut bytes = [&whole[..place], groups, &whole[place + 1..]].concat();
    let end = bytes.len() - 8;
    let footer = u32::from_le_bytes(bytes[end..end + 4].try_into().unwrap()) + 5;
    bytes[end..end + 4].copy_from_slice(&footer.to_le_bytes());
    let found = refused("a.parquet", &bytes).unwrap();
    assert!(found.contains("declares more than it can hold"), "{found}");
    // The header of a dictionary: its type, its lengths, and the number of its values.
    let words = batch().project(&[1]).unwrap();
    let text = RecordBatch::try_from_iter([("text", words.column(0).clone())]);
    let mut bytes = parquet(&text.unwrap(), None);
    let place = memchr::memmem::find(&bytes, b"\x4c\x15\x02").unwrap();
    bytes[place + 2] = 0x7e;
    let found = refused("a.parquet", &bytes).unwrap();
    assert!(found.contains("declares 63 values"), "{found}");
}

#[test]
fn row_groups_beyond_memory_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let small = CorpusSettings {
        window_bytes: 500,
        ..settings()
    };
    for (place, bytes) in [
        parquet(&batch(), None),
        arrow(&batch(), Some(CompressionType::ZSTD), true),
        arrow(&batch(), Some(CompressionType::LZ4_FRAME), false),
        arrow(&batch(), None, false),
    ]
    .into_iter()
    .enumerate()
    {
        let found = refusal(dir.path(), "a.arrow", &bytes, &small);
        let found = found.unwrap_or_else(|| panic!("{place}"));
        assert!(found.contains("half of --memory"), "{found}");
    }
}

#[test]
fn truncated_table_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |bytes: &[u8]| refusal(dir.path(), "a.arrow", bytes, &settings());
    for (codec, is_file) in FORMS {
        let whole = arrow(&batch(), codec, is_file);
        for cut in (1..whole.len()).rev().step_by(8) {
            let found = refused(&whole[..cut]);
            assert!(
                found.is_some(),
                "cut at {cut} of {}, {codec:?}",
                whole.len()
            );
        }
    }
    let stream = arrow(&batch(), None, false);
    let found = refused(&stream[..stream.len() - 8]).unwrap();
    assert!(found.contains("no end marker"), "{found}");
    let found = refused(&[&*stream, &*stream].concat()).unwrap();
    assert!(
        found.contains("bytes after the end of the stream"),
        "{found}"
    );
}

#[test]
fn tables_are_joined_only_if_their_metadata_agree() {
    let dir = tempfile::tempdir().unwrap();
    let difference = |name: &str, first: &[u8], second: &[u8]| {
        let paths = ["a", "b"].map(|base| dir.path().join(format!("{base}.{name}")));
        std::fs::write(&paths[0], first).unwrap();
        std::fs::write(&paths[1], second).unwrap();
        not_for_one_file(&Corpus::resolve(&paths, settings()).unwrap()).unwrap()
    };
    let labels = |names: &str| {
        format!(
            "{{\"info\": {{\"names\": {names}}}, \"fingerprint\": \"{}\"}}",
            names.len()
        )
    };
    let own = labels("[\"neg\", \"pos\"]");
    let first = parquet(&batch(), Some(&own));
    let spaced = own.replace(": ", ":").replace("13", "99");
    assert_eq!(
        difference("parquet", &first, &parquet(&batch(), Some(&spaced))),
        None
    );
    let other = parquet(&batch(), Some(&labels("[\"pos\", \"neg\"]")));
    let found = difference("parquet", &first, &other).unwrap();
    for part in [
        "different metadata \"huggingface\"",
        "neg",
        "pos",
        "a.parquet and",
    ] {
        assert!(found.contains(part), "{found}");
    }
    let found = difference("parquet", &first, &parquet(&batch(), None)).unwrap();
    assert!(found.contains("nothing in the second"), "{found}");

    let with = |of_table: HashMap<String, String>, of_column: HashMap<String, String>| {
        let plain = batch();
        let fields = plain
            .schema()
            .fields()
            .iter()
            .map(|field| {
                let field = field.as_ref().clone();
                field.with_metadata(of_column.clone())
            })
            .collect::<Vec<_>>();
        plain
            .with_schema(Arc::new(Schema::new_with_metadata(fields, of_table)))
            .unwrap()
    };
    let map = |key: &str, value: &str| HashMap::from([(key.to_owned(), value.to_owned())]);
    for is_file in [true, false] {
        let bytes = |batch: &RecordBatch| arrow(batch, None, is_file);
        let plain = bytes(&batch());
        let pandas = bytes(&with(map("pandas", "{\"stop\": 3}"), HashMap::new()));
        assert_eq!(difference("arrow", &plain, &pandas), None);
        let unit = bytes(&with(HashMap::new(), map("unit", "m")));
        let found = difference("arrow", &plain, &unit).unwrap();
        assert!(
            found.contains("\"unit\" of column \"text\" (nothing in the first, m in"),
            "{found}"
        );
        let found = difference("arrow", &plain, &bytes(&batch().project(&[0]).unwrap())).unwrap();
        assert!(found.contains("only the first has \"id\""), "{found}");
    }
    let found = difference("csv", b"id,text\n", b"id,text,x,y\n").unwrap();
    assert!(
        found.contains("only the second has \"x\", \"y\""),
        "{found}"
    );
}

/// Returns 300 rows of texts in an encoding. They are not compressed, so that the positions of
/// bytes are known.
fn encoded(encoding: Encoding) -> Vec<u8> {
    let texts = (0..300).map(|number| format!("text {}", 1_000 + number));
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
    let batch = RecordBatch::try_from_iter([("text", texts)]).unwrap();
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_encoding(encoding)
        .build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    bytes
}

#[test]
fn delta_page_counts_are_checked_before_allocation() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |bytes: &[u8]| refusal(dir.path(), "a.parquet", bytes, &settings());
    for (encoding, lists) in [
        (Encoding::DELTA_LENGTH_BYTE_ARRAY, 1),
        (Encoding::DELTA_BYTE_ARRAY, 2),
    ] {
        let whole = encoded(encoding);
        assert_eq!(refused(&whole), None);
        // The header of a list of deltas: 128 values in four parts, and 300 in all.
        let head = b"\x80\x01\x04\xac\x02";
        let places: Vec<usize> = memchr::memmem::find_iter(&whole, head).collect();
        assert_eq!(places.len(), lists);
        for place in places {
            let mut bytes = whole.clone();
            bytes[place + 3..place + 5].copy_from_slice(&[0xff, 0x7f]);
            let found = refused(&bytes).unwrap();
            let expected = "declares 16383 values, expected up to 300";
            assert!(found.contains(expected), "{found}");
        }
        let small = CorpusSettings {
            window_bytes: 2_399,
            ..settings()
        };
        let found = refusal(dir.path(), "a.parquet", &whole, &small);
        assert!(
            found.is_some(),
            "two lengths for each value are beyond memory"
        );
    }
}

/// The decoder looks at the head of the next page to see where a list ends, and opens its data apart. Such
/// files were called damaged.
#[test]
fn lists_may_have_many_pages() {
    let numbers = (0..3_000_i64).map(|row| Some([Some(row), None, Some(-row)]));
    let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(numbers);
    let texts: StringArray = (0..3_000).map(|row| Some(format!("text {row}"))).collect();
    let columns: [(&str, ArrayRef); 2] = [("text", Arc::new(texts)), ("list", Arc::new(lists))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        let properties = WriterProperties::builder()
            .set_writer_version(version)
            .set_data_page_row_count_limit(100)
            .set_write_batch_size(100)
            .set_offset_index_disabled(true)
            .build();
        let mut bytes = Vec::new();
        let mut writer =
            ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        std::fs::write(&path, bytes).unwrap();
        let corpus =
            Corpus::resolve(std::slice::from_ref(&path), CorpusSettings::default()).unwrap();
        let source = &corpus.sources[0];
        let mut copy = TableWriter::create::<()>(source, 1 << 20, Vec::new(), None).unwrap();
        copy.copy(source, 0..3_000, |row| Ok::<_, ()>(row % 2 == 0))
            .unwrap();
        let copied = bytes::Bytes::from(copy.finish().unwrap());
        let rows = ParquetRecordBatchReaderBuilder::try_new(copied)
            .unwrap()
            .build()
            .unwrap();
        let rows = rows.map(|rows| rows.unwrap().num_rows());
        assert_eq!(rows.sum::<usize>(), 1_500);
    }
}

#[test]
fn pages_with_counts_must_be_listed_by_their_column() {
    let dir = tempfile::tempdir().unwrap();
    let whole = encoded(Encoding::PLAIN);
    assert_eq!(refusal(dir.path(), "a.parquet", &whole, &settings()), None);
    // The number of values, and the encoding.
    let place = memchr::memmem::find(&whole, b"\x2c\x15\xd8\x04\x15\x00").unwrap() + 5;
    for encoding in [6, 7] {
        let mut bytes = whole.clone();
        bytes[place] = 2 * encoding;
        let found = refusal(dir.path(), "a.parquet", &bytes, &settings()).unwrap();
        assert!(found.contains("does not list"), "{found}");
    }
}

#[test]
fn a_table_that_changes_between_two_readings_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let unreadable = Arc::default();
    let settings = CorpusSettings {
        unreadable: Some(Arc::clone(&unreadable)),
        ..settings()
    };
    let whole = parquet(&batch(), None);
    for (first, second) in [
        (&whole[..], &whole[..whole.len() - 9]),
        (&whole[..9], &whole[..]),
    ] {
        let path = dir.path().join("a.parquet");
        std::fs::write(&path, first).unwrap();
        let corpus =
            Arc::new(Corpus::resolve(std::slice::from_ref(&path), settings.clone()).unwrap());
        let readings = [first, second].map(|bytes| {
            std::fs::write(&path, bytes).unwrap();
            let mut records = CorpusRecords::new(Arc::clone(&corpus), Arc::default());
            records.by_ref().for_each(|record| drop(record.unwrap()));
            records.totals()
        });
        assert_ne!(readings[0], readings[1]);
    }
    assert!(!unreadable.lock().unwrap().is_empty());
}
