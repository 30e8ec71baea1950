// SPDX-License-Identifier: Apache-2.0
//! The pages of the admin address about the process, of a program that runs.

use serde_json::Value;

use crate::{ask, file, has, serve, until};

fn get(admin: &str, request: &str) -> (String, String) {
    let answer = ask(admin, request);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap();
    (status.to_owned(), body.to_owned())
}

/// A relay that listens in two ways says where, and what it runs with; its log follows an order at once.
#[test]
fn the_process_shows_itself() {
    let socket = std::env::temp_dir().join(format!("distributary-pages-{}.sock", std::process::id()));
    let socket = socket.to_str().unwrap();
    let text = format!(
        "node: {{id: relay-7, cluster: edge}}\nupstream: {{xds_servers: [{{server_uri: cp:1}}]}}\n\
         admin: {{address: '127.0.0.1:0'}}\nlisteners: [{{address: '127.0.0.1:0'}}, {{address: 'unix:{socket}'}}]\n\
         timers: {{drain: 7s}}\n"
    );
    let path = file("pages.yaml", &text);
    let path = path.to_str().unwrap();
    let (relay, admin, first) = serve(&["--log-format", "json", "--config", path]);
    relay.line("listening for clients");

    let listeners = || get(&admin, "GET /listeners").1;
    let both = format!("listeners[0]::{first}\nlisteners[1]::{socket}\n");
    until(|| listeners() == both, listeners);
    let info: Value = serde_json::from_str(&get(&admin, "GET /server_info").1).unwrap();
    assert_eq!(info["state"], "PRE_INITIALIZING", "{info}");
    assert_eq!(info["node"]["id"], "relay-7", "{info}");
    let options = &info["command_line_options"];
    let shown = ["config_path", "drain_time", "log_level"].map(|key| options[key].clone());
    assert_eq!(shown, [path, "7s", "info"], "{info}");
    let memory: Value = serde_json::from_str(&get(&admin, "GET /memory").1).unwrap();
    let physical: u64 = memory["total_physical_bytes"].as_str().unwrap().parse().unwrap();
    assert!(physical > 1_000_000, "{memory}");

    let (status, said) = get(&admin, "POST /logging?admin=debug");
    assert_eq!(status, "200");
    has(&said, "  admin: debug\n");
    has(&said, "  app: info\n");
    relay.line("the log level is changed by an order");
    let _ = get(&admin, "GET /live");
    relay.line("admin request");
    has(
        &get(&admin, "POST /logging").1,
        "filter: info,distributary::admin=debug\n",
    );
    assert_eq!(get(&admin, "POST /logging?level=loud").0, "400");
    assert_eq!(get(&admin, "GET /logging?level=debug").0, "400");
}
