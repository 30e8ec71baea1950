//! The fleet: a few threads, each with its share of the connections. It admits clients and collects violations. Knows nothing of
//! scenarios.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::LocalSet;

use crate::client::Client;
use crate::client::profile::Profile;
use crate::connection::{Shared, Target};
use crate::crew::Crew;
use crate::kind::Kind;
use crate::ledger::Ledger;
use crate::life::{Desk, Life};
use crate::presence::{ANSWERED_WITHIN, Presence, Standing};
use crate::progress::Progress;
use crate::shard::Shard;
use crate::tally::{Feed, Tally};
use crate::world::World;

/// What a fleet is made of.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) target: Target,
    pub(crate) clients: u32,
    /// How many clients share a connection.
    pub(crate) per_connection: u32,
    pub(crate) world: Arc<World>,
    pub(crate) crew: Crew,
    /// The share of the clients that is here; the others are on other machines.
    pub(crate) shard: Shard,
}

/// What clients are told to do during the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Wish(Wish),
    /// The clients whose number is a multiple of `every` leave, and come back after the pause.
    Leave {
        every: u32,
        pause: Duration,
    },
}

/// One more resource that some clients are told to ask for: those whose number is a multiple of `every`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(crate) every: u32,
    pub(crate) kind: Kind,
    pub(crate) index: u32,
}

impl Plan {
    /// Returns the profile of client `number`. All clients of a connection are of one group, because each of them affects the
    /// connection for all.
    pub(crate) fn profile(&self, number: u32) -> Option<&Arc<Profile>> {
        self.crew.profile(number / self.per_connection.max(1))
    }

    /// Returns the ledger of the only type, or of the first.
    pub(crate) fn ledger(&self) -> anyhow::Result<&Arc<Ledger>> {
        self.world.ledgers().first().context("there are no resources")
    }

    /// Returns how many clients want this resource of the only type.
    pub(crate) fn wanting(&self, index: u32) -> u32 {
        self.wanting_among(index, 1)
    }

    /// Returns how many of the clients whose number is a multiple of `every` want this resource.
    pub(crate) fn wanting_among(&self, index: u32, every: u32) -> u32 {
        let every = usize::try_from(every.max(1)).unwrap_or(1);
        let kind = self.world.ledgers().first().map(|ledger| ledger.kind());
        let demand = kind.map_or_else(Vec::new, |kind| self.demand(kind, every));
        let wanting = usize::try_from(index).ok().and_then(|index| demand.get(index));
        wanting.copied().unwrap_or_default()
    }

    /// Returns how many awaited clients want each resource of a type, of those whose number is a multiple of `every`.
    pub(crate) fn demand(&self, kind: Kind, every: usize) -> Vec<u32> {
        let members = self.members(self.clients, every);
        let members = members.filter_map(|number| Some((number, self.profile(number)?)));
        crate::client::profile::demand(members, kind, &self.world)
    }

    /// Returns how many of the first `clients` clients will have everything. Those that flap do not count, because they may be
    /// away.
    pub(crate) fn complete_of(&self, clients: u32) -> u32 {
        let numbers = self.members(clients, 1).filter_map(|number| self.profile(number));
        u32::try_from(numbers.filter(|it| it.behaviour.flaps.is_none()).count()).unwrap_or(u32::MAX)
    }

    /// Returns how many clients are not steady.
    pub(crate) fn unsteady(&self) -> u32 {
        let profiles = self.members(self.clients, 1).filter_map(|number| self.profile(number));
        u32::try_from(profiles.filter(|it| !it.behaviour.is_steady()).count()).unwrap_or(u32::MAX)
    }

    /// Returns the numbers of the clients that are here, of the first `clients`, and of these the multiples of `every`.
    pub(crate) fn members(&self, clients: u32, every: usize) -> impl Iterator<Item = u32> {
        let (shard, shared) = (self.shard, self.per_connection.max(1));
        let numbers = (0..clients.min(self.clients)).step_by(every);
        numbers.filter(move |number| shard.has(number / shared))
    }

    /// Returns how many of the first `clients` clients leave if the multiples of `every` do: all of a connection leave together.
    pub(crate) fn leaving(&self, clients: u32, every: u32) -> u64 {
        let (every, shared) = (every.max(1), self.per_connection.max(1));
        let goes = |number: &u32| {
            let first = number / shared * shared;
            let end = first.saturating_add(shared).min(self.clients);
            first.checked_next_multiple_of(every).is_some_and(|next| next < end)
        };
        self.members(clients, 1).filter(goes).map(|_| 1).sum()
    }

    /// Returns the connections that are here.
    fn connections(&self) -> impl Iterator<Item = u32> {
        let shard = self.shard;
        let all = self.clients.div_ceil(self.per_connection.max(1));
        (0..all).filter(move |connection| shard.has(*connection))
    }
}

/// The running fleet. Dropping it ends its threads.
pub(crate) struct Fleet {
    /// Clients with a smaller number may connect.
    admitted: watch::Sender<u32>,
    orders: watch::Sender<Vec<Order>>,
    /// One for each thread.
    questions: Vec<mpsc::Sender<Question>>,
    threads: Vec<JoinHandle<anyhow::Result<()>>>,
    /// One for each thread.
    pub(crate) feeds: Vec<Feed>,
    pub(crate) progress: Arc<Progress>,
}

/// A question to a thread.
enum Question {
    /// How many of its clients do not hold what the control plane says?
    Behind(oneshot::Sender<usize>),
    /// How many have a stream? `anew`: asks servers that were silent whether they are there.
    Standing {
        anew: bool,
        reply: oneshot::Sender<Standing>,
    },
}

/// How long it is waited until it is known who has a stream.
const KNOWN_WITHIN: Duration = ANSWERED_WITHIN.saturating_add(Duration::from_secs(1));
/// How long a pause between two looks at what it answered is.
const LOOK: Duration = Duration::from_millis(20);
/// Concurrent connection attempts of a thread: fewer than any listener's backlog.
const CONNECTING_MAX: usize = 256;
const ADMITTED_AT_ONCE: u32 = 32;

impl Fleet {
    pub(crate) fn start(plan: &Plan, threads: u32) -> anyhow::Result<Self> {
        let progress = Arc::<Progress>::default();
        let admitted = watch::Sender::new(0);
        let orders = watch::Sender::new(Vec::new());
        let feeds = (0..threads).map(|_| Feed::new()).collect::<anyhow::Result<Vec<_>>>()?;
        let mut questions = Vec::new();
        let threads = (0..threads)
            .zip(&feeds)
            .map(|(thread, feed)| {
                let (ask, asked) = mpsc::channel(1);
                questions.push(ask);
                let share = Share {
                    plan: plan.clone(),
                    connections: plan
                        .connections()
                        .skip(usize::try_from(thread)?)
                        .step_by(usize::try_from(threads)?)
                        .collect(),
                    progress: Arc::clone(&progress),
                    feed: feed.clone(),
                    admitted: admitted.subscribe(),
                    orders: orders.subscribe(),
                    questions: asked,
                };
                std::thread::Builder::new()
                    .name(format!("clients-{thread}"))
                    .spawn(move || share.run())
                    .context("cannot start a thread for the clients")
            })
            .collect::<anyhow::Result<_>>()?;
        Ok(Self {
            admitted,
            orders,
            questions,
            threads,
            feeds,
            progress,
        })
    }

    /// Lets all clients with a smaller number connect.
    pub(crate) fn admit(&self, number: u32) {
        self.admitted.send_replace(number);
    }

    /// Returns the number below which clients may connect.
    pub(crate) fn admitted(&self) -> u32 {
        *self.admitted.borrow()
    }

    /// Tells some clients to do something.
    pub(crate) fn order(&self, order: Order) {
        self.orders.send_modify(|orders| orders.push(order));
    }

    /// Returns how many clients do not hold what the control plane says now.
    pub(crate) async fn behind(&self) -> anyhow::Result<usize> {
        Ok(self.ask(Question::Behind).await?.into_iter().sum())
    }

    /// Returns how the clients stand with their streams. Servers that have been silent are asked whether they are there.
    pub(crate) async fn standing(&self) -> anyhow::Result<Standing> {
        let begin = now();
        let mut anew = true;
        loop {
            let mut sum = Standing::default();
            let asked = self.ask(|reply| Question::Standing { anew, reply }).await?;
            asked.iter().for_each(|standing| sum.add(standing));
            if sum.is_final() || begin.elapsed() >= KNOWN_WITHIN {
                return Ok(sum);
            }
            anew = false;
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Asks all threads the same.
    async fn ask<T>(&self, question: impl Fn(oneshot::Sender<T>) -> Question) -> anyhow::Result<Vec<T>> {
        let mut replies = Vec::new();
        for thread in &self.questions {
            let (reply, replied) = oneshot::channel();
            let asked = thread.send(question(reply)).await;
            asked.ok().context("a thread of clients has ended")?;
            replies.push(replied.await?);
        }
        Ok(replies)
    }

    /// Disconnects all clients after a last check of what each one holds.
    pub(crate) fn stop(self) -> anyhow::Result<Tally> {
        drop(self.admitted);
        let mut sum = Tally::new()?;
        for thread in self.threads {
            thread
                .join()
                .map_err(|_| anyhow::anyhow!("a thread of clients panicked"))??;
        }
        for feed in &self.feeds {
            feed.total(&mut sum)?;
        }
        Ok(sum)
    }
}

/// The clients of one thread.
struct Share {
    plan: Plan,
    connections: Vec<u32>,
    progress: Arc<Progress>,
    feed: Feed,
    admitted: watch::Receiver<u32>,
    orders: watch::Receiver<Vec<Order>>,
    questions: mpsc::Receiver<Question>,
}

/// Answers a question. Without a receiver nobody waits for the answer any more.
fn answer(question: Question, clients: &Members, desks: &[(Rc<Desk>, Rc<Presence>)]) {
    match question {
        Question::Behind(reply) => {
            let is_behind = |it: &Client| it.lacks_a_change() || it.check_final().is_err();
            let behind = clients.borrow().iter().filter(|it| is_behind(&it.borrow())).count();
            let _ = reply.send(behind);
        }
        Question::Standing { anew, reply } => {
            let (mut standing, now) = (Standing::default(), now());
            for (desk, presence) in desks {
                if anew && presence.question(now) {
                    desk.ring();
                }
                presence.stand(&mut standing, now);
            }
            let _ = reply.send(standing);
        }
    }
}

type Members = RefCell<Vec<Rc<RefCell<Client>>>>;

impl Share {
    fn run(mut self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let clients = Members::default();
        let local = LocalSet::new();
        runtime.block_on(local.run_until(self.serve(&clients)));
        // The tasks end here, and with them the connections.
        drop(local);
        drop(runtime);
        // After a violation a client may lack resources without another fault of the server.
        let sound = self.progress.violated() == 0;
        for client in clients.into_inner().into_iter().filter(|_| sound) {
            let client = client.borrow();
            if !client.profile.behaviour.is_steady() {
                continue;
            }
            if let Err(violation) = client.check_final() {
                self.progress.note(client.number, &violation, client.transcript(now()));
            }
        }
        Ok(())
    }

    /// Starts clients as they are admitted, passes orders on to them, and returns when the fleet stops.
    async fn serve(&mut self, clients: &Members) {
        let (mut admitted, mut orders) = (self.admitted.clone(), self.orders.clone());
        let connecting = Rc::new(Semaphore::new(CONNECTING_MAX));
        let shared = Shared::new(self.feed.clone());
        let mut desks: Vec<(Rc<Desk>, Rc<Presence>)> = Vec::new();
        let (mut waiting, mut obeyed) = (self.connections.iter().copied().peekable(), 0);
        loop {
            let limit = *admitted.borrow_and_update();
            let first = |number: u32| number.saturating_mul(self.plan.per_connection);
            while let Some(number) = waiting.next_if(|number| first(*number) < limit) {
                let life = self.life(number, &connecting, &shared);
                clients.borrow_mut().extend(life.clients.iter().cloned());
                desks.push((Rc::clone(&life.desk), Rc::clone(&life.presence)));
                tokio::task::spawn_local(life.live());
                // New clients must not delay those that are already connected.
                if number.is_multiple_of(ADMITTED_AT_ONCE) {
                    tokio::task::yield_now().await;
                }
            }
            tokio::select! {
                changed = admitted.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                Ok(()) = orders.changed() => {
                    let all = orders.borrow_and_update().clone();
                    for order in all.get(obeyed..).unwrap_or_default() {
                        desks.iter().for_each(|(desk, _)| desk.put(*order));
                    }
                    obeyed = all.len();
                }
                Some(question) = self.questions.recv() => answer(question, clients, &desks),
            }
        }
    }

    fn life(&self, number: u32, connecting: &Rc<Semaphore>, shared: &Rc<Shared>) -> Life {
        let first = number.saturating_mul(self.plan.per_connection);
        let end = first.saturating_add(self.plan.per_connection).min(self.plan.clients);
        let clients = (first..end).filter_map(|number| {
            let profile = Arc::clone(self.plan.profile(number)?);
            let client = Client::new(number, profile, Arc::clone(&self.plan.world));
            Some(Rc::new(RefCell::new(client)))
        });
        let clients: Vec<_> = clients.collect();
        // All clients of a connection are of one group.
        let profile = self.plan.profile(first).map(|profile| &**profile);
        let count = u32::try_from(clients.len()).unwrap_or(u32::MAX);
        Life {
            number,
            clients,
            presence: Rc::new(Presence::new(Arc::clone(&self.progress), count, profile, now())),
            plan: self.plan.clone(),
            shared: Rc::clone(shared),
            connecting: Rc::clone(connecting),
            progress: Arc::clone(&self.progress),
            desk: Rc::default(),
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "transcripts show how long ago something happened"
)]
fn now() -> Instant {
    Instant::now()
}
