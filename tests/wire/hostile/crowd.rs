// SPDX-License-Identifier: Apache-2.0
//! The threads of all attackers.
//!
//! Owns that attackers take no time from the clients that are measured: these have other threads, and the system prefers those. Attackers
//! on other machines would take none of the processor at all.

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// The threads of attackers, which end with it.
pub(super) struct Crowd(Option<Runtime>);

/// How much less than others the threads count for the system.
const NICE: i32 = 10;

impl Crowd {
    pub(super) fn new() -> Self {
        let threads = Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .on_thread_start(|| {
                let _ = rustix::process::nice(NICE);
            })
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
