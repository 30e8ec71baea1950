// SPDX-License-Identifier: Apache-2.0
//! The command line: the arguments and the pages of help.
//!
//! Owns the names of flags. Refuses to know what the commands do.

pub(crate) mod arguments;
pub(crate) mod pages;
