// SPDX-License-Identifier: Apache-2.0
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/log"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"
)

// served lists the types of both kinds of cache in make-before-break order.
var served = []string{
	resource.ClusterType, resource.EndpointType, resource.SecretType, resource.ExtensionConfigType,
	resource.ListenerType, resource.ScopedRouteType, resource.RouteType, resource.VirtualHostType, resource.RuntimeType,
}

// fleet is the node id that the snapshot cache of kind "snapshot" uses for all clients.
const fleet = "fleet"

type oneFleet struct{}

func (oneFleet) ID(*core.Node) string { return fleet }

type key struct{ typeURL, name string }

// store holds the resources of one tenant and keeps the one cache that is in use up to date with them.
type store struct {
	lock      sync.Mutex
	snapshots cache.SnapshotCache
	nodes     []string // whose snapshot it is
	linear    map[string]onDemand
	resources map[string]map[string]types.Resource
	versions  map[string]int
	lazy      map[key]bool
}

func newStore(snapshots cache.SnapshotCache, nodes ...string) *store {
	store := &store{
		snapshots: snapshots,
		nodes:     nodes,
		resources: map[string]map[string]types.Resource{},
		versions:  map[string]int{},
		lazy:      map[key]bool{},
	}
	for _, typeURL := range served {
		store.resources[typeURL] = map[string]types.Resource{}
	}
	return store
}

// newCache returns a cache of this kind, and the tenants whose stores keep it up to date.
func newCache(kind string) (cache.Cache, *tenants, error) {
	switch kind {
	case "snapshot":
		snapshots := cache.NewSnapshotCache(true, oneFleet{}, log.NewDefaultLogger())
		return snapshots, oneTenant(newStore(snapshots, fleet)), nil
	case "nodes":
		snapshots := cache.NewSnapshotCache(true, cache.IDHash{}, log.NewDefaultLogger())
		return snapshots, newTenants(snapshots, tenant), nil
	case "ids":
		// Each node is a tenant, and one of which nothing is known has nothing.
		snapshots := cache.NewSnapshotCache(true, cache.IDHash{}, log.NewDefaultLogger())
		return snapshots, newTenants(snapshots, (*core.Node).GetId), nil
	case "linear":
		store := newStore(nil)
		store.linear = map[string]onDemand{}
		mux := &cache.MuxCache{
			Classify:      func(request *cache.Request) string { return request.GetTypeUrl() },
			ClassifyDelta: func(request *cache.DeltaRequest) string { return request.GetTypeUrl() },
			Caches:        map[string]cache.Cache{},
		}
		for _, typeURL := range served {
			store.linear[typeURL] = newOnDemand(store, typeURL)
			mux.Caches[typeURL] = store.linear[typeURL]
		}
		return mux, oneTenant(store), nil
	default:
		return nil, nil, fmt.Errorf("no cache %q: snapshot, nodes, ids or linear", kind)
	}
}

func (s *store) apply(next command) error {
	puts, err := parse(next.Put)
	if err != nil {
		return err
	}
	lazy, err := parse(next.Lazy)
	if err != nil {
		return err
	}
	removals := make([]key, 0, len(next.Remove))
	for _, pair := range next.Remove {
		removals = append(removals, key{pair[0], pair[1]})
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	if len(lazy) > 0 && s.linear == nil {
		return errors.New("a snapshot cache has no lazy resources")
	}
	for name := range lazy {
		s.lazy[name] = true
	}
	if err := s.change(lazy, nil); err != nil {
		return err
	}
	return s.change(puts, removals)
}

// change is called with the lock held.
func (s *store) change(puts map[key]types.Resource, removals []key) error {
	changed := map[string]bool{}
	if len(puts)+len(removals) == 0 {
		return nil
	}
	for put, body := range puts {
		if s.resources[put.typeURL] == nil {
			return fmt.Errorf("type %s is not served", put.typeURL)
		}
		s.resources[put.typeURL][put.name] = body
		changed[put.typeURL] = true
	}
	for _, removal := range removals {
		delete(s.resources[removal.typeURL], removal.name)
		changed[removal.typeURL] = true
	}
	if s.snapshots != nil {
		return s.publishSnapshot(changed)
	}
	return s.publishLinear(puts, removals)
}

func (s *store) publishSnapshot(changed map[string]bool) error {
	for _, typeURL := range served {
		if changed[typeURL] {
			s.versions[typeURL]++
		}
	}
	for _, node := range s.nodes {
		if err := s.publishTo(node); err != nil {
			return err
		}
	}
	return nil
}

// publishTo is called with the lock held.
func (s *store) publishTo(node string) error {
	snapshot := &cache.Snapshot{}
	for _, typeURL := range served {
		items := make([]types.Resource, 0, len(s.resources[typeURL]))
		for _, item := range s.resources[typeURL] {
			items = append(items, item)
		}
		// A version of a type that never had a resource is empty, as in a snapshot made without that type.
		version := ""
		if s.versions[typeURL] > 0 {
			version = strconv.Itoa(s.versions[typeURL])
		}
		snapshot.Resources[cache.GetResponseType(typeURL)] = cache.NewResources(version, items)
	}
	return s.snapshots.SetSnapshot(context.Background(), node, snapshot)
}

// publishLinear adds in make-before-break order and then removes the other way round.
func (s *store) publishLinear(puts map[key]types.Resource, removals []key) error {
	for _, typeURL := range served {
		updates := map[string]types.Resource{}
		for put, body := range puts {
			if put.typeURL == typeURL {
				updates[put.name] = body
			}
		}
		if len(updates) > 0 {
			if err := s.linear[typeURL].update(updates, nil); err != nil {
				return err
			}
		}
	}
	for _, typeURL := range slices.Backward(served) {
		var names []string
		for _, removal := range removals {
			if removal.typeURL == typeURL {
				names = append(names, removal.name)
			}
		}
		if len(names) > 0 {
			if err := s.linear[typeURL].update(nil, names); err != nil {
				return err
			}
		}
	}
	return nil
}

func parse(objects []json.RawMessage) (map[key]types.Resource, error) {
	parsed := map[key]types.Resource{}
	for _, object := range objects {
		var wrapped anypb.Any
		if err := protojson.Unmarshal(object, &wrapped); err != nil {
			return nil, fmt.Errorf("resource %s: %w", object, err)
		}
		body, err := wrapped.UnmarshalNew()
		if err != nil {
			return nil, fmt.Errorf("resource %s: %w", object, err)
		}
		parsed[key{wrapped.GetTypeUrl(), cache.GetResourceName(body)}] = body
	}
	return parsed, nil
}
