//! Attackers that follow HTTP/2 and the protocol, as a client library does.
//!
//! Owns what they ask. Knows nothing of who is hurt.

use std::time::Duration;

use distributary::xds::Dialect;
use tokio::task::JoinSet;

use super::words::{another, delta, names, sotw, versions};
use crate::support::client::Client;
use crate::support::messages::Subscriber;
use crate::support::{Address, CDS, EDS};

/// What the callers of one kind do.
#[derive(Clone, Copy)]
pub(super) enum Callers {
    /// One request of very many versions, on ten connections.
    Versions,
    /// One request of very many names, on ten connections.
    Names,
    /// They reject everything.
    Rejections,
}

pub(super) const CALLERS: [(&str, Callers); 3] = [
    ("versions that clients bring", Callers::Versions),
    ("very many names on several connections", Callers::Names),
    ("rejections of everything", Callers::Rejections),
];

/// How many names and versions are in one request: nearly as many as there may be on a stream.
const VERY_MANY: u32 = 190_000;

impl Callers {
    /// How many there are.
    pub(super) const fn count(self) -> usize {
        match self {
            Self::Versions | Self::Names => 10,
            Self::Rejections => 400,
        }
    }

    /// Calls again and again, until it is dropped.
    pub(super) async fn run(self, address: Address, nth: usize) {
        loop {
            let address = address.clone();
            let mut called = JoinSet::new();
            called.spawn(async move { self.call(&Client::connect(&address).await, nth).await });
            // The relay may refuse the connection, for which a client panics.
            drop(called.join_next().await);
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    async fn call(self, client: &Client, nth: usize) {
        if let Self::Rejections = self {
            let (dialect, method) = match nth % 2 {
                0 => (Dialect::Sotw, sotw()),
                _ => (Dialect::Delta, delta()),
            };
            let mut subscriber = Subscriber::new(client.call(&method).await, dialect, CDS);
            subscriber.subscribe(&["*"]);
            while subscriber.next().await.is_ok() {
                subscriber.nack("no");
            }
            return;
        }
        let mut call = client.call(&delta()).await;
        call.send_bytes(match self {
            Self::Versions | Self::Rejections => versions(VERY_MANY),
            Self::Names => {
                let stranger = another();
                let some = (0..VERY_MANY).map(|name| format!("a-name-that-nobody-knows-{stranger}-{name}"));
                names(EDS, some.collect(), Vec::new())
            }
        });
        // It acknowledges nothing.
        while call.next_bytes().await.is_ok() {}
    }
}
