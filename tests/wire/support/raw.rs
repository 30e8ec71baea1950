// SPDX-License-Identifier: Apache-2.0
//! A connection with hand-written frames, for what no library would send.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

use super::PATIENCE;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RESET: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const GO_AWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
const END_HEADERS: u8 = 4;

pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The half that reads.
pub(crate) struct Frames(OwnedReadHalf);

/// A frame that the relay sent.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

/// A socket on which nothing was sent.
pub(crate) async fn socket(address: SocketAddr) -> TcpStream {
    TcpStream::connect(address).await.unwrap()
}

/// A connection on which HTTP/2 has begun, with a window large enough for all that the relay sends.
pub(crate) async fn connect(address: SocketAddr) -> (Frames, OwnedWriteHalf) {
    let (read, mut write) = socket(address).await.into_split();
    let room = frame(WINDOW_UPDATE, 0, 0, &(1_u32 << 30).to_be_bytes());
    let begin = [PREFACE, &frame(SETTINGS, 0, 0, &[]), &room].concat();
    write.write_all(&begin).await.unwrap();
    (Frames(read), write)
}

impl Frames {
    /// The next frame, or none when the connection has ended.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        timeout(PATIENCE, self.read()).await.expect("no frame")
    }

    async fn read(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        self.0.read_exact(&mut head).await.ok()?;
        let [a, b, c, kind, _, stream @ ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        self.0.read_exact(&mut payload).await.ok()?;
        let stream = u32::from_be_bytes(stream);
        Some(Frame { kind, stream, payload })
    }

    /// The next frame of this kind.
    pub(crate) async fn next_of(&mut self, kind: u8) -> Frame {
        loop {
            let frame = self.next().await.expect("the connection has ended");
            assert!(frame.kind != GO_AWAY || kind == GO_AWAY, "sent away: {frame:?}");
            if frame.kind == kind {
                return frame;
            }
        }
    }
}

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&[a, b, c, kind, flags][..], &stream.to_be_bytes(), payload].concat()
}

/// The beginning of a call, with these headers in addition to those of every gRPC call.
pub(crate) fn call(stream: u32, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let usual = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "relay"),
        ("content-type", "application/grpc"),
    ];
    frame(HEADERS, END_HEADERS, stream, &block(&[&usual, more].concat()))
}

/// Headers as they are in a frame.
pub(crate) fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        // A literal that is not indexed, with a new name.
        block.push(0);
        for text in [name, value] {
            // An integer with a prefix of seven bits (RFC 7541, 5.1).
            match text.len().checked_sub(127) {
                None => block.push(u8::try_from(text.len()).unwrap()),
                Some(rest) => {
                    block.push(127);
                    prost::encoding::encode_varint(rest as u64, &mut block);
                }
            }
            block.extend(text.as_bytes());
        }
    }
    block
}

/// The code of a frame that ends a stream or a connection.
pub(crate) fn reason(frame: &Frame) -> h2::Reason {
    let code = match frame.kind {
        RESET => &frame.payload[..4],
        GO_AWAY => &frame.payload[4..8],
        other => panic!("a frame of kind {other} ends nothing"),
    };
    u32::from_be_bytes(code.try_into().unwrap()).into()
}
