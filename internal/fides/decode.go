package fides

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// shape is what an answer must be before it is one. A dotted key stands inside
// an object: "approvals.count".
type shape struct {
	// array: the keys are asked of every element.
	array bool
	// required keys are there and not null.
	required []string
	// nullable keys are there and may be null.
	nullable []string
}

func object(required ...string) shape  { return shape{required: required} }
func arrayOf(required ...string) shape { return shape{array: true, required: required} }

func (s shape) orNull(keys ...string) shape {
	s.nullable = keys
	return s
}

// decode reads body into out when it is complete JSON of the shape. Its errors
// never quote the body: it may be anybody's page.
func decode(body []byte, s shape, out any) error {
	if len(strings.TrimSpace(string(body))) == 0 {
		return errors.New("the answer is empty")
	}
	if !json.Valid(body) {
		return errors.New("the answer is not JSON, or ends in the middle of it")
	}
	items := []json.RawMessage{body}
	if s.array {
		items = nil
		if err := json.Unmarshal(body, &items); err != nil || items == nil {
			return errors.New("the answer is JSON, but not the array that this endpoint gives")
		}
	}
	for _, item := range items {
		if err := s.check(item); err != nil {
			return err
		}
	}
	if err := json.Unmarshal(body, out); err != nil {
		var wrongType *json.UnmarshalTypeError
		if errors.As(err, &wrongType) && wrongType.Field != "" {
			return fmt.Errorf("the answer's key %q does not have the type that this endpoint gives", wrongType.Field)
		}
		return errors.New("a value of the answer does not have the form that this endpoint gives")
	}
	return nil
}

func (s shape) check(item []byte) error {
	for _, key := range s.required {
		if value, ok := lookup(item, key); !ok || string(value) == "null" {
			return fmt.Errorf("the answer is JSON, but without the key %q of this endpoint", key)
		}
	}
	for _, key := range s.nullable {
		if _, ok := lookup(item, key); !ok {
			return fmt.Errorf("the answer is JSON, but without the key %q of this endpoint", key)
		}
	}
	return nil
}

// lookup finds a key exactly as it is written; encoding/json alone would also
// take another case.
func lookup(object json.RawMessage, key string) (json.RawMessage, bool) {
	for _, part := range strings.Split(key, ".") {
		var members map[string]json.RawMessage
		if err := json.Unmarshal(object, &members); err != nil {
			return nil, false
		}
		value, ok := members[part]
		if !ok {
			return nil, false
		}
		object = value
	}
	return object, true
}

// list is never nil, so that an answer embedded in another one reads [] and
// not null.
func list[T any](in []T) []T {
	if in == nil {
		return []T{}
	}
	return in
}
