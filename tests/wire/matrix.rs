// SPDX-License-Identifier: Apache-2.0
//! Every door by every credential: each method of the table of services, each path that is polled, and each path of the admin address;
//! for what exists and what does not. What one tenant may have never reaches another, and nobody learns from an answer what there is.
//!
//! The doors are taken from the tables of the relay: a new one is in here by itself. `DISTRIBUTARY_SEED` is the order.

use std::collections::BTreeSet;
use std::sync::Arc;

use distributary::downstream::methods;
use distributary::proto::envoy::service::discovery::v3::{DeltaDiscoveryResponse, DiscoveryResponse};
use distributary::proto::envoy::service::status::v3::ClientStatusRequest;
use distributary::wire::message;
use distributary::xds::{Dialect, TypeUrl, Update};
use prost::Message as _;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use serde_json::json;

use crate::admin_rules::Stage;
use crate::support::client::{Client, Half};
use crate::support::polls::Poller;
use crate::support::{Relay, config, path, resource, wants, wants_sotw};
use crate::tokens::{ISSUER, Published, Signer};

/// What is in the resources of each tenant.
const MARKS: [&str; 2] = ["content-of-tenant-a", "content-of-tenant-b"];
/// What is in nobody's answer from the admin address.
const KEY: &str = "private-key-of-a-tenant";

/// Somebody who comes to a door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Nobody,
    /// With a token that another key has signed.
    Forged,
    Expired,
    /// With one of an issuer that nobody configured.
    Stranger,
    /// The first or the second of two tenants: each is a foreigner to what the other has.
    Tenant(usize),
    Operator,
}

const ALL: [Who; 7] = [
    Who::Nobody,
    Who::Forged,
    Who::Expired,
    Who::Stranger,
    Who::Tenant(0),
    Who::Tenant(1),
    Who::Operator,
];

/// One way in.
#[derive(Clone, Debug)]
enum Door {
    /// A method, the type that is asked for, its dialect, and whether it is unary.
    Method(String, TypeUrl, Dialect, bool),
    /// A path that is polled.
    Poll(String, TypeUrl),
}

struct World {
    relay: Relay,
    client: Client,
    tokens: Vec<(Who, String)>,
    published: Published,
}

/// What the order of the visits comes from.
fn random() -> StdRng {
    let seed = std::env::var("DISTRIBUTARY_SEED").ok();
    StdRng::seed_from_u64(seed.and_then(|text| text.parse().ok()).unwrap_or(17))
}

/// All types of a generation that have a door of their own in one of these dialects.
fn types(v2: bool, dialects: &[Dialect]) -> BTreeSet<&'static str> {
    let asked = methods().filter(|(_, _, dialect, _)| dialects.contains(dialect));
    let names = asked.filter_map(|(_, full_name, ..)| full_name);
    names.filter(|name| name.contains("v2") == v2).collect()
}

/// All of them.
fn all_types() -> impl Iterator<Item = &'static str> {
    let of = |v2| types(v2, &[Dialect::Sotw, Dialect::Delta]);
    of(false).into_iter().chain(of(true))
}

fn type_url(full_name: &str) -> TypeUrl {
    TypeUrl::new(&format!("type.googleapis.com/{full_name}"))
}

fn doors() -> Vec<Door> {
    let mut all = Vec::new();
    for (path, full_name, dialect, fetch) in methods() {
        let asked = full_name.map_or_else(|| types(path.contains("v2"), &[dialect]), |name| [name].into());
        let door = |name| Door::Method(path.clone(), type_url(name), dialect, fetch);
        all.extend(asked.into_iter().map(door));
    }
    let polled = all_types().map(type_url);
    all.extend(polled.filter_map(|kind| Some(Door::Poll(kind.path()?, kind))));
    all
}

impl World {
    async fn new() -> Self {
        let (signer, forger) = (Signer::new("one"), Signer::new("one"));
        let published = Published::new(&[signer.public()]);
        let rule = |name| format!("- {{name: {name}, identities: 'jwt:{ISSUER}#{name}', names: '{name}/*'}}\n");
        let access = config(&format!("secrets: allow\nrules:\n{}{}", rule("a"), rule("b"))).access;
        let relay = Relay::with(|plan| {
            plan.protocol.access = access;
            plan.tokens = published.tokens();
        });
        for full_name in all_types() {
            let kind = type_url(full_name);
            let put = |tenant: usize| {
                let name = format!("{}/1", ["a", "b"][tenant]);
                // Field 1 is the name of nearly all; the other one nobody knows.
                let mut body = if full_name.ends_with(".LbEndpoint") {
                    Vec::new()
                } else {
                    [&[0x0a, 3], name.as_bytes()].concat()
                };
                let text = if full_name.ends_with(".Secret") {
                    format!("{}{KEY}", MARKS[tenant])
                } else {
                    MARKS[tenant].to_owned()
                };
                body.extend([0xc2, 0xb8, 0x02, u8::try_from(text.len()).unwrap()]);
                body.extend(text.as_bytes());
                Update::Put(resource(&kind, &name, &body), None)
            };
            relay.publish(&kind, vec![put(0), put(1)]);
        }
        let tokens = vec![
            (Who::Forged, forger.sign(&json!({"sub": "a"}))),
            (Who::Expired, signer.sign(&json!({"sub": "a", "exp": 1}))),
            (Who::Stranger, signer.sign(&json!({"sub": "a", "iss": "https://x"}))),
            (Who::Tenant(0), signer.sign(&json!({"sub": "a"}))),
            (Who::Tenant(1), signer.sign(&json!({"sub": "b"}))),
            (Who::Operator, signer.sign(&json!({"sub": "operator"}))),
        ];
        let client = relay.connect().await;
        Self {
            relay,
            client,
            tokens,
            published,
        }
    }

    fn bearer(&self, who: Who) -> Option<String> {
        let token = self.tokens.iter().find(|(of, _)| *of == who);
        token.map(|(_, token)| format!("Bearer {token}"))
    }

    /// Asks at a door for these names. Returns all that is said, without what differs each time.
    async fn ask(&self, door: &Door, who: Who, names: &[&str]) -> String {
        match door {
            Door::Method(path, kind, dialect, fetch) => self.call(path, kind, (*dialect, *fetch), who, names).await,
            Door::Poll(path, kind) => {
                let bearer = self.bearer(who);
                let mut headers = vec![("content-type", "application/json")];
                headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
                let request = json!({"node": {"id": "client"}, "resource_names": names, "type_url": kind.url()});
                let mut poller = Poller::connect(self.relay.port()).await;
                let answer = poller.post(path, &headers, request.to_string().as_bytes()).await;
                format!("{} {}", answer.status, String::from_utf8_lossy(&answer.body))
            }
        }
    }

    async fn call(
        &self,
        path: &str,
        kind: &TypeUrl,
        (dialect, fetch): (Dialect, bool),
        who: Who,
        names: &[&str],
    ) -> String {
        let request = match dialect {
            Dialect::Sotw => wants_sotw(kind.url(), names).encode_to_vec(),
            Dialect::Delta => wants(kind.url(), names).encode_to_vec(),
        };
        let bearer = self.bearer(who);
        let mut headers = vec![("content-type", "application/grpc"), ("te", "trailers")];
        headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
        let half = if fetch {
            Half::Unary(message(&request))
        } else {
            Half::Open
        };
        let mut call = self.client.request("POST", path, &headers, half).await.unwrap();
        if !fetch {
            call.send_bytes(message(&request));
        }
        let mut said = String::new();
        // Each tenant asks for something that it has: once that is there, so is all else.
        loop {
            let next = tokio::time::timeout(crate::support::PATIENCE, call.next_bytes()).await;
            match next.unwrap_or_else(|_| panic!("{who:?} at {path} for {kind}: nothing comes after {said}")) {
                Ok(bytes) => {
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    said += &match dialect {
                        Dialect::Sotw => shown(DiscoveryResponse::decode(bytes), |one| one.nonce.clear()),
                        Dialect::Delta => shown(DeltaDiscoveryResponse::decode(bytes), |one| one.nonce.clear()),
                    };
                    if MARKS.iter().any(|mark| text.contains(mark)) && !fetch {
                        return said;
                    }
                }
                Err(ended) => return said + &format!(" ended {} {}", ended.code, ended.message),
            }
        }
    }
}

/// A response as text, in which bytes are what they spell.
fn shown<M: std::fmt::Debug>(response: Result<M, prost::DecodeError>, mask: impl FnOnce(&mut M)) -> String {
    let mut response = response.unwrap();
    mask(&mut response);
    format!("{response:?}")
}

/// Each tenant gets its own at each door, and nobody else does; what a foreigner asks for is answered alike whether there is such a thing or
/// not.
#[tokio::test]
async fn what_a_tenant_has_is_its_own() {
    let world = World::new().await;
    let mut visits: Vec<(Door, Who)> = doors()
        .into_iter()
        .flat_map(|door| ALL.map(|who| (door.clone(), who)))
        .collect();
    visits.shuffle(&mut random());
    let (mut served, mut refused) = (0, 0);
    for (door, who) in &visits {
        let (polled, at) = (matches!(door, Door::Poll(..)), format!("{who:?} at {door:?}"));
        let Who::Tenant(tenant) = *who else {
            let said = world.ask(door, *who, &["a/1", "b/1"]).await;
            let wrong = ["ended 7 ", "ended 16 ", "401 ", "403 "];
            let wrong = wrong.iter().any(|start| said.trim_start().starts_with(start));
            assert!(wrong, "{at}: {said}");
            assert!(!said.contains("content-of"), "{at}: {said}");
            refused += 1;
            continue;
        };
        let (own, foreign) = (["a/1", "b/1"][tenant], ["b", "a"][tenant]);
        let mut answers = Vec::new();
        for missing in ["1", "2"] {
            let other = format!("{foreign}/{missing}");
            let said = world.ask(door, *who, &[own, &other]).await;
            let mine = if polled {
                format!("\"{own}\"")
            } else {
                MARKS[tenant].to_owned()
            };
            let nameless = polled && matches!(door, Door::Poll(_, kind) if kind.full_name().ends_with("LbEndpoint"));
            assert!(said.contains(&mine) || nameless, "{at}: {said}");
            let told = polled && said.contains(&format!("\"{other}\""));
            assert!(!told && !said.contains(MARKS[1 - tenant]), "{at}: {said}");
            answers.push(said.replace(&other, "OTHER"));
        }
        assert_eq!(answers[0], answers[1], "{at} learns what there is");
        // By the wildcard, where the type has one.
        let Door::Method(_, kind, ..) = door else { continue };
        if kind.traits().wildcard {
            let said = world.ask(door, *who, &[]).await;
            let told = MARKS.map(|mark| said.contains(mark));
            assert!(told[tenant] && !told[1 - tenant], "{at}: {said}");
        }
        served += 1;
    }
    println!("{} visits: {served} served, {refused} refused", visits.len());
    assert!(served >= 100 && refused >= 400, "{served} {refused}");
}

/// Nobody but an operator gets anything from the admin address beside what probes are told, and nobody gets a key; on a listener, nobody
/// may ask what others have.
#[tokio::test]
async fn the_admin_address_is_for_operators() {
    const CSDS: &str = "/envoy.service.status.v3.ClientStatusDiscoveryService/";
    let world = World::new().await;
    // Somebody has something, so that there is something to tell of.
    let secret = type_url("envoy.extensions.transport_sockets.tls.v3.Secret");
    let ads = path(Dialect::Delta);
    let call = world.call(ads, &secret, (Dialect::Delta, false), Who::Tenant(0), &["a/1"]);
    assert!(call.await.contains(KEY));
    let rules = format!("{{identities: 'jwt:{ISSUER}#operator', allow: [read, change]}}");
    let stage = Stage::over(&world.relay, "127.0.0.1:0", None, world.published.tokens(), &rules);
    let operator = format!("authorization: {}\r\n", world.bearer(Who::Operator).unwrap());
    let (_, help) = stage.ask("GET /help", &operator).await;
    let words = help.split(|character: char| character.is_whitespace() || "();,".contains(character));
    let paths: BTreeSet<String> = words
        .filter(|word| word.starts_with('/'))
        .map(|path| {
            let path = path.trim_end_matches([':', '.']);
            path.replace("ID", "node=client").replace("NAME", "a/1")
        })
        .collect();
    assert!(paths.len() > 25, "{paths:?}");
    let probes = ["/ready", "/healthz/ready", "/live", "/healthz"];
    for path in &paths {
        for verb in ["GET", "POST"] {
            for who in ALL.into_iter().filter(|who| *who != Who::Operator) {
                let token = world.bearer(who).map(|bearer| format!("authorization: {bearer}\r\n"));
                let (status, said) = stage.ask(&format!("{verb} {path}"), &token.unwrap_or_default()).await;
                let open = verb == "GET" && probes.contains(&path.as_str());
                let expected = if open { &[200, 503][..] } else { &[401, 403] };
                assert!(expected.contains(&status), "{who:?} {verb} {path}: {status} {said}");
                let told = said.contains("content-of") || said.contains("a/1");
                assert!(!told, "{who:?} {verb} {path}: {said}");
            }
        }
        if path != "/events" {
            let (status, said) = stage.ask(&format!("GET {path}"), &operator).await;
            assert!(![401, 403].contains(&status), "{path}: {status} {said}");
            assert!(!said.contains(KEY), "{path}: {said}");
        }
    }
    for who in ALL {
        for method in ["StreamClientStatus", "FetchClientStatus"] {
            let (bearer, path) = (world.bearer(who), format!("{CSDS}{method}"));
            let mut headers = vec![("content-type", "application/grpc"), ("te", "trailers")];
            headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
            let half = Half::Unary(message(&ClientStatusRequest::default().encode_to_vec()));
            let mut call = world.client.request("POST", &path, &headers, half).await.unwrap();
            let ended = call.end().await;
            assert!([7, 16].contains(&ended.code), "{who:?} at {path}: {ended:?}");
        }
    }
    drop(Arc::new(stage));
}
