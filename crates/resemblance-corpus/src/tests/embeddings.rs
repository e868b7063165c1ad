//! Documents with vectors, and arrays of NumPy.

use resemblance::{Schema, SimHash, Text, Vector};

use super::*;

/// Returns the settings for vectors of three numbers.
fn of_vectors() -> CorpusSettings {
    settings_of(&Schema::builder().vector(Vector::cosine(3)).build().unwrap())
}

fn settings_of(schema: &Schema) -> CorpusSettings {
    CorpusSettings {
        content: ContentRule::new(schema, false),
        ..settings()
    }
}

fn content(line: &str, settings: &CorpusSettings) -> Result<Content<'static>, String> {
    let parsed = line::parse(line.as_bytes(), settings, || b"made".into());
    let content = parsed.map(|document| document.content.into_owned());
    content.map_err(|bad| bad.reason)
}

fn vector(text: Option<&str>, numbers: &[f32]) -> Content<'static> {
    Content::Vector {
        text: text.map(|text| text.to_owned().into()),
        numbers: numbers.to_vec(),
    }
}

#[test]
fn arrays_of_numbers_become_vectors() {
    let expected = vector(None, &[1.0, -0.5, 1e-30]);
    for line in [
        r#"{"vector":[1,-0.5,1e-30]}"#,
        r#"{"vector":[ 1.0, -5E-1 ,1.0e-30 ],"features":["x"]}"#,
        r#"{"vector":"[1, -0.5, 1e-30]","text":"unused"}"#,
    ] {
        assert_eq!(
            content(line, &of_vectors()).as_ref(),
            Ok(&expected),
            "{line}"
        );
    }
    // Each number is rounded once, to 32 bits.
    let line = r#"{"vector":[1.00000005960464477540,0.1,16777217]}"#;
    let expected = vector(None, &[1.000_000_1, 0.1, 16_777_216.0]);
    assert_eq!(content(line, &of_vectors()), Ok(expected));
}

#[test]
fn faults_of_vectors_are_reported() {
    const CASES: &str = r#"
{"text":"a"} => field "vector" is missing
{"vector":null} => field "vector" is null, expected an array of 3 numbers
{"vector":{"a":1}} => is an object, expected
{"vector":"1,2,3"} => is a string, expected
{"vector":[]} => is an array of 0, expected an array of 3 numbers
{"vector":[1,2]} => is an array of 2, expected an array of 3 numbers
{"vector":[1,2,3,4]} => is an array of 4
{"vector":[1,null,3]} => is null (or NaN, or infinite) at place 2, expected
{"vector":[1,2,1e39]} => is 1e39 at place 3
{"vector":[1,"2",3]} => is "2" at place 2
{"vector":[[1,2,3]]} => is [1 at place 1
{"vector":"[1,nan,3]"} => is nan at place 2
{"vector":[1,2,3]} trailing => more text follows
"#;
    for case in CASES.trim().lines() {
        let (line, expected) = case.split_once(" => ").unwrap();
        let found = content(line, &of_vectors()).unwrap_err();
        assert!(found.contains(expected), "{line}: {found}");
    }
}

#[test]
fn a_schema_of_texts_and_vectors_requires_both() {
    let builder = Schema::builder().text(Text::words(1));
    let builder = builder.simhash(SimHash::bits64()).vector(Vector::cosine(2));
    let schema = builder.build().unwrap();
    let settings = CorpusSettings {
        vector_field: FieldPath::from_name("e.mb"),
        ..settings_of(&schema)
    };
    let both = content(r#"{"text":"a word","e":{"mb":[3,4]}}"#, &settings).unwrap();
    assert_eq!(both, vector(Some("a word"), &[3.0, 4.0]));
    assert_eq!((both.text(), both.length()), (Some("a word"), 6));
    let sketched = both.sketch(&schema.sketcher(), false).unwrap().signature;
    assert!(sketched.fingerprint().is_some() && sketched.vector().is_some());
    let other = content(r#"{"text":"a word","e.mb":[4,3]}"#, &settings).unwrap();
    assert_ne!(both.digest(), other.digest());
    for (line, missing) in [
        (r#"{"e.mb":[3,4]}"#, "field \"text\" is missing"),
        (r#"{"text":"a"}"#, "field \"e.mb\" is missing"),
    ] {
        assert_eq!(content(line, &settings).unwrap_err(), missing);
    }
}

#[test]
fn vectors_that_cannot_be_sketched_are_found() {
    let settings = of_vectors();
    let parse = |(number, line): (u64, &'static str)| CorpusDocument {
        number,
        ..line::parse(line.as_bytes(), &settings, || b"made".into()).unwrap()
    };
    let lines = [
        r#"{"vector":[0,0,1]}"#,
        r#"{"vector":[0,-0,0]}"#,
        r#"{"vector":[0,1,0]}"#,
    ];
    let documents: Vec<_> = (7..).zip(lines).map(parse).collect();
    let corpus = Corpus::resolve(&[], settings.clone()).unwrap();
    let found = corpus.unsketched_vectors(&documents);
    assert_eq!(found.keys().collect::<Vec<_>>(), [&8]);
    assert!(found[&8].reason.contains("zeros"), "{}", found[&8]);
}

#[test]
fn columns_of_texts_have_vectors() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(
        dir.path(),
        "a.csv",
        b"id,vector\nx,\"[1,2,3]\"\ny,\"[1,2]\"\n",
    );
    let mut entries = CorpusReader::open(&[path], of_vectors()).unwrap();
    let mut next = || entries.next().unwrap().unwrap().document;
    assert_eq!(next().unwrap().content, vector(None, &[1.0, 2.0, 3.0]));
    assert!(next().unwrap_err().reason.contains("an array of 2"));
}

/// Returns a file of NumPy with this header, which is padded as NumPy pads it.
fn npy(version: u8, header: &str, data: &[u8]) -> Vec<u8> {
    let length_bytes = if version == 1 { 2 } else { 4 };
    let unpadded = 8 + length_bytes + header.len() + 1;
    let padded = header.len() + 1 + unpadded.next_multiple_of(64) - unpadded;
    let mut bytes = [b"\x93NUMPY", &[version, 0][..]].concat();
    bytes.extend(&(padded as u32).to_le_bytes()[..length_bytes]);
    bytes.extend(format!("{header:<width$}\n", width = padded - 1).into_bytes());
    bytes.extend(data);
    bytes
}

fn described(number: &str, shape: &str) -> String {
    format!("{{'descr': '{number}', 'fortran_order': False, 'shape': {shape}, }}")
}

fn words<const N: usize>(numbers: impl IntoIterator<Item = [u8; N]>) -> Vec<u8> {
    numbers.into_iter().flatten().collect()
}

/// The key of a document and its content, or its place and its fault.
type FoundDocument = (String, Result<Content<'static>, String>);

/// Returns the documents of a file, and the error at the end if there was one.
fn documents(path: &Path, settings: &CorpusSettings) -> (Vec<FoundDocument>, Option<String>) {
    let mut found = Vec::new();
    for entry in CorpusReader::open(&[path], settings.clone()).unwrap() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => return (found, Some(error.to_string())),
        };
        let place = entry.place.rsplit_once('/').unwrap().1.to_owned();
        found.push(match entry.document {
            Ok(document) => (
                String::from_utf8(document.key.into_owned()).unwrap(),
                Ok(document.content),
            ),
            Err(bad) => (place, Err(bad.reason)),
        });
    }
    (found, None)
}

#[test]
fn rows_of_arrays_become_vectors() {
    let dir = tempfile::tempdir().unwrap();
    let single = [1.0_f32, -2.5, 0.1, 3e38, -0.0, 1e-40];
    let singles = words(single.map(f32::to_le_bytes));
    let doubles = words(single.map(|number| f64::from(number).to_le_bytes()));
    // 1, -2.5, the least and the greatest number, -0 and the greatest subnormal number.
    let halves = words([0x3c00_u16, 0xc100, 1, 0x7bff, 0x8000, 0x3ff].map(u16::to_le_bytes));
    let half = [1.0, -2.5, 5.960_464_5e-8, 65504.0, -0.0, 6.097_555e-5];
    let integer = [1.0, -2.0, 127.0, -128.0, 0.0, 5.0];
    let integers = words([1_i8, -2, 127, -128, 0, 5].map(i8::to_le_bytes));
    for (version, number, data, expected) in [
        (1, "<f4", &singles, single),
        (2, "<f8", &doubles, single),
        (3, "<f2", &halves, half),
        (1, "|i1", &integers, integer),
    ] {
        let whole = npy(version, &described(number, "(2, 3)"), data);
        let [a, b] = *expected.as_chunks::<3>().0 else {
            panic!("two rows of three numbers");
        };
        let rows = vec![
            ("0".to_owned(), Ok(vector(None, &a))),
            ("1".to_owned(), Ok(vector(None, &b))),
        ];
        for (name, bytes) in [
            ("a.npy", whole.clone()),
            ("named_otherwise", whole.clone()),
            ("a.npy.gz", compressed(Compression::Gzip, &whole)),
            ("packed", compressed(Compression::Zstd, &whole)),
        ] {
            let path = write(dir.path(), name, &bytes);
            assert_eq!(
                documents(&path, &of_vectors()),
                (rows.clone(), None),
                "{number} {name}"
            );
        }
    }
}

#[test]
fn rows_of_an_array_have_their_indices_as_keys_and_places() {
    let dir = tempfile::tempdir().unwrap();
    let data = words([1.0_f32, 2.0, 3.0, 4.0, f32::NAN, 6.0].map(f32::to_le_bytes));
    let header = "{\"shape\": (2L, 3), 'descr':'<f4','fortran_order' :False}";
    write(dir.path(), "set/a.npy", &npy(1, header, &data));
    write(dir.path(), "set/README", b"about the set");
    let (found, _) = documents(&dir.path().join("set"), &of_vectors());
    let bad =
        "field \"vector\" is null (or NaN, or infinite) at place 2, expected an array of 3 numbers";
    let first = vector(None, &[1.0, 2.0, 3.0]);
    let expected = [
        ("0".into(), Ok(first.clone())),
        ("a.npy:1".into(), Err(bad.into())),
    ];
    assert_eq!(found, expected);
    let by_line = CorpusSettings {
        id: IdRule::Line,
        ..of_vectors()
    };
    let (found, _) = documents(&dir.path().join("set/a.npy"), &by_line);
    assert_eq!(found[0], ("0".into(), Ok(first)));
}

#[test]
fn other_arrays_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let by_column = described("<f4", "(1, 3)").replace("False", "True");
    let structures = described("<f4", "(1,)").replace("'<f4'", "[('a', '<f4')]");
    let data = [0; 24];
    for (header, expected) in [
        (described(">f4", "(1, 3)"), "an array of the type \">f4\""),
        (described("<i8", "(1, 3)"), "an array of the type \"<i8\""),
        (described("|O", "(1, 3)"), "an array of the type \"|O\""),
        (by_column, "an array in Fortran order"),
        (structures, "an array of structures"),
        (described("<f4", "(3,)"), "an array of 1 dimensions"),
        (described("<f4", "()"), "an array of 0 dimensions"),
        (described("<f4", "(1, 1, 3)"), "an array of 3 dimensions"),
        (
            described("<f4", "(1, 4)"),
            "an array with 4 columns, expected 3",
        ),
        (
            described("<f4", "(1, 18446744073709551615)"),
            "an array with 18446744073709551615 columns",
        ),
    ] {
        let path = write(dir.path(), "a.npy", &npy(1, &header, &data));
        let (found, error) = documents(&path, &of_vectors());
        let reason = found[0].1.as_ref().unwrap_err();
        assert!(
            reason.contains(expected) && error.is_none(),
            "{header}: {reason}"
        );
    }
    let path = write(
        dir.path(),
        "a.npy",
        &npy(1, &described("<f4", "(2, 3)"), &data),
    );
    let reason = |settings: &CorpusSettings| documents(&path, settings).0[0].1.clone().unwrap_err();
    assert!(reason(&settings()).contains("the schema has no vectors"));
    let by_other_id = CorpusSettings {
        id: IdRule::Field(FieldPath::from_name("name")),
        ..of_vectors()
    };
    assert_eq!(reason(&by_other_id), "there is no column \"name\"");
    let future = write(dir.path(), "b.npy", &npy(9, "", &[]));
    let (found, _) = documents(&future, &of_vectors());
    assert!(
        found[0]
            .1
            .as_ref()
            .unwrap_err()
            .contains("version 9, expected 1, 2 or 3")
    );
}

#[test]
fn damaged_arrays_are_errors_at_every_byte() {
    let dir = tempfile::tempdir().unwrap();
    let data = words([1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0].map(f32::to_le_bytes));
    let whole = npy(1, &described("<f4", "(2, 3)"), &data);
    let read = |bytes: &[u8]| {
        let path = write(dir.path(), "a.npy", bytes);
        documents(&path, &of_vectors())
    };
    assert_eq!(read(&whole).1, None);
    for length in 0..whole.len() {
        let (found, error) = read(&whole[..length]);
        let error = error.unwrap();
        assert!(
            error.contains("damaged") && found.len() < 2,
            "{length}: {error}"
        );
    }
    for (shape, expected) in [
        ("(1, 3)", "it continues after its 1 rows"),
        ("(3, 3)", "it ends before row 2 of 3"),
        ("(18446744073709551615, 3)", "it ends before row 2 of"),
        ("(18446744073709551616, 3)", "no header of an array"),
        ("(-1, 3)", "no header of an array"),
        ("(2, 3", "no header of an array"),
    ] {
        let error = read(&npy(1, &described("<f4", shape), &data)).1.unwrap();
        assert!(error.contains(expected), "{shape}: {error}");
    }
    // Whatever byte a header has, nothing aborts, and a huge header is not allocated.
    let header_bytes = whole.len() - data.len();
    for place in 6..header_bytes {
        for byte in [0, 0xff, b'\'', b'(', b'}'] {
            let mut bytes = whole.clone();
            bytes[place] = byte;
            let (found, error) = read(&bytes);
            assert!(
                found.len() <= 2 && (error.is_some() || !found.is_empty()),
                "{place}"
            );
        }
    }
    let endless = [b"\x93NUMPY\x02\x00".as_slice(), &u32::MAX.to_le_bytes()].concat();
    assert!(read(&endless).1.unwrap().contains("no header"));
}

#[cfg(feature = "tables")]
#[test]
fn lists_of_tables_become_vectors() {
    use arrow_array::builder::{FixedSizeListBuilder, Float16Builder, Float64Builder, ListBuilder};
    use arrow_array::types::{ArrowPrimitiveType, Float16Type, Float32Type};
    use arrow_array::{ArrayRef, FixedSizeListArray, Int32Array, RecordBatch, StringArray};
    use arrow_ipc::writer::FileWriter;
    use parquet::arrow::ArrowWriter;
    type Half = <Float16Type as ArrowPrimitiveType>::Native;

    let dir = tempfile::tempdir().unwrap();
    let rows = [
        Some([Some(1.0), Some(0.1), Some(-2.0)]),
        None,
        Some([Some(f32::NAN); 3]),
    ];
    let singles = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(rows, 3);
    let mut doubles = ListBuilder::new(Float64Builder::new());
    let mut halves = FixedSizeListBuilder::new(Float16Builder::new(), 3);
    for row in [[1.0, 0.1, -2.0], [0.5, 0.25, 3.0], [f64::NAN; 3]] {
        doubles.append_value(row.map(Some));
        for number in row {
            halves.values().append_value(Half::from_f64(number));
        }
        halves.append(true);
    }
    let texts = StringArray::from(vec!["[1,0.1,-2]", "[1,2,3]", "x"]);
    let columns: [(&str, ArrayRef); 5] = [
        ("numbers", Arc::new(Int32Array::from(vec![1, 2, 3]))),
        ("singles", Arc::new(singles)),
        ("doubles", Arc::new(doubles.finish())),
        ("halves", Arc::new(halves.finish())),
        ("texts", Arc::new(texts)),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    write(dir.path(), "a.parquet", &bytes);
    let mut writer = FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    write(dir.path(), "a.arrow", &writer.into_inner().unwrap());
    let read = |file: &str, name: &str, settings: CorpusSettings| {
        let settings = CorpusSettings {
            vector_field: FieldPath::from_name(name),
            ..settings
        };
        documents(&dir.path().join(file), &settings).0
    };
    for (file, name) in itertools::iproduct!(
        ["a.parquet", "a.arrow"],
        ["singles", "doubles", "texts", "halves"]
    ) {
        let found = read(file, name, of_vectors());
        let tenth = if name == "halves" { 0.099_975_586 } else { 0.1 };
        let first = Ok(vector(None, &[1.0, tenth, -2.0]));
        assert_eq!(found[0].1, first, "{file} {name}");
        assert_eq!(found[1].1.is_err(), name == "singles", "{file} {name}");
        assert!(found[2].1.is_err(), "{file} {name}");
    }
    let of_two = Schema::builder().vector(Vector::cosine(2)).build().unwrap();
    for (file, name, settings, expected) in [
        (
            "a.parquet",
            "singles",
            settings_of(&of_two),
            "an array of 2 numbers",
        ),
        (
            "a.arrow",
            "singles",
            settings_of(&of_two),
            "lists of 2 numbers",
        ),
        ("a.arrow", "numbers", of_vectors(), "lists of 3 numbers"),
        (
            "a.arrow",
            "absent",
            of_vectors(),
            "there is no column \"absent\"",
        ),
    ] {
        let refused = read(file, name, settings);
        let reason = refused[0].1.as_ref().unwrap_err();
        assert!(reason.ends_with(expected), "{file} {name}: {reason}");
    }
}
