// SPDX-License-Identifier: Apache-2.0
//! A control plane with a state, on a real socket: it answers as go-control-plane does, forgets, dies and returns.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::plane::{Call, Plane};
use crate::spawn;
use crate::state::{Content, Plane as Mind, Reply};

/// It, and all its lives.
pub struct Server {
    pub address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
    /// Says that something of `Shared` has changed.
    changed: watch::Sender<()>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Clone, Default)]
struct Shared {
    content: Content,
    /// Streams of an earlier life end.
    life: u64,
}

impl Server {
    /// One that says nothing where a client has everything.
    pub async fn start() -> Self {
        let plane = Plane::start().await;
        let mut server = Self {
            address: plane.address,
            shared: Arc::default(),
            changed: watch::channel(()).0,
            accepting: None,
        };
        server.accept(plane);
        server
    }

    pub fn put(&self, kind: &str, name: &str, body: Bytes) {
        self.edit(|content| {
            content
                .entry(kind.to_owned())
                .or_default()
                .insert(name.to_owned(), body);
        });
    }

    pub fn remove(&self, kind: &str, name: &str) {
        self.edit(|content| {
            assert!(content.get_mut(kind).unwrap().remove(name).is_some(), "{kind} {name}");
        });
    }

    /// Changes what it has, in one step.
    pub fn edit(&self, edit: impl FnOnce(&mut Content)) {
        edit(&mut self.shared.lock().content);
        self.changed.send_replace(());
    }

    /// All streams end, and it begins anew with another state.
    pub fn restart(&self, edit: impl FnOnce(&mut Content)) {
        let mut shared = self.shared.lock();
        edit(&mut shared.content);
        shared.life += 1;
        drop(shared);
        self.changed.send_replace(());
    }

    /// The same without these resources.
    pub fn forget(&self, kind: &str, names: &[&str]) {
        self.restart(|content| {
            let of_kind = content.entry(kind.to_owned()).or_default();
            of_kind.retain(|name, _| !names.contains(&name.as_str()));
        });
    }

    /// It is dead: nothing listens any more.
    pub async fn stop(&mut self) {
        if let Some(accepting) = self.accepting.take() {
            accepting.abort();
            // It ends with an error because it was told to.
            let _ = accepting.await;
        }
        self.restart(|_| ());
    }

    /// It lives again, on its old address.
    pub async fn return_(&mut self) {
        self.accept(Plane::again(self.address).await);
    }

    fn accept(&mut self, mut plane: Plane) {
        let (shared, changed) = (self.shared.clone(), self.changed.clone());
        let accepting = spawn(async move {
            let mut calls = tokio::task::JoinSet::new();
            while let Some(call) = plane.next_call().await {
                calls.spawn(converse(call, shared.clone(), changed.subscribe()));
            }
        });
        self.accepting = Some(accepting);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.iter().for_each(JoinHandle::abort);
    }
}

/// One stream, as long as this life of the server lasts.
async fn converse(mut call: Call, shared: Arc<Mutex<Shared>>, mut changed: watch::Receiver<()>) {
    let delta = call.path.contains("Delta");
    let began = shared.lock().clone();
    let mut mind = Mind::default();
    mind.habits.silent = true;
    loop {
        let heard = tokio::select! {
            heard = hear(&mut call, &mut mind, delta) => heard,
            changed = changed.changed() => changed.is_ok(),
        };
        let now = shared.lock().clone();
        if now.life != began.life {
            return call.finish(tonic::Code::Unavailable, "restarting");
        }
        if !heard {
            return;
        }
        mind.content = now.content;
        for reply in mind.replies() {
            match reply {
                Reply::Sotw(reply) => call.send(&reply),
                Reply::Delta(reply) => call.send(&reply),
            }
        }
    }
}

/// Waits for a request; returns whether the stream goes on.
async fn hear(call: &mut Call, mind: &mut Mind, delta: bool) -> bool {
    if delta {
        let request = call.try_request().await;
        request.map(|request| mind.hear_delta(request)).is_some()
    } else {
        let request = call.try_request().await;
        request.map(|request| mind.hear_sotw(request)).is_some()
    }
}

/// How long a test waits to see that nothing happens.
pub const A_WHILE: Duration = Duration::from_millis(700);
