// SPDX-License-Identifier: Apache-2.0
//! The watch over the memory of the process.
//!
//! Owns what the log says of it. What is done as memory gets short is decided in `downstream`.

use std::sync::Arc;

use super::memory::Memory;
use crate::config::MemoryLimit;
use crate::downstream::{Action, Shared};

/// The watch.
pub(super) struct Overload {
    shared: Arc<Shared>,
    memory: Memory,
    /// The budget at the last look; none before the first.
    budget: Option<usize>,
    last: Option<Action>,
}

impl Overload {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        let memory = Memory::new();
        if !memory.is_known() {
            tracing::warn!("the memory of the process cannot be read; `limits.memory` has no effect");
        }
        Self {
            shared: shared.clone(),
            memory,
            budget: None,
            last: None,
        }
    }

    /// Does what is necessary, and logs what has changed. To be called about once a second.
    pub(super) fn look(&mut self, limit: MemoryLimit) {
        let memory = self.memory.used(limit);
        if self.budget.replace(memory.max) != Some(memory.max) {
            match memory.max {
                0 => tracing::info!("the memory of the process has no limit"),
                bytes => tracing::info!(bytes, "limit of the memory of the process"),
            }
        }
        let last = self.shared.act(memory);
        let before = std::mem::replace(&mut self.last, last);
        let (used, budget) = (memory.used, memory.max);
        match last {
            Some(action) if before < last => {
                tracing::warn!(
                    used,
                    budget,
                    up_to = action.word(),
                    "memory is short; the relay sheds load"
                );
            }
            Some(action) if before > last => {
                tracing::info!(used, budget, up_to = action.word(), "memory is less short than before");
            }
            None if before.is_some() => tracing::info!(used, budget, "memory is not short any more"),
            Some(_) | None => {}
        }
    }
}
