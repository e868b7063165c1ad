//! Corpora on servers: the same documents as in local files, or an error that names the address; never fewer documents.

use std::process::Command;

use crate::object_server::ObjectServer;
use crate::support::{Folder, Ran, bzip2, distinct, gzip, line, mixed, ran, text, xz, zstd};

/// The tool, for which S3 is this server.
fn command(folder: &Folder, server: &ObjectServer, arguments: &[&str]) -> Command {
    let mut command = folder.command(arguments);
    for (name, _) in std::env::vars() {
        let name_lower = name.to_lowercase();
        if name.starts_with("AWS_") || name_lower.ends_with("_proxy") {
            command.env_remove(name);
        }
    }
    command
        .env("AWS_ENDPOINT_URL", &server.url)
        .env("AWS_ALLOW_HTTP", "true")
        .env("AWS_ACCESS_KEY_ID", "key")
        .env("AWS_SECRET_ACCESS_KEY", "secret")
        .env("AWS_REGION", "us-east-1");
    command
}

fn run(folder: &Folder, server: &ObjectServer, arguments: &[&str]) -> Ran {
    ran(command(folder, server, arguments).output().unwrap())
}

/// Puts files below `/b/crawl/` and into the folder `crawl`.
fn put(folder: &Folder, server: &ObjectServer, name: &str, bytes: &[u8]) {
    folder.write(&format!("crawl/{name}"), bytes);
    server.put(&format!("/b/crawl/{name}"), bytes);
}

#[test]
fn objects_below_a_prefix_are_the_files_of_a_folder() {
    let (folder, server) = (Folder::new(), ObjectServer::start());
    put(&folder, &server, "a.jsonl", mixed().as_bytes());
    put(
        &folder,
        &server,
        "b/1.jsonl.gz",
        &gzip(distinct(10..20).as_bytes()),
    );
    put(
        &folder,
        &server,
        "b/2.jsonl.zst",
        &zstd(distinct(15..25).as_bytes()),
    );
    put(
        &folder,
        &server,
        "b/3.jsonl.bz2",
        &bzip2(distinct(30..33).as_bytes()),
    );
    put(
        &folder,
        &server,
        "b/4.jsonl.xz",
        &xz(distinct(40..43).as_bytes()),
    );
    put(
        &folder,
        &server,
        "c d/ü.csv",
        format!("id,text\nx,{}\n", text(1)).as_bytes(),
    );
    put(&folder, &server, "e.txt", text(11).as_bytes());
    put(&folder, &server, "empty.jsonl", b"");
    put(&folder, &server, "f", distinct(50..53).as_bytes());
    put(
        &folder,
        &server,
        ".hidden.jsonl",
        distinct(60..63).as_bytes(),
    );
    // Keys that represent folders are not documents.
    server.put("/b/crawl/", "");
    server.put("/b/crawl/b/", "");
    server.put("/b/crawler/other.jsonl", distinct(90..99));
    let local = folder.run("dedup crawl -o local/").expect(0);
    let remote = run(
        &folder,
        &server,
        &["dedup", "s3://b/crawl/", "-o", "remote"],
    )
    .expect(0);
    assert_eq!(remote.stderr, local.stderr.replace("local/", "remote/"));
    let names = folder.names();
    let written = names.iter().filter(|name| name.starts_with("local/"));
    let written: Vec<_> = written.collect();
    // A file whose documents are all removed is empty, and a removed text does not exist.
    assert_eq!(written.len(), 8);
    for name in written {
        let other = name.replacen("local", "remote", 1);
        assert!(folder.read(name) == folder.read(&other), "{name}");
    }
    let of_remote = names.iter().filter(|name| name.starts_with("remote/"));
    assert_eq!(of_remote.count(), 8);
    let keys = |input: &str| {
        let ran = run(&folder, &server, &["clusters", input, "--include", "b/*"]).expect(0);
        ran.stdout
    };
    assert_eq!(keys("s3://b/crawl/").replace("s3://b/", ""), keys("crawl"));
}

#[test]
fn patterns_choose_among_objects() {
    let (folder, server) = (Folder::new(), ObjectServer::start());
    for number in 0..8 {
        let lines = distinct(number..number + 2);
        put(
            &folder,
            &server,
            &format!("{number}.jsonl"),
            lines.as_bytes(),
        );
        put(
            &folder,
            &server,
            &format!("deep/{number}.jsonl"),
            lines.as_bytes(),
        );
    }
    for pattern in ["crawl/[1-6].jsonl", "crawl/**/2.jsonl", "craw?/*/*.jsonl"] {
        let local = folder
            .run(&format!("dedup '{pattern}' -o l.jsonl --force"))
            .expect(0);
        let remote = format!("s3://b/{pattern}");
        let remote = run(
            &folder,
            &server,
            &["dedup", &remote, "-o", "r.jsonl", "--force"],
        );
        assert_eq!(remote.expect(0).stderr, local.stderr, "{pattern}");
        assert_eq!(folder.read_text("r.jsonl"), folder.read_text("l.jsonl"));
    }
    let none = run(&folder, &server, &["pairs", "s3://b/crawl/*.csv"]).expect(4);
    none.says(&["no object matches s3://b/crawl/*.csv"]);
}

#[test]
fn file_on_a_web_server_is_read() {
    let (folder, server) = (Folder::new(), ObjectServer::start());
    server.put("/data/c d.jsonl.gz", gzip(mixed().as_bytes()));
    folder.write("c d.jsonl.gz", gzip(mixed().as_bytes()));
    let local = folder.run("dedup 'c d.jsonl.gz' -o l.jsonl").expect(0);
    let url = format!("{}/data/c%20d.jsonl.gz?token=s3cret#top", server.url);
    let remote = run(&folder, &server, &["dedup", &url, "-o", "r.jsonl"]).expect(0);
    assert_eq!(remote.stderr, local.stderr);
    assert_eq!(folder.read_text("r.jsonl"), folder.read_text("l.jsonl"));
    let requests = server.requests();
    let asked =
        |request: &String| request.starts_with("GET /data/c%20d.jsonl.gz?token=s3cret HTTP");
    assert!(
        requests.len() >= 2 && requests.iter().all(asked),
        "{requests:?}"
    );
    // Keys have the whole address.
    server.put(
        "/n.jsonl",
        format!("{{\"text\": {:?}}}\n", text(1)).repeat(2),
    );
    let url = format!("{}/n.jsonl", server.url);
    let pairs = run(&folder, &server, &["pairs", &url]).expect(0);
    assert_eq!(pairs.stdout, format!("{url}:1\t{url}:2\t1.000000\n"));
    // No message shows the part after the question mark.
    let missing = format!("{}/gone.jsonl?token=s3cret", server.url);
    let missing = run(&folder, &server, &["pairs", &missing]).expect(4);
    let reported = format!("{}/gone.jsonl does not exist", server.url);
    assert!(missing.stderr.contains(&reported), "{}", missing.stderr);
    let account = server.url.replace("http://", "http://me:s3cret@");
    let forbidden = format!("{account}/x/forbidden/a.jsonl?token=s3cret");
    let forbidden = run(&folder, &server, &["pairs", &forbidden]).expect(4);
    assert!(!forbidden.stderr.contains("s3cret"), "{}", forbidden.stderr);
    forbidden.says(&["cannot read ", "/x/forbidden/a.jsonl", "403", "No, never"]);
}

#[test]
fn unreadable_remote_sources_are_reported() {
    let (folder, server) = (Folder::new(), ObjectServer::start());
    server.put("/b/crawl/a.jsonl", distinct(0..3));
    for (input, parts) in [
        (
            "s3://b/crawl",
            &["s3://b/crawl does not exist", "a slash at its end"][..],
        ),
        (
            "s3://b/forbidden/a",
            &["cannot read s3://b/forbidden/a", "403", "AccessDenied"],
        ),
        ("s3:///a", &["there is no bucket"]),
        (
            "http://example.org/a",
            &["http:// is for servers on this machine"],
        ),
        ("https://example.org/", &["there is no file name"]),
        (
            "gs://b/a",
            &["gs://b/a is neither a local file", "s3:// or https://"],
        ),
        ("hf://datasets/a", &["hf download"]),
    ] {
        run(&folder, &server, &["pairs", input])
            .expect(4)
            .says(parts);
    }
    let empty = run(&folder, &server, &["pairs", "s3://b/other/"]).expect(4);
    assert!(
        empty.stderr.contains("no file was found"),
        "{}",
        empty.stderr
    );
    for output in ["s3://b/out.jsonl", "https://example.org/out.jsonl"] {
        for force in [&[][..], &["--force"]] {
            let dedup = ["dedup", "s3://b/crawl/a.jsonl", "-o", output];
            let refused = run(&folder, &server, &[&dedup, force].concat()).expect(2);
            refused.says(&[output, "outputs are local files"]);
        }
        let build = run(&folder, &server, &["build", output, "s3://b/crawl/a.jsonl"]).expect(2);
        build.says(&[output, "outputs are local files"]);
    }
    let read: Vec<_> = server.requests();
    assert!(
        read.iter().all(|request| request.starts_with("GET ")),
        "{read:?}"
    );
    // If the environment has no key, the machine is asked for one.
    let mut keyless = command(&folder, &server, &["pairs", "s3://b/crawl/"]);
    keyless
        .env_remove("AWS_ACCESS_KEY_ID")
        .env_remove("AWS_SECRET_ACCESS_KEY")
        .env("AWS_METADATA_ENDPOINT", &server.url);
    ran(keyless.output().unwrap())
        .expect(4)
        .says(&["cannot read s3://b/", "AWS_ACCESS_KEY_ID is not set"]);
}

#[test]
fn broken_transfer_resumes_where_it_stopped() {
    let (folder, server) = (Folder::new(), ObjectServer::start());
    let lines = mixed() + &distinct(100..400);
    server.put("/b/c.jsonl", lines.clone());
    folder.write("c.jsonl", &lines);
    server.set(|behaviour| (behaviour.breaks, behaviour.break_after) = (5, 40_000));
    folder.run("dedup c.jsonl -o l.jsonl").expect(0);
    run(
        &folder,
        &server,
        &["dedup", "s3://b/c.jsonl", "-o", "r.jsonl"],
    )
    .expect(0);
    assert_eq!(folder.read_text("r.jsonl"), folder.read_text("l.jsonl"));
    let requests = server.requests();
    let continued = requests.iter().filter(|request| request.contains("bytes="));
    assert!(continued.count() >= 3, "{requests:?}");
}

#[test]
fn transfer_that_keeps_breaking_is_an_error() {
    let (folder, server) = (Folder::new(), ObjectServer::start());
    let lines = distinct(100..400);
    for (name, bytes) in [
        ("c.jsonl", lines.clone().into_bytes()),
        ("c.jsonl.gz", gzip(lines.as_bytes())),
    ] {
        server.put(&format!("/b/{name}"), bytes.clone());
        // Without tags, it is unknown whether the rest has the same version.
        for (has_no_tags, break_after) in [(true, 60_000), (false, 1_000)] {
            server.set(|behaviour| {
                behaviour.has_no_tags = has_no_tags;
                (behaviour.breaks, behaviour.break_after) = (usize::MAX, break_after);
            });
            let url = format!("{}/b/{name}", server.url);
            let broken = run(&folder, &server, &["dedup", &url, "-o", "out.jsonl"]).expect(4);
            let all = format!("of its {} bytes", bytes.len());
            broken.says(&[&format!("cannot read {url}: "), &all]);
            assert!(!folder.path("out.jsonl").exists());
        }
        server.set(|behaviour| behaviour.breaks = 0);
    }
    server.set(|behaviour| behaviour.has_no_lengths = true);
    let url = format!("{}/b/c.jsonl", server.url);
    run(&folder, &server, &["pairs", &url])
        .expect(4)
        .says(&[&url, "Content-Length"]);
}

#[test]
fn object_that_changes_between_two_reads_is_refused() {
    for (has_no_tags, has_no_times) in [(false, false), (true, false), (true, true)] {
        let (folder, server) = (Folder::new(), ObjectServer::start());
        server.set(|behaviour| {
            (behaviour.has_no_tags, behaviour.has_no_times) = (has_no_tags, has_no_times);
            // One request looks what it is, and the next one reads it.
            let changed = distinct(1..10).into_bytes();
            behaviour.changes.insert("/c.jsonl".into(), (2, changed));
        });
        server.put("/c.jsonl", distinct(0..9));
        let url = format!("{}/c.jsonl", server.url);
        let ran = run(&folder, &server, &["dedup", &url, "-o", "out.jsonl"]);
        if has_no_times {
            // If a server does not report versions, one reading is copied.
            ran.expect(0);
            assert_eq!(folder.read_text("out.jsonl"), distinct(0..9));
        } else {
            ran.expect(4)
                .says(&[&url, "was changed while it was being read"]);
            assert!(!folder.path("out.jsonl").exists());
        }
    }
}

#[test]
fn a_job_knows_the_versions_of_objects() {
    let (folder, server) = (Folder::new(), ObjectServer::start());
    server.put("/b/1.jsonl", distinct(0..9));
    server.put("/b/2.jsonl", mixed());
    let build = |store: &str| {
        run(
            &folder,
            &server,
            &["build", store, "s3://b/*.jsonl", "--job", "job"],
        )
    };
    build("1.rsm").expect(0);
    server.requests();
    let again = build("2.rsm").expect(0);
    assert!(
        again.stderr.contains("reusing 2 of 2 files"),
        "{}",
        again.stderr
    );
    let requests = server.requests();
    assert!(
        requests.iter().all(|request| request.contains("list-type")),
        "{requests:?}"
    );
    server.put("/b/2.jsonl", mixed() + &line("new", &text(9)));
    build("3.rsm")
        .expect(2)
        .says(&["an earlier version of s3://b/2.jsonl"]);
}

#[cfg(feature = "tables")]
#[test]
fn dedup_of_remote_tables_removes_rows_only() {
    let (folder, server) = (Folder::new(), ObjectServer::start());
    crate::tables::write_all(&folder);
    for name in ["c.parquet", "c.arrow", "c.arrows"] {
        server.put(&format!("/b/{name}"), folder.read(name));
        // If the name does not identify the format, the content does.
        server.put(&format!("/b/plain-{name}.bin"), folder.read(name));
        let dedup = |input: &str, output: &str| {
            let arguments = ["dedup", input, "-o", output, "--force"];
            run(&folder, &server, &arguments).expect(0).stderr
        };
        let (local, remote) = (format!("local-{name}"), format!("remote-{name}"));
        let said = dedup(name, &local);
        assert!(!said.contains("dropped 0"), "{said}");
        assert_eq!(dedup(&format!("s3://b/{name}"), &remote), said);
        assert!(folder.read(&remote) == folder.read(&local), "{name}");
        assert_eq!(dedup(&format!("{}/b/{name}", server.url), &remote), said);
        assert!(folder.read(&remote) == folder.read(&local), "{name}");
        if name != "c.arrows" {
            assert_eq!(dedup(&format!("s3://b/plain-{name}.bin"), &remote), said);
            assert!(folder.read(&remote) == folder.read(&local), "{name}");
        }
    }
    let requests = server.requests();
    let ranges = requests.iter().filter(|request| request.contains("bytes="));
    assert!(ranges.count() >= 3, "{requests:?}");
}

#[cfg(feature = "tables")]
#[test]
fn only_requested_columns_are_fetched() {
    use arrow_array::{ArrayRef, BinaryArray, RecordBatch, StringArray};
    use std::sync::Arc;

    let (folder, server) = (Folder::new(), ObjectServer::start());
    let mut state = 1_u64;
    let mut random = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as u8
    };
    let pictures: Vec<Vec<u8>> = (0..40)
        .map(|_| (0..600_000).map(|_| random()).collect())
        .collect();
    let pictures = BinaryArray::from_iter_values(pictures);
    let texts = (0..40).map(|number| text(number / 2)).collect::<Vec<_>>();
    let columns: [(&str, ArrayRef); 2] = [
        ("picture", Arc::new(pictures)),
        ("text", Arc::new(StringArray::from(texts))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let plain = parquet::basic::Compression::UNCOMPRESSED;
    crate::tables::write_parquet(&folder.path("p.parquet"), &batch, plain, 40);
    server.put("/b/p.parquet", folder.read("p.parquet"));
    let local = folder.run("pairs p.parquet").expect(0);
    let remote = run(&folder, &server, &["pairs", "s3://b/p.parquet"]).expect(0);
    let remote_rows = remote.stdout.replace("s3://b/", "");
    assert_eq!((remote_rows, remote.stderr), (local.stdout, local.stderr));
    // Of twelve ranges of 2 MiB, only those with texts and the footer are requested, after the
    // first bytes, which identify the format.
    let ranges: std::collections::BTreeSet<String> = server
        .requests()
        .iter()
        .filter_map(|request| Some(request.split_once("bytes=")?.1.to_owned()))
        .collect();
    assert!((1..=4).contains(&ranges.len()), "{ranges:?}");
}

#[cfg(feature = "tables")]
#[test]
fn unrangeable_or_changing_tables_are_reported() {
    let (folder, server) = (Folder::new(), ObjectServer::start());
    crate::tables::write_all(&folder);
    let bytes = folder.read("c.parquet");
    server.put("/c.parquet", bytes.clone());
    let url = format!("{}/c.parquet", server.url);
    let dedup = ["dedup", &url, "-o", "out.parquet"];
    server.set(|behaviour| behaviour.has_no_ranges = true);
    run(&folder, &server, &dedup).expect(4).says(&[
        "cannot read",
        &url,
        "server does not support",
        "download it",
    ]);
    server.set(|behaviour| {
        behaviour.has_no_ranges = false;
        (behaviour.breaks, behaviour.break_after) = (usize::MAX, 1_000);
    });
    run(&folder, &server, &dedup)
        .expect(4)
        .says(&["cannot read", &url, "bytes from "]);
    server.set(|behaviour| behaviour.breaks = 2);
    run(&folder, &server, &dedup).expect(0);
    std::fs::remove_file(folder.path("out.parquet")).unwrap();
    for has_no_tags in [false, true] {
        // Only the time of its change and the tag differ: the length is the same.
        let mut changed = bytes.clone();
        changed[10] ^= 1;
        server.put("/c.parquet", bytes.clone());
        server.set(|behaviour| {
            behaviour.has_no_tags = has_no_tags;
            behaviour.changes.insert("/c.parquet".into(), (2, changed));
        });
        let ran = run(&folder, &server, &dedup).expect(4);
        ran.says(&[&url, "was changed while it was being read"]);
        assert!(!folder.path("out.parquet").exists());
    }
}

#[test]
fn ctrl_c_ends_a_wait_for_a_server() {
    let folder = Folder::new();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/c.jsonl", silent.local_addr().unwrap());
    let mut child = folder.command(&["pairs", &url]).spawn().unwrap();
    let _connection = silent.accept().unwrap();
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(killed.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
