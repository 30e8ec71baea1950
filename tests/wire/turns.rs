// SPDX-License-Identifier: Apache-2.0
//! Streams that share a connection when the client is slower than the changes, and clients that share the threads.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use distributary::wire::StreamTurns;
use distributary::xds::Dialect;
use futures_util::task::AtomicWaker;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::support::client::Client;
use crate::support::messages::Subscriber;
use crate::support::{CDS, PATIENCE, Relay, spawn, windows};

const STREAMS: usize = 40;
/// So much that the kernel holds only a few of these.
const BODY: usize = 1 << 20;

/// A tap that stops all reading of a socket.
#[derive(Default)]
pub(crate) struct Tap {
    closed: AtomicBool,
    reader: AtomicWaker,
}

pub(crate) struct Tapped(pub(crate) TcpStream, pub(crate) Arc<Tap>);

impl Tap {
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    fn open(&self) {
        self.closed.store(false, Ordering::Release);
        self.reader.wake();
    }
}

impl AsyncRead for Tapped {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        self.1.reader.register(cx.waker());
        if self.1.closed.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        Pin::new(&mut self.0).poll_read(cx, into)
    }
}

impl AsyncWrite for Tapped {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

fn publish(relay: &Relay, round: usize) {
    relay.put(CDS, &["n"], &format!("{round}|{}", "x".repeat(BODY)));
}

/// Returns the round of which the next response is.
async fn next(subscriber: &mut Subscriber) -> usize {
    let got = timeout(PATIENCE, subscriber.take()).await.expect("a response");
    let (round, _) = got.bodies[0].split_once('|').unwrap();
    round.parse().unwrap()
}

/// The streams of one connection with large windows, each with the first round, and the tap of the connection.
async fn streams(relay: &Relay) -> (Vec<Subscriber>, Arc<Tap>) {
    publish(relay, 0);
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(32 * 1024).unwrap();
    let socket = socket.connect(relay.port()).await.unwrap();
    let tap = Arc::<Tap>::default();
    let (client, _) = Client::over(Tapped(socket, tap.clone()), &windows(16 << 20, 1 << 30)).await;
    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        let mut subscriber = client.subscriber(Dialect::Sotw, CDS).await;
        subscriber.subscribe(&["*"]);
        assert_eq!(next(&mut subscriber).await, 0);
        streams.push(subscriber);
    }
    (streams, tap)
}

/// While the connection is blocked, no response is made for a stream whose turn has not come. So it gets the newest content.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_for_its_turn_gets_the_newest() {
    const ROUNDS: usize = 10;
    let relay = Relay::start();
    let (streams, tap) = streams(&relay).await;
    let mut other = relay.connect().await.subscriber(Dialect::Sotw, CDS).await;
    other.subscribe(&["*"]);
    assert_eq!(next(&mut other).await, 0);
    tap.close();
    for round in 1..=ROUNDS {
        publish(&relay, round);
        assert_eq!(next(&mut other).await, round, "other connections go on");
    }
    tap.open();
    let mut responses = 0;
    for mut stream in streams {
        loop {
            responses += 1;
            if next(&mut stream).await == ROUNDS {
                break;
            }
        }
    }
    assert!(responses < STREAMS + STREAMS / 2, "{responses} responses");
}

/// As long as all streams have something, nobody waits much longer than until all others were served.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_streams_of_a_connection_take_turns() {
    const ROUNDS: usize = 8;
    let relay = Relay::start();
    let (streams, _) = streams(&relay).await;
    let (tell, mut served) = mpsc::channel(ROUNDS * STREAMS);
    let readers: Vec<_> = streams
        .into_iter()
        .enumerate()
        .map(|(at, mut stream)| {
            let tell = tell.clone();
            spawn(async move {
                loop {
                    next(&mut stream).await;
                    if tell.send(at).await.is_err() {
                        return;
                    }
                }
            })
        })
        .collect();
    let mut order = Vec::new();
    publish(&relay, 1);
    while order.len() < ROUNDS * STREAMS {
        order.push(timeout(PATIENCE, served.recv()).await.expect("a response").unwrap());
        // Several changes in each round.
        if order.len().is_multiple_of(STREAMS / 5) {
            publish(&relay, 1 + order.len());
        }
    }
    readers.iter().for_each(tokio::task::JoinHandle::abort);
    // A stream that was served after the newest change has nothing until the next one, and one whose turn comes while bells ring for a
    // change has another turn after all others.
    let longest = 2 * STREAMS + STREAMS / 2;
    for stream in 0..STREAMS {
        let mut last = 0;
        for (at, _) in order.iter().enumerate().filter(|(_, served)| **served == stream) {
            assert!(at - last <= longest, "stream {stream} waited for {} others", at - last);
            last = at;
        }
        assert!(order.len() - last <= longest, "stream {stream} was not served any more");
    }
}

/// B-22: a rejection waits in the line of large requests, and whoever rejects nothing does not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejections_take_turns() {
    let relay = Relay::start();
    let put = |body| relay.put(CDS, &["a", "b"], body);
    put("1");
    let mut clients = Vec::new();
    for _ in 0..2 {
        let client = relay.connect().await;
        let mut subscriber = client.subscriber(Dialect::Delta, CDS).await;
        subscriber.subscribe(&["*"]);
        assert_eq!(subscriber.take().await.bodies, ["1", "1"]);
        clients.push((subscriber, client));
    }
    let mut turns = StreamTurns::default();
    let turn = timeout(PATIENCE, poll_fn(|cx| turns.poll_turn(cx))).await;
    put("2");
    let [(rejects, _), (accepts, _)] = &mut *clients else {
        panic!("there are two");
    };
    assert_eq!(rejects.next().await.unwrap().bodies, ["2", "2"]);
    rejects.nack("no");
    assert!(rejects.call.is_silent().await, "it is somebody else's turn");
    assert_eq!(accepts.take().await.bodies, ["2", "2"]);
    drop(turn);
    let tries = timeout(PATIENCE, rejects.next()).await.expect("a try").unwrap();
    assert_eq!(tries.bodies, ["2"]);
}
