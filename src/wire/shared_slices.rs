//! Which shared bytes are on their way through one connection.
//!
//! Owns the way back from a slice, which is all that a transport shows when it writes, to the shared bytes that it is part
//! of: they can then be held by reference where they would have to be copied. Refuses to know what they say.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

/// The shared pieces of all ropes that the connection has not written to their ends.
#[derive(Debug, Default)]
pub struct SharedSlices(Mutex<Ropes>);

#[derive(Debug, Default)]
struct Ropes {
    pieces: Vec<Arc<[Bytes]>>,
    /// Where the last slice was found: the next one is usually there or right behind.
    last: (usize, usize),
}

/// Below this it costs less to copy than to refer.
pub(super) const SHARED_BYTES_MIN: usize = 2048;

impl SharedSlices {
    /// A rope with these pieces is given to the transport.
    pub(super) fn enter(&self, pieces: &Arc<[Bytes]>) {
        if is_worth(pieces) {
            self.0.lock().pieces.push(pieces.clone());
        }
    }

    /// The rope has been read, or given up.
    pub(super) fn leave(&self, pieces: &Arc<[Bytes]>) {
        if !is_worth(pieces) {
            return;
        }
        let mut ropes = self.0.lock();
        if let Some(at) = ropes.pieces.iter().position(|known| Arc::ptr_eq(known, pieces)) {
            ropes.pieces.swap_remove(at);
        }
        if ropes.pieces.is_empty() {
            // An idle connection holds nothing.
            ropes.pieces = Vec::new();
        }
    }

    /// The slice by reference, if it is part of something that is on its way.
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

/// Whether anybody will look for one of the pieces.
fn is_worth(pieces: &[Bytes]) -> bool {
    pieces.iter().any(|piece| piece.len() >= SHARED_BYTES_MIN)
}

/// Whether the slice lies within the bytes' very memory. Since somebody holds those, it can be nothing else.
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
