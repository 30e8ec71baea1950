// SPDX-License-Identifier: Apache-2.0
//! What clients reject is nobody else's content: who has something keeps it, and who has nothing is sent what others accepted (K-37).

mod bad_input;
mod moves;

use distributary::cache::View;
use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::envoy::config::core::v3::node::UserAgentVersionType;
use distributary::xds::{Dialect, TypeUrl};

use crate::support::messages::Subscriber;
use crate::support::{CDS, Relay, node_of, now, until};
use peers::messages::RDS;

const OLD: &str = "1.37.0";
const NEW: &str = "1.38.0";

struct Case {
    relay: Relay,
    dialect: Dialect,
    type_url: &'static str,
    names: &'static [&'static str],
}

impl Case {
    fn all() -> impl Iterator<Item = (Dialect, &'static str, &'static [&'static str])> {
        let dialects = [Dialect::Sotw, Dialect::Delta].into_iter();
        dialects.flat_map(|dialect| {
            let wants: [(&str, &[&str]); 3] = [(CDS, &["*"]), (CDS, &["a"]), (RDS, &["a"])];
            wants.map(|(type_url, names)| (dialect, type_url, names))
        })
    }

    fn new((dialect, type_url, names): (Dialect, &'static str, &'static [&'static str])) -> Self {
        Self {
            relay: Relay::start(),
            dialect,
            type_url,
            names,
        }
    }

    /// A client of this version comes.
    async fn client(&self, id: &str, version: &str) -> Subscriber {
        let call = self.relay.connect().await.ads(self.dialect).await;
        let node = Node {
            user_agent_name: "envoy".to_owned(),
            user_agent_version_type: Some(UserAgentVersionType::UserAgentVersion(version.to_owned())),
            ..node_of(id, "")
        };
        let mut client = Subscriber::of(call, self.dialect, self.type_url, node);
        client.subscribe(self.names);
        client
    }

    fn put(&self, content: &str) {
        self.relay.put(self.type_url, &["a"], content);
    }

    /// Clients of these versions are served this and accept it.
    async fn clients_with(&self, content: &str, versions: &[&str]) -> Vec<Subscriber> {
        self.put(content);
        let mut clients = Vec::new();
        for (at, version) in versions.iter().enumerate() {
            let mut client = self.client(&format!("first-{at}"), version).await;
            gets(&mut client, content).await;
            clients.push(client);
        }
        self.acks_reach(versions.len() as u64).await;
        clients
    }

    fn acks(&self) -> u64 {
        self.relay.shared.metrics.of(&TypeUrl::new(self.type_url)).acks.get()
    }

    async fn acks_reach(&self, count: u64) {
        until(|| self.acks() >= count, || "no acknowledgement").await;
    }

    /// A client comes, rejects what it is sent, and is sent this.
    async fn newcomer(&self, id: &str, version: &str, content: &str, older: &str) -> Subscriber {
        let mut client = self.client(id, version).await;
        rejects(&mut client, content).await;
        gets(&mut client, older).await;
        client
    }

    /// Waits until so many clients use older content of this version.
    async fn are_used(&self, view: &View, clients: &[usize]) {
        let used = || -> Vec<usize> { view.rejected().used().iter().map(|one| one.keepers.len()).collect() };
        until(|| used() == clients, || format!("{:?}", view.rejected().used())).await;
    }
}

/// The client is sent this and accepts it.
async fn gets(client: &mut Subscriber, content: &str) {
    assert_eq!(client.next().await.unwrap().bodies, [content]);
    client.ack();
}

async fn rejects(client: &mut Subscriber, content: &str) {
    assert_eq!(client.next().await.unwrap().bodies, [content]);
    client.nack("a: there is no such filter");
}

/// envoy gateway #9198: running proxies reject it and live, every newcomer loads it and dies.
#[tokio::test]
async fn newcomers_are_sent_what_others_accepted() {
    for case in Case::all().map(Case::new) {
        let mut old = case.clients_with("good", &[OLD, OLD]).await;
        let view = case.relay.view();
        case.put("bad");
        for client in &mut old {
            rejects(client, "bad").await;
        }
        case.are_used(view, &[2]).await;
        let mut new = case.newcomer("newcomer", OLD, "bad", "good").await;
        case.are_used(view, &[3]).await;
        let mut sent = 0;
        view.rejected().each(|_, _, older| sent += usize::from(older));
        assert_eq!(sent, 1);
        // Nobody else is concerned.
        let mut other = case.client("other", NEW).await;
        gets(&mut other, "bad").await;
        for client in &mut old {
            assert!(client.call.is_silent().await, "{:?}", case.dialect);
        }
        case.put("better");
        for client in old.iter_mut().chain([&mut new, &mut other]) {
            gets(client, "better").await;
        }
        case.are_used(view, &[]).await;
        // It was accepted, and replaced a moment ago.
        case.put("worse");
        case.newcomer("late", OLD, "worse", "better").await;
    }
}

/// What a client's own software accepted comes first, whatever is newer.
#[tokio::test]
async fn its_own_kind_comes_first() {
    for case in Case::all().map(Case::new) {
        let mut first = case.clients_with("good", &[OLD, NEW]).await;
        case.put("new");
        rejects(&mut first[0], "new").await;
        gets(&mut first[1], "new").await;
        case.are_used(case.relay.view(), &[1]).await;
        case.acks_reach(3).await;
        case.put("bad");
        for client in &mut first {
            rejects(client, "bad").await;
        }
        case.are_used(case.relay.view(), &[1, 1]).await;
        drop(case.newcomer("old", OLD, "bad", "good").await);
        drop(case.newcomer("new", NEW, "bad", "new").await);
        // Who rejects everything is sent everything, once.
        let mut strict = case.client("strict", OLD).await;
        for content in ["bad", "good", "new"] {
            rejects(&mut strict, content).await;
        }
        assert!(strict.call.is_silent().await);
    }
}

/// A relay that starts again sees only newcomers: it goes on with what the earlier run knew.
#[tokio::test]
async fn it_outlives_a_restart() {
    let before = Case::new((Dialect::Delta, CDS, &["a"]));
    let mut old = before.clients_with("good", &[OLD]).await;
    before.put("bad");
    rejects(&mut old[0], "bad").await;
    before.are_used(before.relay.view(), &[1]).await;
    let known = before.relay.view().knowledge(now()).whole();
    assert_eq!(known.older().len(), 1);
    let after = Case::new((Dialect::Delta, CDS, &["a"]));
    after.relay.view().set_restored((*known).clone());
    assert_eq!(after.relay.view().head().older().len(), 1);
    after.put("bad");
    drop(after.newcomer("newcomer", OLD, "bad", "good").await);
}
