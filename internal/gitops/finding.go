package gitops

// Meaning is one code and what it means: the source of the schemas' enums and of
// the catalogue of codes.
type Meaning[C ~string] struct {
	Code    C
	Meaning string
}

// Severity is how much a finding weighs: fail (Kubernetes or Flux will refuse
// it), warn (likely a mistake, or can't be decided here), pass (information).
type Severity string

// The severities.
const (
	SeverityPass Severity = "pass"
	SeverityWarn Severity = "warn"
	SeverityFail Severity = "fail"
)

// Severities are all severities, the lightest first.
var Severities = []Meaning[Severity]{
	{SeverityPass, "information: nothing wrong"},
	{SeverityWarn, "likely a mistake, or it can't be decided from the repository alone"},
	{SeverityFail, "Kubernetes or Flux will refuse it"},
}

// weight orders severities, heaviest last.
func (s Severity) weight() int {
	switch s {
	case SeverityFail:
		return 2
	case SeverityWarn:
		return 1
	}
	return 0
}

// CompareSeverity orders severities, the heaviest last.
func CompareSeverity(a, b Severity) int { return a.weight() - b.weight() }

// Code says what a finding is about. Codes are stable.
type Code string

// The codes of findings.
const (
	DependsOnCycle     Code = "DependsOnCycle"
	DanglingDependency Code = "DanglingDependency"
	DuplicateOwner     Code = "DuplicateOwner"
	PathNotFound       Code = "PathNotFound"
	SourceNotFound     Code = "SourceNotFound"
	RenderFailed       Code = "RenderFailed"
	RemoteReference    Code = "RemoteReference"
	UnresolvedVariable Code = "UnresolvedVariable"
	UnknownField       Code = "UnknownField"
	MissingField       Code = "MissingField"
	WrongType          Code = "WrongType"
	InvalidValue       Code = "InvalidValue"
	UnknownKind        Code = "UnknownKind"
	RemovedAPI         Code = "RemovedAPI"
	DeprecatedAPI      Code = "DeprecatedAPI"
	CELRuleFailed      Code = "CELRuleFailed"
	DuplicateKey       Code = "DuplicateKey"
	InvalidYAML        Code = "InvalidYAML"
	Unverifiable       Code = "Unverifiable"
	NotExpanded        Code = "NotExpanded"
	Unreferenced       Code = "Unreferenced"
	ConfigChanged      Code = "ConfigChanged"
	ServerRefused      Code = "ServerRefused"
)

// FindingCodes are all codes of findings and what they mean.
var FindingCodes = []Meaning[Code]{
	{DependsOnCycle, "Kustomizations wait for each other: Flux never applies them, and others of their source follow a new revision only at their interval; cycle names them in order"},
	{DanglingDependency, "dependsOn names a Kustomization that this cluster does not have"},
	{DuplicateOwner, "two Kustomizations of one cluster render the same object: they overwrite each other"},
	{PathNotFound, "spec.path is not in the source's artifact"},
	{SourceNotFound, "sourceRef names a source that is declared nowhere in the repository"},
	{RenderFailed, "the build fails, so Flux applies nothing of this Kustomization"},
	{RemoteReference, "an entry points outside the repository: left out here, nothing was fetched"},
	{UnresolvedVariable, "a variable's value is not in the repository; values that hold it are not judged"},
	{UnknownField, "no such field in the schema: of a built-in kind it is dropped without a word, with it a custom kind is refused"},
	{MissingField, "a required field is missing"},
	{WrongType, "the value has another type than the schema wants"},
	{InvalidValue, "the value breaks a rule of the schema or of the API server"},
	{UnknownKind, "a built-in API group has no such kind or version"},
	{RemovedAPI, "the API version was removed from this Kubernetes version"},
	{DeprecatedAPI, "the API version is deprecated"},
	{CELRuleFailed, "a validation rule (CEL) of the CRD says no"},
	{DuplicateKey, "a YAML mapping has a key twice"},
	{InvalidYAML, "a file is no valid YAML"},
	{Unverifiable, "a finding on a value that is not known here (variable, encrypted, remote): no failure"},
	{NotExpanded, "a chart or ResourceSet creates further objects that are not looked at"},
	{Unreferenced, "a Kustomization's file that no other Kustomization renders"},
	{ConfigChanged, "the change edits .hecate-mcp.yaml; it was judged with the base's"},
	{ServerRefused, "the API server's dry run refuses the object"},
}

// Source is the authority behind a finding.
type Source string

// The authorities.
const (
	SourceGraph      Source = "graph"
	SourceRender     Source = "render"
	SourceCore       Source = "core-schema"
	SourceCRD        Source = "crd"
	SourceCRDCatalog Source = "crd-catalog"
	SourceCluster    Source = "cluster"
)

// Sources are the authorities and what their word is worth.
var Sources = []Meaning[Source]{
	{SourceGraph, "dependsOn, paths and sources of the discovered graph"},
	{SourceRender, "the build as kustomize-controller does it"},
	{SourceCore, "schemas of the built-in kinds: what the API server refuses"},
	{SourceCRD, "the CRD in the same cluster, else Flux's own: what the API server refuses"},
	{SourceCRDCatalog, "a folder of schemas that the user named: advisory"},
	{SourceCluster, "server-side dry run"},
}

// Object names a Kubernetes object.
type Object struct {
	APIVersion string `json:"apiVersion,omitempty" jsonschema_description:"group/version"`
	Kind       string `json:"kind" jsonschema_description:"kind of the object"`
	Namespace  string `json:"namespace,omitempty" jsonschema_description:"namespace of the object"`
	Name       string `json:"name,omitempty" jsonschema_description:"name of the object"`
}

// String is Kind namespace/name.
func (o Object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// Finding is one piece of evidence, once, with every Kustomization it concerns.
type Finding struct {
	Code           Code               `json:"code" jsonschema_description:"what it is about"`
	Severity       Severity           `json:"severity" jsonschema_description:"how much it weighs"`
	Source         Source             `json:"source" jsonschema_description:"authority"`
	Message        string             `json:"message" jsonschema_description:"what is wrong and what would be right"`
	Kustomizations []KustomizationKey `json:"kustomizations,omitempty" jsonschema_description:"whom it concerns"`
	Object         *Object            `json:"object,omitempty" jsonschema_description:"the object"`
	Field          string             `json:"field,omitempty" jsonschema_description:"JSON pointer in the rendered object"`
	Rule           string             `json:"rule,omitempty" jsonschema_description:"the rule"`
	File           string             `json:"file,omitempty" jsonschema_description:"where to edit"`
	Line           int                `json:"line,omitempty" jsonschema_description:"line in file"`
	Schema         string             `json:"schema,omitempty" jsonschema_description:"schema that was asked"`
	Raw            string             `json:"raw,omitempty" jsonschema_description:"the validator's own words"`
	Cycle          []KustomizationKey `json:"cycle,omitempty" jsonschema_description:"DependsOnCycle: in order"`
}

// Verdict is what all findings of one Kustomization come to.
type Verdict struct {
	KustomizationKey
	Status   Severity `json:"status" jsonschema_description:"worst finding"`
	State    State    `json:"state" jsonschema_description:"state of the node"`
	Objects  int      `json:"objects" jsonschema_description:"rendered objects"`
	Fail     int      `json:"fail,omitempty" jsonschema_description:"findings that fail"`
	Warn     int      `json:"warn,omitempty" jsonschema_description:"findings that warn"`
	Findings []int    `json:"-"`
}

// ValidationMeta is what holds for the whole run: coverage is counted, never
// called valid.
type ValidationMeta struct {
	KubernetesVersion string         `json:"kubernetesVersion" jsonschema_description:"version of the schemas"`
	Objects           int            `json:"objects" jsonschema_description:"rendered objects"`
	Validated         map[string]int `json:"validated,omitempty" jsonschema_description:"kind: objects checked"`
	Uncovered         map[string]int `json:"uncovered,omitempty" jsonschema_description:"kind: objects with no schema"`
	ByAuthority       map[Source]int `json:"byAuthority,omitempty" jsonschema_description:"authority: objects"`
	NotExpanded       int            `json:"notExpanded,omitempty" jsonschema_description:"charts and ResourceSets not looked into"`
}
