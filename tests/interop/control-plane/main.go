// SPDX-License-Identifier: Apache-2.0
// Command control-plane is everything in the interop suite that is written in Go:
//
//	control-plane serve --listen ADDRESS [--cache KIND]                a control plane on go-control-plane
//	control-plane backend NAME...                                      HTTP and gRPC servers that answer with their name
//	control-plane client TARGET...                                     a grpc-go client that calls xds:/// targets without end
//	control-plane subscribe CLIENTS CLUSTERS SERVER...                 clients that say what each response brings
//	control-plane ambient ADDRESS WORKLOADS                            a control plane with what istiod has for ztunnel
//	control-plane ztunnels CLIENTS SERVER                              clients that ask as ztunnel does
//	control-plane certificate NAME                                     a fresh self-signed certificate and its key
//
// Each mode writes JSON, one object per line, to standard output. A mode that does not end by itself ends when its
// standard input is closed, so none outlives the suite.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "control-plane:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) == 0 {
		return fmt.Errorf("which mode? serve, backend, client, subscribe, ambient, ztunnels or certificate")
	}
	switch mode, rest := arguments[0], arguments[1:]; mode {
	case "serve":
		return serve(rest)
	case "backend":
		return backend(rest)
	case "secured":
		return secured(rest)
	case "client":
		return client(rest)
	case "subscribe":
		if len(rest) < 3 {
			return fmt.Errorf("subscribe CLIENTS CLUSTERS SERVER...")
		}
		return subscribe(rest[0], rest[1], rest[2:])
	case "ambient", "ztunnels":
		if len(rest) != 2 {
			return fmt.Errorf("ambient ADDRESS WORKLOADS, ztunnels CLIENTS SERVER")
		}
		if mode == "ambient" {
			return serveAmbient(rest[0], rest[1])
		}
		return ztunnels(rest[0], rest[1])
	case "certificate":
		return certificate(rest)
	default:
		return fmt.Errorf("no mode %q: serve, backend, client, subscribe, ambient, ztunnels or certificate", mode)
	}
}

var output sync.Mutex

// say writes one line of JSON to standard output.
func say(message any) {
	output.Lock()
	defer output.Unlock()
	_ = json.NewEncoder(os.Stdout).Encode(message)
}

// untilInputEnds returns when standard input is closed.
func untilInputEnds() {
	_, _ = io.Copy(io.Discard, os.Stdin)
}
