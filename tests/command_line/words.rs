//! What is said of wrong settings and missing files.

use crate::{SERVE, file, output};

/// What is no level and no directive is an error: it would hide all lines, errors included.
#[test]
fn a_log_level_is_a_level() {
    for level in ["warning", "info,loud", "distributary=loud"] {
        let (code, _, error) = output(&[&SERVE[..], &["--log-level", level]].concat());
        assert_eq!(code, Some(1), "{level}");
        assert!(
            error.contains("is not a log level; write error, warn, info") && error.lines().count() == 1,
            "{error}"
        );
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
        let (code, _, error) = output(args);
        assert_eq!(code, Some(1), "{args:?}");
        assert_eq!(error.matches("No such file").count(), 1, "{error}");
    }
}

/// Files that the relay reads later are looked at as well, all in one go.
#[test]
fn validate_reads_what_is_named() {
    let missing = file(
        "missing.yaml",
        "upstream:\n  xds_servers:\n    - server_uri: file:///nowhere/xds.yaml\n    - server_uri: cp:1\n      channel_creds:\n        - \
         {type: tls, config: {ca_certificate_file: /nowhere/ca.pem}}\ndescriptors: [/nowhere/x.pb]\nsnapshot: {dir: /dev/null}\n",
    );
    let (code, out, error) = output(&["validate", missing.to_str().unwrap()]);
    assert_eq!((code, out.as_str()), (Some(1), ""), "{error}");
    for words in [
        "descriptors: /nowhere/x.pb: ",
        "server file:///nowhere/xds.yaml: /nowhere/xds.yaml: cannot be read: ",
        "server cp:1: /nowhere/ca.pem: cannot be read: ",
        "snapshot.dir: /dev/null is not a directory",
    ] {
        assert!(error.contains(words), "{words} is not in {error}");
    }
    assert_eq!(error.lines().count(), 4, "{error}");
}
