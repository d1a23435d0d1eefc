package gitops

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
)

// What kustomize-controller makes of a variable that nothing sets and that has no
// default: since 1.9 (Flux 2.9) its feature gate StrictPostBuildSubstitutions is on
// and the Kustomization fails; before, an empty text is put there.
type strictness int

const (
	strictUnknown strictness = iota // no version of Flux is in the repository
	strictNo
	strictYes
)

// strictMinor is the minor of Flux 2, and of kustomize-controller 1, with which the
// gate went on.
const strictMinor = 9

var (
	strictGate = regexp.MustCompile(`\bStrictPostBuildSubstitutions=(true|false)\b`)
	// controllerTag is the version in an image of kustomize-controller.
	controllerTag = regexp.MustCompile(`/kustomize-controller:v?1\.(\d+)\.\d+(@|$)`)
	// distribution is the version, or the range of one minor, of a FluxInstance.
	distribution = regexp.MustCompile(`^[v=~]?2\.(\d+|x|\*)(\.(\d+|x|\*))?$`)
)

// strictIn reads the version of Flux from what a cluster has: the controller's
// Deployment, or the FluxInstance that makes it.
func (d *discovery) strictIn(cluster string) strictness {
	if s, ok := d.strict[cluster]; ok {
		return s
	}
	found := strictUnknown
	note := func(s strictness, where any) {
		if s == strictUnknown {
			return
		}
		// What a gate is set to stands in an argument, or in a patch.
		if text, err := json.Marshal(where); err == nil {
			if g := strictGate.FindSubmatch(text); g != nil {
				s = strictIf(string(g[1]) == "true")
			}
		}
		// Two that differ: what fails with one is not certain to fail.
		if found == strictUnknown || s == strictNo {
			found = s
		}
	}
	for _, r := range d.roots {
		if r.cluster == cluster {
			note(strictInstance(r.instance), r.instance)
		}
	}
	for k, n := range d.nodes {
		if k.Cluster != cluster {
			continue
		}
		for _, m := range n.manifests {
			switch {
			case m.Kind == "Deployment" && m.Name == "kustomize-controller":
				note(strictDeployment(m.object()), m.object())
			case m.Kind == "FluxInstance", m.Kind == "HelmRelease":
				spec := instanceSpec(m.Object, m.object())
				note(strictInstance(spec), spec)
			}
		}
	}
	d.strict[cluster] = found
	return found
}

func strictIf(yes bool) strictness {
	if yes {
		return strictYes
	}
	return strictNo
}

func strictDeployment(obj map[string]any) strictness {
	for _, c := range list(obj, "spec", "template", "spec", "containers") {
		if v := controllerTag.FindStringSubmatch(str(c, "image")); v != nil {
			return strictFrom(v[1])
		}
	}
	return strictUnknown
}

func strictInstance(spec any) strictness {
	v := distribution.FindStringSubmatch(strings.TrimSpace(str(spec, "distribution", "version")))
	switch {
	case v == nil:
		return strictUnknown
	case v[1] == "x" || v[1] == "*":
		return strictYes // the newest
	}
	return strictFrom(v[1])
}

func strictFrom(minor string) strictness {
	n, err := strconv.Atoi(minor)
	if err != nil {
		return strictUnknown // more digits than a version has
	}
	return strictIf(n >= strictMinor)
}
