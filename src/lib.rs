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
//! | class | the clients that share a view, by a rule of the configuration | [`xds::Class`] |
//! | view | what one server says to one class of clients | [`cache::View`] |
//! | cut | all that a view knows at one instant; immutable | [`xds::Cut`] |
//! | slot | one type in a cut | [`xds::Slot`] |
//! | half | a slot has two: what the wildcard covers, and what was asked for by name | [`xds::State`] |
//! | collection | all resources of one directory: an `xdstp:` name that ends in `/*`; others call it a glob | [`xds::Name`] |
//! | sight | the cuts that one session reads: one for each authority | [`xds::Sight`] |
//! | leg | one of the two streams of a view: the wildcard of a type and its names do not share one | [`protocol::Leg`] |
//! | gate, ticket | how many streams to a server may be opened at a time, and the place in the queue | [`protocol::Gate`] |
//! | session | one discovery stream of one client, in its connection's task | [`downstream`] |
//! | seat | a session's place at a view; dropping it ends all that the session wants there | [`cache::Seat`] |
//! | lease | the wish of at least one session for a name, or the wildcard, of a view | [`cache`] |
//! | linger | how long a lease without sessions is kept | `timers.linger` |
//! | bell, ring | how a session is told to look at its view again; it rings once until the session looks | [`cache::Bell`] |
//! | scopes | all views, by class and server | [`cache::Scopes`] |
//! | library | answers that many sessions share, each computed once | [`cache::Library`] |
//! | owed | what a client must be sent even if it holds it already, because it asked for it | [`protocol::Server`] |
//! | dirty | what changed since it was last compared with what the client holds | [`xds::Dirty`] |
//! | flight | a response that was sent, until the client acknowledges or rejects it | [`protocol::Server`] |
//! | laggard | a client that does not read while its view changes; over a limit only hashes are kept for it | [`cache::View`] |
//! | hold | a removal that is not passed on: something refers to what is removed, or too much is lost at once | [`protocol::Guard`] |
//! | fallback | which of an authority's servers a session reads | [`protocol::Fallback`] |
//! | rope | a message of a few private bytes and pieces that many clients share | [`wire::Rope`] |
//! | cork | gathers the small writes of a turn into one | [`wire::Cork`] |
//! | turn | one poll of a connection's task | [`downstream`] |
//!
//! # The parts
//!
//! Each knows only those above it:
//!
//! - [`proto`]: the wire messages that the relay itself reads and writes.
//! - [`xds`]: the vocabulary, immutable values: types, names, resources, states, differences.
//! - [`json`]: resources as people and polling clients write them.
//! - [`clock`]: the relay's own time, which stands still while the process does.
//! - [`protocol`]: what is said and when, as pure machines without I/O, clock or randomness.
//! - [`inquiry`]: what operators ask the client streams, and what these answer.
//! - [`cache`]: what control planes said, who waits for it, and which clients share it.
//! - [`census`]: what all client streams say when they are asked.
//! - [`identity`], [`token`]: who a client is, as far as it was checked.
//! - [`watch`]: when to look at files again.
//! - [`tls`]: certificates and keys, as their files are now.
//! - [`wire`]: shared bytes on their way into sockets.
//! - [`upstream`]: control planes: connections, streams, polls, files.
//! - [`downstream`]: clients: sessions and services.
//! - [`snapshot`]: what is known, on disk, for the next start.
//! - [`config`], [`telemetry`], [`shutdown`], [`admin`]: what operators choose and see.
//! - [`otlp`]: metrics and traces, sent to an OpenTelemetry collector.
//! - [`supervisor`]: what systemd is told.
//! - [`get`]: one question to a server, for people.
//! - [`app`]: the only place where all of this is connected; [`cli`] runs it.
//!
//! `upstream` and `downstream` do not know each other; a test keeps the order of the parts.
//!
//! # Five ideas
//!
//! 1. **No state is ever queued.** Every arrow is the latest value and a wake-up. A slow reader gets a larger next
//!    difference, never a longer queue.
//! 2. **What a client holds is explicit and cheap.** A view publishes immutable maps that share their structure. For a
//!    wildcard, a session keeps a pointer to the map that its client was last brought to; for names, a small table. The
//!    first fetch, an update, catching up and a reconnect with known versions are one operation: *the difference between
//!    what this client holds and what is current, restricted to what it wants* (`xds::Difference`).
//! 3. **A resource is encoded once.** A delta `resources` entry ends with the very bytes that are the SotW entry
//!    (`xds::Resource`), so one allocation serves both dialects. A response is those bytes plus about a hundred private
//!    ones. Answers that are equal for all clients at the same point are joined once and shared.
//! 4. **The protocol is pure.** Sessions and upstream streams are state machines without I/O, clock or randomness. A
//!    seeded simulation runs millions of steps of a whole fleet, with loss, restarts and slow clients, against a naive
//!    model.
//! 5. **A view is what one server says to one class of clients.** A resource is present, absent or unknown; the relay
//!    never removes a resource, and never sends a full state, because something is unknown. Views never mix. Failing over
//!    and returning mean that a session reads another view (`xds::Sight`); its client is sent the difference by content,
//!    so nothing is sent where the contents are equal.
//!
//! # Invariants
//!
//! - For every name that a client wants, the client holds exactly what its session has noted, unless the name is owed,
//!   held back after a rejection, or in the response on its way (`protocol::server::subscription`).
//! - A view has one writer. A reader sees one cut, never parts of two. A new cut is visible before any bell rings; a
//!   session clears its bell before it reads the cut.
//! - A set of names that several sessions share never changes. A session that changes its names copies the set first. If
//!   it then changes nothing for a second or two, it is given the equal set that exists already (`cache::interest`), and
//!   misses no ring meanwhile.
//! - A session reads one view for each authority, and one for old-style names (`downstream::Seats`). It watches the
//!   servers above the one that it reads, and servers below it only while it may have to move. A move alone removes
//!   nothing from the client: what the new view does not know yet stays.
//! - No lock is held across an await or while waking. No queue grows with what a peer does.
//! - Nothing that two streams can see is ever changed.
//! - Every wait of one type for another has a bound, and an expired bound is counted.
//!
//! # Where it differs from what one might expect
//!
//! - **Each session fails over by itself.** While a server fails, its view is still served. Only a session that wants
//!   something that this view does not know goes to the next server. It asks there for everything that it wants of the
//!   authority, and is bound to that server once the view there has all of it (or after `timers.unanswered`; at once if
//!   the client was sent nothing yet). With `fallback_on_reachability_only`, every session of the authority goes. A
//!   session returns when the better server answers again and has everything, or has had that time. No state of a
//!   whole scope has to flip: which views exist follows from which sessions read them.
//! - **All authorities of a server share one view.** Equal servers in several lists are one server; names of several
//!   authorities share its view and stream. A session takes from a view only the names of the authorities that it reads
//!   there. Names under a configured authority (`xdstp:`) use the view of the default class, so all clients share them.
//!   Under any other authority they are read in the client's own class, like its old-style names.
//! - **The stream to a lower server stays open for the linger time after its last use**, so that a flapping server does
//!   not open and close others.
//! - **A type can have two upstream streams.** One subscription cannot tell which resources the wildcard covers and which
//!   were requested by name. So the first of the two (wildcard or names) uses the main stream of a view, and the other
//!   uses a second stream to the same server.
//! - **When is a wildcard complete?** A delta answer may come in several messages, and none says that it is the last. The
//!   answer counts as complete after a quiet time (`wildcard_quiet`, at least four round trips), or at once when another
//!   Distributary marks the last chunk in its nonce. The quiet time is learned per server and type: 30 ms after an answer
//!   in one piece; after an answer with pauses, 30 ms and twice the longest pause. Until then delta clients are served
//!   chunk by chunk, and SotW clients wait.
//! - **One response per type is on its way**, so that a slow client's changes are merged, not queued. In delta, however,
//!   what a client itself requests is answered even while it withholds an acknowledgement; Envoy does that while its
//!   clusters warm.
//! - **A slow client loses bodies in the relay's memory, not its stream.** The relay counts, per view, the old content
//!   that it keeps for clients that do not read (`pinned_bytes_per_view`). Over the limit, the clients that lag longest
//!   are kept as names and hashes, with one copy for all that hold the same. When they read again they get the
//!   difference and nothing else. Only if the hashes alone exceed the limit, or if a minute of this did not help, the
//!   streams that lag longest end; those clients reconnect with the versions that they hold. The price: a SotW wildcard
//!   client without bodies gets simultaneous additions and removals of clusters or listeners in one full state, because
//!   a removed resource cannot be listed once more until its routes are gone. Removals alone still come last, and names
//!   requested one by one keep their bodies.
//! - **Delta first, SotW if there is no answer.** If a stream ends before its first response, the other dialect is tried
//!   at once. After UNIMPLEMENTED, UNKNOWN, INTERNAL, INVALID_ARGUMENT or OK, the dialect that answers is kept for the
//!   life of the process; after an error that may pass (UNAVAILABLE, a reset, a lost connection), delta is tried first
//!   again. The log, `/clusters` and `upstream_streams` show the dialect and the reason. Envoy Gateway 1.9 counts the
//!   streams of both dialects in one table and panics when streams of both are open and one ends: let all its clients
//!   use one dialect (`transport`, and the bootstraps of Envoys beside the relay).
//! - **Streams come back together.** Pauses between attempts, and after failed polls, grow from 1 s to
//!   `timers.reconnect_max`; they are at most 5 s while a client waits for an answer that no server has given. When a
//!   server answers one stream, the others follow at once, at most sixteen at a time. If a server answers
//!   RESOURCE_EXHAUSTED, the relay opens one stream at a time after a pause, and the views that the server does serve go
//!   on. `/clusters` counts the streams that a server refuses (`refused`), and calls it unreachable only if it serves
//!   no others.
//! - **A type that ends streams gets its own stream.** If two streams in a row end with an error (not UNAVAILABLE) within
//!   a second after a type was requested and before it was answered, that type moves to a stream of its own, with
//!   pauses of its own. After an hour without trouble it moves back. Clients that requested a name of it get an error
//!   (`resource_errors`) with the control plane's words; the log and `/clusters` (`suspected`) name the type.
//! - **Nothing disappears by accident.** A removal waits until routes are quiet, until nothing that is served refers to what is
//!   removed, and, if the first whole state of a stream lacks much of what was served, for a minute ([`protocol::Guard`]).
//!   Additions and changes never wait. What is held is what the view serves, so nothing on the way to a client knows of it.
//! - **EDS follows CDS.** After a cluster is added or changed, its endpoints are sent again, even if unchanged: Envoy
//!   waits for them.
//! - **HTTP/2 pings to control planes are rare** (every five minutes), because gRPC servers disconnect clients that ping
//!   more often; TCP keepalive (`timers.keepalive`) notices a peer that vanished.

pub use {cache, identity, inquiry, json, proto, protocol, xds};

pub mod admin;
pub mod app;
pub mod census;
pub mod cli;
pub mod clock;
pub mod config;
pub mod downstream;
pub mod get;
pub mod otlp;
pub mod shutdown;
pub mod snapshot;
pub mod supervisor;
pub mod telemetry;
pub mod tls;
pub mod token;
pub mod upstream;
pub mod watch;
pub mod wire;
