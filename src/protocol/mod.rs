// SPDX-License-Identifier: Apache-2.0
//! The protocol as pure state machines: no I/O, no clock, no randomness; time is an argument.
//!
//! Owns the messages of the protocol and their timing. Knows nothing of sockets, tasks and the cache.

mod backoff;
mod client;
mod demand;
mod dialects;
mod division;
mod end;
mod ending;
mod fallback;
mod gate;
mod holds;
mod node;
mod poll;
mod rejections;
mod server;
mod settings;
mod sorted;
mod suspects;
mod user_agent;

pub use backoff::{Backoff, Pause};
pub use client::{
    Arrival, Client, ClientSettings, Cutter, Decided, Doubt, FIELD_BYTES_MIN, Parted, Received, Reported, Request,
    Rhythm, Unreadable, come_through, stated,
};
pub use demand::{Demand, LegKind};
pub use dialects::{Declined, Dialects, Next, Trial, Why};
pub use division::{Division, Streams};
pub use end::{Code, End};
pub use ending::{Ending, Refusal};
pub use fallback::{Fallback, Look, Step};
pub use gate::{OpenLimit, Ticket};
pub use holds::Holds;
pub use node::read_node;
pub use poll::{Poll, PollAnswer, PollContent};
pub use server::{
    Changed, ClientRequest, NameFault, NameFaults, Nonce, Opening, Progress, Receipt, ReceiptKind, RejectedResponse,
    Response, SLICE, Server, Told,
};
pub use settings::{StreamLimits, StreamSettings, StreamTimers};
pub use suspects::Suspects;
