//! Resources as JSON, YAML and text: between what people and polling clients write and the bytes that go on the wire.
//!
//! It owns the descriptors of the API, the canonical JSON form of protobuf in both directions, and where in a text a
//! fault is. It refuses to know where texts come from and what a resource is for.
//!
//! The way in is text -> [`Tree`] (every value with its place) -> bytes, the way out is bytes -> JSON, both led by the
//! descriptors and without a message in between: so equal texts become equal bytes on every relay, and a fault has a
//! line, a column and a path, also inside an `Any`.

mod discovery;
mod fault;
mod form;
mod plain;
mod read;
mod schemas;
mod text;
mod time;
mod tree;
mod write;
mod yaml;

pub use discovery::{Response, response};
pub use fault::{Fault, Place};
pub use read::{Parsed, Unknown};
pub use schemas::{SchemaError, Schemas};
pub use tree::{Bounds, Tree};
pub use write::{Json, Secrets};

/// How deep messages and values may be nested: what other readers of protobuf take, and little of a thread's stack.
const DEPTH_MAX: usize = 100;
