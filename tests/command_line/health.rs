// SPDX-License-Identifier: Apache-2.0
//! `distributary health`.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use super::{fails, file, output, prints, serve};

fn health(admin: &str) -> (Option<i32>, String, String) {
    output(&["health", "--admin", admin])
}

/// The answer of `/ready` determines the exit code, over TCP and over a Unix socket.
#[test]
fn it_is_what_ready_says() {
    let resources = file("healthy.yaml", "resources: []\n");
    let socket = format!("unix:{}/health.sock", env!("CARGO_TARGET_TMPDIR"));
    for admin in ["127.0.0.1:0", &*socket] {
        let start = |upstream: &str| {
            let (relay, address, _) = serve(&["--upstream", upstream, "--listen", "127.0.0.1:0", "--admin", admin]);
            (relay, address)
        };
        let (relay, address) = start(&format!("file://{}", resources.display()));
        assert!((0..1000).any(|_| health(&address).0 == Some(0)), "not ready");
        assert_eq!(health(&address), (Some(0), "READY\n".to_owned(), String::new()));
        drop(relay);
        let asked = ["health", "--admin", &address];
        fails(1, &asked, &format!("no answer from {address}: "));

        let (_relay, address) = start("127.0.0.1:1");
        let asked = ["health", "--admin", &address];
        fails(1, &asked, &format!("{address} answers 503: STARTING: "));
        // It runs, although it is not ready.
        assert_eq!(prints(&["health", "--live", "--admin", &address]), "LIVE\n");
    }
}

/// Another program at the address is an error, and its answer is not printed unescaped.
#[test]
fn somebody_else_answers() {
    fails(2, &["health", "--admin", "nowhere:port"], "is not an address");
    for (says, word) in [
        (&b"SSH-2.0-x\r\n"[..], "does not speak HTTP"),
        (b"HTTP/1.1 500 no\r\n\r\n\x1b[31mred", "\\u{1b}[31mred"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let other = std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                socket.read_exact(&mut byte).unwrap();
                request.extend(byte);
            }
            socket.write_all(says).unwrap();
        });
        fails(1, &["health", "--admin", &address], word);
        other.join().unwrap();
    }
}
