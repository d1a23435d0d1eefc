package reconcile

// cycles are the nodes that reach themselves through dependsOn (strongly
// connected components of more than one node, by Tarjan, and self-loops).
func (b *builder) cycles() map[Key]bool {
	cyclic := map[Key]bool{}
	index, low, onStack := map[Key]int{}, map[Key]int{}, map[Key]bool{}
	var stack []Key
	var visit func(k Key)
	visit = func(k Key) {
		index[k] = len(index) + 1
		low[k] = index[k]
		stack = append(stack, k)
		onStack[k] = true
		for _, d := range b.nodes[k].DependsOn {
			switch {
			case b.nodes[d] == nil:
			case d == k:
				cyclic[k] = true
			case index[d] == 0:
				visit(d)
				low[k] = min(low[k], low[d])
			case onStack[d]:
				low[k] = min(low[k], index[d])
			}
		}
		if low[k] != index[k] {
			return
		}
		for i := len(stack) - 1; ; i-- {
			onStack[stack[i]] = false
			if stack[i] != k {
				continue
			}
			if component := stack[i:]; len(component) > 1 {
				for _, c := range component {
					cyclic[c] = true
				}
			}
			stack = stack[:i]
			return
		}
	}
	for k := range b.nodes {
		if index[k] == 0 {
			visit(k)
		}
	}
	return cyclic
}
