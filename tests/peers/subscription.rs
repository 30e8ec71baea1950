// SPDX-License-Identifier: Apache-2.0
//! One type on a stream of a control plane: what the client asks for, what it was sent, and what is to be said next.
//!
//! Owns a naive server's memory, and the content of its responses. Does not know which other types there are.

use std::collections::{BTreeMap, BTreeSet};

use prost::Message;
use proto::envoy::config::core::v3::ControlPlane;
use proto::envoy::service::discovery::v3::{
    self as discovery, DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
};
use proto::google::protobuf::{Any, Duration as Lifetime};
use proto::google::rpc::Status;
use xds::{Hasher, WRAPPER_URL};

use crate::asked::{Asked, is_full};
use crate::names::{covers, is_collection};
use crate::session::{Habits, Reply, Resource, Resources};

/// One type on a stream.
#[derive(Default)]
pub struct Subscription {
    pub asked: Asked,
    /// SotW: whether the last request has listed anything, `*` included.
    listed: bool,
    /// What was sent: name and version. An empty version is to be sent again.
    sent: BTreeMap<String, String>,
    /// Delta: what was sent for a wildcard until it was unsubscribed. As by go-control-plane, it is not sent again when the wildcard is
    /// subscribed again (E-17).
    parted: BTreeMap<String, String>,
    /// Names that are reported as missing.
    missing: BTreeSet<String>,
    /// All that was ever sent: that it is gone is reported even by those who report no other missing names.
    known: BTreeSet<String>,
    /// What each response removed, by nonce.
    gone: BTreeMap<String, Vec<String>>,
    unsettled: Option<String>,
    /// The nonce that was acknowledged last, and in SotW the version with it.
    acknowledged: Option<(String, String)>,
    /// Whether the last response has a fault.
    faulty: bool,
    /// Whether a response must be sent, even if nothing has changed.
    owes: bool,
    /// Whether the last request does not say from whom it is.
    unknown: bool,
    /// SotW: the version that the client had when the stream began.
    declared: Option<String>,
}

/// The type whose bodies have no names.
const NAMELESS: &str = "type.googleapis.com/envoy.config.endpoint.v3.LbEndpoint";

impl Subscription {
    /// E-18: whether it keeps silent because it was not asked for all that there is.
    #[must_use]
    pub fn withholds(&self, habits: &Habits, all: &Resources) -> bool {
        habits.snapshot && self.listed && all.keys().any(|name| !self.asked.names.contains(name))
    }

    /// E-27: whether it keeps silent because it lacks a name that it was asked for, or was not told by whom.
    #[must_use]
    pub fn is_silenced(&self, habits: &Habits, all: &Resources) -> bool {
        habits.strict && (self.unknown || self.asked.names.iter().any(|name| !is_there(all, name)))
    }

    pub(crate) fn hear_delta(&mut self, habits: &Habits, request: &DeltaDiscoveryRequest) {
        let (nonce, error) = (&request.response_nonce, &request.error_detail);
        if let Some(error) = self.is_told(nonce, error) {
            let bare = DeltaDiscoveryRequest {
                node: request.node.clone(),
                type_url: request.type_url.clone(),
                response_nonce: nonce.clone(),
                error_detail: Some(error.clone()),
                ..DeltaDiscoveryRequest::default()
            };
            assert_eq!(*request, bare, "E-24");
            return;
        }
        self.settle(nonce, habits.insists && error.is_some());
        if error.is_none() && !nonce.is_empty() {
            self.acknowledged = Some((nonce.clone(), String::new()));
        }
        let first = self.asked.serial == 0;
        let asked = self.asked.after_delta(request);
        let before = std::mem::replace(&mut self.asked, asked);
        self.owes |= first && (self.asked.wildcard || !habits.silent);
        self.subscribe(request, &before);
        if first && habits.believes {
            let given = |version: &String| version.strip_suffix(&habits.mark).unwrap_or_default().to_owned();
            let held = request.initial_resource_versions.iter();
            self.sent
                .extend(held.map(|(name, version)| (name.clone(), given(version))));
        }
    }

    pub(crate) fn hear_sotw(&mut self, habits: &Habits, request: DiscoveryRequest) {
        let asked = self.asked.after_sotw(&request);
        let (nonce, error) = (&request.response_nonce, &request.error_detail);
        let same = (asked.wildcard, &asked.names) == (self.asked.wildcard, &self.asked.names);
        if self.is_told(nonce, error).is_some() {
            assert!(same, "E-24: a change of names to {asked:?}");
            let version = self.acknowledged.as_ref().map(|(_, version)| version);
            assert_eq!(Some(&request.version_info), version, "E-24: another version");
            return;
        }
        self.settle(nonce, habits.insists && error.is_some());
        // To ask once more without a version is no acknowledgement.
        if error.is_none() && !request.version_info.is_empty() {
            self.acknowledged = Some((nonce.clone(), request.version_info.clone()));
        }
        self.unknown = request.node.is_none();
        self.listed = !request.resource_names.is_empty();
        let first = self.asked.serial == 0;
        let more = asked.wildcard != self.asked.wildcard || !asked.names.is_subset(&self.asked.names);
        if first || more {
            // What is newly asked for is sent, even if it was sent before.
            self.owes = true;
            self.sent.clear();
        }
        self.declared = Some(request.version_info).filter(|version| first && !version.is_empty());
        self.asked = asked;
    }

    /// E-24: returns what clients have said of a response, if a request tells of that, which comes after its acknowledgement. It must have
    /// the form that makes no known server send anything.
    fn is_told<'a>(&self, nonce: &str, error: &'a Option<Status>) -> Option<&'a Status> {
        let error = error.as_ref()?;
        self.acknowledged.as_ref().filter(|(known, _)| known == nonce)?;
        assert!(error.code != 0 && !error.message.is_empty(), "E-24: {error:?}");
        Some(error)
    }

    /// What was rejected is sent `again`, or not.
    fn settle(&mut self, nonce: &str, again: bool) {
        if self.unsettled.as_deref() == Some(nonce) {
            self.unsettled = None;
            self.faulty = false;
        }
        if again {
            self.repeat_all();
            let gone = self.gone.remove(nonce).into_iter().flatten();
            self.sent.extend(gone.map(|name| (name, String::new())));
            self.missing.clear();
        }
    }

    pub(crate) fn repeat(&mut self, name: &str) {
        self.sent.get_mut(name).into_iter().for_each(String::clear);
        self.missing.remove(name);
    }

    pub(crate) const fn doubt(&mut self) {
        self.faulty = true;
    }

    pub(crate) fn has_sent(&self, name: &str) -> bool {
        self.sent.contains_key(name)
    }

    pub(crate) const fn is_unsettled(&self) -> bool {
        self.unsettled.is_some()
    }

    pub(crate) fn repeat_all(&mut self) {
        self.sent.values_mut().for_each(String::clear);
        self.owes = true;
    }

    fn subscribe(&mut self, request: &DeltaDiscoveryRequest, before: &Asked) {
        for name in &request.resource_names_subscribe {
            if name == "*" && !self.parted.is_empty() {
                self.sent.append(&mut self.parted);
            } else if name == "*" {
                self.owes = true;
                self.sent.clear();
            } else {
                self.missing.remove(name);
                self.sent.remove(name);
                if is_collection(name) {
                    self.sent.retain(|sent, _| !covers(name, sent));
                }
            }
        }
        if before.wildcard && !self.asked.wildcard {
            self.parted = self.sent.clone();
        }
        if !self.asked.wildcard {
            let (asked, sent) = (&self.asked, &mut self.sent);
            sent.retain(|name, _| asked.asks(name));
        }
    }

    /// Returns all that the client asks for.
    fn target<'a>(&self, all: &'a Resources) -> BTreeMap<&'a String, &'a Resource> {
        all.iter()
            .filter(|(name, resource)| self.asked.wildcard && resource.covered || self.asked.asks(name))
            .collect()
    }

    fn is_new(&self, name: &str, resource: &Resource) -> bool {
        self.sent.get(name) != Some(&resource.version)
    }

    pub(crate) fn say_all(
        &mut self,
        habits: &Habits,
        type_url: &str,
        all: &Resources,
        sent: &mut u64,
    ) -> Option<Reply> {
        let asks = self.asked.wildcard || !self.asked.names.is_empty();
        if !asks || self.withholds(habits, all) || self.is_silenced(habits, all) {
            return None;
        }
        if std::mem::take(&mut self.faulty) {
            self.repeat_all();
        }
        let target = self.target(all);
        let mut version = match habits.silent {
            true => version_of_all(all),
            false => (*sent + 1).to_string(),
        };
        version.push_str(&habits.mark);
        let has_all = habits.silent && self.declared.take().as_ref() == Some(&version);
        // Where the absence of a name says nothing, a removal is not worth a response that has only what is new.
        let partial = habits.partial && !is_full(type_url);
        let same = self.sent.len() == target.len() || partial;
        let news = !same || target.iter().any(|(name, resource)| self.is_new(name, resource));
        if !has_all && !news && !self.owes {
            return None;
        }
        let listed = target.iter().filter(|it| !partial || self.is_new(it.0, it.1));
        let resources = listed
            .map(|(name, resource)| entry(habits, type_url, name, resource))
            .collect();
        self.sent = versions(&target);
        self.owes = false;
        if has_all {
            return None;
        }
        Some(Reply::Sotw(DiscoveryResponse {
            version_info: version,
            resources,
            type_url: type_url.to_owned(),
            nonce: self.next_nonce(sent),
            control_plane: control_plane(habits),
            ..DiscoveryResponse::default()
        }))
    }

    pub(crate) fn say_news(&mut self, habits: &Habits, type_url: &str, all: &Resources, sent: &mut u64) -> Vec<Reply> {
        let target = self.target(all);
        let news = target.iter().filter(|it| self.is_new(it.0, it.1));
        let news: BTreeMap<&String, &Resource> = news.map(|(name, resource)| (*name, *resource)).collect();
        // A collection that has a member is not gone.
        let has_member = |name: &str| is_collection(name) && target.keys().any(|member| covers(name, member));
        let gone = |name: &&String| !target.contains_key(*name) && !has_member(name);
        let mut removed: BTreeSet<String> = self.sent.keys().filter(gone).cloned().collect();
        removed.iter().for_each(|name| drop(self.sent.remove(name)));
        self.missing.retain(|name| !is_there(all, name));
        for name in self.asked.names.iter().filter(|name| !is_there(all, name)) {
            let reports = habits.says_missing || self.known.contains(name);
            if reports && self.missing.insert(name.clone()) {
                removed.insert(name.clone());
            }
        }
        self.sent.extend(versions(&news));
        self.known.extend(news.keys().map(|name| (*name).clone()));
        if news.is_empty() && removed.is_empty() && !self.owes {
            return Vec::new();
        }
        self.owes = false;
        let news: Vec<discovery::Resource> = news
            .into_iter()
            .map(|(name, resource)| said(habits, type_url, name, resource))
            .collect();
        let mut parts: Vec<Vec<discovery::Resource>> = news
            .chunks(habits.split.unwrap_or(usize::MAX))
            .map(<[_]>::to_vec)
            .collect();
        let last = parts.pop().unwrap_or_default();
        let removed: Vec<String> = removed.into_iter().collect();
        let parts = parts
            .into_iter()
            .map(|part| (part, Vec::new()))
            .chain([(last, removed)]);
        let part = |(resources, removed): (Vec<discovery::Resource>, Vec<String>)| {
            let nonce = self.next_nonce(sent);
            self.gone.insert(nonce.clone(), removed.clone());
            Reply::Delta(DeltaDiscoveryResponse {
                resources,
                type_url: type_url.to_owned(),
                removed_resources: removed,
                nonce,
                control_plane: control_plane(habits),
                ..DeltaDiscoveryResponse::default()
            })
        };
        parts.map(part).collect()
    }

    fn next_nonce(&mut self, sent: &mut u64) -> String {
        *sent += 1;
        let nonce = sent.to_string();
        self.unsettled = Some(nonce.clone());
        nonce
    }
}

/// Whether a name has content, or a collection has a member.
fn is_there(all: &Resources, name: &str) -> bool {
    all.contains_key(name) || is_collection(name) && all.keys().any(|member| covers(name, member))
}

fn versions(of: &BTreeMap<&String, &Resource>) -> BTreeMap<String, String> {
    of.iter()
        .map(|(name, resource)| ((*name).clone(), resource.version.clone()))
        .collect()
}

/// The version of all resources of a type, as of a snapshot of go-control-plane.
fn version_of_all(all: &Resources) -> String {
    let mut hasher = Hasher::new(0);
    all.iter().for_each(|(name, resource)| {
        hasher.field(name.as_bytes());
        hasher.field(resource.version.as_bytes());
    });
    hasher.finish().to_string()
}

fn control_plane(habits: &Habits) -> Option<ControlPlane> {
    Some(ControlPlane {
        identifier: habits.identifier.to_owned(),
    })
}

/// Returns an entry of a SotW response, with a wrapper for what the body alone cannot express.
fn entry(habits: &Habits, type_url: &str, name: &str, resource: &Resource) -> Any {
    if resource.ttl.is_none() && type_url != NAMELESS {
        return any(type_url, resource);
    }
    Any {
        type_url: WRAPPER_URL.to_owned(),
        value: said(habits, type_url, name, resource).encode_to_vec().into(),
    }
}

fn said(habits: &Habits, type_url: &str, name: &str, resource: &Resource) -> discovery::Resource {
    discovery::Resource {
        name: name.to_owned(),
        version: format!("{}{}", resource.version, habits.mark),
        resource: Some(any(type_url, resource)),
        ttl: resource.ttl.map(|ttl| Lifetime {
            seconds: i64::try_from(ttl.as_secs()).unwrap(),
            nanos: 0,
        }),
        ..discovery::Resource::default()
    }
}

fn any(type_url: &str, resource: &Resource) -> Any {
    Any {
        type_url: type_url.to_owned(),
        value: resource.body.clone(),
    }
}
