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
        let number: u64 = rest.strip_suffix('+').unwrap_or(rest).parse().ok()?;
        let written = self.text(number, rest.ends_with('+'));
        (prefix.len() == 8 && written == text && number <= self.last).then_some(number)
    }
}
