//! Bytes on the wire towards clients: gRPC messages, sockets, and the way from one to the other without copies.
//!
//! Owns framing, encoding of responses around shared bytes, and the gathering of small writes. Refuses to know sessions.

pub mod afloat;
pub mod budget;
pub mod cork;
pub mod deadline;
pub mod frame;
pub mod gathering;
mod inflating;
pub mod listen;
pub mod response;
pub mod rope;
pub mod scan;
pub mod sealed;
mod signal;

pub use afloat::Afloat;
pub use budget::{Budget, Charge, Share, Short};
pub use cork::{Cork, Corked, Flow};
pub use deadline::timeout;
pub use frame::{Deframer, Encoding, Read};
pub use listen::{Listener, Peer, Socket};
pub use response::{Answer, encode, message};
pub use rope::{Progress, Rope};
pub use scan::{Scan, acknowledgement, around};
pub use sealed::Sealed;
