//! One client's life: from stream to stream, where clients come back, and what it says of itself on the way.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, watch};
use tokio::time::sleep;

use crate::checker::Checker;
use crate::client::{Asking, Client, Wish};
use crate::fleet::{Plan, Progress};
use crate::tally::Feed;
use crate::violation::Violation;

/// One client, from stream to stream.
pub(crate) struct Life {
    pub(crate) number: u32,
    pub(crate) plan: Plan,
    pub(crate) names: Vec<String>,
    pub(crate) checker: Rc<RefCell<Checker>>,
    pub(crate) feed: Feed,
    pub(crate) connecting: Rc<Semaphore>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) wishes: watch::Receiver<Option<Wish>>,
}

/// What a client waits before it comes back.
const RETURN_AFTER: Duration = Duration::from_millis(200);

impl Life {
    /// Connects, and reads until the stream ends; again and again, if that is the plan.
    pub(crate) async fn live(mut self) {
        loop {
            let Err(violation) = self.stream().await else {
                continue;
            };
            let lost = matches!(violation, Violation::Ended(_) | Violation::Connection(_));
            if !(self.plan.returns && lost) {
                self.progress.note(self.number, &violation);
                return;
            }
            sleep(RETURN_AFTER).await;
        }
    }

    /// One stream, which ends with what ended it.
    async fn stream(&mut self) -> Result<(), Violation> {
        let begun = now();
        let asking = {
            let mut checker = self.checker.borrow_mut();
            Asking {
                number: self.number,
                dialect: self.plan.dialect,
                kind: self.plan.kind,
                held: checker.begin(),
                names: self.names.iter().cloned().chain(checker.also()).collect(),
            }
        };
        let returns = !asking.held.is_empty();
        let mut client = {
            let _permit = self.connecting.acquire().await;
            Client::connect(self.plan.server, asking).await?
        };
        if returns {
            self.progress.come_back();
        }
        let (progress, feed) = (&self.progress, &self.feed);
        client
            .run(&self.checker, &self.feed, &mut self.wishes, |answer| {
                progress.answered(answer);
                if answer.completed {
                    feed.tally().join.record(begun.elapsed());
                }
            })
            .await
    }
}

#[expect(clippy::disallowed_methods, reason = "a join is timed from its real beginning")]
fn now() -> Instant {
    Instant::now()
}
