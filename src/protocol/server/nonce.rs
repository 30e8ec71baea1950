//! The nonces of one stream.
//!
//! Owns their text: `<8 hex>-<counter>`, and a final `+` when more of the same answer follows. Refuses to know what they name.

use crate::xds::version::hex;

/// Writes and reads the nonces of one stream. K-11: a random prefix, so that a foreign nonce never matches by accident.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nonces {
    prefix: u32,
    last: u64,
}

impl Nonces {
    pub(super) const fn new(prefix: u32) -> Self {
        Self { prefix, last: 0 }
    }

    /// B-03, C-01: a number that was never used on this stream.
    pub(super) const fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    pub(super) fn text(self, number: u64, more: bool) -> String {
        let mut digits = [b'0'; DIGITS_MAX];
        let (mut rest, mut first) = (number, DIGITS_MAX);
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            (rest, first) = (rest / 10, first - 1);
            if rest == 0 {
                break;
            }
        }
        let mut text = Vec::with_capacity(PREFIX_LEN + 2 + DIGITS_MAX);
        text.extend_from_slice(&hex(self.prefix));
        text.push(b'-');
        text.extend_from_slice(digits.get(first..).unwrap_or_default());
        text.extend(more.then_some(b'+'));
        String::from_utf8(text).unwrap_or_default()
    }

    /// The number in a nonce of this stream.
    pub(super) fn number(self, text: &[u8]) -> Option<u64> {
        let rest = text.strip_prefix(&hex(self.prefix))?.strip_prefix(b"-")?;
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
