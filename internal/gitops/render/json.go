package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// objectJSON is res.MarshalJSON, which prints the object as YAML and parses that
// again, without the detour where the detour changes nothing: an eighth of a
// build. What the printer and the parser could make something else of takes it.
func objectJSON(res *resource.Resource) ([]byte, error) {
	n := res.YNode()
	if n == nil || n.Kind != yaml.MappingNode || !plain(n, 0) {
		return res.MarshalJSON()
	}
	var out bytes.Buffer
	if err := writeJSON(&out, n); err != nil {
		return res.MarshalJSON() // the error is to be Flux's, with its lines
	}
	return out.Bytes(), nil
}

// errTwice is a key that a mapping has twice.
var errTwice = errors.New("a key is there twice")

// writeJSON writes a plain tree of nodes as json.Marshal writes what it decodes to.
func writeJSON(out *bytes.Buffer, n *yaml.Node) error {
	switch n.Kind {
	case yaml.MappingNode:
		at := make([]int, 0, len(n.Content)/2) // indices of keys, in their order
		for i := 0; i < len(n.Content); i += 2 {
			at = append(at, i)
		}
		slices.SortFunc(at, func(a, b int) int { return strings.Compare(n.Content[a].Value, n.Content[b].Value) })
		out.WriteByte('{')
		for i, k := range at {
			key := n.Content[k].Value
			if i > 0 {
				if key == n.Content[at[i-1]].Value {
					return errTwice
				}
				out.WriteByte(',')
			}
			if err := writeText(out, key); err != nil {
				return err
			}
			out.WriteByte(':')
			if err := writeJSON(out, n.Content[k+1]); err != nil {
				return err
			}
		}
		out.WriteByte('}')
		return nil
	case yaml.SequenceNode:
		out.WriteByte('[')
		for i, c := range n.Content {
			if i > 0 {
				out.WriteByte(',')
			}
			if err := writeJSON(out, c); err != nil {
				return err
			}
		}
		out.WriteByte(']')
		return nil
	}
	if n.Tag == yaml.NodeTagString {
		return writeText(out, n.Value)
	}
	var v any
	if err := n.Decode(&v); err != nil {
		return err
	}
	data, err := json.Marshal(v)
	out.Write(data)
	return err
}

// writeText writes a string; most need no escape.
func writeText(out *bytes.Buffer, s string) error {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || strings.IndexByte(`"\<>&`, c) >= 0 {
			data, err := json.Marshal(s)
			out.Write(data)
			return err
		}
	}
	out.WriteByte('"')
	out.WriteString(s)
	out.WriteByte('"')
	return nil
}

// plain tells whether a tree of nodes survives print and parse as it is: no
// alias or anchor, no key but text, no braces and brackets but around bare words, no tag but those of JSON's types, no text of
// several lines (which the styles of blocks can alter) or with control characters.
func plain(n *yaml.Node, depth int) bool {
	if n.Anchor != "" || depth > maxNesting {
		return false
	}
	switch n.Kind {
	case yaml.MappingNode, yaml.SequenceNode:
		switch n.Tag {
		case "", yaml.NodeTagMap, yaml.NodeTagSeq:
		default:
			return false
		}
		flow := n.Style&yaml.FlowStyle != 0
		for i, c := range n.Content {
			if flow && (c.Kind != yaml.ScalarNode || c.Value == "" || commented(c) || commented(n)) {
				return false
			}
			if n.Kind == yaml.MappingNode && i%2 == 0 && (c.ShortTag() != yaml.NodeTagString || c.Value == "") {
				return false
			}
			if !plain(c, depth+1) {
				return false
			}
		}
		return true
	case yaml.ScalarNode:
		if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle|yaml.TaggedStyle) != 0 || strings.ContainsFunc(n.Value, needsCare) {
			return false
		}
		switch n.Tag {
		case yaml.NodeTagString:
			return true
		case "", yaml.NodeTagBool, yaml.NodeTagInt, yaml.NodeTagFloat, yaml.NodeTagNull:
			// A tag that the value does not bear by itself would be printed.
			return n.Tag == "" || n.Style == 0 && (&yaml.Node{Kind: yaml.ScalarNode, Value: n.Value}).ShortTag() == n.Tag
		}
	}
	return false
}

func commented(n *yaml.Node) bool {
	return n.HeadComment != "" || n.LineComment != "" || n.FootComment != ""
}

func needsCare(r rune) bool {
	return r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r == 0xfffd
}
