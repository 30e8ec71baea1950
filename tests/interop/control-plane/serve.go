// SPDX-License-Identifier: Apache-2.0
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"time"

	cluster "github.com/envoyproxy/go-control-plane/envoy/service/cluster/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	extension "github.com/envoyproxy/go-control-plane/envoy/service/extension/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/service/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/service/route/v3"
	runtime "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	secret "github.com/envoyproxy/go-control-plane/envoy/service/secret/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
)

// command is one line of standard input. Its parts are applied together: one snapshot, or, with linear caches,
// additions from clusters to routes and then removals the other way round.
type command struct {
	ID int `json:"id"`
	// Tenant owns these resources, if the cache distinguishes tenants.
	Tenant string `json:"tenant"`
	// Put holds resources as JSON objects with an "@type".
	Put []json.RawMessage `json:"put"`
	// Lazy resources do not belong to the wildcard: only clients that ask for their names get them.
	Lazy []json.RawMessage `json:"lazy"`
	// Pause is how long each response takes from now on, in milliseconds; a command with it does nothing else.
	Pause *int64 `json:"pause"`
	// Remove holds pairs of type URL and name.
	Remove [][2]string `json:"remove"`
}

type reply struct {
	Reply int    `json:"reply"`
	Error string `json:"error"`
}

func serve(arguments []string) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	kind := flags.String("cache", "snapshot", "snapshot (one per fleet, ADS mode), nodes (one per node id, ADS mode), ids (the same, and each id is a tenant of its own) or linear (one cache per type, behind a mux)")
	address := flags.String("listen", "", "address of the gRPC server; it opens with the first command, so that no client sees less")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	resources, tenants, err := newCache(*kind)
	if err != nil {
		return err
	}
	services := grpc.NewServer()
	register(services, server.NewServer(context.Background(), resources, callbacks(tenants)))
	defer services.Stop()

	listening := false
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var next command
		answer := reply{}
		err := json.Unmarshal(lines.Bytes(), &next)
		if err == nil && next.Pause != nil {
			pause.Store(*next.Pause * int64(time.Millisecond))
		} else if err == nil {
			err = tenants.store(next.Tenant).apply(next)
		}
		if err == nil && !listening && next.Pause == nil {
			err = listen(services, *address)
			listening = true
		}
		if err != nil {
			answer.Error = err.Error()
		}
		answer.Reply = next.ID
		say(answer)
	}
	return lines.Err()
}

func listen(services *grpc.Server, address string) error {
	socket, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	go func() {
		if err := services.Serve(socket); err != nil {
			fmt.Fprintln(os.Stderr, "control-plane:", err)
		}
	}()
	return nil
}

func register(services *grpc.Server, xds server.Server) {
	discovery.RegisterAggregatedDiscoveryServiceServer(services, xds)
	cluster.RegisterClusterDiscoveryServiceServer(services, xds)
	endpoint.RegisterEndpointDiscoveryServiceServer(services, xds)
	listener.RegisterListenerDiscoveryServiceServer(services, xds)
	route.RegisterRouteDiscoveryServiceServer(services, xds)
	route.RegisterScopedRoutesDiscoveryServiceServer(services, xds)
	route.RegisterVirtualHostDiscoveryServiceServer(services, xds)
	secret.RegisterSecretDiscoveryServiceServer(services, xds)
	runtime.RegisterRuntimeDiscoveryServiceServer(services, xds)
	extension.RegisterExtensionConfigDiscoveryServiceServer(services, xds)
}
