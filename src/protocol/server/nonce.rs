//! The nonces of one stream.
//!
//! Owns their text: `<8 hex>-<counter>`, and a final `+` when more of the same answer follows. Refuses to know what they name.

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
        format!("{:08x}-{number}{}", self.prefix, if more { "+" } else { "" })
    }

    /// The number in a nonce of this stream.
    pub(super) fn number(self, text: &str) -> Option<u64> {
        let (prefix, rest) = text.split_once('-')?;
        let digits = rest.strip_suffix('+').unwrap_or(rest);
        // Only as `text` writes it: what a parser would take besides was never given.
        let plain = |text: &str, digit: fn(&u8) -> bool| text.as_bytes().iter().all(digit);
        let ours = prefix.len() == 8
            && plain(prefix, |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
            && u32::from_str_radix(prefix, 16) == Ok(self.prefix);
        let written = plain(digits, u8::is_ascii_digit) && !digits.starts_with('0');
        let number = digits.parse().ok()?;
        (ours && written && number <= self.last).then_some(number)
    }
}

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
                assert_eq!(nonces.number(&nonces.text(number, more)), Some(number));
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
            assert_eq!(nonces.number(foreign), None, "{foreign}");
        }
    }
}
