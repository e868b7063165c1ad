//! Pages zeroed and bits flipped, everywhere in the file.

use std::collections::BTreeSet;

use crate::common::memory::MemoryFiles;
use crate::common::sample::trials;
use crate::common::{Random, sealing_after};
use crate::repair::oracle::{PAGE_BYTES, engine_is_content, paths};
use crate::repair::{STORE, assert_kept, filled, ids, repair, schema, try_repair};
use resemblance::Operation;
use resemblance::report::RepairReport;

fn problems(bytes: &[u8]) -> Vec<String> {
    let files = MemoryFiles::with(STORE, bytes.to_vec());
    let report = files
        .options(&sealing_after(64))
        .check(STORE)
        .run()
        .unwrap();
    if !report.is_clean() {
        assert!(files.read(STORE) == bytes, "a damaged file was changed");
    }
    let problems = report.problems.iter();
    problems.map(|problem| problem.place.clone()).collect()
}

/// Whether a place is the page there, or one of four that begins before.
fn names(place: &str, at: usize) -> bool {
    let offset = place
        .strip_prefix("page at byte ")
        .and_then(|place| place.split(',').next());
    let offset: usize = offset.unwrap().parse().unwrap();
    (offset..offset + 4 * PAGE_BYTES).contains(&at)
}

/// The damaged page is named if and only if the engine's own check minds it.
#[test]
fn repair_names_each_damaged_page() {
    let (files, _) = filled(400);
    let whole = files.read(STORE);
    assert!(problems(&whole).is_empty() && engine_is_content(&whole));
    let mut random = Random(5);
    let (mut named, mut count) = (Vec::new(), 0);
    for page in (PAGE_BYTES..whole.len()).step_by(PAGE_BYTES) {
        let mut bytes = whole.clone();
        // Within the first bytes, which pages in use fill.
        let at = page + random.below(64) as usize;
        let bit = 1 << random.below(8);
        bytes[at] ^= bit;
        let found = problems(&bytes);
        let is_named = found.first().is_some_and(|found| names(found, page));
        assert_eq!(is_named, !engine_is_content(&bytes), "{page} {found:?}");
        assert_eq!(is_named, !found.is_empty());
        count += usize::from(is_named);
        // Without the table of tables no other page of the commit is known.
        let is_top = found.iter().any(|place| place.contains("table of tables"));
        if is_named && !is_top {
            named.push((at, bit));
        }
    }
    assert!(count > 40, "{count}");
    // Several at a time; but a damaged branch may name another page than the damaged one below it.
    named.retain(|(at, _)| whole[at / PAGE_BYTES * PAGE_BYTES] == 1);
    for chosen in named.chunks(7) {
        let mut bytes = whole.clone();
        for (at, bit) in chosen {
            bytes[*at] ^= bit;
        }
        let found = problems(&bytes);
        for (at, _) in chosen {
            let is_named = found.iter().any(|found| names(found, *at));
            assert!(is_named, "{at} {found:#?}");
        }
    }
}

/// A lost page costs exactly the documents whose rows are in it or below it. Tests each page of a
/// store of 200 documents, or of 400 with `RESEMBLANCE_TESTS=all`.
#[test]
fn repair_keeps_documents_outside_a_lost_page() {
    let (files, before) = filled(trials(200, 400));
    let whole = files.read(STORE);
    let paths = paths(&whole, &ids(&before));
    let (mut losing, mut harmless, mut without_schema) = (0, 0, 0);
    for page in (PAGE_BYTES..whole.len()).step_by(PAGE_BYTES) {
        let mut bytes = whole.clone();
        bytes[page..page + PAGE_BYTES].fill(0);
        let expected: BTreeSet<u64> = paths
            .iter()
            .filter(|(_, paths)| !paths.lead_over(page))
            .map(|(id, _)| *id)
            .collect();
        let repaired = try_repair(&bytes, |options| options);
        let (report, kept) = match repaired {
            Ok(repaired) => repaired,
            // The tables cannot be found, or the schema.
            Err(resemblance::Error::Corrupt { place, .. }) => {
                without_schema += 1;
                let scan = place.starts_with("the definitions");
                let given =
                    |repair: Operation<'static, RepairReport>| repair.schema(schema()).scan(scan);
                let (report, kept) = try_repair(&bytes, given).unwrap();
                assert!(
                    before
                        .iter()
                        .all(|(id, content)| kept.get(id) == Some(content))
                );
                assert_eq!(report.has_own_schema, scan);
                assert_eq!(report.may_be_back.is_empty(), !scan);
                continue;
            }
            Err(error) => panic!("page at {page}: {error}"),
        };
        assert_kept(&report, &kept, &before);
        // A part of a long page is missing.
        let is_long = paths.values().any(|paths| {
            paths
                .over(page)
                .is_some_and(|(_, length)| length > PAGE_BYTES)
        });
        let mut kept = ids(&kept);
        kept.retain(|id| before.contains_key(id));
        assert!(
            kept.is_superset(&expected) && (is_long || kept == expected),
            "page at {page}: {report:#?}"
        );
        if expected.len() < before.len() {
            losing += 1;
            assert_eq!(report.documents_before, Some(before.len() as u64));
        } else {
            harmless += 1;
        }
    }
    let [least_losing, least_harmless] = trials([7, 15], [15, 30]);
    assert!(
        losing > least_losing && harmless > least_harmless,
        "{losing} {harmless}"
    );
    assert_eq!(without_schema, 2, "the definitions, and the rows of meta");
}

/// Tests 40 flips, or 200 with `RESEMBLANCE_TESTS=all`. One flipped bit costs the document whose
/// row it is in, or two documents if it separates rows, and nothing if it refers to other pages.
#[test]
fn repair_after_a_flipped_bit_loses_few_documents() {
    let (files, before) = filled(400);
    let whole = files.read(STORE);
    let paths = paths(&whole, &ids(&before));
    let flips =
        std::env::var("RESEMBLANCE_FLIPS").map_or(trials(40, 200), |flips| flips.parse().unwrap());
    let mut random = Random(11);
    let (mut lost_documents, mut most, mut refused) = (0, 0, 0);
    for _ in 0..flips {
        let mut bytes = whole.clone();
        let at = random.below(bytes.len() as u64) as usize;
        bytes[at] ^= 1 << random.below(8);
        let page = at / PAGE_BYTES * PAGE_BYTES;
        let Ok((report, kept)) = try_repair(&bytes, |options| options.schema(schema())) else {
            // Only the page with the definitions of the tables makes all documents unreachable.
            refused += 1;
            let (_, kept) =
                try_repair(&bytes, |options| options.schema(schema()).scan(true)).unwrap();
            assert!(
                before
                    .iter()
                    .all(|(id, content)| kept.get(id) == Some(content))
            );
            continue;
        };
        assert_kept(&report, &kept, &before);
        let lost: Vec<u64> = ids(&before).difference(&ids(&kept)).copied().collect();
        assert!(
            lost.iter().all(|id| paths[id].end_at(page)),
            "byte {at}: {lost:?}"
        );
        assert!(lost.len() <= 2, "byte {at}: {lost:?}");
        lost_documents += lost.len();
        most = most.max(lost.len());
    }
    println!(
        "{flips} flips in {} bytes, {} documents: {lost_documents} lost in all, {most} at most, {refused} without tables",
        whole.len(),
        before.len()
    );
    assert!(lost_documents > 0, "no flip hit a document");
}

/// Random stretches of several pages, and ends that are missing.
#[test]
fn repair_survives_larger_damage() {
    let (files, before) = filled(400);
    let whole = files.read(STORE);
    let paths = paths(&whole, &ids(&before));
    let mut random = Random(3);
    for _ in 0..12 {
        let mut bytes = whole.clone();
        let mut gone = BTreeSet::new();
        for _ in 0..3 {
            let page = 1 + random.below((whole.len() / PAGE_BYTES - 1) as u64) as usize;
            bytes[page * PAGE_BYTES..][..PAGE_BYTES].fill(0xff);
            gone.insert(page * PAGE_BYTES);
        }
        let Ok((report, kept)) = try_repair(&bytes, |options| options.schema(schema())) else {
            continue;
        };
        assert_kept(&report, &kept, &before);
        let is_reachable = |id: &u64| !gone.iter().any(|page| paths[id].lead_over(*page));
        let expected: BTreeSet<u64> = before.keys().copied().filter(is_reachable).collect();
        assert!(ids(&kept).is_superset(&expected));
    }
    for eighths in 4..8 {
        let bytes = &whole[..whole.len() / 8 * eighths];
        if let Ok((report, kept)) = try_repair(bytes, |options| options.schema(schema())) {
            assert_kept(&report, &kept, &before);
        }
    }
    let (report, _) = repair(&whole);
    assert!(report.is_complete());
}
