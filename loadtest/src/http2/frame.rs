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
