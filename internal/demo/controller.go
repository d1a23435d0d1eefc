package demo

import (
	"context"
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/cluster"
	"github.com/hecate-mcp/hecate-mcp/internal/gate"
)

// Controller is a cluster.Controller. It keeps nothing: all that it goes by
// stands in the objects.
type Controller struct{}

var _ cluster.Controller = Controller{}

// Beat does one second's work: Flux, Beacons, Passages, then Gates.
func (Controller) Beat(w *cluster.World, now time.Time) error {
	b := &beat{world: w, now: metav1.NewTime(now.Truncate(time.Second))}
	if err := b.load(); err != nil {
		return err
	}
	if err := b.flux(); err != nil {
		return err
	}
	for i := range b.beacons {
		if err := change(b, &b.beacons[i], b.beacon); err != nil {
			return err
		}
	}
	for i := range b.passages {
		if err := change(b, &b.passages[i], b.passage); err != nil {
			return err
		}
	}
	for i := range b.gates {
		if err := change(b, &b.gates[i], b.gate); err != nil {
			return err
		}
	}
	return nil
}

// beat is the world as one beat sees and changes it.
type beat struct {
	world    *cluster.World
	now      metav1.Time
	beacons  []v1alpha1.Beacon
	bundles  []v1alpha1.Bundle // newest first
	gates    []v1alpha1.Gate
	passages []v1alpha1.Passage // by name
}

func (b *beat) load() error {
	var (
		beacons  v1alpha1.BeaconList
		bundles  v1alpha1.BundleList
		gates    v1alpha1.GateList
		passages v1alpha1.PassageList
	)
	for _, l := range []client.ObjectList{&beacons, &bundles, &gates, &passages} {
		if err := b.world.List(context.Background(), l); err != nil {
			return err
		}
	}
	gate.SortNewestFirst(bundles.Items)
	b.beacons, b.bundles, b.gates, b.passages = beacons.Items, bundles.Items, gates.Items, passages.Items
	return nil
}

// change runs do on an object and stores what became of it, if anything did.
func change[T client.Object](b *beat, obj T, do func(T) error) error {
	before := obj.DeepCopyObject()
	if err := do(obj); err != nil {
		return err
	}
	if apiequality.Semantic.DeepEqual(before, obj) {
		return nil
	}
	return b.world.Put(obj)
}

func (b *beat) bundle(namespace, name string) *v1alpha1.Bundle {
	return find(b.bundles, func(x *v1alpha1.Bundle) bool { return x.Namespace == namespace && x.Name == name })
}

func (b *beat) gateOf(p *v1alpha1.Passage) *v1alpha1.Gate {
	return find(b.gates, func(x *v1alpha1.Gate) bool { return x.Namespace == p.Namespace && x.Name == p.Spec.Gate })
}

func find[T any](items []T, is func(*T) bool) *T {
	if i := slices.IndexFunc(items, func(x T) bool { return is(&x) }); i >= 0 {
		return &items[i]
	}
	return nil
}

// since is how long ago t was.
func (b *beat) since(t *metav1.Time) time.Duration { return b.now.Sub(t.Time) }

// beacon polls when it was asked to and when its interval is over. It finds
// what it found before: there is no registry.
func (b *beat) beacon(x *v1alpha1.Beacon) error {
	asked := x.Annotations[v1alpha1.AnnotationReconcile]
	s := &x.Status
	due := asked != s.LastHandledReconcileAt
	s.LastHandledReconcileAt = asked
	if x.Spec.Suspend {
		return nil
	}
	interval := 5 * time.Minute
	if x.Spec.Interval != nil && x.Spec.Interval.Duration > 0 {
		interval = x.Spec.Interval.Duration
	}
	if due || s.LastPolled == nil || b.since(s.LastPolled) >= interval {
		s.LastPolled = b.now.DeepCopy()
		s.ObservedGeneration = x.Generation
	}
	return nil
}
