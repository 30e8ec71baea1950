//! All views, by the class of clients that share each and the server whose word it is.
//!
//! Owns that there is one view for a class and a server, and never more views than allowed, and when a view ends. Refuses to know who
//! writes into a view: whoever does waits for new ones here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::presented::Ids;
use super::routes::Routes;
use super::view::{View, ViewSettings};
use super::{Full, NoPlace, Seat};
use crate::proto::envoy::config::core::v3 as core;
use crate::xds::{Class, Classes, CredentialFiles, Node, Presented, Selector, Taken, Unfit};

/// The views that there are.
///
/// Somebody waits for new ones ([`Scopes::changed`], [`Scopes::take_created`]) and gives each its writer, which works until
/// [`View::is_closed`]; and calls [`Scopes::sweep`] every few seconds.
pub struct Scopes {
    classes: Classes,
    routes: Routes,
    settings: ViewSettings,
    /// The most views at the same time (`limits.views`); 0: no bound.
    limit: usize,
    views: Mutex<Views>,
    news: Notify,
    said: AtomicBool,
    said_passed: AtomicBool,
}

#[derive(Default)]
struct Views {
    open: BTreeMap<(Class, usize), Open>,
    ids: Ids,
    created: Vec<Arc<View>>,
}

struct Open {
    view: Arc<View>,
    /// Who came first: the others are compared with it.
    first: Arc<Node>,
    /// The node id that its control plane sees, once there is a stream to it.
    id: Option<String>,
    /// Since when nobody has been here, as far as the last sweep saw.
    idle: Option<Instant>,
}

impl Scopes {
    /// No views yet.
    #[must_use]
    pub fn new(classes: Classes, routes: Routes, settings: ViewSettings, limit: usize) -> Self {
        Self {
            classes,
            routes,
            settings,
            limit,
            views: Mutex::default(),
            news: Notify::new(),
            said: AtomicBool::new(false),
            said_passed: AtomicBool::new(false),
        }
    }

    /// Which servers each authority is asked at.
    #[must_use]
    pub const fn routes(&self) -> &Routes {
        &self.routes
    }

    /// A place for a client at the view of a server, which is made if there is none. F-13: names of new style are the same for
    /// all classes of clients; those of old style are not.
    ///
    /// # Errors
    ///
    /// There would be more views than allowed, and somebody is at each of them; or the client's class has no credentials.
    pub fn enter(&self, node: &Arc<Node>, authority: Option<&Arc<str>>, server: usize) -> Result<Seat, NoPlace> {
        let class = match authority {
            None => self.classes.class(node),
            Some(_) => Classes::default().class(node),
        };
        let key = (class, server);
        let mut views = self.views.lock();
        if let Some(open) = views.open.get(&key) {
            // The place is taken before the lock is released, so that no sweep can come between.
            let seat = Seat::new(open.view.clone(), authority.cloned());
            open.view.come_through(&node.relays);
            let first = open.first.clone();
            drop(views);
            if authority.is_none() {
                self.compare(&key.0, &first, node);
            }
            return Ok(seat);
        }
        self.classes.credentials(&key.0)?;
        if self.limit > 0 && views.open.len() >= self.limit && !views.make_room() {
            return Err(NoPlace::from(Full {
                limit: "views",
                value: self.limit,
            }));
        }
        let wake_on_failure = self.routes.wake_on_failure(server);
        let view = View::of(server, wake_on_failure, key.0.clone(), self.settings);
        let seat = Seat::new(view.clone(), authority.cloned());
        view.come_through(&node.relays);
        views.created.push(view.clone());
        let open = Open {
            view,
            first: node.clone(),
            id: None,
            idle: None,
        };
        views.open.insert(key, open);
        drop(views);
        self.news.notify_one();
        Ok(seat)
    }

    /// The views that were made since the last call.
    #[must_use]
    pub fn take_created(&self) -> Vec<Arc<View>> {
        std::mem::take(&mut self.views.lock().created)
    }

    /// Waits until there are new views, perhaps in vain.
    pub async fn changed(&self) {
        self.news.notified().await;
    }

    /// The node for a view, and another view of its server that has the same node id, though a control plane should tell the two apart
    /// (K-28).
    #[must_use]
    pub fn introduce(&self, view: &View, relay: &core::Node) -> (core::Node, Option<Class>) {
        let mut presented = self.presented(view.class());
        let mut views = self.views.lock();
        let Views { open, ids, .. } = &mut *views;
        let open = open.get_mut(&(view.class().clone(), view.server()));
        // A view that has ended may have been followed by another one.
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

    /// What the control plane sees of the class.
    #[must_use]
    pub fn presented(&self, class: &Class) -> Presented {
        self.classes.presented(class)
    }

    /// The files with which control planes are approached for the class, if it has its own.
    ///
    /// # Errors
    ///
    /// It cannot have them; then there is no view of it.
    pub fn credentials(&self, class: &Class) -> Result<Option<CredentialFiles>, Unfit> {
        self.classes.credentials(class)
    }

    /// All views, in the order of their classes and servers.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<View>> {
        self.views.lock().open.values().map(|open| open.view.clone()).collect()
    }

    /// Ends the views at which nobody has been for the linger time, and for which nothing is kept; relieves the others of who
    /// holds back too much.
    pub fn sweep(&self, now: Instant) {
        let linger = self.settings.linger;
        let mut views = self.views.lock();
        let Views { open, ids, created } = &mut *views;
        open.retain(|_, open| {
            if !open.view.is_idle() {
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
        created.retain(|view| !view.is_closed());
        drop(views);
        for view in self.all() {
            view.settle();
            if view.relieve() {
                tracing::warn!(
                    class = ?view.class(),
                    "clients that do not read hold more than limits.pinned_bytes_per_view even without bodies; one stream ends"
                );
            }
        }
    }

    /// K-02: says once, for all classes, that clients share a view though a control plane may want to tell them apart; and once that
    /// what is passed on of the first of them is not what the others say.
    fn compare(&self, class: &Class, first: &Node, other: &Node) {
        let (one, two) = (&first.id, &other.id);
        if !self.said.load(Ordering::Relaxed)
            && let Some(key) = Selector::between(first, other)
            && !self.said.swap(true, Ordering::Relaxed)
        {
            let advice = self.classes.advice(class, &key);
            tracing::warn!(
                one = ?one,
                other = ?two,
                "clients that differ in `{key}` share one view, so the control plane sees them as one; where it should tell \
                 them apart, write {advice}"
            );
        }
        if !self.said_passed.load(Ordering::Relaxed)
            && let Some(field) = Taken::difference(first.passed.as_deref(), other.passed.as_deref())
            && !self.said_passed.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(
                one = ?one,
                other = ?two,
                "clients that differ in `{field}` share one view, and the control plane is told what the first of them says there; \
                 where it should hear of each, put the field into the `key` of their class"
            );
        }
    }
}

impl Open {
    fn close(&mut self, ids: &mut Ids) {
        self.view.close();
        if let Some(id) = self.id.take() {
            ids.remove(self.view.server(), id, self.view.class());
        }
    }
}

impl Views {
    /// Ends a view at which nobody is: what only lingers must not keep out who is here.
    fn make_room(&mut self) -> bool {
        let empty = self.open.iter().find(|(_, open)| open.view.seats() == 0);
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
