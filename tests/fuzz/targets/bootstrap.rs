// SPDX-License-Identifier: Apache-2.0
//! Bootstraps that were written for gRPC clients: whatever the text, the check ends and each problem names the variable that the
//! bootstrap is from; one without problems is the same each time.

use distributary::config::{Bootstrap, Config, Flags};

pub(crate) fn run(text: &[u8]) {
    let flags = Flags {
        bootstrap: Some(Bootstrap::Text(String::from_utf8_lossy(text).into_owned())),
        ..Flags::default()
    };
    let (config, problems) = Config::check(b"", "f", &flags).expect("an empty file can be read");
    for problem in &problems {
        assert!(problem.starts_with("GRPC_XDS_BOOTSTRAP_CONFIG"), "{problem}");
    }
    let again = Config::parse("", "f", &flags);
    assert_eq!(again.ok(), problems.is_empty().then_some(config));
}
