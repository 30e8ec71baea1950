// SPDX-License-Identifier: Apache-2.0
package main

import (
	"context"
	"os"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	xdscreds "google.golang.org/grpc/credentials/xds"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	_ "google.golang.org/grpc/xds" // The xds:/// resolver and its balancers.
)

type answer struct {
	Target  string `json:"target"`
	Backend string `json:"backend,omitempty"`
	Error   string `json:"error,omitempty"`
}

const callTimeout = 20 * time.Second

// callEvery returns the pause between two calls of all targets together.
func callEvery() time.Duration {
	if every, err := strconv.Atoi(os.Getenv("INTEROP_CALL_EVERY")); err == nil {
		return time.Duration(every) * time.Millisecond
	}
	return 10 * time.Millisecond
}

// client calls every target without end and reports which backend answered.
func client(targets []string) error {
	for _, target := range targets {
		// A29: what the cluster says decides, and without that there is no TLS.
		creds, err := xdscreds.NewClientCredentials(xdscreds.ClientOptions{FallbackCreds: insecure.NewCredentials()})
		if err != nil {
			return err
		}
		channel, err := grpc.NewClient(target, grpc.WithTransportCredentials(creds))
		if err != nil {
			return err
		}
		defer channel.Close()
		go func() {
			stub := health.NewHealthClient(channel)
			for started := false; ; time.Sleep(callEvery() * time.Duration(len(targets))) {
				// Waiting for the first configuration is not a failure; later nothing may have to wait.
				next := call(stub, target, !started)
				started = started || next.Error == ""
				say(next)
			}
		}()
	}
	untilInputEnds()
	return nil
}

func call(stub health.HealthClient, target string, wait bool) answer {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	var header metadata.MD
	_, err := stub.Check(ctx, &health.HealthCheckRequest{}, grpc.Header(&header), grpc.WaitForReady(wait))
	if err != nil {
		return answer{Target: target, Error: err.Error()}
	}
	return answer{Target: target, Backend: strings.Join(header.Get("backend"), ",")}
}
