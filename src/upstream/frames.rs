// SPDX-License-Identifier: Apache-2.0
//! Reads the frame headers in a server's bytes: data, GOAWAY, and whether it is HTTP/2 at all.
//!
//! Owns the borders of HTTP/2 frames. Knows nothing of streams and headers.

/// Follows the HTTP/2 frames in a stream of bytes.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// The header of the frame that is being read.
    header: Vec<u8>,
    /// How many bytes of its payload are still to come.
    left: usize,
    farewell: Option<Vec<u8>>,
    begun: bool,
}

/// What was noticed in some bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Noticed {
    /// They contained a part of a message.
    pub(super) data: bool,
    /// The first frame is not SETTINGS, so this is not HTTP/2.
    pub(super) foreign: bool,
    /// The server's GOAWAY frame.
    pub(super) farewell: Option<Farewell>,
}

/// Why a server closes the connection: its GOAWAY frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Farewell {
    /// The HTTP/2 error code; 0: no error.
    pub code: u32,
    /// The frame's debug data.
    pub words: String,
}

impl Farewell {
    /// Whether the server closed the connection because of too many pings.
    pub(super) const fn is_too_many_pings(&self) -> bool {
        self.code == ENHANCE_YOUR_CALM
    }
}

const HEADER: usize = 9;
const DATA: u8 = 0;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const ENHANCE_YOUR_CALM: u32 = 11;
/// The debug data is kept up to this size.
const WORDS: usize = 256;

impl Frames {
    /// Reads the next bytes.
    pub(super) fn read(&mut self, mut bytes: &[u8]) -> Noticed {
        let mut noticed = Noticed::default();
        while !bytes.is_empty() {
            if self.left == 0 {
                let (head, rest) = bytes.split_at(bytes.len().min(HEADER - self.header.len()));
                self.header.extend_from_slice(head);
                bytes = rest;
                if let Some(kind) = self.kind() {
                    noticed.foreign |= !std::mem::replace(&mut self.begun, true) && kind != SETTINGS;
                }
                if let [a, b, c, kind, _, _, _, _, _] = *self.header {
                    self.left = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
                    self.farewell = (kind == GOAWAY).then(Vec::new);
                }
            } else {
                let (payload, rest) = bytes.split_at(bytes.len().min(self.left));
                noticed.data |= self.kind() == Some(DATA);
                if let Some(farewell) = &mut self.farewell {
                    farewell.extend_from_slice(payload.get(..WORDS.min(payload.len())).unwrap_or_default());
                }
                self.left -= payload.len();
                bytes = rest;
            }
            if self.left == 0 && self.header.len() == HEADER {
                self.header.clear();
                noticed.farewell = self.farewell.take().as_deref().and_then(farewell).or(noticed.farewell);
            }
        }
        noticed
    }

    fn kind(&self) -> Option<u8> {
        self.header.get(3).copied()
    }
}

/// The payload is the last stream's number, the error code, and debug data, which may be any bytes.
fn farewell(payload: &[u8]) -> Option<Farewell> {
    let code = payload.get(4..8)?.try_into().ok()?;
    let words = payload.get(8..).unwrap_or_default();
    Some(Farewell {
        code: u32::from_be_bytes(code),
        words: String::from_utf8_lossy(words.get(..WORDS.min(words.len())).unwrap_or_default()).into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
        let size = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let head = [size[1], size[2], size[3], kind, 0, 0, 0, 0, 1];
        [head.as_slice(), payload].concat()
    }

    /// The same is noticed wherever the bytes are cut.
    #[test]
    fn cuts_do_not_matter() {
        let farewell = [&[0, 0, 0, 1, 0, 0, 0, 11], b"too_many_pings".as_slice()].concat();
        let bytes = [frame(4, &[]), frame(1, b"head"), frame(0, b"data"), frame(7, &farewell)].concat();
        for cut in 1..bytes.len() {
            let mut frames = Frames::default();
            let (mut data, mut last) = (0, None);
            for part in bytes.chunks(cut) {
                let noticed = frames.read(part);
                assert!(!noticed.foreign);
                data += usize::from(noticed.data);
                last = noticed.farewell.or(last);
            }
            assert!((1..=4).contains(&data), "cut at {cut}: {data}");
            let last = last.unwrap();
            assert_eq!((last.code, last.words.as_str()), (11, "too_many_pings"));
            assert!(last.is_too_many_pings());
        }
    }

    /// Bytes that do not begin with SETTINGS are not HTTP/2.
    #[test]
    fn foreign_words() {
        for words in ["HTTP/1.1 400 Bad Request", "\u{15}\u{3}\u{3}\0\u{2}\u{2}F"] {
            assert!(Frames::default().read(words.as_bytes()).foreign);
        }
        assert!(!Frames::default().read(&frame(4, b"settings")).foreign);
    }
}
