// SPDX-License-Identifier: Apache-2.0
//! A client that speaks delta.
//!
//! Owns its requests, and what it forgets when it unsubscribes. Does not know why it wants a resource.

use std::collections::BTreeMap;

use proto::envoy::service::discovery::v3::DeltaDiscoveryRequest;

use super::{Client, Mux, rejection};
use crate::body::Type;
use crate::rng::Rng;
use crate::wire::Up;

impl Client {
    pub(super) fn sync_delta(&mut self, stream: u64, kind: Type) -> Option<Up> {
        let request = self.change_delta(stream, kind)?;
        Some(Up::Delta(DeltaDiscoveryRequest {
            node: self.node(stream),
            ..request
        }))
    }

    /// The difference between what was subscribed and what is wanted.
    fn change_delta(&mut self, stream: u64, kind: Type) -> Option<DeltaDiscoveryRequest> {
        let wish = self.wish(kind);
        let persona_explicit = self.explicit;
        let mux = self.mux(stream, kind)?;
        if !mux.started && !wish.wildcard && wish.names.is_empty() {
            return None;
        }
        let first = !std::mem::replace(&mut mux.started, true);
        let mut subscribe: Vec<String> = wish.names.difference(&mux.names).cloned().collect();
        let mut unsubscribe: Vec<String> = mux.names.difference(&wish.names).cloned().collect();
        // C-05: in a first request, and alone, an empty request may mean the wildcard.
        let silent = first && subscribe.is_empty() && kind.full_state() && !persona_explicit;
        if wish.wildcard && !mux.wildcard && !silent {
            subscribe.push("*".to_owned());
        }
        if !wish.wildcard && mux.wildcard {
            unsubscribe.push("*".to_owned());
        }
        let changed = mux.wildcard != wish.wildcard || mux.names != wish.names;
        mux.wildcard = wish.wildcard;
        mux.names = wish.names;
        if !first && !changed {
            return None;
        }
        self.forget_unwanted(stream, kind);
        let holds = self.versions(kind);
        Some(DeltaDiscoveryRequest {
            type_url: kind.url().to_owned(),
            resource_names_subscribe: subscribe,
            resource_names_unsubscribe: unsubscribe,
            initial_resource_versions: if first { holds } else { BTreeMap::new() },
            ..DeltaDiscoveryRequest::default()
        })
    }

    /// B-14: without a wildcard it forgets names that it unsubscribes. C-08: with one it waits for the answer.
    fn forget_unwanted(&mut self, stream: u64, kind: Type) {
        let Some(mux) = self.lines.get(&stream).and_then(|line| line.muxes.get(&kind)) else {
            return;
        };
        if let Some(holds) = self.holds.get_mut(&kind) {
            // No wildcard covers names of new style.
            let waits = |name: &str| mux.wildcard && !name.starts_with("xdstp:");
            holds.retain(|name, _| waits(name) || mux.explicit(name));
        }
    }

    fn versions(&self, kind: Type) -> BTreeMap<String, String> {
        let holds = self.holds.get(&kind).into_iter().flatten();
        holds
            .map(|(name, holding)| (name.clone(), holding.version.clone()))
            .collect()
    }

    /// An acknowledgement; `carries`: changes of the subscription may ride on it.
    pub(super) fn settle_delta(
        &mut self,
        stream: u64,
        kind: Type,
        nonce: &str,
        rejected: bool,
        carries: bool,
    ) -> Option<Up> {
        self.lines.get(&stream)?;
        let change = if carries { self.change_delta(stream, kind) } else { None };
        Some(Up::Delta(DeltaDiscoveryRequest {
            type_url: kind.url().to_owned(),
            response_nonce: nonce.to_owned(),
            error_detail: rejected.then(rejection),
            ..change.unwrap_or_default()
        }))
    }

    /// C-11: it asks again for something that it has asked for already.
    pub(super) fn repeat(&mut self, rng: &mut Rng) -> Option<(u64, Up)> {
        let (stream, kind, mux) = self
            .lines
            .iter()
            .flat_map(|(stream, line)| line.muxes.iter().map(move |(kind, mux)| (*stream, *kind, mux)))
            .filter(|(_, _, mux)| mux.started && (mux.wildcard || !mux.names.is_empty()))
            .nth(rng.below(3))?;
        let names: Vec<String> = mux.names.iter().cloned().collect();
        let name = match rng.pick(&names) {
            Some(name) if !(mux.wildcard && rng.chance(20)) => name.clone(),
            Some(_) | None if mux.wildcard => "*".to_owned(),
            Some(_) | None => return None,
        };
        let request = DeltaDiscoveryRequest {
            type_url: kind.url().to_owned(),
            resource_names_subscribe: vec![name],
            ..DeltaDiscoveryRequest::default()
        };
        Some((stream, Up::Delta(request)))
    }
}

impl Mux {
    /// Whether any request of this type was sent.
    pub(crate) const fn is_started(&self) -> bool {
        self.started
    }
}
