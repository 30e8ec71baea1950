// SPDX-License-Identifier: Apache-2.0
//! How a session learns that it must look again.
//!
//! Owns the one flag, the bounded list of what to look at, and the waker of the session's task. Does not know what
//! changed in it: it may ring without need, and never fails to ring.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use inquiry::Inquiry;
use xds::{Dirty, Name, TypeUrl};

/// Rings at most once until the session looks.
///
/// A session clears it ([`Bell::take`]) *before* it reads the view's cut: what is published in between rings again. When the
/// session has compared a type with the cut and sent what is new, it calls [`Bell::looked`]; until then it lags.
#[derive(Debug, Default)]
pub struct Bell(Mutex<BellState>);

/// Why a bell has rung, apart from which changes.
#[derive(Debug)]
pub struct Rang {
    /// Whether it was for more than a question.
    pub changed: bool,
    /// Whether the session must end.
    pub dismissed: bool,
    /// What the session is asked. Mostly nobody asks, and then nothing is allocated.
    pub inquiries: Option<Box<Inquiries>>,
}

#[derive(Debug, Default)]
struct BellState {
    /// Whether it has rung for more than a question.
    rung: bool,
    dismissed: bool,
    behind: Vec<Behind>,
    waker: Option<Waker>,
    inquiries: Option<Box<Inquiries>>,
}

/// Questions that were asked at the same time: mostly one.
#[derive(Debug)]
pub struct Inquiries {
    first: Arc<Inquiry>,
    others: Vec<Arc<Inquiry>>,
}

/// A type with changes that the session has not compared with what its client holds.
#[derive(Debug)]
struct Behind {
    type_url: TypeUrl,
    /// What has changed since the bell was last cleared, and the generation of the first of these changes.
    dirty: Option<(Dirty, u64)>,
    /// The generation of the first change that the session has not dealt with.
    since: u64,
}

/// So many names of one type are listed in any case.
const NAMES_MAX: usize = 64;
/// Of what a session wants, one in so many is listed. With more, it is as cheap to look at all of it.
const PART: usize = 4;

impl Bell {
    /// Ready if it has rung since the last look; otherwise the task that called this last is woken when it rings.
    pub fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.0.lock();
        if inner.rung {
            return Poll::Ready(());
        }
        inner.listen(context);
        Poll::Pending
    }

    /// Whether it has rung since the last look for more than a question.
    pub(crate) fn has_rung(&self) -> bool {
        self.0.lock().rung
    }

    /// If it has rung since the last call, clears it, calls `tell` with each change, as [`Bell::take`] returns it, and returns
    /// why else it has rung. In any case the task is woken when it rings again.
    pub fn poll_rang(&self, context: &mut Context<'_>, tell: impl FnMut(&TypeUrl, Dirty)) -> Option<Rang> {
        let mut inner = self.0.lock();
        inner.listen(context);
        let (changed, inquiries) = (inner.rung, inner.inquiries.take());
        if !changed && inquiries.is_none() {
            return None;
        }
        inner.take(tell);
        Some(Rang {
            changed,
            dismissed: inner.dismissed,
            inquiries,
        })
    }

    /// Clears the bell and returns the changes it rang for. A change of a wildcard alone is an empty list of names: a session
    /// that wants the wildcard compares states, not names.
    #[must_use]
    pub fn take(&self) -> Vec<(TypeUrl, Dirty)> {
        let mut taken = Vec::new();
        self.0
            .lock()
            .take(|type_url, dirty| taken.push((type_url.clone(), dirty)));
        taken
    }

    /// Notes for which types the session has dealt with all changes that it took. Returns whether any changes are left.
    pub fn looked(&self, at: impl Fn(&TypeUrl) -> bool) -> bool {
        let mut inner = self.0.lock();
        inner.behind.retain_mut(|behind| {
            if !at(&behind.type_url) {
                return true;
            }
            // Changes after the last `take` are still to be looked at.
            behind
                .dirty
                .as_ref()
                .inspect(|(_, first)| behind.since = *first)
                .is_some()
        });
        if inner.behind.is_empty() && inner.behind.capacity() > 1 {
            inner.behind = Vec::new();
        }
        !inner.behind.is_empty()
    }

    /// Rings without a change of what is known: the state of the server has changed.
    pub fn nudge(&self) {
        let waker = self.0.lock().ring();
        wake(waker);
    }

    /// Tells the session to end, because it keeps more old content in memory than the view allows for laggards.
    pub fn dismiss(&self) {
        let mut inner = self.0.lock();
        inner.dismissed = true;
        let waker = inner.ring();
        drop(inner);
        wake(waker);
    }

    /// Asks the session something: what it has is looked at, not compared again. The caller must wake the returned waker.
    pub(crate) fn ask(&self, inquiry: Arc<Inquiry>) -> Option<Waker> {
        let mut inner = self.0.lock();
        match &mut inner.inquiries {
            Some(inquiries) => inquiries.others.push(inquiry),
            None => {
                inner.inquiries = Some(Box::new(Inquiries {
                    first: inquiry,
                    others: Vec::new(),
                }));
            }
        }
        inner.waker.take()
    }

    /// The generation of the oldest change that the session has not dealt with.
    #[must_use]
    pub fn since(&self) -> Option<u64> {
        self.0.lock().behind.iter().map(|behind| behind.since).min()
    }

    /// Notes that these names changed, of `wanted` that the session wants. The caller must wake the returned waker.
    pub(crate) fn ring<'a>(
        &self,
        type_url: &TypeUrl,
        names: impl Iterator<Item = &'a Name>,
        wanted: usize,
        generation: u64,
    ) -> Option<Waker> {
        let mut inner = self.0.lock();
        let dirty = inner.dirty(type_url, generation);
        if let Dirty::Names(listed) = dirty {
            for name in names {
                // In a long list the search would cost more than to look twice.
                if listed.len() <= NAMES_MAX && listed.contains(name) {
                    continue;
                }
                if listed.len() >= NAMES_MAX.max(wanted / PART) {
                    *dirty = Dirty::All;
                    break;
                }
                listed.push(name.clone());
            }
        }
        inner.ring()
    }

    /// Notes that anything of the type may have changed. The caller must wake the returned wakers.
    pub(crate) fn ring_all(&self, type_url: &TypeUrl, generation: u64) -> Option<Waker> {
        let mut inner = self.0.lock();
        *inner.dirty(type_url, generation) = Dirty::All;
        inner.ring()
    }
}

impl IntoIterator for Inquiries {
    type Item = Arc<Inquiry>;
    type IntoIter = std::iter::Chain<std::iter::Once<Arc<Inquiry>>, std::vec::IntoIter<Arc<Inquiry>>>;

    fn into_iter(self) -> Self::IntoIter {
        std::iter::once(self.first).chain(self.others)
    }
}

impl BellState {
    fn listen(&mut self, context: &Context<'_>) {
        match &mut self.waker {
            Some(waker) => waker.clone_from(context.waker()),
            None => self.waker = Some(context.waker().clone()),
        }
    }

    fn take(&mut self, mut tell: impl FnMut(&TypeUrl, Dirty)) {
        self.rung = false;
        for behind in &mut self.behind {
            if let Some((dirty, _)) = behind.dirty.take() {
                tell(&behind.type_url, dirty);
            }
        }
    }

    fn ring(&mut self) -> Option<Waker> {
        if self.rung {
            return None;
        }
        self.rung = true;
        self.waker.take()
    }

    /// Returns what is noted for a type. A session has few types: they are bounded by its subscriptions.
    fn dirty(&mut self, type_url: &TypeUrl, generation: u64) -> &mut Dirty {
        let at = self.behind.iter().position(|behind| behind.type_url == *type_url);
        let at = at.unwrap_or_else(|| {
            if self.behind.capacity() == 0 {
                // Room for one entry, which `looked` keeps for the next time.
                self.behind.reserve_exact(1);
            }
            self.behind.push(Behind {
                type_url: type_url.clone(),
                dirty: None,
                since: generation,
            });
            self.behind.len() - 1
        });
        #[expect(clippy::indexing_slicing, reason = "the position was found or made just now")]
        let dirty = &mut self.behind[at].dirty;
        &mut dirty.get_or_insert_with(|| (Dirty::Names(Vec::new()), generation)).0
    }
}

/// Waking happens when no lock is held.
fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::interest::woken::tests::Count;

    fn names(count: usize) -> Vec<Name> {
        (0..count).map(|n| Name::from(format!("n{n}"))).collect()
    }

    #[test]
    fn rings_once_until_looked_at() {
        let (bell, eds) = (Bell::default(), TypeUrl::new("a.B"));
        let count = Arc::new(Count::default());
        let waker = Waker::from(count.clone());
        let poll = || bell.poll(&mut Context::from_waker(&waker));
        assert!(poll().is_pending());
        let names = names(2);
        for name in &names {
            wake(bell.ring(&eds, std::iter::once(name), 2, 7));
            wake(bell.ring(&eds, std::iter::once(name), 2, 8));
        }
        assert_eq!(count.wakes(), 1);
        assert_eq!(bell.since(), Some(7));
        assert!(poll().is_ready());
        assert_eq!(bell.take(), [(eds.clone(), Dirty::Names(names.clone()))]);
        wake(bell.ring(&eds, names.iter(), 2, 9));
        assert_eq!(count.wakes(), 1, "only who waits again is woken again");
        assert_eq!(bell.take(), [(eds.clone(), Dirty::Names(names.clone()))]);
        assert!(poll().is_pending());
        wake(bell.ring(&eds, names.iter(), 2, 10));
        assert_eq!(count.wakes(), 2);
    }

    #[test]
    fn what_it_lists_is_bounded() {
        let (bell, eds, cds) = (Bell::default(), TypeUrl::new("a.B"), TypeUrl::new("a.C"));
        wake(bell.ring(&eds, names(NAMES_MAX).iter(), 0, 1));
        wake(bell.ring(&eds, names(NAMES_MAX).iter().rev(), 0, 1));
        assert_eq!(
            bell.take(),
            [(eds.clone(), Dirty::Names(names(NAMES_MAX)))],
            "each name once"
        );
        wake(bell.ring(&eds, names(NAMES_MAX + 1).iter(), 0, 2));
        wake(bell.ring(&eds, names(1).iter(), 0, 3));
        wake(bell.ring(&cds, std::iter::empty(), 0, 3));
        let taken = bell.take();
        assert_eq!(taken, [(eds, Dirty::All), (cds, Dirty::Names(Vec::new()))]);
    }

    /// Who wants many names need not look at all of them for each answer to a part of them.
    #[test]
    fn who_wants_many_names_has_a_longer_list() {
        let (bell, eds) = (Bell::default(), TypeUrl::new("a.B"));
        let many = 100 * NAMES_MAX;
        let some = names(many / PART);
        wake(bell.ring(&eds, some.iter(), many, 1));
        assert_eq!(bell.take(), [(eds.clone(), Dirty::Names(some.clone()))]);
        wake(bell.ring(&eds, some.iter(), many, 2));
        wake(bell.ring(&eds, some.iter(), many, 2));
        assert_eq!(bell.take(), [(eds, Dirty::All)]);
    }

    /// A session lags from the first change that it has not dealt with, type by type.
    #[test]
    fn who_has_taken_has_not_yet_dealt_with_it() {
        let (bell, eds, cds) = (Bell::default(), TypeUrl::new("a.B"), TypeUrl::new("a.C"));
        let ring = |type_url, generation| wake(bell.ring(type_url, std::iter::empty(), 0, generation));
        ring(&eds, 1);
        ring(&cds, 2);
        assert_eq!(bell.take().len(), 2);
        ring(&eds, 3);
        assert_eq!(bell.since(), Some(1));
        bell.looked(|type_url| *type_url == eds);
        assert_eq!(bell.since(), Some(2));
        bell.looked(|_| true);
        assert_eq!(bell.since(), Some(3), "it rang after the look");
        assert_eq!(bell.take().len(), 1);
        bell.looked(|_| true);
        assert_eq!((bell.since(), bell.take().len()), (None, 0));
    }

    #[test]
    fn a_nudge_and_a_dismissal_wake() {
        let bell = Bell::default();
        let count = Arc::new(Count::default());
        let waker = Waker::from(count.clone());
        for (step, dismissed) in [(Bell::nudge as fn(&Bell), false), (Bell::dismiss, true)] {
            assert!(bell.poll(&mut Context::from_waker(&waker)).is_pending());
            step(&bell);
            assert!(bell.poll(&mut Context::from_waker(&waker)).is_ready());
            let rang = bell.poll_rang(&mut Context::from_waker(&waker), |_, _| ());
            assert_eq!(rang.map(|rang| rang.dismissed), Some(dismissed));
        }
        assert_eq!(count.wakes(), 2);
    }
}
