// SPDX-License-Identifier: Apache-2.0
//! Control planes that do what no control plane should, each for an authority of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use distributary::proto::envoy::service::discovery::v3::{DeltaDiscoveryResponse, DiscoveryResponse, Resource};
use distributary::proto::google::protobuf::Any;
use distributary::wire::message;
use h2::SendStream;
use prost::Message as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{EDS, spawn};

/// What a control plane does.
pub(super) struct Plane {
    pub(super) authority: &'static str,
    /// The scheme of the relay's connection.
    scheme: &'static str,
    does: Does,
}

/// A control plane that has started.
pub(super) struct Running {
    /// Its entry in the relay's list of authorities.
    pub(super) entry: String,
    /// How often it has answered, or has heard a request that it does not answer.
    pub(super) answers: Arc<AtomicUsize>,
}

#[derive(Clone, Copy)]
enum Does {
    /// Says something new 5,000 times a second.
    Floods,
    /// Sends one message of 100 MB.
    Swells,
    /// Sends a million resources for which nobody has asked.
    Multiplies,
    /// Sends a million entries in one response, each empty or tiny.
    Crumbles,
    /// Sends bytes without a meaning instead of messages.
    Garbles,
    /// Answers polls with what is no JSON.
    Babbles,
    /// Hears everything, and answers nothing.
    Listens,
}

/// The authority of the control plane that answers nothing.
pub(super) const MUTE: &str = "listens";

pub(super) const PLANES: &[Plane] = &[
    Plane::new("floods", "", Does::Floods),
    Plane::new("swells", "", Does::Swells),
    Plane::new("multiplies", "", Does::Multiplies),
    Plane::new("crumbles", "", Does::Crumbles),
    Plane::new("garbles", "", Does::Garbles),
    Plane::new("babbles", "rest+http://", Does::Babbles),
    Plane::new(MUTE, "", Does::Listens),
];

const SWOLLEN: u32 = 100 << 20;
const MULTITUDE: usize = 1_000_000;
/// Resources in one response.
const AT_ONCE: usize = 10_000;
const TICK: Duration = Duration::from_millis(10);
/// Responses in one tick.
const FLOOD: usize = 50;

/// A name under an authority.
pub(super) fn name(authority: &str, id: &str) -> String {
    format!("xdstp://{authority}/envoy.config.endpoint.v3.ClusterLoadAssignment/{id}")
}

impl Plane {
    const fn new(authority: &'static str, scheme: &'static str, does: Does) -> Self {
        Self {
            authority,
            scheme,
            does,
        }
    }

    /// Starts it.
    pub(super) async fn start(&self) -> Running {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address: SocketAddr = listener.local_addr().unwrap();
        let Self {
            authority,
            scheme,
            does,
        } = *self;
        let answers = Arc::new(AtomicUsize::new(0));
        let count = answers.clone();
        spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                // The relay may end the connection at any time.
                let count = count.clone();
                if let Does::Babbles = does {
                    spawn(async move { drop(babble(socket, &count).await) });
                } else {
                    spawn(async move { drop(converse(socket, does, count).await) });
                }
            }
        });
        Running {
            entry: format!("{authority}: {{xds_servers: [{{server_uri: '{scheme}{address}'}}]}}"),
            answers,
        }
    }
}

/// Answers each poll with what is no JSON, whatever it asks.
async fn babble(mut socket: TcpStream, count: &AtomicUsize) -> std::io::Result<()> {
    let body = "{\"resources\": [[[[\u{1}".repeat(1000);
    loop {
        let mut poll = [0; 4096];
        if socket.read(&mut poll).await? == 0 {
            return Ok(());
        }
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length:";
        let answer = format!("{head} {}\r\n\r\n{body}", body.len());
        socket.write_all(answer.as_bytes()).await?;
        count.fetch_add(1, Ordering::Relaxed);
    }
}

async fn converse(socket: TcpStream, does: Does, count: Arc<AtomicUsize>) -> Result<(), h2::Error> {
    let mut connection = h2::server::handshake(socket).await?;
    while let Some(call) = connection.accept().await {
        let (request, mut respond) = call?;
        let (delta, count) = (request.uri().path().contains("Delta"), count.clone());
        spawn(async move {
            // The call is read, so that the relay can send.
            let (_, mut requests) = request.into_parts();
            let Some(Ok(_)) = requests.data().await else { return };
            let head = http::Response::builder().header("content-type", "application/grpc");
            let Ok(stream) = respond.send_response(head.body(()).unwrap(), false) else {
                return;
            };
            let reads = async {
                while let Some(Ok(bytes)) = requests.data().await {
                    drop(requests.flow_control().release_capacity(bytes.len()));
                }
            };
            tokio::select! {
                _ = answer(stream, does, delta, &count) => {}
                () = reads => {}
            }
        });
    }
    Ok(())
}

/// Answers until the relay ends the call.
async fn answer(mut stream: SendStream<Bytes>, does: Does, delta: bool, count: &AtomicUsize) -> Result<(), h2::Error> {
    for turn in 0_usize.. {
        match does {
            Does::Floods => {
                for nth in 0..FLOOD {
                    let version = turn * FLOOD + nth;
                    send(&mut stream, &response(&[name("floods", "a")], version, delta)).await?;
                }
            }
            Does::Swells if turn == 0 => {
                let [a, b, c, d] = SWOLLEN.to_be_bytes();
                send(&mut stream, &[0, a, b, c, d]).await?;
            }
            Does::Swells => send(&mut stream, &[0; 1 << 18]).await?,
            Does::Multiplies => {
                let from = turn * AT_ONCE % MULTITUDE;
                let names = (from..from + AT_ONCE).map(|nth| name("multiplies", &nth.to_string()));
                send(&mut stream, &response(&names.collect::<Vec<_>>(), turn, delta)).await?;
            }
            Does::Crumbles => send(&mut stream, &crumbs(turn, delta)).await?,
            Does::Listens => {
                count.fetch_add(1, Ordering::Relaxed);
                std::future::pending::<()>().await;
            }
            Does::Garbles | Does::Babbles => send(&mut stream, &message(&[0xff; 1000])).await?,
        }
        count.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(TICK).await;
    }
    Ok(())
}

/// A response with these endpoints, in the dialect of the call.
fn response(names: &[String], version: usize, delta: bool) -> Bytes {
    let body = |name: &String| Any {
        type_url: EDS.to_owned(),
        value: [&[0x0a, u8::try_from(name.len()).unwrap()][..], name.as_bytes()]
            .concat()
            .into(),
    };
    let (version, nonce, type_url) = (version.to_string(), version.to_string(), EDS.to_owned());
    if delta {
        let resource = |name: &String| Resource {
            name: name.clone(),
            version: version.clone(),
            resource: Some(body(name)),
            ..Default::default()
        };
        let response = DeltaDiscoveryResponse {
            resources: names.iter().map(resource).collect(),
            type_url,
            nonce,
            ..Default::default()
        };
        return message(&response.encode_to_vec());
    }
    let response = DiscoveryResponse {
        resources: names.iter().map(body).collect(),
        version_info: version,
        type_url,
        nonce,
        ..Default::default()
    };
    message(&response.encode_to_vec())
}

/// A response with very many entries of two to four bytes, in the dialect of the call.
fn crumbs(turn: usize, delta: bool) -> Bytes {
    let whole = response(&[name("crumbles", "a")], turn, delta);
    let entry: &[u8] = [&[0x12, 0][..], &[0x12, 2, 0x1a, 0]][turn % 2];
    message(&[whole.get(5..).unwrap(), &entry.repeat(MULTITUDE)].concat())
}

/// Sends as fast as the relay reads.
async fn send(stream: &mut SendStream<Bytes>, bytes: &[u8]) -> Result<(), h2::Error> {
    for part in bytes.chunks(1 << 16) {
        stream.reserve_capacity(part.len());
        let mut room = 0;
        while room < part.len() {
            match std::future::poll_fn(|context| stream.poll_capacity(context)).await {
                Some(more) => room = more?,
                None => return Err(h2::Reason::CANCEL.into()),
            }
        }
        stream.send_data(Bytes::copy_from_slice(part), false)?;
    }
    Ok(())
}
