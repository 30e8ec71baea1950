//! Content that clients of one kind reject: newcomers of the kind are served what the kind accepted before, and nobody else notices.

mod apart;
mod moves;

use std::time::Duration;

use distributary::inquiry::{Depth, Question, Whom};
use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::envoy::config::core::v3::node::UserAgentVersionType;
use distributary::xds::{Dialect, TypeUrl, Version};

use crate::support::messages::Subscriber;
use crate::support::{ADS, CDS, EDS, Relay, until};

const RDS: &str = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";
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
            relay: Relay::with(|plan| plan.verdict_after = 2),
            dialect,
            type_url,
            names,
        }
    }

    /// A client of this version comes.
    async fn client(&self, id: &str, version: &str) -> Subscriber {
        self.client_of(id, version, self.names).await
    }

    async fn client_of(&self, id: &str, version: &str, names: &[&str]) -> Subscriber {
        let verb = match self.dialect {
            Dialect::Sotw => "StreamAggregatedResources",
            Dialect::Delta => "DeltaAggregatedResources",
        };
        let call = self.relay.connect().await.call(&format!("/{ADS}/{verb}")).await;
        let node = Node {
            id: id.to_owned(),
            user_agent_name: "envoy".to_owned(),
            user_agent_version_type: Some(UserAgentVersionType::UserAgentVersion(version.to_owned())),
            ..Node::default()
        };
        let mut client = Subscriber::of(call, self.dialect, self.type_url, node);
        client.subscribe(names);
        client
    }

    /// These clients keep what they had before they rejected something.
    async fn keep(&self, clients: &mut [Subscriber], ids: &[&str]) {
        let whole = self.dialect == Dialect::Sotw && self.type_url == CDS;
        for client in clients {
            match whole {
                true => gets(client, "good").await,
                false => assert!(client.call.is_silent().await, "{:?}", self.dialect),
            }
        }
        if !whole {
            assert_eq!(self.rejecting("a").await, ids, "{:?}", self.dialect);
        }
    }

    /// Returns the ids of the clients that reject the current content of a name.
    async fn rejecting(&self, name: &str) -> Vec<String> {
        let mut round = self.relay.shared.status.census().ask(Question {
            whom: Whom::default(),
            depth: Depth::Rejections,
        });
        let mut ids = Vec::new();
        while let Some(stream) = round.next().await {
            let rejected = stream.types.iter().flat_map(|one| &one.resources);
            if rejected.into_iter().any(|one| one.name == name.into()) {
                ids.push(stream.node.id.to_string());
            }
        }
        ids.sort();
        ids
    }

    fn put(&self, content: &str) {
        self.relay.put(self.type_url, &["a"], content);
    }

    /// Clients of the old version are served good content.
    async fn content_with(&self, ids: &[&str]) -> Vec<Subscriber> {
        self.put("good");
        let mut clients = Vec::new();
        for id in ids {
            clients.push(self.client(id, OLD).await);
        }
        for client in &mut clients {
            gets(client, "good").await;
        }
        clients
    }

    /// Clients of the old version reject what one of the new version accepts. Returns them, and the other.
    async fn condemned(&self, content: &str) -> (Vec<Subscriber>, Subscriber) {
        let mut old = self.content_with(&["one", "two"]).await;
        let mut new = self.client("three", NEW).await;
        gets(&mut new, "good").await;
        // The acknowledgements have arrived when a later question was answered.
        self.settles().await;
        self.put(content);
        gets(&mut new, content).await;
        for client in &mut old {
            assert_eq!(client.next().await.unwrap().bodies, [content]);
            client.nack("route a: there is no such filter");
        }
        self.holds(1).await;
        (old, new)
    }

    fn acks(&self) -> u64 {
        self.relay.shared.metrics.of(&TypeUrl::new(self.type_url)).acks.get()
    }

    async fn settles(&self) {
        self.acks_reach(3).await;
    }

    async fn acks_reach(&self, count: u64) {
        until(|| self.acks() >= count, || "no acknowledgement".to_owned()).await;
    }

    async fn rejects(&self, count: u64) {
        let nacks = || self.relay.shared.metrics.of(&TypeUrl::new(self.type_url)).nacks.get();
        until(|| nacks() >= count, || "no rejection".to_owned()).await;
    }

    /// Three clients are sent other content, the last two reject it, and it is condemned. The first one has not answered.
    async fn condemned_by_two(&self) -> Vec<Subscriber> {
        let mut clients = self.content_with(&["one", "two", "three"]).await;
        self.settles().await;
        self.put("new");
        for client in &mut clients {
            assert_eq!(client.next().await.unwrap().bodies, ["new"]);
        }
        for client in clients.iter_mut().skip(1) {
            client.nack("a: no");
        }
        self.holds(1).await;
        clients
    }

    /// Waits until so many contents are condemned.
    async fn holds(&self, count: usize) {
        let view = self.relay.view();
        until(
            || view.head().condemned().len() == count,
            || format!("{count} wanted: {:?}", view.head().condemned()),
        )
        .await;
    }
}

/// The client is sent this and accepts it.
async fn gets(client: &mut Subscriber, content: &str) {
    assert_eq!(client.next().await.unwrap().bodies, [content]);
    client.ack();
}

/// envoy gateway #9198: running proxies reject it and live, every newcomer loads it and dies.
#[tokio::test]
async fn newcomers_are_served_what_their_kind_accepted() {
    for case in Case::all().map(Case::new) {
        let (mut old, mut new) = case.condemned("bad").await;
        let condemned = case.relay.view().head().condemned()[0].clone();
        assert_eq!((condemned.kind().as_str(), condemned.clients), ("envoy 1.37.0", 2));
        assert!(condemned.objection.words().contains("no such filter"));
        gets(&mut case.client("four", OLD).await, "good").await;
        gets(&mut case.client("five", NEW).await, "bad").await;
        // Those who have rejected it hold what they had before: they are sent nothing, and still count as rejecting. What they have
        // rejected as a whole they are sent again, with the older content.
        case.keep(&mut old, &["one", "two"]).await;
        // What comes next is for all.
        case.put("better");
        for client in old.iter_mut().chain([&mut new]) {
            gets(client, "better").await;
        }
        gets(&mut case.client("six", OLD).await, "better").await;
        case.holds(0).await;
        assert_eq!(case.rejecting("a").await, [""; 0]);
    }
}

/// Who came before the verdict and rejected all that it was sent holds nothing: it is served as one that comes later.
#[tokio::test]
async fn newcomers_that_were_there_before_the_verdict() {
    for case in Case::all().map(Case::new) {
        let mut old = case.content_with(&["zero", "one", "two"]).await;
        case.settles().await;
        case.put("bad");
        for client in &mut old {
            assert_eq!(client.next().await.unwrap().bodies, ["bad"]);
        }
        let mut early = case.client("early", OLD).await;
        assert_eq!(early.next().await.unwrap().bodies, ["bad"]);
        early.nack("a: no");
        case.rejects(1).await;
        old[1].nack("a: no");
        case.holds(1).await;
        gets(&mut early, "good").await;
        // One that rejects it after the verdict has what it had.
        old[2].nack("a: no");
        case.rejects(3).await;
        case.keep(&mut old[1..], &["one", "two"]).await;
        assert!(old[0].call.is_silent().await);
        // What follows is a change also to the one that had nothing at first.
        case.put("worse");
        for client in old.iter_mut().skip(1).chain([&mut early]) {
            assert_eq!(client.next().await.unwrap().bodies, ["worse"]);
        }
        for client in old.iter_mut().skip(1).chain([&mut early]) {
            client.nack("a: no");
        }
        case.holds(1).await;
        case.keep(&mut [early], &["early", "one", "two"]).await;
    }
}

/// A client that keeps one rejected content is still spared another one, which it has not got yet.
#[tokio::test]
async fn each_name_by_itself() {
    for dialect in [Dialect::Sotw, Dialect::Delta] {
        let case = Case::new((dialect, RDS, &["a"]));
        case.relay.put(RDS, &["b"], "good b");
        let (mut old, _new) = case.condemned("bad").await;
        let mut others = Vec::new();
        for id in ["seven", "eight"] {
            let mut other = case.client_of(id, OLD, &["b"]).await;
            gets(&mut other, "good b").await;
            others.push(other);
        }
        case.acks_reach(5).await;
        case.relay.put(RDS, &["b"], "bad b");
        for other in &mut others {
            assert_eq!(other.next().await.unwrap().bodies, ["bad b"]);
            other.nack("b: no");
        }
        case.holds(2).await;
        old[0].subscribe(&["b"]);
        let got = old[0].next().await.unwrap().bodies;
        assert!(
            got.contains(&"good b".to_owned()) && !got.contains(&"bad b".to_owned()),
            "{got:?}"
        );
    }
}

/// Nothing stands in for what nobody of the kind has accepted.
#[tokio::test]
async fn a_new_kind_is_served_what_there_is() {
    let case = Case::new((Dialect::Delta, CDS, &["a"]));
    case.put("good");
    gets(&mut case.client("other", NEW).await, "good").await;
    case.put("bad");
    for id in ["one", "two"] {
        let mut client = case.client(id, OLD).await;
        assert_eq!(client.next().await.unwrap().bodies, ["bad"]);
        client.nack("cluster a: no");
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(case.relay.view().head().condemned().is_empty());
    let mut late = case.client("three", OLD).await;
    assert_eq!(late.next().await.unwrap().bodies, ["bad"]);
}

/// One client that rejects is no verdict, as long as another of its kind may still accept.
#[tokio::test]
async fn one_acceptance_is_enough() {
    for case in Case::all().map(Case::new) {
        let mut clients = case.content_with(&["one", "two", "three"]).await;
        case.settles().await;
        case.put("new");
        // The first one accepts it before the others reject it.
        gets(&mut clients[0], "new").await;
        until(|| case.acks() >= 4, || "no acknowledgement".to_owned()).await;
        for client in clients.iter_mut().skip(1) {
            assert_eq!(client.next().await.unwrap().bodies, ["new"]);
            client.nack("a: no");
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(case.relay.view().head().condemned().is_empty());
        gets(&mut case.client("four", OLD).await, "new").await;
    }
}

/// A client that accepts what others of its kind have rejected ends the verdict: it was sent it before.
#[tokio::test]
async fn a_late_acceptance_ends_it() {
    let case = Case::new((Dialect::Delta, RDS, &["a"]));
    let mut clients = case.condemned_by_two().await;
    clients[0].ack();
    case.holds(0).await;
    // All keep what they hold.
    for client in &mut clients {
        assert!(client.call.is_silent().await);
    }
    gets(&mut case.client("four", OLD).await, "new").await;
}

/// A person says that it is not so: until the content changes, nothing stands in for it.
#[tokio::test]
async fn a_person_releases_it() {
    let case = Case::new((Dialect::Delta, CDS, &["*"]));
    let (mut old, _new) = case.condemned("bad").await;
    let view = case.relay.view();
    view.release_condemned(view.head().condemned()[0].clone());
    case.holds(0).await;
    gets(&mut case.client("four", OLD).await, "bad").await;
    drop(old.pop());
}

/// A relay that starts again sees only newcomers: it goes on with what the earlier run has condemned.
#[tokio::test]
async fn verdicts_outlive_a_restart() {
    let before = Case::new((Dialect::Delta, CDS, &["a"]));
    drop(before.condemned("bad").await);
    let known = before.relay.view().head().knowledge().whole();
    assert_eq!(known.condemned().len(), 1);
    let after = Case::new((Dialect::Delta, CDS, &["a"]));
    after.relay.view().set_restored((*known).clone());
    after.put("bad");
    after.holds(1).await;
    gets(&mut after.client("four", OLD).await, "good").await;
    gets(&mut after.client("five", NEW).await, "bad").await;
    after.put("better");
    gets(&mut after.client("six", OLD).await, "better").await;
}

/// Older endpoints lead nowhere.
#[tokio::test]
async fn endpoints_are_not_condemned() {
    let case = Case::new((Dialect::Delta, EDS, &["a"]));
    let mut clients = case.content_with(&["one", "two"]).await;
    case.put("bad");
    for client in &mut clients {
        assert_eq!(client.next().await.unwrap().bodies, ["bad"]);
        client.nack("a: no");
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(case.relay.view().head().condemned().is_empty());
    assert!(
        case.relay
            .view()
            .head()
            .before(&TypeUrl::new(EDS), &"a".into(), Version::EMPTY)
            .is_none()
    );
}
