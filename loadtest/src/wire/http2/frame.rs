// SPDX-License-Identifier: Apache-2.0
//! The head of a frame, and reading of payloads. Knows nothing of connections.

use super::Broken;

pub(super) struct FrameHead {
    pub(super) length: usize,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

pub(super) const FRAME_BYTES_MAX: usize = 16_384;
pub(super) const HEAD_BYTES: usize = 9;
pub(super) const DATA: u8 = 0;
pub(super) const PADDED: u8 = 8;
pub(super) const SETTINGS: u8 = 4;
/// The first two bytes of an alert of TLS.
const TLS_ALERT: [u8; 2] = [21, 3];
const GREETING_BYTES_MAX: usize = 60;

/// Whether the first frame of a peer is complete enough to be known. Fails if it is not the one that HTTP/2 begins with.
pub(super) fn greets(answer: &[u8]) -> Result<bool, Broken> {
    match answer {
        [_, _, _, SETTINGS, ..] => Ok(true),
        [..] if answer.len() <= 3 => Ok(false),
        [..] if answer.starts_with(&TLS_ALERT) => Err(Broken::Tls),
        [..] => {
            let line = answer
                .split(|byte| matches!(byte, b'\r' | b'\n'))
                .next()
                .unwrap_or_default();
            let text = String::from_utf8_lossy(line.get(..GREETING_BYTES_MAX).unwrap_or(line));
            Err(Broken::Greeting(text.escape_debug().to_string()))
        }
    }
}

/// Returns how many bytes of a frame are needed to handle it: for data only the head, because data is handed on in pieces.
pub(super) fn needed(frame: &[u8]) -> Result<usize, Broken> {
    let Some((head, _)) = parse(frame) else {
        return Ok(HEAD_BYTES);
    };
    if head.length > FRAME_BYTES_MAX {
        return Err(Broken::Large(head.length));
    }
    let streamed = head.kind == DATA && head.flags & PADDED == 0;
    Ok(if streamed { HEAD_BYTES } else { HEAD_BYTES + head.length })
}

/// Returns what answers with this line instead of HTTP/2.
pub(super) fn kind_of(line: &str) -> &'static str {
    match line.starts_with("HTTP/") {
        true => "an HTTP/1 server",
        false => "a server that does not speak HTTP/2",
    }
}

pub(super) fn parse(frame: &[u8]) -> Option<(FrameHead, &[u8])> {
    let ([a, b, c, kind, flags, stream @ ..], payload) = frame.split_first_chunk::<HEAD_BYTES>()?;
    let head = FrameHead {
        length: usize::try_from(u32::from_be_bytes([0, *a, *b, *c])).ok()?,
        kind: *kind,
        flags: *flags,
        stream: u32::from_be_bytes(*stream) & 0x7fff_ffff,
    };
    Some((head, payload))
}

pub(super) fn unpadded(payload: &[u8]) -> &[u8] {
    let Some((padding, rest)) = payload.split_first() else {
        return &[];
    };
    rest.get(..rest.len().saturating_sub(usize::from(*padding)))
        .unwrap_or_default()
}

pub(super) fn integer(payload: &[u8]) -> u32 {
    payload
        .first_chunk::<4>()
        .map_or(0, |bytes| u32::from_be_bytes(*bytes) & 0x7fff_ffff)
}
