// SPDX-License-Identifier: Apache-2.0
//! The threads of all attackers.
//!
//! Owns that attackers take no time from the clients that are measured: these have other threads, and the system runs those of attackers only
//! while nobody else wants the processor. Attackers on other machines would take none of it at all.

use std::process::Command;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// The threads of attackers, which end with it.
pub(super) struct Crowd(Option<Runtime>);

impl Crowd {
    pub(super) fn new() -> Self {
        let threads = Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .on_thread_start(idle)
            .build();
        Self(Some(threads.unwrap()))
    }

    pub(super) fn spawn<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.0.as_ref().unwrap().spawn(task)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        // Within a task nobody may wait for threads.
        if let Some(threads) = self.0.take() {
            threads.shutdown_background();
        }
    }
}

/// From now on, this thread gives way to all others.
fn idle() {
    let own = rustix::thread::gettid().as_raw_nonzero().to_string();
    let told = Command::new("chrt").args(["--idle", "--pid", "0", &own]).status();
    assert!(told.is_ok_and(|told| told.success()), "`chrt` of util-linux is needed");
}
