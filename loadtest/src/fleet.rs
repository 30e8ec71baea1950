//! The fleet: a few threads, each with its share of the clients. It lets clients in, counts who is complete and gathers
//! what went wrong; it knows nothing of scenarios.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use anyhow::Context as _;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::LocalSet;

use crate::arguments::{Dialect, Kind};
use crate::checker::Answer;
use crate::checker::Checker;
use crate::client::Wish;
use crate::ledger::Ledger;
use crate::life::Life;
use crate::tally::{Feed, Tally};
use crate::violation::Violation;
use crate::want::Want;

/// What every client of the fleet has in common.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) server: SocketAddr,
    pub(crate) clients: u32,
    pub(crate) names: u32,
    pub(crate) dialect: Dialect,
    pub(crate) kind: Kind,
    pub(crate) ledger: Arc<Ledger>,
    /// Whether a client whose stream ends comes back with what it holds; else that is a violation.
    pub(crate) returns: bool,
}

impl Plan {
    pub(crate) fn want(&self, number: u32) -> Want {
        if self.kind.wildcard() {
            return Want::All;
        }
        Want::named(number, self.names, self.ledger.len())
    }

    /// How many clients want this resource.
    pub(crate) fn wanting(&self, index: u32) -> u32 {
        self.wanting_among(index, 1)
    }

    /// How many of the clients whose number is a multiple of `every` want this resource.
    pub(crate) fn wanting_among(&self, index: u32, every: u32) -> u32 {
        let (resources, every) = (self.ledger.len(), usize::try_from(every).unwrap_or(1));
        let wanting = (0..self.clients)
            .step_by(every.max(1))
            .filter(|number| self.want(*number).contains(index, resources));
        u32::try_from(wanting.count()).unwrap_or(u32::MAX)
    }
}

/// How far the fleet is. The scenario waits on it.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    complete: AtomicU32,
    messages: AtomicU64,
    named: AtomicU64,
    returned: AtomicU64,
    /// How many complete clients are worth a ring.
    awaited: AtomicU32,
    violations: Mutex<Vec<(u32, String)>>,
    violated: AtomicU32,
    /// Rings when as many clients are complete as somebody waits for, and at every violation.
    pub(crate) changed: Notify,
}

/// How many violations are told in full; all are counted.
const VIOLATIONS_TOLD_MAX: usize = 10;

impl Progress {
    pub(crate) fn complete(&self) -> u32 {
        self.complete.load(Ordering::Acquire)
    }

    /// The responses that all clients got so far.
    pub(crate) fn messages(&self) -> u64 {
        self.messages.load(Ordering::Acquire)
    }

    /// The resources in them, those that are gone among them.
    pub(crate) fn named(&self) -> u64 {
        self.named.load(Ordering::Acquire)
    }

    /// How often clients came back with what they hold.
    pub(crate) fn returned(&self) -> u64 {
        self.returned.load(Ordering::Acquire)
    }

    pub(crate) fn come_back(&self) {
        self.returned.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn violated(&self) -> u32 {
        self.violated.load(Ordering::Acquire)
    }

    /// The first of them, each with its client.
    pub(crate) fn violations(&self) -> Vec<(u32, String)> {
        self.violations.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks for a ring as soon as `clients` are complete.
    pub(crate) fn expect(&self, clients: u32) {
        self.awaited.store(clients, Ordering::Release);
    }

    pub(crate) fn answered(&self, answer: &Answer) {
        self.messages.fetch_add(1, Ordering::AcqRel);
        self.named.fetch_add(u64::from(answer.named), Ordering::AcqRel);
        if !answer.completed {
            return;
        }
        let complete = self.complete.fetch_add(1, Ordering::AcqRel) + 1;
        if complete == self.awaited.load(Ordering::Acquire) {
            self.changed.notify_waiters();
        }
    }

    pub(crate) fn note(&self, number: u32, violation: &Violation) {
        {
            let mut told = self.violations.lock().unwrap_or_else(PoisonError::into_inner);
            if told.len() < VIOLATIONS_TOLD_MAX {
                told.push((number, violation.to_string()));
            }
        }
        self.violated.fetch_add(1, Ordering::AcqRel);
        self.changed.notify_waiters();
    }
}

/// The running fleet. Dropping it ends its threads.
pub(crate) struct Fleet {
    /// Clients with a smaller number may connect.
    admitted: watch::Sender<u32>,
    wishes: watch::Sender<Option<Wish>>,
    threads: Vec<JoinHandle<anyhow::Result<()>>>,
    /// One for each thread.
    pub(crate) feeds: Vec<Feed>,
    pub(crate) progress: Arc<Progress>,
}

/// Connection attempts at a time and thread: fewer than any listener's backlog.
const CONNECTING_MAX: usize = 256;

impl Fleet {
    pub(crate) fn start(plan: &Plan, threads: u32) -> anyhow::Result<Self> {
        let progress = Arc::<Progress>::default();
        let admitted = watch::Sender::new(0);
        let wishes = watch::Sender::new(None);
        let feeds = (0..threads).map(|_| Feed::new()).collect::<anyhow::Result<Vec<_>>>()?;
        let threads = (0..threads)
            .zip(&feeds)
            .map(|(thread, feed)| {
                let share = Share {
                    plan: plan.clone(),
                    numbers: (thread..plan.clients).step_by(usize::try_from(threads)?).collect(),
                    progress: Arc::clone(&progress),
                    feed: feed.clone(),
                    admitted: admitted.subscribe(),
                    wishes: wishes.subscribe(),
                };
                std::thread::Builder::new()
                    .name(format!("clients-{thread}"))
                    .spawn(move || share.run())
                    .context("cannot start a thread for the clients")
            })
            .collect::<anyhow::Result<_>>()?;
        Ok(Self {
            admitted,
            wishes,
            threads,
            feeds,
            progress,
        })
    }

    /// Lets all clients with a smaller number connect.
    pub(crate) fn admit(&self, number: u32) {
        self.admitted.send_replace(number);
    }

    /// Has some clients ask for something besides.
    pub(crate) fn wish(&self, wish: Wish) {
        self.wishes.send_replace(Some(wish));
    }

    /// Disconnects everybody, after a last look at what each one holds.
    pub(crate) fn stop(self) -> anyhow::Result<Tally> {
        drop(self.admitted);
        let mut sum = Tally::new()?;
        for thread in self.threads {
            thread
                .join()
                .map_err(|_| anyhow::anyhow!("a thread of clients broke"))??;
        }
        for feed in &self.feeds {
            feed.total(&mut sum)?;
        }
        Ok(sum)
    }
}

/// A client's number and what checks it.
type Member = (u32, Rc<RefCell<Checker>>);

/// The clients of one thread.
struct Share {
    plan: Plan,
    numbers: Vec<u32>,
    progress: Arc<Progress>,
    feed: Feed,
    admitted: watch::Receiver<u32>,
    wishes: watch::Receiver<Option<Wish>>,
}

impl Share {
    fn run(self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let clients = RefCell::new(Vec::with_capacity(self.numbers.len()));
        let local = LocalSet::new();
        runtime.block_on(local.run_until(self.serve(&clients)));
        // The tasks end here, and with them the connections.
        drop(local);
        drop(runtime);
        // A client that broke off lacks things without further fault of anybody.
        let sound = self.progress.violated() == 0;
        for (number, checker) in clients.into_inner().into_iter().filter(|_| sound) {
            if let Err(violation) = checker.borrow().check_final() {
                self.progress.note(number, &violation);
            }
        }
        Ok(())
    }

    /// Starts the clients as they are admitted, and returns when the fleet stops.
    async fn serve(&self, clients: &RefCell<Vec<Member>>) {
        let mut admitted = self.admitted.clone();
        let connecting = Rc::new(Semaphore::new(CONNECTING_MAX));
        for number in self.numbers.iter().copied() {
            if admitted.wait_for(|admitted| number < *admitted).await.is_err() {
                return;
            }
            let want = self.plan.want(number);
            let checker = Checker::new(self.plan.dialect, Arc::clone(&self.plan.ledger), want);
            let checker = Rc::new(RefCell::new(checker));
            clients.borrow_mut().push((number, Rc::clone(&checker)));
            let life = Life {
                number,
                plan: self.plan.clone(),
                names: want.names(&self.plan.ledger),
                checker,
                feed: self.feed.clone(),
                connecting: Rc::clone(&connecting),
                progress: Arc::clone(&self.progress),
                wishes: self.wishes.clone(),
            };
            tokio::task::spawn_local(life.live());
        }
        while admitted.changed().await.is_ok() {}
    }
}
