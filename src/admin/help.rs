// SPDX-License-Identifier: Apache-2.0
//! `/help`: all paths of the admin address, each in a line.
//!
//! Owns the text. Answers nothing.

pub(super) const HELP: &str = "\
/                  this list; for browsers, a page that shows it all
/ready             200 when clients can be served, 503 with the reason before, and while draining (also /healthz/ready)
/live              200 while the program runs (also /healthz)
/clusters          the state of every control plane, and why; ?format=json for programs
/clients           the client streams, those in trouble first; ?state=rejecting, older, lagging, waiting or current, ?node=ID, ?class=CLASS,
                   ?software=NAME and ?type=TYPE for some of them, ?sort=requests or request_bytes for those that send most, ?format=json for programs
/clients/ID        one in full; ID is its number, or node=ID for all streams of a node
/clients/ID/ready  200 once it has accepted all that it asked for; 503 says what it waits for
/resources         what the relay has of its control planes; ?type=TYPE, class=CLASS, name=NAME, state=STATE, sort=age or size,
                   limit=COUNT
/resources/NAME    one in full, how many clients have it, or not, and how fast they accepted it
/snapshots         all of it for a relay that starts, in the form of snapshots; ?secrets=true with keys and certificates
/views             how much of it there is for each class of clients, with digests, to compare replicas; ?limit=COUNT
/config_dump       the configuration and all resources in Envoy's form; ?resource=FIELD, ?mask=FIELDS, ?name_regex=REGEX, ?include_eds
/nacks             what clients have rejected, with their words, and since when
/holds             removals that are not passed on, and why; POST /holds/extend, /holds/release: ?target=ID or TYPE/NAME, reason=TEXT, for=TIME
/v3/discovery:client_status  POST: CSDS as JSON; over gRPC, envoy.service.status.v3.ClientStatusDiscoveryService, with reflection
/changes           what has changed last, and how many clients have accepted it; ?limit=COUNT
/history           the counts of the last hour, in memory only
/events            what changes, as server-sent events
/certs             the certificates in use, with their days until they expire, as Envoy shows them
/server_info       version, state, uptime, node and options; /memory: the memory of the process; both as Envoy shows them
/listeners         where clients connect; ?format=json for programs
/metrics           metrics for Prometheus (also /stats/prometheus)
/stats             the same as lines `name: value`; ?filter=REGEX&usedonly for some of them, ?format=json or prometheus
/logging           POST: what each part logs; ?level=LEVEL, ?PART=LEVEL or ?paths=PART:LEVEL,PART:LEVEL changes it
/drain_listeners   POST: disconnects clients one by one; ?graceful: after /ready has been 503 for a while; a signal ends the relay
/healthcheck/fail  POST: /ready is 503; clients are still served
/healthcheck/ok    POST: undoes /healthcheck/fail
/reload            POST: reads the configuration again
/validate          POST, with a configuration as the body: what it would change if it were the relay's; ?name=NAME: what problems begin with
/help              this list
";
