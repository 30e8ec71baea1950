//! What the relay tells its operators: log, metrics, health. Owns their names and forms. Decides nothing.

mod arrivals;
mod certificates;
mod configuration;
mod families;
mod health;
mod log;
mod metrics;
mod overload;

pub use arrivals::ArrivalMetrics;
pub use certificates::CertificateMetrics;
pub use configuration::ConfigurationMetrics;
pub use health::{Health, HealthState, Status};
pub use log::{Format, Log, LogError};
pub use metrics::{FileMetrics, Metrics, SnapshotMetrics, TypeMetrics, UpstreamMetrics};
pub use overload::OverloadMetrics;
