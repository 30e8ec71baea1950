// SPDX-License-Identifier: Apache-2.0
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"strconv"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// The types that ztunnel asks for: workloads and services, and policies.
const (
	addressType = "type.googleapis.com/istio.workload.Address"
	policyType  = "type.googleapis.com/istio.security.Authorization"
)

// ambient is a control plane with what istiod has for ztunnel: delta, all of it for everybody.
type ambient struct{ addresses, policies *cache.LinearCache }

// changed is one line of standard input: a workload that gets another address, and one that is removed.
type changed struct {
	ID     int    `json:"id"`
	Put    string `json:"put"`
	Number int    `json:"number"`
	Remove string `json:"remove"`
}

func serveAmbient(address string, count string) error {
	number, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	plane := ambient{cache.NewLinearCache(addressType), cache.NewLinearCache(policyType)}
	addresses, policies := map[string]types.Resource{}, map[string]types.Resource{}
	for at := range number {
		addresses[uid(at)] = workload(uid(at), at)
		name := fmt.Sprintf("shop/service-%d.shop.svc.cluster.local", at)
		addresses[name] = message(2, 3, name)
		policies[fmt.Sprintf("shop/policy-%d", at)] = message(1, 1, fmt.Sprintf("policy-%d", at))
	}
	plane.addresses.SetResources(addresses)
	plane.policies.SetResources(policies)
	mux := &cache.MuxCache{
		Classify:      func(request *cache.Request) string { return request.GetTypeUrl() },
		ClassifyDelta: func(request *cache.DeltaRequest) string { return request.GetTypeUrl() },
		Caches:        map[string]cache.Cache{addressType: plane.addresses, policyType: plane.policies},
	}
	services := grpc.NewServer()
	register(services, server.NewServer(context.Background(), mux, callbacks(oneTenant(newStore(nil)))))
	defer services.Stop()
	if err := listen(services, address); err != nil {
		return err
	}
	say(reply{})
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var next changed
		if err := json.Unmarshal(lines.Bytes(), &next); err != nil {
			return err
		}
		updates, removals := map[string]types.Resource{}, []string(nil)
		if next.Put != "" {
			updates[next.Put] = workload(next.Put, next.Number)
		}
		if next.Remove != "" {
			removals = append(removals, next.Remove)
		}
		if err := plane.addresses.UpdateResources(updates, removals); err != nil {
			return err
		}
		say(reply{Reply: next.ID})
	}
	return lines.Err()
}

func uid(number int) string { return fmt.Sprintf("cluster//Pod/shop/workload-%d", number) }

// workload is an Address with a Workload of that uid, whose address the number decides.
func workload(uid string, number int) types.Resource {
	var inner []byte
	inner = protowire.AppendString(protowire.AppendTag(inner, 20, protowire.BytesType), uid)
	inner = protowire.AppendBytes(protowire.AppendTag(inner, 3, protowire.BytesType), []byte{10, 0, byte(number >> 8), byte(number)})
	return raw(protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), inner))
}

// message is one with a text in a field of a field.
func message(outer, inner protowire.Number, text string) types.Resource {
	part := protowire.AppendString(protowire.AppendTag(nil, inner, protowire.BytesType), text)
	return raw(protowire.AppendBytes(protowire.AppendTag(nil, outer, protowire.BytesType), part))
}

// raw is a message of these bytes: the cache writes down what it does not know as it is.
func raw(bytes []byte) types.Resource {
	body := &emptypb.Empty{}
	body.ProtoReflect().SetUnknown(bytes)
	return body
}

// brought tells the suite what one response brought to a ztunnel.
type brought struct {
	Client  int    `json:"client"`
	Stream  int    `json:"stream"`
	Type    string `json:"type"`
	Put     int    `json:"put"`
	Again   int    `json:"again"`
	Removed int    `json:"removed"`
	Held    int    `json:"held"`
}

// ztunnels runs clients that speak as ztunnel does: one delta stream, on which it asks for all of each type by a request without
// names, and says after a reconnect which versions it holds.
func ztunnels(clients, server string) error {
	count, err := strconv.Atoi(clients)
	if err != nil {
		return err
	}
	for number := range count {
		go func() {
			held := map[string]map[string]string{addressType: {}, policyType: {}}
			for stream := 1; ; stream++ {
				if channel, err := grpc.NewClient(server, grpc.WithTransportCredentials(insecure.NewCredentials())); err == nil {
					// The end of a stream is expected.
					_ = ztunnel(number, stream, held, discovery.NewAggregatedDiscoveryServiceClient(channel))
					_ = channel.Close()
				}
				time.Sleep(subscribeAgainAfter)
			}
		}()
	}
	untilInputEnds()
	return nil
}

func ztunnel(number, streams int, all map[string]map[string]string, client discovery.AggregatedDiscoveryServiceClient) error {
	stream, err := client.DeltaAggregatedResources(context.Background())
	if err != nil {
		return err
	}
	metadata, err := structpb.NewStruct(map[string]any{"NAMESPACE": "istio-system", "NAME": fmt.Sprintf("ztunnel-%d", number)})
	if err != nil {
		return err
	}
	node := &core.Node{
		Id:       fmt.Sprintf("ztunnel~10.1.%d.%d~ztunnel-%d.istio-system~istio-system.svc.cluster.local", number>>8, number&255, number),
		Metadata: metadata,
	}
	for _, kind := range []string{addressType, policyType} {
		request := &discovery.DeltaDiscoveryRequest{Node: node, TypeUrl: kind, InitialResourceVersions: maps.Clone(all[kind])}
		if err := stream.Send(request); err != nil {
			return err
		}
	}
	for {
		response, err := stream.Recv()
		if err != nil {
			return err
		}
		held := all[response.GetTypeUrl()]
		told := brought{Client: number, Stream: streams, Type: response.GetTypeUrl(), Put: len(response.GetResources())}
		for _, one := range response.GetResources() {
			if version, there := held[one.GetName()]; there && version == one.GetVersion() {
				told.Again++
			}
			held[one.GetName()] = one.GetVersion()
		}
		for _, name := range response.GetRemovedResources() {
			delete(held, name)
			told.Removed++
		}
		told.Held = len(held)
		say(told)
		acknowledgement := &discovery.DeltaDiscoveryRequest{TypeUrl: response.GetTypeUrl(), ResponseNonce: response.GetNonce()}
		if err := stream.Send(acknowledgement); err != nil {
			return err
		}
	}
}
