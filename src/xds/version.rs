// SPDX-License-Identifier: Apache-2.0
//! A version: the content hash of one resource, or the sum of such hashes over a set.
//!
//! Owns hashing and the text form. Does not know what is hashed and where a version is shown.

use std::fmt;

use xxhash_rust::xxh3::Xxh3;

/// A 128-bit content hash (K-09). Two halves keep the alignment, and so every table of versions, small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    high: u64,
    low: u64,
}

impl Version {
    /// The sum over no resource at all; as text it is 32 zeros, never an empty string (B-04).
    pub const EMPTY: Self = Self { high: 0, low: 0 };

    /// The version with these bits.
    #[must_use]
    pub const fn from_bits(bits: u128) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "the two halves of the number")]
        let (high, low) = ((bits >> 64) as u64, bits as u64);
        Self { high, low }
    }

    /// The bits as one number.
    #[must_use]
    pub const fn bits(self) -> u128 {
        (self.high as u128) << 64 | self.low as u128
    }

    /// Returns the version of a set after `other` has joined it. A sum makes a set's version independent of its order.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self::from_bits(self.bits().wrapping_add(other.bits()))
    }

    /// Returns the version of a set after `other` has left it.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self::from_bits(self.bits().wrapping_sub(other.bits()))
    }

    /// Returns the text, without the cost of a formatter: every response contains one.
    #[must_use]
    pub fn text(self) -> [u8; 32] {
        let mut text = [0; 32];
        let quarters = [self.high >> 32, self.high, self.low >> 32, self.low];
        for (digits, quarter) in text.as_chunks_mut().0.iter_mut().zip(quarters) {
            #[expect(clippy::cast_possible_truncation, reason = "the lower half is the quarter")]
            let quarter = quarter as u32;
            *digits = hex(quarter);
        }
        text
    }

    /// Parses a version that a relay wrote. `None`: another server wrote it, and it equals no version of a relay.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.len() == 32 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        if !digits {
            return None;
        }
        u128::from_str_radix(text, 16).ok().map(Self::from_bits)
    }
}

/// A version by half of its bits, for large tables of what clients say that they hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brief(u64);

impl Brief {
    /// Any version at all.
    pub const ANY: Self = Self(0);

    /// The bits as a number.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }
}

impl From<Version> for Brief {
    fn from(version: Version) -> Self {
        Self(version.low)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(str::from_utf8(&self.text()).unwrap_or_default())
    }
}

/// The hexadecimal digits of a number, all at once: four bits go into each byte, and what is above nine becomes a letter.
#[must_use]
pub fn hex(number: u32) -> [u8; 8] {
    let mut digits = u64::from(number);
    for (shift, mask) in [
        (16, 0x0000_ffff_0000_ffff),
        (8, 0x00ff_00ff_00ff_00ff),
        (4, 0x0f0f_0f0f_0f0f_0f0f),
    ] {
        digits = (digits | digits << shift) & mask;
    }
    let letters = (digits + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101;
    (digits + 0x3030_3030_3030_3030 + letters * u64::from(b'a' - b'9' - 1)).to_be_bytes()
}

/// Hashes fields one after the other, each with its length, so that different lists of fields never hash the same bytes.
pub struct Hasher(Xxh3);

impl Hasher {
    /// Creates a hasher; a different `seed` gives an unrelated hash of the same fields.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Xxh3::with_seed(seed))
    }

    /// Adds one field.
    pub fn field(&mut self, bytes: &[u8]) {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    /// Adds a number, as a field of eight bytes.
    pub fn number(&mut self, number: usize) {
        let mut field = [0; 16];
        let halves = field.as_chunks_mut().0.iter_mut();
        for (half, number) in halves.zip([8, number as u64]) {
            *half = number.to_le_bytes();
        }
        self.0.update(&field);
    }

    /// The hash over all fields.
    pub fn finish(&self) -> Version {
        Version::from_bits(self.0.digest128())
    }
}
