// SPDX-License-Identifier: Apache-2.0
//! PROXY headers: whatever the bytes, reading ends, takes no byte behind the header, and finds the same again in the header alone.

use std::net::SocketAddr;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use distributary::wire::{ProxyFault, is_proxy_header, proxied};

/// What was read, and how many bytes it took.
fn read(bytes: &[u8]) -> (Result<Option<SocketAddr>, ProxyFault>, usize) {
    let mut rest = bytes;
    let Poll::Ready(found) = pin!(proxied(&mut rest)).poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("bytes in memory are always ready");
    };
    (found, bytes.len() - rest.len())
}

pub(crate) fn run(bytes: &[u8]) {
    let (found, taken) = read(bytes);
    assert!(taken <= 4096, "{taken} bytes");
    let Ok(address) = found else { return };
    let header = &bytes[..taken];
    assert!(is_proxy_header(header));
    let (again, same) = read(header);
    assert_eq!((again.ok(), same), (Some(address), taken));
    for cut in [0, taken / 2, taken - 1] {
        assert!(matches!(read(&header[..cut]).0, Err(ProxyFault::Ended(_))));
    }
}
