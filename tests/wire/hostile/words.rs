// SPDX-License-Identifier: Apache-2.0
//! What attackers say, as bytes.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use distributary::proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use distributary::wire::message;
use prost::Message as _;

use crate::neighbours::packed;
use crate::support::certificates::Authority;
use crate::support::raw::{DATA, SETTINGS, call, frame};
use crate::support::{CDS, EDS, node_of, path, wants, wants_sotw};
use crate::tls::hello;
use crate::tokens::ISSUER;

pub(super) const CHECK: &str = "/grpc.health.v1.Health/Check";
pub(super) const PING: u8 = 6;
pub(super) const CONTINUATION: u8 = 9;
pub(super) const END_STREAM: u8 = 1;
pub(super) const PADDED: u8 = 8;
pub(super) const INITIAL_WINDOW_SIZE: u8 = 4;
pub(super) const FRAME_BYTES: usize = 16 * 1024;

pub(super) const fn sotw() -> &'static str {
    path(xds::Dialect::Sotw)
}

pub(super) const fn delta() -> &'static str {
    path(xds::Dialect::Delta)
}

pub(super) const fn id(n: u32) -> u32 {
    2 * n + 1
}

/// One message of a call, in frames.
pub(super) fn data(stream: u32, bytes: &[u8]) -> Vec<u8> {
    let frames = bytes.chunks(FRAME_BYTES).map(|part| frame(DATA, 0, stream, part));
    frames.collect::<Vec<_>>().concat()
}

pub(super) fn names(type_url: &str, subscribe: Vec<String>, unsubscribe: Vec<String>) -> Vec<u8> {
    let request = DeltaDiscoveryRequest {
        resource_names_subscribe: subscribe,
        resource_names_unsubscribe: unsubscribe,
        ..wants(type_url, &[])
    };
    message(&request.encode_to_vec()).to_vec()
}

/// How many requests for names there are that attackers share.
pub(super) const SHARED: u32 = 190;

/// The n-th of these requests, for a thousand names. Made once: the attackers would take the processors of this machine for it.
pub(super) fn shared(n: u32) -> &'static [u8] {
    static MADE: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
        let of = |n| {
            (0..1000)
                .map(move |name| format!("a-name-that-nobody-knows-{n}-{name}"))
                .collect()
        };
        (0..SHARED).map(|n| names(EDS, of(n), Vec::new())).collect()
    });
    &MADE[n as usize]
}

/// A request for very many names that begin so, written by hand: many attackers make theirs at the same time.
pub(super) fn very_many(count: u32, prefix: &str) -> Vec<u8> {
    const SUBSCRIBE: u8 = 3 << 3 | 2;
    let mut request = names(EDS, Vec::new(), Vec::new()).split_off(5);
    for number in 0..count {
        let name = format!("{prefix}{number}");
        request.extend([SUBSCRIBE, u8::try_from(name.len()).ok().filter(u8::is_ascii).unwrap()]);
        request.extend_from_slice(name.as_bytes());
    }
    message(&request).to_vec()
}

/// How names of listeners begin that a rule of the fleet's relay forbids.
pub(super) const FORBIDDEN: &str = "forbidden-";
pub(super) const LDS: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";

/// A request for everything of a type that brings versions of names that nobody else has.
pub(crate) fn versions(count: u32) -> Vec<u8> {
    versions_of(CDS, "", count)
}

/// The same of another type, or of names that begin so.
pub(super) fn versions_of(type_url: &str, prefix: &str, count: u32) -> Vec<u8> {
    let stranger = another();
    let name = |n| format!("{prefix}a-name-that-nobody-knows-{stranger}-{n}");
    let request = DeltaDiscoveryRequest {
        initial_resource_versions: (0..count).map(|n| (name(n), "1".to_owned())).collect(),
        ..wants(type_url, &[])
    };
    message(&request.encode_to_vec()).to_vec()
}

/// The request for all clusters.
pub(super) fn all() -> Vec<u8> {
    names(CDS, vec!["*".to_owned()], Vec::new())
}

/// A rejection of nothing, with so many words.
pub(crate) fn rejection(bytes: usize) -> DiscoveryRequest {
    DiscoveryRequest {
        response_nonce: "none".to_owned(),
        error_detail: Some(peers::messages::rejection(&"no ".repeat(bytes / 3))),
        ..wants_sotw(EDS, &[])
    }
}

pub(super) static COMPRESSED: LazyLock<Vec<u8>> = LazyLock::new(|| packed(&rejection(15 << 20).encode_to_vec()));
pub(super) static REJECTION: LazyLock<Vec<u8>> = LazyLock::new(|| message(&rejection(50_000).encode_to_vec()).to_vec());

pub(super) static HANDSHAKE: LazyLock<Vec<u8>> = LazyLock::new(|| hello(&Authority::new()));
pub(super) const FILLER: &str = "a value of some forty bytes, again and again";
pub(super) const POLL: &str = "POST /v3/discovery:clusters HTTP/1.1\r\nhost: relay\r\ncontent-type: application/json\r\ncontent-length: \
                    100000\r\n\r\n";

pub(super) const SMALL_POLL: &str = "POST /v3/discovery:clusters HTTP/1.1\r\nhost: relay\r\ncontent-type: application/json\r\n\
                          content-length: 22\r\n\r\n{\"node\":{\"id\":\"poll\"}}";

pub(super) const FETCH: &str = "/envoy.service.status.v3.ClientStatusDiscoveryService/FetchClientStatus";
pub(super) const QUESTION: &str =
    "POST /v3/discovery:client_status HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 100\r\n\r\n{";

/// A number that nobody had before.
pub(super) fn another() -> u32 {
    static NUMBERS: AtomicU32 = AtomicU32::new(0);
    NUMBERS.fetch_add(1, Ordering::Relaxed)
}

/// A token of a trusted issuer that its key did not sign.
pub(crate) fn wrong_token(number: u32) -> String {
    let header = BASE64_URL_SAFE_NO_PAD.encode(r#"{"alg":"ES256","typ":"JWT"}"#);
    let claims = BASE64_URL_SAFE_NO_PAD.encode(format!(r#"{{"iss":"{ISSUER}","sub":"{number}"}}"#));
    let signature = BASE64_URL_SAFE_NO_PAD.encode([7; 64]);
    format!("{header}.{claims}.{signature}")
}

/// The beginning of the only call of a connection.
pub(super) fn begin(n: u32, path: &str) -> Vec<u8> {
    if n == 0 { call(1, path, &[]) } else { Vec::new() }
}

/// The beginning of a message of nearly 16 MiB.
pub(super) fn unfinished(bytes: usize) -> Vec<u8> {
    [&[0, 0, 0xff, 0, 0][..], &vec![0; bytes]].concat()
}

/// A call in a class of its own: of nodes with this cluster.
pub(super) fn of_class(n: u32, cluster: String) -> Vec<u8> {
    let request = DiscoveryRequest {
        node: Some(node_of("client", &cluster)),
        ..wants_sotw(CDS, &[])
    };
    let data = data(id(n), &message(&request.encode_to_vec()));
    [call(id(n), sotw(), &[]), data].concat()
}

/// A question of CSDS that a rule allows.
pub(super) fn asks_about_all(n: u32) -> Vec<u8> {
    let no_window = frame(SETTINGS, 0, 0, &[0, INITIAL_WINDOW_SIZE, 0, 0, 0, 0]);
    let first = if n == 0 { no_window } else { Vec::new() };
    [first, call(id(n), FETCH, &[]), frame(DATA, END_STREAM, id(n), &[0; 5])].concat()
}

const VHDS: &str = "type.googleapis.com/envoy.config.route.v3.VirtualHost";

/// A new stream of a type with aliases: each thing that the client holds may be what one of its names means.
pub(super) fn may_be_aliases(n: u32) -> Vec<u8> {
    let held = |name| (format!("route/held-{name}"), "1".to_owned());
    let request = DeltaDiscoveryRequest {
        resource_names_subscribe: (0..1000).map(|name| format!("route/asked-{name}")).collect(),
        initial_resource_versions: (0..1000).map(held).collect(),
        ..wants(VHDS, &[])
    };
    let data = data(id(n), &message(&request.encode_to_vec()));
    [call(id(n), delta(), &[]), data].concat()
}

/// A new stream that asks for all clusters.
pub(super) fn asks_for_all(n: u32) -> Vec<u8> {
    [call(id(n), delta(), &[]), data(id(n), &all())].concat()
}
