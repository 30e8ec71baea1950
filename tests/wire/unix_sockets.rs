// SPDX-License-Identifier: Apache-2.0
//! Unix domain sockets as listeners.

use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::PathBuf;

use distributary::config::SocketFile;
use distributary::wire::Listener;
use distributary::xds::Dialect;

use crate::lifetimes::subscriber;
use crate::support::{CDS, PATIENCE, Plan, Relay, until};

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("distributary-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

async fn serves(relay: &Relay) {
    relay.put(CDS, &["a"], "body");
    let client = relay.connect().await;
    let mut one = subscriber(&client, Dialect::Delta, CDS, "a").await;
    assert_eq!(one.take().await.bodies, ["body"]);
}

/// A Unix domain socket serves like a port; the relay replaces a socket file only if no process listens on it.
#[tokio::test]
async fn unix_sockets() {
    let folder = folder("unix");
    let path = folder.join("relay.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "the dead process leaves its file");
    let relay = Relay::with(|plan: &mut Plan| plan.unix = Some(path.clone()));
    serves(&relay).await;

    let usual = SocketFile::default();
    let taken = Listener::unix(&path, &usual).unwrap_err();
    assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
    let file = folder.join("file");
    std::fs::write(&file, "precious").unwrap();
    let taken = Listener::unix(&file, &usual).unwrap_err();
    assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");

    relay.begin_drain(PATIENCE);
    until(|| !path.exists(), || "the socket's file stays").await;
    std::fs::remove_dir_all(&folder).unwrap();
}

/// An abstract name has no file, and is free again at once.
#[tokio::test]
async fn abstract_names() {
    let path = PathBuf::from(format!("@distributary/{}", std::process::id()));
    let relay = Relay::with(|plan: &mut Plan| plan.unix = Some(path.clone()));
    serves(&relay).await;
    let usual = SocketFile::default();
    let taken = Listener::unix(&path, &usual).unwrap_err();
    assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
    assert!(!path.exists());
    relay.begin_drain(PATIENCE);
    let free = || Listener::unix(&path, &usual).is_ok();
    until(free, || "the name is taken").await;
}

/// The file has its mode and its owner, whatever the process's own are; without a good owner there is no socket.
#[tokio::test]
async fn modes_and_owners() {
    let folder = folder("modes");
    let path = folder.join("relay.sock");
    let own = std::fs::metadata(&folder).unwrap();
    for mode in [0o600, 0o660, 0o777] {
        let file = SocketFile {
            mode: Some(mode),
            owner: Some(own.uid().to_string()),
            group: Some(own.gid().to_string()),
        };
        let listener = Listener::unix(&path, &file).unwrap();
        let made = std::fs::metadata(&path).unwrap();
        assert_eq!(made.permissions().mode() & 0o777, mode);
        assert_eq!((made.uid(), made.gid()), (own.uid(), own.gid()));
        drop(listener);
    }
    let file = SocketFile {
        group: Some("no such group".to_owned()),
        ..SocketFile::default()
    };
    let error = Listener::unix(&path, &file).unwrap_err();
    let words = "`no such group` is not in /etc/group; write its number";
    assert_eq!(error.to_string(), words);
    assert!(!path.exists(), "the socket's file stays");
    std::fs::remove_dir_all(&folder).unwrap();
}
