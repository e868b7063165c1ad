//! Notes the commit and the target of a build, which `resemblance --version --verbose` prints.

use std::path::Path;
use std::process::Command;

fn main() -> Result<(), std::env::VarError> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=Cargo.toml");
    let found = packaged_commit().or_else(checked_out_commit);
    let commit = found.as_deref().unwrap_or("unknown");
    println!("cargo::rustc-env=RESEMBLANCE_COMMIT={commit}");
    println!(
        "cargo::rustc-env=RESEMBLANCE_TARGET={}",
        std::env::var("TARGET")?
    );
    Ok(())
}

/// Returns the commit that cargo notes in the archive of a package.
fn packaged_commit() -> Option<String> {
    let noted = std::fs::read_to_string(".cargo_vcs_info.json").ok()?;
    let (_, rest) = noted.split_once("\"sha1\": \"")?;
    Some(rest.split('"').next()?.to_owned())
}

/// Returns the commit of a clone, for a release build: other builds would be repeated after every commit.
fn checked_out_commit() -> Option<String> {
    if std::env::var("PROFILE").ok()? != "release" {
        return None;
    }
    // The log of HEAD changes with each commit and each checkout.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    if Path::new(&log).exists() {
        println!("cargo::rerun-if-changed={log}");
    }
    git(&["rev-parse", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let run = Command::new("git").args(arguments).output().ok()?;
    let printed = String::from_utf8(run.stdout).ok()?;
    run.status.success().then(|| printed.trim().to_owned())
}
