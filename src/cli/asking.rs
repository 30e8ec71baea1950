//! One request to the admin address of a running relay.
//!
//! Owns its limits, and how the address is reached. Knows nothing of what is asked.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use rustls_pki_types::ServerName;
use socket2::{Domain, SockAddr, Socket, Type};

use crate::config::{Address, Identity, system_path};
use crate::tls;

/// How to reach the admin address of a relay.
#[derive(Debug, Args)]
pub(super) struct AdminAccess {
    /// The admin address of the relay: ip:port, [v6]:port or unix:/path
    #[arg(long, value_name = "ADDRESS", env = "DISTRIBUTARY_ADMIN", default_value = "127.0.0.1:9901", value_parser = Address::parse)]
    admin: Address,
    /// With TLS (`admin.tls`): PEM file of the authorities that signed the certificate there
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// PEM file of the certificate to show, if the relay asks for one (`client_ca`)
    #[arg(long, value_name = "FILE", requires_all = ["key", "ca"])]
    cert: Option<PathBuf>,
    /// PEM file of its key
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// The name that the certificate of the relay is for [default: the IP address of --admin]
    #[arg(long, value_name = "NAME", requires = "ca")]
    server_name: Option<String>,
}

/// How long each step may take.
const TIMEOUT: Duration = Duration::from_secs(3);
/// The answer of a relay is one line, but another program may answer anything.
const ANSWER_BYTES_MAX: u64 = 4096;

impl AdminAccess {
    /// Returns the body of an answer with status 200.
    pub(super) fn ask(&self, method: &str, path: &str) -> anyhow::Result<String> {
        let admin = &self.admin;
        let host = match admin {
            Address::Socket(address) => address.to_string(),
            Address::Unix(_) => "localhost".to_owned(),
        };
        let request =
            format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        let tls = self.ca.as_ref().map(|ca| self.tls(ca)).transpose()?;
        let answer = exchange(admin, tls, &request).with_context(|| format!("no answer from {admin}"))?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let Some(status) = head.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)) else {
            bail!("{admin} is not the admin address of a relay: it does not speak HTTP/1.1 (with TLS, write --ca)");
        };
        let said = body.trim_end().escape_debug().to_string();
        if status != "200" {
            bail!("{admin} answers {status}: {said}");
        }
        Ok(said)
    }

    fn tls(&self, ca: &std::path::Path) -> anyhow::Result<ClientConnection> {
        let name = match (&self.server_name, &self.admin) {
            (Some(name), _) => ServerName::try_from(name.clone())?,
            (None, Address::Socket(address)) => ServerName::from(address.ip()),
            (None, Address::Unix(_)) => bail!("a Unix socket has no TLS; remove --ca"),
        };
        let builder = ClientConfig::builder_with_provider(tls::provider())
            .with_safe_default_protocol_versions()?
            .with_root_certificates(tls::authorities(ca)?);
        let config = match (&self.cert, &self.key) {
            (Some(certificate), Some(key)) => {
                let (chain, key) = tls::identity(&Identity {
                    certificate_file: certificate.clone(),
                    private_key_file: key.clone(),
                })?;
                builder.with_client_auth_cert(chain, key)?
            }
            _ => builder.with_no_client_auth(),
        };
        Ok(ClientConnection::new(Arc::new(config), name)?)
    }
}

fn exchange(admin: &Address, tls: Option<ClientConnection>, request: &str) -> io::Result<String> {
    match admin {
        Address::Socket(address) => {
            let socket = TcpStream::connect_timeout(address, TIMEOUT)?;
            socket.set_read_timeout(Some(TIMEOUT))?;
            socket.set_write_timeout(Some(TIMEOUT))?;
            match tls {
                Some(tls) => converse(StreamOwned::new(tls, socket), request),
                None => converse(socket, request),
            }
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
