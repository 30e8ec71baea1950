// SPDX-License-Identifier: Apache-2.0
//! What is said of a file with faults: each one at its place, with what to write instead.

use distributary::config::{Config, Flags, Limits};
use distributary::xds::GuardSettings;

use crate::{SERVER, complaint, parse};

/// Unknown keys and wrong kinds of values, each at its place.
#[test]
#[rustfmt::skip]
fn what_the_parser_says() {
    for (text, said) in [
        (
            "listeners: [{address: 0.0.0.0:15010}, {address: 127.0.0.1:15010}]\n",
            "1:49: listeners[1].address: 0.0.0.0:15010 has the port 127.0.0.1:15010 already; remove one",
        ),
        (
            "listeners: [{address: '[::]:9901'}]\n",
            "1:23: admin.address: the listener [::]:9901 has its port; give the admin its own",
        ),
        ("listenerz: []\n", "1:1: listenerz: unknown field `listenerz`; did you mean `listeners`?"),
        ("colour: red\n", "1:1: colour: unknown field `colour`, expected one of node, listeners, jwt, admin, probes, upstream, \
            sources, canary, classes, rules, secrets, limits, timers, guard, chunk, transport_v2, anonymous, types, descriptors, snapshot, unknown_fields, logging"),
        ("timers:\n  linger: 30s\n  lingers: 30s\n", "3:3: timers.lingers: unknown field `lingers`; did you mean `linger`?"),
        ("listeners: 5\n", "1:12: listeners: expected a list, found `5`"),
        ("limits: []\n", "1:9: limits: expected a mapping, found a list"),
        ("node: x\n", "1:7: node: expected a mapping, found `x`"),
        ("classes: [{node: [5]}]\n", "1:18: classes[0].node: expected a single value, or a mapping, found a list"),
        ("listeners: [{address: '1.1.1.1:1', tls: {certificate: c}}]\n", "1:41: listeners[0].tls: missing field `private_key`"),
        ("listeners: [{}]\n", "1:13: listeners[0]: missing field `address`"),
        ("chunk: [1]\n", "1:8: chunk: expected a single value, found a list"),
        ("anonymous: yes\n", "1:12: anonymous: expected true or false, found `yes`"),
        ("chunk: 1MiB\nchunk: 2MiB\n", "2:1: the key `chunk` is there twice, first in line 1; remove one"),
        ("node: {id: x\n", "2:9: not YAML: this is inside a mapping in braces, where a `,` or the closing `}` is missing"),
        ("node: {id: *x}\n", "1:12: not YAML: no anchor of this name (`&name`) before this alias (`*name`); quote a value that \
            begins with `*`"),
        ("---\nchunk: 1MiB\n---\n", "3:1: a second document begins here; write one file for each"),
    ] {
        assert_eq!(complaint(text), format!("relay.yaml:{said}"), "{text}");
    }
}

/// Values that are well-formed YAML and still wrong, each with its place and what to write instead.
#[test]
#[rustfmt::skip]
fn what_the_check_says() {
    for (text, said) in [
        ("timers:\n  linger: 30 parsecs\n", "2:11: timers.linger: `30 parsecs` is not a duration; write a whole number and a \
            unit, such as 250ms, 30s, 5m or 1h (0 = off, at most 8760h)"),
        ("timers: {unanswered: 0s}\n", "1:22: timers.unanswered: 0 would make clients wait forever; write the \
            longest wait, such as 8s"),
        ("limits: {request: 16MB}\n", "1:19: limits.request: `16MB` is not a size; write bytes or a unit, such as 4096, \
            64KiB, 16MiB or 1GiB (0 = off)"),
        ("limits: {request: 16}\n", "1:19: limits.request: with 16 bytes no peer could be served; write a unit, or at least 1024 (0 = off)"),
        ("limits: {upstream_message: 64}\n", "1:28: limits.upstream_message: with 64 bytes no peer could be served; write a unit, \
            or at least 1024 (0 = off)"),
        ("limits: {memory: most}\n", "1:18: limits.memory: `most` is not a size; write auto, bytes or a unit, such as 4096, 64KiB, \
            16MiB or 1GiB (0 = off)"),
        ("limits: {memory: 1}\n", "1:18: limits.memory: in 1 bytes the relay could not serve anybody; write auto, a unit, or at \
            least 16777216 (0 = off)"),
        ("limits: {views: -1}\n", "1:17: limits.views: `-1` is not a number; write a whole number such as 4096 (0 = off)"),
        ("node: {id: ''}\n", "1:12: node.id: the id is empty; leave `id` out to use the host's name"),
        ("listeners: []\n", "1:12: listeners: the list is empty; add `- address: 0.0.0.0:15010` or leave the key out"),
        ("listeners: [{address: 'localhost:1'}]\n", "1:23: listeners[0].address: `localhost:1` is not an address; write \
            ip:port, [v6]:port or unix:/path, with an IP, not a name"),
        ("listeners:\n- address: 1.1.1.1:1\n- address: 1.1.1.1:1\n", "3:12: listeners[1].address: 1.1.1.1:1 is there \
            twice; remove one"),
        ("listeners: [{address: 'unix:/x', tls: {certificate: c, private_key: k}}]\n", "1:39: listeners[0].tls: a Unix \
            socket has no TLS; its file permissions decide who may connect; remove `tls`"),
        ("listeners: [{address: '1.1.1.1:1', tls: {certificate: '', private_key: k}}]\n", "1:55: listeners[0].tls.certificate: \
            the path is empty; write a PEM file"),
        ("listeners: [{address: '1.1.1.1:1', tls: {certificate: c, private_key: k, client_ca: ''}}]\n", "1:85: \
            listeners[0].tls.client_ca: the path is empty; write a PEM file"),
        ("listeners: [{address: '1.1.1.1:1', tls: {certificate: c, private_key: k, client_crl: l}}]\n", "1:86: \
            listeners[0].tls.client_crl: it needs `client_ca`: without that, clients show no certificate that could be revoked"),
        ("listeners: [{address: '1.1.1.1:1', tls: {certificate: c, private_key: k, minimum_tls_version: 1.1}}]\n", "1:95: \
            listeners[0].tls.minimum_tls_version: `1.1` is not a version of TLS that the relay speaks; write 1.2 or 1.3"),
        ("listeners: [{address: '1.1.1.1:1', tls: {certificate: c, private_key: k, certificates: [{certificate: d}]}}]\n", "1:89: \
            listeners[0].tls.certificates[0]: missing field `private_key`"),
        ("admin: {address: 'unix:/x', tls: {certificate: c, private_key: k}}\n", "1:34: admin.tls: a Unix socket has no TLS; \
            its file permissions decide who may connect; remove `tls`"),
        ("listeners: [{address: '127.0.0.1:9901'}]\n", "1:23: admin.address: 127.0.0.1:9901 is also a listener; give the admin \
            its own address"),
        ("admin: {address: '127.0.0.1:15010'}\n", "1:18: admin.address: 127.0.0.1:15010 is also a listener; give the admin \
            its own address"),
        ("classes: [{match: {zone: x}}]\n", "1:26: classes[0].match: `zone` is not a field of a node; write id, cluster, \
            locality.region, locality.zone, locality.sub_zone, user_agent_name, metadata.KEY, identity.KIND, or a field of a \
            pattern in `match`"),
        ("classes:\n- key: [id,\n    metadata]\n", "3:5: classes[0].key: `metadata` is not a field of a node; write id, \
            cluster, locality.region, locality.zone, locality.sub_zone, user_agent_name, metadata.KEY, identity.KIND, or a field of a \
            pattern in `match`"),
        ("classes: [{key: [id, id]}]\n", "1:22: classes[0].key: `id` is there twice; remove one"),
        ("classes: [{key: [cluster], node: {id: 'r/{id}'}}]\n", "1:39: classes[0].node.id: `{id}` is not in `key`, so \
            clients that share a view may differ in it; add it there"),
        ("classes: [{node: {cluster: '{'}}]\n", "1:28: classes[0].node.cluster: `{` has an unmatched brace; \
            write {{ or }} for a literal brace"),
        ("types: [{type_url: 'a b'}]\n", "1:20: types[0].type_url: `a b` is not a type; write type.googleapis.com/ and \
            the message's full name"),
        ("types: [{type_url: a.B, name_field: name}]\n", "1:37: types[0].name_field: `name` is not a field number; write \
            1 to 536870911, or 0 for no name in the body"),
        ("logging: {level: loud}\n", "1:18: logging.level: `loud` is not a log level; write error, warn, info, debug, trace, off or \
            target=level,..."),
        ("unknown_fields: no\n", "1:17: unknown_fields: `no` is not a way to treat a field; write error or warning"),
        ("descriptors: ['']\n", "1:15: descriptors[0]: the path is empty; write the file of a FileDescriptorSet"),
        ("descriptors: [a.binpb, a.binpb]\n", "1:24: descriptors[1]: `a.binpb` is there twice; remove one"),
        ("types: [{type_url: a.B}, {type_url: type.googleapis.com/a.B}]\n", "1:37: types[1].type_url: `a.B` is there twice; remove one"),
    ] {
        let place = if said.starts_with(':') { "" } else { ":" };
        assert_eq!(complaint(text), format!("relay.yaml{place}{said}"), "{text}");
    }
}

/// What is wrong with the settings of snapshots.
#[test]
#[rustfmt::skip]
fn what_the_check_says_of_snapshots() {
    for (text, said) in [
        ("snapshot: {dir: ''}\n", "1:17: snapshot.dir: it is empty; write a directory such as /var/lib/distributary"),
        ("snapshot: {}\n", "1:11: snapshot: it says neither where to write nor whom to ask; write `dir`, `from` or both"),
        ("snapshot: {from: relay}\n", "1:18: snapshot.from: `relay` is not an admin address; write https://relay-headless:9901, or http:// without TLS"),
        ("snapshot: {from: 'unix:/x'}\n", "1:18: snapshot.from: `unix:/x` is not an admin address; write https://relay-headless:9901, or http:// without TLS"),
        ("snapshot: {from: 'http://relay:1', tls: {server_name: a}}\n", "1:41: snapshot.tls: no relay in `from` is asked over TLS; write https:// there, or remove it"),
        ("snapshot: {dir: d, interval: 0}\n", "1:30: snapshot.interval: 0 would write without end; leave `snapshot` out to write nothing"),
    ] {
        assert_eq!(complaint(text), format!("relay.yaml:{said}"), "{text}");
    }
}

/// What is wrong with the settings of holds.
#[test]
#[rustfmt::skip]
fn what_the_check_says_of_a_guard() {
    for (text, said) in [
        ("guard: always\n", "1:8: guard: `always` is not a guard; write on, off, or what is different from `on`"),
        ("guard: [off]\n", "1:8: guard: expected a single value, or a mapping, found a list"),
        ("guard: {references: never}\n", "1:21: guard.references: `never` does not say how long; write until_free or off"),
        ("guard: {references: 0}\n", "1:21: guard.references: `0` does not say how long; write until_free or off"),
        ("guard: {within: often}\n", "1:17: guard.within: `often` is not a time; write first_state, always or never"),
        ("guard: {hold: {other: 0s}}\n", "1:23: guard.hold.other: 0 holds nothing; write `within: never`, or a time such as 5m"),
        ("guard: {hold: {listeners: 1m}}\n", "1:16: guard.hold.listeners: unknown field `listeners`, expected one of endpoints, other"),
        ("guard: {hold: 5m}\n", "1:15: guard.hold: expected a mapping, found `5m`"),
        ("classes: [{guard: {hold: {other: soon}}}]\n", "1:34: classes[0].guard.hold.other: `soon` is not a duration; write a whole number \
            and a unit, such as 250ms, 30s, 5m or 1h (0 = off, at most 8760h)"),
    ] {
        let place = if said.starts_with(':') { "" } else { ":" };
        assert_eq!(complaint(text), format!("relay.yaml{place}{said}"), "{text}");
    }
}

#[test]
#[rustfmt::skip]
fn what_is_said_of_listeners() {
    for (text, said) in [
        ("listeners: [{address: '1.1.1.1:1', mode: 0660, owner: root}]\n", "1:42: listeners[0].mode: 1.1.1.1:1 has no file; \
            remove `mode`, or write unix:/path\nrelay.yaml:1:55: listeners[0].owner: 1.1.1.1:1 has no file; remove `owner`, or write \
            unix:/path"),
        ("listeners: [{address: 'unix:@x', group: root}]\n", "1:41: listeners[0].group: unix:@x has no file; remove `group`, or \
            write unix:/path"),
        ("listeners: [{address: 'unix:/x', mode: 0680, owner: ''}]\n", "1:40: listeners[0].mode: `0680` is not a file mode; write \
            three octal digits, such as 0660\nrelay.yaml:1:53: listeners[0].owner: the name is empty; write a name or a number"),
        ("listeners: [{address: 'unix:@'}]\n", "1:23: listeners[0].address: `unix:@` lacks a name after the @; write \
            unix:/run/distributary.sock or unix:@distributary"),
        ("listeners: [{address: 'unix:/x', proxy_protocol: {from: [10.0.0.0/8]}}]\n", "1:50: listeners[0].proxy_protocol: whoever \
            connects to a Unix socket has no address; remove `proxy_protocol`"),
        ("listeners: [{address: '1.1.1.1:1', proxy_protocol: {}}]\n", "1:52: listeners[0].proxy_protocol: missing field `from`"),
        ("listeners: [{address: '1.1.1.1:1', proxy_protocol: {from: []}}]\n", "1:59: listeners[0].proxy_protocol.from: the list is \
            empty; add the addresses of the balancers, such as 10.0.0.0/8"),
        ("listeners: [{address: '1.1.1.1:1', proxy_protocol: {from: [lb, 10.0.0.0/33]}}]\n", "1:60: \
            listeners[0].proxy_protocol.from[0]: `lb` is not a network; write such as 10.0.0.0/8, 2001:db8::/32 or \
            10.0.0.7\nrelay.yaml:1:64: listeners[0].proxy_protocol.from[1]: `10.0.0.0/33` is not a network; write such as 10.0.0.0/8, \
            2001:db8::/32 or 10.0.0.7"),
    ] {
        assert_eq!(complaint(text), format!("relay.yaml:{said}"), "{text}");
    }
}

/// The probes have an address of their own, or none.
#[test]
#[rustfmt::skip]
fn what_is_said_of_the_probes() {
    for (text, said) in [
        ("probes: {}\n", "1:9: probes: missing field `address`"),
        ("probes: {address: nowhere}\n", "1:19: probes.address: `nowhere` is not an address; write ip:port, [v6]:port or unix:/path, \
            with an IP, not a name"),
        ("probes: {address: '127.0.0.1:9901'}\n", "1:19: probes.address: 127.0.0.1:9901 is also the admin address, which answers \
            probes as well; give the probes their own address, or leave `probes` out"),
        ("probes: {address: '127.0.0.1:15010'}\n", "1:19: probes.address: 127.0.0.1:15010 is also a listener; give the probes \
            their own address, or leave `probes` out"),
    ] {
        assert_eq!(complaint(text), format!("relay.yaml:{said}"), "{text}");
    }
}

#[test]
#[rustfmt::skip]
fn what_is_said_of_rules_of_the_admin_address() {
    for (text, said) in [
        ("admin: {hosts: [a, 'http://a']}\n", "1:20: admin.hosts: `http://a` is not the name of a host; write it without a scheme and \
          a port, as in relay.example.com"),
        ("admin: {rules: []}\n", "1:16: admin.rules: the list is empty; add a rule, or leave `rules` out to let everybody in"),
        ("admin: {rules: [{identities: 'ip:*'}]}\n", "1:17: admin.rules[0]: missing field `allow`"),
        ("admin: {rules: [{allow: reed}]}\n", "1:25: admin.rules[0].allow: `reed` is no action on the admin address; write read, \
            change or secrets"),
        ("admin: {rules: [{identities: [], allow: read}]}\n", "1:30: admin.rules[0].identities: the list is empty; leave it out \
            for no condition"),
        ("admin: {rules: [{identities: x, allow: read}]}\n", "1:30: admin.rules[0].identities: no identity begins like `x`; \
            write claim:, dns:, gid:, ip:, jwt:, spiffe:, subject:, uid:, uri: and what follows it, or `*` for any client with \
            an identity"),
    ] {
        assert_eq!(complaint(text), format!("relay.yaml:{said}"), "{text}");
    }
}

#[test]
#[rustfmt::skip]
fn what_is_said_of_issuers() {
    for (entry, said) in [
        ("audiences: [a], jwks_file: k", "7: jwt[0]: missing field `issuer`"),
        ("issuer: i, jwks_file: k", "7: jwt[0]: missing field `audiences`"),
        ("issuer: i, audiences: [a]", "7: jwt[0]: its keys are missing; write `jwks_uri` or `jwks_file`"),
        ("issuer: i, audiences: [a], jwks_file: k, token_file: t", "61: jwt[0].token_file: it has no use without `jwks_uri`; remove it"),
        ("issuer: i, audiences: [a], jwks_file: k, jwks_uri: 'https://i/k'", "46: jwt[0].jwks_file: the keys are at `jwks_uri` or in a \
            file, not in both; remove one"),
        ("issuer: i, audiences: [a], jwks_uri: 'http://i/k'", "45: jwt[0].jwks_uri: `http://i/k` is not an address of HTTPS; write such as \
            https://kubernetes.default.svc/openid/v1/jwks"),
        ("issuer: i, audiences: [a], jwks_uri: 'https://i/k#x'", "45: jwt[0].jwks_uri: `https://i/k#x` is not an address of HTTPS; write \
            such as https://kubernetes.default.svc/openid/v1/jwks"),
        ("issuer: i, audiences: [a], jwks_uri: 'https://i/k', ca_certificate_file: ''", "81: jwt[0].ca_certificate_file: the path is \
            empty; write a PEM file"),
        ("issuer: '', audiences: [a], jwks_file: k", "16: jwt[0].issuer: it is empty; write what the tokens have in `iss`"),
        ("issuer: 'a#b', audiences: [a], jwks_file: k", "16: jwt[0].issuer: it has a `#` or a line break, so that no \
            identity can name it"),
        ("issuer: i, audiences: [], jwks_file: k", "30: jwt[0].audiences: the list is empty; write what the tokens \
            have in `aud`, such as distributary"),
        ("issuer: i, audiences: [a], jwks_file: ''", "46: jwt[0].jwks_file: the path is empty; write a JWKS file"),
        ("issuer: i, audiences: [a], jwks_file: k, clock_skew: 61s", "61: jwt[0].clock_skew: it is too much; write \
            at most 60s, and set the clocks"),
    ] {
        assert_eq!(complaint(&format!("jwt: [{{{entry}}}]\n")), format!("relay.yaml:1:{said}"), "{entry}");
    }
    let twice = "jwt: [{issuer: i, audiences: [a], jwks_file: k}, {issuer: i, audiences: [b], jwks_file: l}]\n";
    assert_eq!(complaint(twice), "relay.yaml:1:50: jwt[1]: `i` is there twice; remove one");
}

#[test]
#[rustfmt::skip]
fn what_is_said_of_servers() {
    for (entry, said) in [
        ("server_uri: 'ftp://x'", "39: server_uri: `ftp://x` has the unknown scheme `ftp`; write host:port, \
            dns:///host:port, unix:/path, http://host:port, https://host:port, rest+http://host:port, \
            rest+https://host:port or file:///path"),
        ("server_uri: cp", "39: server_uri: `cp` is not a server; write host:port, such as cp.example.com:18000"),
        ("server_uri: cp:1, transport: rest", "56: transport: `rest` is not a transport; write delta or sotw"),
        ("server_uri: cp:1, server_features: [fast]", "63: server_features: `fast` is not a server feature; write \
            fail_on_data_errors, ignore_resource_deletion, resource_timer_is_transient_error or trusted_xds_server"),
        ("server_uri: cp:1, channel_creds: [{type: xds}]", "68: channel_creds: `xds` is not supported; write insecure or tls"),
        ("server_uri: 'https://cp', channel_creds: [{type: insecure}]", "76: channel_creds: `insecure` contradicts the \
            scheme of server_uri; remove one"),
        ("server_uri: cp:1, channel_creds: [{type: insecure, config: {ca_certificate_file: x}}]", "108: \
            channel_creds[0].config.ca_certificate_file: ca_certificate_file has no use with insecure; remove it or write tls"),
        ("server_uri: cp:1, channel_creds: [{type: google_default}]", "68: channel_creds: `google_default` is not supported: \
            it needs Google's own credentials; write insecure or tls"),
        ("server_uri: cp:1, channel_creds: [{config: {}}]", "61: channel_creds[0]: missing field `type`"),
        ("server_uri: cp:1, channel_creds: [{type: tls, config: {certificate_file: x}}]", "100: channel_creds[0].config: \
            certificate_file and private_key_file go together; write both or none"),
        ("server_uri: cp:1, channel_creds: [{type: tls, config: {ca: x}}]", "82: channel_creds[0].config.ca: unknown field \
            `ca`, expected one of ca_certificate_file, certificate_file, private_key_file, server_name, spiffe, refresh_interval"),
        ("server_uri: 'https://cp', call_creds: [{type: jwt_token_file}]", "66: call_creds[0]: missing field \
            `jwt_token_file` in `config`"),
        ("server_uri: 'https://cp', call_creds: [{type: oauth}]", "73: call_creds[0]: `oauth` is not supported; write \
            jwt_token_file"),
        ("server_uri: cp:1, call_creds: [{type: jwt_token_file, config: {jwt_token_file: t}}]", "58: call_creds[0]: a token \
            is only sent over TLS; write tls in channel_creds"),
        ("server_uri: 127.0.0.1:15010", "39: server_uri: `127.0.0.1:15010` is this relay itself, by its listener \
            127.0.0.1:15010; name a control plane"),
        ("server_uri: cp:1, colour: red", "45: colour: unknown field `colour`, expected one of server_uri, channel_creds, \
            call_creds, server_features, transport, rejections"),
        ("server_uri: 'file:///x', channel_creds: [{type: tls}]", "68: channel_creds: channel_creds has no use with files; remove it"),
        ("server_uri: ./x, call_creds: [{type: jwt_token_file, config: {jwt_token_file: t}}]", "57: call_creds: call_creds has no \
            use with files; remove it"),
        ("server_uri: a.yaml, server_features: [ignore_resource_deletion]", "65: server_features: server_features has no use \
            with files; remove it"),
        ("server_uri: cp:1, rejections: tell", "57: rejections: `tell` does not say what becomes of rejections; write report or keep"),
        ("server_uri: a.yaml, rejections: keep", "59: rejections: rejections has no use with files; remove it"),
        ("server_uri: a.yaml, transport: delta", "58: transport: transport has no use with files; remove it"),
        ("server_uri: a.yaml, transport_api_version: V3", "47: transport_api_version: unknown field `transport_api_version`, \
            expected one of server_uri, channel_creds, call_creds, server_features, transport, rejections"),
        ("server_uri: 'rest+http://cp', transport: delta", "68: transport: transport has no use with a server that is polled; \
            remove it"),
        ("transport: sotw", "26: missing field `server_uri`"),
    ] {
        let (column, said) = said.split_once(": ").unwrap();
        let dot = if said.starts_with("missing") { ": " } else { "." };
        let expected = format!("relay.yaml:1:{column}: upstream.xds_servers[0]{dot}{said}");
        assert_eq!(parse(&format!("upstream: {{xds_servers: [{{{entry}}}]}}")).unwrap_err(), expected);
    }
}

/// Unknown keys, wrong kinds and wrong values, whatever finds them, in the order of their lines.
#[test]
fn every_problem_is_told_at_once() {
    let said = complaint(
        "limits:\n  views: x\n  viewz: 3\ntimers:\n  linger: y\n  drain: [1]\nadmin: {address: z}\nclasses:\n- kez: [id]\n- key: [idd]\n\
         listeners:\n- tls: {certificate: 1}\n- address: x\nlistenerz: []\n",
    );
    let starts = "2:10: limits.views|3:3: limits.viewz|5:11: timers.linger|6:10: timers.drain|7:18: admin.address|\
        9:3: classes[0].kez|10:9: classes[1].key|12:3: listeners[0]|12:8: listeners[0].tls|13:12: listeners[1].address|\
        14:1: listenerz";
    for (line, start) in said.lines().zip(starts.split('|')) {
        assert!(line.starts_with(&format!("relay.yaml:{start}: ")), "{said}");
    }
    assert_eq!(said.lines().count(), 11, "{said}");
}

/// A key that is written wrongly is not also missing.
#[test]
fn a_wrong_key_is_said_once() {
    let missing = "1:1: upsteam: unknown field `upsteam`; did you mean `upstream`?";
    let kind = "1:25: upstream.xds_servers: expected a list, found an object";
    for (text, said) in [
        ("upsteam: {xds_servers: [{server_uri: cp:1}]}\n", missing),
        ("upstream: {xds_servers: {server_uri: cp:1}}\n", kind),
    ] {
        assert_eq!(parse(text).unwrap_err(), format!("relay.yaml:{said}"));
    }
}

/// A key of the version before is no mistake: it is said what holds instead.
#[test]
#[rustfmt::skip]
fn keys_that_are_gone() {
    let guard = "`within` and `hold` stand in `guard` itself, and what is not written there is as usual. Always held are 15% of the names of a \
        type, but at least 1 listener and 3 of other types, and 50% of endpoint assignments that become empty";
    for (text, place, key, holds) in [
        ("guard: {mass: {share: 10%}}", 9, "guard.mass", guard),
        ("guard: {mass: {within: never, hold: 1s}}", 9, "guard.mass", guard),
        ("classes: [{match: {id: a}, guard: {mass: off}}]", 36, "classes[0].guard.mass", guard),
        ("limits: {handshakes: 3}", 10, "limits.handshakes", "always 64 of a listener at the same time"),
        ("limits: {name_bytes: 3}", 10, "limits.name_bytes", "always 4096"),
        ("limits: {node_bytes: 3}", 10, "limits.node_bytes", "always 64KiB"),
        ("limits: {pinned_bytes_per_view: 3}", 10, "limits.pinned_bytes_per_view", "always 256MiB"),
        ("limits: {streams_per_connection: 3}", 10, "limits.streams_per_connection", "always 4096"),
        ("limits: {types_per_stream: 3}", 10, "limits.types_per_stream", "always 64"),
        ("limits: {window_bytes: 3}", 10, "limits.window_bytes", "always 4MiB of a type, and at most 64 responses"),
        ("timers: {move: 3}", 10, "timers.move", "always 1s"),
        ("timers: {pace: 3}", 10, "timers.pace", "the next response goes when the client has acknowledged the one before"),
        ("timers: {stream_age_jitter: 3}", 10, "timers.stream_age_jitter", "always 20%"),
        ("timers: {wildcard_quiet: 3}", 10, "timers.wildcard_quiet", "always 250ms, and shorter once the pauses of a control plane are known"),
        ("timers: {write_stall: 3}", 10, "timers.write_stall", "always 60s"),
        ("verdicts: {after: 3}", 1, "verdicts", "every client is sent what the control plane says, and one that rejects it and holds nothing \
            is then sent older content"),
    ] {
        let config = Config::parse(&format!("{SERVER}{text}\n"), "relay.yaml", &Flags::default()).unwrap();
        let said = format!("relay.yaml:2:{place}: {key}: this key is gone: {holds}; remove it");
        assert_eq!(config.warnings.last(), Some(&said), "{text}");
        assert_eq!((config.limits, config.guard.all), (Limits::default(), GuardSettings::default()), "{text}");
    }
}

/// The same of a value.
#[test]
fn a_time_for_references_is_gone() {
    let text = format!("{SERVER}guard: {{references: 10m}}\n");
    let config = Config::parse(&text, "relay.yaml", &Flags::default()).unwrap();
    let said = "relay.yaml:2:21: guard.references: a time is gone here: what is named stays until nothing names it; write until_free, or off";
    assert_eq!(config.warnings, [said]);
    assert_eq!(config.guard.all, GuardSettings::default());
}

/// What is not YAML is said in plain words, with its place.
#[test]
#[rustfmt::skip]
fn what_is_not_yaml() {
    for (text, said) in [
        ("a: b: c\n", "1:5: not YAML: a `:` cannot be here; quote a value that contains `: `, or correct the indentation"),
        ("node:\n\tid: x\n", "2:2: not YAML: there is a tab where only spaces are allowed; indent with spaces"),
        ("node: 'x", "1:7: not YAML: the quote that begins here is never closed"),
        ("node: 'x\n", "1:7: not YAML: the quote that begins here is never closed"),
        ("a: [1, 2}\n", "1:4: not YAML: `[` is closed with `}`"),
        ("a: @b\n", "1:4: not YAML: a value cannot begin with `@`; quote it"),
        ("a: \"\\q\"\n", "1:4: not YAML: no such escape in double quotes; write `\\\\` for a backslash, or use single quotes"),
    ] {
        assert_eq!(parse(text).unwrap_err(), format!("relay.yaml:{said}"), "{text}");
    }
}
