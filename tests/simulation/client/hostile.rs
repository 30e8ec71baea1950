// SPDX-License-Identifier: Apache-2.0
//! A client that sends random requests.
//!
//! Owns its faults: stale and foreign nonces, rejections of everything, flapping subscriptions, silence. Does not react to
//! responses.

use std::collections::BTreeMap;
use std::time::Duration;

use proto::envoy::config::core::v3::Node;
use proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use xds::Dialect;

use super::{Act, Client, Do, rejection};
use crate::body::Type;
use crate::names::{anywhere, missing, name};
use crate::rng::Rng;
use crate::wire::{Answer, Up};

/// Names that are invalid, or too wide.
const GARBAGE: &[&str] = &[
    "xdstp:",
    "xdstp://",
    "xdstp://a",
    "xdstp://a/wrong.Type/x",
    "xdstp://a/envoy.config.cluster.v3.Cluster/%zz",
    "xdstp://a/envoy.config.cluster.v3.Cluster/*",
    "xdstp://b/envoy.config.listener.v3.Listener/*",
    "xdstp://unnamed/envoy.config.cluster.v3.Cluster/*",
    "xdstp://a/envoy.config.cluster.v3.Cluster/c1?b=2&a=1#x",
];

impl Client {
    /// Its node with the first request of a stream, and later at times that of somebody else (B-01).
    fn guise(&mut self, stream: u64, rng: &mut Rng) -> Option<Node> {
        let other = rng.chance(10);
        let features = ["xds.config.supports-resource-ttl", "xds.config.resource-in-sotw"].map(str::to_owned);
        let other = other.then(|| Node {
            id: "somebody".to_owned(),
            cluster: "elsewhere".to_owned(),
            client_features: features.to_vec(),
            ..Node::default()
        });
        self.node(stream).or(other)
    }

    /// A random request, or a flood of them.
    pub(super) fn provoke(&mut self, rng: &mut Rng) -> Vec<Do> {
        let flood = !self.authorities.is_empty() && rng.chance(10);
        let count = if flood { 25 } else { 1 };
        (0..count).flat_map(|_| self.provoke_once(rng)).collect()
    }

    fn some(&self, kind: Type, most: usize, rng: &mut Rng) -> Vec<String> {
        let (delta, authorities) = (self.dialect == Dialect::Delta, self.authorities);
        (0..rng.below(most + 1))
            .map(|_| match rng.below(12) {
                0 => "*".to_owned(),
                1 if delta => missing(&name(kind, rng.below(8))),
                2 | 3 if !authorities.is_empty() => rng.pick(GARBAGE).unwrap_or(&"?").to_string(),
                4..=7 if !authorities.is_empty() => anywhere(authorities, kind, rng.below(8), rng),
                _ => name(kind, rng.below(8)),
            })
            .collect()
    }

    fn provoke_once(&mut self, rng: &mut Rng) -> Vec<Do> {
        let Some(stream) = self.lines.keys().next().copied() else {
            return Vec::new();
        };
        let kind = *rng.pick(&Type::ALL).unwrap_or(&Type::Cds);
        let nonce = match rng.below(4) {
            0 => String::new(),
            1 => "deadbeef-1".to_owned(),
            _ => self
                .received
                .iter()
                .filter(|(_, other, _)| *other == kind)
                .nth(rng.below(3))
                .map_or_else(
                    || format!("{stream:08x}-{}", rng.below(40)),
                    |(_, _, nonce)| nonce.clone(),
                ),
        };
        let error_detail = rng.chance(30).then(rejection);
        let (mut names, others) = (self.some(kind, 4, rng), self.some(kind, 2, rng));
        if !self.authorities.is_empty() && !self.tame && rng.chance(2) && kind == Type::Odd {
            // where a resource may have no name, this is one.
            names.push(String::new());
        }
        let node = self.guise(stream, rng);
        let request = match self.dialect {
            Dialect::Sotw => {
                let Some(mux) = self.mux(stream, kind) else {
                    return Vec::new();
                };
                mux.started = true;
                mux.names = names.iter().cloned().collect();
                Up::Sotw(DiscoveryRequest {
                    version_info: if rng.chance(50) { String::new() } else { "v".to_owned() },
                    node,
                    resource_names: names,
                    type_url: kind.url().to_owned(),
                    response_nonce: nonce,
                    error_detail,
                    ..DiscoveryRequest::default()
                })
            }
            Dialect::Delta => {
                let mut initial = BTreeMap::new();
                if rng.chance(30) {
                    for _ in 0..rng.below(4) {
                        initial.insert(name(kind, rng.below(8)), "0".repeat(32));
                    }
                }
                Up::Delta(DeltaDiscoveryRequest {
                    node,
                    type_url: kind.url().to_owned(),
                    resource_names_subscribe: names,
                    resource_names_unsubscribe: others,
                    initial_resource_versions: initial,
                    response_nonce: nonce,
                    error_detail,
                    ..DeltaDiscoveryRequest::default()
                })
            }
        };
        vec![Do::Send(stream, request)]
    }

    /// It acknowledges, rejects, or stays silent.
    pub(super) fn react(&mut self, stream: u64, answer: &Answer, rng: &mut Rng) -> Vec<Do> {
        self.received.push((stream, answer.kind, answer.nonce.clone()));
        if let Some(mux) = self.mux(stream, answer.kind) {
            mux.newest.clone_from(&answer.nonce);
        }
        let settle = |rejected| Act::Settle(stream, answer.kind, answer.nonce.clone(), rejected);
        let pause = rng.millis(0, 30);
        if self.tame {
            return vec![Do::Later(pause, settle(false))];
        }
        match rng.below(4) {
            0 => vec![Do::Later(pause, settle(true)), Do::Later(pause * 2, settle(true))],
            1 => Vec::new(),
            _ => vec![Do::Later(pause, settle(false))],
        }
    }

    /// It acknowledges all that it has received.
    pub(crate) fn atone(&mut self) -> Vec<Do> {
        let received = std::mem::take(&mut self.received);
        let settle = |(stream, kind, nonce)| Do::Later(Duration::ZERO, Act::Settle(stream, kind, nonce, false));
        received.into_iter().map(settle).collect()
    }
}
