// SPDX-License-Identifier: Apache-2.0
//! Finds out the commit that is built.

use std::error::Error;
use std::path::Path;
use std::process::Command;

/// The variable that names the commit, for builds without a repository and for the program itself.
const COMMIT: &str = "DISTRIBUTARY_COMMIT";
/// The variable that tells the program what `--version` says: the version, and the beginning of the commit.
const BUILD: &str = "DISTRIBUTARY_BUILD";
const COMMIT_SHOWN: usize = 12;

fn main() -> Result<(), Box<dyn Error>> {
    let (commit, version) = (commit(), std::env::var("CARGO_PKG_VERSION")?);
    println!("cargo::rustc-env={COMMIT}={commit}");
    let build = commit.get(..COMMIT_SHOWN).map(|short| format!("{version} ({short})"));
    println!("cargo::rustc-env={BUILD}={}", build.unwrap_or(version));
    Ok(())
}

/// Returns the commit: the one that the environment names, or else that of the repository whose root this is. It is empty without
/// either, as in an archive of the sources, and in development builds: each commit would build them anew.
fn commit() -> String {
    println!("cargo::rerun-if-env-changed={COMMIT}");
    if let Ok(named) = std::env::var(COMMIT) {
        return named;
    }
    let is_development = std::env::var("PROFILE").is_ok_and(|profile| profile == "debug");
    // The folders above may be a repository as well, but another one.
    if is_development || !Path::new(".git").exists() {
        return String::new();
    }
    // HEAD changes when another branch is checked out; what it names changes with each commit.
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
    for name in ["HEAD", "packed-refs"].into_iter().chain(branch.as_deref()) {
        if let Some(file) = git(&["rev-parse", "--git-path", name]) {
            watch(Path::new(&file));
        }
    }
    git(&["rev-parse", "HEAD"]).unwrap_or_default()
}

/// Causes a new build when the file changes. A branch that is only in packed-refs gets a file with its next commit: until then, the
/// folder of branches is watched, because cargo takes a missing file for one that has changed.
fn watch(file: &Path) {
    let there = file.ancestors().find(|path| path.exists());
    let is_branches = |path: &&Path| path.display().to_string().contains("refs/heads");
    if let Some(path) = there.filter(|path| path.is_file() || is_branches(path)) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}

/// Returns the only line that this command prints.
fn git(arguments: &[&str]) -> Option<String> {
    let done = Command::new("git").args(arguments).output().ok()?;
    let line = String::from_utf8(done.stdout).ok()?;
    done.status.success().then(|| line.trim().to_owned())
}
