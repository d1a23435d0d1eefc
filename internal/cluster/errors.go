package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Code is what an error of a client call, of Open or of ListAll means.
type Code string

// Codes that Classify returns.
const (
	// CodeNotFound: the object does not exist; its kind does.
	CodeNotFound Code = "NotFound"
	// CodeForbidden: the user is known and may not do this.
	CodeForbidden Code = "Forbidden"
	// CodeUnauthenticated: the API server does not accept the credentials.
	CodeUnauthenticated Code = "Unauthenticated"
	// CodeKindNotInstalled: the API server does not serve the kind.
	CodeKindNotInstalled Code = "KindNotInstalled"
	// CodeConflict: the object changed meanwhile, or exists already.
	CodeConflict Code = "Conflict"
	// CodeTimeout: no answer in time, or the caller stopped waiting.
	CodeTimeout Code = "Timeout"
	// CodeUnavailable: no connection, or a server or proxy that cannot answer.
	CodeUnavailable Code = "Unavailable"
	// CodeExpired: a continue token or resource version that is too old.
	CodeExpired Code = "Expired"
	// CodeInvalidArgument: the request (or an option) is wrong.
	CodeInvalidArgument Code = "InvalidArgument"
	// CodeTooLarge: a snapshot or a request beyond its size limit.
	CodeTooLarge Code = "TooLarge"
	// CodeRefused: a write to a source that is read-only.
	CodeRefused Code = "Refused"
	// CodeInternal: anything else.
	CodeInternal Code = "Internal"
)

// UsageError is an option that cannot be used. ValidValues are what could
// stand in its place, when that is a list.
type UsageError struct {
	Message     string
	ValidValues []string
	Err         error
}

func (e *UsageError) Error() string {
	msg := e.Message
	if e.Err != nil {
		msg += ": " + e.Err.Error()
	}
	if len(e.ValidValues) > 0 {
		msg += "; valid: " + strings.Join(e.ValidValues, ", ")
	}
	return msg
}

func (e *UsageError) Unwrap() error { return e.Err }

// ReadOnlyError is a write to a snapshot, or one that the demo does not take.
type ReadOnlyError struct {
	// Mode of the source, Verb as in RBAC, Kind and Name of the object.
	Mode       Mode
	Verb       string
	Kind, Name string
	// Takes says which writes the source takes; empty: none.
	Takes string
}

func (e *ReadOnlyError) Error() string {
	if e.Takes != "" {
		return fmt.Sprintf("cannot %s %s %q: the %s does not take that; valid: %s", e.Verb, e.Kind, e.Name, e.Mode, e.Takes)
	}
	return fmt.Sprintf("cannot %s %s %q: the %s is read-only", e.Verb, e.Kind, e.Name, e.Mode)
}

// SnapshotError is a file of a snapshot that cannot be used. Code is
// InvalidArgument or TooLarge. Document counts the documents of the file that
// are not empty, from 1; Line counts the file's lines, from 1; zero means that
// the whole file is meant.
type SnapshotError struct {
	File           string
	Document, Line int
	Code           Code
	Err            error
}

func (e *SnapshotError) Error() string {
	where := "snapshot file " + e.File
	if e.Document > 0 {
		where += fmt.Sprintf(", document %d", e.Document)
	}
	if e.Line > 0 {
		where += fmt.Sprintf(", line %d", e.Line)
	}
	return where + ": " + e.Err.Error()
}

func (e *SnapshotError) Unwrap() error { return e.Err }

// Classify says what an error means, by its type and status, never by the
// server's prose. It returns "" for nil. The shapes are those of a real
// kube-apiserver and, where a server sent no Status, of client-go's own.
func Classify(err error) Code {
	if err == nil {
		return ""
	}
	var (
		usage    *UsageError
		readOnly *ReadOnlyError
		snapshot *SnapshotError
		status   apierrors.APIStatus
		timeout  net.Error
	)
	switch {
	case errors.As(err, &usage):
		return CodeInvalidArgument
	case errors.As(err, &readOnly):
		return CodeRefused
	case errors.As(err, &snapshot):
		return snapshot.Code
	case meta.IsNoMatchError(err):
		return CodeKindNotInstalled
	case errors.As(err, &status):
		return classifyStatus(status.Status())
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return CodeTimeout
	case errors.As(err, &timeout) && timeout.Timeout():
		return CodeTimeout
	case isTransport(err):
		return CodeUnavailable
	default:
		return CodeInternal
	}
}

func classifyStatus(s metav1.Status) Code {
	switch s.Reason {
	case metav1.StatusReasonTimeout, metav1.StatusReasonServerTimeout:
		return CodeTimeout
	}
	switch code := int(s.Code); {
	case code == http.StatusNotFound:
		return classifyNotFound(s)
	case code == http.StatusUnauthorized:
		return CodeUnauthenticated
	case code == http.StatusForbidden:
		return CodeForbidden
	case code == http.StatusConflict:
		return CodeConflict
	case code == http.StatusGone:
		return CodeExpired
	case code == http.StatusRequestTimeout, code == http.StatusGatewayTimeout:
		return CodeTimeout
	case code == http.StatusRequestEntityTooLarge:
		return CodeTooLarge
	case code == http.StatusTooManyRequests, code >= 500:
		return CodeUnavailable
	case code >= 400:
		return CodeInvalidArgument
	default:
		return CodeInternal
	}
}

// noSuchPath is the whole body of Go's own 404, which is how kube-apiserver
// answers a path of a group, version or resource that it does not serve.
const noSuchPath = "404 page not found"

// classifyNotFound keeps three kinds of 404 apart. An API server that knows
// the kind names the object. One that does not answers with noSuchPath, from
// which client-go makes a Status with the cause UnexpectedServerResponse (and,
// on a GET, the name that was asked for) or, through an aggregated API, with a
// Status without a name. Any other page is not an API server's: a proxy, or a
// wrong address.
func classifyNotFound(s metav1.Status) Code {
	if s.Details == nil {
		return CodeKindNotInstalled
	}
	for _, cause := range s.Details.Causes {
		if cause.Type != metav1.CauseTypeUnexpectedServerResponse {
			continue
		}
		if strings.TrimSpace(cause.Message) == noSuchPath {
			return CodeKindNotInstalled
		}
		return CodeUnavailable
	}
	if s.Details.Name == "" {
		return CodeKindNotInstalled
	}
	return CodeNotFound
}

// isTransport reports whether err says that the server could not be reached or
// stopped in the middle of an answer.
func isTransport(err error) bool {
	var (
		urlErr *url.Error
		opErr  *net.OpError
		dnsErr *net.DNSError
		tlsErr *tls.CertificateVerificationError
		stream http2.StreamError
		goAway http2.GoAwayError
		conn   http2.ConnectionError
	)
	return errors.As(err, &urlErr) || errors.As(err, &opErr) || errors.As(err, &dnsErr) || errors.As(err, &tlsErr) ||
		errors.As(err, &stream) || errors.As(err, &goAway) || errors.As(err, &conn) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}
