package schema

import (
	"reflect"
	"strings"
	"testing"
)

const serviceYAML = `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: http}, {name: https, port: 443, targetPort: 8443, protocol: TCP}]
`

const configYAML = `
apiVersion: v1
kind: ConfigMap
metadata: {name: config, namespace: shop}
data: {a.conf: "x=1", B_C: "2"}
`

const roleYAML = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "system:reader"}
rules: [{apiGroups: [""], resources: [pods], verbs: [get, list]}, {nonResourceURLs: [/metrics], verbs: [get]}]
`

const ingressYAML = `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: shop}
spec:
  rules:
  - host: "*.example.com"
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {name: http}}}}]}
`

const cronJobYAML = `
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: "0 3 * * 1-5"
  jobTemplate:
    spec: {template: {spec: {restartPolicy: OnFailure, containers: [{name: a, image: b}]}}}
`

const statefulYAML = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  selector: {matchExpressions: [{key: app, operator: In, values: [db, base]}]}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: a, image: b, volumeMounts: [{name: data, mountPath: /d}]}]}
  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]
`

const claimYAML = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`

const policyYAML = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: p}
spec:
  podSelector: {}
  policyTypes: [Ingress]
  ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8, except: [10.1.0.0/16]}}], ports: [{protocol: TCP, port: 80, endPort: 90}]}]
`

const autoscalerYAML = `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: h}
spec:
  minReplicas: 2
  maxReplicas: 4
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]
`

const disruptionYAML = `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: d}
spec: {minAvailable: 50%, selector: {matchLabels: {app: web}}}
`

const bindingYAML = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: b}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: ServiceAccount, name: a, namespace: shop}, {kind: Group, name: g, apiGroup: rbac.authorization.k8s.io}]
`

const webhookYAML = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: w}
webhooks: [{name: a.example.com, sideEffects: None, admissionReviewVersions: [v1], failurePolicy: Fail, clientConfig: {service: {name: a, namespace: b}}}]
`

func TestRules(t *testing.T) {
	s := newest(t)
	const path, peer, job = "/spec/rules/0/http/paths/0", "/spec/ingress/0/from/0/ipBlock", "/spec/jobTemplate/spec/template/spec"
	const invalid, missing = "InvalidValue ", "MissingField "
	for _, c := range []struct {
		doc, at string
		value   any
		want    string // "" for valid
	}{
		{serviceYAML, "/spec/type", "ClusterIP", ""},
		{serviceYAML, "/spec/type", "Loadbalancer", invalid + "/spec/type fail"},
		{serviceYAML, "/spec/ports", nil, missing + "/spec/ports fail"},
		{serviceYAML, "/spec/clusterIP", "None", ""},
		{serviceYAML, "/spec/ports/0/name", nil, missing + "/spec/ports/0/name fail"},
		{serviceYAML, "/spec/ports/1/name", "http", invalid + "/spec/ports/1/name fail"},
		{serviceYAML, "/spec/ports/1/port", 80, invalid + "/spec/ports/1 fail"},
		{serviceYAML, "/spec/ports/1/port", 0, invalid + "/spec/ports/1/port fail"},
		{serviceYAML, "/spec/ports/0/nodePort", 30000, invalid + "/spec/ports/0/nodePort fail"},
		{serviceYAML, "/spec/ports/0/protocol", "http", invalid + "/spec/ports/0/protocol fail"},
		{serviceYAML, "/spec/ports/0/targetPort", 70000, invalid + "/spec/ports/0/targetPort fail"},
		{serviceYAML, "/spec/type", "ExternalName", missing + "/spec/externalName fail"},
		{configYAML, "/data/a b", "x", invalid + "/data/a b fail"},
		{configYAML, "/data/a", 1, "WrongType /data/a fail"},
		{configYAML, "/binaryData", map[string]any{"B_C": "aGk="}, invalid + "/binaryData/B_C fail"},
		{configYAML, "/metadata/annotations", map[string]any{"a b": "x"}, invalid + "/metadata/annotations/a b fail"},
		{configYAML, "/metadata/annotations", map[string]any{"A.com/b": "x"}, ""},
		{roleYAML, "/metadata/name", "Any:Name", ""},
		{roleYAML, "/metadata/name", "a/b", invalid + "/metadata/name fail"},
		{roleYAML, "/rules/0/verbs", []any{}, missing + "/rules/0/verbs fail"},
		{roleYAML, "/rules/0/resources", nil, missing + "/rules/0/resources fail"},
		{roleYAML, "/rules/1/resources", []any{"pods"}, invalid + "/rules/1/resources fail"},
		{roleYAML, "/kind", "Role", invalid + "/rules/1/nonResourceURLs fail"},
		{ingressYAML, path + "/pathType", "Exact", ""},
		{ingressYAML, path + "/pathType", nil, missing + path + "/pathType fail"},
		{ingressYAML, path + "/pathType", "prefix", invalid + path + "/pathType fail"},
		{ingressYAML, path + "/path", "api", invalid + path + "/path fail"},
		{ingressYAML, path + "/backend/service/port", map[string]any{"number": 0}, missing + path + "/backend/service/port/number fail"},
		{ingressYAML, path + "/backend/service/port/number", 80, invalid + path + "/backend/service/port/name fail"},
		{ingressYAML, "/spec/rules/0/host", "a_b.example.com", invalid + "/spec/rules/0/host fail"},
		{ingressYAML, "/spec/rules", nil, missing + "/spec/rules fail"},
		{cronJobYAML, "/spec/suspend", false, ""},
		{cronJobYAML, "/spec/schedule", "@daily", ""},
		{cronJobYAML, "/spec/schedule", "0 3 * *", invalid + "/spec/schedule fail"},
		{cronJobYAML, "/spec/schedule", "TZ=UTC", invalid + "/spec/schedule fail"},
		{cronJobYAML, "/spec/concurrencyPolicy", "forbid", invalid + "/spec/concurrencyPolicy fail"},
		{cronJobYAML, job + "/restartPolicy", "Always", invalid + job + "/restartPolicy fail"},
		{cronJobYAML, job + "/restartPolicy", nil, missing + job + "/restartPolicy fail"},
		{cronJobYAML, "/metadata/name", strings.Repeat("a", 53), invalid + "/metadata/name fail"},
		{statefulYAML, "/spec/replicas", 3, ""},
		{statefulYAML, "/spec/template/metadata/labels/app", "other", invalid + "/spec/template/metadata/labels fail"},
		{statefulYAML, "/spec/podManagementPolicy", "parallel", invalid + "/spec/podManagementPolicy fail"},
		{statefulYAML, "/spec/volumeClaimTemplates", nil, invalid + "/spec/template/spec/containers/0/volumeMounts/0/name fail"},
		{claimYAML, "/spec/volumeMode", "Block", ""},
		{claimYAML, "/spec/resources", nil, missing + "/spec/resources/requests/storage fail"},
		{claimYAML, "/spec/accessModes/0", "RWO", invalid + "/spec/accessModes/0 fail"},
		{claimYAML, "/spec/accessModes", nil, missing + "/spec/accessModes fail"},
		{claimYAML, "/spec/resources/requests/storage", "10 GB", invalid + "/spec/resources/requests/storage fail"},
		{policyYAML, "/spec/podSelector/matchLabels", map[string]any{"a": "b"}, ""},
		{policyYAML, peer + "/cidr", "10.0.0.0", invalid + peer + "/cidr fail"},
		{policyYAML, peer + "/except/0", "192.168.0.0/16", invalid + peer + "/except/0 fail"},
		{policyYAML, "/spec/policyTypes/0", "ingress", invalid + "/spec/policyTypes/0 fail"},
		{policyYAML, "/spec/ingress/0/ports/0/endPort", 70, invalid + "/spec/ingress/0/ports/0/endPort fail"},
		{autoscalerYAML, "/spec/minReplicas", 4, ""},
		{autoscalerYAML, "/spec/minReplicas", 5, invalid + "/spec/minReplicas fail"},
		{autoscalerYAML, "/spec/metrics/0/resource", nil, missing + "/spec/metrics/0/resource fail"},
		{disruptionYAML, "/spec/unhealthyPodEvictionPolicy", "AlwaysAllow", ""},
		{disruptionYAML, "/spec/maxUnavailable", 1, invalid + "/spec/maxUnavailable fail"},
		{disruptionYAML, "/spec/minAvailable", "half", invalid + "/spec/minAvailable fail"},
		{bindingYAML, "/roleRef/kind", "ClusterRole", ""},
		{bindingYAML, "/roleRef/kind", "Role", invalid + "/roleRef/kind fail"},
		{bindingYAML, "/roleRef/name", nil, missing + "/roleRef/name fail"},
		{bindingYAML, "/subjects/0/namespace", nil, missing + "/subjects/0/namespace fail"},
		{bindingYAML, "/subjects/1/kind", "Groups", invalid + "/subjects/1/kind fail"},
		{webhookYAML, "/webhooks/0/timeoutSeconds", 30, ""},
		{webhookYAML, "/webhooks/0/sideEffects", "Some", invalid + "/webhooks/0/sideEffects fail"},
		{webhookYAML, "/webhooks/0/clientConfig/service", nil, missing + "/webhooks/0/clientConfig/service fail"},
		{deploymentYAML, "/spec/strategy", map[string]any{"type": "Recreate", "rollingUpdate": map[string]any{}}, invalid + "/spec/strategy/rollingUpdate fail"},
		{deploymentYAML, "/spec/strategy", map[string]any{"rollingUpdate": map[string]any{"maxSurge": "25"}}, invalid + "/spec/strategy/rollingUpdate/maxSurge fail"},
		{deploymentYAML, "/spec/strategy", map[string]any{"rollingUpdate": map[string]any{"maxSurge": 0, "maxUnavailable": "0%"}}, invalid + "/spec/strategy/rollingUpdate/maxUnavailable fail"},
	} {
		r := s.Validate(t.Context(), set(t, decode(t, c.doc), c.at, c.value), nil)
		want := []string{}
		if c.want != "" {
			want = append(want, c.want)
		}
		if got := found(r); !reflect.DeepEqual(got, want) {
			t.Errorf("%s = %v: got %+v, want %v", c.at, c.value, r.Violations, want)
		}
	}
}

func TestQuantity(t *testing.T) {
	for s, want := range map[string]bool{"1": true, "0.5": true, "100m": true, "1e3": true, "1E-3": true, "2Ki": true, "+1": true, "1.": true, "-1": true, "12E": true,
		"": false, "1 Gi": false, "1GB": false, "1.2.3": false, "a": false, "1e": false, "1e1e": false, "0x1": false, "1e99999999999": false} {
		if got := isQuantity(s); got != want {
			t.Errorf("%q: %v", s, got)
		}
	}
	// The API machinery would compute this power of ten.
	if _, ok := parsed("1e999999999"); ok {
		t.Error("a huge exponent is computed with")
	}
}
