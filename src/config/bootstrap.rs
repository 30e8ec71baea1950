//! The shape of gRPC's xDS bootstrap, and the places where it may be written. Owns its keys; validates no values.
//!
//! Unlike elsewhere in the file, an unknown key is kept with its place: it is an error in the relay's own file, but only a
//! warning in a bootstrap that was written for gRPC clients.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor, value::MapAccessDeserializer};
use serde_saphyr::{Location, Spanned};

use super::scalar::Scalar;

/// An unknown key.
#[derive(Debug)]
pub(super) struct Unknown {
    pub(super) key: String,
    /// Where its value is.
    pub(super) value: Location,
    pub(super) expected: &'static [&'static str],
}

/// A mapping whose keys are all optional, and whose unknown keys are kept.
macro_rules! mapping {
    ($name:ident { $($key:literal => $field:ident: $type:ty,)* }) => {
        #[derive(Debug, Default)]
        pub(super) struct $name {
            $(pub(super) $field: $type,)*
            pub(super) unknown: Vec<Unknown>,
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                const KEYS: &[&str] = &[$($key),*];
                struct Members;
                impl<'de> Visitor<'de> for Members {
                    type Value = $name;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("a mapping")
                    }

                    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<$name, A::Error> {
                        let mut found = $name::default();
                        while let Some(key) = map.next_key::<String>()? {
                            match key.as_str() {
                                $($key => found.$field = map.next_value()?,)*
                                _ => found.unknown.push(Unknown {
                                    value: map.next_value::<Spanned<IgnoredAny>>()?.referenced,
                                    key,
                                    expected: KEYS,
                                }),
                            }
                        }
                        Ok(found)
                    }
                }
                deserializer.deserialize_struct(stringify!($name), KEYS, Members)
            }
        }
    };
}

mapping!(Bootstrap {
    "xds_servers" => xds_servers: Vec<Spanned<XdsServer>>,
    "authorities" => authorities: BTreeMap<String, Authority>,
    "node" => node: NodeShape,
    "client_default_listener_resource_name_template" => client_default_template: Option<Scalar>,
    "server_listener_resource_name_template" => server_template: Option<Scalar>,
    "certificate_providers" => certificate_providers: IgnoredAny,
    "allowed_grpc_services" => allowed_grpc_services: IgnoredAny,
});

mapping!(XdsServer {
    "server_uri" => server_uri: Option<Scalar>,
    "channel_creds" => channel_creds: Vec<Spanned<ChannelCreds>>,
    "call_creds" => call_creds: Vec<Spanned<CallCreds>>,
    "server_features" => server_features: Vec<Scalar>,
    "transport" => transport: Option<Scalar>,
});

mapping!(ChannelCreds {
    "type" => kind: Option<Scalar>,
    "config" => config: TlsConfig,
});

mapping!(TlsConfig {
    "ca_certificate_file" => ca_certificate_file: Option<Scalar>,
    "certificate_file" => certificate_file: Option<Scalar>,
    "private_key_file" => private_key_file: Option<Scalar>,
    "server_name" => server_name: Option<Scalar>,
    "refresh_interval" => refresh_interval: IgnoredAny,
});

mapping!(CallCreds {
    "type" => kind: Option<Scalar>,
    "config" => config: TokenConfig,
});

mapping!(TokenConfig {
    "jwt_token_file" => jwt_token_file: Option<Scalar>,
});

mapping!(Authority {
    "xds_servers" => xds_servers: Vec<Spanned<XdsServer>>,
    "fallback_on_reachability_only" => fallback_on_reachability_only: Option<bool>,
    "client_listener_resource_name_template" => client_template: Option<Scalar>,
});

mapping!(NodeShape {
    "id" => id: Option<Scalar>,
    "cluster" => cluster: Option<String>,
    "locality" => locality: Locality,
    "metadata" => metadata: serde_json::Map<String, serde_json::Value>,
});

mapping!(Locality {
    "region" => region: Option<String>,
    "zone" => zone: Option<String>,
    "sub_zone" => sub_zone: Option<String>,
});

impl Bootstrap {
    /// Whether it names any control plane.
    pub(super) fn is_given(&self) -> bool {
        !self.xds_servers.is_empty() || !self.authorities.is_empty()
    }
}

/// The `upstream` of the relay's own file.
#[derive(Debug)]
pub(super) enum Upstream {
    /// The bootstrap is written there.
    Inline(Box<Bootstrap>),
    /// The bootstrap is in this file.
    File(String),
}

impl Default for Upstream {
    fn default() -> Self {
        Self::Inline(Box::default())
    }
}

impl<'de> Deserialize<'de> for Upstream {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Upstream;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a bootstrap, or the path of one")
            }

            fn visit_unit<E>(self) -> Result<Upstream, E> {
                Ok(Upstream::default())
            }

            fn visit_str<E>(self, path: &str) -> Result<Upstream, E> {
                Ok(Upstream::File(path.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Upstream, A::Error> {
                Bootstrap::deserialize(MapAccessDeserializer::new(map)).map(|inline| Upstream::Inline(Box::new(inline)))
            }
        }
        deserializer.deserialize_any(Either)
    }
}
