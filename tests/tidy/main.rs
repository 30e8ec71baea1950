// SPDX-License-Identifier: Apache-2.0
//! Properties of this repository that a compiler does not check: which part imports which, how large files are, whether
//! documents and packaging name things that exist, and whether every rule that is cited is listed and tested.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod ceilings;
mod documents;
mod kubernetes;
mod layers;
mod packaging;
mod page;
mod rooms;
mod rules;
mod size;
mod tree;
mod types;
mod words;
