package cluster

import (
	"encoding/json"
	"net/http"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Fault is what happens to requests in front of the API server.
type Fault struct {
	// Verb and Resource say which requests, as Counter.Count reads them.
	Verb, Resource string
	// Continued takes only the second and later pages of a LIST.
	Continued bool
	// Times is how many requests it happens to; 0 is all until the test ends.
	Times int

	// Delay holds the request back first, or until the client gives up.
	Delay time.Duration
	// Status answers instead of the API server, with the Status object that
	// Kubernetes sends with it: 401, 410 (an expired continue token), 500, 503
	// and so on. 0 passes the request on.
	Status int
}

// Inject makes f happen from now on until the test ends. The first injected
// fault that fits a request is the one that happens to it.
func (c *Cluster) Inject(t testing.TB, f Fault) {
	t.Helper()
	entry := &fault{Fault: f}
	c.proxy.faults.add(entry)
	t.Cleanup(func() { c.proxy.faults.remove(entry) })
}

type fault struct {
	Fault
	seen int
}

// faults are the injected ones, in order.
type faults struct {
	mu  sync.Mutex
	all []*fault
}

func (s *faults) add(f *fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, f)
}

func (s *faults) remove(f *fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, other := range s.all {
		if other == f {
			s.all = append(s.all[:i:i], s.all[i+1:]...)
			return
		}
	}
}

// take returns the fault for a request, and counts that it happened.
func (s *faults) take(q request) (Fault, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.all {
		if q.is(f.Verb, f.Resource) && (q.continued || !f.Continued) && (f.Times == 0 || f.seen < f.Times) {
			f.seen++
			return f.Fault, true
		}
	}
	return Fault{}, false
}

// happen carries the fault out and says whether the request is answered.
func (f Fault) happen(w http.ResponseWriter, r *http.Request, q request) (answered bool) {
	if f.Delay > 0 {
		select {
		case <-time.After(f.Delay):
		case <-r.Context().Done():
			return true
		}
	}
	if f.Status == 0 {
		return false
	}
	status := f.error(q).Status()
	status.APIVersion, status.Kind = "v1", "Status"
	body, err := json.Marshal(status)
	if err != nil {
		panic(err) // a struct of strings and numbers
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.Status)
	// A client that has gone away does not want it.
	_, _ = w.Write(body)
	return true
}

// error is what Kubernetes says with the status code.
func (f Fault) error(q request) *apierrors.StatusError {
	switch f.Status {
	case http.StatusUnauthorized:
		return apierrors.NewUnauthorized("Unauthorized")
	case http.StatusGone:
		return apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result.")
	}
	return apierrors.NewGenericServerResponse(f.Status, q.verb, schema.GroupResource{Resource: q.resource}, "", "injected by the test", 0, false)
}
