//! Whether the relay can serve: one status with many readers (probes, gRPC health). It owns the order of the states, and that an
//! operator may say for a while that it cannot; it leaves it to the wiring to know when a state is reached.

use tokio::sync::watch;

/// The status of the relay. What it has reached only ever advances.
#[derive(Debug)]
pub struct Health {
    state: watch::Sender<HealthState>,
}

/// What was reached, and what the operator says.
#[derive(Clone, Copy, Debug)]
pub struct HealthState {
    reached: Status,
    failed: bool,
}

impl HealthState {
    /// What readers are told.
    #[must_use]
    pub const fn status(self) -> Status {
        if self.failed { Status::Draining } else { self.reached }
    }

    /// Whether it stays as it is.
    #[must_use]
    pub const fn is_last(self) -> bool {
        matches!(self.reached, Status::Draining)
    }
}

/// What the relay can do for clients, in the order of its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// No control plane has been reached yet.
    Starting,
    /// It can serve. Losing a control plane later does not end this (G-19).
    Ready,
    /// It is about to stop, or the operator has it say so.
    Draining,
}

impl Health {
    /// A relay that has just started.
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: watch::Sender::new(HealthState {
                reached: Status::Starting,
                failed: false,
            }),
        }
    }

    /// Notes that `status` is reached; what lies behind is not entered again.
    pub fn advance(&self, status: Status) {
        self.state.send_if_modified(|state| {
            let later = status > state.reached;
            if later {
                state.reached = status;
            }
            later
        });
    }

    /// The operator says that it fails, or that it does not any more.
    pub fn fail(&self, failed: bool) {
        self.state
            .send_if_modified(|state| std::mem::replace(&mut state.failed, failed) != failed);
    }

    /// The status now.
    #[must_use]
    pub fn status(&self) -> Status {
        self.state.borrow().status()
    }

    /// How it stands now and whenever that changes.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<HealthState> {
        self.state.subscribe()
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
        assert!(watch.borrow_and_update().is_last());
    }

    /// What is reached while the operator has it fail counts afterwards.
    #[test]
    fn an_operator_has_it_fail_for_a_while() {
        let health = Health::new();
        health.fail(true);
        health.advance(Status::Ready);
        assert!(health.status() == Status::Draining && !health.watch().borrow().is_last());
        let watch = health.watch();
        health.fail(true);
        assert!(!watch.has_changed().unwrap());
        health.fail(false);
        assert_eq!((health.status(), watch.has_changed().unwrap()), (Status::Ready, true));
        health.advance(Status::Draining);
        health.fail(false);
        assert_eq!(health.status(), Status::Draining);
    }
}
