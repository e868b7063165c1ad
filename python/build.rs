//! Notes the commit and the target of a build, which `resemblance.version_details()` returns.

use std::path::Path;
use std::process::Command;

fn main() -> Result<(), std::env::VarError> {
    println!("cargo::rerun-if-changed=build.rs");
    // The log of HEAD changes with each commit and each checkout. Sources without a clone have none.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"]).unwrap_or_default();
    if Path::new(&log).exists() {
        println!("cargo::rerun-if-changed={log}");
    }
    let commit = git(&["rev-parse", "HEAD"]).unwrap_or_else(|| "unknown".into());
    println!("cargo::rustc-env=RESEMBLANCE_COMMIT={commit}");
    let target = std::env::var("TARGET")?;
    println!("cargo::rustc-env=RESEMBLANCE_TARGET={target}");
    Ok(())
}

fn git(arguments: &[&str]) -> Option<String> {
    let run = Command::new("git").args(arguments).output().ok()?;
    let printed = String::from_utf8(run.stdout).ok()?;
    run.status.success().then(|| printed.trim().to_owned())
}
