//! The server's half of the protocol: one stream of one client, as a machine.
//!
//! How a response comes about: [`Server`] passes a request to the `subscription` of its type (`request` reads it). The types are
//! then polled in their `order`. `compose` builds the next response, as `partial` or `full` state, from what `say` decides for
//! each name. The response is a `flight` until the client acknowledges or rejects it. Only what was sent counts as held by the
//! client: what did not fit is still to be sent.

mod asked;
mod asked_collections;
mod beats;
mod carry_out;
mod cold;
mod compose;
mod covered;
mod done;
mod entitled;
mod entry;
mod errors;
mod extra;
mod fate;
mod flight;
mod flights;
mod full;
mod gates;
mod glances;
mod greeting;
mod held_names;
mod interest;
mod laggard;
mod name_faults;
mod nonce;
mod order;
mod other_names;
mod owed;
mod partial;
mod plan;
mod portrait;
mod refused;
mod request;
mod say;
mod shared;
mod sight;
mod slices;
mod sorted;
mod spellings;
mod stream;
mod subscription;
mod whole;

pub use flight::{Changed, Receipt, ReceiptKind, Response};
pub(crate) use name_faults::NameBound;
pub use name_faults::{NameFault, NameFaults};
pub use nonce::Nonce;
pub use portrait::{Portrait, Stand};
pub use slices::{Changing, Listing, Progress, SLICE};
pub use stream::{Opening, Server};
