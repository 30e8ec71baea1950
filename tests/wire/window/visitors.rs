// SPDX-License-Identifier: Apache-2.0
//! Visitors of the admin address who keep the relay waiting: they keep nobody else waiting.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::time::timeout;

use super::Window;
use crate::support::raw::{self, DATA, Frames, HEADERS, SETTINGS, call, frame};
use crate::support::{PATIENCE, Relay};

const FETCH: &str = "/envoy.service.status.v3.ClientStatusDiscoveryService/FetchClientStatus";
const STREAM: &str = "/envoy.service.status.v3.ClientStatusDiscoveryService/StreamClientStatus";
const REFLECTION: &str = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

/// How long an answer may take. Who holds a place keeps it for ten seconds or more.
const SOON: Duration = Duration::from_secs(9);

fn address(window: &Window) -> SocketAddr {
    window.0.socket().unwrap()
}

/// Everybody else is answered.
async fn answers(window: &Window) {
    for path in "/ready /healthz/ready /live /healthz /clusters /clients /metrics".split(' ') {
        let answered = async {
            // Those who ask at this very moment may be answered first.
            loop {
                match window.get(path).await {
                    (503, _) => tokio::time::sleep(Duration::from_millis(20)).await,
                    other => return other,
                }
            }
        };
        let (status, text) = timeout(SOON, answered).await.expect(path);
        assert_eq!(status, 200, "{path}: {text}");
    }
}

/// Connections on which HTTP/2 has begun, and these calls. None of the answers is read.
async fn calls(
    window: &Window,
    connections: usize,
    settings: &[u8],
    calls: &[Vec<u8>],
) -> Vec<(Frames, OwnedWriteHalf)> {
    let mut open = Vec::new();
    for _ in 0..connections {
        let (frames, mut write) = raw::connect(address(window)).await;
        // The relay may have ended it already.
        let _ = write.write_all(&[settings, &calls.concat()].concat()).await;
        open.push((frames, write));
    }
    open
}

#[tokio::test]
async fn unfinished_bodies_hold_no_place() {
    let relay = Relay::start();
    let window = Window::of(&relay);
    let mut begun = Vec::new();
    for _ in 0..200 {
        let mut socket = TcpStream::connect(address(&window)).await.unwrap();
        let head = "POST /v3/discovery:client_status HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 100\r\n\r\n{";
        let _ = socket.write_all(head.as_bytes()).await;
        begun.push(socket);
    }
    answers(&window).await;
    let part = [call(1, FETCH, &[]), frame(DATA, 0, 1, &[0, 0, 0, 0, 100, 1])];
    let _begun = calls(&window, 200, &[], &part).await;
    answers(&window).await;
}

#[tokio::test]
async fn silent_connections_give_way() {
    let relay = Relay::start();
    let window = Window::of(&relay);
    let mut silent = Vec::new();
    for _ in 0..300 {
        silent.push(TcpStream::connect(address(&window)).await.unwrap());
    }
    answers(&window).await;
    // Who came first has kept the relay waiting longest.
    let ended = timeout(SOON, silent[0].read(&mut [0])).await.expect("it is still open");
    assert!(matches!(ended, Ok(0) | Err(_)));
    let last = timeout(Duration::from_millis(100), silent[299].read(&mut [0])).await;
    assert!(last.is_err());
}

/// Streams that ask nothing, and answers that nobody reads. These are made in no time: what everybody else waits for is not that they are
/// made, on a thread that steps back behind all others of a busy machine.
#[tokio::test]
async fn streams_and_slow_readers_give_way() {
    let relay = Relay::start();
    let window = Window::of(&relay);
    let idle: Vec<_> = (0..8)
        .map(|n| call(2 * n + 1, [STREAM, REFLECTION][n as usize % 2], &[]))
        .collect();
    let _idle = calls(&window, 20, &[], &idle).await;
    answers(&window).await;
    let no_window = frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]);
    let get: Vec<_> = (0..8).map(|n| get(2 * n + 1, "/help")).collect();
    let mut unread = calls(&window, 20, &no_window, &get).await;
    answers(&window).await;
    let first = &mut unread[0].0;
    while timeout(PATIENCE, first.next()).await.unwrap().is_some() {}
}

/// A GET over HTTP/2.
fn get(stream: u32, path: &str) -> Vec<u8> {
    let fields = [
        (":method", "GET"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "relay"),
    ];
    // END_STREAM and END_HEADERS.
    frame(HEADERS, 5, stream, &raw::block(&fields))
}

/// A body has a bound, and its end is told in words.
#[tokio::test]
async fn large_bodies_are_refused() {
    let relay = Relay::start();
    let window = Window::of(&relay);
    let mut socket = TcpStream::connect(address(&window)).await.unwrap();
    let head = "POST /v3/discovery:client_status HTTP/1.0\r\nhost: 127.0.0.1\r\ncontent-length: 300000\r\n\r\n";
    let body = [b' '; 300_000];
    let _ = socket.write_all(&[head.as_bytes(), &body].concat()).await;
    let mut answer = String::new();
    let _ = timeout(SOON, socket.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.0 413 "), "{answer}");
    assert!(answer.contains("262144 bytes"), "{answer}");
}

/// Two headers of which each would be judged differently.
#[tokio::test]
async fn doubled_headers_are_refused() {
    let relay = Relay::start();
    let window = Window::of(&relay);
    let own = address(&window);
    for (doubled, name) in [
        (format!("host: {own}\r\nhost: evil.example\r\n"), "host"),
        (
            format!("host: {own}\r\norigin: http://{own}\r\norigin: http://evil\r\n"),
            "origin",
        ),
    ] {
        for path in ["/healthcheck/fail", "/drain_listeners", "/v3/discovery:client_status"] {
            let mut socket = TcpStream::connect(own).await.unwrap();
            let request = format!("POST {path} HTTP/1.0\r\n{doubled}content-length: 0\r\n\r\n");
            socket.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            socket.read_to_string(&mut answer).await.unwrap();
            let words = format!("several `{name}` headers; send one\n");
            assert!(answer.starts_with("HTTP/1.0 400 "), "{path}: {answer}");
            assert!(answer.ends_with(&words), "{path}: {answer}");
        }
    }
    assert_eq!(window.get("/ready").await.0, 200);
}
