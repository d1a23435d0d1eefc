package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

// This file is the place where an answer follows a Gate into what is not
// Hecate's: the Canary of a verifier, the Flux objects of a waiting step.

// canaryVersion is the API of the flagger verifier's objects.
const canaryVersion = "flagger.app/v1beta1"

func canaryOf(g *v1alpha1.Gate, check v1alpha1.Check) Object {
	var with struct{ Name, Namespace string }
	if check.With != nil {
		// A configuration that does not parse names no Canary: it is then
		// looked up under the empty name, and not found.
		_ = json.Unmarshal(check.With.Raw, &with)
	}
	if with.Namespace == "" {
		with.Namespace = g.Namespace
	}
	return Object{APIVersion: canaryVersion, Kind: "Canary", Namespace: with.Namespace, Name: with.Name}
}

// fluxVersions are the API versions that the flux steps and checks default to.
var fluxVersions = map[string]string{
	"Kustomization":  "kustomize.toolkit.fluxcd.io/v1",
	"HelmRelease":    "helm.toolkit.fluxcd.io/v2",
	"GitRepository":  "source.toolkit.fluxcd.io/v1",
	"OCIRepository":  "source.toolkit.fluxcd.io/v1",
	"HelmChart":      "source.toolkit.fluxcd.io/v1",
	"HelmRepository": "source.toolkit.fluxcd.io/v1",
	"Bucket":         "source.toolkit.fluxcd.io/v1",
}

// fluxConfig is the `with` of flux-wait and of the flux check.
type fluxConfig struct {
	Resources []struct {
		Kind       string `json:"kind"`
		Name       string `json:"name"`
		Namespace  string `json:"namespace"`
		APIVersion string `json:"apiVersion"`
	} `json:"resources"`
	// ClusterRef names a kubeconfig: the objects are then not in this cluster.
	ClusterRef *v1alpha1.LocalReference `json:"clusterRef"`
}

// fluxObjects names what a flux step or check looks at; remote says that it is
// in another cluster.
func fluxObjects(namespace string, raw []byte) (objects []Object, remote bool) {
	var c fluxConfig
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, false
	}
	for _, r := range c.Resources {
		o := Object{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
		if o.APIVersion == "" {
			o.APIVersion = fluxVersions[r.Kind]
		}
		if o.Namespace == "" {
			o.Namespace = namespace
		}
		objects = append(objects, o)
	}
	return objects, c.ClusterRef != nil
}

// stepFluxWait is the step that waits for Flux objects.
const stepFluxWait = "flux-wait"

// maxLookups bounds the look-ups of one answer.
const maxLookups = 40

// lookup reads, for the given Gates, the Canaries of verifiers and the Flux
// objects of waiting steps: nothing where nobody waits.
func (o *Ops) lookup(ctx context.Context, e *estate, gates []*v1alpha1.Gate) error {
	var wanted []Object
	seen := map[Object]bool{}
	want := func(obj Object) {
		if seen[obj] || obj.Name == "" || obj.APIVersion == "" {
			return
		}
		seen[obj] = true
		if len(wanted) == maxLookups {
			e.incomplete = append(e.incomplete, Incomplete{Code: SourceInternal, Object: obj,
				Detail: fmt.Sprintf("not looked up: at most %d objects are, in one answer; ask for the Gate by name", maxLookups)})
			return
		}
		wanted = append(wanted, obj)
	}
	for _, g := range gates {
		v := e.view(g)
		if v.verification.pending {
			for _, check := range g.Spec.Verify {
				if check.Uses == verifierFlagger {
					want(canaryOf(g, check))
				}
			}
		}
		for _, p := range v.running {
			if i, _ := waitingStep(p); i >= 0 && p.Spec.Steps[i].Uses == stepFluxWait && p.Spec.Steps[i].With != nil {
				objects, remote := fluxObjects(p.Namespace, p.Spec.Steps[i].With.Raw)
				for _, obj := range objects {
					if !remote {
						want(obj)
					}
				}
			}
		}
	}
	var mu sync.Mutex
	eg, ctx := errgroup.WithContext(ctx)
	eg.SetLimit(8)
	for _, obj := range wanted {
		eg.Go(func() error {
			u := &unstructured.Unstructured{}
			gv, err := schema.ParseGroupVersion(obj.APIVersion)
			if err != nil {
				return nil // a configuration that nobody can follow
			}
			u.SetGroupVersionKind(gv.WithKind(obj.Kind))
			err = o.Client.Get(ctx, client.ObjectKey{Namespace: obj.Namespace, Name: obj.Name}, u)
			if err != nil && ctx.Err() != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				code := sourceCode(err)
				e.live[obj] = liveObject{code: code}
				if code != SourceNotFound {
					e.incomplete = append(e.incomplete, incomplete(err, obj))
				}
				return nil
			}
			l := liveObject{found: true}
			// A field of another type is as good as absent.
			l.suspended, _, _ = unstructured.NestedBool(u.Object, "spec", "suspend")
			l.phase, _, _ = unstructured.NestedString(u.Object, "status", "phase")
			e.live[obj] = l
			return nil
		})
	}
	err := eg.Wait()
	e.sortIncomplete()
	return err
}

// lookupCanaries reads every Canary with one LIST, for answers over many Gates
// whose number of requests has to stay constant.
func (o *Ops) lookupCanaries(ctx context.Context, e *estate, namespace string) error {
	pending := false
	var wanted []Object
	for i := range e.gates {
		if len(e.gates[i].Spec.Verify) == 0 {
			continue // a view of each Gate of a board is half of what the rules cost
		}
		v := e.view(&e.gates[i])
		if !v.verification.pending {
			continue
		}
		for _, check := range e.gates[i].Spec.Verify {
			if check.Uses == verifierFlagger {
				pending = true
				wanted = append(wanted, canaryOf(&e.gates[i], check))
			}
		}
	}
	if !pending {
		return nil
	}
	l := &unstructured.UnstructuredList{}
	gv, err := schema.ParseGroupVersion(canaryVersion)
	if err != nil {
		return err
	}
	l.SetGroupVersionKind(gv.WithKind("CanaryList"))
	if err := list(ctx, o.Client, l, namespace, nil); err != nil {
		if ctx.Err() != nil {
			return err
		}
		e.incomplete = append(e.incomplete, incomplete(err, Object{APIVersion: canaryVersion, Kind: "Canary", Namespace: namespace}))
		e.sortIncomplete()
		for _, w := range wanted {
			e.live[w] = liveObject{code: sourceCode(err)}
		}
		return nil
	}
	for _, u := range l.Items {
		obj := Object{APIVersion: canaryVersion, Kind: "Canary", Namespace: u.GetNamespace(), Name: u.GetName()}
		phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
		e.live[obj] = liveObject{found: true, phase: phase}
	}
	for _, w := range wanted {
		// Only what the LIST covered can be said to be missing.
		if _, ok := e.live[w]; !ok && (namespace == AllNamespaces || w.Namespace == namespace) {
			e.live[w] = liveObject{code: SourceNotFound}
		}
	}
	return nil
}
