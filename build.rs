//! Compiles `proto/` without an installed protoc.

use std::error::Error;

const FILES: [&str; 4] = [
    "envoy/service/discovery/v3/discovery.proto",
    "envoy/config/cluster/v3/cluster.proto",
    "google/rpc/status.proto",
    "envoy/config/listener/v3/listener.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let descriptors = protox::compile(FILES, ["proto"])?;
    prost_build::Config::new()
        // Resource bodies are shared by reference and never copied, so every `bytes` field is `bytes::Bytes`;
        // that needs our own `Any` instead of the one of prost-types.
        .bytes(["."])
        .compile_well_known_types()
        // Ordered maps make equal messages encode to equal bytes.
        .btree_map(["."])
        .include_file("proto.rs")
        .compile_fds(descriptors)?;
    Ok(())
}
