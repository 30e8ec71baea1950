// SPDX-License-Identifier: Apache-2.0
//! Keys that the minor version before this one had, and what holds instead of each. Owns these words; a later version forgets them.

use super::reading::Unknown;

const WINDOW: &str = "always 4MiB of a type, and at most 64 responses";
const GUARD: &str = "`within` and `hold` stand in `guard` itself, and what is not written there is as usual. Always held are 15% of the names of \
                     a type, but at least 1 listener and 3 of other types, and 50% of endpoint assignments that become empty";

const VERDICTS: &str = "every client is sent what the control plane says, and one that rejects it and holds nothing is then sent older content";

const GONE: [(&str, &str); 14] = [
    ("guard.mass", GUARD),
    ("limits.handshakes", "always 64 of a listener at the same time"),
    ("limits.name_bytes", "always 4096"),
    ("limits.node_bytes", "always 64KiB"),
    ("limits.pinned_bytes_per_view", "always 256MiB"),
    ("limits.streams_per_connection", "always 4096"),
    ("limits.types_per_stream", "always 64"),
    ("limits.window_bytes", WINDOW),
    ("timers.move", "always 1s"),
    (
        "timers.pace",
        "the next response goes when the client has acknowledged the one before",
    ),
    ("timers.stream_age_jitter", "always 20%"),
    (
        "timers.wildcard_quiet",
        "always 250ms, and shorter once the pauses of a control plane are known",
    ),
    ("timers.write_stall", "always 60s"),
    ("verdicts", VERDICTS),
];

/// Returns what holds instead of an unknown key, if the version before this one had it.
pub(super) fn instead(unknown: &Unknown) -> Option<String> {
    // A class has the same keys of `guard`.
    let of_class = unknown
        .key
        .strip_prefix("classes[")
        .and_then(|rest| rest.split_once("]."));
    let key = of_class.map_or(unknown.key.as_str(), |(_, key)| key);
    let (_, holds) = GONE.iter().find(|(gone, _)| *gone == key)?;
    Some(format!("this key is gone: {holds}; remove it"))
}
