// SPDX-License-Identifier: Apache-2.0
package main

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protowire"
)

// subscriber is a client that asks for the same types as an Envoy, and remembers what it holds from one stream to the next. Each
// stream is at the next server.
type subscriber struct {
	number  int
	delta   bool
	servers []string
	// The names that it asks for of each type; none: everything.
	names map[string][]string
	// Delta: the version of each resource that it holds, by type and name.
	held map[string]map[string]string
	// SotW: the version of the last response, by type.
	versions map[string]string
	streams  int
}

// got tells the suite what one response brought.
type got struct {
	Client int      `json:"client"`
	Delta  bool     `json:"delta"`
	Stream int      `json:"stream"`
	Server string   `json:"server"`
	Type   string   `json:"type"`
	Names  []string `json:"names,omitempty"`
	// Delta: those of them that it had with this very version.
	Again   []string `json:"again,omitempty"`
	Removed []string `json:"removed,omitempty"`
}

// asked lists the types in the order in which an Envoy asks for them.
var asked = []string{resource.ClusterType, resource.EndpointType, resource.ListenerType, resource.RouteType}

const subscribeAgainAfter = 100 * time.Millisecond

// subscribe runs clients of these servers; every second one speaks delta. They ask for these clusters' endpoints and the route
// `main`.
func subscribe(clients string, clusters string, servers []string) error {
	count, err := strconv.Atoi(clients)
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(clusters)
	if err != nil {
		return err
	}
	names := map[string][]string{resource.RouteType: {"main"}}
	for at := range number {
		names[resource.EndpointType] = append(names[resource.EndpointType], fmt.Sprintf("many-%d", at))
	}
	for at := range count {
		one := &subscriber{
			number: at, delta: at%2 == 0, servers: servers, names: names,
			held: map[string]map[string]string{}, versions: map[string]string{},
		}
		go one.run()
	}
	untilInputEnds()
	return nil
}

// run opens one stream after the other, the first at a server that its number decides.
func (s *subscriber) run() {
	for turn := s.number; ; turn++ {
		server := s.servers[turn%len(s.servers)]
		if channel, err := grpc.NewClient(server, grpc.WithTransportCredentials(insecure.NewCredentials())); err == nil {
			s.streams++
			// The end of a stream is expected; the suite sees where the next one is.
			if s.delta {
				_ = s.runDelta(server, discovery.NewAggregatedDiscoveryServiceClient(channel))
			} else {
				_ = s.runSotw(server, discovery.NewAggregatedDiscoveryServiceClient(channel))
			}
			_ = channel.Close()
		}
		time.Sleep(subscribeAgainAfter)
	}
}

func (s *subscriber) node() *core.Node {
	return &core.Node{Id: fmt.Sprintf("subscriber-%d", s.number), Cluster: "interop"}
}

func (s *subscriber) runDelta(server string, client discovery.AggregatedDiscoveryServiceClient) error {
	stream, err := client.DeltaAggregatedResources(context.Background())
	if err != nil {
		return err
	}
	for _, kind := range asked {
		request := &discovery.DeltaDiscoveryRequest{
			Node: s.node(), TypeUrl: kind, ResourceNamesSubscribe: s.names[kind],
			InitialResourceVersions: maps.Clone(s.held[kind]),
		}
		if err := stream.Send(request); err != nil {
			return err
		}
	}
	for {
		response, err := stream.Recv()
		if err != nil {
			return err
		}
		told := got{
			Client: s.number, Delta: true, Stream: s.streams, Server: server, Type: response.GetTypeUrl(),
			Removed: response.GetRemovedResources(),
		}
		held := s.held[told.Type]
		if held == nil {
			held = map[string]string{}
			s.held[told.Type] = held
		}
		for _, one := range response.GetResources() {
			told.Names = append(told.Names, one.GetName())
			if version, there := held[one.GetName()]; there && version == one.GetVersion() {
				told.Again = append(told.Again, one.GetName())
			}
			held[one.GetName()] = one.GetVersion()
		}
		for _, name := range told.Removed {
			delete(held, name)
		}
		say(told)
		acknowledgement := &discovery.DeltaDiscoveryRequest{TypeUrl: told.Type, ResponseNonce: response.GetNonce()}
		if err := stream.Send(acknowledgement); err != nil {
			return err
		}
	}
}

func (s *subscriber) runSotw(server string, client discovery.AggregatedDiscoveryServiceClient) error {
	stream, err := client.StreamAggregatedResources(context.Background())
	if err != nil {
		return err
	}
	for _, kind := range asked {
		request := &discovery.DiscoveryRequest{
			Node: s.node(), TypeUrl: kind, ResourceNames: s.names[kind], VersionInfo: s.versions[kind],
		}
		if err := stream.Send(request); err != nil {
			return err
		}
	}
	for {
		response, err := stream.Recv()
		if err != nil {
			return err
		}
		kind := response.GetTypeUrl()
		told := got{Client: s.number, Stream: s.streams, Server: server, Type: kind}
		for _, one := range response.GetResources() {
			told.Names = append(told.Names, firstText(one.GetValue()))
		}
		say(told)
		s.versions[kind] = response.GetVersionInfo()
		acknowledgement := &discovery.DiscoveryRequest{
			TypeUrl: kind, ResourceNames: s.names[kind], VersionInfo: s.versions[kind], ResponseNonce: response.GetNonce(),
		}
		if err := stream.Send(acknowledgement); err != nil {
			return err
		}
	}
}

// firstText returns field 1 of a message, which is the name in all types that are asked for.
func firstText(message []byte) string {
	for len(message) > 0 {
		field, kind, length := protowire.ConsumeTag(message)
		if length < 0 {
			return ""
		}
		message = message[length:]
		if field == 1 && kind == protowire.BytesType {
			text, _ := protowire.ConsumeString(message)
			return text
		}
		if length = protowire.ConsumeFieldValue(field, kind, message); length < 0 {
			return ""
		}
		message = message[length:]
	}
	return ""
}
