// SPDX-License-Identifier: Apache-2.0
//! The size of the TLS records that the relay sends.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use distributary::xds::Dialect;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

use super::{converses, speak};
use crate::support::certificates::{Authority, VERSIONS, agree};
use crate::support::{raw, spawn};

/// Connects over a tap. Returns its end, and everything that is read from it.
async fn tapped(address: SocketAddr) -> (DuplexStream, Arc<Mutex<Vec<u8>>>) {
    let (near, far) = tokio::io::duplex(1 << 16);
    let (mut forth, mut back) = tokio::io::split(far);
    let (mut from, mut to) = raw::socket(address).await.into_split();
    let read = Arc::<Mutex<Vec<u8>>>::default();
    let seen = read.clone();
    spawn(async move { drop(tokio::io::copy(&mut forth, &mut to).await) });
    spawn(async move {
        let mut part = vec![0; 1 << 16];
        while let Ok(count @ 1..) = from.read(&mut part).await {
            seen.lock().unwrap().extend_from_slice(&part[..count]);
            back.write_all(&part[..count]).await.unwrap();
        }
    });
    (near, read)
}

/// A record takes memory while it is sealed. If the largest records had the size of the transport's buffers, the allocator would
/// reuse the memory of records for these buffers, of which hardly more than the first page is ever touched (bar-05 measures it).
#[tokio::test]
async fn records_leave_the_transports_buffers_alone() {
    let authority = Authority::new();
    for version in VERSIONS {
        let relay = authority.relay();
        let (tap, read) = tapped(relay.port()).await;
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
