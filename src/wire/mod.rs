// SPDX-License-Identifier: Apache-2.0
//! Bytes on the wire towards clients: gRPC messages, sockets, and the way from one to the other without copies.
//!
//! Owns framing, the encoding of responses around shared bytes, the gathering of small writes, and what all connections share: the memory
//! for unfinished requests, and the turns of large ones. Knows nothing of sessions.

mod beginning;
mod budget;
mod cork;
mod deadline;
mod encoding;
mod frame;
mod gathering;
mod inflating;
mod listen;
mod pieces;
mod proxy;
mod response;
mod rope;
mod scan;
mod sealed;
mod shared_slices;
mod signal;
mod socket_file;
mod turn;

pub use budget::{Budget, Charge, Share, Short};
pub use cork::{COPIED_BYTES_MAX, Cork, Corked, Flow, GATHERED_BYTES_MAX};
pub use deadline::timeout;
pub use encoding::{ACCEPT_ENCODING, ACCEPTED_ENCODINGS, ENCODING, Encoding};
pub use frame::{Deframer, Read};
pub use listen::{Listener, Peer, Socket};
pub use pieces::Pieces;
pub use proxy::{ProxyFault, is_proxy_header, proxied};
pub use response::{ResponseFields, encode, encode_gzip, message, message_before, message_of};
pub use rope::{Rope, RopeProgress};
pub use scan::{Malformed, Scan, acknowledgement, around, end_after};
pub use sealed::{HANDSHAKE, Sealed, hello};
pub use shared_slices::SharedSlices;
pub use socket_file::owners;
pub use turn::{Permit, StreamTurns};
