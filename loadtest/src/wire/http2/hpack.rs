// SPDX-License-Identifier: Apache-2.0
//! Header blocks for a client that announces an empty dynamic table: encodes requests as literals, and reads the status of a
//! response. Knows nothing of connections.

/// The fields of a response's header block that matter here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) status: Option<u16>,
    pub(crate) grpc_status: Option<String>,
    pub(crate) grpc_message: String,
}

/// A block that is malformed, or that refers to the dynamic table, which is announced as empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a block of headers cannot be read")]
pub(crate) struct Unreadable;

/// The indexes of statuses in the static table.
const STATUS: std::ops::RangeInclusive<usize> = 8..=14;
/// The statuses at these indexes.
const STATUSES: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];

impl Head {
    /// Reads a whole block.
    pub(crate) fn decode(mut block: &[u8]) -> Result<Self, Unreadable> {
        let mut head = Self::default();
        while let Some(first) = block.first().copied() {
            if first & 0x80 != 0 {
                let index = integer(&mut block, 7)?;
                // Beyond the static table there are no entries.
                if index == 0 || index > 61 {
                    return Err(Unreadable);
                }
                if let Some(status) = index.checked_sub(8).and_then(|at| STATUSES.get(at)) {
                    head.status = Some(*status);
                }
            } else if first & 0xe0 == 0x20 {
                let _ = integer(&mut block, 5)?;
            } else {
                let index = integer(&mut block, if first & 0x40 != 0 { 6 } else { 4 })?;
                let name = match index {
                    0 => Some(string(&mut block)?),
                    1..=61 => STATUS.contains(&index).then(|| b":status".to_vec()),
                    _ => return Err(Unreadable),
                };
                let value = string(&mut block)?;
                match name.as_deref() {
                    Some(b":status") => head.status = text(value).parse().ok(),
                    Some(b"grpc-status") => head.grpc_status = Some(text(value)),
                    Some(b"grpc-message") => head.grpc_message = unescaped(value),
                    Some(_) | None => {}
                }
            }
        }
        Ok(head)
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Decodes gRPC's percent encoding, such as `%20`.
fn unescaped(bytes: Vec<u8>) -> String {
    let (mut out, mut rest) = (Vec::with_capacity(bytes.len()), bytes.as_slice());
    while let Some((first, after)) = rest.split_first() {
        let digits = after.first_chunk::<2>().filter(|_| *first == b'%');
        let byte = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        out.push(byte.unwrap_or(*first));
        rest = after.get(if byte.is_some() { 2 } else { 0 }..).unwrap_or_default();
    }
    text(out)
}

/// Encodes a request as literals without indexing.
pub(crate) fn encode(headers: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::with_capacity(160);
    for (name, value) in headers {
        out.push(0);
        for text in [name, value] {
            push_integer(&mut out, text.len());
            out.extend_from_slice(text.as_bytes());
        }
    }
    out
}

/// Writes an integer with a prefix of seven bits; the eighth bit is 0, for no Huffman code.
fn push_integer(out: &mut Vec<u8>, value: usize) {
    let low = |value: usize| u8::try_from(value & 0x7f).unwrap_or_default();
    if value < 127 {
        out.push(low(value));
        return;
    }
    out.push(127);
    let mut rest = value - 127;
    while rest >= 128 {
        out.push(low(rest) | 0x80);
        rest >>= 7;
    }
    out.push(low(rest));
}

fn integer(block: &mut &[u8], bits: u32) -> Result<usize, Unreadable> {
    let (first, mut rest) = block.split_first().ok_or(Unreadable)?;
    let mask = (1_u16 << bits) - 1;
    let mut value = usize::from(u16::from(*first) & mask);
    if value == usize::from(mask) {
        for shift in [0, 7, 14, 21] {
            let (byte, after) = rest.split_first().ok_or(Unreadable)?;
            rest = after;
            value += usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                *block = rest;
                return Ok(value);
            }
        }
        return Err(Unreadable);
    }
    *block = rest;
    Ok(value)
}

fn string(block: &mut &[u8]) -> Result<Vec<u8>, Unreadable> {
    let compressed = block.first().ok_or(Unreadable)? & 0x80 != 0;
    let length = integer(block, 7)?;
    let (bytes, rest) = block.split_at_checked(length).ok_or(Unreadable)?;
    *block = rest;
    if compressed { expand(bytes) } else { Ok(bytes.to_vec()) }
}

/// The number of bits of each byte in HPACK's Huffman code. The code is canonical, so the lengths define it.
const BITS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28,
    28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12,
    10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6,
    5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22,
    22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20,
    22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28,
    27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28,
    27, 27, 27, 27, 27, 26, 30,
];

/// Returns every code, shortest first: its bits, their number, and the byte.
fn codes() -> impl Iterator<Item = (u32, u8, u8)> {
    let (mut code, mut length) = (0_u32, 0_u8);
    (5..=30_u8).flat_map(move |bits| {
        let of_length = BITS.iter().take(256).zip(0..=255_u8);
        let of_length: Vec<_> = of_length
            .filter(|(it, _)| **it == bits)
            .map(|(_, byte)| {
                code <<= bits - length;
                length = bits;
                code += 1;
                (code - 1, bits, byte)
            })
            .collect();
        of_length
    })
}

fn expand(bytes: &[u8]) -> Result<Vec<u8>, Unreadable> {
    let table: Vec<_> = codes().collect();
    let (mut out, mut code, mut length) = (Vec::with_capacity(bytes.len() * 2), 0_u32, 0_u8);
    for byte in bytes {
        for bit in (0..8).rev() {
            code = code << 1 | u32::from(byte >> bit & 1);
            length += 1;
            if let Some((_, _, byte)) = table.iter().find(|(it, bits, _)| (*it, *bits) == (code, length)) {
                out.push(*byte);
                (code, length) = (0, 0);
            } else if length >= 30 {
                return Err(Unreadable);
            }
        }
    }
    // The padding must be the start of the longest code: only ones, fewer than eight.
    if length < 8 && code == (1 << length) - 1 {
        Ok(out)
    } else {
        Err(Unreadable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_in_every_form() {
        // Indexed; a literal with a name of the table; a literal in Huffman's code, as in the RFC: "302".
        assert_eq!(Head::decode(&[0x88]).unwrap().status, Some(200));
        assert_eq!(Head::decode(&[0x48, 0x03, b'4', b'0', b'3']).unwrap().status, Some(403));
        assert_eq!(Head::decode(&[0x48, 0x82, 0x64, 0x02]).unwrap().status, Some(302));
        let block = encode(&[("grpc-status", "14"), ("grpc-message", "100%%20away%2")]);
        let head = Head::decode(&block).unwrap();
        assert_eq!(
            (head.grpc_status.as_deref(), head.grpc_message.as_str()),
            (Some("14"), "100% away%2")
        );
    }

    /// The examples of RFC 7541.
    #[test]
    fn text_in_the_huffman_code_is_read() {
        let name = [0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff];
        assert_eq!(expand(&name).unwrap(), b"www.example.com");
        assert_eq!(expand(&[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf]).unwrap(), b"no-cache");
        assert_eq!(expand(&[0x00, 0x00]), Err(Unreadable));
    }

    #[test]
    fn a_block_that_needs_a_dynamic_table_is_refused() {
        assert_eq!(Head::decode(&[0xbe]), Err(Unreadable));
        assert_eq!(Head::decode(&[0x48, 0x85, 0x64]), Err(Unreadable));
    }
}
