// SPDX-License-Identifier: Apache-2.0
//! The one provider of cryptography.

use std::sync::{Arc, LazyLock};

use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::default_provider;

/// Returns the one provider of cryptography.
#[must_use]
pub fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| Arc::new(default_provider()));
    PROVIDER.clone()
}
