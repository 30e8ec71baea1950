// SPDX-License-Identifier: Apache-2.0
//! Control planes for some types: what they mean, and what is wrong with bad ones.

use distributary::config::{Config, Reach};
use distributary::xds::TypeUrl;

use crate::{SERVER, good, parse};

fn config(sources: &str) -> Config {
    good(&format!("{SERVER}sources:\n{sources}"))
}

/// F-12: a server is one server, whichever lists it is in, unless it sees another node.
#[test]
fn what_a_source_is() {
    let found = config(
        "- {types: [eds, rtds], xds_servers: [{server_uri: 'b:1'}, {server_uri: 'cp:1'}], shared: true}\n\
         - {name: other, types: type.googleapis.com/a.B, xds_servers: [{server_uri: 'b:1'}], fallback_on_reachability_only: true, node: {id: n}}\n\
         - {types: sds, xds_servers: [{server_uri: /secrets}]}\ntypes: [{type_url: a.B}]\n",
    );
    let [first, other, secrets] = &found.upstream.sources[..] else {
        panic!("{:?}", found.upstream.sources);
    };
    let eds = TypeUrl::called("eds").unwrap();
    assert_eq!((first.name.as_str(), first.key().as_str()), ("eds", "#eds"));
    assert_eq!((first.shared, first.reachability_only), (true, false));
    assert_eq!((other.shared, other.reachability_only), (false, true));
    assert_eq!(first.types.len(), 4, "v2 and v3");
    assert_eq!(&*other.types, [Box::<str>::from("a.B")]);
    assert_eq!(secrets.key(), "#sds");
    let uris = |list: &[usize]| -> Vec<&str> {
        let all = list.iter().map(|at| found.upstream.servers[*at].uri.as_str());
        all.collect()
    };
    assert_eq!(uris(&first.servers), ["b:1", "cp:1"]);
    assert_eq!(uris(&found.upstream.top), ["cp:1"]);
    assert_ne!(first.servers[0], other.servers[0], "it sees another node");
    assert_eq!(first.servers[1], found.upstream.top[0]);
    let server = &found.upstream.servers[secrets.servers[0]];
    assert!(matches!(server.reach, Reach::Files(_)) && server.node.is_none());
    let owners = found.upstream.owners();
    assert_eq!(owners.of(&eds, None), Some("#eds"));
    assert_eq!(owners.of(&eds, Some(&"a".into())), Some("#eds"));
    assert_eq!(owners.of(&TypeUrl::called("cds").unwrap(), None), None);
    let seen = found.upstream.servers[other.servers[0]].node(&found.node);
    assert_eq!((seen.id.as_str(), &seen.cluster), ("n", &found.node.cluster));
}

/// Each at its place, with what to do.
#[test]
#[rustfmt::skip]
fn what_is_wrong() {
    let list = "xds_servers: [{server_uri: 'b:1'}]";
    let classes = "classes: [{credentials: {jwt_token_file: /t}}]\n";
    for (text, said) in [
        (format!("- {{types: [eds], {list}}}\n- {{types: [rtds, eds], {list}}}\n"),
            "4:18: sources[1].types: `eds` is there twice, here and at sources[0].types[0] (3:12); a type has one source: remove one"),
        (format!("- {{types: [eds, eds], {list}}}\n"),
            "3:17: sources[0].types: `eds` is there twice, here and at sources[0].types[0] (3:12); a type has one source: remove one"),
        (format!("- {{types: [], {list}}}\n"),
            "3:11: sources[0].types: the list is empty; write the types that this source has, such as eds"),
        (format!("- {{name: x, {list}}}\n"), "3:3: sources[0]: missing field `types`"),
        (format!("- {{types: [edz], {list}}}\n"), "3:12: sources[0].types: `edz` is not a type; did you mean `eds`?"),
        (format!("- {{name: x, types: [istio.io/debug/syncz], {list}}}\n"),
            "3:21: sources[0].types: `istio.io/debug/syncz` is asked of no control plane, because its content is for the caller alone; \
             remove it"),
        (format!("- {{types: [type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignments], {list}}}\n"),
            "3:12: sources[0].types: `type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignments` is not a type; did you mean \
             `envoy.config.endpoint.v3.ClusterLoadAssignment`?"),
        (format!("- {{types: [acme.v1.Thing], {list}}}\n"),
            "3:12: sources[0].types: `acme.v1.Thing` is not a type that the relay knows; if it is yours, name it in `types`: \
             [{type_url: acme.v1.Thing}]"),
        (format!("- {{types: [leds], {list}}}\n"),
            "3:12: sources[0].types: `leds` cannot have a source: a collection of endpoints is asked of the authority of its name; name its \
             servers in `upstream.authorities`"),
        (format!("- {{types: [eds], node: {{id: 'r/{{cluster}}'}}, {list}}}\n"),
            "3:29: sources[0].node.id: `{cluster}` is not filled in here, because a source sees one node for all clients; write a fixed id, \
             or leave it out and write this in `classes[].node.id`"),
        ("- {types: [eds]}\n".to_owned(), "3:3: sources[0]: missing field `xds_servers`"),
        ("- {types: [eds], xds_servers: []}\n".to_owned(), "3:31: sources[0].xds_servers: the list is empty; name a control plane"),
        ("- {types: [eds], xds_servers: [{server_uri: '127.0.0.1:15010'}]}\n".to_owned(),
            "3:45: sources[0].xds_servers[0].server_uri: `127.0.0.1:15010` is this relay itself, by its listener 127.0.0.1:15010; name a \
             control plane"),
        ("- {types: [sds], node: {id: n}, xds_servers: [{server_uri: /secrets}]}\n".to_owned(),
            "3:24: sources[0].node: node has no use with files; remove it"),
        (format!("- {{types: [eds], node: {{id: ''}}, {list}}}\n"),
            "3:29: sources[0].node.id: the id is empty; leave `id` out to use the host's name"),
        (format!("- {{types: [eds], shared: true, {list}}}\n{classes}"),
            "3:26: sources[0].shared: classes[0].credentials are not used for a view that all classes share, so their clients would read \
             what others may; remove `shared`"),
        (format!("- {{name: a b, types: [eds], {list}}}\n"),
            "3:10: sources[0].name: `a b` is not a name; write letters, digits, `.`, `_` and `-`"),
        (format!("- {{name: old, types: [eds], {list}}}\n"),
            "3:10: sources[0].name: `old` is shown for something else in `status` and `/clusters`; write another name"),
        (format!("- {{name: x, types: [eds], {list}}}\n- {{name: x, types: [rtds], {list}}}\n"),
            "4:10: sources[1].name: `x` is also the name of sources[0]; give each source its own"),
    ] {
        let text = format!("upstream: {{xds_servers: [{{server_uri: 'https://cp:1'}}]}}\nsources:\n{text}");
        assert_eq!(parse(&text).unwrap_err(), format!("relay.yaml:{said}"), "{text}");
    }
    let text = "upstream:\n  xds_servers: [{server_uri: 'cp:1'}]\n  authorities: {'#eds': {xds_servers: [{server_uri: 'b:1'}]}}\n";
    assert_eq!(
        parse(text).unwrap_err(),
        "relay.yaml:3:40: upstream.authorities.#eds: `#eds` is not an authority: no name has it, and a `#` stands before the names of sources"
    );
}

/// Routes without their virtual hosts are warned about.
#[test]
fn routes_without_virtual_hosts() {
    let list = "xds_servers: [{server_uri: 'b:1'}]";
    let of = |types: &str| {
        parse(&format!("{SERVER}sources: [{{types: [{types}], {list}}}]\n"))
            .unwrap()
            .warnings
    };
    assert_eq!(of("rds, vhds"), [""; 0]);
    assert_eq!(of("eds"), [""; 0]);
    for (types, said) in [
        ("rds", "rds is here and vhds is not"),
        ("vhds", "vhds is here and rds is not"),
    ] {
        let warnings = of(types);
        assert!(warnings.len() == 1 && warnings[0].contains(said), "{warnings:?}");
    }
}
