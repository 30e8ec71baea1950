// SPDX-License-Identifier: Apache-2.0
//! One type on one stream of a control plane: what the client asked for, and what it was sent.
//!
//! Owns a naive server's memory, and the encoding of its responses. Does not know when it responds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use prost::Message;
use proto::envoy::service::discovery::v3 as discovery;
use proto::google::protobuf::{Any, Duration as Lifetime};
use protocol::Request;
use xds::WRAPPER_URL;

use super::body::{Content, Type};
use super::names::covers;
use super::rng::Rng;
use super::truth::Truth;

/// One type on one stream.
#[derive(Default)]
pub(crate) struct Served {
    pub(crate) named: bool,
    /// Whether the last request listed anything, `*` included.
    pub(crate) listed: bool,
    pub(crate) wildcard: bool,
    pub(crate) names: BTreeSet<String>,
    /// What was sent: name and revision.
    pub(crate) sent: BTreeMap<String, u64>,
    /// Delta: what was sent for a wildcard until it was unsubscribed. Like go-control-plane, the server does not send it again when
    /// the wildcard is subscribed again (E-17).
    parted: BTreeMap<String, u64>,
    pub(crate) missing: BTreeSet<String>,
    /// All names that the client was ever sent: for these the server reports that they do not exist, even if it reports no other
    /// missing names.
    pub(crate) known: BTreeSet<String>,
    /// What each response removed, by nonce.
    pub(crate) gone: BTreeMap<String, Vec<String>>,
    pub(crate) unsettled: Option<String>,
    /// The nonce that was acknowledged last, and in SotW the version with it.
    acknowledged: Option<(String, String)>,
    /// Whether that response has a fault.
    pub(crate) faulty: bool,
    /// Whether a response must be sent, even if nothing has changed.
    pub(crate) owes: bool,
    pub(crate) version: u64,
    /// Whether the last request does not say from whom it is.
    pub(crate) unknown: bool,
    /// SotW: the version that the client had of the type when the stream began.
    pub(crate) declared: Option<String>,
}

impl Served {
    pub(crate) fn subscribed(&self) -> bool {
        self.wildcard || !self.names.is_empty()
    }

    /// All content that the client asks for.
    pub(crate) fn target(&self, kind: Type, truth: &Truth) -> Vec<Arc<Content>> {
        let all = truth
            .of(kind)
            .filter(|content| self.has(&content.name) || self.wildcard && content.covered);
        all.cloned().collect()
    }

    /// Whether a name is asked for, by itself or with its collection.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.names.contains(name)
            || name.starts_with("xdstp:") && self.names.iter().any(|collection| covers(collection, name))
    }

    /// E-22: what was rejected is sent again at once.
    pub(crate) fn settle(&mut self, nonce: &str, refused: bool) {
        if self.unsettled.as_deref() == Some(nonce) {
            self.unsettled = None;
            self.faulty = false;
        }
        if refused {
            self.sent.values_mut().for_each(|revision| *revision = 0);
            let gone = self.gone.remove(nonce).into_iter().flatten();
            self.sent.extend(gone.map(|name| (name, 0)));
            self.missing.clear();
            self.owes = true;
        }
    }

    /// E-24: whether this tells of the rejections of clients, after an acknowledgement. It must have the form that makes no known server
    /// send anything.
    pub(crate) fn hears_of_clients(&self, request: &Request) -> bool {
        let (nonce, error) = match request {
            Request::Sotw(request) => (&request.response_nonce, &request.error_detail),
            Request::Delta(request) => (&request.response_nonce, &request.error_detail),
        };
        let acknowledged = self.acknowledged.as_ref().filter(|(known, _)| known == nonce);
        let (Some((_, version)), Some(error)) = (acknowledged, error) else {
            return false;
        };
        assert!(error.code != 0 && !error.message.is_empty(), "E-24: {error:?}");
        match request {
            Request::Sotw(request) => {
                let mut names: BTreeSet<String> = request.resource_names.iter().cloned().collect();
                let listed = !names.is_empty();
                let same = (names.remove("*") || !listed && self.wildcard) == self.wildcard && names == self.names;
                assert!(same, "E-24: a change of names in {request:?}");
                assert_eq!(request.version_info, *version, "E-24: another version");
            }
            Request::Delta(request) => {
                let bare = discovery::DeltaDiscoveryRequest {
                    node: request.node.clone(),
                    type_url: request.type_url.clone(),
                    response_nonce: nonce.clone(),
                    error_detail: Some(error.clone()),
                    ..Default::default()
                };
                assert_eq!(*request, bare, "E-24");
            }
        }
        true
    }

    pub(crate) fn sotw(&mut self, kind: Type, request: &discovery::DiscoveryRequest, first: bool) {
        self.settle(&request.response_nonce, request.error_detail.is_some());
        // To ask once more without a version is no acknowledgement.
        if request.error_detail.is_none() && !request.version_info.is_empty() {
            self.acknowledged = Some((request.response_nonce.clone(), request.version_info.clone()));
        }
        let mut names: BTreeSet<String> = request.resource_names.iter().cloned().collect();
        self.listed = !names.is_empty();
        self.named |= self.listed;
        let wildcard = names.remove("*") || !self.named && kind.full_state();
        if first || wildcard != self.wildcard || names.iter().any(|name| !self.names.contains(name)) {
            // What is newly asked for is sent, even if it was sent before.
            self.owes = true;
            self.sent.clear();
        }
        let equal = first && names.is_empty() && wildcard;
        self.declared = equal
            .then(|| request.version_info.clone())
            .filter(|version| !version.is_empty());
        (self.wildcard, self.names) = (wildcard, names);
    }

    pub(crate) fn delta(
        &mut self,
        kind: Type,
        request: &discovery::DeltaDiscoveryRequest,
        first: bool,
        believes: bool,
    ) {
        self.settle(&request.response_nonce, request.error_detail.is_some());
        if request.error_detail.is_none() && !request.response_nonce.is_empty() {
            self.acknowledged = Some((request.response_nonce.clone(), String::new()));
        }
        let (subscribe, unsubscribe) = (&request.resource_names_subscribe, &request.resource_names_unsubscribe);
        if first && subscribe.is_empty() && unsubscribe.is_empty() && kind.full_state() {
            (self.wildcard, self.owes) = (true, true);
        }
        for name in subscribe {
            if name == "*" && !self.parted.is_empty() {
                self.wildcard = true;
                self.sent.append(&mut self.parted);
            } else if name == "*" {
                (self.wildcard, self.owes) = (true, true);
                self.sent.clear();
            } else {
                self.names.insert(name.clone());
                self.missing.remove(name);
                self.sent.retain(|sent, _| sent != name && !covers(name, sent));
            }
        }
        for name in unsubscribe {
            if name == "*" {
                self.wildcard = false;
                self.parted = self.sent.clone();
            } else {
                self.names.remove(name);
            }
            let (wildcard, names) = (self.wildcard, &self.names);
            let has = |sent: &str| names.contains(sent) || names.iter().any(|collection| covers(collection, sent));
            self.sent.retain(|name, _| wildcard || has(name));
        }
        if first && believes {
            for (name, version) in &request.initial_resource_versions {
                let revision = version.split('.').next().and_then(|text| text.parse().ok());
                self.sent.insert(name.clone(), revision.unwrap_or_default());
            }
        }
    }
}

fn any(kind: Type, content: &Content) -> Any {
    Any {
        type_url: kind.url().to_owned(),
        value: content.body(kind),
    }
}

/// Returns an entry of a SotW response, with a wrapper for what the body alone cannot express.
pub(crate) fn entry(kind: Type, content: &Content, mark: &str) -> Any {
    if kind.named() && content.ttl.is_none() {
        return any(kind, content);
    }
    Any {
        type_url: WRAPPER_URL.to_owned(),
        value: resource(kind, content, mark).encode_to_vec().into(),
    }
}

pub(crate) fn resource(kind: Type, content: &Content, mark: &str) -> discovery::Resource {
    discovery::Resource {
        version: format!("{}{mark}", content.revision),
        resource: Some(any(kind, content)),
        name: content.name.clone(),
        ttl: content.ttl.map(|ttl| Lifetime {
            seconds: i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX),
            nanos: 0,
        }),
        ..Default::default()
    }
}

/// E-12, E-13: adds garbage, a repeated entry, or an entry without a name.
pub(crate) fn spoil(resources: &mut Vec<Any>, kind: Type, rng: &mut Rng) {
    match (rng.below(3), resources.first().cloned()) {
        (0, Some(first)) => resources.push(first),
        (1, _) => resources.push(Any {
            type_url: kind.url().to_owned(),
            // for an unknown type an empty body would be valid, as a resource without a name.
            value: if kind == Type::Odd {
                Bytes::from_static(b"\x0a\x05x")
            } else {
                Bytes::new()
            },
        }),
        _ => resources.push(Any {
            type_url: "type.googleapis.com/wrong.Type".to_owned(),
            value: Bytes::from_static(b"\x0a\x01x"),
        }),
    }
}

pub(crate) fn spoil_delta(resources: &mut Vec<discovery::Resource>, rng: &mut Rng) {
    match (rng.below(2), resources.first().cloned()) {
        (0, Some(first)) => resources.push(first),
        _ => resources.push(discovery::Resource::default()),
    }
}
