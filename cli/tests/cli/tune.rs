//! The verb `tune`.

use std::collections::BTreeMap;

use crate::support::{Folder, distinct, line, mixed};

type Row = BTreeMap<String, serde_json::Value>;

fn rows(folder: &Folder, arguments: &[&str]) -> Vec<Row> {
    let arguments = [&["tune", "--format", "jsonl"], arguments].concat();
    let stdout = folder.run(&arguments).expect(0).stdout;
    let parse = |line: &str| serde_json::from_str(line).unwrap();
    stdout.lines().map(parse).collect()
}

fn number(row: &Row, name: &str) -> f64 {
    row[name]
        .as_f64()
        .unwrap_or_else(|| panic!("{name} in {row:?}"))
}

#[test]
fn tune_lists_bands_for_each_number_of_values() {
    let folder = Folder::new();
    let rows = rows(&folder, &[]);
    let values: Vec<f64> = rows.iter().map(|row| number(row, "values")).collect();
    assert_eq!(values, [64.0, 128.0, 256.0, 512.0]);
    for row in &rows {
        let (bands, band_rows) = (number(row, "bands"), number(row, "rows"));
        assert!(bands * band_rows <= number(row, "values"));
        assert!(number(row, "recall") >= 0.95);
        // The plain formula, point by point.
        for percent in (50..=95).step_by(5) {
            let similarity = f64::from(percent) / 100.0;
            let expected = 1.0 - (1.0 - similarity.powf(band_rows)).powf(bands);
            let found = number(row, &format!("p0.{percent}"));
            assert!(
                (found - expected).abs() < 1e-9,
                "{percent}: {found}, {expected}"
            );
        }
        assert_eq!(number(row, "p0.80"), number(row, "recall"));
        let candidates = 1e6 * bands * 0.05_f64.powf(band_rows);
        let found = number(row, "candidates");
        assert!(
            (found / candidates - 1.0).abs() < 1e-3,
            "{found}, {candidates}"
        );
        assert!((number(row, "posting_bytes") / bands - 5.4).abs() < 1e-9);
        let signature = number(row, "signature_bytes");
        assert_eq!(signature, 2.0 * number(row, "values"));
        assert!(number(row, "document_bytes") > signature + number(row, "posting_bytes"));
        assert_eq!(number(row, "background"), 0.05);
        assert_eq!(number(row, "documents"), 1e6);
    }
    assert_eq!(
        (number(&rows[1], "bands"), number(&rows[1], "rows")),
        (13.0, 7.0)
    );
}

#[test]
fn tune_lists_simhash_designs_by_number_of_documents() {
    let folder = Folder::new();
    let designs = rows(&folder, &["--simhash", "64"]);
    let documents: Vec<f64> = designs.iter().map(|row| number(row, "documents")).collect();
    assert_eq!(documents, [1e5, 1e6, 1e7, 1e8, 1e9]);
    let tables: Vec<f64> = designs.iter().map(|row| number(row, "tables")).collect();
    // The more documents, the longer the prefixes, of more tables.
    assert!(tables[0] < tables[4], "{tables:?}");
    for row in &designs {
        assert_eq!(number(row, "probes_without_tables"), 43_745.0);
        assert_eq!(number(row, "distance"), 3.0);
        assert!((number(row, "p0.80") - 0.009).abs() < 0.0005);
        assert!((number(row, "posting_bytes") / number(row, "tables") - 8.4).abs() < 1e-9);
    }
    let one = rows(
        &folder,
        &["--simhash", "64", "--distance", "8", "--documents", "5"],
    );
    assert_eq!(one.len(), 1);
    assert_eq!(number(&one[0], "distance"), 8.0);
    let wide = rows(&folder, &["--simhash", "128", "--documents", "1000000"]);
    assert_eq!(number(&wide[0], "distance"), 6.0);
    assert!(number(&wide[0], "tables") <= 7.0);
    let farther = ["--simhash", "128", "--distance", "16", "--documents", "5"];
    assert_eq!(number(&rows(&folder, &farther)[0], "distance"), 16.0);
    let table = ["tune", "--simhash", "64", "--format", "table"];
    let table = folder.run(&table).expect(0).stdout;
    assert!(
        table.contains("43745 probes") && table.contains("within distance 3"),
        "{table}"
    );
}

#[test]
fn tune_measures_the_background_of_a_corpus() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    // 7 documents, 21 pairs: a and a-again equal, the edited ones at 191 / 201 with two and one.
    let near = 191.0 / 201.0;
    let rows = rows(&folder, &["--corpus", "c.jsonl", "--documents", "1000"]);
    let mean = (1.0 + 3.0 * near) / 21.0;
    assert!((number(&rows[0], "background") - mean).abs() < 1e-4);
    for row in &rows {
        let (bands, band_rows) = (number(row, "bands"), number(row, "rows"));
        let found = 1.0 - (1.0 - near.powf(band_rows)).powf(bands);
        let candidates = 1_000.0 * (1.0 + 3.0 * found) / 21.0;
        assert!(
            (number(row, "candidates") / candidates - 1.0).abs() < 1e-3,
            "{row:?}"
        );
    }
    folder.write("one.jsonl", line("a", "b"));
    folder
        .run("tune --corpus one.jsonl")
        .expect(3)
        .says(&["two documents"]);
    folder.write("d.jsonl", distinct(0..300));
    let small = "tune --corpus d.jsonl --memory 1M";
    folder.run(small).expect(2).says(&["--memory", "--sample"]);
}

#[test]
fn tune_shows_the_given_bands() {
    let folder = Folder::new();
    let given = rows(&folder, &["--bands", "20", "--rows", "5"]);
    assert_eq!(given.len(), 1);
    let fact = |name| number(&given[0], name);
    assert_eq!(
        [fact("values"), fact("bands"), fact("rows")],
        [100.0, 20.0, 5.0]
    );
    // Mining of Massive Datasets, section 3.4: 20 bands of 5 rows.
    for (name, expected) in [("p0.60", 0.802), ("p0.70", 0.975), ("p0.80", 0.9996)] {
        assert!((fact(name) - expected).abs() < 0.001, "{name}");
    }
    assert!((fact("curve_threshold") - 0.549).abs() < 0.001);
    let (positives, negatives) = (fact("false_positive_area"), fact("false_negative_area"));
    // At the default threshold 0.8 nearly nothing is missed.
    assert!(
        (0.29..0.31).contains(&positives) && negatives < 1e-3,
        "{positives} {negatives}"
    );
    let many = ["--bands", "9", "--rows", "13", "--values", "128,256"];
    assert_eq!(rows(&folder, &many).len(), 2);
    let curve = rows(&folder, &["--curve-threshold", "0.5", "--values", "64"]);
    assert_eq!(
        (number(&curve[0], "bands"), number(&curve[0], "rows")),
        (16.0, 4.0)
    );
    let chart = "tune --bands 20 --rows 5 --format table --svg a.svg";
    let shown = folder.run(chart).expect(0).stdout;
    assert!(shown.contains("bands that are given"), "{shown}");
    assert!(folder.read_text("a.svg").contains("20 bands of 5 rows"));
    let wrong = "tune --bands 20 --rows 5 --values 99";
    folder
        .run(wrong)
        .expect(2)
        .says(&["--bands and --rows", "20 x 5"]);
    folder.run("tune --bands 20").expect(2);
}

#[test]
fn tune_near_follows_the_theory() {
    let folder = Folder::new();
    let plans = rows(&folder, &["--nearest", "0.8,0.4"]);
    assert_eq!(plans.len(), 2);
    // ln(1 / 0.8) / ln(1 / 0.05), ln 10⁶ / ln 20, 10⁶ to the power of ρ.
    let rho = 0.8_f64.ln() / 0.05_f64.ln();
    assert!((number(&plans[0], "rho") - rho).abs() < 1e-6);
    assert_eq!(
        (number(&plans[0], "rows"), number(&plans[0], "bands")),
        (5.0, 3.0)
    );
    assert_eq!(number(&plans[1], "bands"), 69.0);
    assert!((number(&plans[1], "posting_bytes") - 69.0 * 5.4).abs() < 1e-9);
    // 13 bands, of which two rows are asked.
    let short = 1.0 - (1.0 - 0.4_f64.powi(2)).powi(13);
    assert!((number(&plans[1], "short_probability") - short).abs() < 1e-6);
    folder
        .run("tune --nearest 0.01")
        .expect(2)
        .says(&["--background", "below 0.01"]);
}

#[test]
fn tune_shows_the_given_tables() {
    let folder = Folder::new();
    let manku = [
        "--simhash",
        "64",
        "--tables",
        "5,2",
        "--documents",
        "8000000000",
    ];
    let manku = rows(&folder, &manku);
    assert_eq!(
        (number(&manku[0], "tables"), number(&manku[0], "distance")),
        (10.0, 3.0)
    );
    assert_eq!(manku[0]["design"], "(5,2)");
    let wrong = "tune --simhash 64 --tables 1,1 --distance 4";
    folder.run(wrong).expect(2).says(&["at most 65536 buckets"]);
    folder.write("c.jsonl", mixed());
    let create = "build a.rsm c.jsonl --simhash 32 --tables 3,2+1,1";
    folder.run(create).expect(0);
    let found = folder.run("query a.rsm --key a --distance 0").expect(0);
    assert_eq!(found.stdout, "a-again\t0\n");
    let made = folder.run("reband a.rsm --tables 4,3").expect(0);
    assert!(made.stderr.contains("(4,3): 4 tables"), "{}", made.stderr);
    folder.run("check a.rsm").expect(0);
    let unfit = "reband a.rsm --tables 1,1 --distance 5";
    folder.run(unfit).expect(2).says(&["at most 65536 buckets"]);
}
