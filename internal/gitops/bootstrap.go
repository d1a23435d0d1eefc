package gitops

import (
	"fmt"
	"slices"
	"strings"
)

// BootstrapState says what is missing for Flux to start from this repository.
type BootstrapState struct {
	Required bool
	// Missing names each gap in a line, with the clusters that it is in.
	Missing []string
}

// DetectBootstrapRequired says what a cluster would need besides this repository
// before Flux could reconcile it: a root that the repository itself declares,
// its source, and Flux's controllers and CRDs. What flux bootstrap commits, or a
// FluxInstance, covers all of it.
func DetectBootstrapRequired(g *FluxGraph) BootstrapState {
	gaps := map[string][]string{} // gap → clusters
	for _, c := range g.Clusters {
		for _, gap := range bootstrapGaps(g, c) {
			gaps[gap] = append(gaps[gap], c.Name)
		}
	}
	var s BootstrapState
	for gap, clusters := range gaps {
		word := "cluster "
		if len(clusters) > 1 {
			word = "clusters "
		}
		s.Missing = append(s.Missing, word+strings.Join(bounded(clusters, 5), ", ")+": "+gap)
	}
	slices.Sort(s.Missing)
	s.Required = len(s.Missing) > 0
	return s
}

// bootstrapGaps are what one cluster lacks.
func bootstrapGaps(g *FluxGraph, c ClusterInfo) []string {
	if c.From == fromInstance {
		return nil // the operator makes the rest
	}
	controllers, source := false, false
	var ref SourceRef
	for _, k := range g.Keys() {
		n := g.Kustomizations[k]
		if k.Cluster == c.Name && n.Root && ref.Name == "" {
			ref = n.SourceRef
		}
	}
	for _, k := range g.Keys() {
		n := g.Kustomizations[k].node
		if k.Cluster != c.Name || n == nil {
			continue
		}
		for _, m := range n.manifests {
			switch {
			case m.Kind == "CustomResourceDefinition" && m.Name == "kustomizations."+groupKustomize:
				controllers = true
			case m.group() == groupSource && m.Kind == ref.Kind && m.Name == ref.Name:
				source = true
			}
		}
	}
	var gaps []string
	if !controllers {
		gaps = append(gaps, "no Kustomization renders Flux's own controllers (flux install, flux bootstrap or the Flux Operator brings them)")
	}
	if !source {
		gaps = append(gaps, fmt.Sprintf("the source %s is declared nowhere in what it renders", ref))
	}
	if c.From == fromDocument || c.From == fromConfig {
		gaps = append(gaps, "nothing in the repository applies its root; somebody has to, once")
	}
	return gaps
}
