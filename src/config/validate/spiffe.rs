// SPDX-License-Identifier: Apache-2.0
//! Where `spiffe` may be written. `workload` reads it.

use std::path::PathBuf;

use crate::config::{CertificateFiles, Supply};

/// The relay's certificate, and whom it trusts; none where nothing says so.
pub(super) type Supplies = (Option<Supply<CertificateFiles>>, Option<Supply<PathBuf>>);

pub(super) const NOT_BOTH: &str = "`spiffe` brings the certificate and its key; remove one of them";
