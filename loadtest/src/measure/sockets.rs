// SPDX-License-Identifier: Apache-2.0
//! The kernel's memory for the TCP sockets of this machine, read with `sock_diag`: these buffers count as no process's memory.
//! Linux only.

use std::os::fd::OwnedFd;

use anyhow::{Context as _, bail};
use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with};

/// Returns the memory of each connection accepted at `port`, smallest first: the bytes to be read, sent or acknowledged, with the
/// kernel's overhead.
pub(crate) fn bytes_at(port: u16) -> anyhow::Result<Vec<u64>> {
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        Some(SOCK_DIAG),
    )
    .context("the kernel does not report its sockets (sock_diag)")?;
    let mut all = Vec::new();
    // Connections of both versions of IP.
    for family in [AF_INET, AF_INET6] {
        sendto(
            &socket,
            &question(family, port),
            SendFlags::empty(),
            &SocketAddrNetlink::new(0, 0),
        )?;
        while answers(&socket, port, &mut all)? {}
    }
    all.sort_unstable();
    Ok(all)
}

const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const TCP: u8 = 6;
/// `SOCK_DIAG_BY_FAMILY`
const BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST | NLM_F_DUMP`
const DUMP: u16 = 0x301;
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// `INET_DIAG_SKMEMINFO`, and the bit that asks for it.
const MEMORY: u16 = 7;
const ASK_MEMORY: u8 = 1 << (MEMORY - 1);
/// `1 << TCP_ESTABLISHED | 1 << TCP_CLOSE_WAIT | 1 << TCP_FIN_WAIT1`
const STATES: u32 = 1 << 1 | 1 << 8 | 1 << 4;
const HEAD_BYTES: usize = 16;
/// The size of `struct inet_diag_msg`, and the offset of the local port in it.
const MESSAGE_BYTES: usize = 72;
const PORT: usize = 4;
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Encodes a request for all sockets at this port.
fn question(family: u8, port: u16) -> Vec<u8> {
    let mut request = vec![family, TCP, ASK_MEMORY, 0];
    request.extend(STATES.to_ne_bytes());
    request.extend(port.to_be_bytes());
    // The other port, both addresses, the interface: any.
    request.extend([0; 2 + 32 + 4]);
    request.extend([0xff; 8]);
    let length = u32::try_from(HEAD_BYTES + request.len()).unwrap_or_default();
    let mut out = length.to_ne_bytes().to_vec();
    out.extend(BY_FAMILY.to_ne_bytes());
    out.extend(DUMP.to_ne_bytes());
    out.extend([0; 8]);
    out.extend(request);
    out
}

/// Reads one piece of an answer; returns whether there is more.
fn answers(socket: &OwnedFd, port: u16, all: &mut Vec<u64>) -> anyhow::Result<bool> {
    let mut buffer = vec![0; ANSWER_BYTES_MAX];
    let (_, length) = recv(socket, &mut buffer, RecvFlags::empty())?;
    let mut rest = buffer.get(..length).unwrap_or_default();
    while let Some(head) = rest.get(..HEAD_BYTES) {
        let length = usize::try_from(u32_at(head, 0)).unwrap_or_default();
        match u16_at(head, 4) {
            DONE => return Ok(false),
            ERROR => bail!("the kernel does not report its sockets (sock_diag)"),
            _ => {}
        }
        let Some(message) = rest.get(HEAD_BYTES..length) else {
            break;
        };
        let local = message
            .get(PORT..)
            .and_then(<[u8]>::first_chunk)
            .map(|it| u16::from_be_bytes(*it));
        if local == Some(port) {
            all.extend(memory(message.get(MESSAGE_BYTES..).unwrap_or_default()));
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(true)
}

/// Returns the memory of a socket from its attributes.
fn memory(mut attributes: &[u8]) -> Option<u64> {
    while attributes.len() >= 4 {
        let length = usize::from(u16_at(attributes, 0));
        if u16_at(attributes, 2) == MEMORY {
            let figure = |at: usize| u64::from(u32_at(attributes, 4 + 4 * at));
            // rmem_alloc, fwd_alloc, wmem_queued, optmem, backlog
            return Some([0, 4, 5, 6, 7].map(figure).iter().sum());
        }
        attributes = attributes.get(length.max(4).next_multiple_of(4)..)?;
    }
    None
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    let bytes = bytes.get(at..).and_then(<[u8]>::first_chunk);
    bytes.map_or(0, |bytes| u16::from_ne_bytes(*bytes))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let bytes = bytes.get(at..).and_then(<[u8]>::first_chunk);
    bytes.map_or(0, |bytes| u32::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// If a peer does not read, the bytes sent to it are in the kernel, and appear only at the sender's port.
    #[test]
    fn what_nobody_reads_is_the_kernels() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let _peer = TcpStream::connect(address).unwrap();
        let (mut sender, _) = listener.accept().unwrap();
        let [before] = bytes_at(address.port()).unwrap()[..] else {
            panic!("not one connection")
        };
        sender.set_nonblocking(true).unwrap();
        while sender.write(&[0; 65_536]).is_ok() {}
        let [after] = bytes_at(address.port()).unwrap()[..] else {
            panic!("not one connection")
        };
        assert!(before < 10_000 && after > before + 100_000, "{before} {after}");
    }
}
