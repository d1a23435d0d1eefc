package gitops

import "fmt"

// BootstrapState says what is missing for Flux to start from this repository.
type BootstrapState struct {
	Required bool
	// Missing names each gap in a line, by cluster.
	Missing []string
}

// DetectBootstrapRequired says what a cluster would need besides this repository
// before Flux could reconcile it: a root that the repository itself declares,
// its source, and Flux's controllers and CRDs. What flux bootstrap commits, or a
// FluxInstance, covers all of it.
func DetectBootstrapRequired(g *FluxGraph) BootstrapState {
	var s BootstrapState
	for _, c := range g.Clusters {
		if c.From == fromInstance {
			continue // the operator makes the rest
		}
		controllers, source := false, false
		var ref SourceRef
		for _, k := range g.Keys() {
			n := g.Kustomizations[k]
			if k.Cluster != c.Name {
				continue
			}
			if n.Root && ref.Name == "" {
				ref = n.SourceRef
			}
			for _, m := range n.node.manifests {
				switch {
				case m.Kind == "CustomResourceDefinition" && m.Name == "kustomizations."+groupKustomize:
					controllers = true
				case m.group() == groupSource && m.Kind == ref.Kind && m.Name == ref.Name:
					source = true
				}
			}
		}
		if !controllers {
			s.Missing = append(s.Missing, fmt.Sprintf("cluster %s: no Kustomization renders Flux's own controllers (flux install, flux bootstrap or the Flux Operator brings them)", c.Name))
		}
		if !source {
			s.Missing = append(s.Missing, fmt.Sprintf("cluster %s: its source %s is declared nowhere in what it renders", c.Name, ref))
		}
		if c.From == fromDocument || c.From == fromConfig {
			s.Missing = append(s.Missing, fmt.Sprintf("cluster %s: nothing in the repository applies its root; somebody has to, once", c.Name))
		}
	}
	s.Required = len(s.Missing) > 0
	return s
}
