// SPDX-License-Identifier: Apache-2.0
//! A network between clients and a server: a TCP proxy on this machine, in a thread of its own. What passes can be held back, in
//! one direction or in both, and connections can be cut. It knows nothing of what passes.

use std::net::{Ipv4Addr, SocketAddr};
use std::thread::JoinHandle;

use anyhow::Context as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::LocalSet;

/// A running network. Dropping it cuts all connections and ends its thread.
pub(crate) struct Network {
    /// Where the server is reached through it.
    pub(crate) address: SocketAddr,
    wires: watch::Sender<[Wire; WIRES]>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Which wires something concerns: one bit for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wires(pub(crate) u16);

/// What does not pass for the time being.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stopped {
    #[default]
    Nothing,
    ToServer,
    ToClient,
    Everything,
}

/// A part of the connections: those whose number, divided by [`WIRES`], leaves the wire's. What happens to a wire also happens to
/// connections that come later.
#[derive(Clone, Copy, Debug, Default)]
struct Wire {
    stopped: Stopped,
    /// How often it was cut.
    cuts: u64,
}

/// One direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    ToServer,
    ToClient,
}

/// How many parts the connections are divided into.
pub(crate) const WIRES: usize = 16;
const BUFFER_BYTES: usize = 16 * 1024;

impl Wires {
    pub(crate) const ALL: Self = Self(u16::MAX);

    const fn has(self, wire: usize) -> bool {
        self.0 >> wire & 1 == 1
    }
}

impl Stopped {
    fn stops(self, direction: Direction) -> bool {
        match self {
            Self::Nothing => false,
            Self::ToServer => direction == Direction::ToServer,
            Self::ToClient => direction == Direction::ToClient,
            Self::Everything => true,
        }
    }
}

impl Network {
    /// Starts a network in front of a server, which may come later.
    pub(crate) fn start(server: SocketAddr) -> anyhow::Result<Self> {
        let socket = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port on 127.0.0.1")?;
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        let wires = watch::Sender::new([Wire::default(); WIRES]);
        let (stop, stopped) = oneshot::channel();
        let watched = wires.subscribe();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new().name("network".to_owned()).spawn(move || {
            runtime.block_on(LocalSet::new().run_until(async move {
                tokio::select! {
                    () = accept(socket, server, watched) => {}
                    _ = stopped => {}
                }
            }));
        })?;
        Ok(Self {
            address,
            wires,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Holds back what passes over these wires, until they are told otherwise.
    pub(crate) fn hold(&self, wires: Wires, stopped: Stopped) {
        self.change(wires, |wire| wire.stopped = stopped);
    }

    /// Cuts the connections over these wires; what was held back is lost. Later connections over them are whole.
    pub(crate) fn cut(&self, wires: Wires) {
        self.change(wires, |wire| wire.cuts += 1);
    }

    fn change(&self, wires: Wires, change: impl Fn(&mut Wire)) {
        self.wires.send_modify(|all| {
            let concerned = all.iter_mut().enumerate().filter(|(at, _)| wires.has(*at));
            concerned.for_each(|(_, wire)| change(wire));
        });
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // If the thread panicked, the clients have lost their connections and said so.
            let _ = thread.join();
        }
    }
}

async fn accept(socket: std::net::TcpListener, server: SocketAddr, wires: watch::Receiver<[Wire; WIRES]>) {
    let Ok(listener) = TcpListener::from_std(socket) else {
        return;
    };
    for wire in (0..WIRES).cycle() {
        // The client reports a refused connection, or a missing file descriptor.
        match listener.accept().await {
            Ok((client, _)) => _ = tokio::task::spawn_local(connect(client, server, wire, wires.clone())),
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

/// Passes on what one client and the server send, until both have ended or the wire is cut.
async fn connect(
    mut client: TcpStream,
    server: SocketAddr,
    wire: usize,
    mut wires: watch::Receiver<[Wire; WIRES]>,
) -> Option<()> {
    let of = move |wires: &[Wire; WIRES]| wires.get(wire).copied().unwrap_or_default();
    let before = of(&wires.borrow()).cuts;
    let mut server = TcpStream::connect(server).await.ok()?;
    for socket in [&client, &server] {
        socket.set_nodelay(true).ok()?;
    }
    let (mut forth, mut back) = (wires.clone(), wires.clone());
    {
        let ((from_client, to_client), (from_server, to_server)) = (client.split(), server.split());
        let to_server = pass(from_client, to_server, async || {
            _ = forth.wait_for(|all| !of(all).stopped.stops(Direction::ToServer)).await;
        });
        let to_client = pass(from_server, to_client, async || {
            _ = back.wait_for(|all| !of(all).stopped.stops(Direction::ToClient)).await;
        });
        tokio::select! {
            // If one side is broken, so is the other.
            _ = async { tokio::try_join!(to_server, to_client) } => return None,
            _ = wires.wait_for(|all| of(all).cuts != before) => {}
        }
    }
    for socket in [&client, &server] {
        socket.set_zero_linger().ok()?;
    }
    Some(())
}

/// Passes on one direction. What was read, the end included, waits until it may pass.
async fn pass(mut from: ReadHalf<'_>, mut to: WriteHalf<'_>, mut free: impl AsyncFnMut()) -> std::io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let length = from.read(&mut buffer).await?;
        free().await;
        match buffer.get(..length) {
            Some(bytes @ [_, ..]) => to.write_all(bytes).await?,
            Some([]) | None => return to.shutdown().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    use super::*;

    /// A client and its server with a network between them.
    fn pair() -> (Network, TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let network = Network::start(listener.local_addr().unwrap()).unwrap();
        let client = TcpStream::connect(network.address).unwrap();
        let (server, _) = listener.accept().unwrap();
        for socket in [&client, &server] {
            socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        }
        (network, client, server)
    }

    fn passes(mut from: &TcpStream, mut to: &TcpStream) {
        from.write_all(b"x").unwrap();
        to.read_exact(&mut [0]).unwrap();
    }

    /// Whether nothing arrives for a moment.
    fn is_quiet(mut socket: &TcpStream) -> bool {
        socket.set_nonblocking(true).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        let quiet = matches!(socket.read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock);
        socket.set_nonblocking(false).unwrap();
        quiet
    }

    #[test]
    fn what_is_held_comes_later() {
        let (network, mut client, server) = pair();
        passes(&client, &server);
        network.hold(Wires::ALL, Stopped::ToServer);
        passes(&server, &client);
        client.write_all(b"x").unwrap();
        assert!(is_quiet(&server));
        network.hold(Wires::ALL, Stopped::Nothing);
        (&server).read_exact(&mut [0]).unwrap();
    }

    #[test]
    fn a_cut_ends_only_what_is_cut() {
        let (network, mut client, mut server) = pair();
        network.cut(Wires(0b1110));
        passes(&client, &server);
        network.cut(Wires(0b0001));
        for socket in [&mut client, &mut server] {
            assert!(!matches!(socket.read(&mut [0]), Ok(1..)));
        }
    }

    #[test]
    fn an_end_is_passed_on() {
        let (_network, client, mut server) = pair();
        drop(client);
        assert_eq!(server.read(&mut [0]).unwrap(), 0);
    }
}
