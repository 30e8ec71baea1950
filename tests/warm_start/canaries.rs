// SPDX-License-Identifier: Apache-2.0
//! Classes and shares of the clients that read other control planes, by configurations that follow each other.

use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use distributary::xds::bucket;

use crate::messages::{of_node, resources, wants};
use crate::plane::{Call, Plane};
use crate::sources::{BASE, next, sent, servers, story_of};
use crate::stage::{CDS, Client, Delta, EDS, Relay, clusters, until};

/// A relay whose configuration is replaced.
struct Stage {
    relay: Relay,
}

impl Stage {
    fn start(name: &str, text: &str) -> Self {
        let relay = Relay::run(name, &format!("{BASE}{text}"));
        Self { relay }
    }

    fn reload(&self, text: &str) {
        self.relay.reload(&format!("{BASE}{text}"));
    }

    async fn client(&self, id: &str, cluster: &str) -> (Client, Delta) {
        let client = Client::connect(self.relay.address).await;
        let delta = client.open(&of_node(id, cluster, wants(CDS, &[]))).await;
        (client, delta)
    }

    async fn shows(&self, text: &str) {
        until(text, || self.relay.admin("/clusters").contains(text)).await;
    }
}

/// The next call of a control plane that has these clusters.
async fn says(plane: &mut Plane, all: &[(&str, &str)]) -> (Call, Node) {
    let mut call = plane.call().await;
    let request: DeltaDiscoveryRequest = call.delta().await;
    call.send(&clusters("n1", all, &[]));
    (call, request.node.unwrap_or_default())
}

/// An id of a client in a bucket from here, below there.
pub(crate) fn id(from: u16, below: u16) -> String {
    let mut all = (0..).map(|number: u32| format!("client-{number}"));
    all.find(|id| bucket(id).is_some_and(|bucket| (from..below).contains(&bucket)))
        .unwrap()
}

/// G-23: the four steps of the manual from one control plane to another. At each step those who move are sent what differs, and nobody
/// else is sent anything; what moves a client once does not move it again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn from_one_control_plane_to_another() {
    let (mut a, mut b) = (Plane::start().await, Plane::start().await);
    let story = story_of("From one control plane to another");
    let story = story
        .replace("control-plane-a.example.com:18000", &a.address.to_string())
        .replace("control-plane-b.example.com:18000", &b.address.to_string());
    let list = |all: &[&dyn std::fmt::Display]| format!("upstream: {{{}}}\n", servers(all));
    let stage = Stage::start("canaries-steps", &list(&[&a.address]));
    let (few, half, most) = (id(0, 500), id(500, 5000), id(5000, 10_000));
    let mut streams = Vec::new();
    let mut of_a = None;
    for id in [&few, &half, &most] {
        let (client, mut delta) = stage.client(id, "").await;
        if of_a.is_none() {
            of_a = Some(says(&mut a, &[("same", "1"), ("other", "1")]).await);
        }
        assert_eq!(next(&mut delta).await, sent(CDS, &[("other", "1"), ("same", "1")], &[]));
        streams.push((client, delta));
    }

    stage.reload(&story);
    let _of_b = says(&mut b, &[("same", "1"), ("other", "2")]).await;
    let differs = sent(CDS, &[("other", "2")], &[]);
    assert_eq!(next(&mut streams[0].1).await, differs);
    assert!(streams[1].1.is_silent().await && streams[2].1.is_silent().await);
    stage.shows(&format!("canary 5%::{}::sessions::1", b.address)).await;
    stage.shows(&format!("#old::{}::sessions::2", a.address)).await;
    let (_, shown) = stage.relay.command(&["status", "--servers"]);
    for (name, server) in [("#old", a.address), ("canary 5%", b.address)] {
        let of_server = |line: &&str| line.contains(&server.to_string()) && line.contains(name);
        assert!(shown.lines().any(|line| of_server(&line)), "{name}: {shown}");
    }

    stage.reload(&story.replace("5%", "50%"));
    assert_eq!(next(&mut streams[1].1).await, differs);
    assert!(streams[0].1.is_silent().await && streams[2].1.is_silent().await);

    stage.reload(&list(&[&b.address, &a.address]));
    assert_eq!(next(&mut streams[2].1).await, differs);
    stage.reload(&list(&[&b.address]));
    for (_, delta) in &mut streams {
        assert!(delta.is_silent().await);
    }

    // Back again, for all but the few.
    stage.reload(&story);
    let back = sent(CDS, &[("other", "1")], &[]);
    for (_, delta) in streams.iter_mut().skip(1) {
        assert_eq!(next(delta).await, back);
    }
    assert!(streams[0].1.is_silent().await);
    assert!(a.has_call().is_none() && b.has_call().is_none(), "one stream to each");
}

/// G-21: a type moves to a list of which a client leaves the server at the same moment, while others read the type there. That client is
/// sent nothing of that server, in which it does not read the type, and which is not asked for more of it; and if the server is the first
/// again, it is asked for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_type_moves_to_a_list_that_is_left() {
    let (mut a, mut b, mut c) = (Plane::start().await, Plane::start().await, Plane::start().await);
    let top = format!("upstream: {{{}}}\n", servers(&[&a.address]));
    let canary = format!("{top}canary: {{share: 5%, {}}}\n", servers(&[&b.address]));
    let source = format!("sources: [{{types: [eds], {}}}]\n", servers(&[&c.address]));
    let stage = Stage::start("canaries-left", &format!("{top}{source}"));
    let (mut of_a, mut of_c) = (None, None);
    let mut streams = Vec::new();
    for id in [id(0, 500), id(500, 10_000)] {
        let (client, mut delta) = stage.client(&id, "").await;
        if of_a.is_none() {
            of_a = Some(says(&mut a, &[("x", "1")]).await.0);
        }
        assert_eq!(next(&mut delta).await, sent(CDS, &[("x", "1")], &[]));
        delta.says(&of_node(&id, "", wants(EDS, &["x"])));
        if of_c.is_none() {
            let mut call = c.call().await;
            call.delta().await;
            call.send(&resources(EDS, "n1", &[("x", "1")], &[]));
            of_c = Some(call);
        }
        assert_eq!(next(&mut delta).await, sent(EDS, &[("x", "1")], &[]));
        streams.push((client, delta));
    }

    // The server of the canary does not answer yet.
    stage.reload(&canary);
    let mut of_b = b.call().await;
    assert_eq!(of_b.delta().await.type_url, CDS);
    let mut of_a = of_a.unwrap();
    while of_a.delta().await.type_url != EDS {}
    of_a.send(&resources(EDS, "n1", &[("x", "2")], &[]));
    assert_eq!(next(&mut streams[1].1).await, sent(EDS, &[("x", "2")], &[]));
    of_a.send(&clusters("n2", &[("x", "2")], &[]));
    let differs = sent(CDS, &[("x", "2")], &[]);
    assert_eq!(next(&mut streams[1].1).await, differs);
    assert_eq!(next(&mut streams[0].1).await, differs);
    assert!(streams[0].1.is_silent().await);
    streams[0].1.says(&of_node(&id(0, 500), "", wants(EDS, &["y"])));
    while !of_b.delta().await.resource_names_subscribe.contains(&"y".to_owned()) {}
    of_a.send(&clusters("n3", &[("x", "3")], &[]));
    loop {
        let request = of_a.delta().await;
        assert!(!request.resource_names_subscribe.contains(&"y".to_owned()));
        if request.response_nonce == "n3" {
            break;
        }
    }
    for (_, delta) in &mut streams {
        assert_eq!(next(delta).await, sent(CDS, &[("x", "3")], &[]));
    }

    stage.reload(&top);
    assert_eq!(next(&mut streams[0].1).await, sent(EDS, &[("x", "2")], &[]));
    of_a.send(&resources(EDS, "n2", &[("x", "3")], &[]));
    for (_, delta) in &mut streams {
        assert_eq!(next(delta).await, sent(EDS, &[("x", "3")], &[]));
    }
}

/// G-22: a class reads servers of its own. Its clients keep them when the rule goes, and new clients read what all read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_class_with_servers_of_its_own() {
    let (mut a, mut b) = (Plane::start().await, Plane::start().await);
    let top = format!("upstream: {{{}}}\n", servers(&[&a.address]));
    let class = format!("classes: [{{match: {{cluster: edge}}, {}}}]\n", servers(&[&b.address]));
    let stage = Stage::start("canaries-class", &format!("{top}{class}"));
    let (_of_edge, mut edge) = stage.client("one", "edge").await;
    let (mut of_b, _) = says(&mut b, &[("edge", "1")]).await;
    assert_eq!(next(&mut edge).await, sent(CDS, &[("edge", "1")], &[]));
    let (_of_rest, mut rest) = stage.client("two", "core").await;
    let (_of_a, _) = says(&mut a, &[("core", "1")]).await;
    assert_eq!(next(&mut rest).await, sent(CDS, &[("core", "1")], &[]));
    stage.shows(&format!("classes[0]::{}::sessions::1", b.address)).await;
    stage.shows(&format!("#old::{}::sessions::1", a.address)).await;

    stage.reload(&top);
    of_b.send(&clusters("n2", &[("edge", "2")], &[]));
    assert_eq!(next(&mut edge).await, sent(CDS, &[("edge", "2")], &[]));
    let (_new, mut new) = stage.client("three", "edge").await;
    assert_eq!(next(&mut new).await, sent(CDS, &[("core", "1")], &[]));
    assert!(rest.is_silent().await);
}
