//! Runs every example, and compares what it prints with the comment at its top.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a broken test should stop"
)]

use std::path::Path;
use std::process::Command;

/// Lines of an example: it has to fit one screen.
const MAX_LINES: usize = 60;

fn check(name: &str, program: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(name)
        .with_extension("rs");
    let source = std::fs::read_to_string(path).unwrap();
    let lines = source.lines().count();
    assert!(lines <= MAX_LINES, "{name}: {lines} lines");
    let shown: String = source
        .lines()
        .skip_while(|line| *line != "//! ```text")
        .skip(1)
        .take_while(|line| *line != "//! ```")
        .map(|line| format!("{}\n", line.trim_start_matches("//! ")))
        .collect();
    let output = Command::new(program).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {error}");
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        shown,
        "{name} prints something else"
    );
}

macro_rules! examples {
    ($($(#[$feature:meta])* $name:ident)*) => {
        $(
            $(#[$feature])*
            #[test]
            fn $name() {
                check(stringify!($name), env!(concat!("CARGO_BIN_EXE_", stringify!($name))));
            }
        )*
    };
}

examples! {
    first_store
    crawler_loop
    offline_build
    pairs_and_clusters
    containment
    reband
    backup
    #[cfg(feature = "arrow")]
    arrow
    #[cfg(feature = "pictures")]
    pictures
    #[cfg(feature = "tokio")]
    async_tokio
    #[cfg(feature = "axum")]
    refuse_duplicates
}

/// The page shows the stories as the feed of the store tells them.
#[test]
fn stories() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("stories.html");
    let output = Command::new(env!("CARGO_BIN_EXE_stories"))
        .arg(&page)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let printed = String::from_utf8(output.stdout).unwrap();
    let counts: Vec<&str> = printed
        .lines()
        .filter_map(|line| line.split(' ').nth(2))
        .collect();
    assert_eq!(
        counts,
        ["1", "2", "3", "4", "3", "3", "4", "4", "drawn"],
        "{printed}"
    );
    let page = std::fs::read_to_string(page).unwrap();
    for expected in [
        "united with story",
        "split from story",
        "class=\"united\"",
        "class=\"gone\"",
    ] {
        assert!(page.contains(expected), "{expected}");
    }
    let articles = page.matches("<article>").count();
    assert_eq!(
        articles, 15,
        "all but the one that stands alone and the one that was retracted"
    );
    assert!(!page.contains("http"), "it needs nothing from elsewhere");
}
