//! How long the questions of one client may keep a thread before all other connections come first.
//!
//! Owns the share of a connection, and its place in the one line of those that have used up theirs. Does not know what was asked. What
//! others cause, such as a change of a control plane, is not counted: it is due to the client.

use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::sync::{AcquireError, Semaphore, SemaphorePermit};

/// The share of one connection. Nearly all the time most of them have used nothing of it, and then nothing is allocated.
#[derive(Default)]
pub(super) struct Ration(Option<Box<Spending>>);

struct Spending {
    /// The time up to which earlier questions have used it up.
    paid: Instant,
    /// Its place in the line, from a poll on until its turn.
    queued: Option<Pin<Box<LinePlace>>>,
}

type LinePlace = dyn Future<Output = Result<LinePass, AcquireError>> + Send;
/// The turn of a connection that has used up its share. Others in the line wait until this is dropped.
pub(super) type LinePass = SemaphorePermit<'static>;

/// For so long all others come first after each unit of time that questions take: a connection may use a thousandth of a thread.
const PRICE: u32 = 1000;
/// What may be used at once, of a share that was not used.
const BURST: Duration = Duration::from_millis(1);
/// After this long a connection has a share again, however much it has asked before.
const LONGEST: Duration = Duration::from_secs(10);

/// The line. One thread is always left for those who are not in it.
static LINE: LazyLock<Semaphore> = LazyLock::new(|| {
    let threads = tokio::runtime::Handle::try_current().map_or(1, |runtime| runtime.metrics().num_workers());
    Semaphore::new(threads.saturating_sub(1).max(1))
});

impl Ration {
    /// Ready when the connection may go on: at once if it has not used up its share, and then without a turn.
    #[inline]
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, now: Instant) -> Poll<Option<LinePass>> {
        if self.0.is_none() {
            return Poll::Ready(None);
        }
        self.poll_used(cx, now)
    }

    #[cold]
    fn poll_used(&mut self, cx: &mut Context<'_>, now: Instant) -> Poll<Option<LinePass>> {
        self.0.take_if(|used| used.paid <= least(now));
        let Some(used) = &mut self.0 else {
            return Poll::Ready(None);
        };
        if used.paid <= now {
            // It does not wait any more. A turn that came to it meanwhile must go to the next one.
            used.queued = None;
            return Poll::Ready(None);
        }
        let queued = used.queued.get_or_insert_with(|| Box::pin(LINE.acquire()));
        let turn = ready!(queued.as_mut().poll(cx));
        used.queued = None;
        // The line is never closed.
        Poll::Ready(turn.ok())
    }

    /// Questions of the client have taken so long.
    pub(super) fn spend(&mut self, took: Duration, now: Instant) {
        let least = least(now);
        let used = self.0.get_or_insert_with(|| {
            Box::new(Spending {
                paid: least,
                queued: None,
            })
        });
        used.paid = (used.paid.max(least) + took * PRICE).min(now + LONGEST);
    }
}

/// Returns the time up to which a share counts as used up if nothing of it was used.
fn least(now: Instant) -> Instant {
    now.checked_sub(BURST * PRICE).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// Who has used up its share waits for those that came to the line before it; everybody else waits for nobody.
    #[test]
    fn who_asks_much_waits_in_line() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let start = Instant::now();
        let cx = &mut Context::from_waker(Waker::noop());
        let [mut much, mut more, mut little] = [Ration::default(), Ration::default(), Ration::default()];
        for ration in [&mut much, &mut more] {
            assert!(matches!(ration.poll(cx, start), Poll::Ready(None)));
            ration.spend(BURST + Duration::from_micros(1), start);
        }
        little.spend(BURST, start);
        let turn = much.poll(cx, start);
        assert!(matches!(turn, Poll::Ready(Some(_))) && more.poll(cx, start).is_pending());
        assert!(matches!(little.poll(cx, start), Poll::Ready(None)));
        drop(turn);
        assert!(matches!(more.poll(cx, start), Poll::Ready(Some(_))));
        // Who has waited so long that it has a share again leaves the line, though its turn has come.
        more.spend(BURST, start);
        let turn = much.poll(cx, start);
        assert!(matches!(turn, Poll::Ready(Some(_))) && more.poll(cx, start).is_pending());
        drop(turn);
        assert!(matches!(more.poll(cx, start + LONGEST), Poll::Ready(None)));
        assert!(matches!(much.poll(cx, start), Poll::Ready(Some(_))));
        // After a while its share is not used up any more, but only so much is saved.
        let later = start + Duration::from_secs(100);
        assert!(matches!(much.poll(cx, later), Poll::Ready(None)));
        much.spend(BURST + Duration::from_micros(1), later);
        assert!(matches!(much.poll(cx, later), Poll::Ready(Some(_))));
    }
}
