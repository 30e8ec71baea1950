// SPDX-License-Identifier: Apache-2.0
//! Distributary, an xDS aggregating relay.
//!
//! Thousands of Envoys and gRPC clients connect to it. It asks a few control planes once for the union of what the clients
//! want, keeps the answers, and speaks the protocol with each client separately.
//!
//! ```text
//!  control plane                                                                    Envoy, gRPC, ...
//!      | response                                                                       ^ response
//!      v                                                                                |
//!  upstream --> protocol::Client --Changes--> cache::View ==wake==> downstream --> protocol::Server
//!      ^             (pure)                        ^              session (cell)       (pure)
//!      +------- requests <-------- interest <------+------- leases <-------+
//! ```
//!
//! Interest (who wants which names) flows up, changes flow down. Every arrow is the latest value and a wake-up: nothing is
//! queued for a client, and a slow client gets a larger next difference.
//!
//! # Glossary
//!
//! **Who talks to whom.** A *client* is an Envoy, a gRPC client or another relay; a *control plane* (in the code: a *server*, as in
//! `xds_servers`) is what the relay itself asks. *Downstream* is towards clients, *upstream* towards control planes.
//!
//! | Word | What it is | Where |
//! |---|---|---|
//! | class | the clients that share a view, by a rule of the configuration | [`classes::Class`] |
//! | view | what one server says to one class of clients | [`cache::View`] |
//! | cut | all that a view knows at one instant; immutable | [`xds::Cut`] |
//! | slot | one type in a cut | [`xds::Slot`] |
//! | half | a slot has two: what the wildcard covers, and what was asked for by name | [`xds::State`] |
//! | collection | all resources of one directory: an `xdstp:` name that ends in `/*`; others call it a glob | [`xds::Name`] |
//! | source | control planes for some types, beside those for all else | [`config::TypeSource`] |
//! | owner | who is asked for a type and a name: an authority, a source, or the servers at the top | [`xds::Owners`] |
//! | sight | the cuts that one session reads: one for each owner | [`xds::Sight`] |
//! | leg | one of the two streams of a view: the wildcard of a type and its names do not share one | [`protocol::LegKind`] |
//! | gate, ticket | how many streams to a server may be opened at a time, and the place in the queue | [`protocol::OpenLimit`] |
//! | session | one discovery stream of one client, in its connection's task | [`downstream`] |
//! | seat | a session's place at a view; dropping it ends all that the session wants there | [`cache::Seat`] |
//! | lease | the wish of at least one session for a name, or the wildcard, of a view | [`cache`] |
//! | linger | how long a lease without sessions is kept | `timers.linger` |
//! | bell, ring | how a session is told to look at its view again; it rings once until the session looks | [`cache::Bell`] |
//! | scopes | all views, by class and server | [`cache::Scopes`] |
//! | library | answers that many sessions share, each computed once | [`cache::Library`] |
//! | ledger, lens, due | what a client was sent, what it should hold, and what differs | [`protocol::Server`] |
//! | flight | a response that was sent, until the client acknowledges or rejects it | [`protocol::Server`] |
//! | laggard | a client that does not read while its view changes; over a limit its stream ends | [`cache::View`] |
//! | hold | a removal that is not passed on: something refers to what is removed, or too much is lost at once | [`protocol::Holds`] |
//! | fallback | which of an owner's servers a session reads | [`protocol::Fallback`] |
//! | canary | the share of the clients of a class that reads other servers first | [`cache::Canary`] |
//! | rope | a message of a few private bytes and pieces that many clients share | [`wire::Rope`] |
//! | cork | gathers the small writes of a turn into one | [`wire::Cork`] |
//! | turn | one poll of a connection's task | [`downstream`] |
//!
//! # The parts
//!
//! Each knows only those above it. Those without I/O are crates of their own, in their folders, which build and are tested without the
//! rest: [`proto`], [`identity`], [`classes`], [`xds`], [`json`], [`protocol`], [`inquiry`], [`cache`].
//!
//! - [`proto`]: the wire messages that the relay itself reads and writes.
//! - [`classes`]: which clients share a view, and what a control plane sees of them.
//! - [`xds`]: the vocabulary, immutable values: types, names, resources, states, differences.
//! - [`json`]: resources as people and polling clients write them.
//! - [`clock`]: the relay's own time, which stands still while the process does.
//! - [`protocol`]: what is said and when, as pure machines without I/O, clock or randomness.
//! - [`inquiry`]: what operators ask the client streams, and what these answer.
//! - [`cache`]: what control planes said, who waits for it, and which clients share it.
//! - [`census`]: what all client streams say when they are asked.
//! - [`small_file`]: certificates, keys and tokens on disk, as bytes.
//! - [`identity`], [`token`]: who a client is, as far as it was checked.
//! - [`watch`]: when to look at files again.
//! - [`tls`]: certificates and keys, as their files are now.
//! - [`wire`]: shared bytes on their way into sockets.
//! - [`upstream`]: control planes: connections, streams, polls, files.
//! - [`downstream`]: clients: sessions and services.
//! - [`snapshot`]: what is known, on disk, for the next start.
//! - [`config`], [`telemetry`], [`shutdown`], [`admin`]: what operators choose and see.
//! - `answers`: what the admin address says, as the commands read it.
//! - [`otlp`]: metrics and traces, sent to an OpenTelemetry collector.
//! - [`supervisor`]: what systemd is told.
//! - [`get`]: one question to a server, for people.
//! - [`app`]: the only place where all of this is connected; [`cli`] runs it.
//!
//! `upstream` and `downstream` do not know each other; a test keeps the order of the parts.
//!
//! # Five ideas
//!
//! 1. **No state is ever queued.** Every arrow is the latest value and a wake-up.
//! 2. **What a client holds is explicit and cheap.** For a wildcard, a session keeps a pointer to the immutable map that its client was
//!    last brought to; for names, a small table. The first fetch, an update, catching up and a reconnect are one operation: *the
//!    difference between what this client was sent and what is current, restricted to what it wants*.
//! 3. **A resource is encoded once.** A delta `resources` entry ends with the very bytes that are the SotW entry ([`xds::Resource`]).
//!    Answers that are equal for all clients at the same point are joined once and shared.
//! 4. **The protocol is pure.** Sessions and upstream streams are state machines without I/O, clock or randomness, so a seeded
//!    simulation plays a whole fleet with loss, restarts and slow clients against a naive model.
//! 5. **A view is what one server says to one class of clients.** A resource is present, absent or unknown; because something is
//!    unknown, nothing is ever removed. Failing over means that a session reads another view ([`xds::Sight`]); its client is sent the
//!    difference by content.
//!
//! # Invariants
//!
//! - A view has one writer. A reader sees one cut, never parts of two. A new cut is visible before any bell rings; a session clears
//!   its bell before it reads the cut.
//! - A set of names that several sessions share never changes: a session that changes its names copies the set first.
//! - Nothing that two streams can see is ever changed. No lock is held across an await or while waking.
//! - No queue grows with what a peer does. Every wait of one type for another has a bound, and an expired bound is counted.
//!
//! `tests/RULES.md` has the rules of the protocol that all of this obeys.

pub use {cache, classes, identity, inquiry, json, proto, protocol, xds};

pub mod admin;
mod answers;
pub mod app;
pub mod census;
pub mod cli;
pub mod clock;
pub mod config;
pub mod downstream;
pub mod get;
pub mod otlp;
pub mod shutdown;
pub mod small_file;
pub mod snapshot;
pub mod supervisor;
pub mod telemetry;
pub mod tls;
pub mod token;
pub mod upstream;
pub mod watch;
pub mod wire;
