// SPDX-License-Identifier: Apache-2.0
//! All views, by the class of clients that share each and the server that its content comes from.
//!
//! Owns that there is one view for each class and server, that there are never more views than allowed, and when a view ends.
//! Does not know who writes into a view: whoever starts the writers waits for new views here.

mod admitted;
mod others;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::claims::{Claims, is_fair};
use super::loops::Loops;
use super::node_ids::NodeIds;
use super::notices::Notices;
use super::onlookers::Onlookers;
use super::routes::Routes;
use super::vacancy::{VIEW_BYTES, Vacancy};
use super::view::{Seat, View, ViewSettings};
use super::{Full, KEY_BYTES_MAX, NoPlace};
use classes::{Class, Classes, Node, Rule};
use proto::envoy::config::core::v3 as core;
use xds::Guards;

/// All views.
///
/// The owner waits for new ones ([`Scopes::changed`], [`Scopes::take_created`]) and starts a writer for each, which works until
/// [`Mailbox::is_closed`](super::Mailbox::is_closed). The owner also calls [`Scopes::sweep`] every few seconds.
pub struct Scopes {
    /// The rules in effect, for words: the class of a client is in its node.
    classes: ArcSwap<Classes>,
    guards: ArcSwap<Guards>,
    routes: ArcSwap<Routes>,
    /// That of the routes.
    generation: AtomicU64,
    views: Mutex<OpenViews>,
    vacancy: Arc<Vacancy>,
    loops: Arc<Loops>,
    news: Notify,
    connections: AtomicU64,
    notices: Notices,
    /// The views whose writers wait for what another view has: it may be one that is not there yet.
    onlookers: Onlookers,
}

struct OpenViews {
    settings: ViewSettings,
    /// The most views at the same time (`limits.views`); 0: no bound.
    limit: usize,
    open: BTreeMap<(Class, usize), OpenView>,
    ids: NodeIds,
    created: Vec<Arc<View>>,
}

struct OpenView {
    view: Arc<View>,
    /// The node of the first client: the others are compared with it.
    first: Arc<Node>,
    /// The node id that its control plane sees, once there is a stream to it.
    id: Option<String>,
    /// Since when there has been no session, as far as the last sweep saw.
    idle: Option<Instant>,
}

impl Scopes {
    /// Creates it without any views.
    #[must_use]
    pub fn new(classes: Classes, routes: Routes, settings: ViewSettings, limit: usize) -> Self {
        Self {
            classes: ArcSwap::from_pointee(classes),
            guards: ArcSwap::default(),
            generation: AtomicU64::new(routes.generation()),
            routes: ArcSwap::from_pointee(routes),
            views: Mutex::new(OpenViews {
                settings,
                limit,
                open: BTreeMap::new(),
                ids: NodeIds::default(),
                created: Vec::new(),
            }),
            vacancy: Arc::default(),
            loops: Arc::default(),
            news: Notify::new(),
            connections: AtomicU64::new(1),
            notices: Notices::default(),
            onlookers: Onlookers::default(),
        }
    }

    /// Replaces the rules by which clients that come are divided. Clients that are there stay in their classes.
    pub fn set_classes(&self, classes: Classes) {
        self.classes.store(Arc::new(classes));
    }

    /// Replaces the settings by which removals are held.
    pub fn set_guards(&self, guards: Guards) {
        for view in self.all() {
            view.set_guard(guards.of(self.rule(view.class())));
        }
        self.guards.store(Arc::new(guards));
    }

    /// Returns the position of the rule of a class; `None` if it has none, or if the rule is not in effect any more.
    #[must_use]
    pub fn rule(&self, class: &Class) -> Option<usize> {
        self.classes.load().position(class.rule.as_ref()?)
    }

    /// Replaces the bounds and the times of all views, and the most views at the same time. What is there stays.
    pub fn set(&self, settings: ViewSettings, limit: usize) {
        let mut views = self.views.lock();
        views.settings = settings;
        views.limit = limit;
        views.open.values().for_each(|open| open.view.set(settings));
    }

    /// So many bytes are left of this limit of memory until the next call, for new views and for names that nobody had asked for; 0 is no
    /// limit.
    pub fn leave_room(&self, left: usize, memory: usize) {
        self.vacancy.set(left, memory);
    }

    /// Which servers are asked for the names of each owner.
    #[must_use]
    pub fn routes(&self) -> Arc<Routes> {
        self.routes.load_full()
    }

    /// Whether these routes have been replaced.
    #[must_use]
    pub fn is_rerouted(&self, routes: &Routes) -> bool {
        self.generation.load(Ordering::Acquire) != routes.generation()
    }

    /// Replaces the routes. Wakes all sessions: each goes to the servers that it has now by itself.
    pub fn reroute(&self, routes: Routes) {
        let of = |rule: &Rule, view: &View| view.class().rule.as_deref() == Some(rule);
        let in_use = |rule: &Rule| self.all().iter().any(|view| of(rule, view));
        // What leads back here may be another one now.
        self.loops.clear();
        let routes = Arc::new(routes.after(&self.routes.load(), in_use));
        self.routes.store(routes.clone());
        self.generation.store(routes.generation(), Ordering::Release);
        // A view that is not here yet begins with the new routes, and so do its sessions.
        for view in self.all() {
            view.reroute(routes.wake_on_failure(view.server()));
        }
        self.onlookers.wake();
    }

    /// Calls all sessions to take up what the operator has changed besides the routes.
    pub fn call_sessions(&self) {
        self.reroute(Routes::clone(&self.routes()));
    }

    /// Returns what a new connection takes of the limits: nothing yet.
    #[must_use]
    pub fn claims(&self) -> Arc<Claims> {
        Arc::new(Claims::new(self.connections.fetch_add(1, Ordering::Relaxed)))
    }

    /// Returns a seat for a client at the view of a server, which is created if there is none. F-13: new-style names are the same
    /// for all classes of clients; old-style names are not.
    ///
    /// # Errors
    ///
    /// There would be more views than allowed, and each of them has a session; or this connection has as many as are left for all
    /// others; or no memory is left for a new one; or the client's class has no credentials, or too long a key.
    pub fn enter(
        &self,
        node: &Arc<Node>,
        owner: Option<&Arc<str>>,
        server: usize,
        claims: &Arc<Claims>,
    ) -> Result<Seat, NoPlace> {
        self.seat(node, owner, owner.is_some(), server, claims)
    }

    /// Does the same. With `shared`, all classes of clients share what the owner has.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn seat(
        &self,
        node: &Arc<Node>,
        owner: Option<&Arc<str>>,
        shared: bool,
        server: usize,
        claims: &Arc<Claims>,
    ) -> Result<Seat, NoPlace> {
        self.admit_marks(node)?;
        let key = (node.class_of(shared), server);
        let mut views = self.views.lock();
        if let Some(open) = views.open.get(&key) {
            // The seat is taken before the lock is released, so that no sweep can end the view in between.
            let seat = Seat::new(open.view.clone(), owner.cloned(), claims.clone(), Some(node.clone()));
            seat.come_through(node.marks.as_ref());
            let first = open.first.clone();
            drop(views);
            if !shared {
                self.notices.compare(&self.classes.load(), &key.0, &first, node);
            }
            return Ok(seat);
        }
        key.0.credentials()?;
        let bytes = key.0.key.iter().map(String::len).sum();
        if bytes > KEY_BYTES_MAX {
            return Err(NoPlace::Key(bytes));
        }
        views.admit(claims)?;
        self.vacancy.take(VIEW_BYTES, 0)?;
        let wake_on_failure = self.routes.load().wake_on_failure(server);
        let view = View::of(
            server,
            wake_on_failure,
            key.0.clone(),
            views.settings,
            (self.vacancy.clone(), self.loops.clone()),
        );
        view.set_guard(self.guards.load().of(self.rule(&key.0)));
        if let Some(left) = views.left(&key, owner.map(|of| &**of)) {
            view.note_elsewhere(left);
        }
        let seat = Seat::new(view.clone(), owner.cloned(), claims.clone(), Some(node.clone()));
        seat.come_through(node.marks.as_ref());
        views.created.push(view.clone());
        let open = OpenView {
            view,
            first: node.clone(),
            id: None,
            idle: None,
        };
        views.open.insert(key, open);
        drop(views);
        self.news.notify_one();
        self.onlookers.wake();
        Ok(seat)
    }

    /// Returns the views that were created since the last call.
    #[must_use]
    pub fn take_created(&self) -> Vec<Arc<View>> {
        std::mem::take(&mut self.views.lock().created)
    }

    /// Waits until there may be new views.
    pub async fn changed(&self) {
        self.news.notified().await;
    }

    /// Returns the node for a view, and the class of another view of its server that has the same node id, though the control
    /// plane should distinguish the two (K-28).
    #[must_use]
    pub fn introduce(&self, view: &View, relay: &core::Node) -> (core::Node, Option<Class>) {
        let mut presented = view.class().presented();
        let mut views = self.views.lock();
        let OpenViews { open, ids, .. } = &mut *views;
        let open = open.get_mut(&(view.class().clone(), view.server()));
        // This view may have ended, and another one may be in its place.
        let Some(open) = open.filter(|open| std::ptr::eq(Arc::as_ptr(&open.view), view)) else {
            return (presented.over(relay), None);
        };
        presented.passed = open.first.passed.clone();
        let node = presented.over(relay);
        if let Some(old) = open.id.replace(node.id.clone()).filter(|old| *old != node.id) {
            ids.remove(view.server(), old, view.class());
        }
        let twin = ids.insert(view.server(), &node.id, view.class());
        (node, twin)
    }

    /// The writer of this view is woken when there is another view, or the routes change.
    pub(super) fn note_onlooker(&self, view: &Arc<View>) {
        self.onlookers.add(view);
    }

    /// All views, in the order of their classes and servers.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<View>> {
        self.views.lock().open.values().map(|open| open.view.clone()).collect()
    }

    /// Memory is short: in each view, tells the sessions that lag longest to end, as far as they keep more than a little.
    pub fn release_laggards(&self) {
        self.all().iter().for_each(|view| view.release_laggards());
    }

    /// Ends the views that had no session and no lease for the linger time. In the others, settles the sessions and stops those
    /// that keep too much old content in memory.
    pub fn sweep(&self, now: Instant) {
        self.loops.sweep(now);
        let mut views = self.views.lock();
        let linger = views.settings.linger;
        let OpenViews { open, ids, created, .. } = &mut *views;
        open.retain(|_, open| {
            if !open.view.demand().is_idle() {
                open.idle = None;
                return true;
            }
            let since = *open.idle.get_or_insert(now);
            let stays = now.saturating_duration_since(since) < linger;
            if !stays {
                open.close(ids);
            }
            stays
        });
        created.retain(|view| !view.mailbox().is_closed());
        drop(views);
        let views = self.all();
        self.notices
            .wait(views.iter().map(|view| view.demand().waiting_types()).sum());
        for view in views {
            view.settle();
            for (type_url, content) in view.expire_older(now) {
                tracing::warn!(
                    class = %view.class(), r#type = %type_url, name = %content.name(), version = %content.version(),
                    clients = view.rejected().users(&type_url, content.name(), content.version()),
                    "for an hour clients have used older content because they reject what the control plane says; what it names is not \
                     kept for them any more"
                );
            }
            if view.relieve() {
                tracing::warn!(
                    class = %view.class(),
                    "clients that do not read hold more outdated content of a view than there may be; the streams of the slowest end"
                );
            }
        }
    }
}

impl OpenView {
    fn close(&mut self, ids: &mut NodeIds) {
        self.view.mailbox().close();
        if let Some(id) = self.id.take() {
            ids.remove(self.view.server(), id, self.view.class());
        }
    }
}

impl OpenViews {
    /// G-24: returns the view at another server that most clients of this class read for an owner, whether the configuration still has
    /// that server or not.
    fn left(&self, (class, server): &(Class, usize), owner: Option<&str>) -> Option<&Arc<View>> {
        let all = self.open.range((class.clone(), 0)..);
        let all = all.take_while(|((of, _), _)| of == class);
        let others = all.filter(|((_, at), _)| at != server).map(|(_, open)| &open.view);
        let read = others.filter(|view| view.demand().readers_of(owner).0 > 0);
        read.max_by_key(|view| view.demand().readers_of(owner).0)
    }

    /// Whether a connection may have one more view.
    fn admit(&mut self, claims: &Arc<Claims>) -> Result<(), Full> {
        let limit = self.limit;
        // With so few views there are always enough.
        if limit == 0 || self.open.len() * 2 < limit {
            return Ok(());
        }
        let (mut used, mut own) = (0, 0);
        for claimed in self.open.values().filter_map(|open| open.view.demand().claims()) {
            used += 1;
            own += usize::from(Arc::ptr_eq(&claimed, claims));
        }
        let left = limit.saturating_sub(used);
        if !is_fair(own, left) || self.open.len() >= limit && !self.make_room() {
            return Err(Full {
                limit: "views",
                value: limit,
                own,
                left,
            });
        }
        Ok(())
    }

    /// Ends a view without sessions: a view that only lingers must not keep out a client.
    fn make_room(&mut self) -> bool {
        let empty = self.open.iter().find(|(_, open)| open.view.demand().seats() == 0);
        let Some(key) = empty.map(|(key, _)| key.clone()) else {
            return false;
        };
        if let Some(mut open) = self.open.remove(&key) {
            open.close(&mut self.ids);
            self.created.retain(|created| !Arc::ptr_eq(created, &open.view));
        }
        true
    }
}
