//! The client side of the relay: one stream of one client, as a machine.
//!
//! The way through: [`Server`] takes a request to the `subscription` of its type (`request` says what it means); what can be
//! said is asked for in the `order` of the types; `compose` builds the next response, `partial` or `full` state, from what there
//! is to `say` of each name; it is a `flight` until the client has settled it. What is in it counts as held, and nothing else:
//! what had no room is still to be said.

mod asked;
mod asked_collections;
mod audience;
mod beats;
mod carry_out;
mod cold;
mod compose;
mod covered;
mod done;
mod errors;
mod extra;
mod flight;
mod flights;
mod full;
mod gates;
mod glances;
mod held_names;
mod interest;
mod laggard;
mod nonce;
mod order;
mod partial;
mod plan;
mod refused;
mod request;
mod say;
mod shared;
mod slices;
mod sorted;
mod spellings;
mod stream;
mod subscription;

pub use flight::{Receipt, ReceiptKind, Response};
pub use nonce::Nonce;
pub use slices::{Changing, Listing, Progress, SLICE};
pub use stream::{Opening, Server};
pub use subscription::Status;
