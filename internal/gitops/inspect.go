package gitops

// Inspection is what a Kustomization was built from and what came out of it, for
// checks against another builder (test/impactcheck, the benchmarks).
type Inspection struct {
	// Root is the folder of the artifact, valid while the Engine keeps it: until
	// another state of the same working tree or a few more trees were opened. It is empty for an external Kustomization.
	Root, Path string
	// Object is the Flux object; it must not be changed.
	Object map[string]any
	// Values are what postBuild substitutes, when Substitutes is set.
	Values      map[string]string
	Substitutes bool
	// Rendered are the objects, as JSON.
	Rendered [][]byte
	// Failure is why the build fails, "" when it does not.
	Failure string
	// Remote says that remote entries were left out, Unknown that values are not
	// known here: another builder would not give the same.
	Remote, Unknown bool
}

// Inspect tells how a Kustomization of a discovered graph was built.
func (n KustomizationNode) Inspect() Inspection {
	out := Inspection{Path: n.Path}
	if n.node == nil {
		return out
	}
	out.Object = n.node.object
	if n.node.art != nil {
		out.Root = n.node.art.art.Dir
	}
	if v := n.node.vars; v != nil {
		out.Values, out.Substitutes = v.values, v.active
		out.Unknown = len(v.missing) > 0 || len(v.hidden) > 0
	}
	if n.node.failure != nil {
		out.Failure = n.node.failure.Error()
	}
	if n.node.build != nil {
		out.Remote = len(n.node.build.result.Stubs) > 0
	}
	for _, m := range n.node.manifests {
		out.Rendered = append(out.Rendered, m.json)
	}
	return out
}
