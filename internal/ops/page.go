package ops

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
)

// Limits of every list.
const (
	DefaultLimit = 20
	MaxLimit     = 200
	// MaxPageBytes bounds a page whatever its limit: clients cut an answer at
	// about 50,000 characters, and a model should read at most 8,000 tokens.
	MaxPageBytes = 28_000
)

// CursorError is a cursor that does not belong to the query it came with.
type CursorError struct{ Message string }

func (e *CursorError) Error() string { return e.Message }

// Page is a part of a sorted list.
type Page[T any] struct {
	Items      []T
	Total      int
	Truncated  bool
	NextCursor string
}

// position is what a cursor seals: the key of the last item that was given,
// and the query that it belongs to. A key rather than an index: a list stays
// whole while new entries arrive.
type position struct {
	Query string `json:"q"`
	After string `json:"a"`
}

// Paginate cuts a sorted list. keyOf gives keys whose lexical order is the
// list's; query is whatever the list depends on. limit 0 means DefaultLimit;
// a page ends earlier at MaxPageBytes.
// A cursor that was not made here, or for another query, is a CursorError.
func Paginate[T any](items []T, keyOf func(T) string, limit int, cursor string, query ...string) (Page[T], error) {
	if limit <= 0 {
		limit = DefaultLimit
	}
	sum := sha256.Sum256([]byte(strings.Join(query, "\x00")))
	digest := hex.EncodeToString(sum[:6])
	start := 0
	if cursor != "" {
		raw, err := base64.RawURLEncoding.DecodeString(cursor)
		var p position
		if err == nil {
			err = json.Unmarshal(raw, &p)
		}
		if err != nil {
			return Page[T]{}, &CursorError{"the cursor is not one of this server's: pass nextCursor as it was given"}
		}
		if p.Query != digest {
			return Page[T]{}, &CursorError{"the cursor belongs to another query: keep the arguments, or start without a cursor"}
		}
		for start < len(items) && keyOf(items[start]) <= p.After {
			start++
		}
	}
	end := start
	for size := 0; end < min(start+limit, len(items)); end++ {
		raw, err := json.Marshal(items[end])
		if err != nil {
			return Page[T]{}, err
		}
		// One item is always given: a page without any would never end.
		if size += len(raw); size > MaxPageBytes && end > start {
			break
		}
	}
	page := Page[T]{Items: append([]T{}, items[start:end]...), Total: len(items), Truncated: end < len(items)}
	if page.Truncated {
		raw, err := json.Marshal(position{Query: digest, After: keyOf(items[end-1])})
		if err != nil {
			return Page[T]{}, err
		}
		page.NextCursor = base64.RawURLEncoding.EncodeToString(raw)
	}
	return page, nil
}

// newestFirst is a sort key under which later moments come first.
func newestFirst(t time.Time, rest ...string) string {
	return fmt.Sprintf("%020d/%s", uint64(math.MaxInt64-t.UnixNano()), strings.Join(rest, "/"))
}

// NewestFirst is the sort key of lists that are shown newest first.
func NewestFirst(t time.Time, rest ...string) string { return newestFirst(t, rest...) }
