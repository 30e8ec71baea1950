// SPDX-License-Identifier: Apache-2.0
//! `distributary validate`: what it reads, and what it says.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, KeyPair, date_time_ymd};

use distributary::xds::bucket;

use crate::{Relay, fails, file, has, output, prints, program};

/// A relay whose listener has TLS.
fn listening(tls: &str) -> String {
    let upstream = "upstream: {xds_servers: [{server_uri: cp:1}]}";
    format!("listeners: [{{address: '127.0.0.1:0', {tls}}}]\nadmin: {{address: '127.0.0.1:0'}}\n{upstream}\n")
}

/// A pipe would make it wait for a writer, and a device has no end.
#[test]
fn validate_does_not_wait_for_files() {
    let pipe = std::env::temp_dir().join(format!("distributary-pipe-{}", std::process::id()));
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
    for path in [pipe.to_str().unwrap(), "/dev/zero"] {
        let tls = format!("tls: {{certificate: '{path}', private_key: '{path}'}}");
        let path_of = file("waits.yaml", &listening(&tls));
        let words = format!("{path}: cannot be read: it is not a regular file");
        fails(1, &["validate", path_of.to_str().unwrap()], &words);
    }
    std::fs::remove_file(pipe).unwrap();
}

#[test]
fn validate_says_ok_or_what_is_wrong() {
    let good = file("good.yaml", "upstream: {xds_servers: [{server_uri: cp:1}]}\n");
    assert_eq!(prints(&["validate", good.to_str().unwrap()]), "OK\n");
    let bad = file("bad.yaml", "limits:\n  viewz: 3\n");
    let bad = bad.to_str().unwrap();
    let words = format!("{bad}:2:3: limits.viewz: unknown field `viewz`; did you mean `views`?");
    fails(1, &["validate", bad], &words);
}

/// A listener's certificate is checked too, by `validate` and at the start.
#[test]
fn validate_reads_certificates() {
    let pem = |text: String, name: &str| file(name, &text).to_str().unwrap().to_owned();
    let own = rcgen::generate_simple_self_signed(["relay".to_owned()]).unwrap();
    let certificate = pem(own.cert.pem(), "own.pem");
    let key = pem(own.signing_key.serialize_pem(), "own.key");
    let mut params = CertificateParams::new(["relay".to_owned()]).unwrap();
    params.not_after = date_time_ymd(2001, 1, 1);
    let old = pem(params.self_signed(&own.signing_key).unwrap().pem(), "old.pem");
    let with = |name: &str, certificate: &str, key: &str| {
        let tls = format!("tls: {{certificate: '{certificate}', private_key: '{key}'}}");
        pem(listening(&tls), name)
    };
    let good = with("secure.yaml", &certificate, &key);
    assert_eq!(prints(&["validate", &good]), "OK\n");
    let relay = Relay::start(program(&["serve", "--config", &good]));
    assert!(relay.line("listening for clients").contains("tls=true"));

    let expired = with("expired.yaml", &old, &key);
    let (code, out, error) = output(&["validate", &expired]);
    assert_eq!((code, out.as_str()), (Some(0), "OK\n"), "{error}");
    let said = format!("warning: {expired}: listeners[0].tls: {old}: clients will refuse it: certificate expired");
    assert!(error.starts_with(&said), "{error}");

    let bad = with("unfit.yaml", &certificate, "/nowhere/own.key");
    let words = format!("{bad}: listeners[0].tls: /nowhere/own.key: cannot be read: ");
    fails(1, &["validate", &bad], &words);
    let words = "tls of 127.0.0.1:0: /nowhere/own.key: cannot be read: ";
    fails(1, &["serve", "--config", &bad], words);
}

/// Files that the relay reads later are looked at as well, all in one go with what is wrong in the configuration itself.
#[test]
fn validate_reads_what_is_named() {
    let missing = file(
        "missing.yaml",
        "upstream:\n  xds_servers:\n    - server_uri: file:///nowhere/xds.yaml\n    - server_uri: cp:1\n      channel_creds:\n        - \
         {type: tls, config: {ca_certificate_file: /nowhere/ca.pem, certificate_file: /nowhere/c.pem, private_key_file: /nowhere/k.pem}}\n\
         descriptors: [/nowhere/x.pb]\nsnapshot: {dir: /dev/null}\nlimits: {viewz: 1}\n",
    );
    let error = fails(1, &["validate", missing.to_str().unwrap()], "");
    for words in [
        ":9:10: limits.viewz: unknown field",
        "descriptors: /nowhere/x.pb: ",
        "server file:///nowhere/xds.yaml: /nowhere/xds.yaml: cannot be read: ",
        "server cp:1: /nowhere/ca.pem: cannot be read: ",
        "server cp:1: /nowhere/c.pem: cannot be read: ",
        "snapshot.dir: /dev/null is not a directory",
    ] {
        has(&error, words);
    }
    assert_eq!(error.lines().count(), 6, "{error}");
}

/// Certificates towards control planes that have ended or will soon are warnings; a key of another certificate is a fault.
#[test]
#[expect(clippy::disallowed_methods, reason = "certificates go by the wall clock")]
fn validate_reads_certificates_towards_control_planes() {
    let key = KeyPair::generate().unwrap();
    let soon = std::time::SystemTime::now() + std::time::Duration::from_secs(10 * 24 * 3600);
    let made = |name: &str, ends| {
        let mut params = CertificateParams::new(["relay".to_owned()]).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.not_after = ends;
        file(name, &params.self_signed(&key).unwrap().pem())
    };
    let good = made("good.pem", date_time_ymd(4000, 1, 1));
    let old = made("ended.pem", date_time_ymd(2001, 1, 1));
    let ending = made("ending.pem", soon.into());
    let mut authority = CertificateParams::new(["ca".to_owned()]).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.not_after = soon.into();
    let authority = file("ending-ca.pem", &authority.self_signed(&key).unwrap().pem());
    let private = file("client.key", &key.serialize_pem());
    let other = file("other.key", &KeyPair::generate().unwrap().serialize_pem());
    let said = |ca: &Path, certificate: &Path, key: &Path| {
        let (ca, certificate, key) = (ca.display(), certificate.display(), key.display());
        let files = format!("ca_certificate_file: {ca}, certificate_file: {certificate}, private_key_file: {key}");
        let tls = format!("channel_creds: [{{type: tls, config: {{{files}}}}}]");
        let text = format!("upstream: {{xds_servers: [{{server_uri: 'https://cp', {tls}}}]}}\n");
        let (code, _, error) = output(&["validate", file("towards.yaml", &text).to_str().unwrap()]);
        (code, error)
    };
    assert_eq!(said(&good, &good, &private), (Some(0), String::new()));
    for (certificate, words) in [
        (&old, "ended.pem: certificate 1 in it has expired; renew it"),
        (&ending, "ending.pem: certificate 1 in it ends in "),
    ] {
        let (code, error) = said(&good, certificate, &private);
        assert_eq!((code, error.lines().count()), (Some(0), 1), "{error}");
        assert!(error.starts_with("warning: "), "{error}");
        has(&error, words);
    }
    for (code, said, words) in [
        (
            0,
            said(&authority, &good, &private),
            "ending-ca.pem: certificate 1 in it ends in ",
        ),
        (
            1,
            said(&good, &good, &other),
            "other.key: it is not the key of the first certificate in ",
        ),
    ] {
        assert_eq!(said.0, Some(code));
        has(&said.1, words);
    }
}

/// Files of resources, for CI: all their faults, each with its file and place.
#[test]
fn validate_reads_files_of_resources() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("resources");
    std::fs::create_dir_all(&folder).unwrap();
    let put = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    let cluster = |name: &str, more: &str| {
        format!("- '@type': type.googleapis.com/envoy.config.cluster.v3.Cluster\n  name: {name}\n{more}")
    };
    put("a.yaml", &cluster("a", ""));
    put("b.yaml", &cluster("b", "  type: STATIC\n"));
    let path = folder.to_str().unwrap();
    assert_eq!(prints(&["validate", "--resources", path]), "OK\n");
    let three = [
        cluster("a", "  tipe: STATIC\n"),
        cluster("c", ""),
        cluster("d", "  type: NONE\n"),
    ];
    put("a.yaml", &three.concat());
    put("b.yaml", &cluster("b", "  type: [\n"));
    let error = fails(1, &["validate", "--resources", path], "not YAML: ");
    for (line, place) in error.lines().zip(["/a.yaml:3:3:", "/a.yaml:8:9:", "/b.yaml:3:9:"]) {
        assert!(line.starts_with(&format!("{path}{place}")), "{error}");
    }
    assert_eq!(error.lines().count(), 3, "{error}");

    // Beside a configuration, whose settings count, and whose own sources are read as well.
    let text = format!("upstream: {{xds_servers: [{{server_uri: '{path}'}}]}}\nunknown_fields: warning\n");
    let config = file("sources.yaml", &text);
    put("b.yaml", &cluster("b", ""));
    let (code, _, error) = output(&["validate", config.to_str().unwrap(), "--resources", path]);
    assert_eq!(code, Some(0), "{error}");
    assert_eq!(error.matches("a.yaml:3:3").count(), 2, "{error}");
    assert!(error.lines().all(|line| line.starts_with("warning: ")), "{error}");
    fails(
        1,
        &["validate", "--resources", "/nowhere"],
        "/nowhere: cannot be read: No such file",
    );
}

/// A file that is named with `./` is told without it, as the editor that opens it wants.
#[test]
fn validate_names_files_plainly() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("plain");
    std::fs::create_dir_all(folder.join("resources")).unwrap();
    std::fs::write(folder.join("resources/a.yaml"), "resorces: []\n").unwrap();
    let config = folder.join("relay.yaml");
    std::fs::write(&config, "upstream: {xds_servers: [{server_uri: ./resources}]}\n").unwrap();
    let error = fails(1, &["validate", config.to_str().unwrap()], "");
    let file = folder.join("resources/a.yaml").display().to_string();
    let words = "1:1: DiscoveryResponse has no field `resorces`; did you mean `resources`?";
    assert_eq!(error, format!("{file}:{words}\n"));
}

/// S-05: secrets in files that no client may have, and files that nobody may read, are seen before a start.
#[test]
fn validate_finds_what_nobody_may_have() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("withheld");
    std::fs::create_dir_all(&folder).unwrap();
    let secret = "- '@type': type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret\n  name: s\n";
    std::fs::write(folder.join("secrets.yaml"), secret).unwrap();
    let judged = |name: &str, more: &str| {
        let path = folder.join("secrets.yaml").display().to_string();
        let text = format!("upstream: {{xds_servers: [{{server_uri: '{path}'}}]}}\n{more}");
        let (code, _, error) = output(&["validate", file(name, &text).to_str().unwrap()]);
        assert_eq!(code, Some(0), "{error}");
        error
    };
    let warning = judged("withheld.yaml", "");
    assert!(warning.starts_with("warning: "), "{warning}");
    has(&warning, "secrets.yaml: no client may have the resources of type ");
    assert_eq!(judged("served.yaml", "secrets: allow\n"), "");
    assert_eq!(judged("ruled.yaml", "rules: [{name: all, types: sds}]\n"), "");
    assert!(judged("unnamed.yaml", "rules: [{name: all}]\n").contains("no client may have"));
}

/// A revocation list of an authority with this key.
fn revoked_nothing(key: &KeyPair) -> String {
    let params = CertificateParams::new(["relay".to_owned()]).unwrap();
    let list = rcgen::CertificateRevocationListParams {
        this_update: date_time_ymd(2024, 1, 1),
        next_update: date_time_ymd(3000, 1, 1),
        crl_number: rcgen::SerialNumber::from(1),
        issuing_distribution_point: None,
        revoked_certs: Vec::new(),
        key_identifier_method: rcgen::KeyIdMethod::Sha256,
    };
    let issuer = rcgen::Issuer::from_params(&params, key);
    list.signed_by(&issuer).unwrap().pem().unwrap()
}

/// Every shipped configuration passes, with the files that it names.
#[test]
fn the_shipped_files_are_valid() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("config");
    let made = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("shipped");
    let own = rcgen::generate_simple_self_signed(["relay".to_owned()]).unwrap();
    let secrets = made.join("etc/distributary/secrets");
    std::fs::create_dir_all(&secrets).unwrap();
    let secret =
        "resources: [{'@type': type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret, name: one}]\n";
    std::fs::write(secrets.join("one.yaml"), secret).unwrap();
    let mut checked = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "yaml") {
            continue;
        }
        // The files are looked for in a folder of the test instead of the root.
        let mut text = std::fs::read_to_string(&path).unwrap();
        text = text.replace(": ./", &format!(": {}/", folder.display()));
        for root in ["/etc/", "/var/"] {
            text = text.replace(&format!(" {root}"), &format!(" {}{root}", made.display()));
        }
        for word in text.split_whitespace() {
            let word = word.trim_matches(['"', ',', '[', ']', '{', '}']);
            let name = Path::new(word);
            let is_file = name.extension().is_some() || word.ends_with("xds") || word.ends_with("token");
            if !name.starts_with(&made) || !is_file {
                continue;
            }
            std::fs::create_dir_all(name.parent().unwrap()).unwrap();
            let content = match name.extension().and_then(|ending| ending.to_str()) {
                Some("key") => own.signing_key.serialize_pem(),
                // A FileDescriptorSet with a file that has a name and nothing else.
                Some("binpb") => "\n\u{3}\n\u{1}a".to_owned(),
                Some("crl") => revoked_nothing(&own.signing_key),
                Some("json") => "{\"keys\": []}".to_owned(),
                Some(_) => own.cert.pem(),
                None => "a token".to_owned(),
            };
            std::fs::write(name, content).unwrap();
        }
        let file = file(path.file_name().unwrap().to_str().unwrap(), &text);
        let (code, out, error) = output(&["validate", file.to_str().unwrap()]);
        assert_eq!((code, out.as_str()), (Some(0), "OK\n"), "{}: {error}", path.display());
        checked += 1;
    }
    assert!(checked >= 12, "only {checked} files");
}

/// S-01: `--explain` says which rule decides, and why no rule before it does; the exit code is that of the check.
#[test]
fn validate_explains_rules() {
    let text = "upstream: {xds_servers: [{server_uri: cp:1}]}\nrules:\n\
        - {name: tenants, identities: 'spiffe://td/ns/{ns}/sa/*', nodes: {id: '*.{ns}'}, names: '{ns}/*'}\n\
        - {name: operators, identities: 'ip:10.*'}\n";
    let path = file("rules.yaml", text).to_str().unwrap().to_owned();
    let tenant = ["--identity", "spiffe://td/ns/a/sa/x", "--node", "web.a,edge"];
    let denied = "DENIED: no rule matches, and what no rule allows is denied\n  rules[0] `tenants`: the name matches no pattern\n  \
         rules[1] `operators`: no text of the identity matches `identities`\n";
    for (more, said) in [
        (
            &[][..],
            "ALLOWED: rules[0] `tenants` allows it, of the names `{ns}/*`\n",
        ),
        (
            &["--type", "cds", "--name", "a/x"],
            "ALLOWED: rules[0] `tenants` allows it\n",
        ),
        (&["--type", "cds", "--name", "b/x"], denied),
    ] {
        assert_eq!(
            prints(&[&["validate", &path, "--explain"], &tenant[..], more].concat()),
            said
        );
    }
    let error = fails(2, &["validate", &path, "--explain"], "--node");
    has(&error, "--admin");
    fails(2, &["validate", &path, "--node", "x"], "--explain");
}

/// F-18, G-23: `--explain` says which servers are asked, and by which part of the fleet a client is.
#[test]
fn validate_explains_servers() {
    let list = |uri: &str| format!("xds_servers: [{{server_uri: '{uri}'}}]");
    let text = format!(
        "node: {{id: relay}}\nupstream: {{{}, authorities: {{x: {{{}}}}}}}\nsources: [{{name: registry, types: [eds], {}}}]\n\
         canary: {{share: 5%, {}}}\nclasses: [{{match: {{cluster: edge}}, node: {{id: edge}}, {}}}]\n",
        list("a:1"),
        list("x:1"),
        list("r:1"),
        list("b:1"),
        list("c:1")
    );
    let path = file("servers.yaml", &text).to_str().unwrap().to_owned();
    let found = |range: std::ops::Range<u16>| {
        let mut all = (0..).map(|number: u32| format!("client-{number}"));
        all.find(|id| bucket(id).is_some_and(|bucket| range.contains(&bucket)))
            .unwrap()
    };
    let (few, most) = (found(0..500), found(500..10_000));
    let bucket = bucket(&few).unwrap();
    let canary = format!("b:1, then a:1 (canary 5%: its bucket is {bucket} of 10000)");
    let (name, edge) = ("xdstp://x/envoy.config.cluster.v3.Cluster/one", format!("{few},edge"));
    for (more, said) in [
        (
            &["--node", &most][..],
            "eds, eds_v2 of source registry: r:1; names under x: x:1; all else: a:1",
        ),
        (&["--node", &few, "--type", "cds"], &canary),
        (&["--node", &few, "--type", "eds"], "r:1 (source registry)"),
        (&["--node", &few, "--type", "cds", "--name", name], "x:1 (authority x)"),
        (&["--node", &edge, "--type", "cds"], "c:1"),
    ] {
        let out = prints(&[&["validate", &path, "--explain"], more].concat());
        let line = out.lines().find_map(|line| line.strip_prefix("servers: "));
        assert_eq!(line, Some(said), "{out}");
    }
}

/// S-09: `--explain --admin` says which rule of the admin address decides.
#[test]
fn validate_explains_rules_of_the_admin_address() {
    let text = "upstream: {xds_servers: [{server_uri: cp:1}]}\n\
        admin: {rules: [{identities: 'ip:10.*', allow: read}, {identities: 'uid:0', allow: [read, change]}]}\n";
    let path = file("admin-rules.yaml", text).to_str().unwrap().to_owned();
    for (identity, action, said) in [
        (
            "uid:0",
            "change",
            "ALLOWED: admin.rules[1] is the first rule that matches, and allows it\n",
        ),
        (
            "ip:10.0.0.1",
            "change",
            "DENIED: admin.rules[0] is the first rule that matches, and does not allow it\n",
        ),
        (
            "ip:11.0.0.1",
            "read",
            "DENIED: no rule in `admin.rules` matches, and what no rule allows is denied\n",
        ),
    ] {
        let args = [
            "validate",
            &path,
            "--explain",
            "--identity",
            identity,
            "--admin",
            action,
        ];
        assert_eq!(prints(&args), said);
    }
    let path = file("no-admin-rules.yaml", "upstream: {xds_servers: [{server_uri: cp:1}]}\n");
    let out = prints(&["validate", path.to_str().unwrap(), "--explain", "--admin", "read"]);
    assert_eq!(
        out,
        "ALLOWED: there are no `admin.rules`, and without rules all is allowed\n"
    );
}

/// K-02: it also says of which class the client is.
#[test]
fn validate_explains_classes() {
    let text = "node: {id: relay}\nupstream: {xds_servers: [{server_uri: cp:1}]}\nclasses:\n\
        - {match: {identity.spiffe: 'spiffe://td/ns/{ns}/sa/*'}, key: [ns, cluster]}\n";
    let path = file("classes.yaml", text).to_str().unwrap().to_owned();
    let edge = r#"classes[0] with ns="a", cluster="edge"; control planes see node id "relay/ns=a/cluster=edge""#;
    let none = r#"no rule of `classes`; control planes see node id "relay""#;
    for (identity, said) in [("spiffe://td/ns/a/sa/x", edge), ("ip:10.0.0.7", none)] {
        let out = prints(&[
            "validate",
            &path,
            "--explain",
            "--node",
            "x,edge",
            "--identity",
            identity,
        ]);
        assert_eq!(out.lines().last(), Some(format!("class: {said}").as_str()));
    }
}
