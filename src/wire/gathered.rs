//! What a connection holds of messages whose ends have not come yet.
//!
//! Owns one sum over all its streams, and its bound: one message is bounded, but a client may begin thousands of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The sum, and its bound.
#[derive(Debug)]
pub struct Gathered {
    bytes: AtomicUsize,
    bytes_max: usize,
}

/// The part of one stream; it leaves the sum when it is dropped.
#[derive(Debug)]
pub(super) struct Charge {
    gathered: Arc<Gathered>,
    bytes: usize,
}

impl Gathered {
    /// Nothing has come yet; all together hold at most `bytes_max`.
    #[must_use]
    pub const fn new(bytes_max: usize) -> Self {
        Self {
            bytes: AtomicUsize::new(0),
            bytes_max,
        }
    }

    /// Bytes held now.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Charge {
    pub(super) const fn new(gathered: Arc<Gathered>) -> Self {
        Self { gathered, bytes: 0 }
    }

    /// The stream holds so much now. Fails with the sum when that is more than all may hold.
    pub(super) fn set(&mut self, bytes: usize) -> Result<(), usize> {
        let more = bytes.saturating_sub(self.bytes);
        self.gathered
            .bytes
            .fetch_sub(self.bytes.saturating_sub(bytes), Ordering::Relaxed);
        let all = self.gathered.bytes.fetch_add(more, Ordering::Relaxed) + more;
        self.bytes = bytes;
        if more > 0 && all > self.gathered.bytes_max {
            return Err(all);
        }
        Ok(())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.gathered.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_streams_of_a_connection_have_one_bound() {
        let gathered = Arc::new(Gathered::new(4000));
        let mut streams: Vec<_> = (0..5).map(|_| Charge::new(gathered.clone())).collect();
        for stream in &mut streams[..4] {
            assert_eq!(stream.set(900), Ok(()));
        }
        assert_eq!(streams[4].set(900), Err(4500));
        assert_eq!(streams[0].set(100), Ok(()), "to hold less is always allowed");
        drop(streams.pop());
        assert_eq!(gathered.bytes(), 2800);
        assert_eq!(streams[0].set(1300), Ok(()));
        drop(streams);
        assert_eq!(gathered.bytes(), 0);
    }
}
