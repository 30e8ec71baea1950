//! The fleet: a few threads, each with its share of the clients. It lets clients in, counts who is complete and gathers
//! what went wrong; it knows nothing of scenarios.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use anyhow::Context as _;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::LocalSet;

use crate::arguments::{Dialect, Kind};
use crate::checker::Checker;
use crate::client::{Asking, Client};
use crate::ledger::Ledger;
use crate::tally::Tally;
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
        let resources = self.ledger.len();
        let wanting = (0..self.clients).filter(|number| self.want(*number).contains(index, resources));
        u32::try_from(wanting.count()).unwrap_or(u32::MAX)
    }
}

/// How far the fleet is. The scenario waits on it.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    complete: AtomicU32,
    /// How many complete clients are worth a ring.
    awaited: AtomicU32,
    violations: Mutex<Vec<String>>,
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

    pub(crate) fn violated(&self) -> u32 {
        self.violated.load(Ordering::Acquire)
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        self.violations.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks for a ring as soon as `clients` are complete.
    pub(crate) fn expect(&self, clients: u32) {
        self.awaited.store(clients, Ordering::Release);
    }

    fn completed(&self) {
        let complete = self.complete.fetch_add(1, Ordering::AcqRel) + 1;
        if complete == self.awaited.load(Ordering::Acquire) {
            self.changed.notify_waiters();
        }
    }

    fn note(&self, number: u32, violation: &Violation) {
        {
            let mut told = self.violations.lock().unwrap_or_else(PoisonError::into_inner);
            if told.len() < VIOLATIONS_TOLD_MAX {
                told.push(format!("client {number}: {violation}"));
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
    threads: Vec<JoinHandle<anyhow::Result<Tally>>>,
    pub(crate) progress: Arc<Progress>,
}

/// Connection attempts at a time and thread: fewer than any listener's backlog.
const CONNECTING_MAX: usize = 256;

impl Fleet {
    pub(crate) fn start(plan: &Plan, threads: u32) -> anyhow::Result<Self> {
        let progress = Arc::<Progress>::default();
        let admitted = watch::Sender::new(0);
        let threads = (0..threads)
            .map(|thread| {
                let share = Share {
                    plan: plan.clone(),
                    numbers: (thread..plan.clients).step_by(usize::try_from(threads)?).collect(),
                    progress: Arc::clone(&progress),
                    admitted: admitted.subscribe(),
                };
                std::thread::Builder::new()
                    .name(format!("clients-{thread}"))
                    .spawn(move || share.run())
                    .context("cannot start a thread for the clients")
            })
            .collect::<anyhow::Result<_>>()?;
        Ok(Self {
            admitted,
            threads,
            progress,
        })
    }

    /// Lets all clients with a smaller number connect.
    pub(crate) fn admit(&self, number: u32) {
        self.admitted.send_replace(number);
    }

    /// Disconnects everybody, after a last look at what each one holds.
    pub(crate) fn stop(self) -> anyhow::Result<Tally> {
        drop(self.admitted);
        let mut sum = Tally::new()?;
        for thread in self.threads {
            let tally = thread
                .join()
                .map_err(|_| anyhow::anyhow!("a thread of clients broke"))??;
            sum.add(&tally)?;
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
    admitted: watch::Receiver<u32>,
}

impl Share {
    fn run(self) -> anyhow::Result<Tally> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let tally = Rc::new(RefCell::new(Tally::new()?));
        let clients = RefCell::new(Vec::with_capacity(self.numbers.len()));
        let local = LocalSet::new();
        runtime.block_on(local.run_until(self.serve(&tally, &clients)));
        // The tasks end here, and with them the connections and their hold on the tally.
        drop(local);
        drop(runtime);
        // A client that broke off lacks things without further fault of anybody.
        let sound = self.progress.violated() == 0;
        for (number, checker) in clients.into_inner().into_iter().filter(|_| sound) {
            if let Err(violation) = checker.borrow().check_final() {
                self.progress.note(number, &violation);
            }
        }
        Ok(Rc::into_inner(tally)
            .context("a client outlived its thread")?
            .into_inner())
    }

    /// Starts the clients as they are admitted, and returns when the fleet stops.
    async fn serve(&self, tally: &Rc<RefCell<Tally>>, clients: &RefCell<Vec<Member>>) {
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
            let asking = Asking {
                number,
                dialect: self.plan.dialect,
                kind: self.plan.kind,
                names: want.names(self.plan.ledger.len()),
            };
            let (tally, connecting) = (Rc::clone(tally), Rc::clone(&connecting));
            let (server, progress) = (self.plan.server, Arc::clone(&self.progress));
            tokio::task::spawn_local(async move {
                let client = {
                    let _permit = connecting.acquire().await;
                    Client::connect(server, asking).await
                };
                let outcome = match client {
                    Ok(mut client) => client.run(&checker, &tally, || progress.completed()).await,
                    Err(violation) => Err(violation),
                };
                if let Err(violation) = outcome {
                    progress.note(number, &violation);
                }
            });
        }
        while admitted.changed().await.is_ok() {}
    }
}
