// SPDX-License-Identifier: Apache-2.0
//! The streams of one connection that have something to send and must wait for the transport.
//!
//! Owns their order: who began to wait first comes first. A stream makes its response only when it is served, from the newest
//! content. Knows nothing of streams and sockets.

use std::collections::VecDeque;

/// The line. While nobody is in it, a stream is served as soon as it asks.
#[derive(Debug, Default)]
pub(super) struct WriteLine {
    waiting: VecDeque<u32>,
    /// How many bytes of responses those in the line may give to the transport. Invariant: 0 if nobody waits.
    room: usize,
}

/// How many bytes of responses the transport gets before it must have written them, give or take one response: as many as it writes
/// at once.
pub(super) const HELPING_BYTES: usize = 256 * 1024;
/// A line that was longer frees its memory when it is empty.
const CAPACITY_KEPT: usize = 16;

impl WriteLine {
    /// Puts somebody at the end of the line.
    pub(super) fn enter(&mut self, number: u32) {
        self.waiting.push_back(number);
    }

    /// Whether nobody waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether anybody can be served now.
    #[inline]
    pub(super) const fn is_moving(&self) -> bool {
        self.room > 0
    }

    /// Returns who has waited longest, and the room for it. None if there is no room.
    pub(super) fn next(&mut self) -> Option<(u32, usize)> {
        if self.room == 0 {
            return None;
        }
        let first = self.waiting.pop_front()?;
        Some((first, std::mem::take(&mut self.room)))
    }

    /// The transport has room for this many bytes. Returns what of it is for those who are not in the line: nothing while others
    /// wait.
    pub(super) fn offer(&mut self, room: usize) -> usize {
        if !self.waiting.is_empty() {
            self.room = room;
            return 0;
        }
        if self.waiting.capacity() > CAPACITY_KEPT {
            self.waiting = VecDeque::new();
        }
        room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Some are slow and ask again late, others at once: nobody is overtaken by anybody who asked after it.
    #[test]
    fn who_has_waited_longest_is_served_first() {
        const STREAMS: u32 = 100;
        const RESPONSE_BYTES: usize = 100 * 1024;
        let mut line = WriteLine::default();
        (0..STREAMS).for_each(|number| line.enter(number));
        let (mut served, mut slow) = (Vec::new(), Vec::new());
        for _ in 0..1000 {
            assert!(line.next().is_none() && !line.is_moving());
            let before = served.len();
            assert_eq!(line.offer(HELPING_BYTES), 0, "those who are not in the line wait too");
            while let Some((number, room)) = line.next() {
                served.push(number);
                match number % 3 {
                    0 => slow.push(number),
                    _ => line.enter(number),
                }
                assert_eq!(line.offer(room.saturating_sub(RESPONSE_BYTES)), 0);
            }
            assert_eq!(served.len() - before, HELPING_BYTES.div_ceil(RESPONSE_BYTES));
            slow.drain(..).for_each(|number| line.enter(number));
        }
        let round = STREAMS as usize;
        for (at, number) in served.iter().enumerate().skip(round) {
            let waited = served[..at].iter().rev().position(|it| it == number).unwrap();
            assert!(waited < round + round / 20, "{number} waited for {waited} others");
        }
    }

    #[test]
    fn an_empty_line_is_no_line() {
        let mut line = WriteLine::default();
        assert_eq!(line.offer(5), 5);
        assert!(!line.is_moving() && line.next().is_none());
        line.enter(1);
        assert_eq!(line.offer(5), 0);
        assert!(line.is_moving());
        assert_eq!(line.next(), Some((1, 5)));
        assert!(!line.is_moving());
        assert_eq!(line.offer(4), 4);
        // Nothing stays allocated for long.
        (0..1000).for_each(|number| line.enter(number));
        assert_eq!(line.offer(1), 0);
        while line.next().is_some_and(|(_, room)| line.offer(room) == 0) {}
        assert_eq!(line.waiting.capacity(), 0);
    }
}
