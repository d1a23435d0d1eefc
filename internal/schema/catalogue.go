package schema

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/yannh/kubeconform/pkg/resource"
	"github.com/yannh/kubeconform/pkg/validator"
)

const maxSchemaFile = 32 << 20 // bytes

// catalogue is a folder of JSON schemas that the user named. kubeconform judges
// by it; what it says is advice.
type catalogue struct {
	dir       string
	digest    []byte
	files     map[string]bool // by path below the folder
	validator validator.Validator
}

// layouts are where a kind's schema may be; a template is used for files that
// are known to exist only, so nothing else is ever opened.
var layouts = []struct {
	template string
	file     func(group, version, kind string) string
}{
	{"{{.Group}}/{{.ResourceKind}}_{{.ResourceAPIVersion}}.json", func(group, version, kind string) string {
		return group + "/" + kind + "_" + version + ".json"
	}},
	{"{{.ResourceKind}}{{.KindSuffix}}.json", func(group, version, kind string) string {
		// The group's first part, as kubeconform names its files.
		group, _, _ = strings.Cut(group, ".")
		return kind + "-" + group + "-" + version + ".json"
	}},
	{"{{.ResourceKind}}-{{.Group}}-{{.ResourceAPIVersion}}.json", func(group, version, kind string) string {
		return kind + "-" + group + "-" + version + ".json"
	}},
}

// openCatalogue compiles every schema of a folder: kubeconform would pass over
// one that does not compile.
func openCatalogue(dir string) (*catalogue, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, &Error{Message: fmt.Sprintf("schema folder %s: %v", dir, err)}
	}
	info, err := os.Stat(abs)
	if err != nil {
		return nil, &Error{Message: fmt.Sprintf("schema folder %s can't be read: %v", dir, unwrapPath(err))}
	}
	if !info.IsDir() {
		return nil, &Error{Message: fmt.Sprintf("schema folder %s is a file: name the folder that holds the schemas", dir)}
	}
	// A template is what kubeconform takes: braces in the name would be code.
	if strings.Contains(abs, "{{") {
		return nil, &Error{Message: fmt.Sprintf("schema folder %s: its path must not contain {{", dir)}
	}
	c := &catalogue{dir: abs, files: map[string]bool{}}
	var files []string
	err = filepath.WalkDir(abs, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && name != abs {
			return fs.SkipDir
		}
		if strings.HasSuffix(d.Name(), ".json") && d.Type().IsRegular() {
			files = append(files, name)
		}
		return nil
	})
	if err != nil {
		return nil, &Error{Message: fmt.Sprintf("schema folder %s can't be read: %v", dir, err)}
	}
	if len(files) == 0 {
		return nil, &Error{Message: fmt.Sprintf("schema folder %s holds no .json files: {group}/{kind}_{version}.json or {kind}-{group}-{version}.json are wanted", dir)}
	}
	sort.Strings(files)
	sum := sha256.New()
	for _, name := range files {
		rel, err := filepath.Rel(abs, name)
		if err != nil {
			return nil, err
		}
		raw, err := readSchema(name)
		if err == nil {
			err = compiles(name, raw)
		}
		if err != nil {
			return nil, &Error{Message: fmt.Sprintf("schema %s does not compile: %v", filepath.Join(dir, rel), err)}
		}
		rel = filepath.ToSlash(rel)
		c.files[rel] = true
		fmt.Fprintf(sum, "%s %d\n", rel, len(raw))
		sum.Write(raw)
	}
	c.digest = sum.Sum(nil)
	var templates []string
	for _, l := range layouts {
		templates = append(templates, filepath.ToSlash(abs)+"/"+l.template)
	}
	if c.validator, err = validator.New(templates, validator.Opts{}); err != nil {
		return nil, &Error{Message: fmt.Sprintf("schema folder %s: %v", dir, err)}
	}
	return c, nil
}

func unwrapPath(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

func readSchema(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, unwrapPath(err)
	}
	if info.Size() > maxSchemaFile {
		return nil, fmt.Errorf("is larger than %d bytes", maxSchemaFile)
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		return nil, unwrapPath(err)
	}
	return raw, nil
}

// localOnly loads what a schema refers to, from files: never from a network.
type localOnly struct{}

func (localOnly) Load(url string) (any, error) {
	if !strings.HasPrefix(url, "file:") {
		return nil, fmt.Errorf("%s: references to the network are not followed", short(url))
	}
	return jsonschema.FileLoader{}.Load(url)
}

func compiles(name string, raw []byte) error {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	if err != nil {
		return err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(localOnly{})
	if err := c.AddResource(name, doc); err != nil {
		return err
	}
	_, err = c.Compile(name)
	return err
}

// validate judges an object when the folder knows its kind. The identity was
// matched against patterns before: it can't leave the folder.
func (c *catalogue) validate(id gvk, obj map[string]any) (Result, bool) {
	file := ""
	for _, l := range layouts {
		if f := l.file(id.group, id.version, strings.ToLower(id.kind)); c.files[f] {
			file = f
			break
		}
	}
	if file == "" {
		return Result{}, false
	}
	r := Result{Authority: AuthorityCatalogue, Covered: true, SchemaID: file}
	warn := func(v Violation) {
		v.Severity, v.Authority, v.SchemaID = Warn, AuthorityCatalogue, file
		r.Violations = append(r.Violations, v)
	}
	copied, err := deepCopy(obj, 0)
	if err != nil {
		warn(Violation{Code: InvalidValue, Rule: "depth", Message: err.Error()})
		return r, true
	}
	withoutNulls(copied)
	raw, err := json.Marshal(copied)
	if err != nil {
		warn(Violation{Code: InvalidValue, Rule: "json", Message: "can't be written as JSON"})
		return r, true
	}
	got := c.validator.ValidateResource(resource.Resource{Bytes: raw})
	secret := id.kind == "Secret"
	switch got.Status {
	case validator.Invalid:
		for i, e := range got.ValidationErrors {
			if i == maxViolations {
				break
			}
			warn(advice(e, secret))
		}
		if len(got.ValidationErrors) == 0 {
			warn(Violation{Code: InvalidValue, Rule: "schema", Message: "does not match the schema"})
		}
	case validator.Error:
		warn(Violation{Code: InvalidValue, Rule: "schema", Message: "can't be judged by the schema"})
	}
	r.Violations = tidy(r.Violations)
	return r, true
}

// advice turns an error of kubeconform into a violation. Its paths have no
// escapes and its message may quote values.
func advice(e validator.ValidationError, secret bool) Violation {
	v := Violation{Code: InvalidValue, Field: e.Path, Rule: "schema", Message: bounded(e.Msg)}
	if !secret {
		v.Raw = bounded(e.Msg)
	}
	switch {
	case strings.HasPrefix(e.Msg, "missing propert"):
		v.Code, v.Rule = MissingField, "required"
		if name, ok := quotedName(e.Msg); ok {
			v.Field = child(e.Path, name)
		}
	case strings.HasPrefix(e.Msg, "additional propert"):
		v.Code, v.Rule = UnknownField, "additionalProperties"
		if name, ok := quotedName(e.Msg); ok {
			v.Field = child(e.Path, name)
		}
	case strings.HasPrefix(e.Msg, "got "):
		v.Code, v.Rule = WrongType, "type"
	case secret:
		v.Message = "does not match the schema"
	}
	return v
}

// quotedName is the one name between quotes, if it is one.
func quotedName(msg string) (string, bool) {
	parts := strings.Split(msg, "'")
	if len(parts) != 3 {
		return "", false
	}
	return parts[1], true
}

// withoutNulls drops null fields, as an API server does.
func withoutNulls(v any) {
	switch x := v.(type) {
	case map[string]any:
		for k, c := range x {
			if c == nil {
				delete(x, k)
				continue
			}
			withoutNulls(c)
		}
	case []any:
		for _, c := range x {
			withoutNulls(c)
		}
	}
}
