//! WARC files of every form, written by the standard, and damaged ones.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use encoding_rs::{Encoding, GB18030, KOI8_R, SHIFT_JIS, WINDOWS_1251, WINDOWS_1252};
use flate2::write::{DeflateEncoder, ZlibEncoder};

use super::*;
use crate::sample::{Random, trials};

/// A record as it is written, and the document that it becomes.
#[derive(Clone)]
struct BuiltRecord {
    bytes: Vec<u8>,
    key: String,
    text: String,
}

const DATE: &str = "2026-01-31T08:00:00Z";
const STAMP: u64 = 1_769_846_400;

fn record(kind: &str, uri: &str, content_type: &str, block: &[u8]) -> Vec<u8> {
    let head = format!(
        "WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {uri}\r\nWARC-Date: {DATE}\r\n\
         WARC-Record-ID: <urn:uuid:{uri}>\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
        block.len()
    );
    [head.as_bytes(), block, b"\r\n\r\n"].concat()
}

/// Returns a response with these fields of HTTP and this body.
fn response(uri: &str, fields: &str, body: &[u8]) -> Vec<u8> {
    let http = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
    let block = [http.as_bytes(), body].concat();
    record(
        "response",
        uri,
        "application/http; msgtype=response",
        &block,
    )
}

fn page(number: usize) -> BuiltRecord {
    let key = format!("http://example.com/{number}");
    let words: Vec<String> = (0..60)
        .map(|word| format!("w{}", word * number % 977))
        .collect();
    let text = words.join(" ");
    let html = format!("<html><p>{text}</p><script>x</script></html>");
    let bytes = response(
        &key,
        "Content-Type: text/html; charset=utf-8\r\n",
        html.as_bytes(),
    );
    BuiltRecord { bytes, key, text }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    compressed(Compression::Gzip, bytes)
}

fn zstd_frame(bytes: &[u8], dictionary: &[u8]) -> Vec<u8> {
    let mut encoder =
        zstd::stream::write::Encoder::with_dictionary(Vec::new(), 3, dictionary).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Returns a frame that holds a dictionary.
fn dictionary_frame(dictionary: &[u8]) -> Vec<u8> {
    let length = u32::try_from(dictionary.len()).unwrap().to_le_bytes();
    [b"\x5d\x2a\x4d\x18", &length[..], dictionary].concat()
}

/// A document as it is read, or the reason why it is bad.
#[derive(Debug, PartialEq)]
struct ReadPage {
    key: String,
    text: String,
    stamp: u64,
    place: serde_json::Value,
}

struct ReadCrawl {
    pages: Vec<ReadPage>,
    bad: Vec<String>,
    passed_over: BTreeMap<String, u64>,
}

fn read_crawl(path: &Path, max_bytes: u64) -> ReadCrawl {
    let field = |name: &str| Some(FieldPath::from_name(name));
    let settings = CorpusSettings {
        stamp_field: field("stamp"),
        payload_field: field("record"),
        max_line_bytes: max_bytes,
        ..CorpusSettings::default()
    };
    let mut reader = CorpusReader::open(&[path], settings).unwrap();
    let (mut pages, mut bad) = (Vec::new(), Vec::new());
    for entry in reader.by_ref() {
        match entry.unwrap().document {
            Ok(document) => pages.push(ReadPage {
                key: String::from_utf8(document.key.to_vec()).unwrap(),
                text: document.content.text().unwrap().to_owned(),
                stamp: document.stamp,
                place: serde_json::from_slice(&document.payload).unwrap(),
            }),
            Err(problem) => bad.push(problem.reason),
        }
    }
    let passed_over = reader.corpus().passed_over();
    ReadCrawl {
        pages,
        bad,
        passed_over,
    }
}

fn read_bytes(name: &str, bytes: &[u8]) -> ReadCrawl {
    let dir = tempfile::tempdir().unwrap();
    read_crawl(&write(dir.path(), name, bytes), 1 << 20)
}

#[test]
fn warc_of_every_form_has_the_same_pages() {
    let records: Vec<BuiltRecord> = (1..40).map(page).collect();
    let each = |form: &dyn Fn(&[u8]) -> Vec<u8>| -> Vec<u8> {
        records
            .iter()
            .flat_map(|record| form(&record.bytes))
            .collect()
    };
    let plain = each(&|bytes| bytes.to_vec());
    let dictionary = records[3].bytes.clone();
    let with_dictionary = each(&|bytes| zstd_frame(bytes, &dictionary));
    let packed = compressed(Compression::Zstd, &dictionary);
    let mut padded = each(&gzip);
    padded.extend([0; 512]);
    let files = [
        ("a.warc", plain.clone()),
        ("a.warc.gz", each(&gzip)),
        ("b.wet.gz", padded),
        ("a", plain.clone()),
        ("a.gz", each(&gzip)),
        ("whole.warc.gz", gzip(&plain)),
        ("a.warc.zst", each(&|bytes| zstd_frame(bytes, b""))),
        ("whole.warc.zst", compressed(Compression::Zstd, &plain)),
        (
            "b.warc.zst",
            [dictionary_frame(&dictionary), with_dictionary.clone()].concat(),
        ),
        (
            "c.warc.zst",
            [dictionary_frame(&packed), with_dictionary].concat(),
        ),
    ];
    let dir = tempfile::tempdir().unwrap();
    for (name, bytes) in &files {
        let path = write(dir.path(), name, bytes);
        for path in [path.as_path(), dir.path()] {
            let crawl = read_crawl(path, 1 << 20);
            assert_eq!(crawl.bad, Vec::<String>::new(), "{name}");
            assert_eq!(crawl.pages.len(), records.len(), "{name}");
            for (page, built) in crawl.pages.iter().zip(&records) {
                assert_eq!(
                    (&page.key, &page.text, page.stamp),
                    (&built.key, &built.text, STAMP)
                );
                check_place(&page.place, bytes, built, &dictionary, name);
            }
        }
        std::fs::remove_file(&path).unwrap();
    }
}

/// Checks that the place of a page leads back to its record.
fn check_place(
    place: &serde_json::Value,
    bytes: &[u8],
    built: &BuiltRecord,
    dictionary: &[u8],
    name: &str,
) {
    let number = |field: &str| {
        place
            .get(field)
            .map(|value| value.as_u64().unwrap() as usize)
    };
    let offset = number("offset").unwrap();
    let stored = match number("length") {
        Some(length) => &bytes[offset..offset + length],
        None => &bytes[offset..],
    };
    assert!(place["file"].as_str().unwrap().ends_with(name));
    let mut text = Vec::new();
    if name.ends_with(".gz") {
        flate2::read::GzDecoder::new(stored)
            .read_to_end(&mut text)
            .unwrap();
    } else if name.ends_with(".zst") {
        let uses_dictionary = bytes.starts_with(b"\x5d\x2a\x4d\x18");
        let dictionary = if uses_dictionary { dictionary } else { b"" };
        let decoder = zstd::stream::read::Decoder::with_dictionary(stored, dictionary).unwrap();
        decoder.single_frame().read_to_end(&mut text).unwrap();
    } else {
        text.extend_from_slice(stored);
    }
    let within = number("within").unwrap_or(0);
    match number("length") {
        Some(_) => assert_eq!(text, built.bytes, "{name}"),
        None => assert!(text[within..].starts_with(&built.bytes), "{name}"),
    }
}

#[test]
fn warc_codings_of_http_are_undone() {
    let html = "<p>one &amp; two</p>".repeat(300).into_bytes();
    let expected = vec!["one & two"; 300].join("\n");
    let mut zlib = ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    zlib.write_all(&html).unwrap();
    let mut raw = DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    raw.write_all(&html).unwrap();
    // One block of Brotli that is not compressed, and the empty last one.
    let start = u32::try_from(html.len() - 1).unwrap() << 4 | 1 << 20;
    let brotli = [&start.to_le_bytes()[..3], &html, b"\x03"].concat();
    let chunked = |bytes: &[u8]| {
        let chunks = bytes.chunks(1000).map(|chunk| {
            let length = format!("{:X};name=value\r\n", chunk.len());
            [length.as_bytes(), chunk, b"\r\n"].concat()
        });
        [chunks.collect::<Vec<_>>().concat(), b"0\r\n\r\n".to_vec()].concat()
    };
    let gzip_twice = gzip(&gzip(&html));
    let cases = [
        ("", html.clone()),
        ("Content-Encoding: gzip\r\n", gzip(&html)),
        (
            "Content-Encoding: x-gzip\r\n",
            [gzip(&html), b"trailer".to_vec()].concat(),
        ),
        (
            "content-encoding: GZIP\r\n",
            [gzip(&html[..99]), gzip(&html[99..])].concat(),
        ),
        ("Content-Encoding: deflate\r\n", zlib.finish().unwrap()),
        ("Content-Encoding: deflate\r\n", raw.finish().unwrap()),
        ("Content-Encoding: br\r\n", brotli.clone()),
        (
            "Content-Encoding: zstd\r\n",
            compressed(Compression::Zstd, &html),
        ),
        ("Content-Encoding: gzip, gzip\r\n", gzip_twice),
        ("Content-Encoding: br, gzip\r\n", gzip(&brotli)),
        ("Transfer-Encoding: chunked\r\n", chunked(&html)),
        (
            "Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
            chunked(&gzip(&html)),
        ),
        (
            "Transfer-Encoding: gzip, chunked\r\n",
            chunked(&gzip(&html)),
        ),
        // The crawler has decoded it, and kept the fields.
        (
            "Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
            html.clone(),
        ),
    ];
    for (fields, body) in &cases {
        let fields = format!("Content-Type: text/html\r\n{fields}");
        let crawl = read_bytes("a.warc.gz", &gzip(&response("u", &fields, body)));
        assert_eq!(crawl.bad, Vec::<String>::new(), "{fields}");
        assert_eq!(crawl.pages[0].text, expected, "{fields}");
    }
    let fields = "Content-Type: text/html\r\nContent-Encoding: gzip\r\n";
    let packed = gzip(&html);
    let cut = response("u", fields, &packed[..packed.len() - 9]);
    let crawl = read_bytes("a.warc", &cut);
    assert!(
        crawl.bad[0].contains("its body cannot be decoded (gzip)"),
        "{:?}",
        crawl.bad
    );
    let split = b"WARC/1.1\r\n".len();
    let said = [&cut[..split], b"WARC-Truncated: length\r\n", &cut[split..]].concat();
    let crawl = read_bytes("a.warc", &said);
    assert!(
        crawl.pages[0].text.starts_with("one & two\none"),
        "{:?}",
        crawl.bad
    );
    let other = response(
        "u",
        "Content-Type: text/html\r\nContent-Encoding: compress\r\n",
        b"x",
    );
    assert!(read_bytes("a.warc", &other).bad[0].contains("not supported"));
}

#[test]
fn warc_charsets_are_decoded() {
    const RUSSIAN: &str = "Все счастливые семьи похожи друг на друга, каждая несчастливая семья несчастлива по-своему.";
    const JAPANESE: &str = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。";
    const CHINESE: &str =
        "孔乙己是站着喝酒而穿长衫的唯一的人。他身材很高大；青白脸色，皱纹间时常夹些伤痕。";
    const FRENCH: &str = "Là où l'été brûle, ça coûte 5 € à l’œil.";
    let encoded = |encoding: &'static Encoding, text: &str| encoding.encode(text).0.into_owned();
    let utf16 = |text: &str, to_bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
        let units = std::iter::once(0xfeff).chain(text.encode_utf16());
        units.flat_map(to_bytes).collect()
    };
    let meta = |charset: &str, text: &str| {
        format!(
            "<!-- <meta charset=utf-16> --><META http-equiv=Content-Type content='text/html; charset={charset}'>{text}"
        )
    };
    let short_meta =
        |charset: &str, text: &str| format!("<head><meta charset=\"{charset}\"/>{text}");
    // The fields of HTTP, the body, and the text.
    let cases = [
        (
            "text/html; charset=windows-1252",
            encoded(WINDOWS_1252, FRENCH),
            FRENCH,
        ),
        (
            "text/html;charset=\"ISO-8859-1\"",
            encoded(WINDOWS_1252, FRENCH),
            FRENCH,
        ),
        (
            "text/html; charset=Shift_JIS",
            encoded(SHIFT_JIS, JAPANESE),
            JAPANESE,
        ),
        (
            "text/plain; charset=gb18030",
            encoded(GB18030, CHINESE),
            CHINESE,
        ),
        (
            "text/html",
            encoded(KOI8_R, &meta("koi8-r", RUSSIAN)),
            RUSSIAN,
        ),
        (
            "text/html",
            encoded(GB18030, &short_meta("gb2312", CHINESE)),
            CHINESE,
        ),
        (
            "text/html",
            short_meta("utf-16", FRENCH).into_bytes(),
            FRENCH,
        ),
        (
            "text/html; charset=no-such",
            encoded(KOI8_R, &short_meta("koi8-r", RUSSIAN)),
            RUSSIAN,
        ),
        (
            "text/html; charset=koi8-r",
            encoded(KOI8_R, &short_meta("utf-8", RUSSIAN)),
            RUSSIAN,
        ),
        ("text/html", utf16(CHINESE, u16::to_le_bytes), CHINESE),
        (
            "text/html; charset=utf-16",
            utf16(FRENCH, u16::to_be_bytes),
            FRENCH,
        ),
        (
            "text/plain; charset=utf-8",
            utf16(RUSSIAN, u16::to_le_bytes),
            RUSSIAN,
        ),
        (
            "text/plain",
            [b"\xef\xbb\xbf", FRENCH.as_bytes()].concat(),
            FRENCH,
        ),
        ("application/xhtml+xml", FRENCH.as_bytes().to_vec(), FRENCH),
        ("text/html", encoded(WINDOWS_1251, RUSSIAN), RUSSIAN),
        ("text/html", encoded(SHIFT_JIS, JAPANESE), JAPANESE),
        (
            "text/html",
            encoded(encoding_rs::ISO_2022_JP, JAPANESE),
            JAPANESE,
        ),
        ("text/html", encoded(GB18030, CHINESE), CHINESE),
    ];
    for (media, body, text) in &cases {
        let crawl = read_bytes(
            "a.warc",
            &response("u", &format!("Content-Type: {media}\r\n"), body),
        );
        assert_eq!(crawl.pages[0].text, *text, "{media}");
    }
    let plain = record("conversion", "u", "text/plain", "a <b>\n é".as_bytes());
    assert_eq!(read_bytes("a.wet", &plain).pages[0].text, "a <b>\n é");
}

#[test]
fn warc_records_without_a_page_are_counted() {
    let status = |line: &str| {
        let block = format!("HTTP/1.1 {line}\r\nContent-Type: text/html\r\n\r\n<p>a");
        record(
            "response",
            "u",
            "application/http;msgtype=response",
            block.as_bytes(),
        )
    };
    let bytes = [
        record(
            "warcinfo",
            "u",
            "application/warc-fields",
            b"software: x\r\n",
        ),
        record(
            "request",
            "u",
            "application/http; msgtype=request",
            b"GET / HTTP/1.1\r\n\r\n",
        ),
        record("metadata", "u", "application/warc-fields", b""),
        record(
            "revisit",
            "u",
            "application/http; msgtype=response",
            b"HTTP/1.1 200 OK\r\n\r\n",
        ),
        record("response", "dns:a", "text/dns", b"1"),
        status("404 Not Found"),
        status("404"),
        status("301 Moved"),
        response("u", "Content-Type: image/png\r\n", b"\x89PNG"),
        response("u", "", b"a"),
        record("conversion", "u", "application/pdf", b"%PDF"),
        response("<http://a.b/>", "Content-Type: text/html\r\n", b"a"),
    ]
    .concat();
    let crawl = read_bytes("a.warc", &bytes);
    assert_eq!(crawl.bad, Vec::<String>::new());
    assert_eq!(crawl.pages.len(), 1);
    assert_eq!(crawl.pages[0].key, "http://a.b/");
    let counts: Vec<String> = crawl
        .passed_over
        .iter()
        .map(|(kind, n)| format!("{kind} {n}"))
        .collect();
    assert_eq!(
        counts,
        [
            "application/pdf 1",
            "image/png 1",
            "metadata 1",
            "no declared type 1",
            "request 1",
            "response of type text/dns 1",
            "response with status 301 1",
            "response with status 404 2",
            "revisit 1",
            "warcinfo 1",
        ]
    );
}

/// Returns the keys of the pages and the reasons of bad records.
fn keys_and_reasons(name: &str, bytes: &[u8]) -> (Vec<String>, String) {
    let crawl = read_bytes(name, bytes);
    let keys = crawl.pages.into_iter().map(|page| {
        let (_, number) = page.key.rsplit_once('/').unwrap();
        number.to_owned()
    });
    (keys.collect(), crawl.bad.join("\n"))
}

#[test]
fn damaged_warc_records_are_named_and_the_next_ones_found() {
    let [a, b, c] = [1, 2, 3].map(|number| page(number).bytes);
    let [za, zb, zc] = [&a, &b, &c].map(|record| gzip(record));
    let with_length = |length: &str| {
        let text = String::from_utf8(b.clone()).unwrap();
        let (before, rest) = text.split_once("Content-Length: ").unwrap();
        let (_, after) = rest.split_once("\r\n").unwrap();
        format!("{before}Content-Length: {length}\r\n{after}").into_bytes()
    };
    let half = |bytes: &[u8]| bytes[..bytes.len() / 2].to_vec();
    let mut flipped = zb.clone();
    flipped[zb.len() / 2] ^= 0x55;
    let mut wrong_sum = zb.clone();
    wrong_sum[zb.len() - 6] ^= 1;
    let n = a.len();
    let m = za.len();
    let garbage = b"no record\r\n at all".to_vec();
    let no_end = |at: usize| format!("the record at byte {at}: it declares");
    // The name, the bytes, the pages that are found, and the reason.
    let cases: Vec<(&str, Vec<u8>, &str, String)> = vec![
        (
            "a.warc",
            [&*a, &half(&b)].concat(),
            "1",
            format!("the record at byte {n}: it ends after"),
        ),
        (
            "a.warc",
            [&*a, &b[..60]].concat(),
            "1",
            format!("the record at byte {n}: its head has no end"),
        ),
        ("a.warc", [&*a, &half(&b), &c].concat(), "1 3", no_end(n)),
        (
            "a.warc",
            [&*a, &with_length("5"), &c].concat(),
            "1 3",
            no_end(n),
        ),
        (
            "a.warc",
            [&*a, &with_length("1234"), &c].concat(),
            "1 3",
            format!("the record at byte {n}: it ends after"),
        ),
        (
            "a.warc",
            [&*a, &with_length("10000000000"), &c].concat(),
            "1 3",
            no_end(n),
        ),
        (
            "a.warc",
            [&*a, &with_length("-1"), &c].concat(),
            "1 3",
            "Content-Length is missing".into(),
        ),
        (
            "a.warc",
            [&*a, &*garbage, &c].concat(),
            "1 3",
            format!("the record at byte {n}: it does not begin"),
        ),
        (
            "a.warc",
            [&*garbage, b"\r\n", &c].concat(),
            "3",
            "the record at byte 0: it does not begin".into(),
        ),
        (
            "a.warc",
            garbage.clone(),
            "",
            "the record at byte 0: it does not begin".into(),
        ),
        (
            "a.warc.gz",
            [&*za, &half(&zb)].concat(),
            "1",
            format!("the gzip member at byte {m} is damaged or cut off"),
        ),
        (
            "a.warc.gz",
            [&*za, &half(&zb), &zc].concat(),
            "1 3",
            format!("the gzip member at byte {m} is damaged"),
        ),
        (
            "a.warc.gz",
            [&*za, &flipped, &zc].concat(),
            "1 3",
            format!("byte {m}"),
        ),
        (
            "a.warc.gz",
            [&*za, &wrong_sum, &zc].concat(),
            "1 3",
            format!("the gzip member at byte {m} is damaged"),
        ),
        (
            "a.warc.gz",
            [&*za, &*garbage, &zc].concat(),
            "1 3",
            format!("bytes other than a gzip member at byte {m}"),
        ),
        (
            "a.warc.gz",
            [&*za, &gzip(&garbage), &zc].concat(),
            "1 3",
            format!("the record at byte {m}: it does not begin"),
        ),
        (
            "a.warc.gz",
            [&*za, &gzip(&with_length("5")), &zc].concat(),
            "1 3",
            no_end(m),
        ),
        (
            "a.warc.gz",
            [&*za, &gzip(&with_length("10000000000")), &zc].concat(),
            "1 3",
            no_end(m),
        ),
        (
            "a.warc.gz",
            [&*za, &gzip(&[&*with_length("5"), &c].concat())].concat(),
            "1 3",
            no_end(m),
        ),
        (
            "a.warc.gz",
            gzip(&[&*a, &half(&b), &c].concat()),
            "1 3",
            format!("at byte 0 (byte {n} of that member)"),
        ),
    ];
    for (name, bytes, expected, reason) in cases {
        let (keys, reasons) = keys_and_reasons(name, &bytes);
        assert_eq!(keys.join(" "), expected, "{name} {reason}: {reasons}");
        assert!(reasons.contains(&reason), "{reasons}, expected {reason}");
        assert!(!reasons.contains('\n'), "{reasons}");
    }
}

#[test]
fn warc_bombs_stay_within_the_limit() {
    let zeros = vec![b' '; 8 << 20];
    let fields = "Content-Type: text/html\r\nContent-Encoding: gzip\r\n";
    let bomb = response("u", fields, &gzip(&zeros));
    let last = page(1).bytes;
    let large = response("u", "Content-Type: text/html\r\n", &zeros);
    for bytes in [
        [gzip(&bomb), gzip(&last)].concat(),
        [gzip(&large), gzip(&last)].concat(),
        [&*large, &last].concat(),
        gzip(&[&*large, &last].concat()),
    ] {
        let name = if bytes.starts_with(b"WARC") {
            "a.warc"
        } else {
            "a.warc.gz"
        };
        let crawl = read_bytes(name, &bytes);
        assert_eq!(crawl.pages.len(), 1);
        assert_eq!(crawl.bad.len(), 1);
        assert!(crawl.bad[0].contains("--max-line"), "{:?}", crawl.bad);
    }
    // Records in a page that is too long are not read in place of it.
    let inner = [b"\r\n", &*last].concat().repeat(4000);
    let outer = response("u", "Content-Type: text/plain\r\n", &inner);
    let crawl = read_bytes("a.warc", &[&*outer, &page(2).bytes].concat());
    assert_eq!(crawl.pages.len(), 1);
    assert_eq!(crawl.pages[0].key, "http://example.com/2");
}

/// Damages some bytes of a record.
fn damage(stored: &mut Vec<u8>, random: &mut Random) {
    if stored.is_empty() {
        return;
    }
    let at = random.index(stored.len());
    let until = at + random.index((stored.len() - at).min(80));
    match random.index(6) {
        0 => stored[at] ^= 1 << random.below(8),
        1 => drop(stored.drain(at..until)),
        2 => stored.truncate(at.max(1)),
        3 => stored[at..until].fill(0),
        4 => {
            let inserted: Vec<u8> = (0..random.below(60))
                .map(|_| random.below(256) as u8)
                .collect();
            stored.splice(at..at, inserted);
        }
        _ => {
            let digits = (0..stored.len()).filter(|index| stored[*index].is_ascii_digit());
            let digits: Vec<usize> = digits.collect();
            if !digits.is_empty() {
                stored[random.pick(&digits)] = b'0' + random.below(10) as u8;
            }
        }
    }
}

/// Returns each page and a request before it, as the file with this name stores them.
fn stored_records(name: &str, pages: &[BuiltRecord], dictionary: &[u8]) -> Vec<Vec<u8>> {
    let both = pages.iter().flat_map(|page| {
        let uri = format!("<{}>", page.key);
        let request = record("request", &uri, "application/http; msgtype=request", b"x");
        [request, page.bytes.clone()]
    });
    both.map(|bytes| match name {
        "a.warc" => bytes,
        "a.warc.gz" => gzip(&bytes),
        _ => zstd_frame(&bytes, dictionary),
    })
    .collect()
}

/// Damages 500 files, or 10,000 with `RESEMBLANCE_TESTS=all`.
#[test]
fn intact_records_of_a_damaged_warc_are_found_and_copied() {
    let pages: Vec<BuiltRecord> = (1..8).map(page).collect();
    let dictionary = pages[3].bytes.clone();
    let forms = [
        ("a.warc", &b""[..]),
        ("a.warc.gz", b""),
        ("a.warc.zst", b""),
        ("b.warc.zst", &dictionary),
    ]
    .map(|(name, dictionary)| {
        let start = match dictionary {
            b"" => Vec::new(),
            _ => dictionary_frame(dictionary),
        };
        (name, start, stored_records(name, &pages, dictionary))
    });
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random(17);
    for mutant in 0..trials(500, 10_000) {
        let (name, start, intact) = &forms[mutant % forms.len()];
        let mut stored = intact.clone();
        for _ in 0..=random.below(2) {
            // The first bytes of a file show how it is compressed.
            let at = 1 + random.index(stored.len() - 1);
            damage(&mut stored[at], &mut random);
        }
        let bytes = [start.clone(), stored.concat()].concat();
        crate::fuzzing::warc(&bytes);
        let path = write(dir.path(), name, &bytes);
        let crawl = read_crawl(&path, 1 << 20);
        let found: BTreeSet<(&str, &str)> = crawl
            .pages
            .iter()
            .map(|page| (&*page.key, &*page.text))
            .collect();
        let (all, _) = copy(&path, true, |_| PageFate::Copied);
        let is_left_out = |key: &str| key.ends_with(['1', '3', '5', '7']);
        let (some, _) = copy(&path, true, |key| match is_left_out(key) {
            true => PageFate::LeftOut,
            false => PageFate::Copied,
        });
        let is_in = |copy: &[u8], record: &[u8]| memchr::memmem::find(copy, record).is_some();
        for (number, record) in intact.iter().enumerate() {
            if stored[number] != *record {
                continue;
            }
            let page = &pages[number / 2];
            let place = format!(
                "mutant {mutant} of {name}, record {number}: {:?}",
                crawl.bad
            );
            assert!(is_in(&all, record), "{place}");
            if number % 2 == 1 {
                assert!(found.contains(&(&*page.key, &*page.text)), "{place}");
                assert_eq!(is_in(&some, record), !is_left_out(&page.key), "{place}");
            }
        }
    }
}

/// Adds a field to the head of a record.
fn with_field(record: &[u8], field: &str) -> Vec<u8> {
    let split = b"WARC/1.1\r\n".len();
    [
        &record[..split],
        field.as_bytes(),
        b"\r\n",
        &record[split..],
    ]
    .concat()
}

/// Copies a file without its bad records. `fate` gets the key of each page.
fn copy(
    path: &Path,
    takes_others: bool,
    fate: impl Fn(&str) -> PageFate<'static>,
) -> (Vec<u8>, ArchiveCounts) {
    let (corpus, mut bytes) = (corpus(&[path]), Vec::new());
    let mut archive = ArchiveCopy::new(takes_others);
    for record in CorpusRecords::new(Arc::clone(&corpus), Arc::default()).with_whole_tables() {
        let record = record.unwrap();
        if record.problem.is_some() {
            continue;
        }
        let fate = match corpus.parse(&record) {
            Ok(page) if record.documents() > 0 => fate(std::str::from_utf8(&page.key).unwrap()),
            _ => PageFate::LeftOut,
        };
        archive.copy(&record, fate, &mut bytes).unwrap();
    }
    archive.end_file(&mut bytes).unwrap();
    (bytes, archive.counts)
}

/// A record, and whether it belongs to the second page of the crawl, or to none.
type CrawlRecord = (Vec<u8>, Option<bool>);

/// The records of a crawl, and whether each belongs to the second page, or to none.
fn crawl_with_companions() -> Vec<CrawlRecord> {
    let other = |kind: &str, uri: &str, field: &str| {
        let record = record(kind, uri, "application/http", b"x");
        with_field(&record, field)
    };
    let [a, b, c] = [1, 2, 3].map(|number| page(number).bytes);
    let beside_b = "WARC-Concurrent-To: <urn:uuid:http://example.com/2>";
    vec![
        (
            record("warcinfo", "i", "application/warc-fields", b"x"),
            None,
        ),
        (
            other("request", "<http://example.com/1>", "X: y"),
            Some(false),
        ),
        (a, Some(false)),
        // Before the page, named by it as wget does, and naming it as others do.
        (
            other("request", "<http://example.com/2>", "X: y"),
            Some(true),
        ),
        (other("request", "r1", "X: y"), Some(true)),
        (other("request", "r2", beside_b), Some(true)),
        (
            other(
                "request",
                "r3",
                "WARC-Concurrent-To: <urn:uuid:http://example.com/3>",
            ),
            Some(false),
        ),
        (
            with_field(
                &b,
                "WARC-Concurrent-To: <urn:uuid:r1>\r\nWARC-Concurrent-To: <urn:uuid:r4>",
            ),
            Some(true),
        ),
        (other("request", "r4", "X: y"), Some(true)),
        (other("metadata", "m", beside_b), Some(true)),
        (
            other(
                "continuation",
                "s",
                "WARC-Segment-Origin-ID: <urn:uuid:http://example.com/2>",
            ),
            Some(true),
        ),
        (c, Some(false)),
        (
            other(
                "revisit",
                "v1",
                "WARC-Refers-To: <urn:uuid:http://example.com/2>",
            ),
            Some(true),
        ),
        (
            other(
                "revisit",
                "v2",
                "WARC-Refers-To: <urn:uuid:http://example.com/1>",
            ),
            Some(false),
        ),
        (other("resource", "image", "X: y"), None),
    ]
}

#[test]
fn warc_copies_lack_left_out_pages_and_what_belongs_to_them() {
    let records = crawl_with_companions();
    let dictionary = page(3).bytes;
    type Form<'a> = &'a dyn Fn(&[u8]) -> Vec<u8>;
    let with_dictionary = |bytes: &[u8]| zstd_frame(bytes, &dictionary);
    let without = |bytes: &[u8]| zstd_frame(bytes, b"");
    let forms: [(&str, Vec<u8>, Form<'_>); 4] = [
        ("a.warc", Vec::new(), &<[u8]>::to_vec),
        ("a.warc.gz", Vec::new(), &gzip),
        ("a.warc.zst", Vec::new(), &without),
        (
            "b.warc.zst",
            dictionary_frame(&dictionary),
            &with_dictionary,
        ),
    ];
    let dir = tempfile::tempdir().unwrap();
    let is_second = |key: &str| key.ends_with("/2");
    for (name, start, form) in forms {
        let stored = |is_wanted: &dyn Fn(&CrawlRecord) -> bool| -> Vec<u8> {
            let wanted = records.iter().filter(|record| is_wanted(record));
            let members = wanted.flat_map(|(bytes, _)| form(bytes));
            start.iter().copied().chain(members).collect()
        };
        let path = write(dir.path(), name, &stored(&|_| true));
        let fate = |leaves_second: bool| {
            move |key: &str| match is_second(key) == leaves_second {
                true => PageFate::LeftOut,
                false => PageFate::Copied,
            }
        };
        let (kept, counts) = copy(&path, true, fate(true));
        // A request that waits for a later page is written before that page.
        let expected = stored(&|(_, of_second)| *of_second != Some(true));
        assert!(kept == expected, "{name}");
        assert_eq!((counts.others, counts.left_out), (5, 7), "{name}");
        let (dropped, _) = copy(&path, false, fate(false));
        let is_info = |bytes: &[u8]| memchr::memmem::find(bytes, b"warcinfo").is_some();
        let expected = stored(&|(bytes, of_second)| *of_second == Some(true) || is_info(bytes));
        assert!(dropped == expected, "{name}");
    }
    // Records that share a member get their own.
    let all: Vec<u8> = records
        .iter()
        .flat_map(|(bytes, _)| bytes.clone())
        .collect();
    let path = write(dir.path(), "whole.warc.gz", &gzip(&all));
    let (bytes, _) = copy(&path, true, |_| PageFate::Copied);
    let mut text = Vec::new();
    flate2::read::MultiGzDecoder::new(&*bytes)
        .read_to_end(&mut text)
        .unwrap();
    // The request of the third page has waited for it.
    assert_eq!(text.len(), all.len());
    let is_there = |record: &[u8]| memchr::memmem::find(&text, record).is_some();
    assert!(records.iter().all(|(bytes, _)| is_there(bytes)));
}

#[test]
fn revisit_records_refer_to_survivors() {
    let digest = |uri: &str, digest: &str| {
        let html = response(uri, "Content-Type: text/html\r\nETag: x\r\n", b"<p>one two");
        with_field(&html, &format!("WARC-Payload-Digest: {digest}"))
    };
    let pages = [
        digest("u:1", "sha1:A"),
        digest("u:2", "SHA1:a"),
        digest("u:3", "sha1:B"),
    ];
    let dir = tempfile::tempdir().unwrap();
    let dictionary = pages[0].clone();
    let frames: Vec<u8> = pages
        .iter()
        .flat_map(|page| zstd_frame(page, &dictionary))
        .collect();
    let path = write(
        dir.path(),
        "a.warc.zst",
        &[dictionary_frame(&dictionary), frames].concat(),
    );
    let first = CorpusRecords::new(corpus(&[&path]), Arc::default())
        .next()
        .unwrap();
    let target: &'static _ = Box::leak(Box::new(RevisitTarget::of(&first.unwrap()).unwrap()));
    let (bytes, counts) = copy(&path, true, |key| match key {
        "u:1" => PageFate::Copied,
        _ => PageFate::Replaced(Some(target)),
    });
    assert_eq!(
        (counts.same_payload, counts.near, counts.unreplaced),
        (1, 1, 0)
    );
    let copied = write(dir.path(), "copy.warc.zst", &bytes);
    let crawl = read_crawl(&copied, 1 << 20);
    assert_eq!((crawl.pages.len(), crawl.passed_over["revisit"]), (1, 2));
    assert_eq!(crawl.bad, Vec::<String>::new());
    let (again, _) = copy(&path, true, |key| match key {
        "u:1" => PageFate::Copied,
        _ => PageFate::Replaced(Some(target)),
    });
    assert_eq!(again, bytes);
    let records = CorpusRecords::new(corpus(&[&copied]), Arc::default()).with_whole_tables();
    let heads: Vec<String> = records
        .map(|record| String::from_utf8(record.unwrap().bytes.to_vec()).unwrap())
        .collect();
    let has = |head: &str, line: &str| assert!(head.contains(line), "{line} in {head}");
    for (head, own) in [(&heads[1], "u:2"), (&heads[2], "u:3")] {
        has(
            head,
            "WARC-Refers-To: <urn:uuid:u:1>\r\nWARC-Refers-To-Target-URI: u:1\r\n",
        );
        has(head, &format!("WARC-Refers-To-Date: {DATE}\r\n"));
        has(
            head,
            &format!("WARC-Target-URI: {own}\r\nWARC-Date: {DATE}\r\n"),
        );
        has(head, &format!("WARC-Concurrent-To: <urn:uuid:{own}>\r\n"));
    }
    has(
        &heads[1],
        "identical-payload-digest\r\nWARC-Payload-Digest: SHA1:a\r\n",
    );
    has(&heads[1], "WARC-Truncated: length\r\n");
    has(
        &heads[2],
        "near-duplicate:1\r\nWARC-Refers-To: <urn:uuid:u:1>\r\n",
    );
    has(&heads[2], "Content-Length: 0\r\n");
}
