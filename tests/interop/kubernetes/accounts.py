# SPDX-License-Identifier: Apache-2.0
"""The page of the manual about control planes that do not authenticate, with tokens that a real API server signed and keys that it serves."""

import json
import re
import subprocess

from applied import CHART, CONFIG, IMAGE, as_config
from peers.process import Failed
from pods import Pod, workload

CLUSTERS = """resources:
  - { "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: a/web, type: STATIC, load_assignment: { cluster_name: a/web } }
  - { "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: b/web, type: STATIC, load_assignment: { cluster_name: b/web } }
"""


class Accounts:
    """The control plane is a file; clients are `distributary get`."""

    def __init__(self, cluster, relay):
        self.cluster, self.relay, self.answers = cluster, relay, 0

    def play(self):
        cluster, folder = self.cluster, self.cluster.folder
        account = lambda namespace, name: {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}
        cluster.apply(*({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in ("xds", "a", "b")))
        cluster.apply(account("a", "web"), account("a", "suspended"), account("b", "web"))
        (folder / "resources").mkdir()
        (folder / "resources" / "clusters.yaml").write_text(CLUSTERS)
        cluster.certificate("xds", "distributary-tls", "relay")
        story = re.search(r"```yaml\n(# kubernetes\n.*?)```", (CONFIG / "unauthenticated.md").read_text(), re.S)[1]
        story = story.replace("control-plane.xds.svc:18000", f"file://{folder}/resources")
        cluster.helm("install", "relay", CHART, "--namespace", "xds", *IMAGE, "--values",
                     CONFIG / "kubernetes/values/service-accounts.yaml", "--values", "-", given=as_config(story))
        found = workload(cluster, "xds", **{"app.kubernetes.io/name": "distributary"})
        self.pod = Pod(cluster, found, {"distributary": self.relay}).ready()
        good = self.token("a", "web")
        self.asked("its own", good, "a-edge", names=["a/web"])
        self.asked("another tenant's, by name", good, "a-edge", "b/web")
        self.asked("as another tenant", good, "b-edge")
        self.asked("without a token", None, "a-edge")
        self.asked("a token for others", self.token("a", "web", "others"), "a-edge")
        self.asked("a suspended account", self.token("a", "suspended"), "a-edge")
        self.asked("the other tenant's own", self.token("b", "web"), "b-edge", names=["b/web"])
        metrics = self.pod.page(9902, "/metrics")
        print("    " + ", ".join(re.findall(r"^distributary_tokens_total\{.*\} [1-9].*$", metrics, re.M)), flush=True)

    def token(self, namespace, account, audience="distributary"):
        file = self.cluster.folder / f"{namespace}.{account}.{audience}"
        file.write_text(self.cluster.token(namespace, account, [audience]))
        return file

    def asked(self, what, token, node, *words, names=()):
        """What a client is told that asks with this token, as this node's cluster."""
        command = [self.relay, "get", "cds", *words, "--server", f"https://{self.pod.address}:15010", "--authority", "relay", "--ca",
                   self.cluster.folder / "ca.crt", "--node-cluster", node, "--timeout", "5s", "-o", "json"]
        done = subprocess.run([*command, *(["--token-file", token] if token else [])], capture_output=True, text=True, timeout=60)
        found = sorted(set(re.findall(r'"name": ?"([ab]/web)"', done.stdout)))
        if found != list(names):
            raise Failed(f"{what}: {found}, not {list(names)}: {done.stdout[-300:]} {done.stderr[-300:]}")
        print(f"    {what}: {json.dumps(found)} {done.stderr.strip().splitlines()[-1][:160] if done.stderr.strip() else ''}", flush=True)
