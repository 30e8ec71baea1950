//! Validates the limits.

use super::Check;
use crate::config::reading::Scalar;
use crate::config::{Limits, MemoryLimit, quantity, shape};

/// Real names, nodes and messages are larger than this, so smaller limits are mistakes, such as `16` for `16MiB`.
const NAME_LEAST: usize = 16;
const NODE_LEAST: usize = 64;
const MESSAGE_LEAST: usize = 1024;
const MEMORY_LEAST: usize = 16 << 20;

pub(super) fn limits(check: &mut Check, limits: &shape::LimitsShape) -> Limits {
    let usual = Limits::default();
    macro_rules! count {
        ($name:ident) => {
            count(check, stringify!($name), limits.$name.as_ref(), usual.$name)
        };
    }
    macro_rules! size {
        ($name:ident, $least:expr) => {
            size(
                check,
                stringify!($name),
                limits.$name.as_ref(),
                usual.$name,
                $least,
            )
        };
    }
    let memory = check.read("limits.memory", limits.memory.as_ref(), memory);
    let memory = memory.unwrap_or(usual.memory);
    let subscriptions = check.read("limits.subscriptions", limits.subscriptions.as_ref(), subscriptions);
    let request = size!(request, MESSAGE_LEAST);
    fits(check, memory, request, limits.memory.as_ref());
    Limits {
        connections: count!(connections),
        connections_per_identity: count!(connections_per_identity),
        streams: count!(streams),
        streams_per_identity: count!(streams_per_identity),
        new_streams_per_second: count!(new_streams_per_second),
        subscriptions: subscriptions.unwrap_or(usual.subscriptions),
        streams_per_connection: count!(streams_per_connection),
        types_per_stream: count!(types_per_stream),
        names_per_stream: count!(names_per_stream),
        name_bytes: size!(name_bytes, NAME_LEAST),
        window_bytes: size!(window_bytes, 0),
        node_bytes: size!(node_bytes, NODE_LEAST),
        memory,
        request,
        upstream_message: size!(upstream_message, MESSAGE_LEAST),
        requests_per_second: count!(requests_per_second),
        handshakes: count!(handshakes),
        views: count!(views),
        names_per_view: count!(names_per_view),
        pinned_bytes_per_view: size!(pinned_bytes_per_view, 0),
        history_bytes: size!(history_bytes, 0),
    }
}

fn count(check: &mut Check, name: &str, given: Option<&Scalar>, usual: usize) -> usize {
    let given = check.read(&format!("limits.{name}"), given, quantity::count);
    given.unwrap_or(usual)
}

/// Reads a size that is off, or at least `least`.
fn size(check: &mut Check, name: &str, given: Option<&Scalar>, usual: usize, least: usize) -> usize {
    let enough = |text: &str| match quantity::size(text)? {
        0 => Ok(0),
        bytes if bytes < least => Err(format!(
            "with {bytes} bytes no peer could be served; write a unit, or at least {least} (0 = off)"
        )),
        bytes => Ok(bytes),
    };
    let given = check.read(&format!("limits.{name}"), given, enough);
    given.unwrap_or(usual)
}

/// Warns if a few large requests take all memory that there may be.
fn fits(check: &mut Check, memory: MemoryLimit, request: usize, given: Option<&Scalar>) {
    let MemoryLimit::Bytes(bytes @ 1..) = memory else {
        return;
    };
    if request == 0 || request > bytes / 2 {
        let message =
            "two unfinished requests of the size in limits.request (0 = any) could take all of it; lower that limit";
        check.warn(given.map(|given| given.place), "limits.memory", message);
    }
}

/// Reads `auto` or a size.
fn subscriptions(text: &str) -> Result<Option<usize>, String> {
    if text == "auto" {
        return Ok(None);
    }
    let count = quantity::count(text).map(Some);
    count.map_err(|message| message.replacen("write a", "write auto or a", 1))
}

fn memory(text: &str) -> Result<MemoryLimit, String> {
    if text == "auto" {
        return Ok(MemoryLimit::Auto);
    }
    match quantity::size(text) {
        Ok(bytes) if bytes > 0 && bytes < MEMORY_LEAST => Err(format!(
            "in {bytes} bytes the relay could not serve anybody; write auto, a unit, or at least {MEMORY_LEAST} (0 = off)"
        )),
        Ok(bytes) => Ok(MemoryLimit::Bytes(bytes)),
        Err(message) => Err(message.replacen("write bytes or", "write auto, bytes or", 1)),
    }
}
