// SPDX-License-Identifier: Apache-2.0
//! Gathered writes: nothing is lost, reordered or stuck, however little the socket takes at a time.

use std::future::poll_fn;
use std::io::IoSlice;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use distributary::tls::provider;
use distributary::wire::{
    COPIED_BYTES_MAX, Cork, Corked, GATHERED_BYTES_MAX, Rope, RopeProgress, Sealed, SharedSlices, hello,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rcgen::generate_simple_self_signed;
use rustls_pki_types::{PrivateKeyDer, ServerName};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsConnector, client};

use crate::support::soon;

/// Two ends of one connection; tiny kernel buffers make the socket take only a part of each write.
async fn pair(tiny: bool) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    if tiny {
        socket2::SockRef::from(&listener).set_recv_buffer_size(2048).unwrap();
    }
    let client = TcpStream::connect(listener.local_addr().unwrap());
    let (client, accepted) = tokio::join!(client, listener.accept());
    let (client, (server, _)) = (client.unwrap(), accepted.unwrap());
    if tiny {
        socket2::SockRef::from(&client).set_send_buffer_size(2048).unwrap();
    }
    (client, server)
}

/// Writes `bytes` as a transport does: several pieces in a turn, a flush after some, sometimes nothing at all.
struct Writer<S> {
    /// Some of the pieces are shared bytes, which are not copied.
    bytes: Bytes,
    at: usize,
    io: Corked<S>,
    random: StdRng,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Writer<S> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        for _ in 0..self.random.random_range(0..40) {
            let size = match self.random.random_range(0..10) {
                0 => self.random.random_range(0..2 * GATHERED_BYTES_MAX),
                1..5 => self.random.random_range(0..20_000),
                _ => self.random.random_range(0..100),
            };
            let end = (self.at + size).min(self.bytes.len());
            let piece = &self.bytes[self.at..end];
            let cut = self.random.random_range(0..=piece.len());
            let slices = [&piece[..cut], &[], &piece[cut..]].map(IoSlice::new);
            if piece.is_empty() {
                continue;
            }
            let io = Pin::new(&mut self.io);
            let wrote = if self.random.random_bool(0.5) {
                io.poll_write_vectored(cx, &slices)
            } else {
                io.poll_write(cx, piece)
            };
            match wrote {
                Poll::Ready(count) => self.at += count.unwrap(),
                Poll::Pending => return Poll::Pending,
            }
            if self.random.random_bool(0.3) && Pin::new(&mut self.io).poll_flush(cx).map(Result::unwrap).is_pending() {
                return Poll::Pending;
            }
        }
        if self.at == self.bytes.len() {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

fn bytes(random: &mut StdRng, count: usize) -> Bytes {
    let mut bytes = vec![0; count];
    random.fill(&mut bytes[..]);
    Bytes::from(bytes)
}

/// About half of the bytes, as a rope's shared pieces.
fn parts(bytes: &Bytes, random: &mut StdRng) -> Arc<[Bytes]> {
    let mut parts = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let end = (at + random.random_range(1..100_000)).min(bytes.len());
        if random.random_bool(0.5) {
            parts.push(bytes.slice(at..end));
        }
        at = end;
    }
    Arc::from(parts)
}

async fn write_all<S: AsyncRead + AsyncWrite + Unpin>(mut writer: Writer<S>, cork: Cork<S>, rope: Rope) {
    poll_fn(|cx| cork.turn(cx, |cx| writer.poll(cx)).0).await;
    // The transport has finished; bytes that the socket has not taken yet must not depend on it.
    drop(rope);
    drains(&cork).await;
    // The connection is closed only now: the reader must have got everything before.
    let close = poll_fn(|cx| cork.turn(cx, |cx| Pin::new(&mut writer.io).poll_shutdown(cx)).0);
    close.await.unwrap();
}

/// Turns without a write must bring the rest to the socket: nothing else would.
async fn drains<S: AsyncRead + AsyncWrite + Unpin>(cork: &Cork<S>) {
    poll_fn(|cx| match cork.turn(cx, |_| ()).1.stuck_at {
        Some(_) => Poll::Pending,
        None => Poll::Ready(()),
    })
    .await;
}

async fn read_slowly(mut socket: impl AsyncRead + Unpin, mut random: StdRng) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let mut part = vec![0; random.random_range(1..30_000)];
        match socket.read(&mut part).await.unwrap() {
            0 => return all,
            count => all.extend_from_slice(&part[..count]),
        }
        for _ in 0..random.random_range(0..5) {
            tokio::task::yield_now().await;
        }
    }
}

/// The same two ends, with TLS between them; the first one is the server.
async fn sealed(tiny: bool) -> (Sealed<TcpStream>, client::TlsStream<TcpStream>) {
    let (server, client) = pair(tiny).await;
    let own = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(own.cert.der().clone()).unwrap();
    let offer = rustls::ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .unwrap();
    let ask = rustls::ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let client = TlsConnector::from(Arc::new(ask)).connect(name, client);
    let mut server = server;
    let server = async {
        let hello = hello(&mut server).await?;
        Sealed::accept(server, hello, Arc::new(offer)).await
    };
    let (server, client) = tokio::join!(server, client);
    (server.unwrap(), client.unwrap())
}

async fn one(seed: u64) {
    let tiny = seed.is_multiple_of(2);
    if seed.is_multiple_of(3) {
        let (client, server) = sealed(tiny).await;
        between(seed, client, server).await;
    } else {
        let (client, server) = pair(tiny).await;
        between(seed, client, server).await;
    }
}

async fn between<S, R>(seed: u64, client: S, server: R)
where
    S: AsyncRead + AsyncWrite + Unpin,
    R: AsyncRead + Unpin,
{
    let mut random = StdRng::seed_from_u64(seed);
    let count = random.random_range(1..1_500_000);
    let sent = bytes(&mut random, count);
    let shared_slices = Arc::<SharedSlices>::default();
    let progress = Arc::new(RopeProgress::new(shared_slices.clone()));
    let rope = Rope::new(Bytes::new(), parts(&sent, &mut random)).reporting(&progress);
    let (cork, io) = Cork::new(client, Bytes::new(), shared_slices);
    let writer = Writer {
        bytes: sent.clone(),
        at: 0,
        io,
        random: StdRng::seed_from_u64(seed + 1),
    };
    let ((), got) = tokio::join!(write_all(writer, cork, rope), read_slowly(server, random));
    assert!(got == sent, "seed {seed}: got {} bytes of {}", got.len(), sent.len());
}

/// Several connections take turns on one thread, and so use the same scratch buffer.
#[tokio::test]
async fn every_byte_arrives_once_and_in_order() {
    for seed in (0..60).step_by(4) {
        let all = async { tokio::join!(one(seed), one(seed + 1), one(seed + 2), one(seed + 3)) };
        soon(&format!("the end of seeds from {seed}"), all).await;
    }
}

/// Bytes that TLS has sealed and not sent count as unsent, too: a client that reads nothing is noticed.
#[tokio::test]
async fn a_reader_that_stalls_costs_no_more_than_the_bound() {
    let (client, server) = pair(false).await;
    stalls(client, server).await;
    let (client, server) = sealed(false).await;
    stalls(client, server).await;
}

async fn stalls<S, R>(client: S, mut server: R)
where
    S: AsyncRead + AsyncWrite + Unpin,
    R: AsyncRead + Unpin,
{
    let (cork, mut io) = Cork::new(client, Bytes::new(), Arc::default());
    let piece = vec![7; 16 * 1024];
    let mut accepted = 0;
    let fill = poll_fn(|cx| {
        let ((), flow) = cork.turn(cx, |cx| {
            while let Poll::Ready(count) = Pin::new(&mut io).poll_write(cx, &piece) {
                accepted += count.unwrap();
            }
        });
        flow.stuck_at.map_or(Poll::Pending, Poll::Ready)
    });
    let taken = usize::try_from(soon("a full socket", fill).await).unwrap();
    assert!(
        accepted - taken <= COPIED_BYTES_MAX,
        "{accepted} accepted, {taken} taken"
    );

    let mut got = vec![0; accepted];
    let both = async { tokio::join!(server.read_exact(&mut got), drains(&cork)) };
    soon("all bytes", both).await.0.unwrap();
    assert!(got.iter().all(|byte| *byte == 7));
}

/// The transport reads again the bytes that were read to detect the client's protocol.
#[tokio::test]
async fn bytes_read_before_come_first() {
    let (client, mut server) = pair(false).await;
    let (_cork, mut io) = Cork::new(client, Bytes::from_static(b"before "), Arc::default());
    server.write_all(b"after").await.unwrap();
    drop(server);
    let mut all = String::new();
    soon("all bytes", io.read_to_string(&mut all)).await.unwrap();
    assert_eq!(all, "before after");
}

/// Outside of a turn writes are not gathered: a single write goes straight to the socket.
#[tokio::test]
async fn a_write_outside_of_a_turn_is_not_held_back() {
    let (client, mut server) = pair(false).await;
    let (_cork, mut io) = Cork::new(client, Bytes::new(), Arc::default());
    let wrote = poll_fn(|cx| Pin::new(&mut io).poll_write(cx, b"now")).await.unwrap();
    let mut got = vec![0; wrote];
    soon("all bytes", server.read_exact(&mut got)).await.unwrap();
    assert_eq!(got, b"now");
}
