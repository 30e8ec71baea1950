// SPDX-License-Identifier: Apache-2.0
//! An agent with a SPIFFE Workload API on a Unix socket, in a thread of its own: whoever reads from it may block the thread of the
//! test.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use bytes::Bytes;
use h2::server::SendResponse;
use prost::Message as _;
use proto::spiffe::workload::{X509svid, X509svidResponse};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{oneshot, watch};

use crate::spawn;

/// An agent that gives everybody the same; dropping it closes its socket and all streams.
pub struct Agent {
    socket: PathBuf,
    answer: watch::Sender<Answer>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What each stream gets, at once and whenever it changes.
#[derive(Clone, Debug)]
pub enum Answer {
    Message(Vec<u8>),
    /// No process is registered: the call ends.
    Nobody,
}

const METHOD: &str = "/SpiffeWorkloadAPI/FetchX509SVID";
const INVALID_ARGUMENT: (u16, &str) = (3, "no workload.spiffe.io");
const PERMISSION_DENIED: (u16, &str) = (7, "no identity issued");

impl Agent {
    pub fn start(socket: &Path, answer: Answer) -> Self {
        let listener = std::os::unix::net::UnixListener::bind(socket).unwrap();
        listener.set_nonblocking(true).unwrap();
        let (answer, answers) = watch::channel(answer);
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_all().build().unwrap();
            runtime.block_on(async {
                tokio::select! {
                    () = listen(listener, answers) => {}
                    _ = stopped => {}
                }
            });
        });
        Self {
            socket: socket.to_owned(),
            answer,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    pub fn send(&self, answer: Answer) {
        self.answer.send_replace(answer);
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
        drop(std::fs::remove_file(&self.socket));
    }
}

impl Answer {
    pub fn of(svids: Vec<X509svid>) -> Self {
        let response = X509svidResponse {
            svids,
            ..X509svidResponse::default()
        };
        Self::Message(response.encode_to_vec())
    }
}

async fn listen(listener: std::os::unix::net::UnixListener, answers: watch::Receiver<Answer>) {
    let listener = UnixListener::from_std(listener).unwrap();
    let answers = Arc::new(answers);
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        spawn(converse(socket, answers.clone()));
    }
}

async fn converse(socket: UnixStream, answers: Arc<watch::Receiver<Answer>>) {
    let mut connection = h2::server::handshake(socket).await.unwrap();
    while let Some(Ok((request, respond))) = connection.accept().await {
        let known = request.uri().path() == METHOD
            && request
                .headers()
                .get("workload.spiffe.io")
                .is_some_and(|value| value == "true");
        if known {
            spawn(serve(respond, answers.as_ref().clone()));
        } else {
            end(respond, INVALID_ARGUMENT);
        }
    }
}

/// Ends a call without a message.
fn end(mut respond: SendResponse<Bytes>, (code, words): (u16, &str)) {
    let head = http::Response::builder()
        .header("content-type", "application/grpc")
        .header("grpc-status", code)
        .header("grpc-message", words);
    respond.send_response(head.body(()).unwrap(), true).unwrap();
}

async fn serve(mut respond: SendResponse<Bytes>, mut answers: watch::Receiver<Answer>) {
    if matches!(*answers.borrow(), Answer::Nobody) {
        return end(respond, PERMISSION_DENIED);
    }
    let head = http::Response::builder().header("content-type", "application/grpc");
    let mut stream = respond.send_response(head.body(()).unwrap(), false).unwrap();
    loop {
        let answer = answers.borrow_and_update().clone();
        let Answer::Message(message) = answer else { return };
        let length = u32::try_from(message.len()).unwrap().to_be_bytes();
        let frame = [&[0][..], &length, &message].concat();
        // The other side may have given up.
        if stream.send_data(frame.into(), false).is_err() || answers.changed().await.is_err() {
            return;
        }
    }
}
