// SPDX-License-Identifier: Apache-2.0
//! The fleet: all clients, in a thread of their own. It admits them and collects violations.
//!
//! Owns the clients, who they say they are, what they ask for and check, and their connections. Refuses to know which server they ask,
//! and what a scenario does with them.

pub(crate) mod client;
mod connection;
pub(crate) mod crew;
mod held;
pub(crate) mod identity;
mod life;
mod plan;
pub(crate) mod presence;
pub(crate) mod progress;
pub(crate) mod violation;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::LocalSet;

pub(crate) use plan::{Order, Plan, Wish};

use crate::fleet::client::Client;
use crate::fleet::connection::Shared;
use crate::fleet::life::{Desk, Life};
use crate::fleet::presence::{ANSWERED_WITHIN, Presence, Standing};
use crate::fleet::progress::Progress;
use crate::measure::now;
use crate::measure::tally::Feed;

/// The running fleet. Dropping it ends its thread.
pub(crate) struct Fleet {
    /// Clients with a smaller number may connect.
    admitted: watch::Sender<u32>,
    orders: watch::Sender<Vec<Order>>,
    questions: mpsc::Sender<Question>,
    thread: JoinHandle<anyhow::Result<()>>,
    pub(crate) feed: Feed,
    pub(crate) progress: Arc<Progress>,
}

/// A question to its thread.
enum Question {
    /// How many clients do not hold what the control plane says?
    Behind(oneshot::Sender<usize>),
    /// How many of them were given nothing of all that they ask for?
    Empty(oneshot::Sender<usize>),
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
    pub(crate) fn start(plan: &Plan) -> anyhow::Result<Self> {
        let progress = Arc::<Progress>::default();
        let admitted = watch::Sender::new(0);
        let orders = watch::Sender::new(Vec::new());
        let feed = Feed::new()?;
        let (questions, asked) = mpsc::channel(1);
        let share = Members {
            plan: plan.clone(),
            progress: Arc::clone(&progress),
            feed: feed.clone(),
            admitted: admitted.subscribe(),
            orders: orders.subscribe(),
            questions: asked,
        };
        let thread = std::thread::Builder::new()
            .name("clients".to_owned())
            .spawn(move || share.run())
            .context("cannot start a thread for the clients")?;
        Ok(Self {
            admitted,
            orders,
            questions,
            thread,
            feed,
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
        self.ask(Question::Behind).await
    }

    /// Returns how many clients were given nothing of all that they ask for.
    pub(crate) async fn empty(&self) -> anyhow::Result<usize> {
        self.ask(Question::Empty).await
    }

    /// Returns how the clients stand with their streams. Servers that have been silent are asked whether they are there.
    pub(crate) async fn standing(&self) -> anyhow::Result<Standing> {
        let begin = now();
        let mut anew = true;
        loop {
            let standing = self.ask(|reply| Question::Standing { anew, reply }).await?;
            if standing.is_final() || begin.elapsed() >= KNOWN_WITHIN {
                return Ok(standing);
            }
            anew = false;
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn ask<T>(&self, question: impl FnOnce(oneshot::Sender<T>) -> Question) -> anyhow::Result<T> {
        let (reply, replied) = oneshot::channel();
        let asked = self.questions.send(question(reply)).await;
        asked.ok().context("the thread of clients has ended")?;
        Ok(replied.await?)
    }

    /// Disconnects all clients after a last check of what each one holds.
    pub(crate) fn stop(self) -> anyhow::Result<()> {
        drop(self.admitted);
        let ended = self.thread.join();
        ended.map_err(|_| anyhow::anyhow!("the thread of clients panicked"))?
    }
}

/// The clients in their thread.
struct Members {
    plan: Plan,
    progress: Arc<Progress>,
    feed: Feed,
    admitted: watch::Receiver<u32>,
    orders: watch::Receiver<Vec<Order>>,
    questions: mpsc::Receiver<Question>,
}

/// Answers a question. Without a receiver nobody waits for the answer any more.
fn answer(question: Question, clients: &Clients, desks: &[(Rc<Desk>, Rc<Presence>)]) {
    match question {
        Question::Behind(reply) => {
            let is_behind = |it: &Client| it.lacks_a_change() || it.check_final().is_err();
            let behind = clients.borrow().iter().filter(|it| is_behind(&it.borrow())).count();
            let _ = reply.send(behind);
        }
        Question::Empty(reply) => {
            let clients = clients.borrow();
            let _ = reply.send(clients.iter().filter(|it| it.borrow().holds_nothing()).count());
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

type Clients = RefCell<Vec<Rc<RefCell<Client>>>>;

impl Members {
    fn run(mut self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let clients = Clients::default();
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
    async fn serve(&mut self, clients: &Clients) {
        let (mut admitted, mut orders) = (self.admitted.clone(), self.orders.clone());
        let connecting = Rc::new(Semaphore::new(CONNECTING_MAX));
        let shared = Shared::new(self.feed.clone());
        let mut desks: Vec<(Rc<Desk>, Rc<Presence>)> = Vec::new();
        let (mut waiting, mut obeyed) = (self.plan.connections().peekable(), 0);
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
