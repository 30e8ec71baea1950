// SPDX-License-Identifier: Apache-2.0
//! Why an export failed, and what becomes of what it had.
//!
//! Owns which answers of a collector are worth a second try, how long a collector asks to be left alone, and the words for the log. Does
//! not wait, and drops nothing.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use http::HeaderMap;
use http::header::RETRY_AFTER;
use prost::Message as _;
use tonic::{Code, Status};

use crate::proto::google::rpc;
use crate::upstream::{Failure, reason};

/// Why a collector did not take a message.
#[derive(Debug)]
pub(super) enum CollectorRefusal {
    /// There is no connection.
    Unreachable(Failure),
    /// The connection broke before an answer.
    Broken(String),
    /// There was no answer in time.
    Late(Duration),
    /// The collector says so.
    Answered(String, Answer),
    /// The request cannot be written.
    Unwritten(String),
}

/// Whether the same message may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Later; after this time, if the collector has said one.
    Later(Option<Duration>),
    /// Never: the collector would say the same again.
    Never,
}

/// The most that is shown of what a collector says.
const WORDS: usize = 200;
/// How the type of a pause ends in the details of a gRPC status.
const RETRY_INFO: &str = "/google.rpc.RetryInfo";
/// The longest pause that a collector may ask for.
const PAUSE: Duration = Duration::from_secs(600);

impl CollectorRefusal {
    /// Returns what an HTTP answer with an error means.
    pub(super) fn http(status: http::StatusCode, headers: &HeaderMap, body: &[u8]) -> Self {
        let verdict = match status.as_u16() {
            429 | 502..=504 => Answer::Later(retry_after(headers)),
            _ => Answer::Never,
        };
        Self::Answered(format!("HTTP status {status}: {}", words(body)), verdict)
    }

    pub(super) const fn verdict(&self) -> Answer {
        match self {
            Self::Unreachable(_) | Self::Broken(_) | Self::Late(_) => Answer::Later(None),
            Self::Answered(_, verdict) => *verdict,
            Self::Unwritten(_) => Answer::Never,
        }
    }
}

impl fmt::Display for CollectorRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(failure) => failure.fmt(f),
            Self::Late(timeout) => write!(f, "no answer within {timeout:?}"),
            Self::Broken(why) | Self::Answered(why, _) | Self::Unwritten(why) => f.write_str(why),
        }
    }
}

impl From<Failure> for CollectorRefusal {
    fn from(failure: Failure) -> Self {
        Self::Unreachable(failure)
    }
}

impl From<hyper::Error> for CollectorRefusal {
    fn from(error: hyper::Error) -> Self {
        Self::Broken(reason(&error))
    }
}

impl From<tonic::transport::Error> for CollectorRefusal {
    fn from(error: tonic::transport::Error) -> Self {
        Self::Broken(reason(&error))
    }
}

/// The answers after which a client asks again.
#[rustfmt::skip]
const LATER: [Code; 6] = [
    Code::Cancelled, Code::DeadlineExceeded, Code::Aborted, Code::OutOfRange, Code::Unavailable, Code::DataLoss,
];

impl From<Status> for CollectorRefusal {
    fn from(status: Status) -> Self {
        // A status that was made from an error of the transport is none of the collector's.
        if let Some(error) = status.source() {
            return Self::Broken(reason(error));
        }
        let asked = retry_info(status.details());
        let code = status.code();
        let later = LATER.contains(&code) || code == Code::ResourceExhausted && asked.is_some();
        let verdict = if later { Answer::Later(asked) } else { Answer::Never };
        let said = words(status.message().as_bytes());
        Self::Answered(format!("gRPC status {}: {said}", i32::from(code)), verdict)
    }
}

/// Returns the pause in an HTTP answer. Dates are not read: the clocks of two machines differ.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(PAUSE))
}

/// Returns the pause in the details of a gRPC status.
fn retry_info(details: &[u8]) -> Option<Duration> {
    let details = rpc::Status::decode(details).ok()?.details;
    let any = details.iter().find(|any| any.type_url.ends_with(RETRY_INFO))?;
    let delay = rpc::RetryInfo::decode(&*any.value).ok()?.retry_delay?;
    let delay = Duration::new(u64::try_from(delay.seconds).ok()?, u32::try_from(delay.nanos).ok()?);
    Some(delay.min(PAUSE))
}

/// Returns the beginning of what a collector says.
fn words(said: &[u8]) -> String {
    let shown = said.get(..WORDS).unwrap_or(said);
    String::from_utf8_lossy(shown).trim().to_owned()
}
