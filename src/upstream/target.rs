//! One control plane, as all views see it.
//!
//! Owns what was learned of it while the relay runs. Refuses to hold connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use http::uri::Authority;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::access::Access;
use super::clock::{dice, now};
use super::connect;
use super::doors::Doors;
use super::left_out::LeftOut;
use super::refused::Refused;
use crate::clock;
use crate::config::{Grpc, Transport};
use crate::protocol::{Backoff, ClientSettings, Declined, Dialects, Next, Rhythm, Trial, Why};
use crate::telemetry::UpstreamMetrics;
use crate::xds::{Dialect, TypeUrl};

/// A control plane.
#[derive(Debug)]
pub struct Target {
    uri: String,
    pub(super) grpc: Grpc,
    /// What it is called in requests and in TLS, where that is not its address.
    pub(super) authority: Option<Authority>,
    /// The credentials for classes of clients that have none of their own.
    pub(super) access: Arc<Access>,
    pub(super) metrics: Arc<UpstreamMetrics>,
    refused: Refused,
    /// What is known of the dialects that it speaks.
    dialects: Mutex<Dialects>,
    left_out: LeftOut,
    /// The way to it, for streams that are opened.
    pub(super) doors: Arc<Doors>,
    /// How many streams it has answered.
    returns: watch::Sender<u64>,
    /// What was seen of how it answers.
    rhythm: Mutex<Arc<Rhythm>>,
    /// It said that we ask too often whether it is alive: how many times the interval was doubled.
    calmer: AtomicU32,
}

/// What all streams to control planes have in common.
#[derive(Clone, Debug)]
pub struct UpstreamSettings {
    /// For the machines.
    pub client: Arc<ClientSettings>,
    /// The largest response that is read, in bytes (`limits.upstream_message`).
    pub upstream_message: usize,
    /// How often the kernel asks a silent peer whether it is there (`timers.keepalive`); zero: never.
    pub keepalive: Duration,
    /// How often a silent server is asked whether it is alive, over HTTP/2; zero: never.
    pub ping: Duration,
    /// How long a stream of which nothing is wanted any more is kept.
    pub idle: Duration,
    /// The longest pause between two attempts on a stream (`timers.reconnect_max`).
    pub reconnect_max: Duration,
}

/// A server that does not like to be asked is asked no less often than this.
const PING_MOST: Duration = Duration::from_secs(3600);

impl Target {
    /// A control plane of which nothing is known yet.
    #[must_use]
    pub fn new(uri: &str, grpc: Grpc, metrics: Arc<UpstreamMetrics>) -> Arc<Self> {
        Self::called(None, uri, grpc, metrics)
    }

    /// A control plane that is called otherwise than where it is reached.
    #[must_use]
    pub fn called(authority: Option<Authority>, uri: &str, grpc: Grpc, metrics: Arc<UpstreamMetrics>) -> Arc<Self> {
        Arc::new(Self {
            uri: uri.to_owned(),
            access: Access::of_server(&grpc.credentials, grpc.token.as_ref()),
            dialects: Mutex::new(Dialects::new(grpc.transport == Transport::Delta)),
            left_out: LeftOut::default(),
            grpc,
            authority,
            metrics,
            refused: Refused::default(),
            doors: Arc::default(),
            returns: watch::Sender::default(),
            rhythm: Mutex::default(),
            calmer: AtomicU32::new(0),
        })
    }

    /// Its URI as it was written.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// The name that it goes by.
    pub(super) fn host(&self) -> &str {
        match &self.authority {
            Some(authority) => authority.host().trim_matches(['[', ']']),
            None => connect::host(&self.grpc.endpoint),
        }
    }

    /// What was seen of how it answers.
    pub(super) fn rhythm(&self) -> Arc<Rhythm> {
        self.rhythm.lock().clone()
    }

    /// One of its streams has seen this.
    pub(super) fn learn(&self, seen: &Rhythm) {
        Arc::make_mut(&mut self.rhythm.lock()).merge(seen);
    }

    /// The dialect in which a stream to it begins, and why.
    #[must_use]
    pub fn dialect(&self) -> (Dialect, Why) {
        self.dialects.lock().first()
    }

    /// The dialect of the next attempt of a stream, and why.
    pub(super) fn next_dialect(&self, trial: &Trial) -> (Dialect, Why) {
        trial.next(&self.dialects.lock())
    }

    /// It answered a stream in this dialect.
    pub(super) fn answered(&self, trial: &mut Trial, dialect: Dialect) {
        if dialect == Dialect::Delta {
            self.left_out.clear();
        }
        let decided = trial.handle_answer(dialect, &mut self.dialects.lock());
        if decided {
            let (dialect, why) = self.dialect();
            tracing::warn!(
                server = self.uri, dialect = dialect.word(), %why,
                "this dialect from now on; `transport: sotw` at the server's entry would begin with it"
            );
        }
    }

    /// A response of this type is refused, for this reason.
    pub(super) fn refuse(&self, type_url: &str, fault: &str) {
        self.refused.note(&self.uri, &self.metrics, type_url, fault, now());
    }

    /// It answers a stream: whoever waits to try again need not wait any longer, and there is room.
    pub(super) fn returned(&self) {
        self.returns.send_modify(|answers| *answers += 1);
        self.doors.answered();
    }

    /// Waits until it answers another stream.
    pub(super) fn return_of(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut returns = self.returns.subscribe();
        async move {
            // It ends with the server, which outlives all who wait for it.
            let _ = returns.changed().await;
        }
    }

    /// It ended a stream before it answered; with `other`, what is wanted can be asked for in the other dialect as well. What follows.
    pub(super) fn declined(&self, trial: &mut Trial, declined: Declined, other: bool) -> Next {
        trial.handle_end(declined, other, &self.dialects.lock())
    }

    /// It is not asked for this type, for this reason.
    pub(super) fn leave_out(&self, type_url: &TypeUrl, why: &str) {
        self.left_out.note(&self.uri, type_url, why);
    }

    /// It closed the connection because we asked too often whether it is alive: we ask half as often from now on.
    pub(super) fn calm_down(&self, settings: &UpstreamSettings) {
        if self.ping(settings) < PING_MOST {
            self.calmer.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn ping(&self, settings: &UpstreamSettings) -> Duration {
        let times = 1_u32 << self.calmer.load(Ordering::Relaxed).min(16);
        settings.ping.saturating_mul(times).min(settings.ping.max(PING_MOST))
    }
}

/// Tries until one of the control planes could be connected to once; each time in their order (G-01). Where there are none, for ever. Where classes have
/// certificates, one that has none to show to the others is reached when it takes a connection: nobody's is at hand yet.
pub async fn reach(targets: Vec<(Arc<Target>, Arc<UpstreamSettings>)>, by_class: bool) {
    let most = targets.iter().map(|(_, settings)| settings.reconnect_max).max();
    let Some(mut backoff) = most.map(Backoff::new) else {
        return std::future::pending().await;
    };
    loop {
        for (target, settings) in &targets {
            match target.access.meet(target, settings, by_class).await {
                Ok(()) => {
                    tracing::info!(server = target.uri(), "control plane reached");
                    return;
                }
                Err(failure) => tracing::warn!(server = target.uri(), error = %failure, "control plane not reached"),
            }
        }
        let wait = backoff.handle_failure(dice());
        clock::sleep(wait).await;
    }
}
