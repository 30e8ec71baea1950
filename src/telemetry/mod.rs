// SPDX-License-Identifier: Apache-2.0
//! What the relay tells its operators: log, metrics, traces, health. Owns their names and forms. Decides nothing.

mod adoptions;
mod arrivals;
mod certificates;
mod configuration;
mod convergence;
mod exposition;
mod faults;
mod handshakes;
mod health;
mod holds;
mod labels;
mod line_pace;
mod log;
mod logfmt;
mod metrics;
mod overload;
mod process;
mod snapshots;
mod traces;
mod turns;
mod types;
mod upstream;

pub use adoptions::Adoptions;
pub use arrivals::ArrivalMetrics;
pub use certificates::CertificateMetrics;
pub use configuration::ConfigurationMetrics;
pub use convergence::{Convergence, SPAN_ID, TRACE_ID};
pub use exposition::Exposition;
pub use faults::{FaultSource, Faults};
pub use handshakes::{HandshakeCounters, HandshakeResult};
pub use health::{Health, HealthState, RelayStatus};
pub use holds::{HoldCount, HoldMetrics};
pub use line_pace::{LinePace, LinePaces};
pub use log::{LogError, LogFormat, ProcessLog};
pub use metrics::Metrics;
pub use model::MetricFamily;
pub use overload::OverloadMetrics;
pub use process::{BUILD, COMMIT, VERSION};
/// The form in which Prometheus reads metrics as messages.
pub use prometheus_client::encoding::prometheus_protobuf::prometheus_data_model as model;
pub use snapshots::SnapshotMetrics;
pub use traces::{ChangeCourse, Delivery, Sampler, TracedArrival, TracedChange, TracedNews, Traces, traceparent};
pub use turns::{TurnMetrics, TurnTimes, leave_out};
pub use types::TypeMetrics;
pub use upstream::{CountedStream, FileMetrics, UpstreamMetrics, Upstreams};
