// SPDX-License-Identifier: Apache-2.0
//! The life of a connection and of its clients: connects, reconnects if the clients do, and reports their progress.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};
use tokio::time::{sleep, sleep_until};

use crate::fleet::client::profile::Delay;
use crate::fleet::client::{Client, Outcome};
use crate::fleet::connection::{Connection, Fault, Shared, deadline};
use crate::fleet::presence::Presence;
use crate::fleet::progress::{Progress, Refusal};
use crate::fleet::{Order, Plan};
use crate::measure::now;
use crate::measure::tally::Tally;

/// One connection with all its reconnects.
pub(crate) struct Life {
    pub(crate) number: u32,
    pub(crate) plan: Plan,
    pub(crate) clients: Vec<Rc<RefCell<Client>>>,
    pub(crate) shared: Rc<Shared>,
    pub(crate) connecting: Rc<Semaphore>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) desk: Rc<Desk>,
    pub(crate) presence: Rc<Presence>,
}

/// Where a connection finds the orders for its clients.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    orders: RefCell<VecDeque<Order>>,
    bell: Notify,
}

/// What ended a connection.
enum End {
    Fault(Fault),
    /// Its clients left, and come back after this time.
    Left(Duration),
}

/// How long a client waits before it comes back.
const RETURN_AFTER: Duration = Duration::from_millis(200);

impl Desk {
    pub(crate) fn put(&self, order: Order) {
        self.orders.borrow_mut().push_back(order);
        self.ring();
    }

    /// Has the connection look for questions, too.
    pub(crate) fn ring(&self) {
        self.bell.notify_one();
    }
}

impl Life {
    /// Connects and reads until the connection ends; repeats that if the profile says so.
    pub(crate) async fn live(mut self) {
        let mut turns = 0;
        loop {
            turns += 1;
            let pause = match self.stream(turns).await {
                End::Left(pause) => {
                    self.presence.leave();
                    pause
                }
                End::Fault((at, violation)) => {
                    self.presence.lose(&violation, now());
                    if let Some(loss) = violation.loss() {
                        *self.shared.feed.tally().losses.entry(loss).or_default() += 1;
                    }
                    let client = self.clients.get(at).map(|client| client.borrow());
                    let Some(client) = client else { return };
                    let returns = client.profile.behaviour.returns && violation.loss().is_some();
                    let unserved = self.plan.world.is_foreign() && !client.is_answered();
                    if let Some(why) = violation.refusal().filter(|_| unserved) {
                        self.progress.refuse(Refusal {
                            client: client.number,
                            why,
                            is_final: !returns,
                        });
                        if !returns {
                            return;
                        }
                    } else if !returns {
                        self.progress.note(client.number, &violation, client.transcript(now()));
                        return;
                    }
                    RETURN_AFTER
                }
            };
            for client in &self.clients {
                let mut client = client.borrow_mut();
                let behaviour = &client.profile.behaviour;
                let (anew, stays) = (!behaviour.remembers, behaviour.flaps.is_none());
                if anew && std::mem::take(&mut client.complete) && stays {
                    self.progress.begin_anew();
                }
            }
            sleep(pause).await;
            self.presence.come_back();
        }
    }

    /// Runs one connection until something ends it.
    async fn stream(&mut self, turns: u64) -> End {
        let begun = now();
        let mut connection = {
            let _permit = self.connecting.acquire().await;
            // All clients of a connection are of one group.
            let first = self.clients.first().map(|client| client.borrow());
            let first = first.map(|client| (client.number, Arc::clone(&client.profile)));
            let Some((client, profile)) = first else {
                return End::Left(RETURN_AFTER);
            };
            let above = self.plan.above.as_ref().filter(|_| profile.above);
            let target = above.unwrap_or(&self.plan.target);
            let (shared, presence) = (Rc::clone(&self.shared), Rc::clone(&self.presence));
            match Connection::open(target, self.number, client, &profile, shared, presence).await {
                Ok(connection) => connection,
                Err(violation) => return End::Fault((0, violation)),
            }
        };
        for client in &self.clients {
            client.borrow_mut().begin(begun);
        }
        self.presence.connect(now());
        if turns > 1 {
            self.progress
                .come_back(u64::try_from(self.clients.len()).unwrap_or_default());
        }
        let stay = self.stay(turns).map(|stay| begun + stay);
        let (progress, all) = (&self.progress, u64::from(self.plan.clients.max(1)));
        let mut answered = |client: &mut Client, outcome: Outcome, tally: &mut Tally| {
            if outcome.completed {
                tally.join.record(begun.elapsed());
            }
            // Clients that flap are not awaited.
            let completed = outcome.completed && stay.is_none();
            progress.answered(Outcome { completed, ..outcome });
            if let Some(responses) = client.waited(progress.messages()) {
                tally.waits.record_thousandths(responses * 1000 / all);
            }
        };
        loop {
            let due = deadline(&self.clients).into_iter().chain(stay);
            let due = due.chain(self.presence.due()).min();
            tokio::select! {
                ended = connection.turn(&self.clients, &mut answered) => {
                    if let Err(fault) = ended {
                        return End::Fault(fault);
                    }
                }
                () = self.desk.bell.notified() => {
                    if self.presence.take_question(now()) {
                        connection.ping();
                    }
                    if let Some(pause) = self.obey() {
                        return End::Left(pause);
                    }
                }
                () = sleep_until(due.unwrap_or(begun).into()), if due.is_some() => {
                    let now = now();
                    if let Err(silent) = self.presence.look(connection.is_greeted(), now) {
                        return End::Fault((0, silent));
                    }
                    if stay.is_some_and(|stay| stay <= now) {
                        return End::Left(RETURN_AFTER);
                    }
                    self.clients.iter().for_each(|client| client.borrow_mut().handle_time(now));
                }
            }
        }
    }

    /// Returns how long it stays this time; none if it stays for good.
    fn stay(&self, turns: u64) -> Option<Duration> {
        let client = self.clients.first()?.borrow();
        let mean = client.profile.behaviour.flaps?;
        Some(Delay::Uniform(mean / 2, mean * 3 / 2).draw(client.number, turns))
    }

    /// Obeys an order; returns how long to stay away if the order is to leave.
    fn obey(&self) -> Option<Duration> {
        let mut pause = None;
        for order in self.desk.orders.borrow_mut().drain(..) {
            for client in &self.clients {
                let mut client = client.borrow_mut();
                match order {
                    Order::Wish(wish) if client.number.is_multiple_of(wish.every) => {
                        client.handle_wish(wish.kind, wish.index, now());
                    }
                    Order::Leave { every, pause: time } if client.number.is_multiple_of(every) => pause = Some(time),
                    Order::Wish(_) | Order::Leave { .. } => {}
                }
            }
        }
        pause
    }
}
