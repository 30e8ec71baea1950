// SPDX-License-Identifier: Apache-2.0
//! A request that waits for its turn: a rejection, or a large one, before it is read and between two slices of it.
//!
//! Owns what is kept of a request that was not read yet, and when its next turn is. Does not know what a slice is.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Buf as _;
use tonic::Status;

use super::keeping::Keeping;
use super::reading::PartialRequest;
use super::sliced::{ENTRY_BYTES, Sliced};
use crate::wire::{Permit, Pieces, Scan, Share, StreamTurns};

/// A request that waits for its turn.
pub(super) struct Large {
    turns: StreamTurns,
    stage: HandledStage,
}

/// How far it was handled.
pub(super) enum HandledStage {
    Unread(Unread),
    Reading(PartialRequest),
    Begun(Sliced),
}

/// A request as it came.
pub(super) struct Unread {
    message: Pieces,
    /// What it counts.
    scan: Scan,
    kept: Keeping,
}

impl Unread {
    /// Returns the message, to be decoded, what it counts, and what keeps both.
    ///
    /// # Errors
    /// There is no memory for what it is when it is decoded.
    pub(super) fn take(mut self) -> Result<(Pieces, Scan, Keeping), Status> {
        self.kept
            .keep(self.message.remaining() + self.scan.entries * ENTRY_BYTES)?;
        Ok((self.message, self.scan, self.kept))
    }
}

impl Large {
    /// Keeps a request, to be read when it is its turn.
    ///
    /// # Errors
    /// There is no memory for it.
    pub(super) fn unread(message: Pieces, scan: Scan, share: &Arc<Share>) -> Result<Self, Status> {
        let mut kept = Keeping::new(share.clone());
        kept.wait(message.remaining())?;
        Ok(Self::at(HandledStage::Unread(Unread { message, scan, kept })))
    }

    /// Keeps what is left of a request.
    pub(super) fn at(stage: HandledStage) -> Self {
        let turns = StreamTurns::default();
        Self { turns, stage }
    }

    /// Returns when it must look for room again, if it waits for that.
    pub(super) fn resumes(&self) -> Option<Instant> {
        match &self.stage {
            HandledStage::Begun(sliced) => sliced.resumes(),
            HandledStage::Unread(_) | HandledStage::Reading(_) => None,
        }
    }

    /// Ready when it is its turn, or when it must be given up, because other connections need the memory. The turn is none if nobody
    /// counts turns any more.
    pub(super) fn poll_turn(&mut self, cx: &mut Context<'_>, now: Instant) -> Poll<Result<Option<Permit>, Status>> {
        if self.resumes().is_none_or(|at| at <= now)
            && let Poll::Ready(turn) = self.turns.poll_turn(cx)
        {
            return Poll::Ready(Ok(turn));
        }
        let given_up = match &mut self.stage {
            HandledStage::Begun(sliced) => sliced.poll_given_up(cx),
            HandledStage::Unread(unread) => unread.kept.poll_given_up(cx),
            HandledStage::Reading(reading) => reading.poll_given_up(cx),
        };
        given_up.map(Err)
    }

    /// Returns it, to be handled.
    pub(super) fn into_stage(self) -> HandledStage {
        self.stage
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::task::Waker;

    use bytes::Bytes;

    use super::*;
    use crate::wire::{Budget, Deframer, Encoding, Read};

    /// A compressed request that is large when it is inflated.
    fn inflating(budget: &Arc<Budget>) -> Deframer {
        let mut encoder = flate2::write::GzEncoder::new(vec![1, 0, 0, 0, 0], flate2::Compression::default());
        encoder.write_all(&[0; 1 << 20]).expect("it is memory");
        let mut message = encoder.finish().expect("it is memory");
        let length = u16::try_from(message.len() - 5).expect("it is short");
        message[3..5].copy_from_slice(&length.to_be_bytes());
        let mut deframer = Deframer::new(Encoding::Gzip, 1 << 20, budget.share());
        deframer.push(message.into());
        deframer
    }

    /// Of two large requests one waits until a slice of the other one is handled, or a piece of it inflated. Who waits gives up its memory
    /// when others need it.
    #[test]
    fn one_at_a_time() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let now = Instant::now();
        let budget = Arc::new(Budget::new(1000));
        let request = |bytes| {
            let scan = Scan {
                entries: 4,
                ..Scan::default()
            };
            Large::unread(Bytes::from(vec![0; bytes]).into(), scan, &budget.share())
        };
        let mut cx = Context::from_waker(Waker::noop());
        let (mut one, mut other) = (
            request(100).expect("there is room"),
            request(800).expect("there is room"),
        );
        let Poll::Ready(Ok(turn)) = one.poll_turn(&mut cx, now) else {
            panic!("nobody else has the turn");
        };
        assert!(turn.is_some() && other.poll_turn(&mut cx, now).is_pending());
        let next = request(300);
        assert!(next.is_ok() && matches!(other.poll_turn(&mut cx, now), Poll::Ready(Err(_))));
        let mut next = next.expect("there is room");
        drop(other);
        assert!(next.poll_turn(&mut cx, now).is_pending());
        drop(turn);
        assert!(matches!(next.poll_turn(&mut cx, now), Poll::Ready(Ok(Some(_)))));
        let HandledStage::Unread(unread) = next.into_stage() else {
            panic!("nobody has read it");
        };
        drop(one);
        let (_, scan, kept) = unread.take().expect("there is room");
        assert_eq!((scan.entries, budget.bytes()), (4, 300 + 4 * ENTRY_BYTES));
        drop(kept);
        assert_eq!(budget.bytes(), 0);

        let budget = Arc::new(Budget::new(4 << 20));
        let mut deframers = [inflating(&budget), inflating(&budget)];
        for deframer in &mut deframers {
            assert!(
                matches!(deframer.poll_turn(&mut cx), Poll::Ready(None)),
                "nothing is inflated yet"
            );
            assert!(matches!(deframer.read(), Ok(Read::Busy)));
        }
        assert!(
            budget.bytes() > 2 << 20,
            "their memory is counted before they are inflated"
        );
        let [one, other] = &mut deframers;
        let turn = one.poll_turn(&mut cx);
        assert!(matches!(turn, Poll::Ready(Some(_))) && other.poll_turn(&mut cx).is_pending());
        drop(turn);
        assert!(other.poll_turn(&mut cx).is_ready());
    }
}
