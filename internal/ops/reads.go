package ops

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

// Namespaces lists the namespaces that hold something of Hecate's, sorted: a
// Bundle is in its Beacon's namespace and a Passage in its Gate's, so Gates and
// Beacons find them all. Two LISTs.
func (o *Ops) Namespaces(ctx context.Context) ([]string, error) {
	var gates []v1alpha1.Gate
	var beacons []v1alpha1.Beacon
	eg, ctx := errgroup.WithContext(ctx)
	eg.Go(func() (err error) { gates, err = o.listGates(ctx, AllNamespaces); return err })
	eg.Go(func() (err error) { beacons, err = o.listBeacons(ctx, AllNamespaces); return err })
	if err := eg.Wait(); err != nil {
		return nil, err
	}
	out := []string{}
	for i := range gates {
		out = append(out, gates[i].Namespace)
	}
	for i := range beacons {
		out = append(out, beacons[i].Namespace)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// Gates lists the Gates of a namespace, all for "", by namespace and name.
func (o *Ops) Gates(ctx context.Context, namespace string) ([]v1alpha1.Gate, error) {
	return o.listGates(ctx, namespace)
}

// Bundles lists Bundles, newest first.
func (o *Ops) Bundles(ctx context.Context, namespace string) ([]v1alpha1.Bundle, error) {
	return o.listBundles(ctx, namespace)
}

// Beacons lists Beacons by namespace and name.
func (o *Ops) Beacons(ctx context.Context, namespace string) ([]v1alpha1.Beacon, error) {
	return o.listBeacons(ctx, namespace)
}

// Passages lists Passages, newest first. An empty gate or bundle means any. A
// Passage belongs to a Gate by its label or, without one, by spec.gate; the
// selection is made here, since an unlabelled one would be missed by a selector.
func (o *Ops) Passages(ctx context.Context, namespace, gate, bundle string) ([]v1alpha1.Passage, error) {
	all, err := o.listPassages(ctx, namespace, labels.Everything())
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(p v1alpha1.Passage) bool {
		return (gate != "" && gateOf(&p) != gate && p.Spec.Gate != gate) || (bundle != "" && p.Spec.Bundle != bundle)
	}), nil
}

// get reads one object by name; one that is not there is a NotFoundError with
// the nearest names that are.
func (o *Ops) get(ctx context.Context, obj client.Object, kind, namespace, name string, names func() ([]string, error)) error {
	err := o.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj)
	if err == nil || sourceCode(err) != SourceNotFound {
		return err
	}
	nf := &NotFoundError{Object: hecate(kind, namespace, name)}
	// The candidates are a help: an answer without them is still right.
	if all, lerr := names(); lerr == nil {
		nf.Candidates = nearest(name, all, MaxNames)
	}
	return nf
}

// Gate reads one Gate by its exact name.
func (o *Ops) Gate(ctx context.Context, namespace, name string) (*v1alpha1.Gate, error) {
	var g v1alpha1.Gate
	return &g, o.get(ctx, &g, v1alpha1.KindGate, namespace, name, func() ([]string, error) {
		return namesOf(o.listGates(ctx, namespace))
	})
}

// Bundle reads one Bundle by its exact name.
func (o *Ops) Bundle(ctx context.Context, namespace, name string) (*v1alpha1.Bundle, error) {
	var b v1alpha1.Bundle
	return &b, o.get(ctx, &b, v1alpha1.KindBundle, namespace, name, func() ([]string, error) {
		return namesOf(o.listBundles(ctx, namespace))
	})
}

// Beacon reads one Beacon by its exact name.
func (o *Ops) Beacon(ctx context.Context, namespace, name string) (*v1alpha1.Beacon, error) {
	var b v1alpha1.Beacon
	return &b, o.get(ctx, &b, v1alpha1.KindBeacon, namespace, name, func() ([]string, error) {
		return namesOf(o.listBeacons(ctx, namespace))
	})
}

// Passage reads one Passage by its exact name.
func (o *Ops) Passage(ctx context.Context, namespace, name string) (*v1alpha1.Passage, error) {
	var p v1alpha1.Passage
	return &p, o.get(ctx, &p, v1alpha1.KindPassage, namespace, name, func() ([]string, error) {
		return namesOf(o.listPassages(ctx, namespace, labels.Everything()))
	})
}

func namesOf[T any, P interface {
	*T
	client.Object
}](items []T, err error) ([]string, error) {
	out := make([]string, 0, len(items))
	for i := range items {
		out = append(out, P(&items[i]).GetName())
	}
	return out, err
}

// meant says which names a filter means: the exact one where it exists, else
// every one that contains it; all for "".
func meant(want string, exists func(exact func(name string) bool) bool) func(name string) bool {
	exact := func(name string) bool { return name == want }
	if want != "" && exists(exact) {
		return exact
	}
	return func(name string) bool { return strings.Contains(name, want) }
}

// matches says whether a name contains what is wanted, true for "".
func matches(name, want string) bool { return want == "" || strings.Contains(name, want) }

// Names lists the names of a kind, given as its argument name (gate, bundle,
// passage, beacon), sorted and without duplicates; none for another word.
func (o *Ops) Names(ctx context.Context, argument, namespace string) ([]string, error) {
	var out []string
	var err error
	switch argument {
	case "gate":
		out, err = namesOf(o.listGates(ctx, namespace))
	case "bundle":
		out, err = namesOf(o.listBundles(ctx, namespace))
	case "passage":
		out, err = namesOf(o.listPassages(ctx, namespace, nil))
	case "beacon":
		out, err = namesOf(o.listBeacons(ctx, namespace))
	}
	slices.Sort(out)
	return slices.Compact(out), err
}
