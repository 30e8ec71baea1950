// SPDX-License-Identifier: Apache-2.0
//! What is wrong with files for as long as it is: gauges, `/clusters` and `distributary status`.

use std::path::Path;

use super::{PORTS, Relay, address_in, ask, file, has, metric, output, program, replace};

/// A relay with this configuration, and its admin address.
fn start(name: &str, config: &str) -> (Relay, String) {
    let config = file(&format!("standing-{name}.yaml"), config);
    let relay = Relay::start(program(&["serve", "--config", config.to_str().unwrap()]));
    let admin = address_in(&relay.line("admin address"));
    (relay, admin)
}

/// The configuration of a relay with this source.
fn from(source: &Path) -> String {
    format!(
        "upstream: {{xds_servers: [{{server_uri: 'file://{}'}}]}}\n{PORTS}",
        source.display()
    )
}

/// Checks that `status` has the exit code 1 for this reason alone.
fn assert_status_says(admin: &str, words: &str) {
    let (code, _, error) = output(&["status", "--admin", admin]);
    assert_eq!((code, error.lines().count()), (Some(1), 1), "{error}");
    assert!(error.starts_with(&format!("{admin}: ")), "{error}");
    has(&error, words);
}

/// Checks that nothing is wrong.
fn assert_well(admin: &str) {
    let (code, _, error) = output(&["status", "--admin", admin]);
    assert_eq!((code, error.as_str()), (Some(0), ""));
    assert!(!ask(admin, "GET /clusters").contains("::fault::"));
}

#[test]
fn a_bad_configuration() {
    let resources = file("standing-config-resources.yaml", "resources: []\n");
    let good = from(&resources);
    let (relay, admin) = start("config", &good);
    relay.line("ready: clients can be served");
    assert_well(&admin);
    let config = resources.with_file_name("standing-config.yaml");
    let bad = format!("{good}limits: {{views: many}}\ntimers: {{linger: soon}}\n");
    replace(&config, &bad);
    metric(&admin, "configuration_current 0");
    let words = format!(
        "the configuration is bad; the earlier one stays in effect: {}:4:17: limits.views: ",
        config.display()
    );
    assert_status_says(&admin, &words);
    let fact = format!("#relay::fault::{words}");
    assert!(ask(&admin, "GET /clusters").lines().any(|line| line.starts_with(&fact)));
    assert!(output(&["status", "--admin", &admin]).2.ends_with(" (and 1 more)\n"));
    replace(&config, &good);
    metric(&admin, "configuration_current 1");
    assert_well(&admin);
}

/// Files are counted, not faults, and one that names what another has is bad, too.
#[test]
fn bad_files() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("standing-files");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir(&folder).unwrap();
    let cluster = |timeout: &str| {
        let one = "{\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: a, connect_timeout";
        format!("- {one}: {timeout}}}\n")
    };
    let put = |name: &str, text: &str| replace(&folder.join(name), text);
    put("one.yaml", &cluster("1s"));
    let uri = format!("file://{}", folder.display());
    let (relay, admin) = start("files", &from(&folder));
    relay.line("ready: clients can be served");
    let bad = |count: usize| metric(&admin, &format!("bad_files{{server=\"{uri}\"}} {count}"));
    bad(0);
    assert_well(&admin);
    put("two.yaml", "- {name: 1, nam: 2}\n- 7\n");
    bad(1);
    assert_status_says(&admin, &format!("{}/two.yaml:", folder.display()));
    put("three.yaml", &cluster("2s"));
    bad(2);
    put("one.yaml", "- {");
    bad(3);
    put("one.yaml", &cluster("2s"));
    put("two.yaml", "[]\n");
    bad(0);
    assert_well(&admin);
    std::fs::remove_dir_all(&folder).unwrap();
}
