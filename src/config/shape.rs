// SPDX-License-Identifier: Apache-2.0
//! The rows of the file, section by section. Owns the keys and what people read about them; what several rows say together is validated
//! elsewhere.

use std::collections::BTreeMap;
use std::time::Duration;

use super::bootstrap::{NodeShape, TlsConfig, Upstream, XdsServer};
use super::guard::Guard;
use super::quantity::{MIB, Share, Size};
use super::reading::{Either, Scalar, Spanned, TextList, Texts, words};
use super::rows::section;
use super::{AdminAction, Limits, LogFilter, Timers, TlsVersion};
use crate::xds::Way;

section!(pub(super) struct File {
    /// The node that the relay presents to its control planes.
    Restart "node" => node: NodeShape;
    /// Where clients connect. Default: 127.0.0.1:15010, without TLS.
    Restart "listeners" => listeners: Option<Spanned<Vec<Listener>>>;
    /// Who issues the tokens (JWT) that clients send with calls, as `authorization: Bearer TOKEN`. Something must use them: a rule, a class, a
    /// rule of `admin`, or `require` of a listener. Default: nobody, and then that header means nothing.
    Next "jwt" => jwt: Vec<Spanned<Issuer>>;
    /// Where operators connect; probes and metrics are there as well. Keep it on loopback, or say who may do what: with `rules`, or with
    /// `client_ca`.
    Restart "admin" => admin: Admin;
    /// A second address with /ready, /live, /healthz and /metrics, and nothing else: for a kubelet and a Prometheus that must not reach the
    /// admin address. Without TLS and rules. Default: there is none.
    Restart "probes" => probes: Option<Probes>;
    /// The control planes, in the format of gRPC's xDS bootstrap, so that you can paste one here. It can also be a file of its own:
    /// `upstream: /etc/grpc/xds-bootstrap.json`. Without `upstream` and --upstream the relay uses the bootstrap for gRPC clients in
    /// GRPC_XDS_BOOTSTRAP (a path) or GRPC_XDS_BOOTSTRAP_CONFIG (the text itself). In a separate file and in the environment, unknown keys are
    /// ignored with a warning, because gRPC clients ignore them.
    Now "upstream" => upstream: Upstream;
    /// Control planes for some types. Names without an authority and the wildcard of these types are asked for here and nowhere else; all other
    /// types are asked for at the servers of `upstream`. Each source falls back by itself, and what becomes of it concerns its types only.
    Now "sources" => sources: Vec<Spanned<Source>>;
    /// Other servers for a share of the clients: a new control plane for a few of them first. Those of `upstream` are behind them. Not for
    /// classes with `xds_servers` or a `canary` of their own.
    Now "canary" => canary: Option<Spanned<Canary>>;
    /// Which clients share a view, that is, an upstream stream and its resources. The first rule that matches a client counts. Clients that
    /// match no rule share one view, for which the control plane sees the relay's own node.
    Next "classes" => classes: Vec<Spanned<Class>>;
    /// What clients may have. The first rule that matches decides; if none matches, the answer is no. Without rules everything is allowed but
    /// secrets. What is left out is no condition; each list may also be one text. In all patterns `*` stands for any text, slashes included.
    Now "rules" => rules: Option<Spanned<Vec<Spanned<AccessRule>>>>;
    /// Secrets (SDS): by_rule serves those whose type a rule names; allow serves them like all else. This is not a rule: alone it denies
    /// nothing.
    Now "secrets" => secrets: bool as Secrets = false;
    /// Limits for one peer or view. A peer that exceeds one is refused, with the name of the limit. 0 = off.
    Next "limits" => limits: Limits;
    /// Timeouts and intervals. 0 = off.
    Next "timers" => timers: Timers;
    /// Which removals are held, so that nothing disappears by accident: on, off, or what is different from on. Files are not guarded, and neither
    /// is what another relay says: it has held it already. A class can have its own `guard`; what it leaves out is as here.
    Now "guard" => guard: Option<Guard>;
    /// Delta responses are split so that none exceeds this many bytes.
    Now "chunk" => chunk: usize as Size = 2 * MIB;
    /// Whether the relay serves the v2 methods. v2 and v3 types are never converted into each other.
    Restart "transport_v2" => transport_v2: bool = true;
    /// Whether a client may connect without a node.
    Next "anonymous" => anonymous: bool = false;
    /// Types that the relay does not know or should treat differently.
    Restart "types" => types: Vec<Type>;
    /// The descriptors of your own types, for JSON and YAML: files with a FileDescriptorSet, made with `protoc --include_imports
    /// --descriptor_set_out=FILE` or `buf build -o FILE`. The types of Envoy's API are built in. Default: none.
    Restart "descriptors" => descriptors: Vec<Scalar>, like "[ /etc/distributary/acme.binpb ]";
    /// Saves the known resources on disk, or asks other relays for theirs, so that the relay can serve them after a restart without its control
    /// planes. By default it does neither. There is one file for each view, which only its owner can read. Write `dir`, `from` or both.
    Restart "snapshot" => snapshot: Option<Spanned<Snapshot>>;
    /// How to treat an unknown field in a file of resources: error (nothing in the file counts) or warning (the field is skipped).
    Restart "unknown_fields" => lenient_files: bool as UnknownFields = false;
    /// What the relay writes about itself.
    Now "logging" => logging: Logging;
});

section!(pub(super) struct Logging {
    /// How much is logged: error, warn, info, debug, trace (not in optimised builds), off, or levels by target, such as
    /// info,distributary::upstream=debug.
    "level" => level: LogFilter = LogFilter::default();
});

section!(pub(super) struct Listener {
    /// ip:port, [v6]:port, unix:/path, or unix:@name for an abstract name of Linux, which has no file.
    "address" needs => address: Option<Scalar>, like "127.0.0.1:15010";
    /// Default: none. Not for unix:. Files that change are read again.
    Next "tls" => tls: Option<Spanned<ListenerTls>>;
    /// Balancers in front of it. Default: none. Not for unix:.
    Next "proxy_protocol" => proxy_protocol: Option<Spanned<ProxyProtocol>>;
    /// identity: each call needs a certificate, a token or, over unix:, a user; an address alone is none. Health checks need none. Default:
    /// nothing is required.
    Next "require" => requires_identity: bool as Require, like "";
    /// true: keys are sent without TLS (`secrets: allow`), because something else encrypts.
    "insecure_secrets" => insecure_secrets: bool = false;
    /// The mode of the file of unix:/path, such as 0660. Default: as the system creates files.
    "mode" => mode: Option<Scalar>, like "";
    /// The owner of that file, a name or a number.
    "owner" => owner: Option<Scalar>, like "";
    /// The group of that file, a name or a number.
    "group" => group: Option<Scalar>, like "";
});

section!(pub(super) struct ProxyProtocol {
    /// Networks of balancers: their connections begin with a PROXY header, and no others may.
    "from" needs => from: Option<Spanned<Vec<Scalar>>>, like "[10.0.0.0/8]";
});

section!(pub(super) struct ListenerTls {
    /// PEM: the relay's own certificate first, then those that sign it.
    "certificate" needs_unless_spiffe => certificate: Option<Scalar>, like "/etc/distributary/relay.pem";
    /// PEM: PKCS#8, SEC1 or RSA, without a password.
    "private_key" needs_unless_spiffe => private_key: Option<Scalar>, like "/etc/distributary/relay.key";
    /// Instead of these, and of `client_ca`: a SPIFFE Workload API, such as { socket: unix:///run/spire/agent/public/api.sock, hint: internal }.
    /// Default: none.
    "spiffe" => spiffe: Option<Spanned<Spiffe>>, like "";
    /// Others, for clients that ask for a name (SNI) in one of them. Default: none.
    "certificates" => certificates: Vec<CertificatePair>;
    /// The oldest version of TLS: 1.2 or 1.3.
    "minimum_tls_version" => minimum_tls_version: TlsVersion = TlsVersion::default();
    /// One of these must have signed the client's certificate. Default: none is needed.
    "client_ca" => client_ca: Option<Scalar>, like "/etc/distributary/clients.pem";
    /// PEM: lists of certificates that these have revoked. Default: none.
    "client_crl" => client_crl: Option<Scalar>, like "/etc/distributary/clients.crl";
});

section!(pub(super) struct Spiffe {
    /// Where the Workload API is. Default: what SPIFFE_ENDPOINT_SOCKET says.
    "socket" => socket: Option<Scalar>, like "unix:///run/spire/agent/public/api.sock";
    /// Which SVID is taken, by its hint. Default: the first.
    "hint" => hint: Option<Scalar>, like "internal", unless is_empty => "it is empty; remove it to take the first SVID";
});

section!(pub(super) struct CertificatePair {
    /// PEM: the certificate first, then those that sign it.
    "certificate" needs => certificate: Option<Scalar>, like "/etc/distributary/internal.pem";
    /// PEM: its key.
    "private_key" needs => private_key: Option<Scalar>, like "/etc/distributary/internal.key";
});

section!(pub(super) struct Issuer {
    /// What its tokens have in `iss`.
    "issuer" needs => issuer: Option<Scalar>, like "https://issuer.example.com";
    /// A token must have one of these in `aud`.
    "audiences" needs => audiences: Option<Spanned<Vec<Scalar>>>, like "[distributary]";
    /// Where it publishes its public keys (JWKS), over HTTPS. They are fetched every five minutes, and at once for an unknown key: at most twice
    /// a minute.
    "jwks_uri" => jwks_uri: Option<Scalar>, like "https://issuer.example.com/keys";
    /// Who must have signed the server's certificate. Default: the system's authorities.
    "ca_certificate_file" => ca_certificate_file: Option<Scalar>, like "/etc/distributary/ca.pem";
    /// The relay's own token, which is sent there. Default: none.
    "token_file" => token_file: Option<Scalar>, like "/var/run/secrets/tokens/xds";
    /// Instead of these: a file with the keys. It is read again when it has changed.
    "jwks_file" => jwks_file: Option<Scalar>, like "";
    /// How far its clock and this machine's may differ; at most 60s.
    "clock_skew" => clock_skew: Duration = Duration::from_secs(30), unless |skew: &Duration| *skew > Duration::from_secs(60) =>
        "it is too much; write at most 60s, and set the clocks";
});

section!(pub(super) struct Admin {
    /// As of a listener. Relays on other machines and people reach it only if it is not on loopback.
    "address" => address: Option<Scalar>, like "127.0.0.1:9901";
    /// As of a listener. Default: none.
    Next "tls" => tls: Option<Spanned<ListenerTls>>;
    /// Who may do what there; the first that matches decides. Default: none, and then whoever reaches the address may do everything.
    Now "rules" => rules: Option<Spanned<Vec<Spanned<AdminRule>>>>;
    /// Names in the Host header beside IP addresses and localhost. Default: none. Without TLS others are refused, except for probes and metrics:
    /// web pages invent such names.
    Now "hosts" => hosts: Option<Texts>, like "relay-admin.xds.svc";
});

section!(pub(super) struct Probes {
    /// As of a listener.
    "address" needs => address: Option<Scalar>, like "0.0.0.0:9902";
});

section!(pub(super) struct Source {
    /// Its name in `distributary status`, metrics and logs. Default: the first type.
    "name" => name: Option<Scalar>, like "endpoints";
    /// Short names, of v3 and v2; or full names.
    "types" needs => types: Option<Texts>, like "[eds, rtds]";
    /// Entries as in `upstream`, in order of priority.
    "xds_servers" needs => xds_servers: Option<Spanned<Vec<Spanned<XdsServer>>>>, like "[{ server_uri: \"discovery.example.com:18000\" }]";
    /// Whether to ask the next server as soon as one cannot be reached, even if nothing is missing.
    "fallback_on_reachability_only" => fallback_on_reachability_only: bool = false;
    /// One view for all classes, for which the servers see the relay's own node. Otherwise each class has its own.
    "shared" => shared: Option<Spanned<bool>>, like "false";
    /// Parts of the node that only these servers see; over the relay's own, and under what a class presents.
    "node" => node: Option<Spanned<NodeShape>>, like "{ id: eds-reader, metadata: { READS: endpoints } }";
});

section!(pub(super) struct Class {
    /// All must match; without `match`: every client. Keys are fields: id, cluster, locality.region, locality.zone, locality.sub_zone,
    /// user_agent_name, metadata.KEY (metadata.A.B for nested keys; quote a key with dots: metadata.LABELS."app.kubernetes.io/name"); and what the
    /// relay has checked: identity.claim, dns, gid, ip, jwt, spiffe, subject, uid and uri. All else is what the client says; a missing field is
    /// empty. In values `*` is any text, {tenant} a part that counts as a field; {{ and }} are braces.
    "match" => matching: BTreeMap<String, Scalar>,
        like "{ cluster: \"edge-*\", identity.spiffe: \"spiffe://example.org/ns/{tenant}/sa/*\" }";
    /// Fields. One view for each combination of their values.
    "key" => key: Vec<Scalar>, like "[cluster, locality.zone, tenant]";
    /// What the control plane sees: the relay's node, with the clients' values for the fields of `key`, and with these parts. Or `client`: the
    /// whole node of the client that opens the view, as long as the view exists; put `id` into `key` then.
    "node" => node: Either<WholeNode, ClassNodeParts>;
    /// Credentials for the servers of xds_servers, over TLS, instead of those in their entries. {field} must be in `key`; a client whose value
    /// cannot be a file name is refused (empty, `.`, `..`, with `/` or a control character). A client of the class gets everything that the control
    /// plane serves to these credentials, so decide by `identity` who belongs to it.
    "credentials" => credentials: Option<Spanned<ClassCredentials>>;
    /// Control planes for names without an authority, in place of those of `upstream`; entries as there.
    Now "xds_servers" => xds_servers: Option<Spanned<Vec<Spanned<XdsServer>>>>, like "[{ server_uri: \"https://cp-edge.example.com:18000\" }]";
    /// Other servers for a share of its clients; behind them, those of the class.
    Now "canary" => canary: Option<Spanned<Canary>>, like "{ share: 10%, xds_servers: [{ server_uri: \"https://cp-new.example.com:18000\" }] }";
    /// Which removals are held for it. What is left out is as for the relay.
    Now "guard" => guard: Option<Guard>, like "off";
});

section!(pub(super) struct Canary {
    /// How many clients, by the hash of the node id, so the same clients on all replicas. Up to two decimals.
    "share" needs => share: Option<u16> as Share, like "5%";
    /// Entries as in `upstream`, in order of priority.
    "xds_servers" needs => xds_servers: Option<Spanned<Vec<Spanned<XdsServer>>>>, like "[{ server_uri: \"cp-new.example.com:18000\" }]";
});

section!(pub(super) struct ClassCredentials {
    /// PEM: the certificate. Set it and its key, or neither.
    "certificate_file" => certificate_file: Option<Scalar>, like "\"/etc/distributary/tenants/{tenant}/cert.pem\"";
    /// PEM: its key.
    "private_key_file" => private_key_file: Option<Scalar>, like "\"/etc/distributary/tenants/{tenant}/key.pem\"";
    /// A token that is sent with every call.
    "jwt_token_file" => jwt_token_file: Option<Scalar>, like "\"/etc/distributary/tenants/{tenant}/token\"";
});

section!(pub(super) struct ClassNodeParts {
    /// Default: the client's id if `id` is in `key`, otherwise RELAY'S ID/cluster=edge-1/locality.zone=a/tenant=t. It must contain every field of
    /// `key` if the control plane stores resources by node id. {field} must be in `key`; {{ and }} are literal braces.
    "id" => id: Option<Scalar>, like "\"relay/{cluster}/{locality.zone}/{tenant}\"";
    /// Text with fields, as in `id`.
    "cluster" => cluster: Option<Scalar>, like "\"{cluster}\"";
    /// Metadata of the client that opens the view, including lists and structures; replaces the same keys of the relay's own node. Or `all`.
    "metadata" => metadata: Option<Either<AllMembers, Vec<Scalar>>>, like "[TENANT, \"LABELS.*\"]";
    /// `client`: the locality of that client. Default: the relay's.
    "locality" => locality: bool as Passed, like "client";
    /// `client`: name and version of that client. Default: none.
    "user_agent" => user_agent: bool as Passed, like "client";
});

section!(pub(super) struct AccessRule {
    /// Its name in logs and in `validate --explain`.
    "name" needs => name: Option<Scalar>, like "tenants", unless is_empty => "the name is empty; write one that log lines can show";
    /// Patterns of what the relay has checked. {ns} is some text without a slash.
    "identities" => identities: Option<Texts>,
        like "[\"spiffe://example.org/ns/{ns}/sa/*\", \"jwt:https://issuer.example.com#system:serviceaccount:{ns}:*\"]";
    /// What the client says of itself; {ns} as in the identity.
    "nodes" => nodes: RuleNodes;
    /// How it asks: sotw, delta, rest for polls and unary calls, or csds for questions about all.
    "dialects" => dialects: Option<Spanned<TextList<Way>>>, like "[sotw, delta]";
    /// Short names, of v3 and v2; or full names.
    "types" => types: Option<Texts>, like "[cds, eds, sds]";
    /// Resources that have one of these names, or one under `authorities`.
    "names" => names: Option<Texts>, like "[\"{ns}/*\", shared]";
    /// Resources whose names are under one of these authorities.
    "authorities" => authorities: Option<Texts>, like "[endpoints.example.com]";
    /// What becomes of what matches: allow or deny.
    "action" => allow: bool as Action = true;
    /// true: these are relays below this one, whose marks are passed on (loops).
    "relay" => relay: Option<Spanned<bool>>, like "false";
});

section!(pub(super) struct RuleNodes {
    /// The node's id.
    "id" => id: Option<Texts>, like "[\"*.{ns}\"]";
    /// The node's cluster.
    "cluster" => cluster: Option<Texts>, like "[\"{ns}-*\"]";
    /// Values of members of the node's metadata, by their paths.
    "metadata" => metadata: BTreeMap<String, Texts>, like "{ LABELS.team: [\"{ns}\"] }";
});

section!(pub(super) struct AdminRule {
    /// Patterns of who asks, as in the rules for clients. Default: everybody.
    "identities" => identities: Option<Texts>, like "ip:127.0.0.1";
    /// read: GET; change: POST; secrets: keys and certificates in /snapshots, which nobody has without a rule; an empty list: nothing. Probes are
    /// always allowed.
    "allow" needs => allow: Option<TextList<AdminAction>>, like "[read, change]";
});

section!(pub(super) struct Type {
    /// Its URL, which is type.googleapis.com/ and the message's full name.
    "type_url" needs => type_url: Option<Scalar>, like "type.googleapis.com/acme.config.v1.Policy";
    /// The number of the body's field with the resource's name; 0 if only the wrapper has a name. Usual: 1.
    "name_field" => name_field: Option<Scalar>, like "1";
    /// Whether an empty first request means everything. Usual: false.
    "wildcard" => wildcard: Option<bool>, like "false";
    /// Whether a state-of-the-world response lists everything. Usual: false.
    "full_state" => full_state: Option<bool>, like "false";
});

section!(pub(super) struct Snapshot {
    /// The directory, which is created if it is missing. Default: nothing is written.
    "dir" => dir: Option<Scalar>, like "/var/lib/distributary";
    /// How often changes are written, besides at a shutdown. Not 0.
    "interval" => interval: Duration = Duration::from_secs(30),
        unless Duration::is_zero => "0 would write without end; leave `snapshot` out to write nothing";
    /// Whether keys and certificates (SDS) are written, and asked for over TLS, too.
    "include_secrets" => include_secrets: bool = false;
    /// Admin addresses of relays with the same configuration, which are asked once, at a start without a usable file in `dir`; a name stands for
    /// all of its addresses. Default: nobody is asked.
    "from" => from: Option<Texts>, like "https://relay-headless.xds.svc:9901";
    /// TLS towards those with https://. Default: what the system trusts, and no certificate.
    "tls" => tls: Option<Spanned<TlsConfig>>;
});

/// Whether secrets are served without a rule that names them.
pub(super) enum Secrets {}
/// Whether unknown fields are skipped.
pub(super) enum UnknownFields {}
/// Whether calls need an identity.
pub(super) enum Require {}
/// Whether a rule allows.
pub(super) enum Action {}
/// Whether a part of the client's node is passed on.
pub(super) enum Passed {}
/// All of the client's node is passed on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WholeNode;
/// All of the client's metadata is passed on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AllMembers;

words!(Secrets as bool, "is not a way to treat secrets":
    "allow" => true,
    "by_rule" => false,
);
words!(UnknownFields as bool, "is not a way to treat a field":
    "error" => false,
    "warning" => true,
);
words!(Require as bool, "cannot be required":
    "identity" => true,
);
words!(Action as bool, "is not an action":
    "allow" => true,
    "deny" => false,
);
words!(Passed as bool, "cannot be passed on":
    "client" => true,
);
words!(WholeNode as Self, "is not a node" or "the parts of one":
    "client" => Self,
);
words!(AllMembers as Self, "is not a list" or "[KEY, \"KEY.*\"]":
    "all" => Self,
);
words!(Way as Self, "is not a dialect":
    "sotw" => Self::Sotw,
    "delta" => Self::Delta,
    "rest" => Self::Rest,
    "csds" => Self::Csds,
);
words!(TlsVersion as Self, "is not a version of TLS that the relay speaks":
    "1.2" => Self::V1_2,
    "1.3" => Self::V1_3,
);
words!(AdminAction as Self, "is no action on the admin address":
    "read" => Self::Read,
    "change" => Self::Change,
    "secrets" => Self::Secrets,
);

/// Whether nothing stands where a text should be.
fn is_empty(text: &Option<Scalar>) -> bool {
    text.as_ref().is_some_and(|text| text.value.is_empty())
}
