// SPDX-License-Identifier: Apache-2.0
package main

import (
	"context"

	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
)

// onDemand has two linear caches of one type: one with the resources of the wildcard, and one with all resources. Thus
// it has resources that every client gets, and resources only for clients that ask for them by name.
type onDemand struct {
	listed     *cache.LinearCache
	everything *cache.LinearCache
	typeURL    string
	store      *store
}

func newOnDemand(store *store, typeURL string) onDemand {
	return onDemand{cache.NewLinearCache(typeURL), cache.NewLinearCache(typeURL), typeURL, store}
}

func (o onDemand) CreateWatch(request *cache.Request, subscription cache.Subscription, to chan cache.Response) (func(), error) {
	chosen, err := o.choose(subscription)
	if err != nil {
		return nil, err
	}
	return chosen.CreateWatch(request, subscription, to)
}

func (o onDemand) CreateDeltaWatch(request *cache.DeltaRequest, subscription cache.Subscription, to chan cache.DeltaResponse) (func(), error) {
	chosen, err := o.choose(subscription)
	if err != nil {
		return nil, err
	}
	return chosen.CreateDeltaWatch(request, subscription, to)
}

func (o onDemand) Fetch(ctx context.Context, request *cache.Request) (cache.Response, error) {
	return o.everything.Fetch(ctx, request)
}

// choose finds the cache for a subscription. A subscription to the wildcard and to names needs both caches; a linear
// cache cannot do that, so the names become part of the wildcard.
func (o onDemand) choose(subscription cache.Subscription) (*cache.LinearCache, error) {
	if !subscription.IsWildcard() {
		return o.everything, nil
	}
	o.store.lock.Lock()
	defer o.store.lock.Unlock()
	for name := range subscription.SubscribedResources() {
		wanted := key{o.typeURL, name}
		if !o.store.lazy[wanted] {
			continue
		}
		delete(o.store.lazy, wanted)
		if err := o.listed.UpdateResource(name, o.store.resources[o.typeURL][name]); err != nil {
			return nil, err
		}
	}
	return o.listed, nil
}

// update is called with the store's lock held.
func (o onDemand) update(updates map[string]types.Resource, removals []string) error {
	if err := o.everything.UpdateResources(updates, removals); err != nil {
		return err
	}
	listed := map[string]types.Resource{}
	for name, body := range updates {
		if !o.store.lazy[key{o.typeURL, name}] {
			listed[name] = body
		}
	}
	return o.listed.UpdateResources(listed, removals)
}
