package ops

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/cluster"
	"github.com/hecate-mcp/hecate-mcp/internal/gate"
)

// key identifies a namespaced object of a known kind.
type key = types.NamespacedName

// estate is what was read of one scope, indexed for the rules. It is a value:
// judging it needs no further request.
type estate struct {
	now      time.Time
	untimed  bool
	gates    []v1alpha1.Gate // by namespace, then name
	byGate   map[key]*v1alpha1.Gate
	bundles  map[string][]*v1alpha1.Bundle // by namespace, newest first
	byBundle map[key]*v1alpha1.Bundle
	beacons  map[key]*v1alpha1.Beacon
	// passages holds every known Passage by the Gate that it belongs to: its
	// label, or spec.gate where it has none.
	passages map[key][]*v1alpha1.Passage
	// read says for which Gates the Passages were read.
	read map[key]bool
	// kindsUnread says why a kind could not be read, narrowed which kinds were
	// read in one namespace only: see unread.
	kindsUnread map[string]error
	narrowed    map[string]string
	// live holds what was looked up beside the four kinds.
	live map[Object]liveObject
	// holds is what the evidence server adds to a recorded hold, by Passage.
	holds      map[string]Hold
	incomplete []Incomplete
}

// liveObject is what a look-up of a Flux or Flagger object gave.
type liveObject struct {
	found     bool
	suspended bool
	phase     string // a Canary's
	code      SourceCode
}

func newEstate(now time.Time) *estate {
	return &estate{
		now: now, byGate: map[key]*v1alpha1.Gate{}, bundles: map[string][]*v1alpha1.Bundle{},
		byBundle: map[key]*v1alpha1.Bundle{}, beacons: map[key]*v1alpha1.Beacon{},
		passages: map[key][]*v1alpha1.Passage{}, read: map[key]bool{}, kindsUnread: map[string]error{}, narrowed: map[string]string{},
		live: map[Object]liveObject{}, holds: map[string]Hold{},
	}
}

// older says that something is longer ago than d: never where the clock is not
// the objects' own, since age then says nothing.
func (e *estate) older(t time.Time, d time.Duration) bool { return !e.untimed && e.now.Sub(t) > d }

// unread says that objects of a kind may exist in a namespace without having
// been read: nothing may be concluded from their absence.
func (e *estate) unread(kind, namespace string) bool {
	only, narrowed := e.narrowed[kind]
	return e.kindsUnread[kind] != nil || (narrowed && only != namespace)
}

func (e *estate) addGates(gs []v1alpha1.Gate) {
	e.gates = gs
	for i := range gs {
		e.byGate[client.ObjectKeyFromObject(&gs[i])] = &gs[i]
	}
}

func (e *estate) addBundles(bs []v1alpha1.Bundle) {
	gate.SortNewestFirst(bs)
	for i := range bs {
		b := &bs[i]
		e.bundles[b.Namespace] = append(e.bundles[b.Namespace], b)
		e.byBundle[client.ObjectKeyFromObject(b)] = b
	}
}

func (e *estate) addBeacons(bs []v1alpha1.Beacon) {
	for i := range bs {
		e.beacons[client.ObjectKeyFromObject(&bs[i])] = &bs[i]
	}
}

func (e *estate) addPassages(ps []v1alpha1.Passage) {
	for i := range ps {
		p := &ps[i]
		k := key{Namespace: p.Namespace, Name: gateOf(p)}
		e.passages[k] = append(e.passages[k], p)
	}
}

// gateOf is the Gate that a Passage belongs to: the label is what the Gate
// controller goes by, spec.gate what the Passage says.
func gateOf(p *v1alpha1.Passage) string {
	if l, ok := p.Labels[v1alpha1.LabelGate]; ok {
		return l
	}
	return p.Spec.Gate
}

func labelled(p *v1alpha1.Passage) bool {
	_, ok := p.Labels[v1alpha1.LabelGate]
	return ok
}

// list reads every object of a kind in a namespace, all for "".
func list(ctx context.Context, c client.Reader, l client.ObjectList, namespace string, sel labels.Selector) error {
	opts := []client.ListOption{client.InNamespace(namespace)}
	if sel != nil {
		opts = append(opts, client.MatchingLabelsSelector{Selector: sel})
	}
	return cluster.ListAll(ctx, c, l, opts...)
}

func byName(a, b metav1.Object) int {
	return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}

func (o *Ops) listGates(ctx context.Context, namespace string) ([]v1alpha1.Gate, error) {
	var l v1alpha1.GateList
	if err := list(ctx, o.Client, &l, namespace, nil); err != nil {
		return nil, err
	}
	slices.SortFunc(l.Items, func(a, b v1alpha1.Gate) int { return byName(&a, &b) })
	return l.Items, nil
}

func (o *Ops) listBundles(ctx context.Context, namespace string) ([]v1alpha1.Bundle, error) {
	var l v1alpha1.BundleList
	if err := list(ctx, o.Client, &l, namespace, nil); err != nil {
		return nil, err
	}
	gate.SortNewestFirst(l.Items)
	return l.Items, nil
}

func (o *Ops) listBeacons(ctx context.Context, namespace string) ([]v1alpha1.Beacon, error) {
	var l v1alpha1.BeaconList
	if err := list(ctx, o.Client, &l, namespace, nil); err != nil {
		return nil, err
	}
	slices.SortFunc(l.Items, func(a, b v1alpha1.Beacon) int { return byName(&a, &b) })
	return l.Items, nil
}

// listPassages reads Passages, newest first.
func (o *Ops) listPassages(ctx context.Context, namespace string, sel labels.Selector) ([]v1alpha1.Passage, error) {
	var l v1alpha1.PassageList
	if err := list(ctx, o.Client, &l, namespace, sel); err != nil {
		return nil, err
	}
	sortPassages(l.Items)
	return l.Items, nil
}

func sortPassages(ps []v1alpha1.Passage) {
	slices.SortStableFunc(ps, func(a, b v1alpha1.Passage) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), byName(&a, &b))
	})
}

// ofGate selects a Gate's Passages by label.
func ofGate(name string) labels.Selector {
	return labels.SelectorFromSet(labels.Set{v1alpha1.LabelGate: name})
}

// unlabelledSelector selects the Passages that lack the Gate's label.
func unlabelledSelector() labels.Selector {
	r, err := labels.NewRequirement(v1alpha1.LabelGate, selection.DoesNotExist, nil)
	if err != nil {
		panic(err) // the key is a constant
	}
	return labels.NewSelector().Add(*r)
}

// sourceCode maps what a read gave to the code of the answer.
func sourceCode(err error) SourceCode {
	switch cluster.Classify(err) {
	case cluster.CodeNotFound:
		return SourceNotFound
	case cluster.CodeForbidden:
		return SourceForbidden
	case cluster.CodeUnauthenticated:
		return SourceUnauth
	case cluster.CodeKindNotInstalled:
		return SourceNotInstalled
	case cluster.CodeUnavailable, cluster.CodeExpired:
		return SourceUnavailable
	case cluster.CodeTimeout:
		return SourceTimeout
	default:
		return SourceInternal
	}
}

// incomplete makes a failed read part of the answer.
func incomplete(err error, obj Object) Incomplete {
	return Incomplete{Code: sourceCode(err), Object: obj, Detail: cleanCause(err.Error(), 200)}
}

// hecate names an object of the four kinds.
func hecate(kind, namespace, name string) Object {
	return Object{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind, Namespace: namespace, Name: name}
}

// passageMode says which Passages a load reads at once.
type passageMode int

const (
	noPassages passageMode = iota
	unlabelledPassages
	allPassages
)

// load reads Gates, Bundles, Beacons and (as asked) Passages of a namespace,
// all namespaces for "": one LIST a kind, in parallel. Gates that cannot be
// read are an error; any other kind is Incomplete. A user who may not list
// over all namespaces gets the default namespace, and is told.
func (o *Ops) load(ctx context.Context, namespace string, mode passageMode) (*estate, error) {
	e := newEstate(o.now())
	e.untimed = o.Untimed
	var mu sync.Mutex
	eg, ctx := errgroup.WithContext(ctx)
	read := func(kind string, fatal bool, f func(ctx context.Context, ns string) error) {
		eg.Go(func() error {
			narrowed, err := o.inDefault(kind, namespace, func(ns string) error { return f(ctx, ns) })
			if len(narrowed) > 0 {
				mu.Lock()
				e.incomplete = append(e.incomplete, narrowed...)
				e.narrowed[kind] = o.DefaultNamespace
				mu.Unlock()
			}
			if err == nil || fatal || ctx.Err() != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			e.kindsUnread[kind] = err
			e.incomplete = append(e.incomplete, incomplete(err, hecate(kind, namespace, "")))
			return nil
		})
	}
	read(v1alpha1.KindGate, true, func(ctx context.Context, ns string) error {
		gs, err := o.listGates(ctx, ns)
		e.addGates(gs)
		return err
	})
	read(v1alpha1.KindBundle, false, func(ctx context.Context, ns string) error {
		bs, err := o.listBundles(ctx, ns)
		e.addBundles(bs)
		return err
	})
	read(v1alpha1.KindBeacon, false, func(ctx context.Context, ns string) error {
		bs, err := o.listBeacons(ctx, ns)
		e.addBeacons(bs)
		return err
	})
	if mode != noPassages {
		read(v1alpha1.KindPassage, false, func(ctx context.Context, ns string) error {
			var sel labels.Selector
			if mode == unlabelledPassages {
				sel = unlabelledSelector()
			}
			ps, err := o.listPassages(ctx, ns, sel)
			e.addPassages(ps)
			return err
		})
	}
	if err := eg.Wait(); err != nil {
		return nil, err
	}
	if mode == allPassages {
		for k := range e.byGate {
			e.read[k] = !e.unread(v1alpha1.KindPassage, k.Namespace)
		}
	}
	e.sortIncomplete()
	return e, nil
}

// readPassages reads the Passages of the given Gates by label, one LIST each.
func (o *Ops) readPassages(ctx context.Context, e *estate, gates []*v1alpha1.Gate) error {
	var mu sync.Mutex
	eg, ctx := errgroup.WithContext(ctx)
	eg.SetLimit(8)
	for _, g := range gates {
		// A label value is limited to 63 characters: such a Gate has no
		// labelled Passages, and asking for them would be a bad request.
		if len(g.Name) > gate.MaxLabelLength {
			continue
		}
		eg.Go(func() error {
			ps, err := o.listPassages(ctx, g.Namespace, ofGate(g.Name))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				if ctx.Err() != nil {
					return err
				}
				e.kindsUnread[v1alpha1.KindPassage] = err
				e.incomplete = append(e.incomplete, incomplete(err, hecate(v1alpha1.KindPassage, g.Namespace, "")))
				return nil
			}
			e.read[client.ObjectKeyFromObject(g)] = true
			e.addPassages(ps)
			return nil
		})
	}
	err := eg.Wait()
	e.sortIncomplete()
	return err
}

// sortIncomplete orders and dedupes: the reads run in parallel.
func (e *estate) sortIncomplete() {
	slices.SortFunc(e.incomplete, func(a, b Incomplete) int {
		return cmp.Or(cmp.Compare(a.Object.Kind, b.Object.Kind), cmp.Compare(a.Object.Namespace, b.Object.Namespace),
			cmp.Compare(a.Object.Name, b.Object.Name), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Detail, b.Detail))
	})
	e.incomplete = slices.Compact(e.incomplete)
	for _, ps := range e.passages {
		slices.SortStableFunc(ps, func(a, b *v1alpha1.Passage) int {
			return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), byName(a, b))
		})
	}
}
