//! Defaults of options in a file and in the environment.

use crate::support::{Folder, Ran, mixed, ran};

fn pairs(folder: &Folder, options: &[&str], variables: &[(&str, &str)]) -> Ran {
    let mut command = folder.command(&[&["pairs", "c.jsonl"], options].concat());
    ran(command.envs(variables.iter().copied()).output().unwrap())
}

fn folder(config: &str) -> Folder {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    folder.write("own.toml", config);
    folder
}

#[test]
fn arguments_override_environment_overrides_file() {
    let folder =
        folder("memory = '17M'\nthreads = 1\n[pairs]\nthreshold = 1.0\nno-header = true\n");
    let run = |options: &[&str], variables: &[(&str, &str)]| {
        let ran = pairs(&folder, &[&["-v"], options].concat(), variables);
        (ran.lines().len(), ran.stderr)
    };
    let (all, said) = run(&[], &[]);
    assert!(all > 1 && !said.contains("own.toml"));
    let (equal, said) = run(&["--config", "own.toml"], &[]);
    assert_eq!(equal, 1);
    assert!(
        said.contains("read defaults of options from own.toml"),
        "{said}"
    );
    assert!(said.contains("with up to 1 threads"), "{said}");
    let named = [
        ("RESEMBLANCE_CONFIG", "own.toml"),
        ("RESEMBLANCE_THREADS", "3"),
    ];
    let (equal, said) = run(&[], &named);
    assert_eq!(equal, 1);
    assert!(said.contains("with up to 3 threads"), "{said}");
    let (given, said) = run(&["--threshold", "0.8", "--threads", "2"], &named);
    assert_eq!(given, all);
    assert!(said.contains("with up to 2 threads"), "{said}");
    // The usual place, and none.
    folder.write("home/resemblance/config.toml", "[pairs]\nthreshold = 1.0\n");
    let home = folder.path("home");
    let mut command = folder.command("pairs c.jsonl");
    command.env_remove("RESEMBLANCE_CONFIG");
    let usual = if cfg!(windows) {
        "APPDATA"
    } else {
        "XDG_CONFIG_HOME"
    };
    command.env(usual, &home);
    assert_eq!(ran(command.output().unwrap()).lines().len(), 1);
    command.env("RESEMBLANCE_CONFIG", "");
    assert_eq!(ran(command.output().unwrap()).lines().len(), all);
}

/// A pipe that nobody writes to must not be waited for.
#[cfg(unix)]
#[test]
fn config_must_be_a_regular_file() {
    let folder = folder("");
    let made = std::process::Command::new("mkfifo")
        .arg(folder.path("pipe"))
        .status();
    assert!(made.unwrap().success());
    for name in ["pipe", ".", "/dev/zero"] {
        pairs(&folder, &["--config", name], &[])
            .expect(2)
            .says(&[name, "something other than a file"]);
    }
}

#[test]
fn wrong_environment_value_names_its_variable() {
    let folder = folder("");
    for (variable, option) in [
        ("RESEMBLANCE_MEMORY", "--memory"),
        ("RESEMBLANCE_CACHE", "--cache"),
        ("RESEMBLANCE_THREADS", "--threads"),
    ] {
        let ran = pairs(&folder, &[], &[(variable, "much")]).expect(2);
        let wanted = format!("${variable} ({option}): found \"much\", expected ");
        assert!(ran.stderr.contains(&wanted), "{}", ran.stderr);
        let ran = pairs(&folder, &[option, "lots"], &[(variable, "1")]).expect(2);
        let wanted = format!("resemblance: {option}: found \"lots\"");
        assert!(ran.stderr.starts_with(&wanted), "{}", ran.stderr);
    }
}

/// Options that exclude each other: those of the file stand back.
#[test]
fn conflicting_argument_overrides_a_default() {
    let folder = folder("[pairs]\nchars = 5\n");
    let config = ["--config", "own.toml"];
    let by_words = pairs(&folder, &[], &[]).stdout;
    let by_chars = pairs(&folder, &["--chars", "5"], &[]).stdout;
    assert_ne!(by_words, by_chars);
    assert_eq!(pairs(&folder, &config, &[]).stdout, by_chars);
    let given = [&config[..], &["--words", "5"]].concat();
    assert_eq!(pairs(&folder, &given, &[]).stdout, by_words);
}

#[test]
fn mistakes_in_the_config_file_are_reported() {
    let wrong: [(&str, &[&str]); 9] = [
        (
            "[pairs]\nthreshhold = 0.9",
            &["own.toml", "[pairs]: there is no option threshhold"],
        ),
        (
            "[pares]\nthreshold = 0.9",
            &["own.toml", "[pares]: there is no such verb"],
        ),
        (
            "threshold = 0.9",
            &[
                "own.toml",
                "there is no common option threshold",
                "belong in its table",
            ],
        ),
        ("config = 'x'", &["own.toml", "config is no option"]),
        (
            "[dedup]\noutput = true",
            &["[dedup]: output: expected a string or a number"],
        ),
        ("quiet = 'yes'", &["quiet: expected true or false"]),
        ("[pairs\n", &["not TOML", "at own.toml:1"]),
        (
            "[pairs]\nthreshold = 'much'",
            &[
                "--threshold",
                "much",
                "Defaults of options come from own.toml",
            ],
        ),
        (
            "[pairs]\nchars = 5\nwords = 3",
            &["--chars", "--words", "own.toml"],
        ),
    ];
    for (config, parts) in wrong {
        let folder = folder(config);
        let ran = pairs(&folder, &["--config", "own.toml"], &[]).expect(2);
        for part in parts {
            assert!(
                ran.stderr.contains(part),
                "{config}: {part:?} is not in {}",
                ran.stderr
            );
        }
    }
    let folder = folder("");
    folder.write("own.toml", b"quiet = true\n# caf\xe9\n");
    pairs(&folder, &["--config", "own.toml"], &[])
        .expect(2)
        .says(&["must be UTF-8", "at own.toml:2"]);
    let missing = pairs(&folder, &["--config", "other.toml"], &[]).expect(4);
    missing.says(&["other.toml"]);
}

/// Defaults for near-duplicate documents say nothing where lines alone are taken out; what is given does.
#[test]
fn threshold_from_the_file_does_not_affect_level_line() {
    let folder = folder("[dedup]\nthreshold = 0.9\nkeep = 'last'\nby = 'minhash'\n");
    let run = |more: &[&str]| {
        let dedup = [
            "dedup", "c.jsonl", "-o", "o.jsonl", "--force", "--config", "own.toml",
        ];
        folder.run(&[&dedup[..], more].concat())
    };
    run(&["--level", "line"]).expect(0);
    let lines = folder.read_text("o.jsonl");
    let given = run(&["--level", "paragraph", "--threshold", "0.9"]).expect(2);
    given.says(&["--threshold or --distance is for near-duplicate documents"]);
    // With documents they count: of those alike the last stays.
    run(&["--level", "line,document"]).expect(0);
    run(&[]).expect(0);
    assert!(folder.read_text("o.jsonl").contains("a-near"));
    let level = "[dedup]\nlevel = ['line']\nthreshold = 0.9\n";
    folder.write("own.toml", level);
    run(&[]).expect(0);
    assert_eq!(folder.read_text("o.jsonl"), lines);
    folder.write("own.toml", level.replace("['line']", "'line,document'"));
    run(&[]).expect(0);
}
