// SPDX-License-Identifier: Apache-2.0
//! A client that speaks SotW.
//!
//! Owns its requests. Does not know why it wants a resource.

use proto::envoy::service::discovery::v3::DiscoveryRequest;

use super::{Client, Mux, rejection};
use crate::body::Type;
use crate::wire::Up;

impl Client {
    pub(super) fn sync_sotw(&mut self, stream: u64, kind: Type) -> Option<Up> {
        let wish = self.wish(kind);
        let explicit = self.explicit;
        let remembers = self.holds.get(&kind).is_some_and(|holds| !holds.is_empty());
        let mux = self.mux(stream, kind)?;
        // A list that becomes empty before anything was named would mean everything.
        let nothing = !wish.wildcard && wish.names.is_empty() && !mux.named;
        let same = mux.started && mux.wildcard == wish.wildcard && mux.names == wish.names;
        if same || nothing {
            return None;
        }
        if !mux.started && remembers {
            // It only matters that it is not empty: no version of another stream means anything (B-25).
            mux.version = "from before".to_owned();
        }
        mux.started = true;
        mux.named |= !wish.names.is_empty() || !wish.wildcard || explicit || !kind.full_state();
        mux.wildcard = wish.wildcard;
        mux.names = wish.names;
        let (wildcard, names) = (mux.wildcard, mux.names.clone());
        let request = self.request_sotw(stream, kind, false);
        // What it does not want any more it forgets.
        if let Some(holds) = self.holds.get_mut(&kind).filter(|_| !wildcard) {
            holds.retain(|name, _| names.contains(name));
        }
        request
    }

    pub(super) fn settle_sotw(&mut self, stream: u64, kind: Type, nonce: &str, rejected: bool) -> Option<Up> {
        let mux = self.lines.get_mut(&stream)?.muxes.get_mut(&kind)?;
        if mux.newest != nonce {
            return None;
        }
        mux.nonce = nonce.to_owned();
        self.request_sotw(stream, kind, rejected)
    }

    /// M-01: it asks for endpoints again, the same names with a nonce that it has acknowledged.
    pub(super) fn ask_again(&mut self, stream: u64, kind: Type) -> Option<Up> {
        let started = self.lines.get(&stream)?.muxes.get(&kind).is_some_and(|mux| mux.started);
        if !started {
            return None;
        }
        self.request_sotw(stream, kind, false)
    }

    fn request_sotw(&mut self, stream: u64, kind: Type, rejected: bool) -> Option<Up> {
        let node = self.node(stream);
        let mux = self.lines.get(&stream)?.muxes.get(&kind)?;
        Some(Up::Sotw(DiscoveryRequest {
            version_info: mux.version.clone(),
            node,
            resource_names: mux.listed(),
            type_url: kind.url().to_owned(),
            response_nonce: mux.nonce.clone(),
            error_detail: rejected.then(rejection),
            ..DiscoveryRequest::default()
        }))
    }
}

impl Mux {
    fn listed(&self) -> Vec<String> {
        let all = (self.wildcard && self.named).then(|| "*".to_owned());
        all.into_iter().chain(self.names.iter().cloned()).collect()
    }
}
