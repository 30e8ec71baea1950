// SPDX-License-Identifier: Apache-2.0
//! Classes with servers of their own, and shares of the clients with others: what they mean, and what is wrong with bad ones.

use crate::{good, parse};

const TOP: &str = "upstream: {xds_servers: [{server_uri: 'a:1'}, {server_uri: 'a:2'}]}\n";

/// G-22, G-23: behind the servers of a canary are those of all others; a class without any reads what all read.
#[test]
fn what_they_mean() {
    let config = good(&format!(
        "{TOP}canary: {{share: 5%, xds_servers: [{{server_uri: 'b:1'}}, {{server_uri: 'a:2'}}]}}\nclasses:\n\
         - {{match: {{cluster: one}}}}\n\
         - {{match: {{cluster: two}}, xds_servers: [{{server_uri: 'c:1'}}]}}\n\
         - {{match: {{cluster: three}}, canary: {{share: 0.5%, xds_servers: [{{server_uri: 'b:1'}}]}}}}\n"
    ));
    let upstream = &config.upstream;
    let uris = |list: &[usize]| -> Vec<&str> { list.iter().map(|at| upstream.servers[*at].uri.as_str()).collect() };
    let said = |rule: Option<usize>| {
        let (usual, canary) = upstream.lists(rule);
        let canary = canary.map(|canary| (canary.to_string(), uris(&canary.servers), uris(canary.own())));
        (uris(usual), canary)
    };
    let all = Some(("canary 5%".to_owned(), vec!["b:1", "a:2", "a:1"], vec!["b:1", "a:2"]));
    assert_eq!(said(None), (vec!["a:1", "a:2"], all.clone()));
    assert_eq!(said(Some(0)), (vec!["a:1", "a:2"], all));
    assert_eq!(said(Some(1)), (vec!["c:1"], None));
    let own = Some(("canary 0.50%".to_owned(), vec!["b:1", "a:1", "a:2"], vec!["b:1"]));
    assert_eq!(said(Some(2)), (vec!["a:1", "a:2"], own));
}

/// Each at its place, with what to do.
#[test]
#[rustfmt::skip]
fn what_is_wrong() {
    let list = "xds_servers: [{server_uri: 'b:1'}]";
    for (text, said) in [
        (format!("canary: {{share: 0%, {list}}}\n"),
            "2:17: canary.share: `0%` is not a share; write more than 0 and at most 100 percent, such as 5% or 0.25%"),
        (format!("canary: {{share: 101%, {list}}}\n"),
            "2:17: canary.share: `101%` is not a share; write more than 0 and at most 100 percent, such as 5% or 0.25%"),
        (format!("canary: {{share: 0.05, {list}}}\n"),
            "2:17: canary.share: `0.05` may be a part of 1 or of 100; write 5% or 0.05%"),
        (format!("canary: {{{list}}}\n"), "2:9: canary: missing field `share`"),
        ("canary: {share: 5%}\n".to_owned(), "2:9: canary: missing field `xds_servers`"),
        ("canary: {share: 5%, xds_servers: []}\n".to_owned(), "2:34: canary.xds_servers: the list is empty; name a control plane"),
        ("canary: {share: 5%, xds_servers: [{server_uri: 'a:1'}]}\n".to_owned(),
            "2:34: canary.xds_servers: `a:1` is what the other clients read first, too; name another control plane"),
        ("canary: {share: 5%, xds_servers: [{server_uri: '127.0.0.1:15010'}]}\n".to_owned(),
            "2:48: canary.xds_servers[0].server_uri: `127.0.0.1:15010` is this relay itself, by its listener 127.0.0.1:15010; name a \
             control plane"),
        ("classes: [{xds_servers: []}]\n".to_owned(), "2:25: classes[0].xds_servers: the list is empty; name a control plane"),
        (format!("classes: [{{{list}, canary: {{share: 5%, {list}}}}}]\n"),
            "2:81: classes[0].canary.xds_servers: `b:1` is what the other clients read first, too; name another control plane"),
    ] {
        assert_eq!(parse(&format!("{TOP}{text}")).unwrap_err(), format!("relay.yaml:{said}"), "{text}");
    }
    let text = format!("{TOP}classes: [{{key: [id], canary: {{share: 5%, {list}}}}}]\n");
    let warnings = parse(&text).unwrap().warnings;
    let said = "relay.yaml:2:31: classes[0].canary: each client of this class has a view and streams of its own, there too, because `id` is \
                in `key`";
    assert!(warnings.iter().any(|warning| warning == said), "{warnings:?}");
}

/// A canary that no client can read, and a class that no client can be of.
#[test]
fn what_nobody_reads() {
    let own = "xds_servers: [{server_uri: 'c:1'}]";
    let of = |classes: &str| {
        let canary = "canary: {share: 5%, xds_servers: [{server_uri: 'b:1'}]}\n";
        let said = good(&format!("{TOP}{canary}classes:\n{classes}")).warnings;
        said.into_iter()
            .filter(|said| said.contains("no client"))
            .collect::<Vec<_>>()
    };
    // Others read it.
    let one = format!("- {{match: {{cluster: one}}, {own}}}\n");
    assert_eq!(of(&one), [""; 0]);
    assert_eq!(of(&format!("{one}- {{}}\n")), [""; 0]);
    let said = "relay.yaml:2:9: canary: no client reads it: each class has servers or a canary of its own; give those classes that are meant a \
          `canary`, or remove it";
    assert_eq!(of(&format!("{one}- {{{own}}}\n")), [said]);
    let said = "relay.yaml:5:3: classes[1]: no client is of it, because classes[0] is for all clients; write it before that one";
    assert_eq!(of("- {}\n- {match: {cluster: one}}\n"), [said]);
}

/// K-28: a control plane that sees the views of one class only cannot mix them up with others.
#[test]
fn node_ids_at_different_control_planes() {
    let one = "- {match: {cluster: a}, key: [id], xds_servers: [{server_uri: 'c:1'}]}\n";
    let other = "- {match: {cluster: b}, key: [id]}\n";
    let of = |text: &str| {
        let said = good(&format!("node: {{id: relay}}\n{TOP}{text}")).warnings;
        said.iter().filter(|said| said.contains("the same node id")).count()
    };
    assert_eq!(of(&format!("classes:\n{one}{other}")), 0);
    let twice = format!("classes:\n{other}{other}").replacen("cluster: b", "cluster: a", 1);
    assert_eq!(of(&twice), 1);
    // Both read the source; files see no node.
    for (server, warnings) in [("eds:1", 1), ("/files", 0)] {
        let source = format!("sources: [{{types: [eds], xds_servers: [{{server_uri: '{server}'}}]}}]\n");
        assert_eq!(of(&format!("{source}classes:\n{one}{other}")), warnings);
    }
}
