//! Colours appear only on terminals unless an option says otherwise, and never come from the input.

use crate::support::{Folder, line, mixed, ran, text};

const BOLD: &str = "\u{1b}[1m";

#[test]
fn colours_are_for_terminals_unless_requested() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed() + &line("\u{1b}[31mred", &text(50)));
    folder.run("build s.rsm c.jsonl").expect(0);
    for (verb, paints_output, paints_messages) in [
        (&["stats", "s.rsm", "--format", "table"][..], true, false),
        (&["tune", "--format", "table"], true, false),
        (&["eval", "c.jsonl", "--format", "table"], true, true),
        (&["list", "s.rsm", "--format", "table"], true, false),
        (&["list", "s.rsm", "--format", "tsv"], false, false),
        (&["pairs", "c.jsonl", "--format", "jsonl"], false, false),
        (
            &["dedup", "c.jsonl", "-o", "o.jsonl", "--force"],
            false,
            true,
        ),
    ] {
        let with = |option: &[&str], variables: &[(&str, &str)]| {
            let mut command = folder.command(&[verb, option].concat());
            let ran = ran(command.envs(variables.iter().copied()).output().unwrap());
            (ran.stdout, ran.stderr)
        };
        let plain = with(&[], &[]);
        assert!(
            !(plain.0.clone() + &plain.1).contains('\u{1b}'),
            "{plain:?}"
        );
        let (painted, said) = with(&["--color", "always"], &[("NO_COLOR", "1")]);
        assert_eq!(painted.contains(BOLD), paints_output, "{verb:?}: {painted}");
        assert_eq!(
            said.contains("\u{1b}[32m"),
            paints_messages,
            "{verb:?}: {said}"
        );
        // Nothing but colours is between.
        let codes = [
            "\u{1b}[0m",
            BOLD,
            "\u{1b}[2m",
            "\u{1b}[32m",
            "\u{1b}[33m",
            "\u{1b}[31m",
        ];
        let bare = |text: String| codes.iter().fold(text, |text, code| text.replace(code, ""));
        assert_eq!(bare(painted.clone()), plain.0, "{verb:?}");
        let no_times = |text: &str| -> Vec<String> {
            let lines = text.lines().filter(|line| !line.contains(" took "));
            lines.map(str::to_owned).collect()
        };
        assert_eq!(no_times(&bare(said)), no_times(&plain.1), "{verb:?}");
        let forced = with(&[], &[("CLICOLOR_FORCE", "1")]);
        assert_eq!(forced.0, painted);
        assert_eq!(
            with(&["--color", "never"], &[("CLICOLOR_FORCE", "1")]).0,
            plain.0
        );
        assert_eq!(
            with(&[], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]).0,
            plain.0
        );
    }
    let wrong = folder.run("stats s.rsm --color red").expect(2);
    assert!(
        wrong.stderr.contains("auto, always or never"),
        "{}",
        wrong.stderr
    );
}

/// A terminal, which `script` of util-linux makes.
#[cfg(target_os = "linux")]
#[test]
fn terminal_output_has_colours_and_escapes_control_characters() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed() + &line("\u{1b}[31mred", &text(50)));
    folder.run("build s.rsm c.jsonl").expect(0);
    let on_terminal = |arguments: &str, variable: (&str, &str)| {
        let tool = env!("CARGO_BIN_EXE_resemblance");
        let mut script = std::process::Command::new("script");
        script
            .args(["-qec", &format!("'{tool}' {arguments}"), "/dev/null"])
            .current_dir(folder.path("."))
            .env("RESEMBLANCE_CONFIG", "")
            .env("TERM", "xterm")
            .env_remove("NO_COLOR")
            .env_remove("CLICOLOR")
            .env_remove("CLICOLOR_FORCE")
            // Where it is set, terminals without colours are taken to show them.
            .env_remove("CI")
            .env(variable.0, variable.1);
        script.output().ok().map(|output| ran(output).stdout)
    };
    let none = ("RESEMBLANCE_CONFIG", "");
    let Some(listed) = on_terminal("list s.rsm", none) else {
        crate::support::say("skipped: colours on a terminal, because there is no `script` here");
        return;
    };
    assert!(listed.contains(BOLD), "{listed:?}");
    assert!(listed.contains("\\x1B[31mred"), "{listed:?}");
    for variable in [("NO_COLOR", "1"), ("CLICOLOR", "0"), ("TERM", "dumb")] {
        let listed = on_terminal("list s.rsm", variable).unwrap();
        assert!(!listed.contains(BOLD), "{listed:?}");
    }
    // Shared text is green, and other text is not.
    let explained = on_terminal("explain a a-near --corpus c.jsonl", none).unwrap();
    assert!(explained.contains("\u{1b}[32m"), "{explained:?}");
    assert!(!explained.contains("\\x1B["), "{explained:?}");
}
