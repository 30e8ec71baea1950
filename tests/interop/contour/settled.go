// SPDX-License-Identifier: Apache-2.0
package v3

import (
	"sort"
	"time"

	envoy_service_discovery_v3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// settled asks again, while the answer is another one than what is wanted: what changes in Contour is at a relay a moment later.
func (r *Response) settled(names []string, want *envoy_service_discovery_v3.DiscoveryResponse) *Response {
	for began := time.Now(); !same(r.Resources, want.Resources) && time.Since(began) < 5*time.Second; {
		time.Sleep(20 * time.Millisecond)
		r = r.Contour.Request(r.TypeUrl, names...)
	}
	return r
}

func same(one, other []*anypb.Any) bool {
	for _, list := range [][]*anypb.Any{one, other} {
		sort.Slice(list, func(i, j int) bool { return string(list[i].Value) < string(list[j].Value) })
	}
	equal := len(one) == len(other)
	for at := 0; equal && at < len(one); at++ {
		equal = proto.Equal(one[at], other[at])
	}
	return equal
}
