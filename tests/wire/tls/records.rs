// SPDX-License-Identifier: Apache-2.0
//! The size of the TLS records that the relay sends.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use distributary::xds::Dialect;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::{converses, speak};
use crate::support::Address;
use crate::support::certificates::{Authority, VERSIONS, agree};

/// A socket, and everything that was read from it.
struct Tap {
    socket: TcpStream,
    read: Arc<Mutex<Vec<u8>>>,
}

impl AsyncRead for Tap {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.socket).poll_read(cx, into))?;
        self.read.lock().unwrap().extend_from_slice(&into.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Tap {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

/// A record takes memory while it is sealed. If the largest records had the size of the transport's buffers, the allocator would
/// reuse the memory of records for these buffers, of which hardly more than the first page is ever touched (bar-05 measures it).
#[tokio::test]
async fn records_leave_the_transports_buffers_alone() {
    let authority = Authority::new();
    for version in VERSIONS {
        let relay = authority.relay();
        let Address::Tcp(address) = relay.address else {
            panic!("no port");
        };
        let read = Arc::<Mutex<Vec<u8>>>::default();
        let tap = Tap {
            socket: TcpStream::connect(address).await.unwrap(),
            read: read.clone(),
        };
        let config = Arc::new(authority.client(None, &[version]));
        let client = speak(agree(&config, tap).await.unwrap()).await;
        converses(&relay, &client, Dialect::Delta).await;
        let read = read.lock().unwrap();
        let (mut rest, mut lengths) = (&read[..], Vec::new());
        while let [_, _, _, high, low, ..] = *rest {
            let length = 5 + usize::from(u16::from_be_bytes([high, low]));
            lengths.push(length);
            rest = rest.get(length..).unwrap_or_default();
        }
        let longest = lengths.into_iter().max().unwrap();
        assert!((8 << 10..=14 << 10).contains(&longest), "{longest}");
    }
}
