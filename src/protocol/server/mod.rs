// SPDX-License-Identifier: Apache-2.0
//! The server's half of the protocol: one stream of one client, as a machine.
//!
//! How a response comes about: [`Server`] passes a request to the `session` of its type, which notes in `want` and `ledger` what the
//! client asks for. The types are then polled in their order. What is due is the difference between the ledger (what the client was
//! sent) and the lens (what it should hold). A writer turns as much of it as fits into a response, and notes in the ledger exactly
//! what it has written. The response is a flight until the client acknowledges or rejects it.

mod asked;
mod books;
mod caller;
mod flights;
mod gates;
mod ledger;
mod name_faults;
mod nonce;
mod request;
mod response;
mod session;
mod stream;
mod turn;
mod waits;
mod want;

pub use caller::Opening;
pub(crate) use name_faults::NameBound;
pub use name_faults::{NameFault, NameFaults};
pub use nonce::Nonce;
pub use request::ClientRequest;
pub use response::{Changed, Receipt, ReceiptKind, RejectedResponse, Response, Told};
pub use stream::{Progress, Server};
pub use turn::SLICE;
