// SPDX-License-Identifier: Apache-2.0
//! The seats of one session: at the views of all servers that it watches. For each owner of names it reads one of these views.
//!
//! Owns the seats, and that nothing is read from two views. Knows nothing of responses: the machine of the session says what
//! it wants and lacks, and [`Fallback`] decides which server to read.

mod bindings;
mod rerouted;
mod telling;

use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use bindings::Bindings;

use crate::cache::{Claims, NoPlace, Routes, Scopes, Seat};
use crate::classes::Node;
use crate::clock;
use crate::inquiry::Inquiry;
use crate::protocol::{Fallback, Look, Server, Step};
use crate::xds::{Dirty, Owners, ServerState, Sight, TypeUrl, Want};

/// The seats of one session.
pub struct Seats {
    node: Arc<Node>,
    /// Those that the session has taken up.
    routes: Arc<Routes>,
    bindings: Bindings,
    /// The task that polls the bells.
    reader: Option<Waker>,
}

/// The servers and seats of one owner for the session.
struct Binding {
    /// The authority or the source; `None`: all names without an owner.
    owner: Option<Arc<str>>,
    servers: Arc<[usize]>,
    fallback: Fallback,
    /// One for each watched server, by priority.
    seats: Vec<Seat>,
    /// The types that have come to this owner since it leaves its server, which is not asked for them: what it has of them for others
    /// is not read.
    #[expect(clippy::box_collection, reason = "every stream has this value")]
    unread: Option<Box<Vec<TypeUrl>>>,
}

/// Where a session finds its seats.
struct Places<'a> {
    scopes: &'a Scopes,
    routes: &'a Routes,
    node: &'a Arc<Node>,
    /// Those of the session's connection.
    claims: &'a Arc<Claims>,
}

/// What the bells reported, apart from the changes.
#[derive(Default)]
pub struct Rung {
    /// Whether any bell has rung for more than a question.
    pub any: bool,
    /// Whether the session must end, because too much outdated content is kept for it, or its client brings a mark that is refused.
    pub dismissed: bool,
    /// Whether a view that it does not read yet says so. That keeps nothing for it.
    pub refused: bool,
    /// What the session is asked. Mostly nobody asks.
    pub inquiries: Option<Vec<Arc<Inquiry>>>,
}

impl Seats {
    /// Takes seats for a client. A server may lack a resource for `patience`; then the session is bound to it nevertheless.
    ///
    /// # Errors
    ///
    /// When there would be more views than allowed, or the client's class has no credentials.
    pub fn enter(scopes: &Scopes, node: &Arc<Node>, claims: &Arc<Claims>, patience: Duration) -> Result<Self, NoPlace> {
        let routes = scopes.routes();
        let places = Places {
            scopes,
            routes: &routes,
            node,
            claims,
        };
        let plain = Binding::new(&places, None, patience)?;
        Ok(Self {
            node: node.clone(),
            routes,
            bindings: Bindings::new(plain),
            reader: None,
        })
    }

    /// Adds or removes a subscription of the session.
    ///
    /// # Errors
    ///
    /// When a view would hold more names than allowed.
    pub fn want(&mut self, scopes: &Scopes, want: &Want) -> Result<(), NoPlace> {
        let owner = self.routes.owners().of(&want.type_url, want.target.name());
        if let Some(binding) = self.bindings.of(owner) {
            return binding.want(want);
        }
        if !want.wanted {
            return Ok(());
        }
        let owner = owner.map(Arc::from);
        let patience = self.bindings.plain.fallback.patience();
        let places = Places {
            scopes,
            routes: &self.routes,
            node: &self.node,
            claims: &self.claims(),
        };
        let binding = Binding::new(&places, owner.as_ref(), patience)?;
        let outcome = binding.want(want);
        self.bindings.add(binding);
        self.listen_again();
        outcome
    }

    /// Tells the views that the session has no further subscription changes for now.
    pub fn rest(&self) {
        let seats = self.bindings.iter().flat_map(|binding| &binding.seats);
        seats.for_each(Seat::rest);
    }

    /// Returns what has rung since the last call; the next ring wakes the task. `tell` gets the changes in the views that the
    /// session reads.
    pub fn poll_bells(&mut self, cx: &mut Context<'_>, mut tell: impl FnMut(&TypeUrl, Dirty)) -> Rung {
        match &mut self.reader {
            Some(reader) => reader.clone_from(cx.waker()),
            None => self.reader = Some(cx.waker().clone()),
        }
        let mut rung = Rung::default();
        for binding in self.bindings.iter() {
            for (server, seat) in binding.seats.iter().enumerate() {
                let read = server == binding.fallback.bound();
                let tell = |type_url: &TypeUrl, dirty| {
                    if read {
                        tell(type_url, dirty);
                    }
                };
                let Some(rang) = seat.bell().poll_rang(cx, tell) else {
                    continue;
                };
                rung.any |= rang.changed;
                if !read {
                    // No outdated content is kept for a view that the session does not read.
                    seat.bell().looked(|_| true);
                    rung.refused |= rang.dismissed;
                    continue;
                }
                rung.dismissed |= rang.dismissed;
                if let Some(asked) = rang.inquiries {
                    let whole = self.answers_at(binding);
                    let asked = asked.into_iter();
                    rung.inquiries
                        .get_or_insert_default()
                        .extend(asked.filter(|inquiry| whole || inquiry.question().is_about_one()));
                }
            }
        }
        rung
    }

    /// Records that the session has handled all changes of the types for which `at` is true. Returns whether others are left.
    pub fn looked(&self, at: impl Fn(&TypeUrl) -> bool) -> bool {
        let mut others = false;
        for seat in self.bindings.iter().filter_map(Binding::seat) {
            others |= seat.bell().looked(&at);
        }
        others
    }

    /// Returns the content that the session reads now.
    pub fn sight(&self) -> Sight {
        let mut sight = Sight::new(self.bindings.plain.cut(), self.routes.owners().clone());
        for binding in self.bindings.others() {
            if let Some(owner) = &binding.owner {
                sight.add(owner.clone(), binding.cut());
            }
        }
        // Whether there are others matters only where one has failed.
        if sight.any_failing() {
            for binding in self.bindings.iter().filter(|binding| binding.has_others()) {
                sight.add_other(binding.owner.clone());
            }
        }
        sight
    }

    /// K-20: whether the bells have said all that a sight shows which was read before this is asked.
    pub fn are_told(&self) -> bool {
        self.bindings.iter().filter_map(Binding::seat).all(Seat::is_told)
    }

    /// Whether the operator has changed something since [`Self::settle`] that sessions must take up.
    pub fn is_called(&self, scopes: &Scopes) -> bool {
        scopes.is_rerouted(&self.routes)
    }

    /// Whether the session has one server, and nothing was changed that it must take up: then it does not move.
    pub fn is_bound(&self, scopes: &Scopes) -> bool {
        self.has_one_server() && !self.is_called(scopes)
    }

    fn has_one_server(&self) -> bool {
        self.bindings.is_plain() && self.bindings.plain.servers.len() < 2
    }

    /// Moves the session to the best server. Returns whether it reads another view now.
    pub fn settle(&mut self, scopes: &Scopes, server: &Server, now: Instant) -> bool {
        let rerouted = self.is_called(scopes) && self.reroute(scopes, server);
        if self.has_one_server() {
            return rerouted;
        }
        let claims = self.claims();
        let places = Places {
            scopes,
            routes: &self.routes,
            node: &self.node,
            claims: &claims,
        };
        let (mut moved, mut seated) = (rerouted, false);
        for binding in self.bindings.iter_mut() {
            let seats = binding.seats.len();
            let moves = binding.settle(&places, server, now);
            seated |= moves || binding.seats.len() > seats;
            moved |= moves;
        }
        if seated {
            self.listen_again();
        }
        moved
    }

    /// Whether the session moves only if a server that it reads fails.
    pub fn is_at_rest(&self) -> bool {
        self.bindings.iter().all(|binding| binding.fallback.at_rest())
    }

    /// Wakes the reader, because it does not listen to the bell of a new seat yet.
    fn listen_again(&self) {
        if let Some(reader) = &self.reader {
            reader.wake_by_ref();
        }
    }

    /// Returns when [`Self::settle`] is due again.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let times = self.bindings.iter().map(|binding| binding.fallback.poll_timeout());
        clock::earliest(times)
    }

    /// Returns the number of the server that is read for an owner.
    pub fn server(&self, owner: Option<&str>) -> Option<usize> {
        let binding = self.bindings.of(owner)?;
        binding.servers.get(binding.fallback.bound()).copied()
    }

    /// Returns the number of the server from which the wildcard of a type is read, and its names without an authority.
    pub fn server_of(&self, type_url: &TypeUrl) -> Option<usize> {
        self.server(self.routes.owners().of(type_url, None))
    }

    fn claims(&self) -> Arc<Claims> {
        let seat = self.bindings.plain.seats.first();
        seat.map(|seat| seat.claims().clone()).unwrap_or_default()
    }
}

impl Places<'_> {
    fn seat(&self, owner: Option<&Arc<str>>, server: usize) -> Result<Seat, NoPlace> {
        let shared = self.routes.is_shared(owner.map(|owner| &**owner));
        self.scopes.seat(self.node, owner, shared, server, self.claims)
    }
}

impl Binding {
    fn new(places: &Places<'_>, owner: Option<&Arc<str>>, patience: Duration) -> Result<Self, NoPlace> {
        let route = places.routes.route(owner.map(|owner| &**owner), places.node);
        let route = route.cloned().unwrap_or_default();
        let first = route.servers.first();
        let seat = first.map(|server| places.seat(owner, *server));
        Ok(Self {
            owner: owner.cloned(),
            fallback: Fallback::new(route.servers.len(), route.reachability_only, patience),
            servers: route.servers,
            seats: seat.transpose()?.into_iter().collect(),
            unread: None,
        })
    }

    /// Begins or ends a subscription. A server that the session leaves is not asked for what is not read there.
    fn want(&self, want: &Want) -> Result<(), NoPlace> {
        let unread = want.wanted && self.is_unread(&want.type_url);
        let mut asked = self.seats.iter().skip(usize::from(unread));
        Ok(asked.try_for_each(|seat| seat.want(want))?)
    }

    /// Returns the seat at the view that is read.
    fn seat(&self) -> Option<&Seat> {
        self.seats.get(self.fallback.bound())
    }

    /// Whether the session may still come to read another server: one is not tried yet, or has not failed.
    fn has_others(&self) -> bool {
        let fails = |seat: &Seat| seat.view().head().server_state() == ServerState::Failing;
        self.servers.len() > 1 && !(self.seats.len() == self.servers.len() && self.seats.iter().all(fails))
    }

    fn settle(&mut self, places: &Places<'_>, server: &Server, now: Instant) -> bool {
        let before = self.fallback.bound();
        let server_state = self.seat().map(|seat| seat.view().head().server_state());
        if self.fallback.at_rest() && server_state != Some(ServerState::Failing) {
            return false;
        }
        let owner = self.owner.clone();
        let owner = owner.as_deref();
        while let Some(step) = {
            let left = usize::from(self.fallback.is_leaving());
            let others = self.seats.iter().skip(left);
            let others = others.map(|seat| look(seat, owner, places.routes.owners(), server));
            let looks: Vec<Look> = std::iter::repeat_n(Look::LEFT, left).chain(others).collect();
            self.fallback.handle_looks(&looks, server.sent() > 0, now)
        } {
            match step {
                Step::Bind(to) => {
                    for seat in self.seats.iter().take(to) {
                        seat.view().mailbox().supersede();
                    }
                }
                Step::Watch(watched) if watched <= self.seats.len() => self.seats.truncate(watched),
                Step::Watch(_) => {
                    if !self.watch_next(places, server) {
                        break;
                    }
                }
            }
        }
        let moved = self.fallback.bound() != before;
        self.drop_left();
        let (bound, several) = (self.fallback.bound(), self.seats.len() > 1);
        for (at, seat) in self.seats.iter().enumerate() {
            seat.watch(at != bound);
            seat.compare(several);
            if let Some(bound) = self.seats.get(bound).filter(|_| moved && at != bound) {
                seat.view().note_elsewhere(bound.view());
            }
            // G-12: while a fallback serves the session, a server that comes back must start afresh. If it were told the versions
            // of its earlier resources, it might send nothing, and no session would return to it.
            let gone = !seat.view().cut().server_state().reachable();
            if at < bound && gone {
                seat.view().mailbox().supersede();
            }
        }
        moved
    }

    /// G-06: takes a seat at the next server's view, and subscribes there to everything that the session wants of the owner. Returns
    /// whether there was room.
    fn watch_next(&mut self, places: &Places<'_>, server: &Server) -> bool {
        let owner = self.owner.as_deref();
        let Some(next) = self.servers.get(self.seats.len()) else {
            return false;
        };
        let seat = places.seat(self.owner.as_ref(), *next).and_then(|seat| {
            seat.watch(true);
            server
                .wants(owner, places.routes.owners())
                .try_for_each(|want| seat.want(&want))?;
            Ok(seat)
        });
        match seat {
            Ok(seat) => {
                self.seats.push(seat);
                self.seats.iter().for_each(|seat| seat.compare(true));
            }
            Err(error) => {
                tracing::warn!(%error, "a session cannot fall back to the next server");
                return false;
            }
        }
        true
    }
}

fn look(seat: &Seat, owner: Option<&str>, owners: &Owners, server: &Server) -> Look {
    let cut = seat.view().cut();
    Look {
        server_state: cut.server_state(),
        lacks: server.lacks(owner, owners, &cut),
        fresh: server.is_fresh(owner, owners, &cut),
    }
}
