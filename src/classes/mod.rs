// SPDX-License-Identifier: Apache-2.0
//! Which clients share a view, and what a control plane sees of them.
//!
//! Owns who a client says it is, the rules that divide clients into classes, and what of a class is passed on. Knows nothing of
//! resources, of how rules are written in a file, nor of what a client may have.

mod class;
mod client_kind;
mod credentials;
mod marks;
mod node;
mod passes;
mod path;
mod pattern;
mod presented;
mod rules;
mod selector;

pub use class::Class;
pub use client_kind::ClientKind;
pub use credentials::{CredentialFiles, Credentials, Unfit};
pub use marks::{Marks, loop_at, loop_of, mark};
pub use node::{ASKS_ONCE, ENDPOINT_COLLECTIONS, Features, Locality, Node, RELAYS, UserAgent};
pub use passes::{Member, Members, Parts, Passes, Taken};
pub use path::{Path, member_path};
pub use pattern::{Fields, Pattern};
pub use presented::{Presented, escaped};
pub use rules::{Classes, Piece, Rule};
pub use selector::{IDENTITIES, Selector};
