//! The way of one signal to its collector.
//!
//! Owns what the log says when exports begin to fail, and when they work again. Knows nothing of what is exported.

use prost::Message;

use super::collector::{Collector, Rejected};
use super::environment::Target;

/// A collector of one signal.
pub(super) struct Outlet {
    signal: &'static str,
    collector: Collector,
    failing: bool,
}

impl Outlet {
    pub(super) const fn new(signal: &'static str, target: Target) -> Self {
        Self {
            signal,
            collector: Collector::new(target),
            failing: false,
        }
    }

    /// Sends a message. Returns the collector's answer, if it took the message.
    pub(super) async fn send<Q, A>(&mut self, message: Q) -> Option<A>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let (signal, endpoint) = (self.signal, self.collector.endpoint());
        match self.collector.send(message).await {
            Ok(answer) => {
                if std::mem::take(&mut self.failing) {
                    tracing::info!(%endpoint, signal, "{signal} are exported again");
                }
                Some(answer)
            }
            Err(Rejected(why)) => {
                if !std::mem::replace(&mut self.failing, true) {
                    tracing::warn!(
                        %endpoint, signal, error = why,
                        "cannot export {signal}; the relay tries again and says when it works"
                    );
                }
                None
            }
        }
    }

    /// Logs that the collector did not take all of a message.
    pub(super) fn took_a_part(&self, rejected: i64, why: &str) {
        if rejected > 0 {
            let (signal, endpoint) = (self.signal, self.collector.endpoint());
            tracing::debug!(%endpoint, signal, rejected, why, "the collector took only a part of the {signal}");
        }
    }
}
