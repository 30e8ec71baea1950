// SPDX-License-Identifier: Apache-2.0
package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
)

type backendStarted struct {
	Backend string `json:"backend"`
	HTTP    int    `json:"http"`
	GRPC    int    `json:"grpc"`
}

// named answers every call with its own name, in a header.
type named struct {
	health.UnimplementedHealthServer
	name string
}

func (n named) Check(ctx context.Context, _ *health.HealthCheckRequest) (*health.HealthCheckResponse, error) {
	if err := grpc.SetHeader(ctx, metadata.Pairs("backend", n.name)); err != nil {
		return nil, err
	}
	return &health.HealthCheckResponse{Status: health.HealthCheckResponse_SERVING}, nil
}

func (n named) ServeHTTP(response http.ResponseWriter, _ *http.Request) {
	response.Header().Set("backend", n.name)
	_, _ = response.Write([]byte(n.name + "\n"))
}

// backend listens at the address in INTEROP_ADDRESS, which is otherwise that of the machine itself.
func backend(names []string) error {
	host := cmp.Or(os.Getenv("INTEROP_ADDRESS"), "127.0.0.1")
	for _, name := range names {
		plain, err := net.Listen("tcp", host+":0")
		if err != nil {
			return err
		}
		rpc, err := net.Listen("tcp", host+":0")
		if err != nil {
			return err
		}
		services := grpc.NewServer()
		health.RegisterHealthServer(services, named{name: name})
		go report(func() error { return http.Serve(plain, named{name: name}) })
		go report(func() error { return services.Serve(rpc) })
		say(backendStarted{name, port(plain), port(rpc)})
	}
	untilInputEnds()
	return nil
}

// secured serves gRPC over TLS, to clients that show a certificate: the arguments are its name and the files of its certificate and key.
func secured(arguments []string) error {
	if len(arguments) != 3 {
		return fmt.Errorf("secured takes a name, a certificate and its key")
	}
	pair, err := tls.LoadX509KeyPair(arguments[1], arguments[2])
	if err != nil {
		return err
	}
	rpc, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	shown := credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert})
	services := grpc.NewServer(grpc.Creds(shown))
	health.RegisterHealthServer(services, named{name: arguments[0]})
	go report(func() error { return services.Serve(rpc) })
	say(backendStarted{arguments[0], 0, port(rpc)})
	untilInputEnds()
	return nil
}

func port(socket net.Listener) int {
	return socket.Addr().(*net.TCPAddr).Port
}

func report(serve func() error) {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "control-plane: backend:", err)
	}
}
