# SPDX-License-Identifier: Apache-2.0
"""What the chart renders to fits together: `rendered.py FOLDER`, a file for each file of values. Those that are kept in this folder
are looked at by a test of CI (tests/tidy/kubernetes.rs), together with the relay's own configuration; this is about the others."""

import sys
from pathlib import Path

import yaml

FOLDER = Path(sys.argv[1])


class Rendered(dict):
    """The objects of one file, by kind; of several of a kind, those that are no Service are the last one."""

    def __init__(self, name):
        self.objects = [one for one in yaml.safe_load_all((FOLDER / f"{name}.yaml").read_text()) if one]
        super().__init__((one["kind"], one) for one in self.objects)
        pods = self.get("Deployment") or self.get("DaemonSet")
        self.spec = pods["spec"]["template"]["spec"]
        self.container = self.spec["containers"][0]
        self.config = yaml.safe_load(self["ConfigMap"]["data"]["relay.yaml"])

    def services(self):
        return [one for one in self.objects if one["kind"] == "Service"]


def mounts_are_apart(name, rendered):
    """Every volume is there, and nothing is mounted inside of a volume that is read-only: the container would not start."""
    volumes = {one["name"] for one in rendered.spec["volumes"]}
    paths = [mount["mountPath"] for mount in rendered.container["volumeMounts"]]
    assert {mount["name"] for mount in rendered.container["volumeMounts"]} == volumes, name
    for one in paths:
        assert not any(one != other and one.startswith(f"{other}/") for other in paths), f"{name}: {one} is inside of another mount"
    for volume in rendered.spec["volumes"]:
        for source in volume.get("projected", {}).get("sources", []):
            assert next(iter(source)) in ("secret", "configMap", "clusterTrustBundle", "serviceAccountToken"), f"{name}: {source}"


def admin_is_apart(name, rendered):
    """Where the configuration has its own rules or certificates, the admin address stays on loopback; a deployment's is for its own pods."""
    opened = [rule["ports"][0]["port"] for rule in rendered["NetworkPolicy"]["spec"]["ingress"]]
    own = "9901" in str(rendered.config.get("admin"))
    assert (9901 in opened) == own, f"{name}: {opened}"
    assert not own or name not in ("daemonset", "tier", "trust-bundle"), name


def main():
    for file in sorted(FOLDER.glob("*.yaml")):
        if file.stem != "sidecar":
            rendered = Rendered(file.stem)
            mounts_are_apart(file.stem, rendered)
            admin_is_apart(file.stem, rendered)
    node = Rendered("daemonset")
    assert node.spec["tolerations"] == [{"operator": "Exists"}], "a relay is on each node"
    assert node.services()[0]["spec"]["internalTrafficPolicy"] == "Local", "clients ask the relay of their node"
    tier = Rendered("tier")
    assert "replicas" not in tier["Deployment"]["spec"], "the autoscaler sets them"
    scaler = tier["HorizontalPodAutoscaler"]["spec"]
    assert scaler["metrics"][0]["pods"]["metric"]["name"] == "distributary_streams"
    assert scaler["behavior"]["scaleDown"]["stabilizationWindowSeconds"] >= 3600, "clients come back within two times timers.stream_age"
    monitor = tier["ServiceMonitor"]["spec"]
    assert monitor["endpoints"][0]["port"] == "http-probes"
    scraped = [one for one in tier.services() if monitor["selector"]["matchLabels"].items() <= one["metadata"]["labels"].items()]
    assert [one["spec"].get("clusterIP") for one in scraped] == ["None"], "one Service is scraped"
    assert tier["PodDisruptionBudget"]["spec"]["selector"] == tier["Deployment"]["spec"]["selector"]
    trust = Rendered("trust-bundle")
    certificate, volumes = trust["Certificate"]["spec"], trust.spec["volumes"]
    assert any(one.get("secret", {}).get("secretName") == certificate["secretName"] for one in volumes)
    for service in trust.services():
        assert f"{service['metadata']['name']}.default.svc" in certificate["dnsNames"], service["metadata"]["name"]
    tls = trust.config["listeners"][0]["tls"]
    paths = tuple(f"{mount['mountPath']}/" for mount in trust.container["volumeMounts"])
    assert all(path.startswith(paths) for path in tls.values()), tls


main()
