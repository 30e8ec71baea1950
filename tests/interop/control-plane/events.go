// SPDX-License-Identifier: Apache-2.0
package main

import (
	"context"
	"sync/atomic"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
)

// event tells the suite what a client of this control plane did.
type event struct {
	Event       string   `json:"event"`
	Dialect     string   `json:"dialect"`
	Stream      int64    `json:"stream"`
	Node        string   `json:"node,omitempty"`
	Cluster     string   `json:"cluster,omitempty"`
	Relayed     bool     `json:"relayed,omitempty"`
	Type        string   `json:"type,omitempty"`
	Names       []string `json:"names,omitempty"`
	Unsubscribe []string `json:"unsubscribe,omitempty"`
	Version     string   `json:"version,omitempty"`
	Nonce       string   `json:"nonce,omitempty"`
	Rejected    string   `json:"rejected,omitempty"`
}

// relays is the key of a node's metadata to which every relay on the way adds its id.
const relays = "distributary.relays"

func relayed(node *core.Node) bool {
	return node.GetMetadata().GetFields()[relays] != nil
}

// pause is how long the control plane takes for each response.
var pause atomic.Int64

func takeTime() {
	time.Sleep(time.Duration(pause.Load()))
}

func callbacks(tenants *tenants) server.Callbacks {
	return server.CallbackFuncs{
		StreamOpenFunc: func(_ context.Context, stream int64, typeURL string) error {
			say(event{Event: "open", Dialect: "sotw", Stream: stream, Type: typeURL})
			return nil
		},
		DeltaStreamOpenFunc: func(_ context.Context, stream int64, typeURL string) error {
			say(event{Event: "open", Dialect: "delta", Stream: stream, Type: typeURL})
			return nil
		},
		StreamClosedFunc: func(stream int64, _ *core.Node) {
			say(event{Event: "closed", Dialect: "sotw", Stream: stream})
		},
		DeltaStreamClosedFunc: func(stream int64, _ *core.Node) {
			say(event{Event: "closed", Dialect: "delta", Stream: stream})
		},
		StreamRequestFunc: func(stream int64, request *discovery.DiscoveryRequest) error {
			say(event{
				Event: "request", Dialect: "sotw", Stream: stream, Node: request.GetNode().GetId(), Cluster: request.GetNode().GetCluster(),
				Relayed: relayed(request.GetNode()), Type: request.GetTypeUrl(), Names: request.GetResourceNames(),
				Version: request.GetVersionInfo(), Nonce: request.GetResponseNonce(), Rejected: request.GetErrorDetail().GetMessage(),
			})
			return tenants.meet(request.GetNode())
		},
		StreamDeltaRequestFunc: func(stream int64, request *discovery.DeltaDiscoveryRequest) error {
			say(event{
				Event: "request", Dialect: "delta", Stream: stream, Node: request.GetNode().GetId(), Cluster: request.GetNode().GetCluster(),
				Relayed: relayed(request.GetNode()), Type: request.GetTypeUrl(), Names: request.GetResourceNamesSubscribe(), Unsubscribe: request.GetResourceNamesUnsubscribe(),
				Nonce: request.GetResponseNonce(), Rejected: request.GetErrorDetail().GetMessage(),
			})
			return tenants.meet(request.GetNode())
		},
		StreamResponseFunc: func(_ context.Context, stream int64, _ *discovery.DiscoveryRequest, response *discovery.DiscoveryResponse) {
			takeTime()
			say(event{
				Event: "response", Dialect: "sotw", Stream: stream, Type: response.GetTypeUrl(),
				Version: response.GetVersionInfo(), Nonce: response.GetNonce(),
			})
		},
		StreamDeltaResponseFunc: func(stream int64, _ *discovery.DeltaDiscoveryRequest, response *discovery.DeltaDiscoveryResponse) {
			takeTime()
			sent := make([]string, 0, len(response.GetResources()))
			for _, resource := range response.GetResources() {
				sent = append(sent, resource.GetName())
			}
			say(event{
				Event: "response", Dialect: "delta", Stream: stream, Type: response.GetTypeUrl(),
				Names: sent, Unsubscribe: response.GetRemovedResources(), Nonce: response.GetNonce(),
			})
		},
	}
}
