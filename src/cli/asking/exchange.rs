// SPDX-License-Identifier: Apache-2.0
//! One request over one connection, and its answer.
//!
//! Owns the bounds of an exchange. Knows nothing of what is asked.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustls::{ClientConnection, StreamOwned};
use socket2::{Domain, SockAddr, SockRef, Socket, Type};

use super::now;
use crate::config::{Address, system_path};

/// How large an answer may be, and how long it may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    bytes: u64,
    time: Duration,
}

impl Bounds {
    /// For answers of one line. Another program may answer anything.
    pub(crate) const LINE: Self = Self {
        bytes: 4096,
        time: Duration::from_secs(3),
    };
    /// For answers about all clients or all resources.
    pub(crate) const LIST: Self = Self {
        bytes: 256 << 20,
        time: Duration::from_secs(15),
    };

    /// Returns the same with at most this time.
    pub(crate) fn within(self, time: Duration) -> Self {
        Self {
            time: self.time.min(time),
            ..self
        }
    }
}

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(3);

/// A socket that is used until a moment.
struct Bounded<S> {
    socket: S,
    until: Instant,
}

impl<S: AsFd> Bounded<S> {
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.until.saturating_duration_since(now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(Some(left))
    }
}

impl<S: Read + AsFd> Read for Bounded<S> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        SockRef::from(&self.socket).set_read_timeout(self.left()?)?;
        self.socket.read(into)
    }
}

impl<S: Write + AsFd> Write for Bounded<S> {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        SockRef::from(&self.socket).set_write_timeout(self.left()?)?;
        self.socket.write(from)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

/// Sends the request, and returns all that comes until the other side closes the connection.
pub(super) fn exchange(
    admin: &Address,
    tls: Option<ClientConnection>,
    request: &[u8],
    bounds: Bounds,
) -> io::Result<String> {
    let until = now() + bounds.time;
    match admin {
        Address::Socket(address) => {
            let socket = TcpStream::connect_timeout(address, CONNECT.min(bounds.time))?;
            let socket = Bounded { socket, until };
            match tls {
                Some(tls) => converse(StreamOwned::new(tls, socket), request, bounds),
                None => converse(socket, request, bounds),
            }
        }
        Address::Unix(path) => {
            let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
            socket.connect(&SockAddr::unix(system_path(path))?)?;
            let socket = UnixStream::from(socket);
            converse(Bounded { socket, until }, request, bounds)
        }
    }
}

fn converse(mut socket: impl Read + Write, request: &[u8], bounds: Bounds) -> io::Result<String> {
    let mut answer = Vec::new();
    let mut ask = || {
        socket.write_all(request)?;
        (&mut socket).take(bounds.bytes + 1).read_to_end(&mut answer)
    };
    ask().map_err(|error| {
        // The system says "Resource temporarily unavailable".
        let is_late = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
        if !is_late {
            return error;
        }
        let words = format!("it took longer than {:.1?}", bounds.time);
        io::Error::new(io::ErrorKind::TimedOut, words)
    })?;
    if answer.len() as u64 > bounds.bytes {
        let words = format!("the answer has more than {} bytes", bounds.bytes);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, words));
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
