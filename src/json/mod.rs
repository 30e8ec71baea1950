// SPDX-License-Identifier: Apache-2.0
//! Converts resources between JSON, YAML or protobuf text and their bytes on the wire.
//!
//! Owns the descriptors of the API, the canonical JSON form of protobuf in both directions, and the place of a fault in a
//! text. Knows nothing of where texts come from and what a resource is for.
//!
//! Input goes from text to a [`Tree`] (every value with its place) to bytes, output from bytes to JSON. Both follow the
//! descriptors, without a message type in between. So equal texts become equal bytes on every relay, and a fault has a line,
//! a column and a path, even inside an `Any`.

mod fault;
mod form;
mod plain;
mod read;
mod schemas;
mod text;
mod time;
mod tree;
mod write;

pub use fault::{Fault, Place};
pub use read::{Parsed, Unknown};
pub use schemas::{Response, SchemaError, Schemas, response};
pub use tree::{Bounds, Tree};
pub use write::{Json, Secrets};

/// How deep messages and values may be nested: as deep as other protobuf parsers allow, and little of a thread's stack.
const DEPTH_MAX: usize = 100;
