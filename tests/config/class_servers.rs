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
         - {{match: {{cluster: three}}, canary: {{share: 0.5, xds_servers: [{{server_uri: 'b:1'}}]}}}}\n"
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
