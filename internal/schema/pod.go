package schema

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// pod checks a pod's spec. policies are the restart policies that the workload
// lets its pods have; claims are volumes that it adds.
func (c *checker) pod(p *place, spec map[string]any, policies []string, claims map[string]bool) {
	if l, ok := spec["containers"].([]any); ok && len(l) == 0 {
		c.missing(p, "containers", "containers", ": a pod needs one")
	}
	if (spec["restartPolicy"] == nil || spec["restartPolicy"] == "") && !slices.Contains(policies, "Always") {
		c.missing(p, "restartPolicy", "restartPolicy", ": "+strings.Join(policies, " or ")+", since the default is Always")
	}
	c.enum(p, spec, "restartPolicy", policies...)
	c.enum(p, spec, "dnsPolicy", "ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
	c.enum(p, spec, "preemptionPolicy", "Never", "PreemptLowerPriority")

	volumes := make(map[string]bool, 8)
	for n := range claims {
		volumes[n] = true
	}
	objects(p, spec, "volumes", func(p *place, v map[string]any) {
		if n := str(v, "name"); n != "" {
			volumes[n] = true
			c.label(p, v, "name")
		}
		c.volume(p, v)
	})
	seen := make(map[string]bool, 8)
	for _, list := range []string{"initContainers", "containers"} {
		in := p.in(list)
		l, _ := spec[list].([]any)
		for i, v := range l {
			if k, ok := v.(map[string]any); ok {
				at := in.at(i)
				c.container(&at, k, volumes, list == "initContainers", spec["hostNetwork"] == true)
				// Repeats within one list are told by the schema.
				if n := str(k, "name"); n != "" {
					if list == "containers" && seen[n] {
						c.invalid(&at, "name", "containers", c.quoted("is", n, "the name of an init container too: each needs its own"))
					}
					if list == "initContainers" {
						seen[n] = true
					}
				}
			}
		}
	}
	objects(p, spec, "tolerations", func(p *place, t map[string]any) {
		c.enum(p, t, "operator", "Exists", "Equal", "Lt", "Gt")
		c.enum(p, t, "effect", "NoSchedule", "PreferNoSchedule", "NoExecute")
		if str(t, "operator") == "Exists" && str(t, "value") != "" {
			c.invalid(p, "value", "tolerations", "must be empty, since the operator is Exists")
		}
		if t["key"] == nil && str(t, "operator") != "Exists" {
			c.invalid(p, "operator", "tolerations", "must be Exists, since there is no key")
		}
	})
	objects(p, spec, "topologySpreadConstraints", func(p *place, t map[string]any) {
		c.enum(p, t, "whenUnsatisfiable", "DoNotSchedule", "ScheduleAnyway")
		if i, ok := integer(t["maxSkew"]); ok && i < 1 {
			c.invalid(p, "maxSkew", "minimum", "must be 1 or more")
		}
		c.selector(p, t, "labelSelector")
	})
	within(p, spec, "affinity", c.affinity)
	within(p, spec, "securityContext", func(p *place, s map[string]any) {
		c.natural(p, s, "runAsUser", "runAsGroup", "fsGroup")
		c.enum(p, s, "fsGroupChangePolicy", "OnRootMismatch", "Always")
		within(p, s, "seccompProfile", c.seccomp)
	})
}

// label notes a text that is no DNS label.
func (c *checker) label(p *place, m map[string]any, key string) {
	s := str(m, key)
	if s == "" || simpleName(s) {
		return
	}
	if why := validation.IsDNS1123Label(s); len(why) > 0 {
		c.invalid(p, key, "DNS label", c.quoted("is", s, "no valid name here: "+why[0]))
	}
}

func (c *checker) seccomp(p *place, s map[string]any) {
	c.enum(p, s, "type", "Unconfined", "RuntimeDefault", "Localhost")
}

func (c *checker) volume(p *place, v map[string]any) {
	if len(v) > 2 {
		var sources []string
		for k, x := range v {
			if _, ok := x.(map[string]any); ok && k != "name" {
				sources = append(sources, k)
			}
		}
		if slices.Sort(sources); len(sources) > 1 {
			c.invalid(p, sources[1], "oneOf", fmt.Sprintf("a volume has one source: this has %s", strings.Join(sources, ", ")))
		}
	}
	within(p, v, "hostPath", func(p *place, h map[string]any) {
		c.enum(p, h, "type", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice")
		if slices.Contains(strings.Split(str(h, "path"), "/"), "..") {
			c.invalid(p, "path", "hostPath", "must not contain '..'")
		}
	})
	within(p, v, "ephemeral", func(p *place, e map[string]any) {
		within(p, e, "volumeClaimTemplate", func(p *place, t map[string]any) { c.demand(p, t, "spec", c.claim) })
	})
	for _, key := range []string{"configMap", "secret", "projected", "downwardAPI"} {
		within(p, v, key, func(p *place, s map[string]any) {
			c.between(p, s, "defaultMode", 0, 0o777)
			objects(p, s, "items", func(p *place, i map[string]any) {
				c.between(p, i, "mode", 0, 0o777)
			})
		})
	}
}

func (c *checker) container(p *place, k map[string]any, volumes map[string]bool, isInit, hostNetwork bool) {
	if k["name"] == nil || k["name"] == "" {
		c.missing(p, "name", "required", "")
	}
	c.label(p, k, "name")
	image, isText := k["image"].(string)
	switch {
	case k["image"] == nil || isText && image == "":
		c.missing(p, "image", "image", "")
	case isText && strings.TrimSpace(image) != image:
		c.invalid(p, "image", "image", "must not begin or end with a space")
	}
	c.enum(p, k, "imagePullPolicy", "Always", "IfNotPresent", "Never")
	c.enum(p, k, "terminationMessagePolicy", "File", "FallbackToLogsOnError")

	var ports []string
	objects(p, k, "ports", func(p *place, port map[string]any) {
		c.between(p, port, "containerPort", 1, 65535)
		c.between(p, port, "hostPort", 0, 65535)
		c.enum(p, port, "protocol", "TCP", "UDP", "SCTP")
		host, ok := integer(port["hostPort"])
		own, ok2 := integer(port["containerPort"])
		if hostNetwork && ok && ok2 && host != 0 && host != own {
			c.invalid(p, "hostPort", "hostNetwork", "must be the containerPort, since the pod uses the host's network")
		}
		if n := str(port, "name"); n != "" {
			c.portName(p, port, "name")
			if slices.Contains(ports, n) {
				c.invalid(p, "name", "ports", c.quoted("is", n, "the name of another port of this container: each needs its own"))
			}
			ports = append(ports, n)
		}
	})
	objects(p, k, "env", func(p *place, e map[string]any) {
		if e["name"] == "" {
			c.missing(p, "name", "env", "")
		}
		if strings.Contains(str(e, "name"), "=") {
			c.invalid(p, "name", "env", "must not contain '='")
		}
		from, ok := e["valueFrom"].(map[string]any)
		if !ok {
			return
		}
		if str(e, "value") != "" {
			c.invalid(p, "valueFrom", "env", "is not possible beside a value")
		}
		in := p.in("valueFrom")
		if c.only(&in, from, "fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef") == 0 && len(from) == 0 {
			c.invalid(p, "valueFrom", "env", "names no source: one of fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef is wanted")
		}
	})
	for _, list := range []string{"volumeMounts", "volumeDevices"} {
		objects(p, k, list, func(p *place, m map[string]any) {
			c.enum(p, m, "mountPropagation", "None", "HostToContainer", "Bidirectional")
			if n := str(m, "name"); n != "" && !volumes[n] {
				var have []string
				for v := range volumes {
					have = append(have, v)
				}
				slices.Sort(have)
				msg := c.quoted("names", n, "no volume of the pod")
				if len(have) > 0 {
					msg += ". Valid: " + names(have)
				}
				c.invalid(p, "name", list, msg)
			}
			if m["mountPath"] == "" {
				c.missing(p, "mountPath", list, "")
			}
			if str(m, "subPath") != "" && str(m, "subPathExpr") != "" {
				c.invalid(p, "subPathExpr", list, "is not possible beside subPath")
			}
		})
	}
	within(p, k, "resources", c.resources)
	for _, probe := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
		within(p, k, probe, func(p *place, m map[string]any) {
			c.natural(p, m, "initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
			if i, ok := integer(m["successThreshold"]); ok && i > 1 && probe != "readinessProbe" {
				c.invalid(p, "successThreshold", probe, "must be 1")
			}
			c.handler(p, m)
		})
	}
	within(p, k, "lifecycle", func(p *place, l map[string]any) {
		for _, hook := range []string{"postStart", "preStop"} {
			within(p, l, hook, c.handler)
		}
	})
	if isInit && k["restartPolicy"] == nil {
		for _, key := range []string{"livenessProbe", "readinessProbe", "startupProbe", "lifecycle"} {
			if k[key] != nil {
				c.invalid(p, key, "initContainers", "is not possible in an init container that does not restart always")
			}
		}
	}
	within(p, k, "securityContext", func(p *place, s map[string]any) {
		c.natural(p, s, "runAsUser", "runAsGroup")
		if s["privileged"] == true && s["allowPrivilegeEscalation"] == false {
			c.invalid(p, "allowPrivilegeEscalation", "securityContext", "must not be false in a privileged container")
		}
		within(p, s, "seccompProfile", c.seccomp)
	})
}

// portName notes a text that can't name a port.
func (c *checker) portName(p *place, m map[string]any, key string) {
	if why := validation.IsValidPortName(str(m, key)); len(why) > 0 {
		c.invalid(p, key, "port name", c.quoted("is", m[key], "no name of a port: "+why[0]))
	}
}

// port checks a port that is a number or a name.
func (c *checker) port(p *place, m map[string]any, key string) {
	switch m[key].(type) {
	case string:
		c.portName(p, m, key)
	default:
		c.between(p, m, key, 1, 65535)
	}
}

// handler checks what a probe or a hook does.
func (c *checker) handler(p *place, m map[string]any) {
	kinds := []string{"exec", "httpGet", "tcpSocket", "grpc", "sleep"}
	if c.only(p, m, kinds...) == 0 {
		c.missing(p, "httpGet", "handler", ", or another of "+strings.Join(kinds[:4], ", "))
	}
	within(p, m, "httpGet", func(p *place, h map[string]any) {
		c.port(p, h, "port")
		c.enum(p, h, "scheme", "HTTP", "HTTPS")
	})
	within(p, m, "tcpSocket", func(p *place, h map[string]any) { c.port(p, h, "port") })
	within(p, m, "grpc", func(p *place, h map[string]any) { c.between(p, h, "port", 1, 65535) })
	within(p, m, "exec", func(p *place, h map[string]any) {
		if l, ok := h["command"].([]any); h["command"] == nil || ok && len(l) == 0 {
			c.missing(p, "command", "exec", "")
		}
	})
}

// resources checks requests against limits.
func (c *checker) resources(p *place, m map[string]any) {
	requests, limits := sub(m, "requests"), sub(m, "limits")
	for key, side := range map[string]map[string]any{"requests": requests, "limits": limits} {
		for name, v := range side {
			if q, ok := parsed(v); ok && q.Sign() < 0 {
				in := p.in(key)
				c.invalid(&in, name, "resources", "must not be negative")
			}
		}
	}
	for name, v := range requests {
		if limits[name] == nil {
			continue
		}
		request, ok := parsed(v)
		limit, ok2 := parsed(limits[name])
		if ok && ok2 && request.Cmp(limit) > 0 {
			in := p.in("requests")
			c.invalid(&in, name, "resources", fmt.Sprintf("is %s, more than the limit of %s", request.String(), limit.String()))
		}
	}
}

func (c *checker) affinity(p *place, a map[string]any) {
	term := func(p *place, t map[string]any) {
		for _, key := range []string{"matchExpressions", "matchFields"} {
			objects(p, t, key, func(p *place, e map[string]any) {
				c.enum(p, e, "operator", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
			})
		}
	}
	within(p, a, "nodeAffinity", func(p *place, n map[string]any) {
		within(p, n, "requiredDuringSchedulingIgnoredDuringExecution", func(p *place, r map[string]any) {
			objects(p, r, "nodeSelectorTerms", term)
		})
		objects(p, n, "preferredDuringSchedulingIgnoredDuringExecution", func(p *place, w map[string]any) {
			c.between(p, w, "weight", 1, 100)
			within(p, w, "preference", term)
		})
	})
	for _, key := range []string{"podAffinity", "podAntiAffinity"} {
		within(p, a, key, func(p *place, n map[string]any) {
			pods := func(p *place, t map[string]any) {
				if t["topologyKey"] == "" {
					c.missing(p, "topologyKey", key, "")
				}
				c.selector(p, t, "labelSelector")
			}
			objects(p, n, "requiredDuringSchedulingIgnoredDuringExecution", pods)
			objects(p, n, "preferredDuringSchedulingIgnoredDuringExecution", func(p *place, w map[string]any) {
				c.between(p, w, "weight", 1, 100)
				within(p, w, "podAffinityTerm", pods)
			})
		})
	}
}
