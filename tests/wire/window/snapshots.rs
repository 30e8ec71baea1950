// SPDX-License-Identifier: Apache-2.0
//! Other relays that take snapshots: whoever takes them slowly keeps nobody else from them.

use std::net::SocketAddr;
use std::time::Duration;

use distributary::admin::{Give, Pace, Snapshots};
use futures_util::future::join_all;
use socket2::{Domain, Socket, Type};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use super::Window;
use crate::support::{Relay, soon};

/// What no buffer of the system takes.
const BYTES: usize = 12 << 20;
/// How many turns there are.
const TURNS: u8 = 8;

/// A relay with a large snapshot, which others take at this pace.
fn giver(relay: &Relay, pace: Pace) -> Window {
    let snapshots = Snapshots::new(pace, |_| {
        let give: Give = Box::new(|into| into.write_all(&vec![b'x'; BYTES]));
        vec![give]
    });
    Window::giving(relay, snapshots)
}

/// Nobody is too slow, and others wait so long.
fn patient(turn: Duration) -> Pace {
    let grace = Duration::from_secs(3600);
    Pace {
        turn,
        grace,
        ..Pace::default()
    }
}

/// Asks for snapshots from 127.0.0.`from`.
async fn asks(window: &Window, from: u8) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from(([127, 0, 0, from], 0)).into()).unwrap();
    // What the system takes counts as taken.
    socket.set_recv_buffer_size(1 << 16).unwrap();
    socket.set_nonblocking(true).unwrap();
    let socket = TcpSocket::from_std_stream(socket.into());
    let mut stream = socket.connect(window.0.socket().unwrap()).await.unwrap();
    let question = b"GET /snapshots HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n";
    stream.write_all(question).await.unwrap();
    stream
}

/// Waits for the status of the answer, and takes no more.
async fn status(mut stream: TcpStream) -> (TcpStream, String) {
    let mut head = [0; 12];
    soon("an answer", stream.read_exact(&mut head)).await.unwrap();
    (stream, String::from_utf8_lossy(&head[9..]).into_owned())
}

async fn takes_nothing(window: &Window, from: u8) -> (TcpStream, String) {
    status(asks(window, from).await).await
}

/// Takes the rest, and says whether that was all.
async fn takes_all(mut stream: TcpStream) -> bool {
    let mut rest = Vec::new();
    let read = soon("its end", stream.read_to_end(&mut rest)).await;
    read.is_ok() && rest.len() > BYTES && rest.ends_with(b"0\r\n\r\n")
}

/// Whoever takes nothing has one turn, whatever it asks for beside; others have theirs meanwhile, as long as there are some.
#[tokio::test]
async fn each_has_one_turn() {
    let relay = Relay::start();
    let window = giver(&relay, patient(Duration::from_millis(100)));
    let (slow, said) = takes_nothing(&window, 2).await;
    assert_eq!(said, "200");
    assert_eq!(takes_nothing(&window, 2).await.1, "503");
    let (quick, said) = takes_nothing(&window, 3).await;
    assert_eq!(said, "200");
    assert!(takes_all(quick).await);
    let taking = join_all((4..3 + TURNS).map(|from| takes_nothing(&window, from))).await;
    assert!(taking.iter().all(|(_, said)| said == "200"), "{taking:?}");
    assert_eq!(takes_nothing(&window, 100).await.1, "503");
    assert!(takes_all(slow).await);
}

/// When all turns are taken the next one waits for the end of one, so that several relays can start at once.
#[tokio::test]
async fn one_waits_for_its_turn() {
    let relay = Relay::start();
    let window = giver(&relay, patient(Duration::from_secs(3600)));
    let mut taking = join_all((2..2 + TURNS).map(|from| takes_nothing(&window, from))).await;
    assert!(taking.iter().all(|(_, said)| said == "200"), "{taking:?}");
    let mut ninth = asks(&window, 100).await;
    let early = timeout(Duration::from_millis(300), ninth.read(&mut [0])).await;
    assert!(early.is_err(), "{early:?}");
    drop(taking.pop());
    let (ninth, said) = status(ninth).await;
    assert_eq!(said, "200");
    assert!(takes_all(ninth).await);
}

/// Whoever takes nothing for some seconds has no turn any more, and does not take what was cut off for all.
#[tokio::test]
async fn slow_readers_lose_their_turn() {
    let relay = Relay::start();
    let pace = Pace {
        grace: Duration::from_millis(200),
        bytes: u64::MAX,
        ..patient(Duration::from_secs(3600))
    };
    let window = giver(&relay, pace);
    let (slow, said) = takes_nothing(&window, 2).await;
    assert_eq!(said, "200");
    assert_eq!(takes_nothing(&window, 2).await.1, "200", "its next turn");
    assert!(!takes_all(slow).await);
}
