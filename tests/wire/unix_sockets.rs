//! Unix domain sockets as listeners.

use std::io;

use distributary::wire::Listener;
use distributary::xds::Dialect;

use crate::lifetimes::subscriber;
use crate::support::{CDS, PATIENCE, Plan, Relay, until};

/// A Unix domain socket serves like a port; the relay replaces a socket file only if no process listens on it.
#[tokio::test]
async fn unix_sockets() {
    let folder = std::env::temp_dir().join(format!("distributary-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("relay.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "the dead process leaves its file");
    let relay = Relay::with(|plan: &mut Plan| plan.unix = Some(path.clone()));
    relay.put(CDS, &["a"], "body");
    let client = relay.connect().await;
    assert_eq!(
        subscriber(&client, Dialect::Delta, CDS, "a").await.take().await.bodies,
        ["body"]
    );

    let taken = Listener::unix(&path).unwrap_err();
    assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
    let file = folder.join("file");
    std::fs::write(&file, "precious").unwrap();
    assert_eq!(Listener::unix(&file).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");

    relay.begin_drain(PATIENCE);
    until(|| !path.exists(), || "the socket's file stays".to_owned()).await;
    std::fs::remove_dir_all(&folder).unwrap();
}
