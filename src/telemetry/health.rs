//! Whether the relay can serve: one status with many readers (probes, gRPC health). It owns the order of the states,
//! and leaves it to the wiring to know when one is reached.

use tokio::sync::watch;

/// The status of the relay. It only ever advances.
#[derive(Debug)]
pub struct Health {
    status: watch::Sender<Status>,
}

/// What the relay can do for clients, in the order of its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// No control plane has been reached yet.
    Starting,
    /// It can serve. Losing a control plane later does not end this (G-19).
    Ready,
    /// It is about to stop.
    Draining,
}

impl Health {
    /// A relay that has just started.
    #[must_use]
    pub fn new() -> Self {
        Self {
            status: watch::Sender::new(Status::Starting),
        }
    }

    /// Notes that `status` is reached; what lies behind is not entered again.
    pub fn advance(&self, status: Status) {
        self.status.send_if_modified(|current| {
            let later = status > *current;
            if later {
                *current = status;
            }
            later
        });
    }

    /// The status now.
    #[must_use]
    pub fn status(&self) -> Status {
        *self.status.borrow()
    }

    /// The status now and whenever it changes.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Status> {
        self.status.subscribe()
    }
}

impl Default for Health {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_never_goes_back() {
        let health = Health::new();
        assert_eq!(health.status(), Status::Starting);
        health.advance(Status::Ready);
        assert_eq!(health.status(), Status::Ready);
        health.advance(Status::Draining);
        let mut watch = health.watch();
        health.advance(Status::Ready);
        assert_eq!(health.status(), Status::Draining);
        assert!(!watch.has_changed().unwrap());
        assert_eq!(*watch.borrow_and_update(), Status::Draining);
    }
}
