// SPDX-License-Identifier: Apache-2.0
//! What is said of wrong settings and missing files.

use crate::{SERVE, fails};

/// What is no level and no directive is an error: it would hide all lines, errors included.
#[test]
fn a_log_level_is_a_level() {
    for level in ["warning", "info,loud", "distributary=loud"] {
        let args = [&SERVE[..], &["--log-level", level]].concat();
        let error = fails(1, &args, "is not a log level; write error, warn, info");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

/// A cause is said once.
#[test]
fn causes_are_said_once() {
    for args in [
        &["serve", "--config", "/none/relay.yaml"][..],
        &["validate", "/none/relay.yaml"],
        &["get", "cds", "--snapshot", "/none/x.snapshot"],
        &["get", "cds", "--descriptors", "/none/x.pb"],
    ] {
        let error = fails(1, args, "");
        assert_eq!(error.matches("No such file").count(), 1, "{error}");
    }
}
