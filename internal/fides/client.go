package fides

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

const (
	// maxBody is the most that is read of an answer, in bytes (as upstream's client).
	maxBody = 1 << 20
	// defaultTimeout bounds one request (as upstream's client).
	defaultTimeout = 30 * time.Second
)

// Config says which server to ask and as whom.
type Config struct {
	// BaseURL is http or https and may have a path, onto which the endpoints
	// are joined. Credentials in it are not used.
	BaseURL string
	// Token is sent as a bearer token; white space around it is trimmed.
	// Without one the server answers Healthz only.
	Token string
	// HTTPClient replaces the client's own, which gives up after 30 seconds.
	// Its redirect policy is not used.
	HTTPClient *http.Client
}

// String leaves the token and the URL's credentials out.
func (c Config) String() string {
	base, err := parseBase(c.BaseURL)
	if err != nil {
		return "fides.Config{invalid URL}"
	}
	return "fides.Config{" + base.String() + "}"
}

// GoString is String, so that %#v cannot print the token either.
func (c Config) GoString() string { return c.String() }

// Client asks one evidence server. It is safe for concurrent use.
type Client struct {
	base  *url.URL // without credentials
	token string
	http  *http.Client
}

// New makes a Client without connecting. The error is an *Error with
// InvalidArgument.
func New(cfg Config) (*Client, error) {
	base, err := parseBase(cfg.BaseURL)
	if err != nil {
		return nil, &Error{Code: InvalidArgument, Message: err.Error()}
	}
	token := strings.TrimSpace(cfg.Token)
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, &Error{Code: InvalidArgument, Message: "the evidence server's token has characters that a header cannot carry; valid is printable ASCII without spaces"}
	}
	client := http.Client{Timeout: defaultTimeout}
	if cfg.HTTPClient != nil {
		client = *cfg.HTTPClient
	}
	// A redirect is a proxy's login page or a moved server. Following it could
	// carry the token elsewhere, and the answer would not be this server's.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{base: base, token: token, http: &client}, nil
}

// parseBase never repeats what it was given in an error: it may hold a password.
func parseBase(raw string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(raw))
	switch {
	case raw == "":
		return nil, errors.New("the evidence server's URL is empty; valid is http(s)://host[:port][/path]")
	case err != nil:
		return nil, errors.New("the evidence server's URL cannot be parsed; valid is http(s)://host[:port][/path]")
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.Opaque != "":
		return nil, errors.New("the evidence server's URL is not http(s)://host[:port][/path]")
	case u.RawQuery != "", u.Fragment != "":
		return nil, errors.New("the evidence server's URL has a query or a fragment; valid is http(s)://host[:port][/path]")
	}
	u.User = nil
	return u, nil
}

// URL is the server's address without credentials, for people.
func (c *Client) URL() string { return c.base.String() }

// String is the address; the token is never printed.
func (c *Client) String() string { return "fides.Client{" + c.URL() + "}" }

// GoString is String, so that %#v cannot print the token either.
func (c *Client) GoString() string { return c.String() }

// Healthz asks whether the server is up: nil, or an *Error. It needs no token
// and says nothing about the database behind the server.
func (c *Client) Healthz(ctx context.Context) error {
	a, err := c.roundTrip(ctx, http.MethodGet, "/healthz", nil, nil)
	if err != nil {
		return err
	}
	if isHTML(a.contentType) || strings.TrimSpace(string(a.body)) != "OK" {
		return a.unavailable("the answer is not the server's OK")
	}
	return nil
}

// answer is a 2xx, with what an error about it needs.
type answer struct {
	method, path string
	status       int
	contentType  string
	body         []byte
}

// unavailable says why an answer is none. The reason never quotes the body.
func (a answer) unavailable(reason string) *Error {
	return &Error{Code: Unavailable, Method: a.method, Path: a.path, Status: a.status, ContentType: a.contentType, Message: reason}
}

// call asks and decodes a JSON answer of the shape into out.
func (c *Client) call(ctx context.Context, method, path string, query url.Values, in any, s shape, out any) (answer, error) {
	a, err := c.roundTrip(ctx, method, path, query, in)
	if err != nil {
		return answer{}, err
	}
	// The content type decides only against HTML: the server itself labels the
	// JSON of POST approvals as text/plain.
	if isHTML(a.contentType) {
		return answer{}, a.unavailable("an HTML page instead of JSON: a proxy or a login page answered")
	}
	if err := decode(a.body, s, out); err != nil {
		return answer{}, a.unavailable(err.Error())
	}
	return a, nil
}

func (c *Client) get(ctx context.Context, path string, query url.Values, s shape, out any) (answer, error) {
	return c.call(ctx, http.MethodGet, path, query, nil, s, out)
}

// roundTrip returns a 2xx answer, read to its end, or an *Error.
func (c *Client) roundTrip(ctx context.Context, method, path string, query url.Values, in any) (answer, error) {
	target := c.base.JoinPath(path)
	target.RawQuery = query.Encode()
	if !strings.HasPrefix(target.Path, "/") { // JoinPath onto a base without a path
		target.Path = "/" + target.Path
	}
	a := answer{method: method, path: target.RequestURI()}
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return a, &Error{Code: InvalidArgument, Method: method, Path: a.path, Message: "the request cannot be written as JSON", err: err}
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, target.String(), body)
	if err != nil {
		return a, &Error{Code: InvalidArgument, Method: method, Path: a.path, Message: "the request cannot be built"}
	}
	req.Header.Set("Accept", "application/json, text/plain")
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return a, c.noAnswer(a, err)
	}
	defer func() { _ = resp.Body.Close() }() // read-only: nothing can be lost by it
	a.status = resp.StatusCode
	a.contentType = clean(resp.Header.Get("Content-Type"), 100)
	a.body, err = io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	switch {
	case a.status >= 300 && a.status < 400:
		return a, a.unavailable("redirected" + redirectHost(resp) + "; redirects are not followed")
	case err != nil:
		return a, c.noAnswer(a, err)
	case len(a.body) > maxBody:
		return a, a.unavailable("the answer is over 1 MiB")
	case a.status >= 200 && a.status < 300:
		return a, nil
	}
	return a, c.refusal(a)
}

// noAnswer is a request without an answer that was read to its end.
func (c *Client) noAnswer(a answer, err error) *Error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // url.Error repeats the URL
	}
	e := a.unavailable("no answer: " + clean(c.scrub(err.Error()), maxMessage))
	if timeout, ok := err.(interface{ Timeout() bool }); ok && timeout.Timeout() {
		e.Message = "no answer in time"
	}
	e.err = err
	return e
}

// redirectHost names where a redirect points, without path and query, which
// can hold a session or a return address.
func redirectHost(resp *http.Response) string {
	to, err := resp.Location()
	if err != nil || to.Host == "" {
		return ""
	}
	return " to " + clean(to.Scheme+"://"+to.Host, 100)
}

var idPattern = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)

// segment refuses an id that would change the path it is put into; whether it
// is a UUID is for the server to say.
func segment(thing, id string) error {
	if idPattern.MatchString(id) {
		return nil
	}
	return &Error{Code: InvalidArgument, Message: fmt.Sprintf("%s id %q is not a UUID", thing, clean(id, 64))}
}

// confirm refuses an answer about something else than was asked.
func (a answer) confirm(key, want, got string) error {
	if strings.EqualFold(want, got) {
		return nil
	}
	return a.unavailable(fmt.Sprintf("the answer's %s is not the one that was asked about", key))
}
