//! What a compiler does not check of this repository: who imports whom, how large files are, whether documents and
//! packaging speak of things that exist, and whether every rule that is cited is listed and tested.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod documents;
mod layers;
mod modules;
mod packaging;
mod rules;
mod size;
mod tree;
mod words;
