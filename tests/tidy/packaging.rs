//! The image and CI match the repository: the files, the binary and the ports that they name exist.

use distributary::config::{Address, Config, Flags};

use crate::tree;

/// The lines of the Dockerfile that begin with `word`, without it.
fn instructions(word: &str) -> Vec<String> {
    let text = tree::read("Dockerfile").replace("\\\n", " ");
    let lines = text
        .lines()
        .filter_map(|line| line.strip_prefix(word)?.strip_prefix(' '));
    lines.map(|line| line.trim().to_owned()).collect()
}

fn members() -> Vec<String> {
    let manifest = tree::read("Cargo.toml");
    let Some((_, after)) = manifest.split_once("\nmembers = [") else {
        return Vec::new();
    };
    let list = after.split(']').next().unwrap_or_default();
    let names = list.split(',').map(|name| name.trim().trim_matches('"'));
    names
        .filter(|name| !name.is_empty() && *name != ".")
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_image_is_built_from_what_is_here() {
    let ignore = tree::read(".dockerignore");
    let mut copied = Vec::new();
    for line in instructions("COPY") {
        let words: Vec<_> = line.split_whitespace().collect();
        let [sources @ .., _] = words.as_slice() else {
            panic!("COPY {line}")
        };
        if line.starts_with("--") {
            continue;
        }
        for source in sources {
            assert!(tree::exists(source), "Dockerfile copies {source}, which is not here");
            assert!(
                ignore.lines().any(|kept| kept == format!("!{source}")),
                ".dockerignore hides {source}"
            );
            copied.push((*source).to_owned());
        }
    }
    let needed = ["Cargo.toml", "Cargo.lock", "build.rs", "proto", "src"]
        .into_iter()
        .map(str::to_owned);
    for needed in needed.chain(members()) {
        assert!(
            copied.contains(&needed),
            "Dockerfile does not copy {needed}, without which nothing builds"
        );
    }
}

#[test]
fn the_image_runs_what_is_built() {
    let package = env!("CARGO_PKG_NAME");
    let [build] = instructions("RUN").try_into().expect("one RUN");
    assert!(
        build.contains(&format!(
            "--profile dist --features jemalloc --locked --package {package}"
        )),
        "{build}"
    );
    let from_build: Vec<_> = instructions("COPY")
        .into_iter()
        .filter(|line| line.starts_with("--from=build "))
        .collect();
    let [binary] = from_build.as_slice() else {
        panic!("one file comes from the build: {from_build:?}")
    };
    let words: Vec<_> = binary.split_whitespace().collect();
    let [_, from, to] = words.as_slice() else {
        panic!("COPY {binary}")
    };
    assert!(from.ends_with(&format!("/target/dist/{package}")), "{from}");
    assert_eq!(instructions("ENTRYPOINT"), [format!("[\"{to}\"]")]);
    assert_eq!(instructions("CMD"), ["[\"serve\"]"]);
    assert_eq!(instructions("USER"), ["nonroot"]);
    assert!(instructions("HEALTHCHECK").is_empty());
}

#[test]
fn the_image_opens_the_default_ports() {
    let flags = Flags {
        upstream: vec!["cp:1".to_owned()],
        ..Flags::default()
    };
    let config = Config::load(None, &flags).unwrap();
    let port = |address: &Address| match address {
        Address::Socket(address) => address.port(),
        Address::Unix(path) => panic!("{} is no port", path.display()),
    };
    let ports = [port(&config.listeners[0].address), port(&config.admin)];
    assert_eq!(instructions("EXPOSE"), [format!("{} {}", ports[0], ports[1])]);
    let env = format!(
        "DISTRIBUTARY_LISTEN=0.0.0.0:{} DISTRIBUTARY_ADMIN=0.0.0.0:{}",
        ports[0], ports[1]
    );
    assert_eq!(instructions("ENV"), [env]);
}

#[test]
fn the_checks_stop_at_a_failure() {
    let run = tree::read(".ci/run");
    assert!(run.contains("\nset -euo pipefail\n"));
    for check in [
        "cargo fmt --all --check",
        "clippy --workspace --all-targets",
        "cargo doc",
        "cargo test --workspace",
        "tests/fuzz/run all",
        "tests/interop/run",
    ] {
        assert!(run.contains(check), ".ci/run lacks {check}");
    }
}
