//! The nonces of one stream.
//!
//! Owns their text: `<8 hex>-<counter>`, and a final `+` when more of the same answer follows. Refuses to know what they name.

use std::fmt;

use crate::xds::hex;

/// A nonce as it goes on the wire: every response has one, so its text takes no memory of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonce {
    text: [u8; TEXT_LEN_MAX],
    first: u8,
}

/// Writes and reads the nonces of one stream. K-11: a random prefix, so that a foreign nonce never matches by accident.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nonces {
    prefix: [u8; PREFIX_LEN],
    last: u64,
}

impl Nonce {
    /// The text.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.text.get(self.first.into()..).unwrap_or_default()
    }

    fn precede<const N: usize>(&mut self, bytes: &[u8; N]) {
        let first = usize::from(self.first).saturating_sub(N);
        if let Some(place) = self.text.get_mut(first..).and_then(<[u8]>::first_chunk_mut) {
            *place = *bytes;
            self.first = first as u8;
        }
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(str::from_utf8(self.as_bytes()).unwrap_or_default())
    }
}

impl Nonces {
    pub(super) fn new(prefix: u32) -> Self {
        Self {
            prefix: hex(prefix),
            last: 0,
        }
    }

    /// B-03, C-01: a number that was never used on this stream.
    pub(super) const fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Written from its end, where the counter's last digit is.
    pub(super) fn text(self, number: u64, more: bool) -> Nonce {
        let mut nonce = Nonce {
            text: [0; TEXT_LEN_MAX],
            first: TEXT_LEN_MAX as u8,
        };
        if more {
            nonce.precede(b"+");
        }
        let mut rest = number;
        loop {
            nonce.precede(&[b'0' + (rest % 10) as u8]);
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        nonce.precede(b"-");
        nonce.precede(&self.prefix);
        nonce
    }

    /// The number in a nonce of this stream.
    pub(super) fn number(self, text: &[u8]) -> Option<u64> {
        let rest = text.strip_prefix(&self.prefix)?.strip_prefix(b"-")?;
        let digits = rest.strip_suffix(b"+").unwrap_or(rest);
        // Only as `text` writes it: what a parser would take besides was never given.
        if digits.is_empty() || digits.starts_with(b"0") {
            return None;
        }
        let number = digits.iter().try_fold(0_u64, |number, digit| {
            let digit = u64::from(digit.checked_sub(b'0').filter(|digit| *digit < 10)?);
            number.checked_mul(10)?.checked_add(digit)
        })?;
        (number <= self.last).then_some(number)
    }
}

/// Digits of the prefix, and of the longest number.
const PREFIX_LEN: usize = 8;
const DIGITS_MAX: usize = 20;
/// With the sign between them and the one at the end.
const TEXT_LEN_MAX: usize = PREFIX_LEN + 1 + DIGITS_MAX + 1;

#[cfg(test)]
mod tests {
    use super::*;

    /// B-08, K-11: what is not written exactly as it was given was never given.
    #[test]
    fn only_what_was_given() {
        let mut nonces = Nonces::new(0x0a1b_2c3d);
        for number in 1..=12 {
            assert_eq!(nonces.next(), number);
            for more in [false, true] {
                assert_eq!(nonces.number(nonces.text(number, more).as_bytes()), Some(number));
            }
        }
        for foreign in [
            "",
            "-",
            "0a1b2c3d",
            "0a1b2c3d-",
            "0a1b2c3d-0",
            "0a1b2c3d-01",
            "0a1b2c3d-+1",
            "0a1b2c3d-1++",
            "0a1b2c3d-13",
            "0a1b2c3d-99999999999999999999",
            "0A1B2C3D-1",
            "+a1b2c3d-1",
            "00a1b2c3d-1",
            "a1b2c3d-1",
            "0a1b2c3e-1",
        ] {
            assert_eq!(nonces.number(foreign.as_bytes()), None, "{foreign}");
        }
    }
}
