// SPDX-License-Identifier: Apache-2.0
//! Attackers that follow HTTP/2 and the protocol, as a client library does, and come from many addresses.
//!
//! Owns what they ask. Knows nothing of who is hurt.

use std::net::SocketAddr;
use std::time::Duration;

use distributary::xds::Dialect;
use tokio::task::JoinSet;

use super::attack::{ADDRESSES, connect_from};
use super::planes;
use super::words::{FORBIDDEN, LDS, another, delta, sotw, versions, versions_of, very_many};
use crate::support::client::Client;
use crate::support::messages::Subscriber;
use crate::support::{CDS, EDS, windows};

/// What the callers of one kind do.
#[derive(Clone, Copy)]
pub(super) enum Callers {
    /// One request of very many versions, on ten connections.
    Versions,
    /// The same, of a type that has no wildcard: so they ask for nothing.
    VersionsAlone,
    /// The same, of names that a rule forbids.
    ForbiddenVersions,
    /// One request of very many names, on ten connections.
    Names,
    /// The same, of names for which a control plane gives no answer, on so many connections.
    UnansweredNames(usize),
    /// So many reject everything.
    Rejections(usize),
}

pub(super) const CALLERS: &[(&str, Callers)] = &[
    ("versions that clients bring", Callers::Versions),
    ("versions without any name", Callers::VersionsAlone),
    ("versions of forbidden names", Callers::ForbiddenVersions),
    ("very many names on several connections", Callers::Names),
    ("very many names that nobody answers", Callers::UnansweredNames(10)),
    ("large requests on sixty connections", Callers::UnansweredNames(60)),
    ("rejections of everything", Callers::Rejections(400)),
    ("rejections of everything, on 64 streams", Callers::Rejections(64)),
    ("rejections of everything, on five streams", Callers::Rejections(5)),
];

/// How many names and versions are in one request: nearly as many as there may be on a stream.
const VERY_MANY: u32 = 190_000;

/// The callers switch from one kind to the next: all of them come in this time, but none lasts longer than a second.
pub(super) async fn mixing(address: SocketAddr, all: Duration) {
    let of_each = (all / u32::try_from(CALLERS.len()).unwrap()).min(Duration::from_secs(1));
    for (_, callers) in CALLERS.iter().cycle() {
        let mut fleet = JoinSet::new();
        for nth in 0..callers.count() {
            fleet.spawn(callers.run(address, nth));
        }
        tokio::time::sleep(of_each).await;
    }
}

impl Callers {
    /// How many there are.
    pub(super) const fn count(self) -> usize {
        match self {
            Self::Versions | Self::VersionsAlone | Self::ForbiddenVersions | Self::Names => 10,
            Self::UnansweredNames(count) | Self::Rejections(count) => count,
        }
    }

    /// Calls again and again, until it is dropped.
    pub(super) async fn run(self, address: SocketAddr, nth: usize) {
        loop {
            let mut called = JoinSet::new();
            called.spawn(async move {
                let socket = connect_from(ADDRESSES, address).await.unwrap();
                let (client, _) = Client::over(socket, &windows(16 << 20, 64 << 20)).await;
                self.call(&client, nth).await;
            });
            // The relay may refuse the connection, for which a client panics.
            drop(called.join_next().await);
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    async fn call(self, client: &Client, nth: usize) {
        let Some(request) = self.request() else {
            return reject(client, nth).await;
        };
        let mut call = client.call(delta()).await;
        call.send_bytes(request);
        // It acknowledges nothing.
        while call.next_bytes().await.is_ok() {}
    }

    /// The only request of those who do not reject.
    fn request(self) -> Option<Vec<u8>> {
        let stranger = another();
        Some(match self {
            Self::Versions => versions(VERY_MANY),
            Self::VersionsAlone => versions_of(EDS, "", VERY_MANY),
            Self::ForbiddenVersions => versions_of(LDS, FORBIDDEN, VERY_MANY),
            Self::Names => very_many(VERY_MANY, &format!("a-name-that-nobody-knows-{stranger}-")),
            // They are short, because the relay reads no request over 16 MiB.
            Self::UnansweredNames(_) => very_many(VERY_MANY, &planes::name(planes::MUTE, &format!("{stranger}-"))),
            Self::Rejections(_) => return None,
        })
    }
}

async fn reject(client: &Client, nth: usize) {
    let (dialect, method) = match nth % 2 {
        0 => (Dialect::Sotw, sotw()),
        _ => (Dialect::Delta, delta()),
    };
    let mut subscriber = Subscriber::new(client.call(method).await, dialect, CDS);
    subscriber.subscribe(&["*"]);
    while subscriber.next().await.is_ok() {
        subscriber.nack("no");
    }
}
