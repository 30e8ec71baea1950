// SPDX-License-Identifier: Apache-2.0
//! `distributary health`.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use super::{file, output, serve};

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
        let (code, out, error) = health(&address);
        assert_eq!((code, out.as_str()), (Some(1), ""));
        assert!(error.starts_with(&format!("no answer from {address}: ")), "{error}");

        let (_relay, address) = start("127.0.0.1:1");
        let (code, out, error) = health(&address);
        assert_eq!((code, out.as_str()), (Some(1), ""));
        assert!(
            error.starts_with(&format!("{address} answers 503: STARTING: ")),
            "{error}"
        );
        let (code, out, _) = output(&["health", "--live", "--admin", &address]);
        assert_eq!(
            (code, out.as_str()),
            (Some(0), "LIVE\n"),
            "it runs, although it is not ready"
        );
    }
}

/// Another program at the address is an error, and its answer is not printed unescaped.
#[test]
fn somebody_else_answers() {
    let (code, _, error) = health("nowhere:port");
    assert_eq!(code, Some(2));
    assert!(error.contains("is not an address"), "{error}");
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
        let (code, out, error) = health(&address);
        assert_eq!((code, out.as_str()), (Some(1), ""));
        assert!(error.contains(word), "{error}");
        other.join().unwrap();
    }
}
