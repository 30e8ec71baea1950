// SPDX-License-Identifier: Apache-2.0
//! Compiles the messages without an installed protoc.

use std::error::Error;
use std::path::Path;

const FILES: [&str; 9] = [
    "distributary/references.proto",
    "envoy/service/discovery/v3/discovery.proto",
    "envoy/config/cluster/v3/cluster.proto",
    "google/rpc/error_details.proto",
    "google/rpc/status.proto",
    "envoy/config/listener/v3/listener.proto",
    "envoy/service/status/v3/csds.proto",
    REFLECTION,
    "spiffe/workload/x509.proto",
];
const REFLECTION: &str = "grpc/reflection/v1/reflection.proto";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=.");
    let descriptors = protox::compile(FILES, ["."])?;
    // The description of the service that describes all others.
    let mut own = protox::Compiler::new(["."])?;
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
    Ok(())
}
