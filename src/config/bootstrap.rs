// SPDX-License-Identifier: Apache-2.0
//! The rows of gRPC's xDS bootstrap, which may stand in several places. Owns its keys; validates no values.
//!
//! What a list of credentials says of kinds that the relay does not support is not read.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use super::reading::{Either, Raw, Scalar, Shape, ShapeFaults, Spanned, words};
use super::rows::{Kind, section};
use super::shape::Spiffe;
use super::{Rejections, Transport};
use crate::json::Tree;
use crate::proto::google::protobuf::Value;

/// The `upstream` of the relay's own file: the path of a bootstrap, or one.
pub(super) type Upstream = Either<Scalar, Bootstrap>;

section!(pub(super) struct Bootstrap {
    /// The servers for names without an authority, in order of priority: the next one is asked if one cannot be reached and something is
    /// missing.
    "xds_servers" => xds_servers: Vec<Spanned<XdsServer>>;
    /// The servers for names such as xdstp://endpoints.example.com/...
    "authorities" => authorities: BTreeMap<String, Authority>, like "endpoints.example.com";
    /// Like the relay's own `node`, which overrides this one field by field.
    "node" => node: NodeShape,
        like "{ id: relay-1, cluster: edge-relays, locality: { region: eu-1, zone: eu-1a, sub_zone: rack-7 }, metadata: { TIER: edge } }";
    /// How clients behind the relay build a listener's name from a target: `distributary bootstrap grpc` copies it into their bootstrap.
    "client_default_listener_resource_name_template" => client_default_template: Option<Scalar>,
        like "xdstp://endpoints.example.com/envoy.config.listener.v3.Listener/%s";
    /// How servers behind the relay build a listener's name from their address: `distributary bootstrap grpc` copies it into their bootstrap.
    "server_listener_resource_name_template" => server_template: Option<Scalar>,
        like "grpc/server?xds.resource.listening_address=%s";
    /// Accepted, without effect: the relay reads no certificates by these names.
    "certificate_providers" => certificate_providers: Raw, like "{}";
    /// Accepted, without effect: the relay makes no other calls.
    "allowed_grpc_services" => allowed_grpc_services: Raw, like "{}";
});

section!(pub(super) struct XdsServer {
    /// host:port, dns:///host:port, unix:/path, http://host:port or https://host:port; for polling, rest+http://host:port/prefix or
    /// rest+https://host:port/prefix; for resources in a file or in the files of a directory, file:///path, or a path with a slash or a known
    /// extension (.yaml, .yml, .json, .pb, .pb_text).
    "server_uri" needs => server_uri: Option<Scalar>, like "cp-1.example.com:18000";
    /// The first supported type is used. Default: tls for https://, otherwise insecure.
    "channel_creds" => channel_creds: Vec<Spanned<ChannelCreds>>;
    /// A token that is sent with every call; only with tls. Its file is read for each call.
    "call_creds" => call_creds: Vec<Spanned<CallCreds>>;
    /// Features of the server: fail_on_data_errors, ignore_resource_deletion, resource_timer_is_transient_error, trusted_xds_server. Two entries
    /// with different features are different servers.
    "server_features" => server_features: Vec<Scalar>, like "[fail_on_data_errors, resource_timer_is_transient_error]";
    /// delta, or sotw for a server that supports state of the world better. Default: delta, and sotw if the server does not answer delta. Not
    /// part of gRPC's bootstrap.
    "transport" => transport: Option<Spanned<Transport>>, like "delta";
    /// Whether the server is told, after the relay's acknowledgement, what clients reject: report or keep. Default: report. Not part of gRPC's
    /// bootstrap.
    "rejections" => rejections: Option<Spanned<Rejections>>, like "report";
});

section!(pub(super) struct ChannelCreds {
    /// tls or insecure. Entries of other types are passed over.
    "type" needs => kind: Option<Scalar>, like "tls";
    /// What belongs to the type. insecure has nothing.
    "config" => config: Raw as Config<TlsConfig>;
});

section!(pub(super) struct TlsConfig {
    /// PEM: who must have signed the server's certificate. Default: the system's authorities.
    "ca_certificate_file" => ca_certificate_file: Option<Scalar>, like "/etc/distributary/ca.pem";
    /// PEM: the relay's certificate. Set it and its key, or neither.
    "certificate_file" => certificate_file: Option<Scalar>, like "/etc/distributary/relay.pem";
    /// PEM: the key of that certificate.
    "private_key_file" => private_key_file: Option<Scalar>, like "/etc/distributary/relay.key";
    /// The name that the server's certificate must be for, and the host in requests. Default: the host of the server's address. Or a SPIFFE id
    /// (spiffe://trust-domain/path), which must be the only URI in the certificate. Not part of gRPC's bootstrap.
    "server_name" => server_name: Option<Scalar>, like "control-plane.example.com";
    /// Instead of all files here: a SPIFFE Workload API, as in the `tls` of a listener. Default: none. Not part of gRPC's bootstrap.
    "spiffe" => spiffe: Option<Spanned<Spiffe>>, like "";
    /// Accepted, without effect, as the files are read anew for each connection.
    "refresh_interval" => refresh_interval: Raw, like "600s";
});

section!(pub(super) struct CallCreds {
    /// jwt_token_file. Entries of other types are passed over.
    "type" needs => kind: Option<Scalar>, like "jwt_token_file";
    /// What belongs to the type.
    "config" => config: Raw as Config<TokenConfig>;
});

section!(pub(super) struct TokenConfig {
    /// The file of the token.
    "jwt_token_file" => jwt_token_file: Option<Scalar>, like "/var/run/secrets/tokens/xds";
});

section!(pub(super) struct Authority {
    /// The servers for its names. Default: those for names without an authority. Equal entries in several lists are one server, with one
    /// connection.
    "xds_servers" => xds_servers: Vec<Spanned<XdsServer>>, like "[{ server_uri: \"endpoints.example.com:18000\" }]";
    /// Whether to ask the next server as soon as one cannot be reached, even if nothing is missing. Default: false.
    "fallback_on_reachability_only" => fallback_on_reachability_only: bool, like "true";
    /// How clients build a listener's name from a target; must begin with xdstp:// and the authority. Default: this.
    "client_listener_resource_name_template" => client_template: Option<Scalar>,
        like "xdstp://endpoints.example.com/envoy.config.listener.v3.Listener/%s";
});

section!(pub(super) struct NodeShape {
    /// Its id. That of the relay is by default the host's name.
    "id" => id: Option<Scalar>, like "relay-1";
    /// Its cluster. Default: none.
    "cluster" => cluster: Option<String>, like "edge-relays";
    /// Where it is. Default: nowhere.
    "locality" => locality: Locality;
    /// Any structure. Default: none.
    "metadata" => metadata: BTreeMap<String, Value>, like "{ ROLE: relay }";
});

section!(pub(super) struct Locality {
    /// The region.
    "region" => region: Option<String>, like "eu-1";
    /// The zone in the region.
    "zone" => zone: Option<String>, like "eu-1a";
    /// A part of the zone, such as a rack.
    "sub_zone" => sub_zone: Option<String>, like "rack-7";
});

words!(Transport as Self, "is not a transport":
    "delta" => Self::Delta,
    "sotw" => Self::Sotw,
);

words!(Rejections as Self, "does not say what becomes of rejections":
    "report" => Self::Report,
    "keep" => Self::Keep,
);

/// What belongs to the type of some credentials: read once the type is known, and free for types that are not.
type Config<T> = PhantomData<T>;

impl<T: Shape> Shape<Raw> for Config<T> {
    fn read(tree: &Tree, _: &str, _: &mut ShapeFaults) -> Option<Raw> {
        Some(Raw(Some(tree.clone())))
    }

    fn kind() -> Kind {
        if let Kind::Rows(rows) = T::kind() {
            return Kind::Open(rows);
        }
        Kind::Any
    }
}

impl Bootstrap {
    /// Whether it names any control plane.
    pub(super) fn is_given(&self) -> bool {
        !self.xds_servers.is_empty() || !self.authorities.is_empty()
    }
}
