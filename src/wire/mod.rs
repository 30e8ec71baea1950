//! Bytes on the wire towards clients: gRPC messages, sockets, and the way from one to the other without copies.
//!
//! Owns framing, encoding of responses around shared bytes, and the gathering of small writes. Refuses to know sessions.

pub mod afloat;
pub mod cork;
pub mod deadline;
pub mod frame;
pub mod gathered;
mod gathering;
pub mod listen;
pub mod response;
pub mod rope;
pub mod scan;
pub mod sealed;
mod signal;

pub use afloat::Afloat;
pub use cork::{Cork, Corked, Flow};
pub use deadline::timeout;
pub use frame::{Deframer, Encoding};
pub use gathered::Gathered;
pub use listen::{Listener, Peer, Socket};
pub use response::{Answer, encode, message};
pub use rope::{Progress, Rope};
pub use scan::{Scan, acknowledgement};
pub use sealed::Sealed;
