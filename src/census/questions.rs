// SPDX-License-Identifier: Apache-2.0
//! How many questions are answered at a time, wherever they are asked, and how much memory their answers take.
//!
//! Owns the places, the queue for them, and the memory for answers that are sent as a whole. Does not know what is asked.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;

use crate::clock;

/// The places of questions. All copies are one.
#[derive(Clone, Debug)]
pub struct Questions {
    /// Those that are worked on.
    places: Arc<Semaphore>,
    /// Those that wait for a place.
    queue: Arc<Semaphore>,
    /// The one whose answer is collected as a whole. There is one at a time: it may wait for memory, and whoever has memory waits
    /// for nothing but its reader.
    whole: Arc<Semaphore>,
    /// What answers may take that are sent as a whole, in KiB.
    memory: Arc<Semaphore>,
}

/// A question that is worked on.
#[derive(Debug)]
pub struct QuestionTurn {
    places: Arc<Semaphore>,
    /// None while the question waits for its reader.
    place: Option<OwnedSemaphorePermit>,
}

/// A question whose answer is collected as a whole.
#[derive(Debug)]
pub(super) struct WholeTurn {
    memory: Arc<Semaphore>,
    _turn: QuestionTurn,
    _whole: OwnedSemaphorePermit,
}

/// Why a question is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Busy {
    /// There is no place for it.
    #[error("the relay answers {PLACES} other questions of this kind, and more wait; ask again in a few seconds")]
    Questions,
    /// There is no memory for its answer.
    #[error(
        "answers that nobody has read yet take all of the {MEMORY_MIB} MiB for such answers; ask again later, about fewer nodes, or \
         with `exclude_resource_contents`"
    )]
    Memory,
}

/// How many questions are worked on at a time.
const PLACES: usize = 4;
/// How many may wait for that.
const QUEUE: usize = 32;
/// How long a question waits: for its place, and then for each part of its answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The memory for answers that are sent as a whole.
const MEMORY_MIB: usize = 48;

impl Default for Questions {
    fn default() -> Self {
        Self {
            places: Arc::new(Semaphore::new(PLACES)),
            queue: Arc::new(Semaphore::new(QUEUE)),
            whole: Arc::new(Semaphore::new(1)),
            memory: Arc::new(Semaphore::new(MEMORY_MIB << 10)),
        }
    }
}

impl Questions {
    /// Waits for a place.
    ///
    /// # Errors
    /// Too many others wait, or it takes too long.
    pub async fn turn(&self) -> Result<QuestionTurn, Busy> {
        Ok(QuestionTurn {
            place: Some(self.enter(&self.places).await?),
            places: self.places.clone(),
        })
    }

    /// Waits for a place for a question whose answer is collected as a whole.
    pub(super) async fn whole_turn(&self) -> Result<WholeTurn, Busy> {
        // First this: so only one of them takes one of the other places.
        let whole = self.enter(&self.whole).await?;
        Ok(WholeTurn {
            memory: self.memory.clone(),
            _turn: self.turn().await?,
            _whole: whole,
        })
    }

    async fn enter(&self, places: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Busy> {
        if let Ok(place) = places.clone().try_acquire_owned() {
            return Ok(place);
        }
        let _waits = self.queue.try_acquire().map_err(|_| Busy::Questions)?;
        let place = clock::timeout(PATIENCE, places.clone().acquire_owned()).await;
        place.and_then(Result::ok).ok_or(Busy::Questions)
    }
}

#[cfg(test)]
impl Questions {
    /// Returns how much of the memory is free, rounded down.
    pub(super) fn free_mebibytes(&self) -> usize {
        self.memory.available_permits() >> 10
    }
}

impl QuestionTurn {
    /// Lets others have the place while something is waited for that does not depend on the relay.
    pub async fn aside<T>(&mut self, waited: impl Future<Output = T>) -> T {
        self.place = None;
        let done = waited.await;
        // It is never closed.
        self.place = self.places.clone().acquire_owned().await.ok();
        done
    }
}

impl WholeTurn {
    /// Waits for memory for a part of the answer. It is free again when the result is dropped.
    pub(super) async fn memory(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Busy> {
        let kibibytes = u32::try_from(bytes.div_ceil(1 << 10)).map_err(|_| Busy::Memory)?;
        let memory = self.memory.clone().acquire_many_owned(kibibytes);
        clock::timeout(PATIENCE, memory)
            .await
            .and_then(Result::ok)
            .ok_or(Busy::Memory)
    }
}

impl From<Busy> for Status {
    fn from(busy: Busy) -> Self {
        match busy {
            Busy::Questions => Self::unavailable(busy.to_string()),
            Busy::Memory => Self::resource_exhausted(busy.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Waker};

    use futures_util::future::join_all;

    use super::*;

    fn pending<F: Future>(waiting: Pin<&mut F>) -> bool {
        waiting.poll(&mut Context::from_waker(Waker::noop())).is_pending()
    }

    /// As many as there are places are worked on, some wait, and all others are told so at once.
    #[tokio::test(start_paused = true)]
    async fn the_queue_is_bounded() {
        let questions = Questions::default();
        let mut turns = join_all((0..PLACES).map(|_| questions.turn())).await;
        let mut waiting: Vec<_> = (0..QUEUE).map(|_| Box::pin(questions.turn())).collect();
        for one in &mut waiting {
            assert!(pending(one.as_mut()));
        }
        assert_eq!(questions.turn().await.err(), Some(Busy::Questions));
        drop(turns.pop());
        let mut waiting = waiting.into_iter();
        assert!(waiting.next().unwrap().await.is_ok(), "who waits longest is next");
        let others = tokio::time::timeout(PATIENCE, join_all(waiting)).await;
        let answered = others
            .expect("they wait too long")
            .iter()
            .filter(|turn| turn.is_ok())
            .count();
        assert_eq!(answered, 1, "there is one place");
    }

    /// Whoever waits for a reader keeps no place.
    #[tokio::test(start_paused = true)]
    async fn readers_take_no_places() {
        let questions = Questions::default();
        let mut turns = Vec::new();
        for _ in 0..PLACES {
            turns.push(questions.turn().await.unwrap());
        }
        let mut slow = turns.pop().unwrap();
        let mut aside = Box::pin(slow.aside(std::future::pending::<()>()));
        assert!(pending(aside.as_mut()));
        assert!(questions.turn().await.is_ok());
    }

    /// One answer is collected at a time; what was collected keeps its memory until it is sent.
    #[tokio::test(start_paused = true)]
    async fn memory_is_bounded() {
        let questions = Questions::default();
        let first = questions.whole_turn().await.unwrap();
        let held = first.memory(MEMORY_MIB << 20).await.unwrap();
        assert_eq!(questions.whole_turn().await.err(), Some(Busy::Questions));
        drop(first);
        let second = questions.whole_turn().await.unwrap();
        assert_eq!(second.memory(1).await.err(), Some(Busy::Memory));
        drop(held);
        assert!(second.memory(1).await.is_ok());
    }
}
