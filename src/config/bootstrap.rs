//! The shape of gRPC's xDS bootstrap, and the places where it may be written. Owns its keys; validates no values.
//!
//! What a list of credentials says of kinds that the relay does not support is not read.

use std::collections::BTreeMap;

use super::reading::{Raw, Scalar, Shape, ShapeFaults, Spanned, mapping, read_word_or, word_or};
use crate::json::Tree;
use crate::proto::google::protobuf::Value;

mapping!(Bootstrap {
    "xds_servers" => xds_servers: Vec<Spanned<XdsServer>>,
    "authorities" => authorities: BTreeMap<String, Authority>,
    "node" => node: NodeShape,
    "client_default_listener_resource_name_template" => client_default_template: Option<Scalar>,
    "server_listener_resource_name_template" => server_template: Option<Scalar>,
    "certificate_providers" => certificate_providers: Raw,
    "allowed_grpc_services" => allowed_grpc_services: Raw,
});

mapping!(XdsServer {
    "server_uri" needs => server_uri: Option<Scalar>,
    "channel_creds" => channel_creds: Vec<Spanned<ChannelCreds>>,
    "call_creds" => call_creds: Vec<Spanned<CallCreds>>,
    "server_features" => server_features: Vec<Scalar>,
    "transport" => transport: Option<Scalar>,
    "rejections" => rejections: Option<Scalar>,
});

mapping!(ChannelCreds {
    "type" needs => kind: Option<Scalar>,
    "config" => config: Raw,
});

mapping!(TlsConfig {
    "ca_certificate_file" => ca_certificate_file: Option<Scalar>,
    "certificate_file" => certificate_file: Option<Scalar>,
    "private_key_file" => private_key_file: Option<Scalar>,
    "server_name" => server_name: Option<Scalar>,
    "spiffe" => spiffe: Option<Raw>,
    "refresh_interval" => refresh_interval: Raw,
});

mapping!(CallCreds {
    "type" needs => kind: Option<Scalar>,
    "config" => config: Raw,
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
    "metadata" => metadata: BTreeMap<String, Value>,
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
#[derive(Clone, Debug)]
pub(super) enum Upstream {
    /// The bootstrap is written there.
    Inline(Box<Bootstrap>),
    /// The bootstrap is in this file.
    File(Scalar),
}

impl Default for Upstream {
    fn default() -> Self {
        Self::Inline(Box::default())
    }
}

impl Shape for Upstream {
    fn read(tree: &Tree, key: &str, found: &mut ShapeFaults) -> Option<Self> {
        read_word_or(
            (tree, key, found),
            "a bootstrap, or the path of one",
            Self::File,
            |inline| Self::Inline(Box::new(inline)),
        )
    }

    fn schema() -> serde_json::Value {
        word_or(Bootstrap::schema())
    }
}
