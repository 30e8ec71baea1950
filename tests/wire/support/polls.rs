// SPDX-License-Identifier: Apache-2.0
//! A client that polls: HTTP/1.1 by hand, so that it can also send what no library sends.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::PATIENCE;

/// One connection.
pub(crate) struct Poller {
    socket: Box<dyn Duplex>,
    read: Vec<u8>,
}

/// Bytes in both directions, over any transport.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Duplex for S {}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Asserts that the head has these words.
    #[track_caller]
    pub(crate) fn has(&self, words: &str) {
        assert!(self.head.contains(words), "no {words} in {}", self.head);
    }

    /// The version, and the names of the resources.
    pub(crate) fn says(&self) -> (String, Vec<String>) {
        assert_eq!(self.status, 200, "{self:?}");
        let json = self.json();
        let name = |resource: &Value| {
            let name = resource.get("name").or_else(|| resource.get("cluster_name"));
            name.and_then(Value::as_str).unwrap().to_owned()
        };
        let names = json["resources"].as_array().unwrap().iter().map(name).collect();
        (json["version_info"].as_str().unwrap().to_owned(), names)
    }
}

/// A request with these names, from a client that has this version.
pub(crate) fn request(version: &str, names: &[&str]) -> String {
    json!({"version_info": version, "node": {"id": "poller"}, "resource_names": names}).to_string()
}

impl Poller {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).await.unwrap())
    }

    pub(crate) fn over(socket: impl Duplex + 'static) -> Self {
        Self {
            socket: Box::new(socket),
            read: Vec::new(),
        }
    }

    /// Polls and waits for the answer.
    pub(crate) async fn poll(&mut self, path: &str, body: &str) -> Answer {
        self.post(path, &[("content-type", "application/json")], body.as_bytes())
            .await
    }

    pub(crate) async fn post(&mut self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.send(path, headers, body).await;
        self.answer().await
    }

    pub(crate) async fn send(&mut self, path: &str, headers: &[(&str, &str)], body: &[u8]) {
        let mut all = format!(
            "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            all += &format!("{name}: {value}\r\n");
        }
        self.write(&[all.as_bytes(), b"\r\n", body].concat()).await;
    }

    /// Sends these bytes; it is no error if the relay has closed the connection.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> bool {
        self.socket.write_all(bytes).await.is_ok()
    }

    pub(crate) async fn answer(&mut self) -> Answer {
        timeout(PATIENCE, self.read_answer()).await.expect("no answer")
    }

    async fn read_answer(&mut self) -> Answer {
        let split = loop {
            if let Some(at) = self.read.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            self.more().await;
        };
        let head = String::from_utf8(self.read.drain(..split).collect()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let length = head.to_ascii_lowercase();
        if length.contains("\r\ntransfer-encoding: chunked\r\n") {
            let body = self.chunks().await;
            return Answer { status, head, body };
        }
        let length = length.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.map_or(0, |length| length.parse().unwrap());
        while self.read.len() < length {
            self.more().await;
        }
        let body = self.read.drain(..length).collect();
        Answer { status, head, body }
    }

    async fn chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let Some(at) = self.read.windows(2).position(|two| two == b"\r\n") else {
                self.more().await;
                continue;
            };
            let size = std::str::from_utf8(&self.read[..at]).unwrap();
            let size = usize::from_str_radix(size, 16).unwrap();
            while self.read.len() < at + size + 4 {
                self.more().await;
            }
            let chunk: Vec<u8> = self.read.drain(..at + size + 4).collect();
            body.extend_from_slice(&chunk[at + 2..at + 2 + size]);
            if size == 0 {
                return body;
            }
        }
    }

    async fn more(&mut self) {
        let mut buffer = vec![0; 64 * 1024];
        let count = self.socket.read(&mut buffer).await.unwrap();
        assert!(count > 0, "the connection ended within an answer: {:?}", self.read);
        self.read.extend_from_slice(&buffer[..count]);
    }
}
