// SPDX-License-Identifier: Apache-2.0
//! An agent with a SPIFFE Workload API on a Unix socket, in a thread of its own: whoever reads from it may block the thread of the
//! test.

use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use prost::Message as _;
use proto::spiffe::workload::{X509svid, X509svidResponse};
use tokio::net::UnixListener;
use tokio::sync::{oneshot, watch};
use tonic::Code;

use crate::plane::{Call, Plane};
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
    let mut plane = Plane::on_unix(UnixListener::from_std(listener).unwrap());
    while let Some(call) = plane.next_call().await {
        let asks = call
            .headers
            .get("workload.spiffe.io")
            .is_some_and(|value| value == "true");
        if asks && call.path == METHOD {
            spawn(serve(call, answers.clone()));
        } else {
            call.finish(Code::InvalidArgument, "no workload.spiffe.io");
        }
    }
}

async fn serve(mut call: Call, mut answers: watch::Receiver<Answer>) {
    loop {
        let answer = answers.borrow_and_update().clone();
        let Answer::Message(message) = answer else {
            return call.finish(Code::PermissionDenied, "no identity issued");
        };
        call.send_bytes(&message);
        if answers.changed().await.is_err() {
            return;
        }
    }
}
