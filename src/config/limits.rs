// SPDX-License-Identifier: Apache-2.0
//! The limits for peers and views, one row each. Owns their numbers and what is said of them; other modules enforce them.

use super::quantity::{MIB, OrAuto, Size};
use super::reading::{Shape, single};
use super::rows::{Kind, section};
use crate::protocol::StreamLimits;

section!(
/// The limits for peers and views. 0 means no limit.
#[derive(PartialEq, Eq)]
pub struct Limits {
    /// Open connections of clients, over all listeners. 0: the limit on open files bounds them.
    Now "connections" => connections: usize = 0;
    /// Those of one identity, which is the address of a client. Without `proxy_protocol`, all behind a balancer have its address.
    Now "connections_per_identity" => connections_per_identity: usize = 0;
    /// Open gRPC streams, over all listeners.
    Now "streams" => streams: usize = 0;
    /// Those of one identity, which is the address of a client.
    Now "streams_per_identity" => streams_per_identity: usize = 0;
    /// Streams that begin in a second, over all listeners.
    Now "new_streams_per_second" => new_streams_per_second: usize = 0;
    /// Names that all streams together subscribe to. auto: one for every 32 bytes of `memory`.
    Now "subscriptions" => subscriptions: Option<usize> as OrAuto = None;
    /// Names that one stream subscribes to, over all types.
    Next "names_per_stream" => names_per_stream: usize = StreamLimits::default().names_per_stream;
    /// Bytes of memory of the process. auto: 80% of the nearest limit of the system.
    Now "memory" => memory: MemoryLimit = MemoryLimit::Auto;
    /// Bytes of one message of a client, decompressed. Unfinished messages of all clients: four times as much.
    Next "request" => request: usize as Size<1024> = 16 * MIB;
    /// Bytes of one message of a control plane, where each resource counts as at least 256 bytes; of all files of a source together.
    Next "upstream_message" => upstream_message: usize as Size<1024> = 64 * MIB;
    /// Requests of one stream per second. Those beyond are read later.
    Next "requests_per_second" => requests_per_second: usize = 1000;
    /// Views. It is needed because clients choose the values by which `classes` separates them. One connection gets at most as many as
    /// are left for all others: the half, if it is alone.
    Now "views" => views: usize = 256;
    /// Names that one view asks the control plane for. One connection gets at most as many as are left for all others.
    Now "names_per_view" => names_per_view: usize = 1_000_000;
    /// Bytes of replaced content of a view, kept for 10 minutes for clients that reject the current one and have nothing; of a type at most
    /// as much as it has, or 1MiB.
    Now "history_bytes" => history_bytes: usize as Size = 16 * MIB;
});

/// The limit of the memory of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryLimit {
    /// Four fifths of the nearest limit of the system: of the cgroup, of the process, or the memory of the machine.
    Auto,
    /// So many bytes; 0 means no limit.
    Bytes(usize),
}

/// Less is a mistake, such as `16` for `16GiB`.
const MEMORY_LEAST: usize = 16 * MIB;

single!(
    MemoryLimit as Self: memory,
    Kind::words(&["auto"]).or(<Size<MEMORY_LEAST> as Shape<usize>>::kind()),
    |limit: &Self| match limit {
        Self::Auto => "auto".to_owned(),
        Self::Bytes(bytes) => <Size as Shape<usize>>::text(bytes),
    }
);

fn memory(text: &str) -> Result<MemoryLimit, String> {
    match (text, <Size as Shape<usize>>::parse(text)) {
        ("auto", _) => Ok(MemoryLimit::Auto),
        (_, Ok(bytes)) if bytes > 0 && bytes < MEMORY_LEAST => Err(format!(
            "in {bytes} bytes the relay could not serve anybody; write auto, a unit, or at least {MEMORY_LEAST} (0 = off)"
        )),
        (_, Ok(bytes)) => Ok(MemoryLimit::Bytes(bytes)),
        (_, Err(message)) => Err(message.replacen("write bytes or", "write auto, bytes or", 1)),
    }
}

impl Limits {
    /// Returns the keys with their values.
    pub fn cells(&self) -> Vec<(&'static str, String)> {
        <Self as Shape>::cells(self)
    }
}
