// SPDX-License-Identifier: Apache-2.0
//! One kind of attack, and how its connections run.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

use super::words::another;
use crate::support::certificates::agree;
use crate::support::raw::{self, SETTINGS, WINDOW_UPDATE, frame};

/// Where attackers connect.
#[derive(Clone)]
pub(super) struct Listeners {
    pub(super) plain: SocketAddr,
    pub(super) secure: SocketAddr,
    pub(super) admin: SocketAddr,
    pub(super) trust: Arc<ClientConfig>,
}

/// One kind of attack.
pub(super) struct Attack {
    pub(super) name: &'static str,
    /// How many connections there are at a time.
    pub(super) connections: usize,
    pub(super) hello: Hello,
    pub(super) place: Place,
    /// What is sent for the n-th time on a connection. After the last one the connection is dropped and begun anew.
    pub(super) turn: fn(u32) -> Vec<u8>,
    pub(super) turns: u32,
    pub(super) pause: Duration,
    /// From how many addresses of this machine the connections come, in turn.
    pub(super) addresses: u8,
    /// Whether what the relay sends is read.
    pub(super) reads: bool,
}

/// What it attacks.
#[derive(Clone, Copy)]
pub(super) enum Place {
    Plain,
    /// The listener with TLS.
    Secure,
    /// The admin address.
    Admin,
}

/// How a connection begins.
#[derive(Clone, Copy)]
pub(super) enum Hello {
    Http2,
    Nothing,
}

pub(super) const USUAL: Attack = Attack {
    name: "",
    connections: 4,
    hello: Hello::Http2,
    place: Place::Plain,
    turn: |_| Vec::new(),
    turns: u32::MAX,
    pause: Duration::from_millis(2),
    addresses: 1,
    reads: true,
};

/// From how many addresses of this machine those come who hide behind several.
pub(super) const ADDRESSES: u8 = 100;

/// Connects from one of so many addresses of this machine, each in turn.
pub(super) async fn connect_from(addresses: u8, to: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    if addresses > 1 {
        let nth = another() % u32::from(addresses);
        socket.bind(SocketAddr::from(([127, 0, 0, u8::try_from(2 + nth).unwrap()], 0)))?;
    }
    socket.connect(to).await
}

/// The attackers switch from one attack to the next, and come from many addresses: all attacks come in this time, but none lasts longer
/// than a second.
pub(super) async fn switching(attacks: &'static [Attack], listeners: Listeners, all: Duration) {
    let of_each = (all / u32::try_from(attacks.len()).unwrap()).min(Duration::from_secs(1));
    for attack in attacks.iter().cycle() {
        let mut fleet = JoinSet::new();
        for _ in 0..attack.connections {
            let listeners = listeners.clone();
            let attack = Attack {
                addresses: ADDRESSES,
                ..*attack
            };
            fleet.spawn(async move { attack.run(listeners).await });
        }
        tokio::time::sleep(of_each).await;
    }
}

impl Attack {
    /// Attacks with one connection after the other, until it is dropped.
    pub(super) async fn run(&self, listeners: Listeners) {
        loop {
            // The relay may end the connection at any time.
            drop(self.connection(&listeners).await);
            tokio::time::sleep(self.pause.max(Duration::from_millis(1))).await;
        }
    }

    async fn connection(&self, listeners: &Listeners) -> std::io::Result<()> {
        match self.place {
            Place::Plain => return self.speak(connect_from(self.addresses, listeners.plain).await?).await,
            Place::Admin => return self.speak(TcpStream::connect(listeners.admin).await?).await,
            Place::Secure => {}
        }
        let socket = TcpStream::connect(listeners.secure).await?;
        match self.hello {
            Hello::Http2 => self.speak(agree(&listeners.trust, socket).await?).await,
            Hello::Nothing => self.speak(socket).await,
        }
    }

    async fn speak(&self, socket: impl AsyncRead + AsyncWrite) -> std::io::Result<()> {
        let (mut read, mut write) = tokio::io::split(socket);
        if let Hello::Http2 = self.hello {
            let room = frame(WINDOW_UPDATE, 0, 0, &(1_u32 << 30).to_be_bytes());
            let hello = [raw::PREFACE, &frame(SETTINGS, 0, 0, &[]), &room].concat();
            write.write_all(&hello).await?;
        }
        let sends = async {
            for n in 0..self.turns {
                write.write_all(&(self.turn)(n)).await?;
                write.flush().await?;
                tokio::time::sleep(self.pause).await;
            }
            Ok(())
        };
        let reads = async {
            if self.reads {
                tokio::io::copy(&mut read, &mut tokio::io::sink()).await.map(drop)
            } else {
                std::future::pending().await
            }
        };
        tokio::select! {
            ended = sends => ended,
            ended = reads => ended,
        }
    }
}
