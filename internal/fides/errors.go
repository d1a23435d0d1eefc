package fides

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"unicode"
)

// Code is what an error of this package means.
type Code string

// Codes.
const (
	// Unauthenticated: credentials refused, or the server's database is down
	// (a good key cannot be looked up then, and reads as invalid).
	Unauthenticated Code = "Unauthenticated"
	// Forbidden: the key is known and its role may not do this.
	Forbidden Code = "Forbidden"
	// NotFound: the thing named by Error.Thing is not there, or another tenant's.
	NotFound Code = "NotFound"
	// NoSuchEndpoint: an older server, or a wrong base URL.
	NoSuchEndpoint Code = "NoSuchEndpoint"
	// InvalidArgument: the server or this client refuses the request as it is.
	InvalidArgument Code = "InvalidArgument"
	// ServerError: a fault of the server, its database, or (on a POST) a
	// reference to something that it does not know.
	ServerError Code = "ServerError"
	// NotConfigured: the server was started without its service token.
	NotConfigured Code = "NotConfigured"
	// Unavailable: nothing that is an answer came back.
	Unavailable Code = "Unavailable"
)

// maxMessage bounds what is repeated of a server's one-line message, in runes.
const maxMessage = 200

// Error is a question that was not answered. It holds neither the token nor a
// page's body.
type Error struct {
	Code Code
	// Method and Path of the request, the path with the base URL's and the
	// query; empty when the client refused before it asked.
	Method, Path string
	// Status is 0 when there was no HTTP answer.
	Status      int
	ContentType string
	// Thing is what NotFound is about: trail, environment, artifact or attestation.
	Thing   string
	Message string

	err error
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("evidence server")
	if e.Method != "" {
		b.WriteString(": " + e.Method + " " + e.Path)
	}
	switch {
	case e.Status != 0 && e.ContentType != "":
		fmt.Fprintf(&b, ": %d (%s)", e.Status, e.ContentType)
	case e.Status != 0:
		fmt.Fprintf(&b, ": %d", e.Status)
	}
	b.WriteString(": " + e.Message)
	return b.String()
}

// Unwrap gives the transport's error, so that a caller can tell its own
// cancelled context.
func (e *Error) Unwrap() error { return e.err }

// CodeOf is the code of an error of this package, "" for any other and for nil.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// The server's own sentences that tell two meanings of one status apart. There
// is no other sign (fides-facts.md, the table of errors), so each is compared
// whole; any other sentence is not taken for the server's.
const (
	saysNoRoute       = "404 page not found"
	saysNotConfigured = "API authentication is not configured on the server"
)

var saysNotFound = map[string]string{
	"trail not found":       "trail",
	"environment not found": "environment",
	"artifact not found":    "artifact",
	"attestation not found": "attestation",
}

// refusal reads a 4xx or 5xx. The server writes text/plain, one line; anything
// else under such a status is from something in between.
func (c *Client) refusal(a answer) *Error {
	e := a.unavailable("the answer is not the evidence server's: a proxy, or a wrong base URL")
	if media, _, err := mime.ParseMediaType(a.contentType); err != nil || media != "text/plain" {
		return e
	}
	body := strings.TrimSpace(string(a.body))
	said := clean(c.scrub(body), maxMessage)
	switch a.status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		e.Code, e.Message = InvalidArgument, said
	case http.StatusUnauthorized:
		e.Code, e.Message = Unauthenticated, "credentials refused, or the server's database is down ("+said+")"
	case http.StatusForbidden:
		e.Code, e.Message = Forbidden, said
	case http.StatusMethodNotAllowed:
		e.Code, e.Message = NoSuchEndpoint, "the server does not take this method here: an older server, or a wrong base URL"
	case http.StatusNotFound:
		if thing, ok := saysNotFound[body]; ok {
			e.Code, e.Thing, e.Message = NotFound, thing, thing+" not found (or another tenant's)"
		} else if body == saysNoRoute {
			e.Code, e.Message = NoSuchEndpoint, "no such endpoint: an older server, or a wrong base URL"
		}
	case http.StatusInternalServerError:
		e.Code, e.Message = ServerError, "the server failed, or its database is down"
	case http.StatusServiceUnavailable:
		if body == saysNotConfigured {
			e.Code, e.Message = NotConfigured, "the server was started without its service token, so it refuses every token"
		}
	}
	return e
}

// scrub takes the token out of foreign text, should anything echo it.
func (c *Client) scrub(s string) string {
	if c.token == "" {
		return s
	}
	return strings.ReplaceAll(s, c.token, "[token]")
}

// orUnknown adds to a ServerError what else that endpoint means by it.
func orUnknown(err error, thing string) error {
	var e *Error
	if errors.As(err, &e) && e.Code == ServerError {
		e.Message += ", or " + thing + " is unknown to it (it does not answer 404 here)"
	}
	return err
}

func isHTML(contentType string) bool {
	return strings.HasPrefix(strings.ToLower(strings.TrimSpace(contentType)), "text/html")
}

// clean makes one bounded line of foreign text: no control, format
// (bidirectional, zero-width) or line-separating characters, at most limit runes.
func clean(s string, limit int) string {
	var out []rune
	for _, r := range strings.ToValidUTF8(s, "") {
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			r = ' '
		}
		if len(out) == limit {
			return strings.TrimSpace(string(out)) + "…"
		}
		out = append(out, r)
	}
	return strings.TrimSpace(string(out))
}
