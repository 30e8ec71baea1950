// SPDX-License-Identifier: Apache-2.0
//! What a client reads from the wire: every response of a story is encoded as the transport encodes it, and decoded again.
//!
//! Owns what holds for every response of any story. Knows nothing of stories.

use std::collections::BTreeSet;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use distributary::proto::distributary::references;
use distributary::proto::envoy::service::discovery::v3 as discovery;
use distributary::proto::google::protobuf::Any;
use distributary::protocol::Response;
use distributary::xds::{Dialect, Name, TypeUrl};
use peers::state::route;
use prost::Message;

use crate::text::{Spec, said};

/// A response as the client has read it.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) type_url: TypeUrl,
    pub(crate) nonce: String,
    pub(crate) version: String,
    pub(crate) items: Vec<Item>,
    pub(crate) removed: Vec<String>,
    /// Errors as `name=code`.
    pub(crate) errors: Vec<String>,
}

/// One resource in it.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) name: String,
    /// `None`: without a body.
    pub(crate) label: Option<String>,
    pub(crate) version: String,
    pub(crate) aliases: Vec<String>,
    pub(crate) ttl: Option<Duration>,
    pub(crate) wrapped: bool,
}

/// A body as the origin of a story writes it: like most real bodies it has its name in field 1. Field 28 is free text in clusters
/// and in listeners, so files can have it as well.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct Body {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    /// The reference to a collection of endpoints, as in `ClusterLoadAssignment`, or the address of a listener.
    #[prost(message, optional, tag = "2")]
    pub(crate) locality: Option<Locality>,
    #[prost(string, tag = "28")]
    pub(crate) label: String,
}

/// A `LocalityLbEndpoints` with only the reference to its endpoints; or an `Address`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct Locality {
    #[prost(message, optional, tag = "1")]
    pub(crate) socket: Option<Socket>,
    #[prost(message, optional, tag = "8")]
    pub(crate) leds: Option<Leds>,
}

/// A `SocketAddress`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct Socket {
    #[prost(string, tag = "2")]
    pub(crate) address: String,
    #[prost(uint32, tag = "3")]
    pub(crate) port: u32,
}

/// A `LedsClusterLocalityConfig`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct Leds {
    #[prost(string, tag = "2")]
    pub(crate) collection: String,
}

/// The label of an empty body.
pub(crate) const EMPTY: &str = "empty";

impl Body {
    /// The bytes of a resource's body.
    pub(crate) fn bytes(spec: &Spec) -> Vec<u8> {
        if spec.label == EMPTY {
            return Vec::new();
        }
        let locality = spec.leads.as_ref().map(|text| match text.parse::<SocketAddr>() {
            Ok(socket) => Locality {
                socket: Some(Socket {
                    address: socket.ip().to_string(),
                    port: socket.port().into(),
                }),
                leds: None,
            },
            Err(_) => Locality {
                socket: None,
                leds: Some(Leds {
                    collection: text.clone(),
                }),
            },
        });
        let body = Self {
            name: spec.name.clone(),
            locality,
            label: spec.label.clone(),
        };
        let listener = spec.route.as_ref().map(|route| naming(route).encode_to_vec());
        let route = spec
            .target
            .as_ref()
            .map(|cluster| route(&spec.name, &[cluster]).to_vec());
        [
            body.encode_to_vec(),
            listener.unwrap_or_default(),
            route.unwrap_or_default(),
        ]
        .concat()
    }

    /// Its label, if the name around it is this one.
    fn label(bytes: Bytes, name: &str, type_url: &TypeUrl) -> String {
        if bytes.is_empty() {
            return EMPTY.to_owned();
        }
        let body = Self::decode(bytes).expect("a body");
        let same = Name::read(&body.name, type_url) == Name::read(name, type_url);
        assert!(same, "the name around the body: {} and {name}", body.name);
        body.label
    }
}

/// A listener whose route comes from RDS.
fn naming(route: &str) -> references::Listener {
    let manager = references::HttpConnectionManager {
        rds: Some(references::Rds {
            route_config_name: route.to_owned(),
        }),
        ..Default::default()
    };
    let manager = Any {
        type_url:
            "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
                .to_owned(),
        value: manager.encode_to_vec().into(),
    };
    references::Listener {
        api_listener: Some(references::ApiListener {
            api_listener: Some(manager),
        }),
        ..Default::default()
    }
}

const WRAPPER: &str = "type.googleapis.com/envoy.service.discovery.v3.Resource";

/// Encodes and reads one response., B-03, B-04, B-19, C-01, C-18, C-19: checks that hold for every response.
pub(crate) fn read(response: &Response) -> Said {
    let url = response.type_url.url();
    let other = url.split_once('/').is_some_and(|(prefix, _)| prefix.contains('.'));
    assert!(url.starts_with("type.googleapis.com/") || other, "A-04: {url}");
    assert!(
        !response.nonce.as_bytes().is_empty(),
        "B-03: a response without a nonce"
    );
    let version = response.version.to_string();
    assert!(!version.is_empty(), "B-04: a response without a version");
    let (items, removed, errors) = match response.dialect {
        Dialect::Sotw => {
            let (items, errors) = read_sotw(response, &version);
            (items, Vec::new(), errors)
        }
        Dialect::Delta => read_delta(response, &version),
    };
    let errors: Vec<(String, i32)> = errors.into_iter().map(read_error).collect();
    for (name, _) in &errors {
        assert!(
            items.iter().all(|item| item.name != *name),
            "B-31: `{name}` and what is wrong with it"
        );
    }
    let errors = errors
        .into_iter()
        .map(|(name, code)| format!("{name}={code}"))
        .collect();
    let mut names = BTreeSet::new();
    for name in items.iter().map(|item| &item.name).chain(&removed) {
        assert!(names.insert(name), "B-19, C-19: `{name}` twice in one response");
    }
    Said {
        type_url: response.type_url.clone(),
        nonce: response.nonce.to_string(),
        version,
        items,
        removed,
        errors,
    }
}

/// B-31: every error has a name and a code other than OK.
fn read_error(error: discovery::ResourceError) -> (String, i32) {
    let name = error.resource_name.expect("a name").name;
    let code = error.error_detail.expect("an error").code;
    assert!(!name.is_empty() && code != 0, "B-31: `{name}` {code}");
    (name, code)
}

fn read_sotw(response: &Response, version: &str) -> (Vec<Item>, Vec<discovery::ResourceError>) {
    let head = discovery::DiscoveryResponse {
        version_info: version.to_owned(),
        type_url: response.type_url.url().to_owned(),
        nonce: response.nonce.to_string(),
        ..Default::default()
    };
    let message: discovery::DiscoveryResponse = decode(&head, response);
    assert!(!message.canary, "A-15");
    let read = |any: Any| {
        if any.type_url == WRAPPER {
            let resource = discovery::Resource::decode(any.value).expect("a wrapped resource");
            return Item {
                wrapped: true,
                ..read_resource(resource, response.type_url.url())
            };
        }
        assert_eq!(any.type_url, response.type_url.url(), "A-05");
        let body = Body::decode(any.value).expect("a body");
        Item {
            name: body.name,
            label: Some(body.label),
            version: String::new(),
            aliases: Vec::new(),
            ttl: None,
            wrapped: false,
        }
    };
    let items = message.resources.into_iter().map(read).collect();
    (items, message.resource_errors)
}

fn read_delta(response: &Response, version: &str) -> (Vec<Item>, Vec<String>, Vec<discovery::ResourceError>) {
    let head = discovery::DeltaDiscoveryResponse {
        system_version_info: version.to_owned(),
        type_url: response.type_url.url().to_owned(),
        nonce: response.nonce.to_string(),
        ..Default::default()
    };
    let message: discovery::DeltaDiscoveryResponse = decode(&head, response);
    assert!(message.removed_resource_names.is_empty(), "A-15");
    let items = message.resources.into_iter();
    let items = items
        .map(|resource| read_resource(resource, response.type_url.url()))
        .collect();
    (items, message.removed_resources, message.resource_errors)
}

fn decode<M: Message + Default>(head: &M, response: &Response) -> M {
    let mut bytes = BytesMut::from(head.encode_to_vec().as_slice());
    let (pieces, _) = response.batch.encoded(response.dialect);
    pieces.iter().for_each(|piece: &Bytes| bytes.put_slice(piece));
    M::decode(bytes.freeze()).expect("a response that can be decoded")
}

fn read_resource(resource: discovery::Resource, url: &str) -> Item {
    let response = TypeUrl::new(url);
    assert!(
        !resource.name.is_empty() || response.traits().nameless,
        "C-18: a resource without a name"
    );
    let label = resource.resource.map(|any| {
        assert_eq!(any.type_url, url, "A-05");
        assert!(
            !resource.version.is_empty(),
            "C-18: `{}` without a version",
            resource.name
        );
        Body::label(any.value, &resource.name, &response)
    });
    let ttl = resource.ttl.map(|ttl| {
        Duration::new(
            ttl.seconds.try_into().expect("a ttl"),
            ttl.nanos.try_into().expect("a ttl"),
        )
    });
    Item {
        name: resource.name,
        label,
        version: resource.version,
        aliases: resource.aliases,
        ttl,
        wrapped: false,
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name, self.label.as_deref().unwrap_or("-"))?;
        self.aliases.iter().try_for_each(|alias| write!(f, ":aka={alias}"))?;
        self.ttl.map_or(Ok(()), |ttl| write!(f, ":ttl={ttl:?}"))?;
        if self.wrapped { f.write_str(":wrapped") } else { Ok(()) }
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items = self.items.iter().map(ToString::to_string).collect();
        f.write_str(&said(items, self.removed.clone(), self.errors.clone()))
    }
}
