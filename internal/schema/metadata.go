package schema

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
)

// subdomainGroups are the groups whose kinds, but for the exceptions, have the
// names of DNS subdomains.
var subdomainGroups = map[string]bool{"": true, "apps": true, "batch": true, "autoscaling": true, "policy": true, "networking.k8s.io": true,
	"storage.k8s.io": true, "scheduling.k8s.io": true, "admissionregistration.k8s.io": true, "apiextensions.k8s.io": true}

// nameless kinds are questions to the API server: nothing is stored.
func nameless(group string) bool {
	return group == "authentication.k8s.io" || group == "authorization.k8s.io"
}

// nameProblems says why a name does not suit the kind.
func (c *checker) nameProblems(name string) []string {
	custom := strings.Contains(c.id.group, ".") && !strings.HasSuffix(c.id.group, ".k8s.io")
	switch {
	case c.id.group == "" && (c.id.kind == "Namespace" || c.id.kind == "Service"):
		return validation.IsDNS1123Label(name)
	case c.id.kind == "IPAddress" && c.id.group == "networking.k8s.io":
		return nil
	case custom || subdomainGroups[c.id.group]:
		return validation.IsDNS1123Subdomain(name)
	}
	return content.IsPathSegmentName(name)
}

// metadata checks what every object has.
func (c *checker) metadata(obj map[string]any) {
	p := place{key: "metadata"}
	m, ok := obj["metadata"].(map[string]any)
	if !ok {
		if obj["metadata"] == nil && !nameless(c.id.group) {
			c.missing(&p, "name", "metadata.name", "")
		}
		return
	}
	name, generate := str(m, "name"), str(m, "generateName")
	switch {
	case name != "":
		if !simpleName(name) {
			if why := c.nameProblems(name); len(why) > 0 {
				c.invalid(&p, "name", "metadata.name", c.quoted("is", name, "no name for this kind: "+why[0]))
			}
		}
	case generate == "" && (m["name"] == nil || m["name"] == "") && !nameless(c.id.group):
		c.missing(&p, "name", "metadata.name", "")
	}
	if ns := str(m, "namespace"); ns != "" && !simpleName(ns) {
		if why := validation.IsDNS1123Label(ns); len(why) > 0 {
			c.invalid(&p, "namespace", "metadata.namespace", c.quoted("is", ns, "no name of a namespace: "+why[0]))
		}
	}
	c.labels(&p, m, "labels")
	if annotations := sub(m, "annotations"); len(annotations) > 0 {
		in := p.in("annotations")
		size := 0
		for k, v := range annotations {
			c.labelKey(&in, k, strings.ToLower(k))
			s, _ := v.(string)
			size += len(k) + len(s)
		}
		if size > apivalidation.TotalAnnotationSizeLimitB {
			c.invalid(&in, "", "size", fmt.Sprintf("are %d bytes in all: %d are possible", size, apivalidation.TotalAnnotationSizeLimitB))
		}
	}
}

// simpleName tells a short name of lower-case letters, digits and inner dashes:
// valid for every kind, and nearly every name is one.
func simpleName(s string) bool {
	if len(s) == 0 || len(s) > 52 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := 0; i < len(s); i++ {
		if ch := s[i]; (ch < 'a' || ch > 'z') && (ch < '0' || ch > '9') && ch != '-' {
			return false
		}
	}
	return true
}

// labels checks the keys and values of labels.
func (c *checker) labels(p *place, m map[string]any, key string) {
	l := sub(m, key)
	if len(l) == 0 {
		return
	}
	in := p.in(key)
	for k, v := range l {
		c.labelKey(&in, k, k)
		s, ok := v.(string)
		if !ok || s == "" || simpleName(s) {
			continue
		}
		if why := validation.IsValidLabelValue(s); len(why) > 0 {
			c.invalid(&in, k, "label value", c.quoted("is", s, "no value of a label: "+why[0]))
		}
	}
}

func (c *checker) labelKey(p *place, k, checked string) {
	if !simpleName(checked) && !commonKeys[checked] {
		if why := validation.IsQualifiedName(checked); len(why) > 0 {
			c.invalid(p, k, "label key", fmt.Sprintf("%s is no key: %s", short(k), why[0]))
		}
	}
}

// commonKeys need no regular expression.
var commonKeys = map[string]bool{"app.kubernetes.io/name": true, "app.kubernetes.io/instance": true, "app.kubernetes.io/version": true,
	"app.kubernetes.io/component": true, "app.kubernetes.io/part-of": true, "app.kubernetes.io/managed-by": true, "helm.sh/chart": true,
	"kustomize.toolkit.fluxcd.io/name": true, "kustomize.toolkit.fluxcd.io/namespace": true}

// selector checks a label selector.
func (c *checker) selector(p *place, m map[string]any, key string) {
	within(p, m, key, func(p *place, s map[string]any) {
		c.labels(p, s, "matchLabels")
		objects(p, s, "matchExpressions", func(p *place, e map[string]any) {
			c.enum(p, e, "operator", "In", "NotIn", "Exists", "DoesNotExist")
			values, _ := e["values"].([]any)
			switch str(e, "operator") {
			case "In", "NotIn":
				if len(values) == 0 {
					c.missing(p, "values", "matchExpressions", ", since the operator is "+str(e, "operator"))
				}
			case "Exists", "DoesNotExist":
				if len(values) > 0 {
					c.invalid(p, "values", "matchExpressions", "must be empty, since the operator is "+str(e, "operator"))
				}
			}
		})
	})
}

// matches tells whether labels match a selector; unsure means that parts of it
// are not what they should be.
func matches(selector, labels map[string]any) (match, unsure bool) {
	for k, want := range sub(selector, "matchLabels") {
		w, ok := want.(string)
		have, ok2 := labels[k].(string)
		if !ok || labels[k] != nil && !ok2 {
			return false, true
		}
		if labels[k] == nil || have != w {
			return false, false
		}
	}
	list, _ := selector["matchExpressions"].([]any)
	for _, v := range list {
		e, _ := v.(map[string]any)
		values, _ := e["values"].([]any)
		have, exists := labels[str(e, "key")]
		in := false
		for _, x := range values {
			in = in || exists && equal(x, have)
		}
		ok := true
		switch str(e, "operator") {
		case "In":
			ok = in
		case "NotIn":
			ok = !in
		case "Exists":
			ok = exists
		case "DoesNotExist":
			ok = !exists
		default:
			return false, true
		}
		if !ok {
			return false, false
		}
	}
	return true, false
}
