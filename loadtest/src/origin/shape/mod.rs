// SPDX-License-Identifier: Apache-2.0
//! The bodies of the built-in resources: valid messages of a given size, such as a control plane sends. Knows field numbers of
//! the public API. Does not know which client gets which resource.

mod json;

use std::net::Ipv4Addr;

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::wire::kind::Kind;
pub(crate) use json::canonical;

/// One body to build.
#[derive(Clone, Debug)]
pub(crate) struct Body<'a> {
    pub(crate) kind: Kind,
    pub(crate) name: &'a str,
    /// The names that it refers to.
    pub(crate) refers: &'a [String],
    /// Another seed gives another content.
    pub(crate) seed: u64,
    pub(crate) bytes: usize,
}

/// Enough text for every content to differ.
const LEAST_PADDING: usize = 16;
/// The approximate size of an endpoint with its address.
const ENDPOINT_BYTES: usize = 32;

impl Body<'_> {
    /// Encodes a valid message with the wanted size, or with the least possible size.
    pub(crate) fn encode(&self) -> Bytes {
        Bytes::from(self.filled(&self.padding()))
    }

    /// Returns as much text as the wanted size allows.
    fn padding(&self) -> Vec<u8> {
        let mut length = self.bytes;
        loop {
            let padding = text(self.seed, length);
            let excess = self.filled(&padding).len().saturating_sub(self.bytes);
            if excess == 0 || length <= LEAST_PADDING {
                return padding;
            }
            length = length.saturating_sub(excess).max(LEAST_PADDING);
        }
    }

    /// Returns the number of endpoints in this resource.
    fn endpoints(&self) -> u64 {
        u64::try_from((self.bytes / ENDPOINT_BYTES / 2).clamp(1, 64)).unwrap_or(1)
    }

    fn filled(&self, padding: &[u8]) -> Vec<u8> {
        let nested = self.kind == Kind::IstioAddress;
        let mut out = if nested {
            Vec::new()
        } else {
            delimited(1, self.name.as_bytes())
        };
        match self.kind {
            Kind::Cds | Kind::CdsV2 => {
                if !self.refers.is_empty() {
                    // Cluster.type EDS, Cluster.eds_cluster_config.eds_config
                    out.extend(number(2, 3));
                    out.extend(delimited(3, &delimited(1, &self.ads())));
                }
                // Cluster.alt_stat_name
                out.extend(delimited(28, padding));
            }
            Kind::Eds | Kind::EdsV2 => {
                // LocalityLbEndpoints.locality.sub_zone, and a few endpoints, which differ from content to content.
                let mut group = delimited(1, &delimited(3, padding));
                for at in 0..self.endpoints() {
                    group.extend(endpoint(self.seed.wrapping_add(at)));
                }
                out.extend(delimited(2, &group));
            }
            Kind::Lds | Kind::LdsV2 => {
                let route = self.refers.first().map_or("none", String::as_str);
                // HttpConnectionManager.stat_prefix, .rds
                let mut manager = delimited(2, padding);
                manager.extend(delimited(
                    3,
                    &[delimited(1, &self.ads()), delimited(2, route.as_bytes())].concat(),
                ));
                let any = [delimited(1, self.manager().as_bytes()), delimited(2, &manager)].concat();
                let filter = [delimited(1, b"http"), delimited(4, &any)].concat();
                out.extend(delimited(2, &address("127.0.0.1", 10_000)));
                out.extend(delimited(3, &delimited(3, &filter)));
            }
            Kind::Rds | Kind::RdsV2 => {
                let mut host = [delimited(1, padding), delimited(2, b"*")].concat();
                host.extend(self.refers.iter().flat_map(|cluster| route(cluster)));
                out.extend(delimited(2, &host));
            }
            Kind::Vhds => {
                // VirtualHost.domains
                out.extend(delimited(2, padding));
                out.extend(self.refers.iter().flat_map(|cluster| route(cluster)));
            }
            // Secret.generic_secret.secret.inline_string
            Kind::Sds => out.extend(delimited(4, &delimited(1, &delimited(3, padding)))),
            // Runtime.layer, a struct with one text
            Kind::Rtds => {
                let entry = [delimited(1, b"text"), delimited(2, &delimited(3, padding))].concat();
                out.extend(delimited(2, &delimited(1, &entry)));
            }
            // TypedExtensionConfig.typed_config, Lua.inline_code
            Kind::Ecds => {
                let code = delimited(1, &[b"-- ", padding].concat());
                out.extend(delimited(
                    2,
                    &[delimited(1, LUA.as_bytes()), delimited(2, &code)].concat(),
                ));
            }
            // Each second address is that of a service.
            Kind::IstioAddress if self.seed >> 32 & 1 == 1 => out.extend(delimited(2, &self.service(padding))),
            Kind::IstioAddress => out.extend(delimited(1, &self.workload(padding))),
            // Authorization.namespace
            Kind::IstioAuthorization => out.extend(delimited(2, padding)),
            Kind::Own => out.extend(delimited(2, padding)),
        }
        out
    }

    /// Workload: uid, name, namespace, addresses, node.
    fn workload(&self, padding: &[u8]) -> Vec<u8> {
        let address = delimited(3, &ip(self.seed));
        let uid = delimited(20, self.name.as_bytes());
        let name = delimited(1, self.name.as_bytes());
        [name, delimited(2, b"load"), address, delimited(9, padding), uid].concat()
    }

    /// Service: name, namespace, hostname, addresses (network, address).
    fn service(&self, padding: &[u8]) -> Vec<u8> {
        let host = self.name.strip_prefix("load/").unwrap_or(self.name).as_bytes();
        let address = [delimited(1, padding), delimited(2, &ip(self.seed))].concat();
        let address = delimited(4, &address);
        [delimited(1, host), delimited(2, b"load"), delimited(3, host), address].concat()
    }

    /// ConfigSource: ads, and from v3 on resource_api_version V3.
    fn ads(&self) -> Vec<u8> {
        let version = if self.kind.is_v2() { Vec::new() } else { number(6, 2) };
        [delimited(3, &[]), version].concat()
    }

    const fn manager(&self) -> &'static str {
        if self.kind.is_v2() { MANAGER_V2 } else { MANAGER }
    }
}

const MANAGER: &str =
    "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
const MANAGER_V2: &str =
    "type.googleapis.com/envoy.config.filter.network.http_connection_manager.v2.HttpConnectionManager";
const LUA: &str = "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua";

/// VirtualHost.routes: everything below the cluster's name goes to it.
fn route(cluster: &str) -> Vec<u8> {
    let matched = delimited(1, &delimited(1, format!("/{cluster}").as_bytes()));
    let action = delimited(2, &delimited(1, cluster.as_bytes()));
    delimited(3, &[matched, action].concat())
}

/// LocalityLbEndpoints.lb_endpoints
fn endpoint(seed: u64) -> Vec<u8> {
    let address = address(&Ipv4Addr::from(ip(seed)).to_string(), 8080);
    delimited(2, &delimited(1, &delimited(1, &address)))
}

/// An address of a private network.
fn ip(seed: u64) -> [u8; 4] {
    let [_, a, b, c, ..] = xxh3_64_with_seed(&[], seed).to_be_bytes();
    [10, a, b, c]
}

/// Address.socket_address
fn address(ip: &str, port: u64) -> Vec<u8> {
    delimited(1, &[delimited(2, ip.as_bytes()), number(3, port)].concat())
}

fn number(field: u32, value: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(4);
    prost::encoding::encode_key(field, prost::encoding::WireType::Varint, &mut out);
    prost::encoding::encode_varint(value, &mut out);
    out
}

fn delimited(field: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(payload.len() + 8);
    prost::encoding::encode_key(field, prost::encoding::WireType::LengthDelimited, &mut out);
    prost::encoding::encode_varint(u64::try_from(payload.len()).unwrap_or(u64::MAX), &mut out);
    out.extend_from_slice(payload);
    out
}

fn text(seed: u64, length: usize) -> Vec<u8> {
    const ALPHABET: &[u8; 16] = b"abcdefghijklmnop";
    let mut out = Vec::with_capacity(length + 16);
    let mut block = 0_u64;
    while out.len() < length {
        let random = xxh3_64_with_seed(&block.to_le_bytes(), seed);
        out.extend((0..16).filter_map(|digit| ALPHABET.get(usize::try_from(random >> (4 * digit) & 15).ok()?)));
        block += 1;
    }
    out.truncate(length);
    out
}
