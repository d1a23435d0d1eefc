package schema

import (
	"strconv"
	"strings"
)

var escaper = strings.NewReplacer("~", "~0", "/", "~1")

// escape makes a key a part of a JSON pointer.
func escape(key string) string {
	if !strings.ContainsAny(key, "~/") {
		return key
	}
	return escaper.Replace(key)
}

// child is the pointer of a field.
func child(pointer, key string) string { return pointer + "/" + escape(key) }

// index is the pointer of an item.
func index(pointer string, i int) string { return pointer + "/" + strconv.Itoa(i) }

// pointerOf turns a path of the API machinery ("spec.a[0].b", "spec.m[a.b/c]")
// into a pointer. Its keys are not escaped, so only the object can tell where
// one ends: the longest key that exists wins, and what does not exist is one key.
func pointerOf(obj map[string]any, path string) string {
	var out strings.Builder
	var at any = obj
	rest := strings.TrimPrefix(path, ".")
	if rest == "<nil>" {
		return ""
	}
	add := func(key string) {
		out.WriteString("/" + escape(key))
	}
	for rest != "" {
		key, more := "", ""
		if rest[0] == '[' {
			end := strings.IndexByte(rest, ']')
			if m, ok := at.(map[string]any); ok {
				end = closing(rest, m)
			}
			if end < 0 {
				add(rest[1:])
				break
			}
			key, more = rest[1:end], rest[end+1:]
		} else if m, ok := at.(map[string]any); ok {
			key, more = longest(rest, m)
		} else {
			key, more = cut(rest)
		}
		switch x := at.(type) {
		case map[string]any:
			at = x[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(x) {
				at = nil
			} else {
				at = x[i]
			}
		default:
			at = nil
		}
		add(key)
		rest = strings.TrimPrefix(more, ".")
	}
	return out.String()
}

// closing is the bracket that ends a key of the map, the first one where no key fits.
func closing(rest string, m map[string]any) int {
	for i := 1; i < len(rest); i++ {
		if rest[i] == ']' {
			if _, ok := m[rest[1:i]]; ok {
				return i
			}
		}
	}
	return strings.IndexByte(rest, ']')
}

// longest is the longest key of the map that the path starts with, and what follows.
func longest(rest string, m map[string]any) (key, more string) {
	for i := len(rest); i > 0; i-- {
		if i == len(rest) || rest[i] == '.' || rest[i] == '[' {
			if _, ok := m[rest[:i]]; ok {
				return rest[:i], rest[i:]
			}
		}
	}
	return cut(rest)
}

// cut splits at the end of the first simple key.
func cut(rest string) (key, more string) {
	if i := strings.IndexAny(rest, ".["); i > 0 {
		return rest[:i], rest[i:]
	}
	return rest, ""
}

// Lookup is the value at a JSON pointer in a decoded object, nil when there is none.
func Lookup(obj any, pointer string) any {
	for _, part := range strings.Split(pointer, "/")[1:] {
		part = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		switch x := obj.(type) {
		case map[string]any:
			obj = x[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(x) {
				return nil
			}
			obj = x[i]
		default:
			return nil
		}
	}
	return obj
}
