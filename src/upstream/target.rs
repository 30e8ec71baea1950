// SPDX-License-Identifier: Apache-2.0
//! One control plane that is streamed from, as all views see it.
//!
//! Owns what the relay has learned about its streams while it runs. Holds no connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use http::HeaderMap;
use http::uri::Authority;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use super::access::ServerAccess;
use super::channel::Vigil;
use super::clock::now;
use super::connect;
use super::doors::Doors;
use super::failure::{Failure, Unheeded};
use super::record::ServerRecord;
use crate::config::{Grpc, Rejections, Transport};
use crate::protocol::{ClientSettings, Dialects, Rhythm, Trial, Why};
use crate::telemetry::UpstreamMetrics;
use crate::xds::Dialect;

/// A control plane.
#[derive(Debug)]
pub struct ServerTarget {
    /// What is known of it, as of any other.
    pub record: ServerRecord,
    pub(super) grpc: Grpc,
    pub(super) call: CallHead,
    /// What is known about the dialects that it supports.
    dialects: Mutex<Dialects>,
    /// Admits the streams that are being opened.
    pub(super) doors: Arc<Doors>,
    /// How many streams it has answered; streams that wait to retry are woken by this.
    returns: watch::Sender<u64>,
    /// How long it pauses within answers.
    rhythm: Mutex<Arc<Rhythm>>,
    /// Whether it has complained of too many pings.
    forbids_pings: AtomicBool,
    /// When it last sent anything, on any connection.
    pub(super) heard: Arc<Mutex<Option<Instant>>>,
    /// E-24: whether it has ended a stream because it was told what clients reject.
    offended: AtomicBool,
}

/// What the head of a call to a control plane says besides the usual.
#[derive(Clone, Debug, Default)]
pub struct CallHead {
    /// Its name in requests and in TLS, if that is not its address.
    pub authority: Option<Authority>,
    /// Further headers.
    pub headers: HeaderMap,
}

/// What all streams to control planes have in common.
#[derive(Clone, Debug)]
pub struct UpstreamSettings {
    /// The settings of the protocol machines.
    pub client: Arc<ClientSettings>,
    /// The largest response that is read, in bytes (`limits.upstream_message`).
    pub upstream_message: usize,
    /// How often the kernel asks a silent peer whether it is there (`timers.keepalive`); zero: never.
    pub keepalive: Duration,
    /// How often a silent server is asked whether it is there: by an HTTP/2 ping, or by a call if it forbids those; zero: never.
    pub ping: Duration,
    /// How long a stream stays open after clients want nothing more from it.
    pub idle: Duration,
    /// The time from an answer to the next poll (`timers.rest_interval`).
    pub interval: Duration,
    /// The longest pause between two attempts on a stream (`timers.reconnect_max`).
    pub reconnect_max: Duration,
    /// D-03: how long nothing that directs traffic must have come before a removal counts (`timers.removal_quiet`).
    pub removal_quiet: Duration,
    /// The longest time that a removal waits (`timers.order_gate`).
    pub order_gate: Duration,
}

impl ServerTarget {
    /// Creates a control plane about which nothing is known yet.
    #[must_use]
    pub fn new(uri: &str, grpc: Grpc, metrics: Arc<UpstreamMetrics>) -> Arc<Self> {
        let dialects = Dialects::new(grpc.transport == Transport::Delta);
        Self::of(CallHead::default(), uri, grpc, metrics, dialects)
    }

    /// Creates a control plane that is asked one question, whose calls begin with this head.
    #[must_use]
    pub fn asked_once(call: CallHead, uri: &str, grpc: Grpc, metrics: Arc<UpstreamMetrics>) -> Arc<Self> {
        let dialects = Dialects::of_one_question(grpc.transport == Transport::Delta);
        Self::of(call, uri, grpc, metrics, dialects)
    }

    fn of(call: CallHead, uri: &str, grpc: Grpc, metrics: Arc<UpstreamMetrics>, dialects: Dialects) -> Arc<Self> {
        let access = ServerAccess::of_server(&grpc.credentials, grpc.token.as_ref());
        Arc::new(Self {
            record: ServerRecord::new(uri, access, metrics),
            dialects: Mutex::new(dialects),
            grpc,
            call,
            doors: Arc::default(),
            returns: watch::Sender::default(),
            rhythm: Mutex::default(),
            forbids_pings: AtomicBool::new(false),
            heard: Arc::default(),
            offended: AtomicBool::new(false),
        })
    }

    /// Returns its name for TLS.
    pub(super) fn host(&self) -> &str {
        match &self.call.authority {
            Some(authority) => authority.host().trim_matches(['[', ']']),
            None => connect::host(&self.grpc.endpoint),
        }
    }

    /// Returns how long it pauses within answers.
    pub(super) fn rhythm(&self) -> Arc<Rhythm> {
        self.rhythm.lock().clone()
    }

    /// Adds the pauses that one of its streams has seen.
    pub(super) fn learn(&self, seen: &Rhythm) {
        Arc::make_mut(&mut self.rhythm.lock()).merge(seen);
    }

    /// Returns the dialect in which a stream to it begins, and why.
    #[must_use]
    pub fn dialect(&self) -> (Dialect, Why) {
        self.dialects.lock().first()
    }

    /// Returns what is known about the dialects that it supports.
    pub(super) fn dialects(&self) -> MutexGuard<'_, Dialects> {
        self.dialects.lock()
    }

    /// It answered a stream in this dialect.
    pub(super) fn answered_in(&self, dialect: Dialect, trial: &mut Trial) {
        if dialect == Dialect::Delta {
            self.record.leave_out_nothing();
        }
        let decided = trial.handle_answer(dialect, &mut self.dialects.lock());
        if decided {
            let (dialect, why) = self.dialect();
            tracing::warn!(
                server = self.record.uri(), dialect = dialect.word(), reason = %why,
                "all streams to this server use this dialect from now on; set `transport: sotw` in its entry to begin with it"
            );
        }
    }

    /// E-24: whether it is told what clients reject.
    pub(super) fn hears_rejections(&self) -> bool {
        self.grpc.rejections == Rejections::Report && !self.offended.load(Ordering::Relaxed)
    }

    /// It ended a stream because it was told what clients reject: it is told no more. Returns whether that is new.
    pub(super) fn stop_reporting(&self) -> bool {
        !self.offended.swap(true, Ordering::Relaxed)
    }

    /// Connects again and again until one connection succeeds (G-01). With `by_class`, certificates belong to classes of clients: a
    /// server without a certificate for the others counts as reached when it accepts a connection, because no class's certificate
    /// is available yet.
    pub async fn reached(&self, settings: &UpstreamSettings, by_class: bool) {
        let access = &self.record.access;
        self.record
            .meet(settings, || access.meet(self, settings, by_class))
            .await;
    }

    /// It answered a stream, so streams that wait to retry may do so at once, and it has room for more.
    pub(super) fn returned(&self) {
        self.record.answered();
        self.returns.send_modify(|answers| *answers += 1);
        self.doors.answered();
    }

    /// Waits until it answers another stream.
    pub(super) fn return_of(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut returns = self.returns.subscribe();
        async move {
            // The sender is dropped with this server, which outlives all that wait here.
            let _ = returns.changed().await;
        }
    }

    /// It closed a connection because of too many pings: from now on it is asked in another way whether it is there.
    pub(super) fn forbid_pings(&self, after: Duration) {
        if !self.forbids_pings.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                server = self.record.uri(),
                ?after,
                "the server forbids HTTP/2 pings; when it is silent it gets a call of grpc.health.v1.Health/Check instead, which it need not know"
            );
        }
    }

    /// Returns how it is noticed that it hangs.
    pub(super) fn vigil(&self, settings: &UpstreamSettings) -> Vigil {
        match settings.ping {
            Duration::ZERO => Vigil::None,
            after if self.forbids_pings.load(Ordering::Relaxed) => Vigil::Questions(after),
            ping => Vigil::Pings(ping),
        }
    }

    /// Returns why there is no connection. A server that was heard before and is silent speaks HTTP/2: it hangs.
    pub(super) fn explained(&self, failure: Failure) -> Failure {
        let heard = *self.heard.lock();
        match (failure, heard) {
            (Failure::Silent(silence), Some(since)) if now().saturating_duration_since(since) >= silence => {
                let asked = Unheeded::Connection;
                Failure::Hangs { since, asked }
            }
            (failure, _) => failure,
        }
    }
}
