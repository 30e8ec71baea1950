// SPDX-License-Identifier: Apache-2.0
//! The metrics of certificates.
//!
//! Owns their names and what they mean. Reads no files.

use std::collections::BTreeMap;
use std::path::PathBuf;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::labels::{Labels, WordCounters, register};

/// The metrics of certificates.
#[derive(Clone, Debug)]
pub struct CertificateMetrics {
    /// Times that the files of a listener had changed and were put to use.
    pub read: Counter,
    /// Times that changed files of a listener could not be used.
    pub not_read: Counter,
    expiry: Family<Labels<1>, Gauge>,
}

impl CertificateMetrics {
    #[rustfmt::skip]
    pub(super) fn register(own: &mut Registry) -> Self {
        let reloads = WordCounters::new("result", "used bad").register(own, "certificate_reloads", "Times that the TLS files of a listener had changed, and whether they could be used");
        Self {
            read: reloads.of("used"),
            not_read: reloads.of("bad"),
            expiry: register(own, "certificate_expiry_timestamp_seconds", "When the first certificate in a file ends, in seconds since 1970", Family::default()),
        }
    }

    /// Sets when the first certificate of each file ends, in seconds since 1970. Files that are not among them are not shown.
    pub fn show_ends(&self, ends: &BTreeMap<PathBuf, u64>) {
        self.expiry.clear();
        for (path, end) in ends {
            let gauge = self.expiry.get_or_create(&[("path", path.display().to_string())]);
            gauge.set(i64::try_from(*end).unwrap_or(i64::MAX));
        }
    }
}
