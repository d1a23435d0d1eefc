package render

import (
	"context"
	"fmt"
)

// Request asks for one build.
type Request struct {
	// Root is the absolute folder of the artifact; nothing outside it is read.
	Root string
	// Path is the folder to build, slash separated, relative to Root.
	Path string
	// Origins asks where each object comes from, which nearly doubles the time
	// that kustomize takes.
	Origins bool
	// Kustomization is the Flux object: patches, images, components,
	// targetNamespace, namePrefix, nameSuffix are taken from its spec.
	Kustomization map[string]any
}

// ReadKind is how a build looked at a path.
type ReadKind string

// How a build looks at a path.
const (
	// File: its content was read.
	File ReadKind = "file"
	// Dir: its entries were listed, so any file that comes or goes there counts.
	Dir ReadKind = "dir"
	// Folder: it was looked for and is a folder.
	Folder ReadKind = "folder"
	// Missing: it was looked for and is not there.
	Missing ReadKind = "missing"
)

// Read is one path that decided what was built.
type Read struct {
	Path string
	Kind ReadKind
}

// Result is what one build gives. Objects are in the order of the build.
type Result struct {
	Objects []Object
	// Reads are all paths that the build looked at, sorted, relative to the root.
	Reads []Read
	// Edges names for a path the kustomization files that refer to it.
	Edges map[string][]string
	// Stubs are entries that point outside the repository and were left out.
	Stubs []Stub
	// Err is set when the build fails, and then there are no objects.
	Err *Error
}

// Object is one object of a build. Its Origin is empty unless it was asked for.
type Object struct {
	JSON   []byte
	Origin Origin
}

// Origin is where an object comes from: a document in a file, or a generator.
// Paths are relative to the root.
type Origin struct {
	// File holds the document; empty for what a generator makes.
	File string
	// Kind, Namespace and Name are those of the document, as far as they can be
	// told; a rendered object may carry others.
	Kind, Namespace, Name string
	// Generator is the kustomization file with the generator.
	Generator string
	// Transformers changed the object, in order.
	Transformers []Transformer
}

// Transformer is one transformation of an object and the file that asks for it.
type Transformer struct {
	File, Kind string
}

// Stub is an entry that was left out: it points outside the repository.
type Stub struct {
	File string
	Line int
	// Field is the field of the kustomization file, Value the entry without
	// credentials.
	Field, Value string
	// Dependent is set on a patch that was left out because what it patches comes
	// from a remote entry; Value is then Kind/name.
	Dependent bool
}

// Code says why a build fails.
type Code string

// The codes.
const (
	// RenderFailed: kustomize refuses.
	RenderFailed Code = "RenderFailed"
	// RemoteReference: an entry that can't be left out points outside.
	RemoteReference Code = "RemoteReference"
	// PathNotFound: the folder to build is not there.
	PathNotFound Code = "PathNotFound"
	// DuplicateKey: a mapping in a file has a key twice.
	DuplicateKey Code = "DuplicateKey"
	// InvalidYAML: a file can't be parsed.
	InvalidYAML Code = "InvalidYAML"
	// TooLarge: a file or the build is over a bound.
	TooLarge Code = "TooLarge"
	// Timeout: the build did not end in time and was stopped.
	Timeout Code = "Timeout"
)

// Error is a build that fails. Values of Secrets are masked in Message.
type Error struct {
	Code    Code
	Message string
	// File is relative to the root, "" when the build as a whole is meant; Line
	// is 0 when it is not known.
	File string
	Line int
}

func (e *Error) Error() string {
	if e.File == "" {
		return e.Message
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message)
}

// Builder builds; it is safe for concurrent use. What is wrong with the
// repository is in the Result, and so is a build that was cancelled. One that has
// a method Warm is told when builds are about to come.
type Builder interface {
	Build(ctx context.Context, r Request) Result
}
