// SPDX-License-Identifier: Apache-2.0
//! What a client is about to want.
//!
//! Owns what can be told from the client's software and its first request. Does not know what is asked of control planes.

use crate::downstream::services::Method;
use crate::protocol::Server;
use crate::xds::{Target, TypeUrl, Want};

/// K-23: an Envoy asks for all listeners as soon as it has all clusters. If the relay waited for that, it would wait for the end of the
/// control plane's answer twice, one time after the other. S-03: nobody is asked for what the client may not have.
pub(super) fn foreseen(want: &Want, method: &Method, server: &Server) -> Option<TypeUrl> {
    let aggregated = method.service.is_none();
    let clusters = want.wanted && want.target == Target::Wildcard && want.type_url.kind().names_endpoints();
    let envoy = || server.node().is_some_and(|node| node.features.envoy);
    if !(aggregated && clusters && !want.type_url.is_v2() && envoy()) {
        return None;
    }
    TypeUrl::called("lds").filter(|listeners| server.may_have(listeners))
}
