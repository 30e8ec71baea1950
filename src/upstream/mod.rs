// SPDX-License-Identifier: Apache-2.0
//! The shell around the upstream machines: it sends what a view wants to a control plane and publishes the answers in the view.
//!
//! Owns connections, streams and the pauses between them. Knows nothing of clients, and never waits for one.

mod access;
mod ads_stream;
mod away;
mod channel;
mod clock;
mod connect;
mod contact;
mod dialer;
mod doors;
mod error_line;
mod failure;
mod files;
mod frames;
mod health_question;
mod holding;
mod inbox;
mod inflating;
mod io_monitor;
mod leg;
mod merged;
mod outbox;
mod overtime;
mod probe;
mod record;
mod reports;
mod rest;
mod status;
mod target;
mod tls;
mod token;
mod traced;
mod way;
mod writer;

pub use access::ClassFiles;
pub use connect::{Connected, Duplex, connect, host};
pub use failure::{Failure, reason};
pub use files::{
    Dictionary, FileChanges, FileContents, FileFormat, FileSet, FileWants, FileWriter, Files, FilesStatus, ParsedFile,
    Stated, Twice,
};
pub use frames::Farewell;
pub use holding::FindOtherViews;
pub use record::ServerRecord;
pub use rest::{PollLeg, PollQuestion, Poller, RestServer};
pub use status::{StreamPhase, StreamStatus};
pub use target::{CallHead, ServerTarget, UpstreamSettings};
pub use tls::secured;
pub use way::ViewStreams;
pub use writer::{Talk, Writer};
