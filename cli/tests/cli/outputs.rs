//! dedup writes its output where the options say, and changes nothing else.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{Folder, line, mixed, text};

/// How a verb uses a name that it is given for an output.
#[derive(Clone, Copy, PartialEq)]
enum Made {
    /// A file, which --force overwrites.
    File,
    /// A file, or a folder with the names of the input, which --force replaces.
    Corpus,
    /// A store, which must be new.
    Store,
    /// A folder that also contains other files.
    Folder,
    /// A separate folder.
    Job,
}

/// Every option of every verb that names an output, with a command that uses it: @ is the name, and c the corpus.
const OUTPUTS: [(&str, &str, Made, &str); 26] = [
    (
        "add",
        "--dropped",
        Made::Corpus,
        "add s.rsm c --if-new --dropped @",
    ),
    ("add", "--output", Made::Corpus, "add s.rsm c --if-new -o @"),
    (
        "add",
        "--report",
        Made::File,
        "add s.rsm c --if-new --report @",
    ),
    ("backup", "--output", Made::Store, "backup s.rsm -o @"),
    ("build", "--job", Made::Job, "build b.rsm c --job @"),
    ("build", "NEW_STORE", Made::Store, "build @ c"),
    ("clusters", "--job", Made::Job, "clusters c --job @"),
    (
        "create",
        "NEW_STORE",
        Made::Store,
        "create @ --simhash 64 --tf-idf-of c",
    ),
    (
        "decontaminate",
        "--items",
        Made::File,
        "decontaminate c --against t.jsonl -o /dev/null --items @",
    ),
    (
        "decontaminate",
        "--output",
        Made::Corpus,
        "decontaminate c --against t.jsonl -o @",
    ),
    (
        "decontaminate",
        "--report",
        Made::File,
        "decontaminate c --against t.jsonl -o /dev/null --report @",
    ),
    ("dedup", "--annotate", Made::Corpus, "dedup c --annotate @"),
    (
        "dedup",
        "--dropped",
        Made::Corpus,
        "dedup c --dry-run --dropped @",
    ),
    ("dedup", "--job", Made::Job, "dedup c --dry-run --job @"),
    ("dedup", "--output", Made::Corpus, "dedup c -o @"),
    (
        "dedup",
        "--rejected",
        Made::File,
        "dedup c --dry-run --rejected @",
    ),
    (
        "dedup",
        "--report",
        Made::File,
        "dedup c --dry-run --report @",
    ),
    (
        "dedup",
        "--review",
        Made::File,
        "dedup c --dry-run --review @",
    ),
    (
        "eval",
        "--svg",
        Made::Folder,
        "eval c --threshold 0.9 --seeds 1 --svg @",
    ),
    (
        "explain",
        "--output",
        Made::File,
        "explain a a-near --corpus c -o @",
    ),
    ("export", "--output", Made::File, "export s.rsm -o @"),
    ("man", "OUT_DIR", Made::Folder, "man @"),
    ("pairs", "--job", Made::Job, "pairs c --job @"),
    ("repair", "--output", Made::Store, "repair s.rsm -o @"),
    ("report", "--output", Made::File, "report c -o @"),
    ("tune", "--svg", Made::File, "tune --corpus c --svg @"),
];

/// Returns the commands and options that name an output according to the help.
fn documented_outputs(folder: &Folder) -> BTreeSet<(String, String)> {
    folder.run("man pages").expect(0);
    let mut found = BTreeSet::new();
    for page in std::fs::read_dir(folder.path("pages")).unwrap() {
        let name = page.unwrap().file_name().into_string().unwrap();
        let Some(verb) = name
            .strip_prefix("resemblance-")
            .and_then(|n| n.strip_suffix(".1"))
        else {
            continue;
        };
        let help = folder.run(&[verb, "--help"]);
        let lines = help.stdout.lines().map(str::trim_start);
        for line in lines.filter(|line| line.starts_with(['-', '<'])) {
            let value = ["<OUT>", "<OUT_DIR>", "<NEW_STORE>"]
                .into_iter()
                .find(|value| line.ends_with(value));
            if let Some(value) = value {
                let mut words = line.split_whitespace();
                let option = words.find(|word| word.starts_with("--"));
                let option = option.unwrap_or(value.trim_matches(['<', '>']));
                found.insert((verb.to_owned(), option.to_owned()));
            }
        }
    }
    std::fs::remove_dir_all(folder.path("pages")).unwrap();
    found
}

/// A corpus as a file and in a folder, two stores, and files and folders that are in the way.
fn crowded() -> Folder {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    folder.write("in/c.jsonl", mixed());
    folder.write("t.jsonl", line("t", &text(4)));
    folder.write("file", "there\n");
    folder.write("full/sub/file", "there\n");
    std::fs::create_dir(folder.path("empty")).unwrap();
    folder.run("build s.rsm c.jsonl").expect(0);
    folder.run("build other.rsm t.jsonl").expect(0);
    folder
}

fn contents(folder: &Folder) -> BTreeMap<String, Vec<u8>> {
    let names = folder.names().into_iter();
    // links that lead nowhere have no contents
    let read = |name: String| Some((name.clone(), std::fs::read(folder.path(&name)).ok()?));
    names.filter_map(read).collect()
}

/// Runs a command of the table, and expects that it is refused and changes nothing.
#[track_caller]
fn refused(folder: &Folder, command: &str, force: bool) {
    let before = contents(folder);
    let mut words: Vec<&str> = command.split(' ').collect();
    words.extend(force.then_some("--force"));
    let ran = folder.run(&words);
    assert!(matches!(ran.code, Some(2 | 4)), "{command}: {ran:?}");
    assert!(contents(folder) == before, "{command}: {ran:?}");
}

#[test]
fn every_output_option_is_in_the_table() {
    let listed: BTreeSet<_> = OUTPUTS
        .iter()
        .map(|(verb, option, ..)| ((*verb).to_owned(), (*option).to_owned()))
        .collect();
    assert_eq!(documented_outputs(&Folder::new()), listed);
}

#[cfg(unix)]
#[test]
fn no_output_replaces_an_existing_file() {
    use std::fs::hard_link;
    use std::os::unix::fs::symlink;

    for (verb, option, made, command) in &OUTPUTS {
        let folder = crowded();
        let can_force = command.starts_with("dedup")
            || matches!(
                *verb,
                "add" | "decontaminate" | "eval" | "explain" | "export" | "report" | "tune"
            );
        let at = |name: &str, corpus: &str| {
            let words = command.split(' ').map(|word| match word {
                "@" => name,
                "c" => corpus,
                word => word,
            });
            words.collect::<Vec<_>>().join(" ")
        };
        hard_link(folder.path("other.rsm"), folder.path("hard.rsm")).unwrap();
        symlink("other.rsm", folder.path("soft.rsm")).unwrap();
        hard_link(folder.path("c.jsonl"), folder.path("hard.jsonl")).unwrap();
        symlink("c.jsonl", folder.path("soft.jsonl")).unwrap();
        symlink("file", folder.path("link")).unwrap();
        symlink("nowhere", folder.path("dangling")).unwrap();
        symlink("empty", folder.path("linked")).unwrap();
        let held = resemblance::Store::open(folder.path("other.rsm")).unwrap();
        let forces = if can_force {
            &[false, true][..]
        } else {
            &[false]
        };
        for force in forces {
            let kept = [
                "other.rsm",
                "hard.rsm",
                "soft.rsm",
                "s.rsm",
                "c.jsonl",
                "./c.jsonl",
                "in/../c.jsonl",
                "hard.jsonl",
                "soft.jsonl",
                "link",
                "dangling",
                "linked",
                "t.jsonl",
            ];
            for name in kept {
                let reads_it =
                    !name.contains(".jsonl") || command.split(' ').any(|word| word == "c");
                let reads_it = reads_it && (name != "t.jsonl" || command.contains("t.jsonl"));
                if reads_it {
                    refused(&folder, &at(name, "c.jsonl"), *force);
                }
            }
            let is_read = command.split(' ').any(|word| word == "c");
            if is_read && *made != Made::Job {
                refused(&folder, &at("in/new", "in"), *force);
                refused(&folder, &at("in/c.jsonl", "in"), *force);
                refused(&folder, &at("./in/new.jsonl", "in"), *force);
            }
        }
        drop(held);
        refused(&folder, &at("file", "c.jsonl"), false);
        if !matches!(made, Made::Folder) {
            refused(&folder, &at("full", "c.jsonl"), false);
        }
        if matches!(made, Made::File | Made::Store) {
            refused(&folder, &at("empty", "c.jsonl"), can_force);
            refused(&folder, &at("full", "c.jsonl"), can_force);
        }
        if matches!(made, Made::Corpus | Made::Folder | Made::Job) {
            done(&folder, &at("empty", "c.jsonl"), false);
            assert!(
                std::fs::read_dir(folder.path("empty")).unwrap().count() > 0,
                "{verb} {option}"
            );
        }
        let _ = std::fs::remove_file(folder.path("b.rsm"));
        done(&folder, &at("new", "c.jsonl"), false);
        if matches!(made, Made::File | Made::Corpus) {
            done(&folder, &at("file", "c.jsonl"), true);
            assert_ne!(folder.read("file"), b"there\n", "{verb} {option}");
        }
        if *made == Made::Corpus {
            done(&folder, &at("full", "c.jsonl"), true);
            let names = folder.names();
            let left: Vec<_> = names
                .iter()
                .filter(|name| name.starts_with("full"))
                .collect();
            assert_eq!(left, ["full/c.jsonl"], "{verb} {option}");
        }
    }
}

/// Every output that is in the way is refused before the corpus is read, whose last document is bad, and before the
/// test sets are.
#[test]
fn outputs_are_refused_before_anything_is_read() {
    let folder = crowded();
    let bad = mixed() + "bad\n";
    folder.write("c.jsonl", &bad);
    folder.write("t.jsonl", &bad);
    for name in ["recall.svg", "precision.svg", "time-by-size.svg"] {
        folder.write(&format!("charts/{name}"), "old");
    }
    for (verb, option, made, command) in &OUTPUTS {
        if !command.contains(" c") {
            continue;
        }
        let name = match (made, *verb) {
            (Made::Folder, _) => "charts",
            (Made::Job, _) => "full",
            _ => "file",
        };
        let words = command.split(' ').map(|word| match word {
            "@" => name,
            "c" => "c.jsonl",
            word => word,
        });
        let words: Vec<&str> = words.collect();
        let weighed = ["--tf-idf", "--simhash", "64"];
        // Weights by rarity need a separate reading of the corpus.
        let can_weigh = ["build", "dedup", "eval", "report"].contains(verb)
            && *made != Made::Job
            && !["--rejected", "--review"].contains(option);
        let more = [&[][..], &weighed]
            .into_iter()
            .take(1 + usize::from(can_weigh));
        for more in more {
            let ran = folder.run(&[&words[..], more].concat());
            assert!(matches!(ran.code, Some(2 | 4)), "{verb} {option}: {ran:?}");
            assert!(ran.stderr.contains(name), "{verb} {option}: {ran:?}");
        }
    }
}

/// An output that cannot be made where it is to go is refused, and nothing changes: below a file, in a folder in which
/// nobody or not this user may write, and, unless it is written to as it is, in place of a named pipe.
#[cfg(target_os = "linux")]
#[test]
fn unwritable_places_are_refused_and_leave_nothing() {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    for (verb, option, made, command) in &OUTPUTS {
        let folder = crowded();
        std::fs::create_dir(folder.path("locked")).unwrap();
        set_permissions(folder.path("locked"), Permissions::from_mode(0o555)).unwrap();
        folder.pipe("pipe");
        let mut places = vec!["file/new", "/proc/resemblance-new"];
        // The superuser may write there.
        if std::fs::write(folder.path("locked/probe"), "").is_err() {
            places.push("locked/new");
        }
        if matches!(made, Made::Store | Made::Folder | Made::Job) {
            places.push("pipe");
        }
        for place in places {
            let words = command.split(' ').map(|word| match word {
                "@" => place,
                "c" => "c.jsonl",
                word => word,
            });
            let words: Vec<&str> = words.collect();
            let before = named_files(&folder);
            let ran = folder.run(&words);
            assert!(matches!(ran.code, Some(2 | 4)), "{verb} {option}: {ran:?}");
            // A store that is built there names the folder.
            let named = place.rsplit_once('/').map_or(place, |(above, _)| above);
            assert!(ran.stderr.contains(named), "{verb} {option}: {ran:?}");
            let is_unchanged = named_files(&folder) == before;
            assert!(is_unchanged, "{verb} {option}: {:?}", folder.names());
            assert_eq!(folder.count("s.rsm"), 7, "{verb} {option}: {ran:?}");
        }
    }
}

/// An output that fails when it is complete fails before any other gets its name, or the corpus is replaced.
#[cfg(target_os = "linux")]
#[test]
fn full_disks_leave_the_corpus_and_no_output() {
    for command in [
        "dedup c.jsonl --in-place --dropped /dev/full",
        "dedup c.jsonl --in-place --report /dev/full",
        "dedup c.jsonl --in-place --annotate /dev/full",
        "dedup c.jsonl --in-place --review /dev/full",
        "dedup c.jsonl -o kept.jsonl --rejected /dev/full",
        "dedup c.jsonl -o kept.jsonl --report /dev/full",
        "dedup c.jsonl -o kept --report out.tsv --dropped /dev/full",
        "decontaminate c.jsonl --against t.jsonl -o kept.jsonl --items /dev/full",
    ] {
        let folder = crowded();
        let before = named_files(&folder);
        let words: Vec<&str> = command.split(' ').collect();
        folder.run(&words).expect(4).says(&["no space left"]);
        assert!(
            named_files(&folder) == before,
            "{command}: {:?}",
            folder.names()
        );
    }
}

/// The names of all files, and the contents of those other than pipes and the store that a verb opens to write.
#[cfg(target_os = "linux")]
fn named_files(folder: &Folder) -> BTreeMap<String, Option<Vec<u8>>> {
    let names = folder.names().into_iter();
    let read = |name: String| {
        let path = folder.path(&name);
        let is_compared = path.is_file() && name != "s.rsm";
        (name, is_compared.then(|| std::fs::read(&path).unwrap()))
    };
    names.map(read).collect()
}

#[track_caller]
fn done(folder: &Folder, command: &str, force: bool) {
    let mut words: Vec<&str> = command.split(' ').collect();
    words.extend(force.then_some("--force"));
    folder.run(&words).expect(0);
}

/// The extensions of reports in every form, compressed or not.
#[cfg(target_os = "linux")]
const FORMS: [&str; 8] = [
    "tsv", "csv", "jsonl", "json", "tsv.gz", "csv.zst", "jsonl.xz", "json.bz2",
];

/// File names with bytes that have a meaning in some form, or are outside UTF-8.
#[cfg(target_os = "linux")]
fn odd_names() -> impl Iterator<Item = Vec<u8>> {
    let bytes = b"\\\\\\xF#7nta\n\t\r,\"' =\xff\xfe\xc3\xa9\xe2\x80\xae\x1b\x7f";
    let mut state = 1_u64;
    (0..20).map(move |number| {
        let mut name = vec![b'a' + number as u8];
        for _ in 0..6 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            name.push(bytes[(state >> 33) as usize % bytes.len()]);
        }
        name
    })
}

/// Keys of arbitrary bytes, which are names of files, appear in every form of report. `explain` and
/// the verbs that take a key accept them from there.
#[cfg(target_os = "linux")]
#[test]
fn keys_of_arbitrary_bytes_round_trip_through_every_form() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use crate::support::ran;

    let folder = Folder::new();
    folder.write("t/plain", text(999));
    let mut keys = BTreeSet::new();
    for (number, name) in (1000..).zip(odd_names()) {
        for end in ["", "-copy"] {
            let key = [b"t/", &name[..], end.as_bytes()].concat();
            std::fs::write(folder.path("").join(OsStr::from_bytes(&key)), text(number)).unwrap();
            keys.insert(key);
        }
    }
    let printed: BTreeSet<String> = keys
        .iter()
        .map(|key| resemblance::key_text(key).into_owned())
        .collect();
    let name = |key: &Vec<u8>| match std::str::from_utf8(key) {
        Ok(key) => key.to_owned(),
        Err(_) => key.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    let expected: BTreeSet<String> = keys.iter().map(name).collect();
    let parquet = cfg!(feature = "tables").then_some("parquet");
    let explained = FORMS.into_iter().chain(parquet).map(|form| {
        folder
            .run(&format!("dedup t --dry-run --report r.{form}"))
            .expect(0);
        let explain = format!("explain --pairs r.{form} --corpus t --format json --limit 99");
        folder.run(&explain).expect(0).stdout
    });
    let explained: BTreeSet<String> = explained.collect();
    assert_eq!(explained.len(), 1);
    let pairs: serde_json::Value = serde_json::from_str(explained.first().unwrap()).unwrap();
    // Keys have no escapes in JSON, which has its own.
    let named = |pair: &serde_json::Value| {
        ["a", "b"].map(|side| match &pair[side] {
            serde_json::Value::Null => pair[format!("{side}_hex")].as_str().unwrap().to_owned(),
            key => key.as_str().unwrap().to_owned(),
        })
    };
    let found: BTreeSet<String> = pairs.as_array().unwrap().iter().flat_map(named).collect();
    assert_eq!(found, expected);
    for (verb, form) in [("pairs", "csv"), ("clusters", "jsonl"), ("pairs", "json")] {
        let listed = folder
            .run(&[verb, "t", "--format", form, "--header"])
            .expect(0);
        folder.write("listed", listed.stdout);
        let explain = "explain --pairs listed --corpus t --format json --limit 99";
        let pairs: serde_json::Value =
            serde_json::from_str(&folder.run(explain).expect(0).stdout).unwrap();
        let found: BTreeSet<String> = pairs.as_array().unwrap().iter().flat_map(named).collect();
        assert_eq!(found, expected, "{verb} {form}");
    }
    folder.run("build s.rsm t").expect(0);
    for key in &printed {
        folder.run(&["get", "s.rsm", "--escaped", key]).expect(0);
    }
    for (number, key) in keys.iter().enumerate() {
        let removed = match number % 2 {
            0 => folder.run(&["remove", "s.rsm", "--escaped", &resemblance::key_text(key)]),
            _ => ran(folder
                .command("remove s.rsm")
                .arg(OsStr::from_bytes(key))
                .output()
                .unwrap()),
        };
        removed.expect(0);
    }
    assert_eq!(folder.count("s.rsm"), 1);
}

/// In every form, a stored document without a key differs from one whose key reads like its number, and the reader of
/// reports tells which it is.
#[test]
fn documents_without_keys_differ_from_their_numbers_in_every_form() {
    use resemblance::{Document, Store};

    let folder = Folder::new();
    folder.write("c.jsonl", line(r"\#1", &text(1)));
    folder.run("build s.rsm c.jsonl").expect(0);
    let store = Store::open(folder.path("s.rsm")).unwrap();
    let signature = store.sketch_text(&text(2)).unwrap();
    store.insert(Document::without_key(), &signature).unwrap();
    drop(store);
    let corpus = [line("of-key", &text(1)), line("of-number", &text(2))].concat();
    folder.write("more.jsonl", &corpus);
    folder.write("all.jsonl", corpus + &line(r"\#1", &text(1)));
    let parquet = cfg!(feature = "tables").then_some("parquet");
    for form in FORMS.into_iter().chain(parquet) {
        let report = format!("dedup more.jsonl --against s.rsm --dry-run --report r.{form}");
        folder.run(&report).expect(0);
        let explain = format!("explain --pairs r.{form} --corpus all.jsonl");
        let refused = folder.run(&explain).expect(2);
        refused.says(&[r"\#1 is a document without a key"]);
        let listed = folder
            .run(&format!(
                "explain --pairs r.{form} --corpus all.jsonl --limit 1"
            ))
            .expect(0);
        assert!(
            listed.stdout.contains(r"b: \\#1"),
            "{form}: {}",
            listed.stdout
        );
        let page = format!("report all.jsonl -o {form}.html --decisions r.{form}");
        folder.run(&page).expect(0);
        assert!(folder.read_text(&format!("{form}.html")).contains(r"\#1"));
    }
    let survivors = |name: &str| {
        folder
            .read_text(name)
            .lines()
            .skip(1)
            .map(|row| row.split(['\t', ',']).nth(1).unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    for name in ["r.tsv", "r.csv"] {
        assert_eq!(survivors(name), [r"\\#1", r"\#1"], "{name}");
    }
    assert!(
        folder
            .read_text("r.jsonl")
            .contains(r#""survivor_id":1,"survivor":null"#)
    );
}

/// The owner and the group of a replaced or copied file are kept, with its mode. Only an administrator can test it.
#[cfg(unix)]
#[test]
fn replaced_files_and_copies_keep_their_owner_and_group() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    folder.write("out.jsonl", mixed());
    folder.run("build s.rsm c.jsonl").expect(0);
    let mine = |name: &str| {
        let mode = std::fs::Permissions::from_mode(0o640);
        std::fs::set_permissions(folder.path(name), mode).unwrap();
        chown(folder.path(name), Some(12), Some(34)).is_ok()
    };
    if !mine("c.jsonl") || !mine("out.jsonl") || !mine("s.rsm") {
        return;
    }
    folder.run("dedup c.jsonl -o out.jsonl --force").expect(0);
    folder.run("dedup c.jsonl --in-place").expect(0);
    folder.run("backup s.rsm -o b.rsm").expect(0);
    folder.run("export s.rsm -o s.rss").expect(0);
    folder.run("repair s.rsm -o r.rsm").expect(0);
    for name in ["c.jsonl", "out.jsonl", "b.rsm", "s.rss", "r.rsm"] {
        let found = std::fs::metadata(folder.path(name)).unwrap();
        let owned = (found.uid(), found.gid(), found.mode() & 0o777);
        assert_eq!(owned, (12, 34, 0o640), "{name}");
    }
}

/// A line that another program appends to the corpus once it has been read to its end would be lost with it.
#[cfg(target_os = "linux")]
#[test]
fn a_corpus_that_grows_at_the_last_moment_is_not_replaced() {
    use std::io::{Read, Write};

    let folder = Folder::new();
    // Less than the buffer of an output, and more than that of a pipe: all is written when the corpus has been read.
    let number = 150_000 / line("100", &text(1)).len();
    let lines: String = (0..number)
        .map(|n| line(&n.to_string(), &text(1)))
        .collect();
    folder.write("c.jsonl", &lines);
    folder.pipe("pipe");
    let mut command = folder.command("dedup c.jsonl --in-place --dropped pipe");
    let child = command.spawn().unwrap();
    let mut pipe = std::fs::File::open(folder.path("pipe")).unwrap();
    pipe.read_exact(&mut [0]).unwrap();
    let late = line("late", &text(2));
    let corpus = std::fs::File::options()
        .append(true)
        .open(folder.path("c.jsonl"));
    corpus.unwrap().write_all(late.as_bytes()).unwrap();
    pipe.read_to_end(&mut Vec::new()).unwrap();
    let ran = crate::support::ran(child.wait_with_output().unwrap());
    ran.expect(4).says(&["the corpus was changed"]);
    assert_eq!(folder.read_text("c.jsonl"), lines + &late);
}
