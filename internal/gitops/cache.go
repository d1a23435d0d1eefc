package gitops

import (
	lru "container/list"
	"sync"
)

// cache is a bounded memory by content: the least recently used goes first. It
// is what makes the second question after one changed file cheap.
type cache struct {
	mu    sync.Mutex
	bound int
	used  int
	order *lru.List
	items map[string]*lru.Element
}

type cached struct {
	key   string
	value any
	size  int
}

func newCache(bytes int) *cache {
	return &cache{bound: bytes, order: lru.New(), items: map[string]*lru.Element{}}
}

func (c *cache) get(key string) (any, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	el, ok := c.items[key]
	if !ok {
		return nil, false
	}
	c.order.MoveToFront(el)
	return el.Value.(*cached).value, true
}

// put keeps a value that takes about size bytes; one that is larger than the
// whole bound is not kept.
func (c *cache) put(key string, value any, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if size > c.bound {
		return
	}
	if el, ok := c.items[key]; ok {
		c.used -= el.Value.(*cached).size
		c.order.Remove(el)
	}
	c.items[key] = c.order.PushFront(&cached{key, value, size})
	for c.used += size; c.used > c.bound; {
		last := c.order.Back()
		old := last.Value.(*cached)
		c.used -= old.size
		c.order.Remove(last)
		delete(c.items, old.key)
	}
}
