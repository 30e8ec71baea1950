// SPDX-License-Identifier: Apache-2.0
package main

import (
	"sync"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
)

// tenants knows the resources of each tenant. With one snapshot for each node id, an id keeps the snapshot of the tenant
// that its node named when the id was first seen, whichever node presents that id later. Real control planes do the
// same: they make a snapshot from the node, and store it by the node's id.
type tenants struct {
	lock      sync.Mutex
	snapshots cache.SnapshotCache // nil if everybody is one tenant
	stores    map[string]*store
	known     map[string]bool // node ids
	tenant    func(*core.Node) string
}

func oneTenant(all *store) *tenants {
	return &tenants{stores: map[string]*store{"": all}}
}

func newTenants(snapshots cache.SnapshotCache, tenant func(*core.Node) string) *tenants {
	return &tenants{snapshots: snapshots, stores: map[string]*store{}, known: map[string]bool{}, tenant: tenant}
}

func (t *tenants) store(tenant string) *store {
	t.lock.Lock()
	defer t.lock.Unlock()
	return t.of(tenant)
}

// of is called with the lock held.
func (t *tenants) of(tenant string) *store {
	if t.snapshots == nil {
		return t.stores[""]
	}
	if t.stores[tenant] == nil {
		t.stores[tenant] = newStore(t.snapshots)
	}
	return t.stores[tenant]
}

// meet makes a snapshot for a node whose id is new. Only the first request of a stream needs to have a node.
func (t *tenants) meet(node *core.Node) error {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.snapshots == nil || node == nil || t.known[node.GetId()] {
		return nil
	}
	t.known[node.GetId()] = true
	its := t.of(t.tenant(node))
	its.lock.Lock()
	defer its.lock.Unlock()
	its.nodes = append(its.nodes, node.GetId())
	return its.publishTo(node.GetId())
}

// tenant is the value of TENANT in the node's metadata, or else the node's cluster.
func tenant(node *core.Node) string {
	if named := node.GetMetadata().GetFields()["TENANT"].GetStringValue(); named != "" {
		return named
	}
	return node.GetCluster()
}
