// SPDX-License-Identifier: Apache-2.0
//! The wire messages that the relay itself reads and writes, generated from `proto/`. Everything else, above all the
//! body of a resource, stays opaque bytes. It owns no rule: what the messages mean stands in `xds` and `protocol`.

#![allow(
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    clippy::all,
    clippy::pedantic,
    clippy::use_self,
    reason = "generated code"
)]

/// The description of the service that describes all others, as a set of files.
pub static REFLECTION: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/reflection.bin"));

include!(concat!(env!("OUT_DIR"), "/proto.rs"));
