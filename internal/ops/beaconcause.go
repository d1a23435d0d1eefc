package ops

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

// beaconCause is why a Beacon gives a Gate nothing.
type beaconCause struct {
	code   string
	object Object
	detail string
	since  *metav1.Time
	// change says that waiting does not help.
	change bool
}

// beaconCauses says, for each admitted Beacon in the Gate's order, why no
// Bundle comes from it.
func (v *view) beaconCauses() []beaconCause {
	var out []beaconCause
	seen := map[string]bool{}
	for _, a := range v.g.Spec.Admits {
		name := a.From.Beacon
		if seen[name] {
			continue
		}
		seen[name] = true
		out = append(out, v.beaconCause(name))
	}
	return out
}

func (v *view) beaconCause(name string) beaconCause {
	c := beaconCause{object: hecate(v1alpha1.KindBeacon, v.g.Namespace, name)}
	b := v.e.beacons[key{Namespace: v.g.Namespace, Name: name}]
	if b == nil {
		if v.e.unread(v1alpha1.KindBeacon, v.g.Namespace) {
			c.code = ReasonBeaconUnread
			c.detail = "Beacon " + name + " could not be read"
			return c
		}
		c.code, c.change = ReasonBeaconMissing, true
		c.detail = fmt.Sprintf("Beacon %s does not exist%s", name, didYouMean(name, v.e.beaconNames(v.g.Namespace)))
		return c
	}
	ready := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case b.Spec.Suspend:
		c.code, c.change = ReasonBeaconSuspended, true
		c.detail = "Beacon " + name + " is suspended"
		if ready != nil && ready.Reason == "Suspended" {
			c.since = &ready.LastTransitionTime
		}
	case ready != nil && ready.Status == metav1.ConditionFalse && ready.Reason != "Suspended":
		c.code, c.change, c.since = ReasonBeaconFailing, true, &ready.LastTransitionTime
		c.detail = fmt.Sprintf("Beacon %s fails with %s: %s", name, ready.Reason, cleanCause(ready.Message, 250))
	case b.Status.LastPolled == nil && ready == nil:
		c.code = ReasonBeaconNotPolled
		c.detail = fmt.Sprintf("Beacon %s has not polled yet (created %s ago)", name, span(v.e.now.Sub(b.CreationTimestamp.Time)))
		c.change = v.e.older(b.CreationTimestamp.Time, max(lag, interval(b)))
	case b.Spec.Emit == v1alpha1.EmitManual:
		c.code, c.since = ReasonBeaconManual, b.Status.LastPolled
		c.detail = fmt.Sprintf("Beacon %s only discovers (emit: Manual): somebody has to emit; it has discovered %s", name, plural(len(b.Status.Discovered), "artifact"))
	default:
		c.code, c.since = ReasonBeaconEmpty, b.Status.LastPolled
		c.detail = "Beacon " + name + " polled and has emitted no Bundle that still exists"
	}
	return c
}

// interval is how often a Beacon polls; five minutes is the field's default.
func interval(b *v1alpha1.Beacon) time.Duration {
	if b.Spec.Interval == nil {
		return 5 * time.Minute
	}
	return b.Spec.Interval.Duration
}

func (e *estate) beaconNames(namespace string) []string {
	var out []string
	for k := range e.beacons {
		if k.Namespace == namespace {
			out = append(out, k.Name)
		}
	}
	return out
}
