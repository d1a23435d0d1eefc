package cluster

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Controller acts in the demo's world as the real controllers do in a cluster.
type Controller interface {
	// Beat does what the controllers do in one second, that of now. Beats come
	// one after the other, a second apart, under the world's lock: the
	// controller has the world for itself. An error fails the read or write
	// before which the beat was due; the next one goes on with the next beat.
	Beat(w *World, now time.Time) error
}

// maxBeats is how many beats a pause is worth at most: whatever moves in the
// demo comes to rest well before, and a demo that nobody asked anything for a
// day is not to answer slowly then.
const maxBeats = 300

// World is the demo's objects under a controller. It stands still until the
// first write.
type World struct {
	// HTTPClient reaches the demo's evidence server.
	HTTPClient *http.Client

	mu         sync.Mutex
	memory     *memory
	controller Controller
	clock      *demoClock
	version    int64     // the newest resourceVersion
	last       time.Time // of the last beat
}

func newWorld(m *memory, c Controller, clock *demoClock, evidence *http.Client) *World {
	w := &World{HTTPClient: evidence, memory: m, controller: c, clock: clock}
	for _, entries := range m.store.kinds {
		for _, e := range entries {
			if v, err := strconv.ParseInt(e.object.GetResourceVersion(), 10, 64); err == nil {
				w.version = max(w.version, v)
			}
		}
	}
	return w
}

// Get is client.Reader's, for a Controller in its beat.
func (w *World) Get(ctx context.Context, key client.ObjectKey, obj client.Object) error {
	return w.memory.get(ctx, key, obj)
}

// List is client.Reader's, for a Controller in its beat.
func (w *World) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return w.memory.list(ctx, list, opts...)
}

// Put stores an object of a kind that the world has, new or not, status and
// all, under a resourceVersion of its own. It is for a Controller in its beat.
func (w *World) Put(obj client.Object) error {
	gvk, err := apiutil.GVKForObject(obj, Scheme())
	if err != nil {
		return err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(content)}
	u.SetGroupVersionKind(gvk)
	unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
	if status, ok := u.Object["status"].(map[string]any); ok && len(status) == 0 {
		delete(u.Object, "status") // as an object that no controller has seen yet
	}
	w.version++
	u.SetResourceVersion(strconv.FormatInt(w.version, 10))
	e := &entry{namespace: u.GetNamespace(), name: u.GetName(), object: u}
	if err := w.memory.store.decodeTyped(e, gvk); err != nil {
		return fmt.Errorf("%s: %w", describe(u), err)
	}
	w.memory.store.put(gvk.GroupKind(), e)
	return nil
}

// Create is Put for a new Passage: it is given what an API server gives it.
// The error is that of an API server.
func (w *World) Create(obj client.Object, now time.Time) error {
	return w.create(obj, now, false)
}

// enter takes the lock and brings the world to the present. leave has to be
// called even with an error.
func (w *World) enter() (leave func(), err error) {
	w.mu.Lock()
	return w.mu.Unlock, w.advance()
}

func (w *World) advance() error {
	start, now, runs := w.clock.running()
	if !runs {
		return nil
	}
	if w.last.IsZero() {
		w.last = start
	}
	for n := 0; ; n++ {
		next := w.last.Add(time.Second)
		if next.After(now) {
			return nil
		}
		if n == maxBeats {
			next = next.Add(now.Sub(next).Truncate(time.Second))
		}
		w.last = next
		if err := w.controller.Beat(w, next); err != nil {
			return fmt.Errorf("the demo's controller: %w", err)
		}
	}
}

// has reports whether a namespace holds Hecate objects: what a demo knows of
// namespaces.
func (w *World) has(namespace string) bool {
	for _, known := range w.memory.store.hecateNamespaces() {
		if known == namespace {
			return true
		}
	}
	return false
}

// put replaces an entry or inserts it where it belongs. Entries and slices that
// were handed out stay as they were.
func (s *store) put(gk schema.GroupKind, e *entry) {
	old := s.kinds[gk]
	entries := make([]*entry, 0, len(old)+1)
	placed := false
	for _, o := range old {
		order := o.compare(e.namespace, e.name)
		if order >= 0 && !placed {
			entries, placed = append(entries, e), true
		}
		if order != 0 {
			entries = append(entries, o)
		}
	}
	if !placed {
		entries = append(entries, e)
	}
	s.kinds[gk] = entries
	s.groups[gk.Group] = true
}

// demoClock stands at an instant until it is started, and goes on from there.
type demoClock struct {
	wall func() time.Time
	mu   sync.Mutex
	at   time.Time // zero: it is the wall clock
	from time.Time // on the wall clock; zero: it stands
}

func (c *demoClock) now() time.Time {
	_, now, _ := c.running()
	return now
}

// running says since which instant it runs (in its own time), and what it shows.
func (c *demoClock) running() (start, now time.Time, runs bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.from.IsZero() && c.at.IsZero():
		return time.Time{}, c.wall().UTC(), false
	case c.from.IsZero():
		return c.at, c.at, false
	}
	return c.at, c.at.Add(c.wall().Sub(c.from)), true
}

func (c *demoClock) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.from.IsZero() {
		return
	}
	c.from = c.wall()
	if c.at.IsZero() {
		c.at = c.from.UTC()
	}
}
