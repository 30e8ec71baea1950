//! Distributary, an xDS aggregating relay.
//!
//! Thousands of Envoys and gRPC clients open their xDS sessions to it; it asks a few control planes once for the
//! union of what they want, keeps the answers, and gives every client its own correct protocol session.
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
//! Upwards flows interest (who wants which names), downwards flow changes. Every arrow is a latest value and a wake-up:
//! nothing is queued for a client, a slow one gets a bigger next difference.
//!
//! # Glossary
//!
//! **Who talks to whom.** A *client* is an Envoy, a gRPC client or another relay; a *control plane* (in the code: a *server*, as in
//! `xds_servers`) is what the relay itself asks. *Downstream* is towards clients, *upstream* towards control planes.
//!
//! | Word | What it is | Where |
//! |---|---|---|
//! | class | the clients that are served the same, because a rule of the configuration says so | [`xds::Class`] |
//! | view | what one server says to one class of clients | [`cache::View`] |
//! | cut | all that a view knows at one instant; immutable | [`xds::Cut`] |
//! | slot | one type in a cut | [`xds::Slot`] |
//! | half | a slot has two: what the wildcard covers, and what was asked for by name | [`xds::State`] |
//! | collection | all resources of one directory: an `xdstp:` name that ends in `/*`; others call it a glob | [`xds::Name`] |
//! | variant | one of several contents of a name, each for clients with other dynamic parameters | [`xds::Constraints`] |
//! | sight | the cuts that one session reads: one for each authority | [`xds::Sight`] |
//! | leg | one of the two streams of a view: the wildcard of a type and its names do not share one | [`protocol::Leg`] |
//! | gate, ticket | how many streams to a server may be opened at a time, and the place in the queue | [`protocol::Gate`] |
//! | session | one discovery stream of one client, in its connection's task | [`downstream`] |
//! | seat | a session's place at a view; dropping it ends all that the session wants there | [`cache::Seat`] |
//! | lease | that somebody wants a name, or the wildcard, of a view | [`cache`] |
//! | linger | how long a lease that nobody has any more is kept | `timers.linger` |
//! | bell, ring | how a session is told to look at its view again; it rings once until the session looks | [`cache::Bell`] |
//! | scopes | all views, by class and server | [`cache::Scopes`] |
//! | library | answers that many sessions share, each computed once | [`cache::Library`] |
//! | owed | what a client must be sent whatever it holds, because it asked for it | [`protocol::Server`] |
//! | dirty | what changed since it was last compared with what the client holds | [`xds::Dirty`] |
//! | flight | a response that was sent, until the client acknowledges or rejects it | [`protocol::Server`] |
//! | laggard | a client that does not read while its view changes; over a limit only hashes are kept for it | [`cache::View`] |
//! | fallback | which of an authority's servers a session reads | [`protocol::Fallback`] |
//! | rope | a message of a few private bytes and pieces that many clients share | [`wire::Rope`] |
//! | cork | what gathers the small writes of a turn into one | [`wire::Cork`] |
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
//! - [`cache`]: what control planes said, who waits for it, and which clients share it.
//! - [`tls`]: certificates and keys.
//! - [`wire`]: shared bytes on their way into sockets.
//! - [`upstream`]: control planes: connections, streams, polls, files.
//! - [`downstream`]: clients: sessions and services.
//! - [`snapshot`]: what is known, on disk, for the next start.
//! - [`config`], [`telemetry`], [`shutdown`], [`admin`]: what operators choose and see.
//! - [`get`]: one question to a server, for people.
//! - [`app`]: the only place where all of this is connected; [`cli`] runs it.
//!
//! `upstream` and `downstream` do not know each other; a test keeps the order of the parts.
//!
//! # Five ideas
//!
//! 1. **No state is ever queued.** Every arrow is a latest value plus a wake-up. A slow reader gets a bigger next
//!    difference, never a longer queue.
//! 2. **What a client holds is explicit and cheap.** A view publishes immutable, structurally shared maps. For a
//!    wildcard a session keeps a pointer to the map that it last brought the client to, for names a small table. First
//!    fetch, update, catching up, reconnecting with known versions: all are one operation, *the difference between what
//!    this client holds and what is current, restricted to what it wants* (`xds::Difference`).
//! 3. **A resource is encoded once.** A delta `resources` entry ends with the very bytes that are the SotW entry
//!    (`xds::Resource`), so one allocation serves both dialects; a response is those bytes plus about a hundred private
//!    ones. Answers that are the same for all clients at the same point are joined once and shared.
//! 4. **The protocol is pure.** Sessions and upstream streams are state machines without I/O, clock or randomness, so
//!    that a seeded simulation runs millions of steps of a whole fleet, with loss, restarts and slow clients, against a
//!    naive model.
//! 5. **A view is what one server says to one class of clients.** Knowledge is three-valued: present, absent, unknown.
//!    Nothing is removed, and no full state sent, out of ignorance. Views never mix; failing over and returning is
//!    reading another view (`xds::Sight`), and what the client is then sent is the difference by content, so that
//!    nothing is sent where nothing differs.
//!
//! # Invariants
//!
//! - For every name that a client wants, it holds exactly what its session says it holds, unless the name is owed,
//!   parked after a rejection, or in the response on its way (`protocol::server::subscription`).
//! - A view has one writer. A reader sees one cut, never parts of two. The new cut is visible before anybody is rung; a
//!   bell is cleared before the cut is read.
//! - A set of names that several sessions have is never changed: who changes its mind copies it first. Who has not
//!   changed it for a second or two is given the equal set that is there already (`cache::interest`), and misses no ring on
//!   the way.
//! - A session reads one view for each authority, and one for names of old style (`downstream::Seats`). It watches the
//!   servers above the one that it reads, and below it only while it may have to move. Moving by itself deletes
//!   nothing: what the new view does not know yet stays as it is.
//! - No lock is held across an await or while waking. No queue grows with what a peer does.
//! - Nothing that two streams can see is ever changed.
//! - Every wait of one type for another has a bound, and an expired bound is counted.
//!
//! # Where it differs from what one might expect
//!
//! - **Failover is each session's own affair.** While a server fails, its view goes on being served. Only a session
//!   that wants something of which that view knows nothing goes to the next server, asks there for everything that it
//!   wants of the authority, and is bound to it once the other view holds all of that (or after `timers.unanswered`; at
//!   once if it was sent nothing yet). With `fallback_on_reachability_only` every session of the authority goes. It
//!   returns when the better server answers again and holds everything, or has had that time. There is no state of a
//!   whole scope to flip: which views exist follows from who sits there.
//! - **One view for all authorities of a server.** Equal servers in several lists are one server; names of several
//!   authorities share its view and stream, and a session takes from a view only the names of the authorities that it
//!   reads there. Names under a configured authority (`xdstp:`) use the view of the default class whatever the client's
//!   class, so they are shared by all; under any other authority they are read in the client's own class, with its
//!   names of old style.
//! - **A lower server's stream outlives its use by the linger time**, so that a server that flaps does not open and
//!   close others.
//! - **Two upstream streams where a type has both.** One subscription cannot tell what a wildcard covers from what was
//!   asked for besides. So of each type, whichever comes first, the wildcard or names, lives on the main stream of a
//!   view, and the other on a second stream to the same server.
//! - **When is a wildcard complete?** A delta answer may come in several messages, and nothing says which is the last.
//!   It counts as complete after a moment of quiet (`wildcard_quiet`, at least four round trips), or at once when
//!   another Distributary marks the last chunk in its nonce. What a server has shown of a type counts for its next
//!   views: one that said all at once need be quiet for 30 ms, one that paused for that and twice its longest pause.
//!   Until then delta clients are served as it streams in, and SotW clients wait.
//! - **Variants of a name are part of the state** (dynamic parameters, TP2), beside what is for everybody, however they
//!   were asked for: by name, wildcard or collection, restored or from a file. A client that says nothing of itself
//!   gets what is for everybody. For one that does, a wildcard's state is seen with its choices in place
//!   (`xds::state::Chosen`), which all share for whom the same variants are; from one state to the next that costs what
//!   changed. Names without variants, and clients that say nothing, pay nothing for it.
//! - **A relay behind a relay gets all variants of a name at once**, because it says `distributary.all-variants` in its
//!   node: to the upper relay they are one thing with one version (`Resource::bundle`), so that they come, change and
//!   go together, and the lower one takes what is said of a name for all there is of it. An older relay above says what
//!   is for everybody, one below gets that.
//! - **No version that the relay declares can mean one of several variants**, as `initial_resource_versions` has only
//!   names. So on a new stream, or after a restart from a snapshot, names that have variants are not declared, and the
//!   server says all of them anew. What it does not say goes: under a wildcard or a collection with the end of its
//!   answer, of a name that was asked for by itself with the first response that says anything of that name. SotW has
//!   no way to take a variant away: a response that says anything of a name says all of it.
//! - **One response on its way per type**, so that a slow client is coalesced and not queued for; but in delta, what a
//!   client itself asks for is answered even while it withholds an acknowledgement, as Envoy does while clusters warm.
//! - **A laggard costs its hashes, not its stream.** What old content clients that do not read hold back is counted per
//!   view (`pinned_bytes_per_view`). Over it those that lag longest, as many as it takes, exchange what they hold for
//!   names and hashes, of which there is one copy for all that hold the same; when they read again they get what
//!   differs and nothing else. Only where the hashes alone are over the limit, or after a minute in which that did not
//!   help, do the streams end that have lagged longest; those clients come back with the versions that they hold. The
//!   price: a SotW wildcard client that was exchanged, and gets additions and removals of clusters or listeners at
//!   once, gets them in one full state; what goes has no body left to be listed once more until its routes are gone.
//!   Removals alone still come last, and names asked for one by one keep their bodies.
//! - **Delta first, SotW where it has no answer.** A stream that ends before its first response is tried in the other
//!   dialect at once. After UNIMPLEMENTED, UNKNOWN, INTERNAL, INVALID_ARGUMENT or OK the dialect that answers is kept
//!   for the life of the process; after anything that may pass (UNAVAILABLE, a reset, a lost connection) delta is tried
//!   first again. The log, `/clusters` and `upstream_streams` say which it is and why. Envoy Gateway 1.9 counts the
//!   streams of both dialects in one table and panics when streams of both are open and one ends: let all who speak to
//!   it speak one dialect (`transport`, and the bootstraps of Envoys beside the relay).
//! - **Streams come back together.** Pauses between attempts, and after polls that fail, grow from 1 s to
//!   `timers.reconnect_max`, and are 5 s at the most while a client waits for an answer that nobody has. When one
//!   stream of a server is answered, the others follow at once, at most sixteen in their opening at a time. Where a
//!   server answers RESOURCE_EXHAUSTED, one is opened at a time after a pause; the views that it serves go on.
//!   `/clusters` says how many streams a server refuses, with RESOURCE_EXHAUSTED or another code of its own
//!   (`refused`), and calls it unreachable only when it serves no others.
//! - **A type that ends streams has one of its own.** When two streams in a row end with an error (not UNAVAILABLE)
//!   within a second after a type was asked for and before it was answered, that type is asked for apart from the
//!   others, with pauses of its own; after an hour without trouble it joins them again. Whoever asked for a name of it
//!   gets an error (`resource_errors`) with the control plane's words; the log and `/clusters` (`suspected`) name the
//!   type.
//! - **EDS follows CDS.** After a cluster is added or changed its endpoints are sent again, even unchanged: Envoy waits
//!   for them.
//! - **HTTP/2 pings to control planes are rare** (five minutes), because gRPC servers throw out who asks more often; a
//!   peer that vanished is noticed by TCP keepalive (`timers.keepalive`).

pub mod admin;
pub mod app;
pub mod cache;
pub mod cli;
pub mod clock;
pub mod config;
pub mod downstream;
pub mod get;
pub mod json;
pub mod proto;
pub mod protocol;
pub mod shutdown;
pub mod snapshot;
pub mod telemetry;
pub mod tls;
pub mod upstream;
pub mod wire;
pub mod xds;
