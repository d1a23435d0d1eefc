package locate

import (
	"fmt"
	"strconv"
)

// ProblemKind is the code of a Problem.
type ProblemKind string

const (
	// Syntax is text that is no YAML, or YAML that no decoder accepts: nested
	// too deeply, or growing out of bounds through its aliases.
	Syntax ProblemKind = "InvalidYAML"
	// DuplicateKey is a key that stands twice in one mapping. Decoders either
	// refuse it or keep one of the two silently.
	DuplicateKey ProblemKind = "DuplicateKey"
)

// maxProblems bounds what one file can report.
const maxProblems = 1000

// Problem is what is wrong with a file.
type Problem struct {
	// Line is 1-based; of a duplicate key it is that of the later one.
	Line int
	Kind ProblemKind
	// Message holds keys and lines, never values.
	Message string
	// Key is the key of a DuplicateKey.
	Key string
}

func duplicate(key string, first, second int) Problem {
	return Problem{
		Line:    second,
		Kind:    DuplicateKey,
		Key:     key,
		Message: fmt.Sprintf("the key %s stands twice in one mapping: on line %d and on line %d; only one of them can hold", quoteKey(key), first, second),
	}
}

// quoteKey shows a key on one line and of bounded length.
func quoteKey(key string) string {
	const most = 80
	if r := []rune(key); len(r) > most {
		return strconv.Quote(string(r[:most])) + " (shortened)"
	}
	return strconv.Quote(key)
}
