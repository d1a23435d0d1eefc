package demo_test

import (
	"bytes"
	"context"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/examples"
	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/cluster"
	"github.com/hecate-mcp/hecate-mcp/internal/demo"
	"github.com/hecate-mcp/hecate-mcp/internal/gate"
)

// stage is the demo with a wall clock that the test moves.
type stage struct {
	*cluster.Source
	mu   sync.Mutex
	wall time.Time
	tick time.Duration // by which each look at the clock moves it
}

func (s *stage) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wall = s.wall.Add(d)
}

// open opens the demo at now ("": the capture), with the estate edited by pairs
// of old and new text; every old one has to be there.
func open(t testing.TB, now string, edits ...string) *stage {
	t.Helper()
	s := &stage{wall: time.Unix(1_000_000, 0)}
	o := cluster.Options{DemoController: demo.Controller{}, DemoWall: func() time.Time {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.wall = s.wall.Add(s.tick)
		return s.wall
	}}
	if now != "" {
		at, err := time.Parse(time.RFC3339, now)
		if err != nil {
			t.Fatal(err)
		}
		o.Now = &at
	}
	estate := fstest.MapFS{}
	left := map[string]bool{}
	for i := 0; i < len(edits); i += 2 {
		left[edits[i]] = true
	}
	err := fs.WalkDir(examples.Estate(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(examples.Estate(), name)
		for i := 0; i < len(edits); i += 2 {
			if bytes.Contains(data, []byte(edits[i])) {
				data = bytes.ReplaceAll(data, []byte(edits[i]), []byte(edits[i+1]))
				delete(left, edits[i])
			}
		}
		estate[name] = &fstest.MapFile{Data: data}
		return err
	})
	if err != nil || len(left) > 0 {
		t.Fatalf("the estate: %v, without %v", err, left)
	}
	source, err := cluster.OpenDemo(estate, examples.Fides(), o)
	if err != nil {
		t.Fatal(err)
	}
	s.Source = source
	return s
}

func get[T any, P interface {
	*T
	client.Object
}](t testing.TB, s *stage, namespace, name string) P {
	t.Helper()
	obj := P(new(T))
	if err := s.Client.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, obj); err != nil {
		t.Fatal(err)
	}
	return obj
}

// promote creates a Passage as ops does.
func promote(t testing.TB, s *stage, namespace, gateName, alias, actor string) *v1alpha1.Passage {
	t.Helper()
	g := get[v1alpha1.Gate](t, s, namespace, gateName)
	p, err := gate.BuildPassage(g, bundle(t, s, namespace, alias), actor)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Client.Create(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	return p
}

func bundle(t testing.TB, s *stage, namespace, alias string) *v1alpha1.Bundle {
	t.Helper()
	var list v1alpha1.BundleList
	if err := s.Client.List(context.Background(), &list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if list.Items[i].Spec.Alias == alias {
			return &list.Items[i]
		}
	}
	t.Fatalf("no Bundle %s in %s", alias, namespace)
	return nil
}

// phases is how the steps of a Passage stand, in one line.
func phases(p *v1alpha1.Passage) string {
	var out []string
	if p.Status == nil {
		return "none"
	}
	for _, s := range p.Status.Steps {
		out = append(out, s.Uses+" "+strings.TrimSuffix(string(s.Phase)+"/"+s.Reason, "/"))
	}
	return strings.Join(out, ", ")
}
