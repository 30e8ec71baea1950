// SPDX-License-Identifier: Apache-2.0
//! The image and CI match the repository: the files, the programs and the ports that they name exist.

use distributary::config::{Address, Config, Flags};

use crate::tree;

/// The instructions of the Dockerfile: a word, and the rest of its line.
fn instructions() -> Vec<(String, String)> {
    let text = tree::read("Dockerfile").replace("\\\n", " ");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let lines = lines.map(|line| line.split_once(' ').unwrap());
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    lines.map(|(word, rest)| (word.to_owned(), words(rest))).collect()
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

/// The instructions of each stage of the Dockerfile, by the stage's name, in order.
fn stages() -> Vec<(String, Vec<(String, String)>)> {
    let mut stages: Vec<(String, Vec<(String, String)>)> = Vec::new();
    for (word, rest) in instructions() {
        match rest.split_once(" AS ").filter(|_| word == "FROM") {
            Some((base, name)) => stages.push((name.to_owned(), vec![(word, base.to_owned())])),
            None => stages.last_mut().unwrap().1.push((word, rest)),
        }
    }
    stages
}

/// What the instructions of this word say in a stage.
fn said(stage: &str, word: &str) -> Vec<String> {
    let stages = stages();
    let (_, lines) = stages
        .iter()
        .find(|(name, _)| name == stage)
        .unwrap_or_else(|| panic!("no {stage}"));
    let said = lines.iter().filter(|(found, _)| found == word);
    said.map(|(_, rest)| rest.clone()).collect()
}

/// What a JSON list in an instruction holds.
fn list(text: &str) -> Vec<String> {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Base images have a full version: the same Dockerfile builds the same programs in a year.
#[test]
fn the_image_is_built_by_a_version_that_is_named() {
    let stages = stages();
    let names: Vec<_> = stages.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        ["build", "load", "relay"],
        "without --target, the last one is built"
    );
    let [base] = said("build", "FROM").try_into().unwrap();
    // Whatever it builds for, it runs on the machine that builds.
    let tag = base
        .strip_prefix("--platform=$BUILDPLATFORM docker.io/library/rust:")
        .expect("the base of the build");
    let (version, system) = tag.split_once('-').unwrap();
    let parts: Vec<u32> = version.split('.').map(|part| part.parse().unwrap()).collect();
    let [1, minor, _] = parts[..] else {
        panic!("{version} is no full version")
    };
    assert!(minor >= 90, "Cargo.toml needs Rust 1.90");
    assert_eq!(system, "bookworm");
    assert!(tree::read("Cargo.toml").contains("\nrust-version = \"1.90\"\n"));
    for image in ["load", "relay"] {
        assert_eq!(said(image, "FROM"), ["scratch"]);
    }
}

#[test]
fn the_image_is_built_from_what_is_here() {
    let ignore = tree::read(".dockerignore");
    let kept = |source: &str| {
        let kept = ignore.lines().filter_map(|line| line.strip_prefix('!'));
        kept.map(std::path::Path::new)
            .any(|kept| std::path::Path::new(source).starts_with(kept))
    };
    let mut copied = Vec::new();
    for (word, line) in instructions() {
        let words: Vec<_> = line.split_whitespace().collect();
        let [sources @ .., _] = words.as_slice() else {
            panic!("{word} {line}")
        };
        if word != "COPY" || line.starts_with("--") {
            continue;
        }
        for source in sources {
            assert!(tree::exists(source), "Dockerfile copies {source}, which is not here");
            assert!(kept(source), ".dockerignore hides {source}");
            copied.push((*source).to_owned());
        }
    }
    let manifests = members().into_iter().map(|member| format!("{member}/Cargo.toml"));
    let sources = [
        "Cargo.toml",
        "Cargo.lock",
        "build.rs",
        "proto/",
        "src/",
        "loadtest/",
        "tests/peers/",
    ]
    .map(str::to_owned);
    for needed in sources.into_iter().chain(manifests) {
        let below = |source: &String| std::path::Path::new(&needed).starts_with(source);
        assert!(
            copied.iter().any(below),
            "Dockerfile does not copy {needed}, without which nothing builds"
        );
    }
    for line in ignore.lines().filter_map(|line| line.strip_prefix('!')) {
        assert!(copied.iter().any(|source| source == line), "{line} is not copied");
    }
}

/// The first layer is made from manifests, and builds the same as the second one.
#[test]
fn an_edit_of_the_sources_does_not_build_the_dependencies() {
    let stages = stages();
    let (_, lines) = &stages[0];
    let builds = |(word, line): &(String, String)| word == "RUN" && line.contains("cargo build");
    let first = lines.iter().position(builds).unwrap();
    for (_, copied) in lines[..first].iter().filter(|(word, _)| word == "COPY") {
        for source in copied.split(' ').rev().skip(1) {
            let manifest = source.ends_with("Cargo.toml") || ["Cargo.lock", ".cargo"].contains(&source);
            assert!(
                manifest,
                "{source} changes often, and is copied before the dependencies are built"
            );
        }
    }
    let [_, dependencies, all, _] = said("build", "RUN").try_into().expect("four steps");
    let build = "cargo build --workspace --profile dist --features jemalloc --locked --target \"$(cat /triple)\"";
    assert!(
        dependencies.contains(build) && all.ends_with(build),
        "{dependencies}\n{all}"
    );
    // Otherwise the empty programs count as fresh: files keep their times when they are copied.
    assert!(
        dependencies.contains("cargo clean --profile dist --workspace --target \"$(cat /triple)\""),
        "{dependencies}"
    );
}

#[test]
fn the_images_run_what_is_built() {
    let [machine, _, _, roots] = said("build", "RUN").try_into().unwrap();
    for (arch, cpu) in [("amd64", "x86_64"), ("arm64", "aarch64")] {
        assert!(machine.contains(&format!("{arch}) cpu={cpu} ;;")), "{machine}");
        let linker = format!(
            "CARGO_TARGET_{}_UNKNOWN_LINUX_GNU_LINKER={cpu}-linux-gnu-gcc",
            cpu.to_uppercase()
        );
        assert!(said("build", "ENV").contains(&linker), "{linker}");
    }
    for (image, program) in [("relay", "distributary"), ("load", "distributary-load")] {
        assert!(
            roots.contains(&format!(
                "config/image/root \"target/$(cat /triple)/dist/{program}\" /{image}"
            )),
            "{roots}"
        );
        assert!(said(image, "COPY").contains(&format!("--from=build /{image} /")));
        let [entry] = said(image, "ENTRYPOINT").try_into().unwrap();
        assert_eq!(list(&entry), [format!("/usr/bin/{program}")]);
        // In numbers, so that Kubernetes knows that it is not root.
        assert_eq!(said(image, "USER"), ["65532:65532"]);
    }
    assert!(tree::read("config/image/root").contains("x:65532:65532:"));
    let [command] = said("relay", "CMD").try_into().unwrap();
    assert_eq!(list(&command), ["serve"]);
    let [health] = said("relay", "HEALTHCHECK").try_into().unwrap();
    let (_, health) = health.split_once(" CMD ").unwrap();
    assert_eq!(list(health), ["/usr/bin/distributary", "health", "--live"]);
}

/// Labels that registries and scanners read say what the manifest says.
#[test]
fn the_images_say_what_they_are() {
    let manifest = tree::read("Cargo.toml");
    let of = |key: &str| {
        let mut lines = manifest.lines();
        let line = lines.find_map(|line| line.strip_prefix(&format!("{key} = "))).unwrap();
        line.to_owned()
    };
    for image in ["relay", "load"] {
        let [labels] = said(image, "LABEL").try_into().unwrap();
        for (label, value) in [
            ("version", of("version")),
            ("licenses", of("license")),
            ("revision", "\"$COMMIT\"".to_owned()),
        ] {
            let label = format!("org.opencontainers.image.{label}={value}");
            assert!(labels.contains(&label), "{image} lacks {label}");
        }
    }
    let [labels] = said("relay", "LABEL").try_into().unwrap();
    assert!(
        labels.contains(&format!("description={}", of("description"))),
        "{labels}"
    );
}

/// What the relay opens to others is what the image names; the admin address stays inside.
#[test]
fn the_image_opens_its_ports() {
    let [env] = said("relay", "ENV").try_into().unwrap();
    let (name, path) = env.split_once('=').unwrap();
    assert_eq!(name, "DISTRIBUTARY_CONFIG");
    assert!(said("relay", "COPY").contains(&format!("config/image/relay.yaml {path}")));
    let flags = Flags {
        upstream: vec!["cp:1".to_owned()],
        ..Flags::default()
    };
    let config = Config::load(Some(&tree::root().join("config/image/relay.yaml")), &flags).unwrap();
    let opened = [&config.listeners[0].address, config.probes.as_ref().unwrap()];
    let ports = opened.map(|address| match address {
        Address::Socket(address) if address.ip().is_unspecified() => address.port().to_string(),
        Address::Socket(_) | Address::Unix(_) => panic!("{address} is reached by nobody"),
    });
    assert_eq!(said("relay", "EXPOSE"), [ports.join(" ")]);
    assert!(matches!(config.admin, Address::Socket(address) if address.ip().is_loopback()));
    let alone = Config::load(Some(&tree::root().join("config/image/relay.yaml")), &Flags::default());
    assert!(alone.unwrap_err().to_string().contains("no control plane"));
}

/// The unit of systemd starts the program with the file that is packed with it, and has the folder for its snapshots.
#[test]
fn the_unit_runs_what_is_packed() {
    let unit = tree::read("config/systemd/distributary.service");
    let has = |line: &str| assert!(unit.lines().any(|found| found == line), "{line}");
    has("Type=notify");
    has("ExecStart=/usr/bin/distributary serve --config /etc/distributary/relay.yaml");
    has("ExecReload=/usr/bin/distributary validate /etc/distributary/relay.yaml");
    has("DynamicUser=yes");
    let flags = Flags {
        upstream: vec!["cp:1".to_owned()],
        ..Flags::default()
    };
    let file = tree::root().join("config/systemd/relay.yaml");
    let config = Config::load(Some(&file), &flags).unwrap();
    assert_eq!(config.warnings, [""; 0]);
    let snapshot = config.snapshot.unwrap();
    let state = snapshot.dir.as_ref().unwrap().strip_prefix("/var/lib").unwrap();
    has(&format!("StateDirectory={}", state.display()));
    assert!(
        Config::load(Some(&file), &Flags::default()).is_err(),
        "whoever installs it must name the control plane"
    );
}
