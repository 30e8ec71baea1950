// SPDX-License-Identifier: Apache-2.0
//! The process of the floor: one task for each connection, which writes the bytes it is given. It counts requests only to know
//! when to write.

use std::ffi::OsString;
use std::io::Read as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, PoisonError, RwLock};

use anyhow::Context as _;
use bytes::Bytes;
use rustix::process::{Signal, set_parent_process_death_signal};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use super::{AFTER, PUSH};
use crate::wire::tls::{self, Identity};

/// The hidden first argument that starts this program as the floor.
pub(crate) const ENTRY: &str = "be-the-floor";

/// The bytes to write.
#[derive(Default)]
struct Script {
    /// Bytes that follow a request of this number on a stream.
    after: RwLock<Vec<(u32, Bytes)>>,
    pushes: RwLock<Vec<Push>>,
    bell: Notify,
}

/// One response for all clients, encoded for connections with one stream, with two, and so on.
type Push = Vec<Bytes>;

/// How many streams may share a connection.
const STREAMS_MAX: u32 = 16;
const HEAD_BYTES: usize = 9;
const PREFACE_BYTES: usize = 24;

/// Runs the floor in this process, which ends when its parent ends.
pub(crate) fn run(args: impl Iterator<Item = OsString>) -> ExitCode {
    let args: Vec<_> = args.collect();
    if set_parent_process_death_signal(Some(Signal::KILL)).is_err() {
        return ExitCode::FAILURE;
    }
    match serve(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve(args: &[OsString]) -> anyhow::Result<()> {
    crate::measure::process::raise_open_files(0)?;
    let address: SocketAddr = args.first().and_then(|it| it.to_str()).context("no address")?.parse()?;
    let acceptor = match args.get(1).zip(args.get(2)) {
        None => None,
        Some((certificate, key)) => {
            let (certificate, key) = (Path::new(certificate), Path::new(key));
            Some(tls::acceptor(
                Identity { certificate, key },
                args.get(3).map(Path::new),
            )?)
        }
    };
    let script = Arc::<Script>::default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let told = Arc::clone(&script);
    std::thread::spawn(move || {
        let _ = listen(&told);
        // The parent process is gone.
        std::process::exit(0);
    });
    runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let listener: TcpListener = socket.listen(4096)?;
        loop {
            let Ok((socket, _)) = listener.accept().await else {
                continue;
            };
            let (script, acceptor) = (Arc::clone(&script), acceptor.clone());
            #[expect(
                clippy::disallowed_methods,
                reason = "a task for each connection is what the floor is"
            )]
            tokio::spawn(async move {
                let _ = socket.set_nodelay(true);
                let _ = match acceptor {
                    None => connection(socket, &script).await,
                    Some(acceptor) => match acceptor.accept(socket).await {
                        Ok(stream) => connection(stream, &script).await,
                        Err(_) => Ok(()),
                    },
                };
            });
        }
    })
}

/// Reads commands from standard input.
fn listen(script: &Script) -> std::io::Result<()> {
    let mut input = std::io::stdin().lock();
    loop {
        let mut head = [0; 9];
        input.read_exact(&mut head)?;
        let [what, a, b, c, d, e, f, g, h] = head;
        let after = u32::from_be_bytes([a, b, c, d]);
        let mut bytes = vec![0; usize::try_from(u32::from_be_bytes([e, f, g, h])).unwrap_or_default()];
        input.read_exact(&mut bytes)?;
        match what {
            AFTER => script
                .after
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .push((after, bytes.into())),
            PUSH => {
                let mut sum = Vec::new();
                let push = (0..STREAMS_MAX).map(|stream| {
                    sum.extend(for_stream(&bytes, stream * 2 + 1));
                    Bytes::from(sum.clone())
                });
                // Connections with more than one stream are rare, so large bodies are encoded for them only on demand.
                let push = if bytes.len() > FOR_ALL_MAX {
                    push.take(1).collect()
                } else {
                    push.collect()
                };
                script.pushes.write().unwrap_or_else(PoisonError::into_inner).push(push);
                script.bell.notify_waiters();
            }
            _ => {}
        }
    }
}

const FOR_ALL_MAX: usize = 64 * 1024;

/// Returns the same frames for another stream.
fn for_stream(frames: &[u8], stream: u32) -> Vec<u8> {
    let (mut out, mut at) = (frames.to_vec(), 0);
    while let Some(head) = out.get_mut(at..at + HEAD_BYTES) {
        let length = frame_length(head);
        if let Some(id) = head.last_chunk_mut::<4>() {
            *id = stream.to_be_bytes();
        }
        at += HEAD_BYTES + length;
    }
    out
}

fn frame_length(head: &[u8]) -> usize {
    let [a, b, c] = head.first_chunk::<3>().copied().unwrap_or_default();
    usize::try_from(u32::from_be_bytes([0, a, b, c])).unwrap_or_default()
}

/// Serves one connection. Flushes after writing, because a buffering stream, such as TLS with a full socket, would keep bytes
/// back.
async fn connection(mut io: impl AsyncRead + AsyncWrite + Unpin, script: &Script) -> std::io::Result<()> {
    let mut sent = script.pushes.read().unwrap_or_else(PoisonError::into_inner).len();
    // Empty settings, and a window that is large enough for everything that clients will send.
    io.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 4, 8, 0, 0, 0, 0, 0, 0x3f, 0, 0, 0])
        .await?;
    let mut peer = Peer::default();
    let mut buffer = vec![0; 4096];
    loop {
        let mut bell = std::pin::pin!(script.bell.notified());
        bell.as_mut().enable();
        loop {
            let streams = peer.requests.len();
            let next = {
                let pushes = script.pushes.read().unwrap_or_else(PoisonError::into_inner);
                pushes.get(sent).map(|push| push.get(streams.wrapping_sub(1)).cloned())
            };
            let Some(next) = next else { break };
            sent += 1;
            if let Some(bytes) = next {
                io.write_all(&bytes).await?;
            }
        }
        io.flush().await?;
        tokio::select! {
            read = io.read(&mut buffer) => {
                let read = read?;
                if read == 0 {
                    return Ok(());
                }
                for bytes in peer.take(buffer.get(..read).unwrap_or_default(), script) {
                    io.write_all(&bytes).await?;
                }
            }
            () = bell => {}
        }
    }
}

/// What a client sent so far.
#[derive(Default)]
struct Peer {
    greeted: bool,
    pending: Vec<u8>,
    /// For each stream the number of requests, and the bytes still to come of the current one.
    requests: Vec<(u32, usize)>,
}

impl Peer {
    /// Returns what to write after these bytes.
    fn take(&mut self, bytes: &[u8], script: &Script) -> Vec<Bytes> {
        self.pending.extend_from_slice(bytes);
        let (mut out, mut answers) = (Vec::new(), Vec::new());
        let mut at = if self.greeted { 0 } else { PREFACE_BYTES };
        if self.pending.len() < at {
            return answers;
        }
        self.greeted = true;
        while let Some(head) = self.pending.get(at..at + HEAD_BYTES) {
            let (length, kind, flags) = (frame_length(head), head.get(3).copied(), head.get(4).copied());
            let stream = head.last_chunk::<4>().map_or(0, |id| u32::from_be_bytes(*id));
            let begin = at + HEAD_BYTES;
            let Some(payload) = self.pending.get(begin..begin + length) else {
                break;
            };
            match (kind, flags) {
                (Some(0), _) => answer(&mut self.requests, stream, payload, script, &mut answers),
                (Some(1), _) => {
                    self.requests.push((0, 0));
                    out.extend(HEADERS.iter().take(5));
                    out.extend(stream.to_be_bytes());
                    out.extend(HEADERS.iter().skip(5));
                }
                // Settings and pings are acknowledged.
                (Some(4), Some(0)) => out.extend([0, 0, 0, 4, 1, 0, 0, 0, 0]),
                (Some(6), Some(0)) => {
                    out.extend([0, 0, 8, 6, 1, 0, 0, 0, 0]);
                    out.extend_from_slice(payload);
                }
                _ => {}
            }
            at = begin + length;
        }
        self.pending.drain(..at.min(self.pending.len()));
        // Acknowledgements and headers go before the responses.
        if !out.is_empty() {
            answers.insert(0, Bytes::from(out));
        }
        answers
    }
}

/// A frame of response headers without its stream: status 200, content-type application/grpc.
const HEADERS: [u8; 25] = [
    0, 0, 20, 1, 4, 0x88, 0x0f, 0x10, 16, b'a', b'p', b'p', b'l', b'i', b'c', b'a', b't', b'i', b'o', b'n', b'/', b'g',
    b'r', b'p', b'c',
];

/// Counts the requests in a data frame, and answers those that the script names.
fn answer(requests: &mut [(u32, usize)], stream: u32, mut payload: &[u8], script: &Script, out: &mut Vec<Bytes>) {
    let place = stream.checked_sub(1).and_then(|id| usize::try_from(id / 2).ok());
    let Some((count, left)) = place.and_then(|place| requests.get_mut(place)) else {
        return;
    };
    while !payload.is_empty() {
        if *left == 0 {
            let Some((head, rest)) = payload.split_first_chunk::<5>() else {
                return;
            };
            let [_, length @ ..] = *head;
            *left = usize::try_from(u32::from_be_bytes(length)).unwrap_or_default();
            payload = rest;
        }
        let taken = payload.len().min(*left);
        *left -= taken;
        payload = payload.get(taken..).unwrap_or_default();
        if *left == 0 {
            *count += 1;
            let after = script.after.read().unwrap_or_else(PoisonError::into_inner);
            for (_, bytes) in after.iter().filter(|(after, _)| after == count) {
                out.push(match stream {
                    1 => bytes.clone(),
                    _ => for_stream(bytes, stream).into(),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::BufStream;

    use super::*;

    /// A slow reader gets everything, even over a stream that keeps bytes until it is flushed.
    #[tokio::test]
    async fn nothing_stays_behind() {
        let script = Script::default();
        let (mut client, server) = tokio::io::duplex(64);
        let serve = connection(BufStream::new(server), &script);
        let read = async {
            let mut settings = [0; 22];
            client.read_exact(&mut settings).await.unwrap();
            // Headers without any field open the stream.
            let mut open = vec![0; PREFACE_BYTES];
            open.extend([0, 0, 0, 1, 4, 0, 0, 0, 1]);
            client.write_all(&open).await.unwrap();
            let mut head = [0; 29];
            client.read_exact(&mut head).await.unwrap();
            let frame = [0, 0, 1, 0, 0, 0, 0, 0, 1, 7];
            script
                .pushes
                .write()
                .unwrap()
                .push(vec![Bytes::copy_from_slice(&frame)]);
            script.bell.notify_waiters();
            let mut pushed = [0; 10];
            client.read_exact(&mut pushed).await.unwrap();
            assert_eq!(pushed, frame);
        };
        tokio::select! {
            end = serve => panic!("{end:?}"),
            done = tokio::time::timeout(Duration::from_secs(10), read) => done.unwrap(),
        }
    }
}
