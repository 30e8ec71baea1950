# SPDX-License-Identifier: Apache-2.0
"""The programs that take part in a scenario: control plane, relay, Envoy, gRPC clients, traffic."""
