package schema

import (
	"fmt"
	"sort"
	"strings"
)

// lifecycle is when an API version begins and ends: minors of Kubernetes 1,
// 0 when it is not said.
type lifecycle struct {
	Group       string `json:"group"`
	Version     string `json:"version"`
	Kind        string `json:"kind"`
	Introduced  int    `json:"introduced"`
	Deprecated  int    `json:"deprecated"`
	Removed     int    `json:"removed"`
	Replacement string `json:"replacement"` // "apps/v1 Deployment"
}

// older are the ends that k8s.io/api no longer tells, or that other modules own.
var older = []lifecycle{
	{"", "v1", "ComponentStatus", 0, 19, 0, ""},
	{"", "v1", "Endpoints", 0, 33, 0, "discovery.k8s.io/v1 EndpointSlice"},
	{"admissionregistration.k8s.io", "v1alpha1", "InitializerConfiguration", 7, 13, 14, ""},
	{"apiextensions.k8s.io", "v1beta1", "CustomResourceDefinition", 7, 16, 22, "apiextensions.k8s.io/v1 CustomResourceDefinition"},
	{"apiregistration.k8s.io", "v1beta1", "APIService", 7, 19, 22, "apiregistration.k8s.io/v1 APIService"},
	{"batch", "v2alpha1", "CronJob", 4, 8, 21, "batch/v1 CronJob"},
	{"extensions", "v1beta1", "PodSecurityPolicy", 3, 10, 16, ""},
	{"node.k8s.io", "v1alpha1", "RuntimeClass", 12, 20, 24, "node.k8s.io/v1 RuntimeClass"},
	{"policy", "v1beta1", "PodSecurityPolicy", 10, 21, 25, ""},
	{"rbac.authorization.k8s.io", "v1alpha1", "ClusterRole", 5, 17, 22, "rbac.authorization.k8s.io/v1 ClusterRole"},
	{"rbac.authorization.k8s.io", "v1alpha1", "ClusterRoleBinding", 5, 17, 22, "rbac.authorization.k8s.io/v1 ClusterRoleBinding"},
	{"rbac.authorization.k8s.io", "v1alpha1", "Role", 5, 17, 22, "rbac.authorization.k8s.io/v1 Role"},
	{"rbac.authorization.k8s.io", "v1alpha1", "RoleBinding", 5, 17, 22, "rbac.authorization.k8s.io/v1 RoleBinding"},
	{"scheduling.k8s.io", "v1alpha1", "PriorityClass", 8, 14, 22, "scheduling.k8s.io/v1 PriorityClass"},
	{"settings.k8s.io", "v1alpha1", "PodPreset", 6, 19, 20, ""},
}

// gvk names one kind of one API version.
type gvk struct{ group, version, kind string }

func (k gvk) apiVersion() string { return strings.TrimPrefix(k.group+"/"+k.version, "/") }
func (k gvk) String() string     { return k.apiVersion() + " " + k.kind }

// calendar answers when APIs end, for one minor.
type calendar struct {
	minor int
	by    map[gvk]lifecycle
}

func newCalendar(minor int, archived []lifecycle) calendar {
	c := calendar{minor: minor, by: map[gvk]lifecycle{}}
	for _, list := range [][]lifecycle{older, archived} {
		for _, l := range list {
			id := gvk{l.Group, l.Version, l.Kind}
			if have := c.by[id]; have.Deprecated == 0 {
				c.by[id] = l
			}
		}
	}
	return c
}

// replacement is what to write instead, "" when nothing is known. It follows
// the chain: a replacement may be gone itself.
func (c calendar) replacement(l lifecycle) string {
	r := l.Replacement
	for range 4 {
		apiVersion, kind, _ := strings.Cut(r, " ")
		// One of them names a list of the kind by mistake.
		if trimmed := strings.TrimSuffix(kind, "List"); trimmed == l.Kind {
			kind = trimmed
		}
		r = strings.TrimSpace(apiVersion + " " + kind)
		group, version := splitVersion(apiVersion)
		next, ok := c.by[gvk{group, version, kind}]
		if !ok || next.Removed == 0 || next.Removed > c.minor || next.Replacement == "" {
			break
		}
		r = next.Replacement
	}
	return r
}

func splitVersion(apiVersion string) (group, version string) {
	if i := strings.LastIndexByte(apiVersion, '/'); i >= 0 {
		return apiVersion[:i], apiVersion[i+1:]
	}
	return "", apiVersion
}

// served judges a kind that has a schema.
func (c calendar) served(id gvk) *Violation {
	l := c.by[id]
	if l.Deprecated == 0 || l.Deprecated > c.minor {
		return nil
	}
	msg := fmt.Sprintf("%s is deprecated since Kubernetes 1.%d", id, l.Deprecated)
	if l.Removed > c.minor {
		msg += fmt.Sprintf(" and not served from 1.%d on", l.Removed)
	}
	return &Violation{Code: DeprecatedAPI, Field: "/apiVersion", Rule: "lifecycle", Severity: Warn, Message: msg + instead(c.replacement(l))}
}

func instead(replacement string) string {
	if replacement == "" {
		return ""
	}
	return ": use " + replacement
}

// absent judges a kind of a built-in group that has no schema.
func (c calendar) absent(id gvk, kinds map[gvk]*builtin) Violation {
	l := c.by[id]
	if l.Removed > 0 && l.Removed <= c.minor {
		return Violation{Code: RemovedAPI, Field: "/apiVersion", Rule: "lifecycle", Severity: Fail,
			Message: fmt.Sprintf("%s is not served since Kubernetes 1.%d%s", id, l.Removed, instead(c.replacement(l)))}
	}
	v := Violation{Code: UnknownKind, Field: "/kind", Rule: "kinds", Severity: Fail}
	if l.Introduced > c.minor {
		v.Field = "/apiVersion"
		v.Message = fmt.Sprintf("%s is served from Kubernetes 1.%d on: these schemas are of 1.%d", id, l.Introduced, c.minor)
		return v
	}
	var versionsOf, kindsOf, all []string
	for k := range kinds {
		if k.kind == id.kind && k.group == id.group {
			versionsOf = append(versionsOf, k.apiVersion())
		}
		if k.group == id.group && k.version == id.version {
			kindsOf = append(kindsOf, k.kind)
		}
		if k.kind == id.kind {
			all = append(all, k.apiVersion())
		}
	}
	sort.Strings(versionsOf)
	sort.Strings(kindsOf)
	sort.Strings(all)
	switch {
	case len(versionsOf) > 0:
		v.Field = "/apiVersion"
		v.Message = fmt.Sprintf("%s is not served in %s by Kubernetes 1.%d: use %s", id.kind, short(id.apiVersion()), c.minor, names(versionsOf))
	case len(all) > 0:
		v.Field = "/apiVersion"
		v.Message = fmt.Sprintf("%s is no kind of %s: it is one of %s", id.kind, short(id.apiVersion()), names(all))
	case len(kindsOf) > 0:
		v.Message = fmt.Sprintf("%s has no kind %s that can be created", short(id.apiVersion()), short(id.kind))
		if n := nearest(id.kind, kindsOf); n != "" {
			v.Message += fmt.Sprintf("; did you mean %s?", n)
		}
		v.Message += " Valid: " + names(kindsOf)
	default:
		v.Field = "/apiVersion"
		v.Message = fmt.Sprintf("Kubernetes 1.%d has no kind %s and no API version %s", c.minor, short(id.kind), short(id.apiVersion()))
	}
	return v
}
