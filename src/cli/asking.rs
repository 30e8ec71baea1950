//! One request to the admin address of a running relay.
//!
//! Owns its limits. Knows nothing of what is asked.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context as _, bail};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::config::{Address, system_path};

/// How long each step may take.
const TIMEOUT: Duration = Duration::from_secs(3);
/// The answer of a relay is one line, but another program may answer anything.
const ANSWER_BYTES_MAX: u64 = 4096;

/// Returns the body of an answer with status 200.
pub(super) fn ask(admin: &Address, method: &str, path: &str) -> anyhow::Result<String> {
    let host = match admin {
        Address::Socket(address) => address.to_string(),
        Address::Unix(_) => "localhost".to_owned(),
    };
    let request = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    let answer = exchange(admin, &request).with_context(|| format!("no answer from {admin}"))?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let Some(status) = head.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)) else {
        bail!("{admin} is not the admin address of a relay: it does not speak HTTP/1.1");
    };
    let said = body.trim_end().escape_debug().to_string();
    if status != "200" {
        bail!("{admin} answers {status}: {said}");
    }
    Ok(said)
}

fn exchange(admin: &Address, request: &str) -> io::Result<String> {
    match admin {
        Address::Socket(address) => {
            let socket = TcpStream::connect_timeout(address, TIMEOUT)?;
            socket.set_read_timeout(Some(TIMEOUT))?;
            socket.set_write_timeout(Some(TIMEOUT))?;
            converse(socket, request)
        }
        Address::Unix(path) => {
            let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
            socket.connect(&SockAddr::unix(system_path(path))?)?;
            let socket = UnixStream::from(socket);
            socket.set_read_timeout(Some(TIMEOUT))?;
            socket.set_write_timeout(Some(TIMEOUT))?;
            converse(socket, request)
        }
    }
}

fn converse(mut socket: impl Read + Write, request: &str) -> io::Result<String> {
    socket.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    socket.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
