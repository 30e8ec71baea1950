// SPDX-License-Identifier: Apache-2.0
//! What systemd is told: when the relay serves, reads its configuration again, lives, and ends.

use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::PathBuf;
use std::time::Duration;

use crate::{PATIENCE, Relay, SERVE, file, program};

/// The socket of a service manager.
struct Manager {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Manager {
    fn new(name: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        // One of an earlier run.
        let _ = std::fs::remove_file(&path);
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { socket, path }
    }

    /// How long it waits for a message.
    fn waits(&self, time: Duration) {
        self.socket.set_read_timeout(Some(time)).unwrap();
    }

    fn next(&self) -> String {
        let mut message = [0; 4096];
        let length = self.socket.recv(&mut message).unwrap();
        String::from_utf8(message.get(..length).unwrap().to_vec()).unwrap()
    }

    /// Waits for a message that begins so; returns it and those before it.
    fn until(&self, beginning: &str) -> (String, Vec<String>) {
        let mut before = Vec::new();
        loop {
            let message = self.next();
            if message.starts_with(beginning) {
                return (message, before);
            }
            before.push(message);
        }
    }
}

/// The value of a variable in a message.
fn number(message: &str, name: &str) -> u64 {
    let mut lines = message.lines().filter_map(|line| line.split_once('='));
    let (_, value) = lines.find(|(found, _)| *found == name).unwrap();
    value.parse().unwrap()
}

#[test]
fn it_is_told_what_happens() {
    let manager = Manager::new("manager.sock");
    let text = "upstream: {xds_servers: [{server_uri: cp:1}]}\nadmin: {address: '127.0.0.1:0'}\nlisteners: [{address: '127.0.0.1:0'}]\n\
                timers: {drain_announce: 3s, drain: 40s}\n";
    let path = file("supervised.yaml", text);
    let mut command = program(&["serve", "--config", path.to_str().unwrap()]);
    command.env("NOTIFY_SOCKET", &manager.path);
    let mut relay = Relay::start(command);
    let (_, before) = manager.until("READY=1");
    let status = |message: &String| message.starts_with("STATUS=");
    assert!(before.iter().all(status), "{before:?}");
    relay.line("listening for clients");
    let (status, _) = manager.until("STATUS=");
    assert_eq!(status, "STATUS=no control plane has been reached yet");

    // A good configuration and a bad one: the state ends, because the relay serves on.
    for text in [text, "nonsense"] {
        std::fs::write(&path, text).unwrap();
        relay.signal("-HUP");
        manager.until("RELOADING=1");
        manager.until("READY=1");
    }
    relay.signal("-TERM");
    let (stopping, before) = manager.until("STOPPING=1");
    assert_eq!(number(&stopping, "EXTEND_TIMEOUT_USEC"), 53_000_000);
    // Nobody has asked for it.
    assert!(!before.iter().any(|message| message.starts_with("WATCHDOG")));
    assert_eq!(relay.child.wait().unwrap().code(), Some(0));
}

/// Signs of life come only if they are meant for this process. A socket may have an abstract name.
#[test]
fn signs_of_life_are_for_who_asks() {
    let name = format!("distributary-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let socket = UnixDatagram::bind_addr(&address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let manager = Manager {
        socket,
        path: format!("@{name}").into(),
    };
    let start = |pid: &str| {
        // The shell becomes the relay, so that both have one number.
        let line = format!("WATCHDOG_PID={pid} exec \"$0\" \"$@\"");
        let mut command = std::process::Command::new("sh");
        command
            .args(["-c", &line, env!("CARGO_BIN_EXE_distributary")])
            .args(SERVE);
        command
            .env("NOTIFY_SOCKET", &manager.path)
            .env("WATCHDOG_USEC", "3000000");
        command.stderr(std::process::Stdio::piped());
        Relay::start(command)
    };
    let watched = start("$$");
    for _ in 0..2 {
        manager.until("WATCHDOG=1");
    }
    drop(watched);
    manager.waits(Duration::from_millis(500));
    while manager.socket.recv(&mut [0; 4096]).is_ok() {}

    let _other = start("1");
    manager.waits(PATIENCE);
    manager.until("READY=1");
    manager.waits(Duration::from_millis(2500));
    let mut message = [0; 4096];
    let silence = loop {
        match manager.socket.recv(&mut message) {
            Ok(_) => assert!(!message.starts_with(b"WATCHDOG")),
            Err(error) => break error.kind(),
        }
    };
    assert!(matches!(silence, ErrorKind::WouldBlock | ErrorKind::TimedOut));
}

/// A socket that is not there is no reason not to serve.
#[test]
fn a_manager_that_is_gone_is_no_error() {
    let mut command = program(&SERVE);
    command.env("NOTIFY_SOCKET", "/nowhere/notify.sock");
    let relay = Relay::start(command);
    relay.line("the service manager cannot be told anything");
    relay.line("listening for clients");
}
