// SPDX-License-Identifier: Apache-2.0
//! The limits of the system, and how many log lines floods cause.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;

use super::{PATIENCE, Relay, SERVE, address_in, ask, file, program, until};

/// A relay that is started with these limits, which are shell commands.
fn under(limits: &str) -> Relay {
    started(limits, program(&SERVE))
}

fn started(limits: &str, relay: Command) -> Relay {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("{limits}; exec \"$0\" \"$@\"")])
        .arg(relay.get_program())
        .args(relay.get_args())
        .stderr(std::process::Stdio::piped());
    Relay::start(shell)
}

fn address(relay: &Relay) -> SocketAddr {
    address_in(&relay.line("listening for clients")).parse().unwrap()
}

/// The relay raises its limit of open files to the hard limit.
#[test]
fn as_many_descriptors_as_the_system_gives() {
    let relay = under("ulimit -S -n 256");
    let line = relay.line("limit of open files");
    assert!(line.contains("before=256"), "{line}");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", relay.child.id())).unwrap();
    let open = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let [soft, hard] = [3, 4].map(|at| open.split_whitespace().nth(at).unwrap());
    assert_eq!(soft, hard);
    assert!(line.contains(&format!("descriptors={hard}")), "{line}");
}

/// At the limit every attempt to accept a connection fails for the same reason, which is logged once a second.
#[test]
fn connections_that_cannot_be_accepted_are_few_lines() {
    let relay = under("ulimit -n 64");
    let address = address(&relay);
    let sockets: Vec<_> = (0..100).map(|_| TcpStream::connect(address).unwrap()).collect();
    let suppressed = || {
        let line = relay.line("cannot accept a connection");
        // It is not there if there were none.
        let count = line
            .split_once("suppressed=")
            .map(|(_, count)| count.split_whitespace());
        count.map_or(0, |mut count| count.next().unwrap().parse::<u64>().unwrap())
    };
    suppressed();
    assert!(suppressed() > 0);
    drop(sockets);
}

/// Visitors who say nothing take a part of the descriptors, and not for long: clients and probes need the others.
#[test]
fn silent_visitors_leave_descriptors_to_clients() {
    let text = "upstream: {xds_servers: [{server_uri: '127.0.0.1:1'}]}\nlisteners: [{address: '127.0.0.1:0'}]\n\
                admin: {address: '127.0.0.1:0'}\nprobes: {address: '127.0.0.1:0'}\n";
    let path = file("silent-visitors.yaml", text);
    let relay = started("ulimit -n 500", program(&["serve", "--config", path.to_str().unwrap()]));
    let admin = address_in(&relay.line("admin address"));
    let probes = address_in(&relay.line("address of the probes"));
    let clients = address(&relay);
    let descriptors = || {
        let open = std::fs::read_dir(format!("/proc/{}/fd", relay.child.id()));
        open.unwrap().count()
    };
    let before = descriptors();
    let silent = |address: &String| {
        let sockets = (0..300).map(|_| TcpStream::connect(address).unwrap());
        sockets.collect::<Vec<_>>()
    };
    let _visitors = [silent(&admin), silent(&probes)];
    for address in [&admin, &probes] {
        assert!(ask(address, "GET /live").starts_with("HTTP/1.1 200 "), "{address}");
    }
    let taken = descriptors().saturating_sub(before);
    assert!((62..=2 * 62 + 2).contains(&taken), "{taken} of 500 descriptors");
    // 300 clients still get in, and nobody has to wait for that.
    let sockets: Vec<_> = (0..300).map(|_| TcpStream::connect(clients).unwrap()).collect();
    until(|| descriptors() >= before + 300, descriptors);
    drop(sockets);
    until(|| descriptors() <= before + 10, descriptors);
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&[a, b, c, kind, flags][..], &stream.to_be_bytes(), payload].concat()
}

/// A client that resets its own streams at once is disconnected; there is no log line for each stream.
#[test]
fn rapid_resets_are_no_lines() {
    let mut relay = Relay::start(program(&SERVE));
    let address = address(&relay);
    // :method POST, :scheme http, :path /, as literals without indexing.
    let block: Vec<u8> = [(":method", "POST"), (":scheme", "http"), (":path", "/")]
        .iter()
        .flat_map(|(name, value)| {
            let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
            [vec![0], text(name), text(value)].concat()
        })
        .collect();
    let reset = |n: u32| {
        let reset = frame(3, 0, 2 * n + 1, &8_u32.to_be_bytes());
        [frame(1, 4, 2 * n + 1, &block), reset].concat()
    };
    let resets: Vec<u8> = (0..200).flat_map(reset).collect();
    for _ in 0..10 {
        let mut socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let preface = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &*frame(4, 0, 0, &[])].concat();
        socket.write_all(&[preface, resets.clone()].concat()).unwrap();
        let mut said = Vec::new();
        // A reset counts as an end.
        drop(socket.read_to_end(&mut said));
    }
    relay.signal("-TERM");
    let lines = relay.rest();
    assert_eq!(relay.child.wait().unwrap().code(), Some(0));
    let wrong: Vec<&String> = lines.iter().filter(|line| line.contains("reached limit")).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}
