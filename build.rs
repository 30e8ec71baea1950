//! Compiles `proto/` without an installed protoc, and finds out the commit that is built.

use std::error::Error;
use std::path::Path;
use std::process::Command;

const FILES: [&str; 8] = [
    "envoy/service/discovery/v3/discovery.proto",
    "envoy/config/cluster/v3/cluster.proto",
    "google/rpc/status.proto",
    "envoy/config/listener/v3/listener.proto",
    "envoy/service/status/v3/csds.proto",
    "opentelemetry/proto/collector/metrics/v1/metrics_service.proto",
    "opentelemetry/proto/collector/trace/v1/trace_service.proto",
    REFLECTION,
];
const REFLECTION: &str = "grpc/reflection/v1/reflection.proto";
const SPIFFE: &str = "spiffe/workload/x509.proto";

/// The variable that names the commit, for builds without a repository and for the program itself.
const COMMIT: &str = "DISTRIBUTARY_COMMIT";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let spiffe = cfg!(feature = "spiffe").then_some(SPIFFE);
    let descriptors = protox::compile(FILES.into_iter().chain(spiffe), ["proto"])?;
    // The description of the service that describes all others.
    let mut own = protox::Compiler::new(["proto"])?;
    own.open_file(REFLECTION)?;
    let own = own.encode_file_descriptor_set();
    std::fs::write(Path::new(&std::env::var("OUT_DIR")?).join("reflection.bin"), own)?;
    prost_build::Config::new()
        // Resource bodies are shared by reference and never copied, so every `bytes` field is `bytes::Bytes`;
        // that needs our own `Any` instead of the one of prost-types.
        .bytes(["."])
        .compile_well_known_types()
        // Ordered maps make equal messages encode to equal bytes.
        .btree_map(["."])
        .include_file("proto.rs")
        .compile_fds(descriptors)?;
    println!("cargo::rustc-env={COMMIT}={}", commit());
    Ok(())
}

/// Returns the commit: the one that the environment names, or else that of the repository whose root this is. Without either, as in
/// an archive of the sources, it is empty. A commit on the same branch does not cause a new build.
fn commit() -> String {
    println!("cargo::rerun-if-env-changed={COMMIT}");
    if let Ok(named) = std::env::var(COMMIT) {
        return named;
    }
    // The folders above may be a repository as well, but another one.
    if !Path::new(".git").exists() {
        return String::new();
    }
    let head = git(&["rev-parse", "--git-path", "HEAD"]);
    if let Some(head) = head.filter(|head| Path::new(head).exists()) {
        println!("cargo::rerun-if-changed={head}");
    }
    git(&["rev-parse", "HEAD"]).unwrap_or_default()
}

/// Returns the only line that this command prints.
fn git(arguments: &[&str]) -> Option<String> {
    let done = Command::new("git").args(arguments).output().ok()?;
    let line = String::from_utf8(done.stdout).ok()?;
    done.status.success().then(|| line.trim().to_owned())
}
