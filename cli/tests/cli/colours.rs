//! Colours appear only on terminals unless an option says otherwise, and never come from the input.

use crate::support::{Folder, line, mixed, ran, text};

const BOLD: &str = "\u{1b}[1m";

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
