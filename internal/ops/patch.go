package ops

import "strings"

// patchCommand is the kubectl merge patch of one object, "" when a name is not
// a DNS name. The patch is a constant of this package and has no quote.
func patchCommand(resource, namespace, name, patch string) string {
	if !dnsNames(namespace, name) {
		return ""
	}
	return "kubectl patch " + resource + " " + name + " --namespace " + namespace + " --type merge --patch '" + patch + "'"
}

// fluxResource is the full resource name of a Flux kind for kubectl, "" for a
// kind whose spec.suspend nobody defines.
func fluxResource(o Object) string {
	group, _, ok := strings.Cut(o.APIVersion, "/")
	if _, known := fluxVersions[o.Kind]; !ok || !known {
		return ""
	}
	plural := strings.ToLower(o.Kind) + "s"
	if strings.HasSuffix(plural, "ys") {
		plural = strings.TrimSuffix(plural, "ys") + "ies"
	}
	return plural + "." + group
}
