//! The shared bytes on their way through one connection.
//!
//! The transport writes plain slices. This module finds the shared bytes that a slice is part of, so that the slice need not be
//! copied. Knows nothing of the content.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

/// The shared pieces of all ropes that the transport has not read to their ends.
#[derive(Debug, Default)]
pub struct SharedSlices(Mutex<Ropes>);

#[derive(Debug, Default)]
struct Ropes {
    pieces: Vec<Arc<[Bytes]>>,
    /// The rope and piece of the last slice that was found. The next slice is usually in the same piece or in the one after it.
    last: (usize, usize),
}

/// Copying a shorter slice costs less than referring to it.
pub(super) const SHARED_BYTES_MIN: usize = 2048;

impl SharedSlices {
    /// Adds the pieces of a rope that is given to the transport.
    pub(super) fn enter(&self, pieces: &Arc<[Bytes]>) {
        if is_worth(pieces) {
            self.0.lock().pieces.push(pieces.clone());
        }
    }

    /// Removes the pieces of a rope that was read or dropped.
    pub(super) fn leave(&self, pieces: &Arc<[Bytes]>) {
        if !is_worth(pieces) {
            return;
        }
        let mut ropes = self.0.lock();
        if let Some(at) = ropes.pieces.iter().position(|known| Arc::ptr_eq(known, pieces)) {
            ropes.pieces.swap_remove(at);
        }
        if ropes.pieces.is_empty() {
            // An idle connection holds no memory here.
            ropes.pieces = Vec::new();
        }
    }

    /// Returns the slice as a reference to shared bytes, if it is part of any on their way.
    pub(super) fn find(&self, slice: &[u8]) -> Option<Bytes> {
        let mut ropes = self.0.lock();
        let (rope, piece) = ropes.last;
        let near = ropes
            .pieces
            .get(rope)
            .into_iter()
            .flat_map(|pieces| pieces.iter().enumerate().skip(piece).take(2));
        let near = near.map(|(piece, bytes)| (rope, piece, bytes));
        let all = ropes.pieces.iter().enumerate();
        let all = all.flat_map(|(rope, pieces)| {
            pieces
                .iter()
                .enumerate()
                .map(move |(piece, bytes)| (rope, piece, bytes))
        });
        let found = near.chain(all).find(|(_, _, bytes)| contains(bytes, slice));
        let (rope, piece, bytes) = found?;
        let bytes = bytes.slice_ref(slice);
        ropes.last = (rope, piece);
        Some(bytes)
    }
}

/// Whether any piece is long enough to be looked for.
fn is_worth(pieces: &[Bytes]) -> bool {
    pieces.iter().any(|piece| piece.len() >= SHARED_BYTES_MIN)
}

/// Whether the slice lies in the memory of `bytes`. That memory is held, so the slice cannot belong to anything else.
fn contains(bytes: &Bytes, slice: &[u8]) -> bool {
    let (outer, inner) = (bytes.as_ptr_range(), slice.as_ptr_range());
    !slice.is_empty() && outer.start <= inner.start && inner.end <= outer.end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_afloat_is_found_and_only_by_its_memory() {
        let pieces: Arc<[Bytes]> = Arc::from([Bytes::from(vec![1; 2100]), Bytes::from(vec![2; 100])]);
        let others: Arc<[Bytes]> = Arc::from([Bytes::from(vec![1; SHARED_BYTES_MIN])]);
        let small: Arc<[Bytes]> = Arc::from([Bytes::from(vec![1; SHARED_BYTES_MIN - 1])]);
        let shared_slices = SharedSlices::default();
        assert_eq!(shared_slices.find(&pieces[0]), None);
        shared_slices.enter(&pieces);
        shared_slices.enter(&pieces);
        for piece in pieces.iter() {
            for (from, to) in [(0, 100), (10, 20), (99, 100)] {
                let found = shared_slices.find(&piece[from..to]).unwrap();
                assert_eq!(found.as_ptr_range(), piece[from..to].as_ptr_range());
            }
        }
        assert_eq!(shared_slices.find(&others[0]), None, "equal content elsewhere");
        assert_eq!(shared_slices.find(&pieces[0][3..3]), None);
        shared_slices.enter(&others);
        shared_slices.leave(&pieces);
        assert!(
            shared_slices.find(&pieces[1]).is_some(),
            "it is on its way a second time"
        );
        shared_slices.leave(&pieces);
        assert_eq!(shared_slices.find(&pieces[1]), None);
        assert!(shared_slices.find(&others[0]).is_some());
        shared_slices.leave(&others);
        shared_slices.enter(&small);
        assert_eq!(shared_slices.find(&small[0]), None, "it is copied");
        shared_slices.leave(&small);
        assert_eq!(shared_slices.0.lock().pieces.capacity(), 0);
    }
}
