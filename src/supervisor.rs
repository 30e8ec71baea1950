// SPDX-License-Identifier: Apache-2.0
//! What the service manager is told that has started the relay: systemd, by the protocol of `sd_notify(3)`.
//!
//! Owns the messages. Decides nothing: the wiring says when which is due. Without a service manager, nothing is sent.

use std::ffi::OsStr;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

use socket2::{Domain, SockAddr, Socket, Type};

use crate::config::system_path;

/// The service manager, if there is one.
#[derive(Debug)]
pub struct Supervisor {
    socket: Option<UnixDatagram>,
    /// Whether it expects signs of life.
    watches: bool,
}

impl Supervisor {
    /// Finds the service manager that the environment names.
    #[must_use]
    pub fn of_environment() -> Self {
        let name = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty());
        let socket = name.and_then(|name| match connect(&name) {
            Ok(socket) => Some(socket),
            Err(error) => {
                tracing::warn!(socket = ?name, %error, "the service manager cannot be told anything");
                None
            }
        });
        let meant = |pid: String| pid == std::process::id().to_string();
        let watches = std::env::var_os("WATCHDOG_USEC").is_some() && std::env::var("WATCHDOG_PID").is_ok_and(meant);
        Self { socket, watches }
    }

    /// Says that clients can connect, after the start or after a reading of the configuration.
    pub fn ready(&self) {
        self.say("READY=1");
    }

    /// Says that the configuration is read again.
    pub fn reloading(&self) {
        self.say("RELOADING=1");
    }

    /// Says that the relay is about to end, within this time.
    pub fn stopping(&self, within: Duration) {
        self.say(&format!("STOPPING=1\nEXTEND_TIMEOUT_USEC={}", within.as_micros()));
    }

    /// Says what the relay does, for people.
    pub fn status(&self, text: &str) {
        self.say(&format!("STATUS={text}"));
    }

    /// Gives a sign of life, if one is expected. To be called once a second.
    pub fn alive(&self) {
        if self.watches {
            self.say("WATCHDOG=1");
        }
    }

    fn say(&self, message: &str) {
        if let Some(socket) = &self.socket
            && let Err(error) = socket.send(message.as_bytes())
        {
            tracing::debug!(%error, message, "the service manager does not listen");
        }
    }
}

/// Connects to a socket: a path, or `@name` for an abstract name.
fn connect(name: &OsStr) -> io::Result<UnixDatagram> {
    let socket = Socket::new(Domain::UNIX, Type::DGRAM, None)?;
    socket.connect(&SockAddr::unix(system_path(Path::new(name)))?)?;
    // A service manager that does not read must not stop the relay.
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}
