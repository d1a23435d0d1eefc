package ops

import "k8s.io/apimachinery/pkg/util/validation"

// approveCommand is what a person runs to approve a Bundle for a Gate, "" when
// a name is not a DNS name: such a command could not be pasted safely. --gate
// is mandatory: without it the command exits 1.
func approveCommand(namespace, bundle, gate string) string {
	if !dnsNames(namespace, bundle, gate) {
		return ""
	}
	return "hecate-mcp approve " + bundle + " --gate " + gate + " --namespace " + namespace
}

// promoteCommand is what a person runs to ask for a crossing, "" as above.
func promoteCommand(namespace, bundle, gate string) string {
	if !dnsNames(namespace, gate, bundle) {
		return ""
	}
	return "hecate-mcp promote " + gate + " --bundle " + bundle + " --namespace " + namespace
}

// dnsNames reports whether every name is one that a Kubernetes object can
// have. No character of such a name means anything to a shell, and none starts
// with a dash.
func dnsNames(names ...string) bool {
	for _, n := range names {
		if len(validation.IsDNS1123Subdomain(n)) > 0 {
			return false
		}
	}
	return true
}

// humanStep is the command with its reason, nil without a command.
func humanStep(command, why string) *HumanStep {
	if command == "" {
		return nil
	}
	return &HumanStep{Command: command, Why: why}
}
