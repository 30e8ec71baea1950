# SPDX-License-Identifier: Apache-2.0
"""Contour from its own manifests: its Envoys go to the relay and back, while the relay is upgraded, Contour starts anew and its certificates are
replaced."""

import re

from applied import CONFIG
from peers.process import eventually
from pods import workload
from story import BACKEND, SHOP, Story

HOME = "projectcontour"
TURNED = CONFIG / "kubernetes" / "contour" / "envoy.yaml"


class Contour(Story):
    home, plane, story = HOME, "Contour", "contour"
    # On a busy machine it would end, because it cannot write its lease in time.
    more = ("--leader-election-lease-duration=200s", "--leader-election-renew-deadline=180s")
    labels, port = {"app": "contour"}, 8080
    admin, known_as = ("--unix-socket", "/admin/admin.sock"), ("contour",)
    parts = ("way_in", "relay_upgraded", "contour_again", "certificates_replaced", "way_back")

    def __init__(self, cluster, options):
        super().__init__(cluster, options, {"contour": options.contour})
        self.manifests = options.manifests

    def written(self):
        return workload(self.cluster, HOME, "daemonsets")

    def begin(self):
        for file in sorted(self.manifests.glob("*.yaml")):
            self.cluster.kubectl("apply", "--server-side", "-f", file)
        self.certify()
        self.run_controller()
        self.set_out()

    def certify(self):
        """The job of Contour's manifests, which replaces its certificates and who signs them."""
        [job] = self.cluster.ask(f"/apis/batch/v1/namespaces/{HOME}/jobs")["items"]
        self.run_job(job)

    def way_in(self):
        """The manual's two commands."""
        self.install_relay()
        self.cluster.kubectl("patch", "daemonset", "envoy", "--namespace", HOME, "--patch-file", TURNED)
        self.rolled_out("the relay")
        eventually("Contour has at most one stream for each relay", lambda: 0 < self.streams() <= len(self.relays))
        self.step("the way in; at Contour one stream for each relay")
    def streams(self):
        """How many streams Contour has."""
        page = self.controller.page(8000, "/metrics")
        count = lambda what: sum(float(found) for found in re.findall(rf'^grpc_server_{what}_total\{{.*bidi_stream.*\}} (\S+)$', page, re.M))
        return count("started") - count("handled")

    def contour_again(self):
        self.run_controller()
        self.changed()
        self.at("the relay")
        self.step("Contour was started anew")

    def certificates_replaced(self):
        """The kubelet brings the new files; then Contour, a relay and an Envoy come anew."""
        self.certify()
        self.refresh()
        self.changed()
        self.run_controller()
        self.changed()
        self.rolled_out("the relay")
        self.step("the certificates were replaced, and who signs them")

    def way_back(self):
        """Contour's own manifest, as its upgrade would."""
        self.cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", self.manifests / "03-envoy.yaml")
        self.rolled_out("Contour")
        self.leave_relay()
        self.step("the way back")

    def route(self, version):
        return {"apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "metadata": {"name": "shop", "namespace": "default"},
                "spec": {"virtualhost": {"fqdn": SHOP}, "routes": [{
                    "conditions": [{"prefix": "/"}], "requestHeadersPolicy": {"set": [{"name": "version", "value": str(version)}]},
                    "services": [{"name": "shop", "port": BACKEND}]}]}}
