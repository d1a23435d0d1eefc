package schema

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // zones are the same on every machine

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/util/validation"
)

// rules are what each kind is checked for beyond its schema. The version does
// not matter: those that remain mean the same.
var rules = map[groupKind][]rule{
	{"", "Pod"}:                                                        {pods},
	{"", "PodTemplate"}:                                                {podTemplate},
	{"", "ReplicationController"}:                                      {workload},
	{"", "Service"}:                                                    {service},
	{"", "ConfigMap"}:                                                  {keys("data", "binaryData")},
	{"", "Secret"}:                                                     {keys("data", "stringData"), secret},
	{"", "PersistentVolumeClaim"}:                                      {claim},
	{"", "PersistentVolume"}:                                           {volume},
	{"apps", "Deployment"}:                                             {workload, deployment},
	{"apps", "ReplicaSet"}:                                             {workload},
	{"apps", "DaemonSet"}:                                              {workload, updateStrategy},
	{"apps", "StatefulSet"}:                                            {workload, updateStrategy},
	{"batch", "Job"}:                                                   {job},
	{"batch", "CronJob"}:                                               {cronJob},
	{"networking.k8s.io", "Ingress"}:                                   {ingress},
	{"networking.k8s.io", "NetworkPolicy"}:                             {networkPolicy},
	{"autoscaling", "HorizontalPodAutoscaler"}:                         {autoscaler},
	{"policy", "PodDisruptionBudget"}:                                  {disruption},
	{"rbac.authorization.k8s.io", "Role"}:                              {role},
	{"rbac.authorization.k8s.io", "ClusterRole"}:                       {role},
	{"rbac.authorization.k8s.io", "RoleBinding"}:                       {binding},
	{"rbac.authorization.k8s.io", "ClusterRoleBinding"}:                {binding},
	{"storage.k8s.io", "StorageClass"}:                                 {storageClass},
	{"scheduling.k8s.io", "PriorityClass"}:                             {priorityClass},
	{"admissionregistration.k8s.io", "MutatingWebhookConfiguration"}:   {webhooks},
	{"admissionregistration.k8s.io", "ValidatingWebhookConfiguration"}: {webhooks},
}

func rulesOf(id gvk) []rule { return rules[groupKind{id.group, id.kind}] }

var (
	always     = []string{"Always"}
	finite     = []string{"OnFailure", "Never"}
	anyRestart = []string{"Always", "OnFailure", "Never"}
)

func pods(c *checker, obj map[string]any) {
	c.demand(nil, obj, "spec", func(p *place, s map[string]any) { c.pod(p, s, anyRestart, nil) })
}

func podTemplate(c *checker, obj map[string]any) {
	c.demand(nil, obj, "template", func(p *place, t map[string]any) { c.template(p, t, anyRestart, nil) })
}

// template checks a pod template.
func (c *checker) template(p *place, t map[string]any, policies []string, claims map[string]bool) {
	within(p, t, "metadata", func(p *place, m map[string]any) { c.labels(p, m, "labels") })
	c.demand(p, t, "spec", func(p *place, s map[string]any) { c.pod(p, s, policies, claims) })
}

// workload checks what runs pods for ever.
func workload(c *checker, obj map[string]any) {
	c.demand(nil, obj, "spec", func(p *place, s map[string]any) {
		c.natural(p, s, "replicas", "minReadySeconds", "revisionHistoryLimit")
		claims := map[string]bool{}
		objects(p, s, "volumeClaimTemplates", func(p *place, t map[string]any) {
			claims[str(sub(t, "metadata"), "name")] = true
			c.demand(p, t, "spec", c.claim)
		})
		c.demand(p, s, "template", func(p *place, t map[string]any) { c.template(p, t, always, claims) })
		if c.id.group != "apps" {
			return
		}
		c.selector(p, s, "selector")
		selector, ok := s["selector"].(map[string]any)
		template, ok2 := s["template"].(map[string]any)
		if !ok || !ok2 {
			return
		}
		if len(sub(selector, "matchLabels")) == 0 && selector["matchExpressions"] == nil {
			c.invalid(p, "selector", "selector", "must not be empty: it names the labels of the template")
			return
		}
		if match, unsure := matches(selector, sub(template, "metadata", "labels")); !match && !unsure {
			in := p.in("template")
			meta := in.in("metadata")
			c.invalid(&meta, "labels", "selector", "do not match spec.selector: the template's labels must hold all that the selector names")
		}
	})
}

func deployment(c *checker, obj map[string]any) {
	within(nil, obj, "spec", func(p *place, s map[string]any) {
		within(p, s, "strategy", func(p *place, st map[string]any) {
			c.enum(p, st, "type", "RollingUpdate", "Recreate")
			if str(st, "type") == "Recreate" && st["rollingUpdate"] != nil {
				c.invalid(p, "rollingUpdate", "strategy", "is not possible, since the type is Recreate")
			}
			within(p, st, "rollingUpdate", func(p *place, r map[string]any) {
				unavailable, ok := c.share(p, r, "maxUnavailable")
				surge, ok2 := c.percent(p, r, "maxSurge")
				if ok && ok2 && unavailable == 0 && surge == 0 {
					c.invalid(p, "maxUnavailable", "strategy", "must not be 0 while maxSurge is 0: no pod could be replaced")
				}
			})
		})
	})
}

func updateStrategy(c *checker, obj map[string]any) {
	within(nil, obj, "spec", func(p *place, s map[string]any) {
		c.enum(p, s, "podManagementPolicy", "OrderedReady", "Parallel")
		within(p, s, "updateStrategy", func(p *place, st map[string]any) {
			c.enum(p, st, "type", "RollingUpdate", "OnDelete")
			within(p, st, "rollingUpdate", func(p *place, r map[string]any) {
				c.natural(p, r, "partition")
				c.share(p, r, "maxUnavailable")
				c.share(p, r, "maxSurge")
			})
		})
	})
}

func job(c *checker, obj map[string]any) { c.demand(nil, obj, "spec", c.job) }

func (c *checker) job(p *place, s map[string]any) {
	c.natural(p, s, "parallelism", "completions", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished")
	c.enum(p, s, "completionMode", "NonIndexed", "Indexed")
	c.enum(p, s, "podReplacementPolicy", "TerminatingOrFailed", "Failed")
	c.demand(p, s, "template", func(p *place, t map[string]any) { c.template(p, t, finite, nil) })
}

func cronJob(c *checker, obj map[string]any) {
	if name := str(sub(obj, "metadata"), "name"); len(name) > 52 {
		meta := place{key: "metadata"}
		c.invalid(&meta, "name", "metadata.name", fmt.Sprintf("is %d characters long: 52 are possible for a CronJob", len(name)))
	}
	within(nil, obj, "spec", func(p *place, s map[string]any) {
		c.enum(p, s, "concurrencyPolicy", "Allow", "Forbid", "Replace")
		c.natural(p, s, "startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
		if schedule, ok := s["schedule"].(string); ok {
			switch {
			case schedule == "":
				c.missing(p, "schedule", "schedule", "")
			case strings.Contains(schedule, "TZ"):
				c.invalid(p, "schedule", "schedule", "must not name a time zone: put it into spec.timeZone")
			case len(schedule) > 1024:
				c.invalid(p, "schedule", "schedule", "is too long for a schedule")
			default:
				if _, err := cron.ParseStandard(schedule); err != nil {
					c.invalid(p, "schedule", "schedule", c.quoted("is", schedule, "no schedule: five fields (minute hour day month weekday) or one like @daily are wanted"))
				}
			}
		}
		if zone, ok := s["timeZone"].(string); ok {
			// What is no name of a zone at all, and what no list of zones has.
			if _, err := time.LoadLocation(zone); err != nil || zone == "" || strings.EqualFold(zone, "local") {
				c.invalid(p, "timeZone", "timeZone", c.quoted("is", zone, "no time zone: one like Etc/UTC or Europe/Paris is wanted"))
			}
		}
		within(p, s, "jobTemplate", func(p *place, t map[string]any) { c.demand(p, t, "spec", c.job) })
	})
}

func service(c *checker, obj map[string]any) {
	within(nil, obj, "spec", func(p *place, s map[string]any) {
		c.enum(p, s, "type", "ClusterIP", "NodePort", "LoadBalancer", "ExternalName")
		c.enum(p, s, "sessionAffinity", "None", "ClientIP")
		c.enum(p, s, "externalTrafficPolicy", "Cluster", "Local")
		c.enum(p, s, "internalTrafficPolicy", "Cluster", "Local")
		c.enum(p, s, "ipFamilyPolicy", "SingleStack", "PreferDualStack", "RequireDualStack")
		kind, headless := str(s, "type"), str(s, "clusterIP") == "None"
		if kind == "" {
			kind = "ClusterIP"
		}
		if kind == "ExternalName" && str(s, "externalName") == "" {
			c.missing(p, "externalName", "type", ", since the type is ExternalName")
		}
		if headless && (kind == "NodePort" || kind == "LoadBalancer") {
			c.invalid(p, "clusterIP", "type", "must not be None, since the type is "+kind)
		}
		l, _ := s["ports"].([]any)
		if len(l) == 0 && kind != "ExternalName" && !headless {
			c.missing(p, "ports", "ports", ": a service needs one")
		}
		var named, numbers []string
		objects(p, s, "ports", func(p *place, port map[string]any) {
			c.between(p, port, "port", 1, 65535)
			c.between(p, port, "nodePort", 0, 65535)
			c.enum(p, port, "protocol", "TCP", "UDP", "SCTP")
			if port["targetPort"] != nil {
				c.target(p, port)
			}
			if n, ok := integer(port["nodePort"]); ok && n != 0 && kind == "ClusterIP" {
				c.invalid(p, "nodePort", "type", "is not possible, since the type is ClusterIP")
			}
			name := str(port, "name")
			switch {
			case name == "" && len(l) > 1:
				c.missing(p, "name", "ports", ", since there are several ports")
			case name != "" && slices.Contains(named, name):
				c.invalid(p, "name", "ports", c.quoted("is", name, "the name of another port: each needs its own"))
			}
			if name != "" {
				c.label(p, port, "name")
				named = append(named, name)
			}
			protocol := str(port, "protocol")
			if protocol == "" {
				protocol = "TCP"
			}
			if n, ok := integer(port["port"]); ok {
				id := fmt.Sprintf("%d/%s", n, protocol)
				if slices.Contains(numbers, id) {
					c.invalid(p, "", "x-kubernetes-list-type", id+" is there twice: each port and protocol is possible once")
				}
				numbers = append(numbers, id)
			}
		})
	})
}

// target checks a targetPort, which may be empty or 0 for the port itself.
func (c *checker) target(p *place, port map[string]any) {
	if i, ok := integer(port["targetPort"]); ok && i == 0 || port["targetPort"] == "" {
		return
	}
	c.port(p, port, "targetPort")
}

// keys checks the keys of a ConfigMap or Secret.
func keys(fields ...string) rule {
	return func(c *checker, obj map[string]any) {
		for _, f := range fields {
			p := place{key: f}
			for k := range sub(obj, f) {
				if simpleName(k) {
					continue
				}
				if why := validation.IsConfigMapKey(k); len(why) > 0 {
					c.invalid(&p, k, "key", fmt.Sprintf("%s is no key: %s", short(k), why[0]))
				}
			}
		}
		if c.id.kind == "ConfigMap" {
			binary := sub(obj, "binaryData")
			for k := range sub(obj, "data") {
				if binary[k] != nil {
					p := place{key: "binaryData"}
					c.invalid(&p, k, "key", "is a key of data too: one of them only")
				}
			}
		}
	}
}

// demanded are the keys that a Secret of a type must have.
var demanded = map[string][]string{
	"kubernetes.io/tls":              {"tls.crt", "tls.key"},
	"kubernetes.io/dockerconfigjson": {".dockerconfigjson"},
	"kubernetes.io/dockercfg":        {".dockercfg"},
	"kubernetes.io/ssh-auth":         {"ssh-privatekey"},
}

func secret(c *checker, obj map[string]any) {
	data, plain := sub(obj, "data"), sub(obj, "stringData")
	has := func(key string) bool {
		_, inData := data[key]
		_, inPlain := plain[key]
		return inData || inPlain
	}
	p := place{key: "data"}
	kind := str(obj, "type")
	for _, key := range demanded[kind] {
		if !has(key) {
			c.missing(&p, key, "type", ", since the type is "+kind)
		}
	}
	switch kind {
	case "kubernetes.io/basic-auth":
		if !has("username") && !has("password") {
			c.missing(&p, "username", "type", " or password, since the type is "+kind)
		}
	case "kubernetes.io/service-account-token":
		const key = "kubernetes.io/service-account.name"
		if str(sub(obj, "metadata", "annotations"), key) == "" {
			meta := place{key: "metadata"}
			in := meta.in("annotations")
			c.missing(&in, key, "type", ", since the type is "+kind)
		}
	}
}

var accessModes = []string{"ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"}

func (c *checker) modes(p *place, s map[string]any) {
	l, ok := s["accessModes"].([]any)
	if s["accessModes"] == nil || ok && len(l) == 0 {
		c.missing(p, "accessModes", "accessModes", ": one of "+strings.Join(accessModes, ", "))
	}
	in := p.in("accessModes")
	for i, v := range l {
		if m, ok := v.(string); ok && !slices.Contains(accessModes, m) {
			at := in.at(i)
			c.invalid(&at, "", "enum", c.quoted("is", m, "none of the possible values. Valid: "+strings.Join(accessModes, ", ")))
		}
	}
}

func claim(c *checker, obj map[string]any) { c.demand(nil, obj, "spec", c.claim) }

func (c *checker) claim(p *place, s map[string]any) {
	c.modes(p, s)
	c.enum(p, s, "volumeMode", "Filesystem", "Block")
	c.selector(p, s, "selector")
	in := p.in("resources")
	requests := in.in("requests")
	storage := sub(s, "resources", "requests")["storage"]
	if storage == nil {
		c.missing(&requests, "storage", "resources", "")
	} else if q, ok := parsed(storage); ok && q.Sign() <= 0 {
		c.invalid(&requests, "storage", "resources", "must be more than 0")
	}
}

func volume(c *checker, obj map[string]any) {
	within(nil, obj, "spec", func(p *place, s map[string]any) {
		c.modes(p, s)
		c.enum(p, s, "volumeMode", "Filesystem", "Block")
		c.enum(p, s, "persistentVolumeReclaimPolicy", "Retain", "Recycle", "Delete")
		in := p.in("capacity")
		if sub(s, "capacity")["storage"] == nil {
			c.missing(&in, "storage", "capacity", "")
		}
	})
}

func ingress(c *checker, obj map[string]any) {
	within(nil, obj, "spec", func(p *place, s map[string]any) {
		l, _ := s["rules"].([]any)
		if len(l) == 0 && s["defaultBackend"] == nil {
			c.missing(p, "rules", "rules", ", or a defaultBackend")
		}
		within(p, s, "defaultBackend", c.backend)
		objects(p, s, "rules", func(p *place, r map[string]any) {
			if host := str(r, "host"); host != "" && !simpleName(host) {
				why := validation.IsDNS1123Subdomain(host)
				if strings.Contains(host, "*") {
					why = validation.IsWildcardDNS1123Subdomain(host)
				}
				if len(why) > 0 {
					c.invalid(p, "host", "host", c.quoted("is", host, "no host: "+why[0]))
				}
			}
			within(p, r, "http", func(p *place, h map[string]any) {
				if l, ok := h["paths"].([]any); ok && len(l) == 0 {
					c.missing(p, "paths", "paths", ": one at least")
				}
				objects(p, h, "paths", func(p *place, path map[string]any) {
					c.enum(p, path, "pathType", "Exact", "Prefix", "ImplementationSpecific")
					value, isText := path["path"].(string)
					free := value == "" && str(path, "pathType") == "ImplementationSpecific"
					if (isText || path["path"] == nil) && !free && !strings.HasPrefix(value, "/") {
						c.invalid(p, "path", "path", "must begin with '/'")
					}
					within(p, path, "backend", c.backend)
				})
			})
		})
	})
}

func (c *checker) backend(p *place, b map[string]any) {
	if c.only(p, b, "service", "resource") == 0 {
		c.missing(p, "service", "backend", "")
	}
	within(p, b, "service", func(p *place, s map[string]any) {
		port := sub(s, "port")
		name, number := str(port, "name"), port["number"]
		if n, ok := integer(number); ok && n == 0 {
			number = nil
		}
		in := p.in("port")
		switch {
		case name == "" && number == nil && (s["port"] == nil || port != nil):
			c.missing(&in, "number", "backend", ", or the name of a port")
		case name != "" && number != nil:
			c.invalid(&in, "name", "backend", "is not possible beside a number")
		case name != "":
			c.portName(&in, port, "name")
		default:
			c.between(&in, port, "number", 1, 65535)
		}
	})
}

func networkPolicy(c *checker, obj map[string]any) {
	within(nil, obj, "spec", func(p *place, s map[string]any) {
		c.selector(p, s, "podSelector")
		in := p.in("policyTypes")
		l, _ := s["policyTypes"].([]any)
		for i, v := range l {
			if t, ok := v.(string); ok && t != "Ingress" && t != "Egress" {
				at := in.at(i)
				c.invalid(&at, "", "enum", c.quoted("is", t, "none of the possible values. Valid: Ingress, Egress"))
			}
		}
		for direction, peers := range map[string]string{"ingress": "from", "egress": "to"} {
			objects(p, s, direction, func(p *place, r map[string]any) {
				objects(p, r, "ports", func(p *place, port map[string]any) {
					c.enum(p, port, "protocol", "TCP", "UDP", "SCTP")
					if port["port"] != nil {
						c.port(p, port, "port")
					}
					first, ok := integer(port["port"])
					last, ok2 := integer(port["endPort"])
					if port["endPort"] != nil && !ok || ok && ok2 && last < first {
						c.invalid(p, "endPort", "ports", "needs a port that is a number and not larger")
					}
				})
				objects(p, r, peers, func(p *place, peer map[string]any) {
					c.selector(p, peer, "podSelector")
					c.selector(p, peer, "namespaceSelector")
					within(p, peer, "ipBlock", c.block)
				})
			})
		}
	})
}

func (c *checker) block(p *place, b map[string]any) {
	cidr := str(b, "cidr")
	_, outer, err := net.ParseCIDR(cidr)
	if err != nil {
		if _, ok := b["cidr"].(string); ok {
			c.invalid(p, "cidr", "cidr", c.quoted("is", cidr, "no network: one like 10.0.0.0/8 is wanted"))
		}
		return
	}
	in := p.in("except")
	l, _ := b["except"].([]any)
	for i, v := range l {
		e, ok := v.(string)
		if !ok {
			continue
		}
		at := in.at(i)
		ip, _, err := net.ParseCIDR(e)
		if err != nil {
			c.invalid(&at, "", "cidr", c.quoted("is", e, "no network: one like 10.1.0.0/16 is wanted"))
		} else if !outer.Contains(ip) {
			c.invalid(&at, "", "cidr", "must lie within "+cidr)
		}
	}
}

func autoscaler(c *checker, obj map[string]any) {
	within(nil, obj, "spec", func(p *place, s map[string]any) {
		highest, ok := integer(s["maxReplicas"])
		if ok && highest < 1 {
			c.invalid(p, "maxReplicas", "minimum", "must be 1 or more")
		}
		c.natural(p, s, "minReplicas")
		if lowest, ok2 := integer(s["minReplicas"]); ok && ok2 && lowest > highest {
			c.invalid(p, "minReplicas", "range", fmt.Sprintf("is %d, more than maxReplicas, which is %d", lowest, highest))
		}
		kinds := map[string]string{"Object": "object", "Pods": "pods", "Resource": "resource", "External": "external", "ContainerResource": "containerResource"}
		objects(p, s, "metrics", func(p *place, m map[string]any) {
			c.enum(p, m, "type", "ContainerResource", "External", "Object", "Pods", "Resource")
			if key := kinds[str(m, "type")]; key != "" && m[key] == nil {
				c.missing(p, key, "metrics", ", since the type is "+str(m, "type"))
			}
			for _, key := range kinds {
				within(p, m, key, func(p *place, m map[string]any) {
					within(p, m, "target", func(p *place, t map[string]any) {
						c.enum(p, t, "type", "Utilization", "Value", "AverageValue")
						if i, ok := integer(t["averageUtilization"]); ok && i < 1 {
							c.invalid(p, "averageUtilization", "minimum", "must be 1 or more")
						}
					})
				})
			}
		})
	})
}

func disruption(c *checker, obj map[string]any) {
	within(nil, obj, "spec", func(p *place, s map[string]any) {
		c.only(p, s, "minAvailable", "maxUnavailable")
		c.share(p, s, "minAvailable")
		c.share(p, s, "maxUnavailable")
		c.selector(p, s, "selector")
		c.enum(p, s, "unhealthyPodEvictionPolicy", "IfHealthyBudget", "AlwaysAllow")
	})
}

func role(c *checker, obj map[string]any) {
	empty := func(m map[string]any, key string) bool {
		l, ok := m[key].([]any)
		return m[key] == nil || ok && len(l) == 0
	}
	objects(nil, obj, "rules", func(p *place, r map[string]any) {
		if empty(r, "verbs") {
			c.missing(p, "verbs", "rules", "")
		}
		if !empty(r, "nonResourceURLs") {
			if c.namespaced {
				c.invalid(p, "nonResourceURLs", "rules", "is possible in a ClusterRole only")
			}
			for _, key := range []string{"apiGroups", "resources", "resourceNames"} {
				if !empty(r, key) {
					c.invalid(p, key, "rules", "is not possible beside nonResourceURLs")
				}
			}
			return
		}
		for _, key := range []string{"apiGroups", "resources"} {
			if empty(r, key) {
				c.missing(p, key, "rules", ": one at least")
			}
		}
	})
	within(nil, obj, "aggregationRule", func(p *place, a map[string]any) {
		if empty(a, "clusterRoleSelectors") {
			c.missing(p, "clusterRoleSelectors", "aggregationRule", ": one at least")
		}
	})
}

const rbac = "rbac.authorization.k8s.io"

func binding(c *checker, obj map[string]any) {
	within(nil, obj, "roleRef", func(p *place, r map[string]any) {
		if r["name"] == "" {
			c.missing(p, "name", "roleRef", "")
		}
		c.enum(p, r, "apiGroup", rbac)
		if c.namespaced {
			c.enum(p, r, "kind", "Role", "ClusterRole")
		} else {
			c.enum(p, r, "kind", "ClusterRole")
		}
	})
	objects(nil, obj, "subjects", func(p *place, s map[string]any) {
		c.enum(p, s, "kind", "ServiceAccount", "User", "Group")
		if s["name"] == "" {
			c.missing(p, "name", "subjects", "")
		}
		switch str(s, "kind") {
		case "ServiceAccount":
			if str(s, "apiGroup") != "" {
				c.invalid(p, "apiGroup", "subjects", "must be empty, since the kind is ServiceAccount")
			}
			if !c.namespaced && s["namespace"] == nil {
				c.missing(p, "namespace", "subjects", ", since the kind is ServiceAccount")
			}
		case "User", "Group":
			c.enum(p, s, "apiGroup", rbac)
		}
	})
}

func storageClass(c *checker, obj map[string]any) {
	c.enum(nil, obj, "reclaimPolicy", "Delete", "Retain")
	c.enum(nil, obj, "volumeBindingMode", "Immediate", "WaitForFirstConsumer")
}

func priorityClass(c *checker, obj map[string]any) {
	const highest = 1000000000
	c.enum(nil, obj, "preemptionPolicy", "Never", "PreemptLowerPriority")
	if i, ok := integer(obj["value"]); ok && i > highest && !strings.HasPrefix(str(sub(obj, "metadata"), "name"), "system-") {
		c.invalid(nil, "value", "maximum", fmt.Sprintf("is %d: %d is the highest that is not the system's own", i, highest))
	}
}

func webhooks(c *checker, obj map[string]any) {
	objects(nil, obj, "webhooks", func(p *place, w map[string]any) {
		c.enum(p, w, "failurePolicy", "Fail", "Ignore")
		c.enum(p, w, "matchPolicy", "Exact", "Equivalent")
		c.enum(p, w, "sideEffects", "None", "NoneOnDryRun")
		c.enum(p, w, "reinvocationPolicy", "Never", "IfNeeded")
		c.between(p, w, "timeoutSeconds", 1, 30)
		c.selector(p, w, "namespaceSelector")
		c.selector(p, w, "objectSelector")
		if l, ok := w["admissionReviewVersions"].([]any); ok && len(l) == 0 {
			c.missing(p, "admissionReviewVersions", "webhooks", ": one at least")
		}
		within(p, w, "clientConfig", func(p *place, k map[string]any) {
			if c.only(p, k, "url", "service") == 0 {
				c.missing(p, "service", "clientConfig", ", or an url")
			}
		})
	})
}
