// SPDX-License-Identifier: Apache-2.0
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
    ropes: Vec<Afloat>,
    /// The rope of the last slice that was found.
    last: usize,
}

/// The pieces of one rope.
#[derive(Debug)]
struct Afloat {
    pieces: Arc<[Bytes]>,
    /// The piece of the last slice that was found. The next one is in this piece or one of the next.
    at: usize,
}

/// How many pieces may be between the last slice and the next one before all are searched. Shorter pieces are never looked for.
const NEAR: usize = 8;

/// Copying a shorter slice costs less than referring to it.
pub(super) const SHARED_BYTES_MIN: usize = 2048;

impl SharedSlices {
    /// Adds the pieces of a rope that is given to the transport.
    pub(super) fn enter(&self, pieces: &Arc<[Bytes]>) {
        if is_worth(pieces) {
            let pieces = pieces.clone();
            self.0.lock().ropes.push(Afloat { pieces, at: 0 });
        }
    }

    /// Removes the pieces of a rope that was read or dropped.
    pub(super) fn leave(&self, pieces: &Arc<[Bytes]>) {
        if !is_worth(pieces) {
            return;
        }
        let mut ropes = self.0.lock();
        let mut known = ropes.ropes.iter();
        if let Some(at) = known.position(|known| Arc::ptr_eq(&known.pieces, pieces)) {
            ropes.ropes.swap_remove(at);
        }
        if ropes.ropes.is_empty() {
            // An idle connection holds no memory here.
            ropes.ropes = Vec::new();
        }
    }

    /// Returns the slice as a reference to shared bytes, if it is part of any on their way.
    pub(super) fn find(&self, slice: &[u8]) -> Option<Bytes> {
        let mut ropes = self.0.lock();
        let Ropes { ropes, last } = &mut *ropes;
        let near = |rope: &Afloat| rope.find(slice, rope.at, NEAR);
        // Pieces are read in their order, so what is read next of the last rope is found soon, wherever it is.
        let of_last = ropes
            .get(*last)
            .and_then(|rope| Some((*last, near(rope).or_else(|| rope.find(slice, rope.at, usize::MAX))?)));
        let nth = |(nth, piece): (usize, Option<usize>)| Some((nth, piece?));
        let found = of_last
            .or_else(|| ropes.iter().map(near).enumerate().find_map(nth))
            .or_else(|| {
                let all = ropes.iter().map(|rope| rope.find(slice, 0, usize::MAX));
                all.enumerate().find_map(nth)
            });
        let (rope, piece) = found?;
        *last = rope;
        let rope = ropes.get_mut(rope)?;
        rope.at = piece;
        rope.pieces.get(piece).map(|bytes| bytes.slice_ref(slice))
    }
}

impl Afloat {
    /// Returns the number of the piece that the slice is part of, among `count` of them from this one on.
    fn find(&self, slice: &[u8], from: usize, count: usize) -> Option<usize> {
        let mut pieces = self.pieces.iter().enumerate().skip(from).take(count);
        pieces.find(|(_, bytes)| contains(bytes, slice)).map(|(at, _)| at)
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
        assert_eq!(shared_slices.0.lock().ropes.capacity(), 0);
    }

    /// Ropes of many pieces whose slices come in turns, with short pieces between that are never looked for.
    #[test]
    fn each_rope_is_found_where_it_was() {
        let rope = || -> Arc<[Bytes]> {
            let lens = (0..300).map(|n| if n % 20 == 7 { SHARED_BYTES_MIN } else { 600 });
            lens.map(|len| Bytes::from(vec![1; len])).collect()
        };
        let ropes = [rope(), rope(), rope()];
        let shared_slices = SharedSlices::default();
        ropes.iter().for_each(|rope| shared_slices.enter(rope));
        for at in 0..300 {
            for rope in ropes.iter().filter(|rope| rope[at].len() >= SHARED_BYTES_MIN) {
                for part in [&rope[at][..1000], &rope[at][1000..]] {
                    let found = shared_slices.find(part).unwrap();
                    assert_eq!(found.as_ptr_range(), part.as_ptr_range());
                }
            }
        }
        ropes.iter().for_each(|rope| shared_slices.leave(rope));
        assert_eq!(shared_slices.find(&ropes[1][7]), None);
    }
}
