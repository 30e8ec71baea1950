// SPDX-License-Identifier: Apache-2.0
//! The one writer of a view.
//!
//! Owns the two streams to the view's control plane and the order of work. Knows nothing of who reads the view.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::access::ClassFiles;
use super::clock::now;
use super::dialer::Dialer;
use super::error_line::error_line;
use super::holding::{FindOtherViews, HeldView};
use super::leg::Leg;
use super::merged::add;
use super::overtime::{self, MANY};
use super::reports;
use super::status::{AnswerCount, Board, StreamStatus};
use super::target::{ServerTarget, UpstreamSettings};
use super::way::ViewStreams;
use crate::cache::{View, WordsQuestion};
use crate::clock;
use crate::proto::envoy::config::core::v3::Node;
use crate::protocol::{Client, Demand, Division, Holds, LegKind};
use crate::telemetry::{TracedArrival, UpstreamMetrics};
use crate::xds::{Changes, Name, ServerState, ServerWords, Slot, Target as Wanted, Twins, TypeUrl, Want};

/// How often wants are taken before the server is asked and heard: a request of a SotW stream has all names, so few are better than many.
const WANTS_AT_ONCE: usize = 8;

/// Keeps a view in step with its control plane.
///
/// Every turn is the same: wants go to the machines, changes into the view, and requests to the transport; then it waits for the
/// next event.
pub struct Writer<L: Talk = ViewStreams> {
    view: Arc<View>,
    /// The server's name for operators and clients.
    server: String,
    demand: Demand,
    /// Which names of a type are asked for beside the others.
    division: Division,
    holding: HeldView,
    questions: mpsc::Receiver<WordsQuestion>,
    /// The main connection and the one aside.
    talks: [L; 2],
}

/// One of a view's two connections to its server: a stream or polls.
pub trait Talk: Send {
    /// A want begins or ends.
    fn want(&mut self, want: &Want) -> Vec<Changes>;
    /// A want has begun for something that the relay knew before its restart.
    fn restore(&mut self, type_url: &TypeUrl, target: &Wanted, slot: &Slot) -> Option<Changes>;
    /// Opens and closes streams, sends requests, and adds the changes that follow from the time.
    fn turn(&mut self, changes: &mut Vec<Changes>);
    /// Waits for the next event.
    fn poll(&mut self, cx: &mut Context<'_>, changes: &mut Vec<Changes>) -> Poll<()>;
    /// When the next turn is due at the latest.
    fn poll_timeout(&self) -> Option<Instant>;
    /// Returns the server's state, if anything is wanted from it.
    fn server_state(&self) -> Option<ServerState>;
    /// Returns the types for which the server was found to have no answer since the last call.
    fn take_unserved(&mut self) -> Vec<TypeUrl>;
    /// Returns the responses since the last call, if changes are traced.
    fn take_arrivals(&mut self) -> Vec<TracedArrival>;
    /// Does something with each stream. Polls reject nothing (E-24).
    fn each_stream(&mut self, _act: &mut dyn FnMut(&mut Leg)) {}
    /// Returns the machines of its streams, first the one that types share. Polls have no lists that a server is silent about.
    fn clients(&mut self) -> Vec<&mut Client> {
        Vec::new()
    }
    /// Another server has stood in for this one.
    fn supersede(&mut self);
    /// K-25: the requests come through these relays as well.
    fn come_through(&mut self, relays: &[String]);
    /// Returns the marks of relays for which the server has refused the requests as a loop.
    fn take_loops(&mut self) -> Vec<String>;
    /// The sessions that brought these marks have ended.
    fn settle_loops(&mut self, _changes: &mut Vec<Changes>) {}

    /// Returns what the server said about a resource, if it is held.
    fn words(&self, type_url: &TypeUrl, name: &Name) -> Option<ServerWords>;

    /// Returns the place where its status is written.
    fn board(&self) -> &Board;

    /// D-03: returns how long nothing that directs traffic must have come before a removal counts, and how long that waits at most.
    fn removal_times(&self) -> (Duration, Duration);
}

impl<L: Talk> Writer<L> {
    /// Returns a function that reads the status of both streams.
    pub fn statuses(&self) -> impl Fn() -> Vec<StreamStatus> + Send + Sync + use<L> {
        let boards = self.talks.each_ref().map(|talk| talk.board().clone());
        move || boards.iter().map(Board::read).collect()
    }
}

impl Writer<ViewStreams> {
    /// Creates the writer of a view. The relay presents itself to the control plane as `node`, with the certificate and token in
    /// `files` if the view's class has its own.
    #[must_use]
    pub fn new(
        view: Arc<View>,
        node: &Arc<Node>,
        target: &Arc<ServerTarget>,
        files: Option<ClassFiles>,
        settings: &Arc<UpstreamSettings>,
    ) -> Self {
        let access = target.record.access.for_class(files);
        let answers = AnswerCount::default();
        let way = |which| {
            let dialer = Dialer::new(which, target.clone(), access.clone(), settings.clone());
            ViewStreams::new(Leg::new(dialer, node.clone(), answers.clone()))
        };
        Self::of(
            view,
            target.record.uri(),
            &target.record.metrics,
            settings,
            [LegKind::Main, LegKind::Aside].map(way),
        )
    }
}

impl<L: Talk> Writer<L> {
    pub(super) fn of(
        view: Arc<View>,
        server: &str,
        metrics: &UpstreamMetrics,
        settings: &UpstreamSettings,
        talks: [L; 2],
    ) -> Self {
        let told = (metrics.traces.clone(), metrics.holds.clone());
        let waiting = Holds::new(settings.removal_quiet, settings.order_gate, view.guarded().settings());
        Self {
            questions: view.mailbox().questions(),
            holding: HeldView::new(view.clone(), server, told, waiting),
            view,
            server: server.to_owned(),
            demand: Demand::default(),
            division: Division::default(),
            talks,
        }
    }

    /// D-11, D-12: removals and changes wait for what clients read of other servers, which is found in this way.
    #[must_use]
    pub fn seeing(mut self, find: FindOtherViews) -> Self {
        self.holding.look_at_other_views(find);
        self
    }

    /// Bytes that other views have as well are kept once. What polls bring is not looked up.
    #[must_use]
    pub fn sharing(mut self, twins: &Twins) -> Self {
        for talk in &mut self.talks {
            talk.each_stream(&mut |leg| leg.share(twins));
        }
        self
    }

    /// Works until the view is closed.
    pub async fn run(mut self) {
        self.holding.begin();
        let mut changes = Vec::new();
        while !self.view.mailbox().is_closed() {
            let is_long = updates(&changes) + self.holding.holds().len() > MANY;
            overtime::turn(is_long, pin!(self.turn(&mut changes))).await;
            self.next(&mut changes).await;
            // A server that sends without a pause must not block the other tasks of this thread.
            tokio::task::yield_now().await;
            if self.holding.poll_timeout().is_some_and(|due| due <= now()) {
                // D-03: on a busy machine, a route may have arrived in time and not been read.
                poll_fn(|cx| Poll::Ready(self.hear(cx, &mut changes))).await;
            }
        }
        self.holding.close();
    }

    async fn turn(&mut self, changes: &mut Vec<Changes>) {
        let [main, _] = &self.talks;
        let (quiet, bound) = main.removal_times();
        self.holding.holds().set(quiet, bound);
        self.holding.holds().handle_settings(self.view.guarded().settings());
        let orders = self.holding.take_orders();
        self.pass_marks(changes);
        // What the servers said waits, if it removes. What follows from a want below does not wait: it answers the want (D-03).
        self.holding.hear(changes, &self.view.cut());
        if self.view.mailbox().take_superseded() {
            self.talks.iter_mut().for_each(L::supersede);
        }
        for _ in 0..WANTS_AT_ONCE {
            self.pass_wants(changes);
            if !self.view.demand().is_behind() {
                break;
            }
            tokio::task::yield_now().await;
        }
        let mut arrivals: Vec<TracedArrival> = self.talks.iter_mut().flat_map(L::take_arrivals).collect();
        loop {
            let mut said = Vec::new();
            for again in [true, false] {
                // What time has told the streams may move names, which they say at once.
                if self.divide() || again {
                    self.talks.iter_mut().for_each(|talk| talk.turn(&mut said));
                }
            }
            let cut = self.view.cut();
            self.holding.hear(&mut said, &cut);
            changes.append(&mut said);
            if self.free_names(changes) {
                continue;
            }
            self.holding.cross(changes, &cut);
            if changes.is_empty() {
                // What lets a removal go is published by now.
                changes.append(&mut self.holding.look(&cut));
            }
            if changes.is_empty() {
                let server_state = self.server_state();
                self.holding.handle_server(server_state, &cut);
                self.holding.tell();
                reports::turn(&self.view, &mut self.talks);
                self.view.head().publish_reason(self.reason(server_state).as_deref());
                self.view.publish_server_state(server_state);
                drop(orders);
                return;
            }
            // Nothing is said to be held that is not served.
            self.holding.tell();
            self.holding
                .publish(changes, &std::mem::take(&mut arrivals), &cut)
                .await;
            changes.clear();
            let told = self.demand.handle_cut(&self.view.cut());
            self.tell(told, changes);
        }
    }

    /// K-25: what is refused as a loop has come through sessions that end now; the others go on.
    fn pass_marks(&mut self, changes: &mut Vec<Changes>) {
        let loops = self.talks.iter_mut().flat_map(L::take_loops);
        loops.for_each(|mark| self.view.end_loop(&mark, now()));
        let relays = self.view.mailbox().take_relays(now());
        for talk in &mut self.talks {
            relays.iter().for_each(|relays| talk.come_through(relays));
            talk.settle_loops(changes);
        }
    }

    /// Moves names that may silence the server (K-01, E-27). Returns whether any have moved.
    fn divide(&mut self) -> bool {
        let demand = self.view.demand();
        let is_wanted = |type_url: &TypeUrl, name: &Name| demand.wants(type_url, name);
        let mut streams = streams(&mut self.talks);
        !streams.is_empty() && self.division.turn(&mut streams, is_wanted, now())
    }

    /// Passes on what is wanted, or some of it.
    fn pass_wants(&mut self, changes: &mut Vec<Changes>) {
        for want in self.view.take_wants(now()) {
            if !want.wanted {
                self.holding.holds().handle_unwanted(&want.type_url, &want.target);
            }
            let told = self.demand.handle_want(&want, &self.view.cut());
            self.tell(told, changes);
        }
    }

    /// Asks for names that waited for a wildcard which the server does not answer. Returns whether there were any.
    fn free_names(&mut self, changes: &mut Vec<Changes>) -> bool {
        let unserved: Vec<TypeUrl> = self.talks.iter_mut().flat_map(L::take_unserved).collect();
        if unserved.is_empty() {
            return false;
        }
        let cut = self.view.cut();
        let told = unserved
            .iter()
            .flat_map(|type_url| self.demand.handle_unserved(type_url, &cut));
        let told: Vec<_> = told.collect();
        let any = !told.is_empty();
        self.tell(told, changes);
        any
    }

    /// Returns the state by those of the two streams that count. If none counts, the state stays as it was.
    fn server_state(&self) -> ServerState {
        let states = self.talks.iter().filter_map(L::server_state);
        states
            .reduce(ServerState::beside)
            .unwrap_or_else(|| self.view.cut().server_state())
    }

    /// Returns why the server has not answered, for clients that cannot be served.
    fn reason(&self, server_state: ServerState) -> Option<String> {
        if server_state == ServerState::Up {
            return None;
        }
        let error = self.talks.iter().find_map(|talk| talk.board().error());
        error.map(|error| error_line(&self.server, &error))
    }

    fn tell(&mut self, mut told: Vec<(LegKind, Want)>, changes: &mut Vec<Changes>) {
        loop {
            let (earlier, mut restored) = (self.view.head().restored(), Vec::new());
            for (which, want) in told {
                let which = if self.division.concerns(&want.type_url) {
                    let mut streams = streams(&mut self.talks);
                    self.division.route(which, &want, &mut streams)
                } else {
                    which
                };
                let [main, aside] = &mut self.talks;
                let leg = match which {
                    LegKind::Main => main,
                    LegKind::Aside => aside,
                };
                leg.want(&want).into_iter().for_each(|change| add(changes, change));
                let slot = earlier.as_ref().and_then(|earlier| earlier.slot(&want.type_url));
                if let Some(slot) = slot.filter(|_| want.wanted) {
                    let known = leg.restore(&want.type_url, &want.target, slot);
                    known.into_iter().for_each(|change| add(&mut restored, change));
                }
            }
            if restored.is_empty() {
                return;
            }
            // The restored resources are published before the server is asked. A restored wildcard may cover names, which changes
            // the wants.
            drop(self.view.publish_restored(&restored));
            told = self.demand.handle_cut(&self.view.cut());
        }
    }

    async fn next(&mut self, changes: &mut Vec<Changes>) {
        let timer = clock::sleep_if(self.deadline());
        let view = self.view.clone();
        let mut interest = pin!(view.mailbox().changed());
        let mut timer = pin!(timer);
        poll_fn(|cx: &mut Context<'_>| {
            let mut any = self.hear(cx, changes);
            self.answer_questions(cx);
            any |= interest.as_mut().poll(cx).is_ready() || timer.as_mut().poll(cx).is_ready();
            if any { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Answers operators. This changes nothing, so no turn follows.
    fn answer_questions(&mut self, cx: &mut Context<'_>) {
        while let Poll::Ready(Some(question)) = self.questions.poll_recv(cx) {
            let talks = &self.talks;
            question.answer(|type_url, name| talks.iter().find_map(|talk| talk.words(type_url, name)));
        }
    }

    /// Returns whether either connection has had an event. Both are polled.
    fn hear(&mut self, cx: &mut Context<'_>, changes: &mut Vec<Changes>) -> bool {
        let heard = self.talks.iter_mut().map(|talk| talk.poll(cx, changes).is_ready());
        heard.filter(|heard| *heard).count() > 0
    }

    fn deadline(&self) -> Option<Instant> {
        let all = [
            self.view.demand().poll_timeout(),
            self.view.mailbox().relays_due(),
            self.holding.poll_timeout(),
            self.division.poll_timeout(),
        ];
        let talks = self.talks.iter().map(L::poll_timeout);
        all.into_iter().chain(talks).flatten().min()
    }
}

fn updates(changes: &[Changes]) -> usize {
    changes.iter().map(|change| change.updates.len()).sum()
}

/// Returns the machines of all streams, each with what its stream is for.
fn streams<L: Talk>(talks: &mut [L; 2]) -> Vec<(LegKind, &mut Client)> {
    let legs = [LegKind::Main, LegKind::Aside].into_iter().zip(talks);
    let all = legs.flat_map(|(which, talk)| talk.clients().into_iter().map(move |client| (which, client)));
    all.collect()
}
