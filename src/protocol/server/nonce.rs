// SPDX-License-Identifier: Apache-2.0
//! The nonces of one stream.
//!
//! Owns their text: `<8 hex>-<counter>`, and a final `+` if more of the same answer follows. Does not know which response a nonce
//! names.

use std::fmt;

use xds::hex;

/// A nonce as sent on the wire. It has a fixed size, so no response allocates memory for its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonce {
    text: [u8; TEXT_LEN_MAX],
    first: u8,
}

/// Writes and reads the nonces of one stream. K-11: their random prefix makes sure that a foreign nonce does not match by
/// accident.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nonces {
    prefix: [u8; PREFIX_LEN],
    last: u64,
}

impl Nonce {
    /// Returns the text.
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

    /// B-03, C-01: returns a number that was never used on this stream.
    pub(super) const fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Returns how many were given: each response has one.
    pub(super) const fn given(&self) -> u64 {
        self.last
    }
    /// Returns the text of a nonce. It is written backwards, from the counter's last digit.
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

    /// Returns the number in a nonce of this stream.
    pub(super) fn number(self, text: &[u8]) -> Option<u64> {
        let rest = text.strip_prefix(&self.prefix)?.strip_prefix(b"-")?;
        let digits = rest.strip_suffix(b"+").unwrap_or(rest);
        // Accepts only the form that `text` writes; other forms that a parser would accept were never sent.
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

/// The digits of the prefix, and of the longest number.
const PREFIX_LEN: usize = 8;
const DIGITS_MAX: usize = 20;
/// Both, with the `-` between them and the `+` at the end.
const TEXT_LEN_MAX: usize = PREFIX_LEN + 1 + DIGITS_MAX + 1;

#[cfg(test)]
mod tests {
    use super::*;

    /// B-08, K-11: a text that differs from every sent nonce is none.
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
