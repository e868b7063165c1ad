//! Parquet and Arrow IPC: files that lose nothing but rows. What the tool prints for tables is in the transcript `readers`.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{Int32Builder, ListBuilder, MapBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int8Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Float64Array, Int64Array, RecordBatch, StringArray,
    StructArray, TimestampMicrosecondArray, UInt64Array,
};
use arrow_ipc::CompressionType;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader as _, SerializedFileReader};

use crate::support::{Folder, edited, line, text};

/// Texts of which some are like others, and their ids.
fn documents() -> Vec<(i64, String)> {
    let texts = [1, 2, 3, 4, 5, 6].map(text).into_iter();
    let near = [(1, 0), (2, 1), (3, 1), (3, 2)].map(|(number, changes)| edited(number, changes));
    (100..).zip(texts.chain(near)).collect()
}

/// A table with every kind of column that corpora have.
fn table(documents: &[(i64, String)]) -> RecordBatch {
    let ids = documents.iter().map(|(id, _)| *id);
    let texts = || StringArray::from_iter_values(documents.iter().map(|(_, text)| text));
    let numbers = || 0..documents.len() as i32;
    let mut lists = ListBuilder::new(Int32Builder::new());
    let mut maps = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    for number in numbers() {
        for element in 0..number % 4 {
            lists
                .values()
                .append_option((element != 2).then_some(element));
            maps.keys().append_value(format!("k{element}"));
            maps.values().append_value(number);
        }
        lists.append(number % 5 != 4);
        maps.append(true).unwrap();
    }
    let languages: DictionaryArray<Int8Type> = numbers()
        .map(|number| ["en", "de", "fr"].get(number as usize % 4).copied())
        .collect();
    let meta = StructArray::from(vec![
        (
            Arc::new(Field::new("body", DataType::Utf8, false)),
            Arc::new(texts()) as ArrayRef,
        ),
        (
            Arc::new(Field::new("score", DataType::Float64, true)),
            Arc::new(Float64Array::from_iter(
                numbers().map(|n| (n != 3).then_some(n.into())),
            )),
        ),
    ]);
    let times = numbers().map(|number| 1_700_000_000_000_000 + i64::from(number));
    let times = TimestampMicrosecondArray::from_iter_values(times).with_timezone("UTC");
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("language", Arc::new(languages)),
        ("id", Arc::new(Int64Array::from_iter_values(ids))),
        ("list", Arc::new(lists.finish())),
        ("text", Arc::new(texts())),
        ("meta", Arc::new(meta)),
        ("map", Arc::new(maps.finish())),
        ("time", Arc::new(times)),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let pandas = ("pandas".to_owned(), "{\"index_columns\": []}".to_owned());
    let schema = Schema::clone(&batch.schema()).with_metadata([pandas].into());
    batch.with_schema(Arc::new(schema)).unwrap()
}

pub fn write_parquet(
    path: &Path,
    batch: &RecordBatch,
    compression: Compression,
    group_rows: usize,
) {
    let metadata = KeyValue::new("huggingface".into(), "{\"info\": {}}".to_owned());
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_max_row_group_row_count(Some(group_rows))
        .set_key_value_metadata(Some(vec![metadata]))
        .set_column_dictionary_enabled("id".into(), false)
        .build();
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

fn read_parquet(path: &Path) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let schema = Arc::clone(reader.schema());
    let batches: Vec<_> = reader.build().unwrap().map(Result::unwrap).collect();
    arrow_select::concat::concat_batches(&schema, &batches).unwrap()
}

/// Three batches with equal dictionaries.
fn write_arrow(path: &Path, batch: &RecordBatch, is_file: bool) {
    let options = IpcWriteOptions::default()
        .try_with_compression(Some(CompressionType::ZSTD))
        .unwrap();
    let file = File::create(path).unwrap();
    let batches = [
        batch.slice(0, 4),
        batch.slice(4, 3),
        batch.slice(7, batch.num_rows() - 7),
    ];
    if is_file {
        let mut writer = FileWriter::try_new_with_options(file, &batch.schema(), options).unwrap();
        batches
            .iter()
            .for_each(|batch| writer.write(batch).unwrap());
        writer.write_metadata("made", "by a test");
        writer.finish().unwrap();
    } else {
        let mut writer =
            StreamWriter::try_new_with_options(file, &batch.schema(), options).unwrap();
        batches
            .iter()
            .for_each(|batch| writer.write(batch).unwrap());
        writer.finish().unwrap();
    }
}

fn read_arrow(path: &Path, is_file: bool) -> RecordBatch {
    let file = File::open(path).unwrap();
    let (schema, batches): (_, Vec<_>) = if is_file {
        let reader = FileReader::try_new(file, None).unwrap();
        assert_eq!(reader.custom_metadata()["made"], "by a test");
        (reader.schema(), reader.map(Result::unwrap).collect())
    } else {
        let reader = StreamReader::try_new(file, None).unwrap();
        (reader.schema(), reader.map(Result::unwrap).collect())
    };
    arrow_select::concat::concat_batches(&schema, &batches).unwrap()
}

/// The documents in every form: `c.jsonl`, `c.parquet`, `c.arrow` and `c.arrows`.
pub fn write_all(folder: &Folder) -> RecordBatch {
    let documents = documents();
    let lines = documents
        .iter()
        .map(|(id, text)| line(&id.to_string(), text));
    folder.write("c.jsonl", lines.collect::<String>());
    let batch = table(&documents);
    write_parquet(&folder.path("c.parquet"), &batch, Compression::SNAPPY, 4);
    write_arrow(&folder.path("c.arrow"), &batch, true);
    write_arrow(&folder.path("c.arrows"), &batch, false);
    batch
}

#[test]
fn dedup_of_tables_removes_rows_only() {
    let folder = Folder::new();
    let batch = write_all(&folder);
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::ZSTD(ZstdLevel::default()),
        Compression::GZIP(Default::default()),
        Compression::BROTLI(Default::default()),
        Compression::LZ4_RAW,
    ];
    let kept = batch.slice(0, 6);
    let dropped = batch.slice(6, 4);
    for codec in codecs {
        write_parquet(&folder.path("in.parquet"), &batch, codec, 4);
        folder
            .run("dedup in.parquet -o out.parquet --dropped dropped.parquet --force")
            .expect(0)
            .says(&["read 10, kept 6, dropped 4"]);
        let found = read_parquet(&folder.path("out.parquet"));
        assert_eq!(
            found,
            read_parquet(&folder.path("in.parquet")).slice(0, 6),
            "{codec}"
        );
        assert_eq!(found.num_columns(), kept.num_columns());
        assert_eq!(
            read_parquet(&folder.path("dropped.parquet")).num_rows(),
            dropped.num_rows()
        );
        let open =
            |name| SerializedFileReader::new(File::open(folder.path(name)).unwrap()).unwrap();
        let (input, output) = (open("in.parquet"), open("out.parquet"));
        let (input, output) = (input.metadata(), output.metadata());
        let (before, after) = (input.file_metadata(), output.file_metadata());
        assert_eq!(before.schema(), after.schema());
        assert_eq!(before.key_value_metadata(), after.key_value_metadata());
        let rows: Vec<_> = output
            .row_groups()
            .iter()
            .map(|group| group.num_rows())
            .collect();
        assert_eq!(rows, [4, 2]);
        let columns = input
            .row_group(0)
            .columns()
            .iter()
            .zip(output.row_group(0).columns());
        for (before, after) in columns {
            assert_eq!(before.compression(), after.compression());
            assert_eq!(before.encodings_mask(), after.encodings_mask());
            assert_eq!(
                before.dictionary_page_offset().is_some(),
                after.dictionary_page_offset().is_some()
            );
        }
    }
    for (name, is_file) in [("c.arrow", true), ("c.arrows", false)] {
        let out_folder = format!("only-{name}/");
        let out = format!("{out_folder}{name}");
        folder
            .run(&format!("dedup {name} -o '{out_folder}'"))
            .expect(0);
        assert_eq!(read_arrow(&folder.path(&out), is_file), kept, "{name}");
        let sizes = [name, &out].map(|name| folder.read(name).len());
        assert!(
            sizes[1] < sizes[0],
            "{sizes:?}: the output is compressed too"
        );
    }
}

/// Returns the columns that were added to the rows of a table, as JSON.
fn added(batch: &RecordBatch) -> Vec<serde_json::Value> {
    let row = |row: usize| {
        let field = |(column, field): (&ArrayRef, &Arc<Field>)| {
            let value = match field.data_type() {
                _ if column.is_null(row) => serde_json::Value::Null,
                DataType::Boolean => column.as_boolean().value(row).into(),
                DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).into(),
                // As a number is that has been text.
                DataType::Float64 => {
                    let number = column.as_primitive::<Float64Type>().value(row);
                    serde_json::from_str(&serde_json::Value::from(number).to_string()).unwrap()
                }
                _ => column.as_string::<i32>().value(row).into(),
            };
            (field.name().clone(), value)
        };
        let schema = batch.schema();
        let fields = batch.columns().iter().zip(schema.fields());
        fields.skip(7).map(field).collect()
    };
    (0..batch.num_rows()).map(row).collect()
}

#[test]
fn annotated_tables_have_more_columns_and_all_rows() {
    let folder = Folder::new();
    let batch = write_all(&folder);
    for form in ["c.jsonl", "c.parquet", "c.arrow", "c.arrows"] {
        let out = format!("all-{form}/");
        let arguments = format!("dedup {form} --annotate '{out}' --policy cluster");
        folder
            .run(&arguments)
            .expect(0)
            .says(&["dropped as equal 1"]);
    }
    let lines = folder.read_text("all-c.jsonl/c.jsonl");
    let expected = lines.lines().map(|line| {
        let mut row: serde_json::Value = serde_json::from_str(line).unwrap();
        let row_fields = row.as_object_mut().unwrap();
        row_fields.retain(|name, _| name.starts_with("dedup_"));
        row
    });
    let expected: Vec<_> = expected.collect();
    assert_eq!(
        expected
            .iter()
            .filter(|row| row["dedup_kept"] == true)
            .count(),
        6
    );
    let own: Vec<usize> = (0..7).collect();
    let parquet = read_parquet(&folder.path("all-c.parquet/c.parquet"));
    assert_eq!(
        parquet.project(&own).unwrap(),
        read_parquet(&folder.path("c.parquet"))
    );
    assert_eq!(added(&parquet), expected);
    let open = |name| SerializedFileReader::new(File::open(folder.path(name)).unwrap()).unwrap();
    let metadata =
        [open("c.parquet"), open("all-c.parquet/c.parquet")].map(|r| r.metadata().clone());
    let [before, after] = &metadata;
    let groups = |m: &parquet::file::metadata::ParquetMetaData| -> Vec<i64> {
        m.row_groups()
            .iter()
            .map(|group| group.num_rows())
            .collect()
    };
    assert_eq!(groups(before), groups(after));
    let names = |m: &parquet::file::metadata::ParquetMetaData| -> Vec<String> {
        let entries = m.file_metadata().key_value_metadata().unwrap().iter();
        entries.map(|entry| entry.key.clone()).collect()
    };
    assert_eq!(names(before), names(after));
    for column in after.row_group(0).columns() {
        assert_eq!(column.compression(), Compression::SNAPPY);
    }
    for (name, is_file) in [("c.arrow", true), ("c.arrows", false)] {
        let found = read_arrow(&folder.path(&format!("all-{name}/{name}")), is_file);
        assert_eq!(found.project(&own).unwrap(), batch, "{name}");
        assert_eq!(found.schema().metadata(), batch.schema().metadata());
        assert_eq!(added(&found), expected, "{name}");
    }
    let arguments = "dedup c.parquet --dry-run --report";
    let reports = ["r.parquet", "r.jsonl"].map(|name| {
        folder.run(&format!("{arguments} {name}")).expect(0);
        folder.path(name)
    });
    let report = read_parquet(&reports[0]);
    let keys = report["dropped"]
        .as_string::<i32>()
        .iter()
        .map(Option::unwrap);
    let of_lines = std::fs::read_to_string(&reports[1]).unwrap();
    let of_lines = of_lines.lines().map(|line| {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        row["dropped"].as_str().unwrap().to_owned()
    });
    assert_eq!(keys.collect::<Vec<_>>(), of_lines.collect::<Vec<_>>());
    assert_eq!(
        report["similarity"].as_primitive::<Float64Type>().value(0),
        1.0
    );
    let compressed = folder.run(&format!("{arguments} r.parquet.gz"));
    compressed.expect(2).says(&["Parquet cannot be compressed"]);
    // A second time the names are taken.
    for name in ["all-c.parquet/c.parquet", "all-c.arrow/c.arrow"] {
        let arguments = format!("dedup {name} --annotate again/");
        folder
            .run(&arguments)
            .expect(3)
            .says(&["\"dedup_kept\" already"]);
    }
}

#[test]
fn shards_and_folders_of_tables_are_one_corpus() {
    let folder = Folder::new();
    let documents = documents();
    let batches = [table(&documents[..5]), table(&documents[5..])];
    std::fs::create_dir_all(folder.path("set/data")).unwrap();
    for (batch, name) in batches
        .iter()
        .zip(["train-00000-of-00002", "train-00001-of-00002"])
    {
        let path = folder.path(&format!("set/data/{name}.parquet"));
        write_parquet(&path, batch, Compression::SNAPPY, 3);
    }
    folder.write("set/README.md", "---\ndataset_info: {}\n---\nA data set.");
    let ran = folder.run("dedup set -o one.parquet").expect(0);
    let reported = "resemblance: 2 files as Parquet (10 documents)\n";
    assert!(ran.stderr.contains(reported), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("files beside the tables of set: 1"),
        "{}",
        ran.stderr
    );
    let all = table(&documents);
    assert_eq!(
        &read_parquet(&folder.path("one.parquet"))["text"],
        &all.slice(0, 6)["text"]
    );
    folder.run("dedup set -o two").expect(0);
    let second = read_parquet(&folder.path("two/data/train-00001-of-00002.parquet"));
    assert_eq!(&second["text"], &all.slice(5, 1)["text"]);
    let globbed = folder
        .run("pairs set/data/train-*.parquet")
        .expect(0)
        .stdout;
    assert_eq!(globbed, folder.run("pairs set").expect(0).stdout);
    assert_eq!(globbed.lines().count(), 5);
    folder
        .run("pairs set/*.arrow")
        .expect(4)
        .says(&["no file matches set/*.arrow"]);
    folder
        .run("pairs hf://datasets/a/b")
        .expect(4)
        .says(&["hf://datasets/a/b", "hf download"]);
    // Other columns do not go into the same file.
    let few = batches[0].project(&[1, 3]).unwrap();
    write_parquet(&folder.path("few.parquet"), &few, Compression::SNAPPY, 3);
    folder
        .run("dedup set few.parquet -o bad.parquet")
        .expect(2)
        .says(&["have different columns", "-o FOLDER"]);
}

#[test]
fn features_and_weights_are_read_from_columns() {
    let folder = Folder::new();
    let mut features = ListBuilder::new(StringBuilder::new());
    let mut weights = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    for names in [["a", "b"], ["a", "b"], ["c", "d"]] {
        for name in names {
            features.values().append_value(name);
            weights.keys().append_value(name);
            weights.values().append_value(3);
        }
        features.append(true);
        weights.append(true).unwrap();
    }
    for (name, column) in [
        ("features", Arc::new(features.finish()) as ArrayRef),
        ("weights", Arc::new(weights.finish())),
    ] {
        let ids = Arc::new(UInt64Array::from(vec![u64::MAX, 1, 2]));
        let batch = RecordBatch::try_from_iter([("id", ids as ArrayRef), (name, column)]).unwrap();
        write_parquet(&folder.path("f.parquet"), &batch, Compression::SNAPPY, 9);
        let mut arguments = vec!["pairs", "f.parquet", "--features"];
        if name == "weights" {
            arguments.extend(["--minhash-kind", "weighted"]);
        }
        let pairs = folder.run(&arguments).expect(0).stdout;
        assert_eq!(pairs, "1\t18446744073709551615\t1.000000\n", "{name}");
    }
}

#[test]
fn null_in_a_table_is_a_missing_text() {
    let folder = Folder::new();
    let texts = StringArray::from(vec![Some("a b c d e f"), None, Some("a b c d e f")]);
    let nulls = RecordBatch::try_from_iter([("text", Arc::new(texts) as ArrayRef)]).unwrap();
    write_parquet(&folder.path("n.parquet"), &nulls, Compression::SNAPPY, 9);
    folder
        .run("pairs n.parquet")
        .expect(3)
        .says(&["field \"text\" is missing", "at n.parquet:2"]);
    let pairs = folder.run("pairs n.parquet --skip-bad").expect(0).stdout;
    assert_eq!(pairs, "n.parquet:1\tn.parquet:3\t1.000000\n");
}

#[test]
fn results_are_written_as_tables() {
    let folder = Folder::new();
    write_all(&folder);
    folder.run("build a.rsm c.parquet").expect(0);
    folder.write("one.jsonl", line("one", &text(1)));
    let cases: [(&[&str], usize); 4] = [
        (&["pairs", "c.jsonl"], 5),
        (&["clusters", "c.jsonl"], 7),
        (&["query", "a.rsm", "--corpus", "c.jsonl"], 20),
        (&["pairs", "one.jsonl"], 0),
    ];
    for (arguments, rows) in cases {
        let results = |format| {
            let output = folder
                .command(&[arguments, &["--format", format]].concat())
                .output();
            output.unwrap().stdout
        };
        folder.write("results.parquet", results("parquet"));
        let table = read_parquet(&folder.path("results.parquet"));
        let lines = String::from_utf8(results("jsonl")).unwrap();
        let lines: Vec<serde_json::Value> = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(
            (table.num_rows(), lines.len()),
            (rows, rows),
            "{arguments:?}"
        );
        for (index, field) in table.schema().fields().iter().enumerate() {
            let column = table.column(index);
            for (row, line) in lines.iter().enumerate() {
                let value = &line[field.name()];
                let is_same = match field.data_type() {
                    _ if value.is_null() => column.is_null(row),
                    DataType::Utf8 => value == column.as_string::<i32>().value(row),
                    DataType::UInt64 => value == column.as_primitive::<UInt64Type>().value(row),
                    _ => {
                        // The parser of JSON may round the last digit in another way.
                        let number = column.as_primitive::<Float64Type>().value(row);
                        (value.as_f64().unwrap() - number).abs() < 1e-12
                    }
                };
                assert!(is_same, "{arguments:?}: {} of {line}", field.name());
            }
        }
    }
    // Verbs without columns of types have no such form.
    folder.run("stats a.rsm --format parquet").expect(2);
    folder.run("list a.rsm --format parquet").expect(2);
}

/// Rows before the damage are read, decided and written; each reading sees the same ones.
#[test]
fn tables_are_read_up_to_the_damage_that_is_skipped() {
    let folder = Folder::new();
    let texts: Vec<String> = (0..12).map(|number| text(number % 9)).collect();
    let ids = (0..12).map(|number| format!("k{number}"));
    let batch = RecordBatch::try_from_iter([
        (
            "id",
            Arc::new(StringArray::from_iter_values(ids)) as ArrayRef,
        ),
        ("text", Arc::new(StringArray::from(texts))),
    ])
    .unwrap();
    let level = ZstdLevel::default();
    write_parquet(
        &folder.path("whole.parquet"),
        &batch,
        Compression::ZSTD(level),
        4,
    );
    std::fs::create_dir(folder.path("t")).unwrap();
    write_parquet(
        &folder.path("t/b.parquet"),
        &batch,
        Compression::ZSTD(level),
        4,
    );
    let whole = folder.read("whole.parquet");
    let reader = SerializedFileReader::new(File::open(folder.path("whole.parquet")).unwrap());
    let reader = reader.unwrap();
    let column = reader.metadata().row_group(2).column(1);
    let (start, length) = column.byte_range();
    let mut damaged = whole.clone();
    for byte in &mut damaged[(start + length / 2) as usize..(start + length) as usize] {
        *byte ^= 0xff;
    }
    folder.write("t/a.parquet", &damaged);
    folder
        .run(&["dedup", "t", "-o", "out", "--report", "r.tsv"])
        .expect(3);
    for arguments in [
        &["dedup", "t", "-o", "out"][..],
        &["dedup", "t/a.parquet", "t/b.parquet", "-o", "one.parquet"],
    ] {
        let skipping = [
            arguments,
            &["--skip-unreadable", "--dropped", "d.parquet", "--force"],
        ];
        let ran = folder.run(&skipping.concat()).expect(2);
        assert!(ran.stderr.contains("a.parquet"), "{}", ran.stderr);
    }
    let rows = |name: &str| read_parquet(&folder.path(name)).num_rows();
    // The ninth text is in the damaged part of the first table alone.
    assert_eq!((rows("out/a.parquet"), rows("out/b.parquet")), (8, 1));
    assert_eq!(rows("one.parquet"), 9);
}

#[test]
fn a_table_that_cannot_be_opened_gets_no_output() {
    let folder = Folder::new();
    let texts = Arc::new(StringArray::from(vec![text(1), text(2)]));
    let batch = RecordBatch::try_from_iter([("text", texts as ArrayRef)]).unwrap();
    write_parquet(&folder.path("a.parquet"), &batch, Compression::SNAPPY, 4);
    let whole = folder.read("a.parquet");
    folder.write("t/a.parquet", &whole);
    folder.write("t/b.parquet", &whole[..whole.len() / 2]);
    folder
        .run(&["dedup", "t", "-o", "out", "--skip-unreadable"])
        .expect(2);
    let names = folder.names();
    let written = names.iter().filter(|name| name.starts_with("out/"));
    assert_eq!(written.collect::<Vec<_>>(), ["out/a.parquet"]);
}
