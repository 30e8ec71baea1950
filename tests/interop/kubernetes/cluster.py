# SPDX-License-Identifier: Apache-2.0
"""A Kubernetes without nodes: etcd, an API server, and names. Everything is in a network of its own, which leads nowhere."""

import base64
import json
import os
import random
import socket
import ssl
import struct
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request

from peers.process import Failed, Process, eventually

HOST, PORT = "10.20.0.1", 443
DOMAIN = "svc.cluster.local"
ISSUER = f"https://kubernetes.default.{DOMAIN}"
ADMIN = "admin-token"
KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


class Cluster:
    """`pods` are those that run; the names of Services lead to the ready ones among them."""

    def __init__(self, programs, folder):
        self.programs, self.folder, self.pods, self.chosen = programs, folder, [], {}
        self.logs = folder / "logs"
        for one in (self.logs, folder / "etcd", folder / "home"):
            one.mkdir(parents=True)
        network()
        self.certify()
        self.trust = ssl.create_default_context(cafile=str(folder / "ca.crt"))
        self.start()
        self.kubeconfig = folder / "admin.kubeconfig"
        self.kubeconfig.write_text(json.dumps(self.config_of(ADMIN)))
        self.environment = {**os.environ, "KUBECONFIG": str(self.kubeconfig), "HOME": str(folder / "home")}
        threading.Thread(target=self.names, daemon=True).start()

    def openssl(self, *words):
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=self.folder, timeout=60)

    def certify(self):
        """The certificate of the API server, who signs it, and the key that signs the tokens of service accounts."""
        self.openssl("req", "-x509", *KEY, "-keyout", "ca.key", "-out", "ca.crt", "-days", "2", "-subj", "/CN=ca")
        self.sign("server", f"IP:{HOST},IP:127.0.0.1,DNS:kubernetes.default.svc")
        self.openssl("genrsa", "-out", "accounts.key", "2048")
        (self.folder / "tokens.csv").write_text(f'{ADMIN},admin,admin,"system:masters"\n')

    def sign(self, name, names):
        (self.folder / "names").write_text(f"subjectAltName={names}\n")
        self.openssl("req", *KEY, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        self.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                     "-extfile", "names", "-out", f"{name}.crt")

    def certificate(self, namespace, secret, name):
        """A Secret with a certificate by who signs that of the API server, as cert-manager would write it."""
        self.sign("relay", f"DNS:{name}")
        self.kubectl("create", "secret", "generic", secret, "--namespace", namespace, "--type=kubernetes.io/tls", *(
            f"--from-file={key}={self.folder}/{file}" for key, file in (("tls.crt", "relay.crt"), ("tls.key", "relay.key"), ("ca.crt", "ca.crt"))))

    def start(self):
        at, folder = "http://127.0.0.1:2379", self.folder
        Process("etcd", [self.programs.etcd, "--data-dir", folder / "etcd", "--listen-client-urls", at, "--advertise-client-urls", at,
                         "--listen-peer-urls", "http://127.0.0.1:2380", "--unsafe-no-fsync"], self.logs)
        self.server = Process("kube-apiserver", [
            self.programs.apiserver, f"--etcd-servers={at}", f"--bind-address={HOST}", f"--advertise-address={HOST}",
            f"--secure-port={PORT}", f"--tls-cert-file={folder}/server.crt", f"--tls-private-key-file={folder}/server.key",
            f"--token-auth-file={folder}/tokens.csv", "--authorization-mode=RBAC", "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=10.96.0.0/16", f"--service-account-issuer={ISSUER}", f"--api-audiences={ISSUER}",
            f"--service-account-key-file={folder}/accounts.key", f"--service-account-signing-key-file={folder}/accounts.key",
            "--disable-admission-plugins=ServiceAccount", "--allow-privileged=true"], self.logs)
        eventually("the API server is ready", lambda: self.server.must_live() and self.ready(), 180)

    def ready(self):
        try:
            return self.ask("/readyz", text=True) == "ok"
        except (OSError, urllib.error.URLError):
            return False

    def config_of(self, token):
        ca = base64.b64encode((self.folder / "ca.crt").read_bytes()).decode()
        named = lambda kind, value: [{"name": "here", kind: value}]
        return {"apiVersion": "v1", "kind": "Config", "current-context": "here",
                "clusters": named("cluster", {"server": f"https://{HOST}:{PORT}", "certificate-authority-data": ca}),
                "users": named("user", {"token": token}), "contexts": named("context", {"cluster": "here", "user": "here"})}

    def ask(self, path, body=None, text=False):
        """What the API server answers to the administrator."""
        headers = {"Authorization": f"Bearer {ADMIN}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"https://{HOST}:{PORT}{path}", data, headers)
        with urllib.request.urlopen(request, timeout=30, context=self.trust) as answer:
            read = answer.read().decode()
        return read if text else json.loads(read)

    def get(self, path):
        """An object, or None."""
        try:
            return self.ask(path)
        except urllib.error.HTTPError as problem:
            if problem.code == 404:
                return None
            raise

    def token(self, namespace, account, audiences=(), pod=None):
        """A token as the kubelet would ask for; it is bound to the pod, if one is given."""
        spec = {"audiences": list(audiences), "expirationSeconds": 3600}
        if pod:
            spec["boundObjectRef"] = {"kind": "Pod", "apiVersion": "v1", "name": pod["name"], "uid": pod["uid"]}
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        return self.ask(path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})["status"]["token"]

    def run(self, program, *words, given=None, refused=False):
        """Runs kubectl or helm; its output, or what it says if it must be refused."""
        command = [str(getattr(self.programs, program)), *map(str, words)]
        done = subprocess.run(command, input=given, capture_output=True, text=True, env=self.environment, timeout=180)
        with (self.logs / f"{program}.log").open("a") as log:
            log.write(f"$ {' '.join(command)}\n{done.stdout}{done.stderr}[{done.returncode}]\n")
        if (done.returncode != 0) != refused:
            raise Failed(f"{program} {' '.join(map(str, words))} ends with {done.returncode}: {done.stderr[-1500:]}")
        return done.stderr if refused else done.stdout

    def kubectl(self, *words, **more):
        return self.run("kubectl", *words, **more)

    def helm(self, *words, **more):
        return self.run("helm", *words, **more)

    def apply(self, *parts):
        """Server side, and strictly."""
        text = "---\n".join(part if isinstance(part, str) else json.dumps(part) + "\n" for part in parts)
        return self.kubectl("apply", "--server-side", "--validate=strict", "-f", "-", given=text)

    def addresses(self, name, client):
        """Those of the ready pods that a Service selects; one of them, which stays the same for this client, where
        it has an address of its own: a node chooses for each connection."""
        service, _, rest = name.removesuffix(".").partition(".")
        namespace = rest.partition(".")[0]
        if (service, namespace) == ("kubernetes", "default"):
            return [HOST]
        if rest not in (f"{namespace}.{DOMAIN}", f"{namespace}.svc"):
            return []
        found = self.get(f"/api/v1/namespaces/{namespace}/services/{service}")
        spec = (found or {}).get("spec", {})
        if not spec.get("selector"):
            return []
        ready = [pod.address for pod in list(self.pods) if pod.serves and pod.namespace == namespace
                 and spec["selector"].items() <= pod.labels.items()]
        if spec.get("clusterIP") == "None" or not ready:
            return ready
        if self.chosen.get((client, name)) not in ready:
            self.chosen[client, name] = random.choice(ready)
        return [self.chosen[client, name]]

    def names(self):
        """Answers DNS: the names of Services lead to pods, and nothing else exists."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as door:
            door.bind((HOST, 53))
            while True:
                asked, peer = door.recvfrom(512)
                labels, at = [], 12
                while asked[at]:
                    labels.append(asked[at + 1:at + 1 + asked[at]].decode())
                    at += 1 + asked[at]
                question = asked[12:at + 5]
                try:
                    found = self.addresses(".".join(labels), peer[0])
                except OSError:
                    continue  # It asks again.
                wanted = found if question[-4:-2] == b"\0\1" else []  # A
                answers = [b"\xc0\x0c\0\1\0\1" + struct.pack(">IH", 1, 4) + socket.inet_aton(one) for one in wanted]
                flags = 0x8580 if found else 0x8583  # NXDOMAIN
                door.sendto(asked[:2] + struct.pack(">HHHHH", flags, 1, len(answers), 0, 0) + question + b"".join(answers), peer)


def ip(*words):
    subprocess.run(["ip", *map(str, words)], check=True, capture_output=True, timeout=10)


def network():
    """A bridge for pods, in the network namespace in which this program was started."""
    ip("link", "set", "lo", "up")
    ip("link", "add", "pods", "type", "bridge")
    ip("addr", "add", f"{HOST}/16", "dev", "pods")
    ip("link", "set", "pods", "up")


def decoded(secret):
    return {key: base64.b64decode(value) for key, value in (secret.get("data") or {}).items()}
