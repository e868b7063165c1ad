//! The optional steps of normalisation, from the command line.

use crate::support::{Folder, line};

fn folder() -> Folder {
    let folder = Folder::new();
    let corpus = [
        line(
            "a",
            "Les \u{c9}T\u{c9}S br\u{fb02}ants de Provence \u{e9}taient chauds",
        ),
        line(
            "b",
            "les e\u{301}te\u{301}s, br\u{66}lants, de la Provence etaient chaud",
        ),
    ];
    folder.write("c.jsonl", corpus.concat());
    folder
}

#[test]
fn text_steps_make_variants_equal() {
    let folder = folder();
    let steps = "--nfkc --strip-accents --stop-words fr --stem fr";
    let plain = "pairs c.jsonl --words 2";
    folder.run(plain).expect(1);
    let found = folder.run(&format!("{plain} {steps}")).expect(0).stdout;
    assert_eq!(found, "a\tb\t1.000000\n");
}

#[test]
fn store_records_its_text_steps_and_refuses_different_ones() {
    let folder = folder();
    let steps = "--words 2 --nfkc --strip-accents --stop-words fr --stem fr";
    let created = folder.run(&format!("create s.rsm {steps}")).expect(0);
    let said = "words 2, NFKC, without accents, without stop words of fr, stems of fr";
    assert!(created.stderr.contains(said), "{}", created.stderr);
    folder.run("add s.rsm c.jsonl").expect(0);
    let alike = "\u{c9}t\u{e9} br\u{fb02}ant, la Provence \u{e9}tait chaude";
    folder.run(&format!("query s.rsm '{alike}'")).expect(0);
    folder.run("query s.rsm 'summer in Provence'").expect(1);
    let same = folder.run("pairs s.rsm --stem fr --words 2").expect(0);
    assert_eq!(same.stdout, "a\tb\t1.000000\n");
    for other in [["--stem", "en"], ["--words", "3"], ["--code", "2"]] {
        let refused = folder
            .run(&[&["pairs", "s.rsm"][..], &other[..]].concat())
            .expect(2);
        assert!(
            refused.stderr.contains("a store uses its own schema"),
            "{}",
            refused.stderr
        );
    }
}

#[test]
fn code_option_splits_text_into_tokens() {
    let folder = Folder::new();
    let corpus = [
        line("a", "fn f(a:u8)->u8{a+1}"),
        line("b", "fn f ( a : u8 ) -> u8 { a + 1 }"),
    ];
    folder.write("c.jsonl", corpus.concat());
    let found = folder.run("pairs c.jsonl --code 3").expect(0).stdout;
    assert_eq!(found, "a\tb\t1.000000\n");
}

#[test]
fn wrong_text_steps_are_reported() {
    let folder = folder();
    for (options, said) in [
        (["--stop-words", "xx"], "expected one of ar, da"),
        (["--stem", "english"], "expected one of ar, da"),
        (["--code", "0"], "a length of 1 to 256"),
    ] {
        let refused = folder
            .run(&[&["pairs", "c.jsonl"][..], &options[..]].concat())
            .expect(2);
        assert!(refused.stderr.contains(said), "{}", refused.stderr);
    }
    let both = "pairs c.jsonl --chars 9 --stem en";
    folder.run(both).expect(2);
}

/// A French sentence with its accents composed, and the same with each letter and its mark apart.
#[test]
fn composed_and_decomposed_copies_are_duplicates() {
    let folder = Folder::new();
    let corpus = [
        line(
            "nfc",
            "L’été dernier, Noël à l’hôtel : çà et là, où les élèves révisaient",
        ),
        line(
            "nfd",
            "L’e\u{301}te\u{301} dernier, Noe\u{308}l a\u{300} l’ho\u{302}tel : c\u{327}a\u{300} et la\u{300}, \
             ou\u{300} les e\u{301}le\u{300}ves re\u{301}visaient",
        ),
    ];
    folder.write("c.jsonl", corpus.concat());
    let found = folder.run("pairs c.jsonl").expect(0);
    assert_eq!(found.stdout, "nfc\tnfd\t1.000000\n");
}

#[test]
fn case_and_space_options_are_applied() {
    let folder = Folder::new();
    let corpus = [
        line("a", "The cat sat on the mat"),
        line("b", "the CAT sat on the mat"),
        line("c", "thecat  sat onthe\nmat"),
        line("d", "cat the sat on mat the"),
    ];
    folder.write("c.jsonl", corpus.concat());
    let pairs = |options: &[&str]| {
        let ran = folder.run(&[&["pairs", "c.jsonl", "--threshold", "0.99"], options].concat());
        ran.stdout.replace("\t1.000000", "")
    };
    assert_eq!(pairs(&["--words", "2"]), "a\tb\n");
    assert_eq!(pairs(&["--words", "2", "--keep-case"]), "");
    assert_eq!(
        pairs(&["--chars", "4", "--remove-spaces"]),
        "a\tb\na\tc\nb\tc\n"
    );
    assert_eq!(pairs(&["--chars", "4"]), "a\tb\n");
    assert_eq!(
        pairs(&["--words", "6", "--unordered"]),
        "a\tb\na\td\nb\td\n"
    );
    folder
        .run("pairs c.jsonl --words 2 --remove-spaces")
        .expect(2);
}
