// SPDX-License-Identifier: Apache-2.0
//! One connection and the clients that share it, in one task: a socket, HTTP/2, and the clients' machines. It reads into a buffer
//! of the thread, so an idle connection has none. The clients check what arrives.

use std::cell::RefCell;
use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::client::TlsStream;

use crate::fleet::client::profile::Profile;
use crate::fleet::client::{Client, Outcome, Output};
use crate::fleet::presence::Presence;
use crate::fleet::violation::Violation;
use crate::measure::loss::Failure;
use crate::measure::now;
use crate::measure::tally::{Feed, Tally};
use crate::wire::http2::{Call, Event, Http2};
use crate::wire::place::Target;

/// An open connection.
pub(crate) struct Connection {
    io: Io,
    http2: Http2,
    call: Call,
    /// The client and the lane of each stream, in the order in which they were opened.
    streams: Vec<(usize, usize)>,
    written: usize,
    shared: Rc<Shared>,
    presence: Rc<Presence>,
}

/// What the connections of a thread share.
pub(crate) struct Shared {
    pub(crate) scratch: RefCell<Vec<u8>>,
    pub(crate) feed: Feed,
}

/// A socket, or TLS over one.
pub(crate) enum Io {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// The index of a client, and the violation that it saw.
pub(crate) type Fault = (usize, Violation);

/// The number of connections from one address of this machine: a pair of addresses has a limited number of ports.
const CONNECTIONS_PER_ADDRESS: u32 = 8000;
/// The receive buffer of a client that does not read.
const RECEIVED_BYTES_MIN: u32 = 32 * 1024;
const SCRATCH_BYTES: usize = 256 * 1024;
/// How many bytes a connection reads before others have their turn.
const TURN_BYTES: usize = SCRATCH_BYTES;

impl Shared {
    pub(crate) fn new(feed: Feed) -> Rc<Self> {
        Rc::new(Self {
            scratch: RefCell::new(vec![0; SCRATCH_BYTES]),
            feed,
        })
    }
}

impl Connection {
    /// Opens connection number `number` to the target, for clients with this profile; it shows who client `client` is. If they stop reading, the kernel's buffer is
    /// small, so that it does not read for them.
    pub(crate) async fn open(
        target: &Target,
        number: u32,
        client: u32,
        profile: &Profile,
        shared: Rc<Shared>,
        presence: Rc<Presence>,
    ) -> Result<Self, Violation> {
        let headers = profile.identity.headers(client);
        let headers = headers.map_err(|error| Violation::Connection(Failure::Other, format!("{error:#}")))?;
        let stops = profile.behaviour.stalls;
        let socket = connect(target.server, number, stops.then_some(RECEIVED_BYTES_MIN)).await?;
        socket.set_nodelay(true)?;
        let io = match &target.tls {
            None => Io::Plain(socket),
            Some(secure) => Io::Tls(Box::new(secure.connect(client, socket).await?)),
        };
        Ok(Self {
            io,
            http2: Http2::new(),
            call: Call {
                authority: Arc::clone(&target.authority),
                secure: target.tls.is_some(),
                headers,
            },
            streams: Vec::new(),
            written: 0,
            shared,
            presence,
        })
    }

    /// Asks the server whether it is there.
    pub(crate) fn ping(&mut self) {
        self.http2.ping();
    }

    /// Whether the server has said anything.
    pub(crate) const fn is_greeted(&self) -> bool {
        self.http2.is_greeted()
    }

    /// Reads and writes until a client's deadline changes or something ends. `answered` is called with what arrived.
    pub(crate) async fn turn(
        &mut self,
        clients: &[Rc<RefCell<Client>>],
        answered: &mut impl FnMut(&mut Client, Outcome, &mut Tally),
    ) -> Result<(), Fault> {
        let deadline = deadline(clients);
        poll_fn(|context| self.poll(context, clients, deadline, answered)).await
    }

    fn poll(
        &mut self,
        context: &mut Context<'_>,
        clients: &[Rc<RefCell<Client>>],
        before: Option<Instant>,
        answered: &mut impl FnMut(&mut Client, Outcome, &mut Tally),
    ) -> Poll<Result<(), Fault>> {
        let mut room = TURN_BYTES;
        loop {
            self.pump(clients);
            if let Poll::Ready(Err(error)) = self.write(context) {
                return Poll::Ready(Err((0, error.into())));
            }
            if clients.iter().all(|client| is_stalled(&client.borrow())) {
                return Poll::Pending;
            }
            if room == 0 {
                // Real clients have a machine each. Here, the others must not wait for as long as there is something for this one.
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            let bytes = ready!(self.read(context, clients, answered))?;
            room = room.saturating_sub(bytes);
            if deadline(clients) != before {
                self.pump(clients);
                let _ = self.write(context).map_err(|error| (0, Violation::from(error)))?;
                return Poll::Ready(Ok(()));
            }
        }
    }

    /// Does what the clients ask for.
    fn pump(&mut self, clients: &[Rc<RefCell<Client>>]) {
        for (at, client) in clients.iter().enumerate() {
            let mut client = client.borrow_mut();
            while let Some(output) = client.poll_output() {
                match output {
                    Output::Open(lane, path) => {
                        self.http2.open(&self.call, path);
                        self.streams.push((at, lane));
                    }
                    Output::Post(lane, path, bytes) => {
                        self.http2.post(&self.call, path, bytes);
                        self.streams.push((at, lane));
                    }
                    Output::Send(lane, bytes) => {
                        let stream = self.streams.iter().rposition(|it| *it == (at, lane));
                        if let Some(id) = stream.and_then(|stream| u32::try_from(stream * 2 + 1).ok()) {
                            self.http2.send(id, bytes);
                        }
                    }
                }
            }
        }
    }

    fn write(&mut self, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        while let Some(rest) = self.http2.out.get(self.written..).filter(|rest| !rest.is_empty()) {
            self.written += ready!(self.io.poll_write(context, rest))?;
        }
        if self.written > 0 {
            self.written = 0;
            self.http2.out.clear();
            self.http2.out.shrink_to(OUT_BYTES_KEPT);
            return self.io.poll_flush(context);
        }
        Poll::Ready(Ok(()))
    }

    /// Reads once. Returns how many bytes came.
    fn read(
        &mut self,
        context: &mut Context<'_>,
        clients: &[Rc<RefCell<Client>>],
        answered: &mut impl FnMut(&mut Client, Outcome, &mut Tally),
    ) -> Poll<Result<usize, Fault>> {
        let Self {
            io,
            http2,
            streams,
            shared,
            presence,
            ..
        } = self;
        let mut scratch = shared.scratch.borrow_mut();
        let mut buffer = ReadBuf::new(scratch.as_mut_slice());
        ready!(io.poll_read(context, &mut buffer)).map_err(|error| (0, error.into()))?;
        let now = now();
        if buffer.filled().is_empty() {
            return Poll::Ready(Err((
                0,
                Violation::Connection(Failure::Closed, "the server closed the connection".to_owned()),
            )));
        }
        let mut tally = shared.feed.tally();
        tally.bytes += u64::try_from(buffer.filled().len()).unwrap_or_default();
        let (mut culprit, mut message) = (0, false);
        let outcome = http2.feed(buffer.filled(), |event| {
            let id = match &event {
                Event::Data(id, _) | Event::Head(id, _) | Event::End(id) | Event::Reset(id, _) => id,
                Event::GoAway(..) | Event::Pong => {
                    presence.note(&event);
                    return Ok(());
                }
            };
            message |= matches!(event, Event::Data(..));
            let stream = id.checked_sub(1).and_then(|id| usize::try_from(id / 2).ok());
            let Some((at, lane)) = stream.and_then(|stream| streams.get(stream)) else {
                return Ok(());
            };
            let Some(client) = clients.get(*at) else { return Ok(()) };
            culprit = *at;
            let mut client = client.borrow_mut();
            let outcome = match event {
                Event::Data(_, bytes) => client.handle_data(*lane, bytes, &mut tally, now)?,
                Event::Head(_, head) => return client.handle_head(*lane, head, now),
                Event::End(_) => client.handle_end(*lane, None, &mut tally, now)?,
                Event::Reset(_, code) => client.handle_end(*lane, Some(code), &mut tally, now)?,
                Event::GoAway(..) | Event::Pong => return Ok(()),
            };
            if outcome.messages > 0 {
                // A poll's answer is not acknowledged; the next poll says what the client has.
                if client.profile.polls.is_none() {
                    tally.acknowledgements += u64::from(outcome.messages);
                }
                answered(&mut client, outcome, &mut tally);
            }
            Ok::<(), Violation>(())
        });
        presence.hear(message, now);
        let bytes = buffer.filled().len();
        Poll::Ready(outcome.map(|()| bytes).map_err(|violation| (culprit, violation)))
    }
}

const OUT_BYTES_KEPT: usize = 512;

/// Whether the client does not read any more.
fn is_stalled(client: &Client) -> bool {
    client.complete && client.profile.behaviour.stalls
}

pub(crate) fn deadline(clients: &[Rc<RefCell<Client>>]) -> Option<Instant> {
    clients.iter().filter_map(|client| client.borrow().deadline()).min()
}

/// Connects; to a server on this machine, from one of several local addresses.
async fn connect(server: SocketAddr, number: u32, received: Option<u32>) -> std::io::Result<TcpStream> {
    let socket = match server.ip() {
        IpAddr::V4(_) => TcpSocket::new_v4()?,
        IpAddr::V6(_) => TcpSocket::new_v6()?,
    };
    if let Some(received) = received {
        socket.set_recv_buffer_size(received)?;
    }
    let block = u8::try_from(number / CONNECTIONS_PER_ADDRESS).unwrap_or(u8::MAX - 1);
    if matches!(server.ip(), IpAddr::V4(address) if address.is_loopback()) && block > 0 {
        socket.bind((Ipv4Addr::new(127, 0, 0, block + 1), 0).into())?;
    }
    socket.connect(server).await
}

impl Io {
    fn poll_read(&mut self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        match self {
            Self::Plain(socket) => Pin::new(socket).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }

    fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        match self {
            Self::Plain(socket) => Pin::new(socket).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        match self {
            Self::Plain(_) => Poll::Ready(Ok(())),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }
}
