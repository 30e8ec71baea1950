# SPDX-License-Identifier: Apache-2.0
"""What a node would do: starts a container of a Deployment that is in the API server, with its volumes, variables and tokens, in a
network namespace and on a tree of its own."""

import json
import os
import re
import socket
import subprocess
import threading
import urllib.request
from itertools import count

from cluster import DOMAIN, HOST, PORT, decoded, ip
from peers.process import Failed, Process, eventually

NUMBERS = count(2)
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


class Pod(Process):
    """One container of a pod. `programs` says by the container's name what is at /usr/bin in place of its image."""

    def __init__(self, cluster, deployment, programs, more=()):
        self.cluster, self.namespace, self.serves = cluster, deployment["metadata"]["namespace"], False
        template = deployment["spec"]["template"]
        self.labels, self.spec = template["metadata"].get("labels", {}), template["spec"]
        self.container = next(one for one in self.spec["containers"] if one["name"] in programs)
        number = next(NUMBERS)
        self.address, name = f"10.20.0.{number}", f"{deployment['metadata']['name']}-{number}"
        self.annotations = template["metadata"].get("annotations", {})
        self.meta = self.register(name)
        self.tree, self.written = self.lay(name, programs), {}
        self.refresh()
        cluster.pods.append(self)
        netns(name, number, self.address)
        self.within = ["ip", "netns", "exec", name, "chroot", self.tree]
        for one in self.spec.get("initContainers", []):
            command, environment = self.command(one)
            subprocess.run([*self.within, *command], check=True, capture_output=True, timeout=60, env=environment)
        command, environment = self.command(self.container, more)
        super().__init__(name, [*self.within, *command], cluster.logs, environment)

    def command(self, container, more=()):
        """What a container starts, and its variables."""
        environment = self.environment(container)
        words = [*container.get("command", [container["name"]]), *container.get("args", []), *more]
        return [expanded(str(word), environment) for word in words], environment

    def register(self, name):
        """An object for it in the API server, so that tokens can be bound to it."""
        spec = {"containers": [{"name": "any", "image": "any"}], "serviceAccountName": self.spec.get("serviceAccountName", "default")}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": self.namespace, "labels": self.labels}, "spec": spec}
        return self.cluster.ask(f"/api/v1/namespaces/{self.namespace}/pods", pod)["metadata"]

    def lay(self, name, programs):
        """The machine's tree with a folder of its own over it, for the mounts."""
        folder = self.cluster.folder / "trees" / name
        for part in ("upper/etc", "upper/usr/bin", "work", "tree"):
            (folder / part).mkdir(parents=True)
        (folder / "upper/var").mkdir()
        (folder / "upper/var/run").symlink_to("../run")  # That of the machine may be absolute, and would lead out of the tree.
        for program, path in programs.items():
            (folder / "upper/usr/bin" / program).symlink_to(path)
        (folder / "upper/etc/resolv.conf").write_text(f"nameserver {HOST}\nsearch {self.namespace}.{DOMAIN} {DOMAIN}\noptions ndots:5\n")
        layers = f"lowerdir=/,upperdir={folder}/upper,workdir={folder}/work"
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", layers, folder / "tree"], check=True, timeout=10)
        for part in ("proc", "dev"):
            subprocess.run(["mount", "--rbind", f"/{part}", folder / "tree" / part], check=True, timeout=10)
        return folder / "tree"

    def refresh(self):
        """Writes the volumes as they are now; a file that has changed is moved into place."""
        mounts = {one["mountPath"]: one for one in self.container.get("volumeMounts", [])}
        for inner in mounts:
            for outer, mount in mounts.items():
                if inner.startswith(f"{outer}/") and mount.get("readOnly"):
                    raise Failed(f"{inner} cannot be mounted: {outer} is read-only")
        for volume in self.spec.get("volumes", []):
            files = self.files(volume)
            for path in (path for path, mount in mounts.items() if mount["name"] == volume["name"]):
                self.put(path, files)
        if self.spec.get("automountServiceAccountToken", True):
            self.put(ACCOUNT, {"token": self.token([]), "ca.crt": self.authority(), "namespace": self.namespace.encode()})

    def put(self, path, files):
        folder = self.tree / path.lstrip("/")
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            if self.written.get((path, name)) == content:
                continue
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            new = target.with_name(f".{target.name}")
            new.write_bytes(content)
            new.rename(target)
            self.written[path, name] = content

    def files(self, source):
        """What is in a volume, or in a source of a projected one: {path: content}."""
        if projected := source.get("projected"):
            return {path: content for one in projected["sources"] for path, content in self.files(one).items()}
        if token := source.get("serviceAccountToken"):
            return {token["path"]: self.token([token["audience"]] if "audience" in token else [])}
        if fields := source.get("downwardAPI"):
            return {one["path"]: self.field(one["fieldRef"]["fieldPath"]).encode() for one in fields["items"]}
        for kind, path in (("secret", "secrets"), ("configMap", "configmaps")):
            if kind in source:
                return self.keys(source[kind], kind, path)
        if "emptyDir" in source:
            return {}
        raise Failed(f"no node here knows the volume {source}")

    def keys(self, said, kind, path):
        name = said.get("secretName") or said["name"]
        if name == "kube-root-ca.crt":
            found = {"ca.crt": self.authority()}
        else:
            read = self.cluster.get(f"/api/v1/namespaces/{self.namespace}/{path}/{name}")
            if not read:
                if said.get("optional"):
                    return {}
                raise Failed(f"{kind} {name} does not exist, so the pod waits")
            found = decoded(read) if kind == "secret" else {key: text.encode() for key, text in (read.get("data") or {}).items()}
        items = said.get("items") or [{"key": key, "path": key} for key in found]
        return {one["path"]: found[one["key"]] for one in items}

    def token(self, audiences):
        return self.cluster.token(self.namespace, self.spec.get("serviceAccountName", "default"), audiences, self.meta).encode()

    def authority(self):
        return (self.cluster.folder / "ca.crt").read_bytes()

    def field(self, path):
        known = {"metadata.name": self.meta["name"], "metadata.namespace": self.namespace, "status.podIP": self.address,
                 "spec.serviceAccountName": self.spec.get("serviceAccountName", "default")}
        if path in known:
            return known[path]
        found = re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path)
        return getattr(self, found[1]).get(found[2], "") if found else ""

    def environment(self, container):
        found = {"PATH": os.environ["PATH"], "KUBERNETES_SERVICE_HOST": HOST, "KUBERNETES_SERVICE_PORT": str(PORT)}
        for one in container.get("env", []):
            reference = (one.get("valueFrom") or {}).get("fieldRef")
            found[one["name"]] = self.field(reference["fieldPath"]) if reference else expanded(one.get("value", ""), found)
        return found

    def probed(self):
        """Whether its readiness probe passes."""
        probe = self.container["readinessProbe"]
        if "tcpSocket" in probe:
            with socket.socket() as door:
                return door.connect_ex((self.address, probe["tcpSocket"]["port"])) == 0
        probe = probe["httpGet"]
        port = probe["port"] if isinstance(probe["port"], int) else next(
            one["containerPort"] for one in self.container["ports"] if one["name"] == probe["port"])
        try:
            with urllib.request.urlopen(f"http://{self.address}:{port}{probe['path']}", timeout=2) as answer:
                return answer.status == 200
        except OSError:
            return False

    def ready(self, within=60):
        eventually(f"{self.name} is ready", lambda: self.must_live() and self.probed(), within)
        self.serves = True
        return self

    def inside(self, *command):
        """Runs a command where it runs, as `kubectl exec` does; its output."""
        return subprocess.run([*self.within, *command], check=True, capture_output=True, text=True, timeout=120).stdout

    def page(self, port, path):
        with urllib.request.urlopen(f"http://{self.address}:{port}{path}", timeout=10) as answer:
            return answer.read().decode()

    def end(self, within=90.0):
        """No Service leads to it any more, its preStop command runs, then it is told to stop."""
        self.serves = False
        before = (self.container.get("lifecycle") or {}).get("preStop", {}).get("exec")
        if before and self.alive():
            threading.Thread(target=lambda: self.inside(*before["command"]), daemon=True).start()
            try:
                self.child.wait(1)
            except subprocess.TimeoutExpired:
                pass
        self.gone(within)

    def kill(self):
        self.child.kill()
        self.gone(10.0)

    def gone(self, within):
        self.serves = False
        self.stop(within)
        self.cluster.pods.remove(self)
        self.cluster.kubectl("delete", "pod", "--namespace", self.namespace, "--grace-period=0", "--force", self.meta["name"])


def expanded(text, environment):
    return re.sub(r"\$\((\w+)\)", lambda found: environment.get(found[1], found[0]), text)


def netns(name, number, address):
    """A network namespace with that address, on the bridge."""
    ip("netns", "add", name)
    ip("link", "add", f"pod{number}", "type", "veth", "peer", "name", "eth0", "netns", name)
    ip("link", "set", f"pod{number}", "master", "pods", "up")
    for words in (("link", "set", "lo", "up"), ("addr", "add", f"{address}/16", "dev", "eth0"), ("link", "set", "eth0", "up")):
        ip("-n", name, *words)


def workload(cluster, namespace, kind="deployments", **labels):
    """The one Deployment, or another kind, with these labels."""
    chosen = ",".join(f"{key}={value}" for key, value in labels.items())
    found = json.loads(cluster.kubectl("get", kind, "--namespace", namespace, "-l", chosen, "-o", "json"))["items"]
    return found[0] if len(found) == 1 else None
