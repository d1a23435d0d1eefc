package cluster

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// A Counter counts what clients asked the API server through Config or
// Kubeconfig, whatever the answer was, injected ones included. What the
// harness does itself is not counted.
type Counter struct {
	mu       sync.Mutex
	requests map[request]int
	bytes    int64
}

// Requests is the instance's counter. Reset it after the preparation of a test.
func (c *Cluster) Requests() *Counter { return c.proxy.counter }

// Reset sets every count to zero.
func (c *Counter) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests, c.bytes = map[request]int{}, 0
}

// Count is the number of requests with a verb (get, list, watch, create,
// update, patch, delete, deletecollection) and a resource ("gates",
// "bundles/status"; discovery has its path, "/apis"); "" is any. Each page of
// a LIST is a request.
func (c *Counter) Count(verb, resource string) int {
	return c.count(func(q request) bool { return q.is(verb, resource) })
}

// Lists is the number of LISTs of a resource, all pages of one taken together.
func (c *Counter) Lists(resource string) int {
	return c.count(func(q request) bool { return q.is("list", resource) && !q.continued })
}

// Bytes is the size of all answers' bodies as they went over the wire: the API
// server compresses large ones for clients that accept it, and Go's do.
func (c *Counter) Bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}

// String lists what was counted, one "verb resource: count" a line, for a
// test's failure message.
func (c *Counter) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	lines := make([]string, 0, len(c.requests))
	for q, n := range c.requests {
		page := ""
		if q.continued {
			page = " (further pages)"
		}
		lines = append(lines, fmt.Sprintf("%s %s%s: %d", q.verb, q.resource, page, n))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func (c *Counter) count(match func(request) bool) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for q, times := range c.requests {
		if match(q) {
			n += times
		}
	}
	return n
}

func (c *Counter) add(q request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests[q]++
}

func (c *Counter) addBytes(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes += int64(n)
}
