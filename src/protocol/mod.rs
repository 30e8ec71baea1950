//! The protocol as pure state machines: no I/O, no clock, no randomness; time is an argument.
//!
//! Owns what is said and when. Refuses to know sockets, tasks and the cache.

mod compose;
mod end;
mod flight;
mod full;
mod gates;
mod held_names;
mod node;
mod nonce;
mod order;
mod partial;
mod request;
mod server;
mod settings;
mod subscription;

pub use end::{Code, End};
pub use flight::{Receipt, ReceiptKind, Response};
pub use node::{RELAYS, read_node};
pub use server::{Opening, Server};
pub use settings::{Limits, Settings, Timers};
pub use subscription::Status;
