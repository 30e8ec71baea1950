// SPDX-License-Identifier: Apache-2.0
//! The fields of a snapshot, in bytes of which more may come.
//!
//! Owns how each kind of field is read. Does not know what the fields mean.

/// What is wrong with a snapshot.
#[derive(Debug, thiserror::Error)]
#[error("byte {offset}: {what}")]
pub struct SnapshotFault {
    pub(super) offset: usize,
    pub(super) what: String,
}

impl SnapshotFault {
    pub(super) fn at(offset: usize, what: impl Into<String>) -> Self {
        let what = what.into();
        Self { offset, what }
    }
}

/// Why reading does not go on.
#[derive(Debug)]
pub(super) enum Halt {
    /// So many bytes from the beginning of the item are needed.
    More(usize),
    Wrong(SnapshotFault),
}

impl From<SnapshotFault> for Halt {
    fn from(fault: SnapshotFault) -> Self {
        Self::Wrong(fault)
    }
}

/// What is left to read of an item and what follows it.
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    read: usize,
    /// Where the item begins in the snapshot.
    offset: usize,
}

impl<'a> Cursor<'a> {
    pub(super) const fn new(bytes: &'a [u8], offset: usize) -> Self {
        Self { bytes, read: 0, offset }
    }

    /// Returns how many bytes of the item are read.
    pub(super) const fn read(&self) -> usize {
        self.read
    }

    /// Returns the place in the snapshot.
    pub(super) const fn at(&self) -> usize {
        self.offset + self.read
    }

    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], Halt> {
        let end = self.read.saturating_add(len);
        let taken = self.bytes.get(self.read..end).ok_or(Halt::More(end))?;
        self.read = end;
        Ok(taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Halt> {
        Ok(self.take(1)?.first().copied().unwrap_or_default())
    }

    pub(super) fn number(&mut self) -> Result<usize, Halt> {
        let bytes = self.take(4)?.try_into().unwrap_or_default();
        Ok(u32::from_le_bytes(bytes) as usize)
    }

    pub(super) fn long(&mut self) -> Result<u64, Halt> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into().unwrap_or_default()))
    }

    pub(super) fn sized(&mut self) -> Result<&'a [u8], Halt> {
        let len = self.number()?;
        self.take(len)
    }

    pub(super) fn text(&mut self) -> Result<&'a str, Halt> {
        let at = self.at();
        let bytes = self.sized()?;
        std::str::from_utf8(bytes).map_err(|_| SnapshotFault::at(at, "a text is not UTF-8").into())
    }
}
