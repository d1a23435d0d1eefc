package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"
)

// form is the type that a schema wants.
type form uint8

const (
	anything form = iota
	object
	array
	text
	whole
	decimal
	boolean
	intOrString
	quantity
)

var formNames = map[form]string{object: "an object", array: "a list", text: "a string", whole: "an integer", decimal: "a number",
	boolean: "a boolean", intOrString: "an integer or a string", quantity: `a quantity (like 500m, 1.5 or 2Gi)`}

// format narrows a form.
type format uint8

const (
	plain format = iota
	int32s
	base64s
	dateTime
)

// node is a schema made for walking: references are pointers, so recursion is
// a cycle and shared schemas exist once.
type node struct {
	form     form
	format   format
	strict   bool // no fields but the properties
	props    map[string]*node
	extra    *node // of fields that are no property
	items    *node
	required []string
	fields   []string // names of the properties, sorted
	mapKeys  []key    // what makes the items of a list distinct
	set      bool     // the items of a list are distinct
	standard any      // the default, nil when there is none
}

// key is a field that is a part of an item's identity.
type key struct {
	name     string
	standard any
}

const (
	quantityName    = "io.k8s.apimachinery.pkg.api.resource.Quantity"
	intOrStringName = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
	objectMetaName  = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
)

// tree builds the nodes of an archive's definitions.
func tree(defs map[string]*definition) (map[string]*node, error) {
	t := builder{defs: defs, nodes: make(map[string]*node, len(defs))}
	for name := range defs {
		if _, err := t.named(name); err != nil {
			return nil, err
		}
	}
	return t.nodes, nil
}

type builder struct {
	defs  map[string]*definition
	nodes map[string]*node
}

func (t *builder) named(name string) (*node, error) {
	if n := t.nodes[name]; n != nil {
		return n, nil
	}
	d := t.defs[name]
	if d == nil {
		return nil, fmt.Errorf("the schema %s does not exist", name)
	}
	n := &node{}
	t.nodes[name] = n // before it is filled: it may refer to itself
	switch name {
	case quantityName:
		n.form = quantity
		return n, nil
	case intOrStringName:
		n.form = intOrString
		return n, nil
	}
	if err := t.fill(n, d); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	n.required = slices.DeleteFunc(slices.Clone(n.required), func(field string) bool { return slices.Contains(spared[name], field) })
	return n, nil
}

// spared are fields that the schema calls required and the API server does not
// miss: it never asks the schema, and takes their zero value. Found by asking one
// (test/cluster).
var spared = map[string][]string{
	"io.k8s.api.apps.v1.ControllerRevision":                                                    {"revision"},
	"io.k8s.api.batch.v1.PodFailurePolicy":                                                     {"rules"},
	"io.k8s.api.core.v1.HTTPHeader":                                                            {"value"},
	"io.k8s.api.core.v1.ISCSIPersistentVolumeSource":                                           {"lun"},
	"io.k8s.api.core.v1.ISCSIVolumeSource":                                                     {"lun"},
	"io.k8s.api.core.v1.LimitRangeSpec":                                                        {"limits"},
	"io.k8s.api.core.v1.PreferredSchedulingTerm":                                               {"preference"},
	"io.k8s.api.core.v1.SleepAction":                                                           {"seconds"},
	"io.k8s.api.core.v1.Sysctl":                                                                {"value"},
	"io.k8s.api.core.v1.TypedLocalObjectReference":                                             {"kind", "name"},
	"io.k8s.api.batch.v1.PodFailurePolicyOnPodConditionsPattern":                               {"status"},
	"io.k8s.api.discovery.v1.EndpointSlice":                                                    {"endpoints"},
	"io.k8s.api.rbac.v1.RoleRef":                                                               {"apiGroup"},
	"io.k8s.api.scheduling.v1.PriorityClass":                                                   {"value"},
	"io.k8s.api.storage.v1.CSIDriver":                                                          {"spec"},
	"io.k8s.api.storage.v1.CSINode":                                                            {"spec"},
	"io.k8s.api.storage.v1.CSINodeSpec":                                                        {"drivers"},
	"io.k8s.api.storage.v1.TokenRequest":                                                       {"audience"},
	"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionVersion": {"served", "storage"},
}

func (t *builder) node(d *definition) (*node, error) {
	if d.Ref != "" {
		n, err := t.named(strings.TrimPrefix(d.Ref, "#/definitions/"))
		return n, err
	}
	n := &node{}
	return n, t.fill(n, d)
}

func (t *builder) fill(n *node, d *definition) (err error) {
	switch d.Type {
	case "":
	case "object":
		n.form = object
	case "array":
		n.form = array
	case "string":
		n.form = text
	case "integer":
		n.form = whole
	case "number":
		n.form = decimal
	case "boolean":
		n.form = boolean
	default:
		return fmt.Errorf("unknown type %q", d.Type)
	}
	switch d.Format {
	case "int32":
		n.format = int32s
	case "byte":
		n.format = base64s
	case "date-time":
		n.format = dateTime
	}
	n.required, n.standard = d.Required, d.Default
	if len(d.Properties) > 0 {
		n.props = make(map[string]*node, len(d.Properties))
		for k, p := range d.Properties {
			if n.props[k], err = t.node(p); err != nil {
				return err
			}
			n.fields = append(n.fields, k)
		}
		sort.Strings(n.fields)
	}
	switch {
	case len(d.Extra) == 0:
	case string(d.Extra) == "false":
		n.strict = true
	default:
		var extra definition
		if err := json.Unmarshal(d.Extra, &extra); err != nil {
			return fmt.Errorf("additionalProperties: %w", err)
		}
		if n.extra, err = t.node(&extra); err != nil {
			return err
		}
	}
	if d.Items != nil {
		if n.items, err = t.node(d.Items); err != nil {
			return err
		}
	}
	n.set = d.ListType == "set"
	if d.ListType == "map" {
		for _, k := range d.MapKeys {
			var standard any
			// The default of a key stands for one that is absent.
			if of := t.definition(d.Items); of != nil && of.Properties[k] != nil {
				standard = of.Properties[k].Default
			}
			n.mapKeys = append(n.mapKeys, key{k, standard})
		}
	}
	return nil
}

// definition follows a reference.
func (t *builder) definition(d *definition) *definition {
	for d != nil && d.Ref != "" {
		d = t.defs[strings.TrimPrefix(d.Ref, "#/definitions/")]
	}
	return d
}
