//! The verb `tune`.

use std::collections::BTreeMap;

use crate::support::Folder;

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
