// SPDX-License-Identifier: Apache-2.0
//! The PROXY header, in which a balancer states from where a connection comes.
//!
//! Owns how much is read: the header, and no byte behind it. Does not know who may send one, nor how long it may take.

use std::io;
use std::net::SocketAddr;

use proxy_header::{ParseConfig, Protocol, ProxyHeader};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Why there is no good header.
#[derive(Debug, thiserror::Error)]
pub enum ProxyFault {
    /// The connection ended, or failed, before the end of the header.
    #[error("the connection ended before the end of the PROXY header: {0}")]
    Ended(io::Error),
    /// The connection begins with something else.
    #[error(
        "the connection does not begin with a PROXY header; switch it on in the balancer, or take its address out of \
             `proxy_protocol.from`"
    )]
    Missing,
    /// The header is too long.
    #[error("the PROXY header has more than {0} bytes")]
    Long(usize),
    /// The header is neither of version 1 nor of version 2.
    #[error("the PROXY header is malformed")]
    Malformed,
}

/// What a header of version 1 begins with.
const VERSION_1: &[u8] = b"PROXY ";
/// What a header of version 2 begins with.
const VERSION_2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// The shortest header: `PROXY UNKNOWN` and the end of the line.
const BYTES_MIN: usize = 15;
/// The longest header of version 1.
const LINE_BYTES_MAX: usize = 107;
/// The fixed part of version 2.
const FIXED_BYTES: usize = 16;
/// The most bytes of version 2 that are read. Balancers add names of certificates and of endpoints, but no more.
const BYTES_MAX: usize = 4096;

const CONFIG: ParseConfig = ParseConfig {
    include_tlvs: false,
    allow_v1: true,
    allow_v2: true,
};

impl ProxyFault {
    /// Returns the fault as one word, for the metric.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Ended(_) => "closed",
            Self::Missing => "missing",
            Self::Long(_) => "too_long",
            Self::Malformed => "malformed",
        }
    }
}

/// Whether these first bytes of a connection are a PROXY header.
#[must_use]
pub fn is_proxy_header(begun: &[u8]) -> bool {
    begun.starts_with(VERSION_1) || begun.starts_with(VERSION_2)
}

/// Reads the header with which a connection begins. Returns the client's address, or none if the balancer itself is the client, as
/// for its health checks.
///
/// # Errors
/// When there is no good header. The connection is of no use then.
pub async fn proxied(socket: &mut (impl AsyncRead + Unpin)) -> Result<Option<SocketAddr>, ProxyFault> {
    let mut header = vec![0; BYTES_MIN];
    socket.read_exact(&mut header).await.map_err(ProxyFault::Ended)?;
    if header.starts_with(VERSION_1) {
        while !header.ends_with(b"\r\n") {
            if header.len() == LINE_BYTES_MAX {
                return Err(ProxyFault::Long(LINE_BYTES_MAX));
            }
            // The end of the line is not known, and what follows it is for others.
            header.push(socket.read_u8().await.map_err(ProxyFault::Ended)?);
        }
    } else if header.starts_with(VERSION_2) {
        header.push(socket.read_u8().await.map_err(ProxyFault::Ended)?);
        let length = header.last_chunk().map_or(0, |length| u16::from_be_bytes(*length));
        let whole = FIXED_BYTES + usize::from(length);
        if whole > BYTES_MAX {
            return Err(ProxyFault::Long(BYTES_MAX));
        }
        header.resize(whole, 0);
        let rest = header.get_mut(FIXED_BYTES..).unwrap_or_default();
        socket.read_exact(rest).await.map_err(ProxyFault::Ended)?;
    } else {
        return Err(ProxyFault::Missing);
    }
    parse(&header)
}

/// Returns the client's address in a whole header.
fn parse(header: &[u8]) -> Result<Option<SocketAddr>, ProxyFault> {
    let (parsed, length) = ProxyHeader::parse(header, CONFIG).map_err(|_| ProxyFault::Malformed)?;
    if length != header.len() {
        return Err(ProxyFault::Malformed);
    }
    match parsed.proxied_address() {
        None => Ok(None),
        Some(stated) if stated.protocol == Protocol::Stream => Ok(Some(stated.source)),
        Some(_) => Err(ProxyFault::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version_2(command: u8, family: u8, addresses: &[u8]) -> Vec<u8> {
        let length = u16::try_from(addresses.len()).unwrap().to_be_bytes();
        [VERSION_2, &[command, family], &length, addresses].concat()
    }

    /// Returns what was read, and how many bytes are left.
    async fn read(mut bytes: &[u8]) -> (Result<Option<String>, &'static str>, usize) {
        let found = proxied(&mut bytes).await;
        let found = found.map(|address| address.map(|address| address.to_string()));
        (found.map_err(|fault| fault.reason()), bytes.len())
    }

    #[tokio::test]
    async fn headers_and_nothing_behind_them() {
        let four = [10, 0, 0, 7, 10, 0, 0, 8, 0x1f, 0x90, 0, 80];
        let six = [[0x20, 1, 0xd, 0xb8].as_slice(), &[0; 28], &[0x1f, 0x90, 0, 80]].concat();
        let more = [four.as_slice(), &[4, 0, 200], &[0; 200]].concat();
        for (header, address) in [
            (
                b"PROXY TCP4 10.0.0.7 10.0.0.8 8080 80\r\n".to_vec(),
                Some("10.0.0.7:8080"),
            ),
            (
                b"PROXY TCP6 2001:db8:: :: 8080 80\r\n".to_vec(),
                Some("[2001:db8::]:8080"),
            ),
            (b"PROXY UNKNOWN\r\n".to_vec(), None),
            (b"PROXY UNKNOWN ffff::1 ffff::2 65535 65535\r\n".to_vec(), None),
            (version_2(0x21, 0x11, &four), Some("10.0.0.7:8080")),
            (version_2(0x21, 0x21, &six), Some("[2001:db8::]:8080")),
            (version_2(0x21, 0x11, &more), Some("10.0.0.7:8080")),
            (version_2(0x20, 0, &[]), None),
            (version_2(0x20, 0x11, &four), None),
            (version_2(0x21, 0x31, &[0; 216]), None),
        ] {
            assert!(is_proxy_header(&header));
            for behind in [&b"PRI * HTTP/2.0\r\n"[..], b""] {
                let (found, left) = read(&[&header, behind].concat()).await;
                assert_eq!((found, left), (Ok(address.map(str::to_owned)), behind.len()));
            }
            for cut in 0..header.len() {
                let (found, left) = read(&header[..cut]).await;
                assert_eq!((found, left), (Err("closed"), 0), "{cut}");
            }
        }
    }

    #[tokio::test]
    async fn other_bytes_are_faults() {
        let four = [10, 0, 0, 7, 10, 0, 0, 8, 0x1f, 0x90, 0, 80];
        let long = [b"PROXY TCP4 ".as_slice(), &[b'1'; 65_536]].concat();
        for (bytes, reason) in [
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), "missing"),
            (b"\x16\x03\x01 a client hello".to_vec(), "missing"),
            (b"PROXYxTCP4 10.0.0.7 10.0.0.8 8080 80\r\n".to_vec(), "missing"),
            (b"PROXY TCP4 10.0.0.7 10.0.0.8 80800 80\r\n".to_vec(), "malformed"),
            (b"PROXY TCP4 a.example.com 10.0.0.8 8080 80\r\n".to_vec(), "malformed"),
            (b"PROXY TCP4 10.0.0.7 10.0.0.8 8080 80 \r\n".to_vec(), "malformed"),
            (b"PROXY TCP9 10.0.0.7 10.0.0.8 8080 80\r\n".to_vec(), "malformed"),
            (long, "too_long"),
            (version_2(0x21, 0x11, &four[..11]), "malformed"),
            (version_2(0x21, 0x12, &four), "malformed"),
            (version_2(0x31, 0x11, &four), "malformed"),
            (version_2(0x22, 0x11, &four), "malformed"),
            (version_2(0x21, 0x11, &[0; 65_535]), "too_long"),
        ] {
            assert_eq!(read(&bytes).await.0, Err(reason), "{}", bytes.escape_ascii());
        }
    }
}
