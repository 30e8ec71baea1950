// SPDX-License-Identifier: Apache-2.0
//! `/events`: what readers are told, and what becomes of readers that do not read.

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use super::Window;
use crate::support::{Relay, soon};

/// Those who read at the same time.
const READERS: usize = 16;

struct Reader(BufReader<TcpStream>);

impl Reader {
    async fn of(window: &Window) -> Self {
        let mut stream = TcpStream::connect(window.0.socket().unwrap()).await.unwrap();
        stream.write_all(b"GET /events HTTP/1.0\r\n\r\n").await.unwrap();
        Self(BufReader::new(stream))
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        let read = soon("a line", self.0.read_line(&mut line)).await;
        assert!(read.unwrap() > 0, "the events have ended");
        line.trim_end().to_owned()
    }

    /// The data of the next event of this name.
    async fn event(&mut self, name: &str) -> Value {
        let head = format!("event: {name}");
        while self.line().await != head {}
        let data = self.line().await;
        serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap()
    }
}

#[tokio::test]
async fn a_reader_is_told_what_changes() {
    let relay = Relay::start();
    let window = Window::of(&relay);
    let mut reader = Reader::of(&window).await;
    assert!(reader.line().await.ends_with(" 200 OK"));
    assert_eq!(reader.event("status").await["status"], "LIVE");
    let first = reader.event("counts").await;
    assert_eq!(first["connections"], 0, "{first}");
    relay.shared.health.fail(true);
    relay.shared.metrics.connections.inc();
    assert_eq!(reader.event("status").await["status"], "DRAINING");
    assert_eq!(reader.event("counts").await["connections"], 1);
}

/// There is room for some, and who has gone makes room.
#[tokio::test]
async fn readers_are_bounded() {
    let window = Window::of(&Relay::start());
    let mut readers = Vec::new();
    for _ in 0..READERS {
        let mut reader = Reader::of(&window).await;
        reader.event("counts").await;
        readers.push(reader);
    }
    let (status, text) = window.get("/events").await;
    assert_eq!((status, text.as_str()), (429, "16 others read the events already\n"));
    drop(readers.pop());
    loop {
        let mut reader = Reader::of(&window).await;
        if reader.line().await.contains(" 200 ") {
            break;
        }
        let _ = reader.0.read_to_end(&mut Vec::new()).await;
    }
}
