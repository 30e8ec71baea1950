//! `distributary health`: asks a relay whether it is ready, where there is no shell and no curl to ask with.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;

use crate::config::Address;

/// Ask a running relay whether clients can be served: prints what /ready says; the exit code is 0 if they can
#[derive(Debug, Args)]
pub(super) struct Health {
    /// The admin address of the relay: ip:port, [v6]:port or unix:/path
    #[arg(long, value_name = "ADDRESS", env = "DISTRIBUTARY_ADMIN", default_value = "127.0.0.1:9901", value_parser = Address::parse)]
    admin: Address,
}

/// How long each step may take.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Its answer is a line; another program's may be anything.
const ANSWER_BYTES_MAX: u64 = 4096;
const REQUEST: &[u8] = b"GET /ready HTTP/1.1\r\nhost: relay\r\nconnection: close\r\n\r\n";

impl Health {
    pub(super) fn run(self, out: &mut impl Write) -> anyhow::Result<()> {
        let answer = ask(&self.admin).with_context(|| format!("no answer from {}", self.admin))?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let Some(status) = head.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)) else {
            bail!(
                "{} is not the admin address of a relay: it does not speak HTTP/1.1",
                self.admin
            );
        };
        let said = body.trim_end().escape_debug();
        if status != "200" {
            bail!("{} answers {status}: {said}", self.admin);
        }
        writeln!(out, "{said}")?;
        Ok(())
    }
}

fn ask(admin: &Address) -> io::Result<String> {
    match admin {
        Address::Socket(address) => {
            let socket = TcpStream::connect_timeout(address, TIMEOUT)?;
            socket.set_read_timeout(Some(TIMEOUT))?;
            socket.set_write_timeout(Some(TIMEOUT))?;
            converse(socket)
        }
        Address::Unix(path) => {
            let socket = UnixStream::connect(path)?;
            socket.set_read_timeout(Some(TIMEOUT))?;
            socket.set_write_timeout(Some(TIMEOUT))?;
            converse(socket)
        }
    }
}

fn converse(mut socket: impl Read + Write) -> io::Result<String> {
    socket.write_all(REQUEST)?;
    let mut answer = Vec::new();
    socket.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
