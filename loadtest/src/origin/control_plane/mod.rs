// SPDX-License-Identifier: Apache-2.0
//! The built-in control plane: delta and SotW, aggregated and per type, in a thread of its own. It serves the ledgers, and only
//! counts its requests and responses.

mod answers;
mod polls;
mod requests;
mod session;

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use anyhow::Context as _;
use http::{Response, StatusCode};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::LocalSet;

use crate::origin::world::World;
use crate::wire::kind::{Dialect, Kind};
pub(crate) use answers::Answers;
use requests::Requests;
use session::Session;

/// The running control plane. Dropping it ends its thread.
pub(crate) struct ControlPlane {
    pub(crate) address: SocketAddr,
    pub(crate) counts: Arc<Counts>,
    stop: Option<watch::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The control plane's counters of requests and responses.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) streams: AtomicU64,
    pub(crate) responses: AtomicU64,
    pub(crate) acknowledgements: AtomicU64,
    pub(crate) bytes: AtomicU64,
    rejections: Mutex<Vec<String>>,
}

impl Counts {
    /// Returns how many streams there were.
    pub(crate) fn streams(&self) -> u64 {
        self.streams.load(Ordering::Relaxed)
    }

    /// Returns how many bytes of messages it sent.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns the rejections with their reasons.
    pub(crate) fn rejections(&self) -> Vec<String> {
        self.rejections.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn answered(&self, bytes: usize) {
        self.responses.fetch_add(1, Ordering::Relaxed);
        self.bytes
            .fetch_add(u64::try_from(bytes).unwrap_or_default(), Ordering::Relaxed);
    }

    fn reject(&self, message: String) {
        let mut rejections = self.rejections.lock().unwrap_or_else(PoisonError::into_inner);
        if rejections.len() < REJECTIONS_TOLD_MAX {
            rejections.push(message);
        }
    }
}

const REJECTIONS_TOLD_MAX: usize = 10;

impl ControlPlane {
    /// Starts it. `only`: the dialect that it speaks, if not both.
    pub(crate) fn start(address: SocketAddr, world: Arc<World>, only: Option<Dialect>) -> anyhow::Result<Self> {
        let socket = std::net::TcpListener::bind(address)
            .with_context(|| format!("the control plane cannot listen on {address}; choose another --control-plane"))?;
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        let counts = Arc::<Counts>::default();
        let (stop, mut stopped) = watch::channel(());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread_counts = Arc::clone(&counts);
        let thread = std::thread::Builder::new()
            .name("control-plane".to_owned())
            .spawn(move || {
                let listening = Listening {
                    answers: Answers::new(world),
                    counts: thread_counts,
                    only,
                };
                runtime.block_on(LocalSet::new().run_until(async move {
                    tokio::select! {
                        () = Rc::new(listening).run(socket) => {}
                        _ = stopped.changed() => {}
                    }
                }));
            })?;
        Ok(Self {
            address,
            counts,
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // The thread ends when `stop` is dropped. If it panicked, the clients have reported errors.
            let _ = thread.join();
        }
    }
}

struct Listening {
    answers: Answers,
    counts: Arc<Counts>,
    only: Option<Dialect>,
}

impl Listening {
    async fn run(self: Rc<Self>, socket: std::net::TcpListener) {
        let Ok(listener) = TcpListener::from_std(socket) else {
            return;
        };
        loop {
            // The client reports a refused connection, or a missing file descriptor.
            let Ok((socket, _)) = listener.accept().await else {
                tokio::task::yield_now().await;
                continue;
            };
            tokio::task::spawn_local(Rc::clone(&self).serve(socket));
        }
    }

    async fn serve(self: Rc<Self>, socket: TcpStream) {
        let _ = socket.set_nodelay(true);
        let Ok(mut connection) = h2::server::handshake(socket).await else {
            return;
        };
        while let Some(Ok((request, mut respond))) = connection.accept().await {
            let path = request.uri().path();
            if let Some(kind) = polls::polled(path) {
                let listening = Rc::clone(&self);
                tokio::task::spawn_local(async move {
                    // The peer reports a poll that breaks.
                    let _ = polls::answer(&listening, kind, request.into_body(), respond).await;
                });
                continue;
            }
            let method = method(path).filter(|(dialect, _)| self.only.is_none_or(|only| only == *dialect));
            let head = Response::builder()
                .status(StatusCode::OK)
                .header("content-type", "application/grpc");
            let Some((dialect, kind)) = method else {
                // UNIMPLEMENTED
                if let Ok(head) = head.header("grpc-status", "12").body(()) {
                    let _ = respond.send_response(head, true);
                }
                continue;
            };
            let Ok(head) = head.body(()) else {
                continue;
            };
            let Ok(stream) = respond.send_response(head, false) else {
                continue;
            };
            self.counts.streams.fetch_add(1, Ordering::Relaxed);
            let listening = Rc::clone(&self);
            tokio::task::spawn_local(async move {
                let requests = Requests::new(request.into_body());
                let mut session = Session::new(dialect, kind, &listening.answers, &listening.counts, stream);
                // The peer reports a stream that breaks.
                let _ = session.run(requests).await;
            });
        }
    }
}

/// Returns the dialect of a path, and its type unless it is aggregated.
fn method(path: &str) -> Option<(Dialect, Option<Kind>)> {
    let of = |dialect: Dialect| {
        let one = Kind::ALL
            .into_iter()
            .find(|kind| kind.path(dialect) == Some(path))
            .map(Some);
        let all = [false, true].map(|v2| dialect.path(v2)).contains(&path);
        if all { Some(None) } else { one }.map(|kind| (dialect, kind))
    };
    Dialect::ALL.into_iter().find_map(of)
}
