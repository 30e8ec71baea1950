// SPDX-License-Identifier: Apache-2.0
//! Questions to the relay's admin address while a phase is played.
//!
//! Owns when they are asked, and how long each answer takes. Reads nothing of the answers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use tokio::task::JoinHandle;
use tokio::time::sleep_until;

use super::now;
use super::phase::Ask;
use crate::measure::record::{Distribution, Recorder, Schedule};
use crate::measure::scrape;

/// Questions that are being asked.
pub(super) struct Asking {
    over: Arc<AtomicBool>,
    asked: Vec<(String, JoinHandle<anyhow::Result<Distribution>>)>,
}

impl Asking {
    /// Begins to ask, each path at its rate. A question waits for the answer to the one before.
    pub(super) fn start(admin: Option<SocketAddr>, questions: &[Ask]) -> anyhow::Result<Self> {
        let mut asking = Self {
            over: Arc::default(),
            asked: Vec::new(),
        };
        for question in questions {
            let admin = admin.context("`ask` needs a relay of this program's own")?;
            let asked = ask(admin, question.clone(), asking.over.clone());
            #[expect(clippy::disallowed_methods, reason = "it is waited for in `stop`")]
            asking.asked.push((question.path.clone(), tokio::spawn(asked)));
        }
        Ok(asking)
    }

    /// Waits for the last answers. Returns how long all of them took, and none if nothing was asked.
    pub(super) async fn stop(self, recorder: &Recorder) -> anyhow::Result<Option<Distribution>> {
        self.over.store(true, Ordering::Relaxed);
        let mut all: Option<Distribution> = None;
        for (path, asked) in self.asked {
            let taken = asked.await?.with_context(|| path.clone())?;
            let millis =
                |micros: u64| format!("{:.1} ms", std::time::Duration::from_micros(micros).as_secs_f64() * 1e3);
            let (count, median, max) = (taken.count(), millis(taken.at(0.5)), millis(taken.max()));
            recorder.note(&path, format!("{count} answers, p50 {median}, max {max}"));
            match &mut all {
                Some(all) => all.add(&taken)?,
                None => all = Some(taken),
            }
        }
        Ok(all)
    }
}

async fn ask(admin: SocketAddr, question: Ask, over: Arc<AtomicBool>) -> anyhow::Result<Distribution> {
    let schedule = Schedule::new(now(), question.rate);
    let mut taken = Distribution::new()?;
    let mut turn = 0;
    loop {
        let due = schedule.due(turn);
        sleep_until(due.into()).await;
        // At least one question is asked, however short the phase is.
        if turn > 0 && over.load(Ordering::Relaxed) {
            return Ok(taken);
        }
        let begun = now();
        drop(scrape::get(admin, &question.path).await?);
        taken.record(begun.elapsed());
        // What is late is left out.
        while schedule.due(turn) <= now() {
            turn += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio::sync::oneshot;

    use super::*;

    /// The second answer takes longer than the distance of the questions: those that are due meanwhile are left out.
    #[tokio::test]
    async fn questions_wait_for_answers() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let admin = listener.local_addr().unwrap();
        let (second, is_asked) = oneshot::channel();
        let mut second = Some(second);
        #[expect(clippy::disallowed_methods, reason = "a server runs beside the test")]
        let server = tokio::spawn(async move {
            for turn in 0_u32.. {
                let (mut socket, _) = listener.accept().await.unwrap();
                let mut request = [0; 1024];
                let length = socket.read(&mut request).await.unwrap();
                assert!(request[..length].starts_with(b"GET /x?y HTTP/1.1\r\n"));
                if turn == 1 {
                    second.take().unwrap().send(()).unwrap();
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
                socket.write_all(b"HTTP/1.1 200 OK\r\n\r\nyes").await.unwrap();
            }
        });
        let question = Ask {
            path: "/x?y".to_owned(),
            rate: 100.0,
        };
        let recorder = Recorder::new("here", now()).unwrap();
        let asking = Asking::start(Some(admin), std::slice::from_ref(&question)).unwrap();
        is_asked.await.unwrap();
        let taken = asking.stop(&recorder).await.unwrap().unwrap();
        assert_eq!(taken.count(), 2);
        assert!(taken.max() >= 200_000, "{}", taken.max());
        let nothing = Asking::start(Some(admin), &[]).unwrap();
        assert_eq!(nothing.stop(&recorder).await.unwrap(), None);
        let error = Asking::start(None, &[question]).err().unwrap().to_string();
        assert_eq!(error, "`ask` needs a relay of this program's own");
        server.abort();
    }
}
