// SPDX-License-Identifier: Apache-2.0
//! The manifests for Kubernetes that are kept as they are rendered from the chart: they fit together, and the relay starts with them.
//! Whether they are what the chart renders to, and fit the API of Kubernetes, is checked by `config/kubernetes/check`, which needs helm.

use std::collections::BTreeSet;

use distributary::config::{Address, AdminAction, Config, Flags};
use serde_json::Value;

use crate::tree;

const FILES: [&str; 2] = ["deployment", "sidecar"];

fn yaml(path: &str) -> Value {
    serde_saphyr::from_str(&tree::read(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The objects in a rendered file.
fn objects(name: &str) -> Vec<Value> {
    let text = tree::read(&format!("config/kubernetes/{name}.yaml"));
    let documents = text
        .split("\n---\n")
        .map(|one| serde_saphyr::from_str::<Value>(one).unwrap());
    documents.filter(|one| !one.is_null()).collect()
}

fn of_kind(name: &str, kind: &str) -> Option<Value> {
    objects(name)
        .into_iter()
        .find(|object| object.get("kind").is_some_and(|found| found == kind))
}

/// The spec of the pods, and the relay's container in it.
fn pod(name: &str) -> (Value, Value) {
    let kind = if name == "sidecar" { "PodTemplate" } else { "Deployment" };
    let object = of_kind(name, kind).unwrap();
    let spec = object
        .pointer("/template/spec")
        .or_else(|| object.pointer("/spec/template/spec"));
    let spec = spec.unwrap().clone();
    let list = if kind == "PodTemplate" {
        "initContainers"
    } else {
        "containers"
    };
    let container = spec.pointer(&format!("/{list}/0")).unwrap().clone();
    (spec, container)
}

/// The relay's own configuration.
fn relay(name: &str) -> Config {
    let map = of_kind(name, "ConfigMap").unwrap();
    let text = map.pointer("/data/relay.yaml").unwrap().as_str().unwrap();
    let config = Config::parse(text, name, &Flags::default()).unwrap_or_else(|error| panic!("{error}"));
    // Who may connect is not for the chart to say: the log at the start warns whoever installs it.
    let others = config
        .warnings
        .iter()
        .filter(|said| !said.contains("whoever reaches 0.0.0.0:15010 is served"));
    assert_eq!(others.count(), 0, "{name}: {:?}", config.warnings);
    config
}

fn port(address: &Address) -> u64 {
    match address {
        Address::Socket(address) => address.port().into(),
        Address::Unix(path) => panic!("{} is no port", path.display()),
    }
}

/// These files are kept, each beside its values, and no others are there.
#[test]
fn only_what_people_apply_is_kept() {
    let files = tree::files();
    let names = |folder: &str| -> BTreeSet<String> {
        let files = files
            .iter()
            .filter_map(|file| file.path.strip_prefix(folder)?.strip_suffix(".yaml"));
        files.filter(|name| !name.contains('/')).map(str::to_owned).collect()
    };
    let expected: BTreeSet<String> = FILES.map(str::to_owned).into();
    assert_eq!(names("config/kubernetes/"), expected);
    assert!(names("config/kubernetes/values/").is_superset(&expected));
}

/// The chart has the version of the program, and so has the image that it starts.
#[test]
fn the_chart_is_of_this_version() {
    let chart = yaml("config/kubernetes/chart/Chart.yaml");
    for key in ["version", "appVersion"] {
        assert_eq!(chart[key], env!("CARGO_PKG_VERSION"), "{key}");
    }
    for name in FILES {
        let (_, container) = pod(name);
        assert_eq!(
            container["image"],
            concat!("distributary:", env!("CARGO_PKG_VERSION")),
            "{name}"
        );
    }
}

/// A chart can only use files of its own, so it has copies of the alerts and the dashboard.
#[test]
fn the_chart_has_the_alerts_and_the_dashboard() {
    for name in ["alerts.yaml", "dashboard.json"] {
        let (own, there) = (
            tree::read(&format!("config/kubernetes/chart/files/{name}")),
            tree::read(&format!("config/observability/{name}")),
        );
        assert!(own == there, "config/kubernetes/check --write copies {name}");
    }
}

/// Ports, paths and files agree from the configuration to the Service.
#[test]
fn everything_is_where_the_relay_has_it() {
    for name in FILES {
        let (config, (spec, container)) = (relay(name), pod(name));
        let ports = container["ports"].as_array().unwrap();
        let of = |name: &str| {
            let port = ports.iter().find(|port| port["name"] == name).unwrap();
            port["containerPort"].as_u64().unwrap()
        };
        assert_eq!(of("grpc-xds"), port(&config.listeners[0].address), "{name}");
        assert_eq!(of("http-probes"), port(config.probes.as_ref().unwrap()), "{name}");
        assert!(!config.admin_is_open(), "{name}");
        for (probe, path) in [("readinessProbe", "/ready"), ("livenessProbe", "/live")] {
            assert_eq!(
                container[probe]["httpGet"],
                serde_json::json!({"path": path, "port": "http-probes"}),
                "{name}"
            );
        }
        let volumes = spec["volumes"].as_array().unwrap();
        for mount in container["volumeMounts"].as_array().unwrap() {
            assert!(
                volumes.iter().any(|volume| volume["name"] == mount["name"]),
                "{name}: {mount}"
            );
        }
        let mounted = |folder: &std::path::Path| {
            let mounts = container["volumeMounts"].as_array().unwrap();
            mounts
                .iter()
                .any(|mount| folder.starts_with(mount["mountPath"].as_str().unwrap()))
        };
        assert!(
            config
                .snapshot
                .as_ref()
                .and_then(|snapshot| snapshot.dir.as_ref())
                .is_none_or(|dir| mounted(dir)),
            "{name}"
        );
        assert_eq!(
            container["args"].as_array().unwrap()[..3],
            ["serve", "--config", "/etc/distributary-config/relay.yaml"],
            "{name}"
        );
        for service in objects(name).iter().filter(|object| object["kind"] == "Service") {
            for port in service["spec"]["ports"].as_array().unwrap() {
                assert_eq!(port["port"], of(port["targetPort"].as_str().unwrap()), "{name}");
            }
        }
    }
}

/// Kubernetes waits longer than the relay takes to let its clients go.
#[test]
fn nobody_is_cut_off() {
    let (config, (spec, container)) = (relay("deployment"), pod("deployment"));
    let drain = (config.timers.drain_announce + config.timers.drain).as_secs();
    assert!(spec["terminationGracePeriodSeconds"].as_u64().unwrap() >= drain + 10);
    let before = &container["lifecycle"]["preStop"]["exec"]["command"];
    assert_eq!(*before, serde_json::json!(["/usr/bin/distributary", "drain"]));
    let update = &of_kind("deployment", "Deployment").unwrap()["spec"]["strategy"]["rollingUpdate"];
    assert_eq!(update["maxUnavailable"], 0);
}

/// One late probe sends no client away; a relay leaves a dead node soon.
#[test]
fn relays_are_where_clients_are() {
    for name in FILES {
        let (_, container) = pod(name);
        assert_eq!(container["readinessProbe"]["failureThreshold"], 2, "{name}");
    }
    let (spec, _) = pod("deployment");
    let leaves = spec["tolerations"].as_array().unwrap().iter();
    let leaves: Vec<_> = leaves.map(|one| (&one["key"], &one["tolerationSeconds"])).collect();
    let (not_ready, unreachable) = (
        "node.kubernetes.io/not-ready".into(),
        "node.kubernetes.io/unreachable".into(),
    );
    assert_eq!(leaves, [(&not_ready, &30.into()), (&unreachable, &30.into())]);
}

/// Pods have no rights that the relay does not need.
#[test]
fn pods_have_few_rights() {
    for name in FILES {
        let (spec, container) = pod(name);
        let rights = &container["securityContext"];
        assert_eq!(rights["readOnlyRootFilesystem"], true, "{name}");
        assert_eq!(rights["allowPrivilegeEscalation"], false, "{name}");
        assert_eq!(rights["runAsNonRoot"], true, "{name}");
        assert_eq!(rights["runAsUser"], 65532, "{name}: the user of the image");
        assert_eq!(rights["capabilities"]["drop"], serde_json::json!(["ALL"]), "{name}");
        assert_eq!(rights["seccompProfile"]["type"], "RuntimeDefault", "{name}");
        assert!(
            container["resources"]["limits"]["memory"].is_string(),
            "{name}: limits.memory follows it"
        );
        if name != "sidecar" {
            assert_eq!(spec["automountServiceAccountToken"], false, "{name}");
            assert_eq!(
                of_kind(name, "ServiceAccount").unwrap()["automountServiceAccountToken"],
                false
            );
        }
    }
    let rules = &of_kind("deployment", "NetworkPolicy").unwrap()["spec"]["ingress"];
    let opened: Vec<_> = rules
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| &rule["ports"][0]["port"])
        .collect();
    assert_eq!(opened, [15010, 9902, 9901]);
    let relays = serde_json::json!([{ "podSelector": { "matchLabels": of_kind("deployment", "Deployment").unwrap()["spec"]["selector"]["matchLabels"] } }]);
    assert_eq!(rules[2]["from"], relays, "only relays reach the admin address");
    assert!(
        relay("deployment")
            .admin_rules
            .decide(&["ip:10.0.0.7"], AdminAction::Change)
            .is_err()
    );
    // Beside its program, the admin address stays on loopback.
    assert!(
        relay("sidecar")
            .snapshot
            .is_none_or(|snapshot| snapshot.from.is_empty())
    );
    assert_eq!(relay("sidecar").admin, Address::parse("127.0.0.1:9901").unwrap());
}

/// The schema of the chart knows each value that there is, and each key of the relay's configuration.
#[test]
fn the_schema_knows_every_value() {
    let schema: Value = serde_json::from_str(&tree::read("config/kubernetes/chart/values.schema.json")).unwrap();
    let keys = |value: &Value| -> BTreeSet<String> { value.as_object().unwrap().keys().cloned().collect() };
    let mut known = keys(&schema["properties"]);
    assert!(known.remove("global"), "helm sets it");
    let values = yaml("config/kubernetes/chart/values.yaml");
    assert_eq!(known, keys(&values));
    for (key, value) in values
        .as_object()
        .unwrap()
        .iter()
        .filter(|(_, value)| value.is_object())
    {
        let schema = &schema["properties"][key];
        if !value.as_object().unwrap().is_empty() {
            assert_eq!(keys(&schema["properties"]), keys(value), "{key}");
            assert_eq!(schema["additionalProperties"], false, "{key}");
        }
    }
    let error = Config::parse("zzz: 1\n", "x", &Flags::default())
        .unwrap_err()
        .to_string();
    let (_, listed) = error.split_once("expected one of ").unwrap();
    let listed = listed.lines().next().unwrap().split(", ").map(str::to_owned);
    assert_eq!(keys(&schema["properties"]["config"]["properties"]), listed.collect());
}
