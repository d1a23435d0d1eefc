package estate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

// Size is how many objects an estate has over all its namespaces.
type Size struct{ Gates, Bundles, Passages int }

// Stages is how many Gates stand behind each other in a pipeline, the first
// one automatic, the others after the one before.
const Stages = 5

// beaconName is the name of a pipeline's one Beacon.
func beaconName(pipeline int) string { return fmt.Sprintf("app-%03d", pipeline) }

// GateName is the name of a pipeline's Gate; stage counts from 0.
func GateName(pipeline, stage int) string {
	return fmt.Sprintf("%s-%s", beaconName(pipeline), []string{"dev", "test", "staging", "canary", "production"}[stage])
}

// Objects makes an estate in the namespaces, pipeline by pipeline. Everything
// happened within the day before now, one Bundle of a pipeline after the other.
func Objects(size Size, namespaces []string, now time.Time) []client.Object {
	b := builder{now: now}
	pipelines := (size.Gates + Stages - 1) / Stages
	for p := range pipelines {
		b.pipeline(p, namespaces[p%len(namespaces)], share(size.Gates, p, pipelines), share(size.Bundles, p, pipelines), share(size.Passages, p, pipelines))
	}
	return b.objects
}

// share is part i of n that total falls into.
func share(total, i, n int) int { return total*(i+1)/n - total*i/n }

type builder struct {
	now     time.Time
	objects []client.Object
}

func (b *builder) add(o client.Object, kind string) {
	o.GetObjectKind().SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	b.objects = append(b.objects, o)
}

// pipeline makes one Beacon with its Bundles and the Gates that they cross. The
// pipeline's number decides what state it is in.
func (b *builder) pipeline(n int, namespace string, gates, bundles, passages int) {
	beacon := beaconName(n)
	b.add(&v1alpha1.Beacon{
		ObjectMeta: meta(namespace, beacon, b.now.Add(-48*time.Hour)),
		Spec:       v1alpha1.BeaconSpec{Watch: []v1alpha1.WatchSource{{Image: &v1alpha1.ImageSource{Repo: "registry.example.com/acme/" + beacon}}}},
		Status: v1alpha1.BeaconStatus{ObservedGeneration: 1, LastPolled: at(b.now.Add(-time.Minute)), LatestBundle: bundleName(n, bundles-1),
			Conditions: []metav1.Condition{condition("Discovered", b.now)}},
	}, v1alpha1.KindBeacon)

	// The newest Bundle is behind the pipeline's stage; older ones are through.
	reached := func(bundle int) int {
		if bundle < bundles-2 {
			return gates
		}
		return min(gates, n%(Stages+1))
	}
	step := 20 * time.Hour / time.Duration(max(bundles, 1))
	emitted := func(bundle int) time.Time {
		return b.now.Add(-22 * time.Hour).Add(time.Duration(bundle) * step)
	}
	entered := func(bundle, stage int) metav1.Time {
		return *at(emitted(bundle).Add(time.Duration(stage+1) * time.Minute))
	}

	for i := range bundles {
		name := bundleName(n, i)
		var status v1alpha1.BundleStatus
		for s := range reached(i) {
			status.Cleared = append(status.Cleared, v1alpha1.BundleMark{Gate: GateName(n, s), At: entered(i, s), Passage: passageName(n, s, i), Actor: "someone@example.com"})
		}
		spec := v1alpha1.BundleSpec{Beacon: beacon, Artifacts: []v1alpha1.Artifact{{Image: &v1alpha1.ImageArtifact{
			Repo: "registry.example.com/acme/" + beacon, Tag: fmt.Sprintf("1.%d.0", i), Digest: "sha256:" + hash(name)}}}}
		spec.Digest = hash(name + "/content")
		meta := meta(namespace, name, emitted(i))
		meta.Labels = map[string]string{v1alpha1.LabelBeacon: beacon}
		b.add(&v1alpha1.Bundle{ObjectMeta: meta, Spec: spec, Status: status}, v1alpha1.KindBundle)
	}

	for s := range gates {
		g := &v1alpha1.Gate{
			ObjectMeta: meta(namespace, GateName(n, s), b.now.Add(-48*time.Hour)),
			Spec: v1alpha1.GateSpec{
				Admits:  []v1alpha1.Admission{{From: v1alpha1.AdmissionSource{Beacon: beacon}, RequireApproval: s == Stages-1}},
				Passage: &v1alpha1.PassageTemplate{Steps: steps()}, Auto: s == 0,
				// One pipeline in seven is suspended half way.
				Suspend: n%7 == 3 && s == 2,
			},
			Status: v1alpha1.GateStatus{ObservedGeneration: 1, Conditions: []metav1.Condition{condition(v1alpha1.GateReasonIdle, b.now)},
				Health: &v1alpha1.Health{Status: v1alpha1.HealthHealthy, ObservedAt: at(b.now), Since: at(b.now.Add(-20 * time.Hour))}},
		}
		if s > 0 {
			g.Spec.Admits[0].After = []string{GateName(n, s-1)}
		}
		if n%4 == 1 {
			g.Spec.Windows = []v1alpha1.Window{{Schedule: "0 8 * * 1-5", Duration: metav1.Duration{Duration: 9 * time.Hour}, TimeZone: "Europe/Berlin"}}
		}
		// Newest first, at most ten.
		for i := bundles - 1; i >= 0 && len(g.Status.History) < 10; i-- {
			if reached(i) > s {
				g.Status.History = append(g.Status.History, v1alpha1.GateEntry{Bundle: bundleName(n, i), EnteredAt: entered(i, s), Passage: passageName(n, s, i), Actor: "someone@example.com"})
			}
		}
		if len(g.Status.History) > 0 {
			g.Status.Current = &g.Status.History[0]
		}
		b.add(g, v1alpha1.KindGate)
	}

	// Passages of the newest Bundles first: those are the ones that are kept.
	for made, i := 0, bundles-1; i >= 0 && made < passages; i-- {
		for s := 0; s < gates && made < passages; s++ {
			phase := v1alpha1.PassageSucceeded
			if reached(i) <= s {
				// What stopped the newest Bundles, if anything did.
				if n%3 == 2 || s > reached(i) || i < bundles-1 {
					break
				}
				phase = []v1alpha1.PassagePhase{v1alpha1.PassageFailed, v1alpha1.PassageRunning}[n%3]
			}
			made++
			p := &v1alpha1.Passage{ObjectMeta: meta(namespace, passageName(n, s, i), entered(i, s).Add(-time.Minute)),
				Spec: v1alpha1.PassageSpec{Gate: GateName(n, s), Bundle: bundleName(n, i), Actor: "someone@example.com", Steps: steps()}}
			p.Labels = map[string]string{v1alpha1.LabelGate: p.Spec.Gate, v1alpha1.LabelBundle: p.Spec.Bundle}
			p.Status = passageStatus(phase, entered(i, s))
			b.add(p, v1alpha1.KindPassage)
		}
	}
}

func passageStatus(phase v1alpha1.PassagePhase, end metav1.Time) *v1alpha1.PassageStatus {
	begin := at(end.Add(-time.Minute))
	st := &v1alpha1.PassageStatus{Phase: phase, ObservedGeneration: 1, StartedAt: begin}
	for _, s := range steps() {
		st.Steps = append(st.Steps, v1alpha1.StepStatus{Uses: s.Uses, Phase: v1alpha1.StepSucceeded, StartedAt: begin, FinishedAt: &end, Attempts: 1,
			Output: &apiextensionsv1.JSON{Raw: []byte(`{"commit":"` + hash(s.Uses)[:40] + `","branch":"main"}`)}})
	}
	last := &st.Steps[len(st.Steps)-1]
	switch phase {
	case v1alpha1.PassageRunning:
		st.CurrentStep, last.Phase, last.FinishedAt = int32(len(st.Steps)-1), v1alpha1.StepRunning, nil
		return st
	case v1alpha1.PassageFailed:
		last.Phase, last.Reason, last.Message = v1alpha1.StepFailed, "HTTPStatus", "the hook answered 503 Service Unavailable"
		st.CurrentStep, st.Message = int32(len(st.Steps)-1), last.Message
	}
	st.FinishedAt = &end
	return st
}

func steps() []v1alpha1.Step {
	return []v1alpha1.Step{
		{Uses: "git-clone", As: "clone", With: &apiextensionsv1.JSON{Raw: []byte(`{"repo":"https://git.example.com/acme/fleet.git","branch":"main"}`)}},
		{Uses: "yaml-update", As: "edit", With: &apiextensionsv1.JSON{Raw: []byte(`{"path":"apps/app/kustomization.yaml","updates":[{"key":"images.0.newTag","value":"${{ bundle.image.tag }}"}]}`)}},
		{Uses: "http", As: "tell", With: &apiextensionsv1.JSON{Raw: []byte(`{"url":"http://hooks.example.com/deploy","method":"POST"}`)}},
	}
}

func meta(namespace, name string, created time.Time) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: *at(created), Generation: 1}
}

func condition(reason string, now time.Time) metav1.Condition {
	return metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: reason, ObservedGeneration: 1, LastTransitionTime: *at(now.Add(-20 * time.Hour))}
}

func bundleName(pipeline, i int) string {
	name := beaconName(pipeline)
	return name + "-" + hash(fmt.Sprint(name, i))[:12]
}

func passageName(pipeline, stage, bundle int) string {
	name := GateName(pipeline, stage)
	return name + "-" + hash(fmt.Sprint(name, bundle))[:8]
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// at is a time as the API stores it: to the second.
func at(t time.Time) *metav1.Time { return &metav1.Time{Time: t.UTC().Truncate(time.Second)} }
