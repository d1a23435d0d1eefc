package cluster

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// readObjects returns the objects of the named files, and of every *.yaml file
// of the named folders, in the order of names and in file order.
func readObjects(paths ...string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, path := range paths {
		files := []string{path}
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if info.IsDir() {
			if files, err = filepath.Glob(filepath.Join(path, "*.yaml")); err != nil {
				return nil, err
			}
			if len(files) == 0 {
				return nil, fmt.Errorf("the folder %s has no *.yaml file", path)
			}
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			of, err := decode(file, data)
			if err != nil {
				return nil, err
			}
			objects = append(objects, of...)
		}
	}
	return objects, nil
}

// decode reads YAML documents, and the items of Lists among them.
func decode(file string, data []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", file, err)
		}
		asJSON, err := yaml.YAMLToJSON(document)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", file, err)
		}
		if string(asJSON) == "null" {
			continue // nothing but comments
		}
		decoded, err := runtime.Decode(unstructured.UnstructuredJSONScheme, asJSON)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", file, err)
		}
		switch o := decoded.(type) {
		case *unstructured.Unstructured:
			objects = append(objects, o)
		case *unstructured.UnstructuredList:
			for i := range o.Items {
				objects = append(objects, &o.Items[i])
			}
		default:
			return nil, fmt.Errorf("cannot read %s: a document is a %T, neither an object nor a List", file, decoded)
		}
	}
}
