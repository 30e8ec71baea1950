# SPDX-License-Identifier: Apache-2.0
"""The chart with each of its files of values, each story of the manual in it, and each manifest: taken by a real API server, whole."""

import json
import re
import subprocess
from pathlib import Path

import yaml

from peers.process import Failed

ROOT = Path(__file__).resolve().parents[3]
CONFIG = ROOT / "config"
CHART = CONFIG / "kubernetes" / "chart"
IMAGE = ("--set", "image.repository=registry.example.com/distributary")
PLANE = ("--set", "config.upstream.xds_servers[0].server_uri=control-plane.xds.svc:18000")
# What the chart has off by default.
ALL = ("prometheusRule.enabled=true", "dashboard.enabled=true", "serviceMonitor.enabled=true", "autoscaling.enabled=true",
       "certificate.issuerRef.name=workloads", "service.trafficDistribution=PreferClose", "networkPolicy.egress[0].ports[0].port=443",
       "podDisruptionBudget.maxUnavailable=25%", "priorityClassName=system-cluster-critical", "pullSecrets[0]=registry")
# Stories that name files, with the values that mount them; all others need none.
MOUNTS = {"contour": "contour", "envoy-gateway": "envoy-gateway", "istio": "istio", "istio-tokens": "istio-tokens", "outside": "certificates", "zone-tier": "certificates",
          "regional-tier": "certificates", "sidecar": "sidecar"}
# Stories that are no files for a pod: one is a part of another file, and one needs the folder beside it.
OTHERS = {"reference", "quickstart"}
# Values that only an API server knows to be wrong, and a word of its reason.
REFUSED = {
    "a valid label": ("--set", "labels.team=not one!"),
    "not found": ("--set", "extraVolumeMounts[0].name=nothing", "--set", "extraVolumeMounts[0].mountPath=/etc/distributary"),
    "limit": ("--set", "resources.requests.memory=1Gi"),
}


class Applied:
    """What was taken, as lines of a table."""

    def __init__(self, cluster, relay):
        self.cluster, self.relay, self.rows = cluster, relay, []
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "xds"}})

    def play(self):
        for values in sorted((CONFIG / "kubernetes" / "values").glob("*.yaml")):
            self.installed(values.stem, ("--values", values, *IMAGE, *(() if "upstream:" in values.read_text() else PLANE)))
        self.installed("everything that is off by default on", (*IMAGE, *PLANE, *(word for one in ALL for word in ("--set", one))))
        for story in sorted(CONFIG.glob("*.yaml")):
            if story.stem not in OTHERS:
                self.story(story)
        for file in sorted((CONFIG / "kubernetes").glob("*.yaml")):
            self.manifest(file.relative_to(ROOT), file.read_text())
        for page in sorted(CONFIG.glob("*.md")):
            for block in re.findall(r"^( *)```yaml\n(.*?)^ *```", page.read_text(), re.M | re.S):
                text = re.sub(f"^{block[0]}", "", block[1], flags=re.M)
                if re.search(r"^apiVersion: ", text, re.M):
                    self.manifest(f"{page.relative_to(ROOT)}: {kinds(text)}", text)
        self.refused()

    def done(self, what, objects):
        self.rows.append((what, objects))
        print(f"    {what}: {objects} objects", flush=True)

    def installed(self, name, arguments):
        """Installed, upgraded, rolled back and removed; what the API server has is what was rendered."""
        release, given = f"r-{re.sub('[^a-z]+', '-', name)[:30].strip('-')}", None
        story = arguments[-1] if isinstance(arguments[-1], str) and arguments[-1].startswith("config:") else None
        if story:
            arguments, given = (*arguments[:-1], "--values", "-"), story
        run = lambda *words: self.cluster.helm(*words, "--namespace", "xds", given=given)
        run("install", release, CHART, *arguments)
        whole = self.whole(release)
        run("upgrade", release, CHART, *arguments, "--set", "image.tag=0.1.1", "--set", "drain.seconds=40", "--set", "annotations.changed=yes")
        self.whole(release)
        self.cluster.helm("rollback", release, "1", "--namespace", "xds")
        if self.whole(release) != whole:
            raise Failed(f"{name}: a rollback does not lead back")
        validated = self.validated(release)
        self.cluster.helm("uninstall", release, "--namespace", "xds")
        self.done(f"chart with {name}, relay's configuration {validated}", len(whole))

    def whole(self, release):
        """The objects of the release, each of which the API server has with every field that was sent."""
        sent = [one for one in yaml.safe_load_all(self.cluster.helm("get", "manifest", release, "--namespace", "xds")) if one]
        self.kept(sent)
        return sent

    def kept(self, sent, namespace="xds"):
        for one in sent:
            name, kind = one["metadata"]["name"], one["kind"]
            where = ("--namespace", one["metadata"].get("namespace", namespace))
            group = one["apiVersion"].partition("/")[0] if "/" in one["apiVersion"] else ""
            got = json.loads(self.cluster.kubectl("get", f"{kind}.{group}".lower().rstrip("."), name, *where, "-o", "json"))
            if lost := missing(one, got):
                raise Failed(f"the API server does not have {kind} {name}{lost}")

    def story(self, file):
        """A story of the manual as the chart's `config`, with the values that mount its files, in the way that the manual says."""
        text, mounts = file.read_text(), MOUNTS.get(file.stem)
        named = set(re.findall(r"/(?:etc|run)/distributary/[^\"'\s,]+", re.sub(r"#.*$", "", text, flags=re.M)))
        if bool(named) != bool(mounts):
            raise Failed(f"{file.name} names {named or 'no files'}, and the values for it are {mounts}")
        values = ("--values", CONFIG / "kubernetes" / "values" / f"{mounts}.yaml") if mounts else ()
        mode = ("--set", "mode=sidecar") if file.stem == "sidecar" else ()
        port = re.search(r"^ *- address: \S+:(\d+)", text, re.M)
        port = ("--set", f"port={port[1]}") if port and port[1] != "15010" else ()
        self.placed(named, self.cluster.helm("template", "x", CHART, "--kube-version", "1.37", *values, *IMAGE, *mode, *port, "--values", "-",
                                             given=as_config(text)))
        self.installed(file.name, (*values, *IMAGE, *mode, *port, as_config(text)))

    def placed(self, named, rendered):
        """Each file that a story names is one of a volume; names of fields in its path stand for any name."""
        pods = next(one for one in yaml.safe_load_all(rendered) if one and one["kind"] in ("Deployment", "PodTemplate"))
        spec = (pods.get("spec") or pods)["template"]["spec"]
        volumes = {volume["name"]: volume for volume in spec["volumes"]}
        mounts = [*spec.get("initContainers", []), *spec["containers"]][0]["volumeMounts"]
        for path in named:
            mount = next((one for one in mounts if path.startswith(f"{one['mountPath']}/")), None)
            volume = volumes[mount["name"]] if mount else {}
            sources = [next(iter(source.values())) for source in volume.get("projected", {}).get("sources", [])] or [volume.get("secret", {})]
            items = [item["path"] for source in sources for item in source.get("items", [])]
            within = re.sub(r"\\{[^/]*?\\}", "[^/]+", re.escape(path.removeprefix(f"{mount['mountPath']}/"))) if mount else ""
            if not mount or (items and not any(re.fullmatch(within, item) for item in items) and "/sidecars/" not in path):
                raise Failed(f"{path} is not in a volume: {mount}, {items}")

    def validated(self, release):
        """The relay's own word about the ConfigMap that is there; files that a pod would have are not here."""
        name = f"{release}-distributary"
        text = self.cluster.get(f"/api/v1/namespaces/xds/configmaps/{name}")["data"]["relay.yaml"]
        file = self.cluster.folder / "relay.yaml"
        file.write_text(text)
        done = subprocess.run([self.relay, "validate", file], capture_output=True, text=True, timeout=60)
        wrong = [line for line in (done.stdout + done.stderr).splitlines() if line.strip() and not line.startswith("warning:") and line != "OK"]
        if wrong := [line for line in wrong if "No such file" not in line and "/etc/distributary" not in line and "/var/" not in line]:
            raise Failed(f"{release}: {wrong}")
        return "is valid"

    def manifest(self, name, text):
        """Applied on the server's side, strictly, where every field stays; then deleted."""
        objects = [one for one in yaml.safe_load_all(text) if one]
        for one in objects:
            namespace = one["metadata"].get("namespace", "default")
            self.cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        self.cluster.apply(text)
        self.kept(objects, "default")
        self.cluster.kubectl("delete", "--wait=false", "-f", "-", given=text)
        self.done(name, len(objects))

    def refused(self):
        """An upgrade that the API server refuses leaves the release that was there, and a rollback ends it."""
        self.cluster.helm("install", "good", CHART, "--namespace", "xds", *IMAGE, *PLANE)
        for word, arguments in REFUSED.items():
            said = self.cluster.helm("upgrade", "good", CHART, "--namespace", "xds", *IMAGE, *PLANE, *arguments, refused=True)
            if word.lower() not in said.lower():
                raise Failed(f"{arguments} are refused without the word {word}: {said}")
            self.cluster.helm("rollback", "good", "1", "--namespace", "xds")
            self.whole("good")
        self.cluster.helm("uninstall", "good", "--namespace", "xds")
        self.done("upgrades that the API server refuses, each rolled back", len(REFUSED))


def as_config(story):
    """A story as the chart's values, in the way of the manual: sed 's/^./  &/'."""
    return "config:\n" + re.sub("^(?=.)", "  ", story, flags=re.M)


def kinds(text):
    return ", ".join(re.findall(r"^kind: (\S+)", text, re.M))


def missing(sent, got, at=""):
    """Where something that was sent is not there; nothing if all is."""
    if isinstance(sent, dict):
        if not isinstance(got, dict):
            return f"{at}" if sent else ""
        return next((lost for key, value in sent.items() if value not in (None, {}, [], "")
                     if (lost := missing(value, got.get(key), f"{at}.{key}"))), "")
    if isinstance(sent, list):
        if not isinstance(got, list) or len(got) < len(sent):
            return at
        if all(isinstance(one, dict) and "name" in one for one in sent):
            by = {one.get("name"): one for one in got}
            return next((lost for one in sent if (lost := missing(one, by.get(one["name"]), f"{at}[{one['name']}]"))), "")
        return next((lost for one, there in zip(sent, got) if (lost := missing(one, there, f"{at}[]"))), "")
    return "" if str(sent) == str(got) or amount(sent) == amount(got) else f"{at}: {sent!r}, but {got!r}"


def amount(text):
    """A quantity as a number: the API server writes 1000m as 1, and 20000 as 20k."""
    found = re.fullmatch(r"([0-9.]+)(m|k|M|Ki|Mi|Gi)?", str(text))
    return float(found[1]) * {None: 1, "m": 0.001, "k": 1e3, "M": 1e6, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}[found[2]] if found else text
