// SPDX-License-Identifier: Apache-2.0
//! Turns an endpoint into a connected stream of bytes.
//!
//! Owns name resolution, the order of attempts and the socket's options. Knows nothing of HTTP.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use rustls_pki_types::ServerName;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use super::clock::now;
use super::failure::Failure;
use crate::clock;
use crate::config::{Credentials, Endpoint, system_path};
use crate::tls::HTTP2;

/// Bytes in both directions, over TCP, TLS or a Unix socket.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Duplex for S {}

/// A connection, and the round-trip time of its transport.
pub struct Connected {
    /// The stream.
    pub io: Box<dyn Duplex>,
    /// How long the peer took to accept it.
    pub round_trip: Duration,
}

/// How long an attempt runs before the next address is tried as well.
const STAGGER: Duration = Duration::from_millis(250);
/// How long connecting may take, over all addresses; the TLS handshake may take as long again.
const CONNECT: Duration = Duration::from_secs(20);

/// Connects to one of the endpoint's addresses, resolved anew each time. The server's certificate must be for `name`, unless
/// the configuration has another `server_name`.
pub async fn connect(
    endpoint: &Endpoint,
    name: &str,
    credentials: &Credentials,
    protocol: &'static [u8],
    keepalive: Duration,
) -> Result<Connected, Failure> {
    let (io, round_trip): (Box<dyn Duplex>, _) = match endpoint {
        Endpoint::Tcp { host, port } => {
            let (stream, round_trip) = tcp(host, *port).await?;
            // The socket works without these options, too.
            let _ = options(&stream, keepalive);
            (Box::new(stream), round_trip)
        }
        Endpoint::Unix(path) => {
            let failed = |source| Failure::Unix {
                path: path.clone(),
                source,
            };
            (
                Box::new(UnixStream::connect(system_path(path)).await.map_err(failed)?),
                Duration::ZERO,
            )
        }
    };
    match credentials {
        Credentials::Insecure => Ok(Connected { io, round_trip }),
        Credentials::Tls(tls) => {
            let host = tls.server_name.as_deref().unwrap_or(name);
            let name = ServerName::try_from(host.to_owned()).map_err(|_| Failure::Tls {
                host: host.to_owned(),
                why: "it is no name that a certificate can have; set `server_name`".to_owned(),
            })?;
            let connector = super::tls::connector(host, tls, protocol).await?;
            let handshake = clock::timeout(CONNECT, connector.connect(name, io)).await;
            let io = handshake
                .ok_or(Failure::Silent(CONNECT))?
                .map_err(|source| Failure::Handshake {
                    host: host.to_owned(),
                    source,
                })?;
            Ok(Connected {
                io: Box::new(io),
                round_trip,
            })
        }
    }
}

/// Checks that the endpoint accepts a connection, without TLS.
pub(super) async fn reach(endpoint: &Endpoint, keepalive: Duration) -> Result<(), Failure> {
    let nobody = Credentials::Insecure;
    connect(endpoint, host(endpoint), &nobody, HTTP2, keepalive)
        .await
        .map(drop)
}

/// Returns the server's name.
pub fn host(endpoint: &Endpoint) -> &str {
    match endpoint {
        Endpoint::Tcp { host, .. } => host,
        Endpoint::Unix(_) => "localhost",
    }
}

/// Tries the addresses in turn: the next one after `STAGGER`, or as soon as an attempt fails. Takes the first that connects.
async fn tcp(host: &str, port: u16) -> Result<(TcpStream, Duration), Failure> {
    let resolved = tokio::net::lookup_host((host, port)).await;
    let mut addresses = resolved.map_err(|source| Failure::Resolve {
        host: host.to_owned(),
        source,
    })?;
    let mut attempts = FuturesUnordered::new();
    let mut last = Failure::NoAddress(host.to_owned());
    let give_up = clock::sleep(CONNECT);
    tokio::pin!(give_up);
    let mut next = addresses.next();
    loop {
        if let Some(address) = next.take() {
            attempts.push(attempt(address));
        } else if attempts.is_empty() {
            return Err(last);
        }
        let stagger = clock::sleep(STAGGER);
        tokio::select! {
            Some((address, tried)) = attempts.next() => match tried {
                Ok(connected) => return Ok(connected),
                Err(source) => last = Failure::Connect { address, source },
            },
            () = stagger => {}
            () = &mut give_up => {
                return Err(Failure::Unreachable { host: host.to_owned(), within: CONNECT });
            }
        }
        next = addresses.next();
    }
}

async fn attempt(address: SocketAddr) -> (SocketAddr, io::Result<(TcpStream, Duration)>) {
    let start: Instant = now();
    let stream = TcpStream::connect(address).await;
    (
        address,
        stream.map(|stream| (stream, now().saturating_duration_since(start))),
    )
}

/// Makes the kernel notice a peer that vanished, even while unacknowledged data is on its way to it.
fn options(stream: &TcpStream, keepalive: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    if keepalive.is_zero() {
        return Ok(());
    }
    let socket = SockRef::from(stream);
    let probes = TcpKeepalive::new().with_time(keepalive).with_interval(keepalive);
    socket.set_tcp_keepalive(&probes)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(keepalive.saturating_mul(2)))?;
    Ok(())
}
