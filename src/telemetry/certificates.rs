//! The metrics of certificates.
//!
//! Owns what they mean; `families` owns their names. Reads no files.

use std::collections::BTreeMap;
use std::path::PathBuf;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::metrics::Metrics;

/// The metrics of certificates.
#[derive(Clone, Debug, Default)]
pub struct CertificateMetrics {
    /// Times that the files of a listener had changed and were put to use.
    pub read: Counter,
    /// Times that changed files of a listener could not be used.
    pub not_read: Counter,
    pub(super) expiry: Family<[(&'static str, String); 1], Gauge>,
}

impl CertificateMetrics {
    /// Sets when the first certificate of each file ends, in seconds since 1970. Files that are not among them are not shown.
    pub fn show_ends(&self, ends: &BTreeMap<PathBuf, u64>) {
        self.expiry.clear();
        for (path, end) in ends {
            let gauge = self.expiry.get_or_create(&[("path", path.display().to_string())]);
            gauge.set(i64::try_from(*end).unwrap_or(i64::MAX));
        }
    }
}

impl Metrics {
    /// Returns the metrics of certificates.
    #[must_use]
    pub fn certificates(&self) -> CertificateMetrics {
        self.families.certificates()
    }
}
