package ops

import (
	"errors"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/internal/fides"
)

// Ops answers questions about the promotions of a cluster.
type Ops struct {
	// Client reads the cluster: live, a snapshot or the demo, all the same here.
	Client client.Client

	// DefaultNamespace answers for a user who may not list over all namespaces.
	DefaultNamespace string

	// Now is the clock, injectable for tests and for snapshots.
	Now func() metav1.Time

	// Untimed says that Now is not the time of the objects: nothing is then
	// called stale for its age.
	Untimed bool

	// FidesServer is the evidence server of Gates that name none.
	FidesServer string

	// DialFides makes a client of the evidence server; nil means that nothing
	// may be asked (a snapshot): evidence is then what the objects recorded.
	DialFides func(fides.Config) (*fides.Client, error)
}

// New returns an Ops over the client, with the wall clock, asking the evidence
// servers that the Gates name, else the one of FIDES_SERVER_URL: the variable
// that the controller reads too.
func New(c client.Client) *Ops {
	return &Ops{
		Client:      c,
		FidesServer: os.Getenv("FIDES_SERVER_URL"),
		Now:         func() metav1.Time { return metav1.NewTime(time.Now().UTC()) },
		DialFides:   fides.New,
	}
}

func (o *Ops) now() time.Time { return o.Now().Time }

// NotFoundError is a named object that is not there. Candidates are the names
// that are, nearest first.
type NotFoundError struct {
	Object     Object
	Candidates []string
}

func (e *NotFoundError) Error() string {
	where := ""
	if e.Object.Namespace != "" {
		where = " in namespace " + e.Object.Namespace
	}
	return fmt.Sprintf("%s %q not found%s", e.Object.Kind, e.Object.Name, where)
}

// AmbiguousError is a name that fits more than one object.
type AmbiguousError struct {
	Kind       string
	Name       string
	Candidates []Object
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%s %q fits %d objects", e.Kind, e.Name, len(e.Candidates))
}

// RefusedError is an action that the rules do not allow: an answer, not a
// failure. Reason is the rule's code.
type RefusedError struct {
	Reason string
	Detail string
	Object *Object
	// Refusals are all obstacles of a refused plan, the first is this one.
	Refusals []Refusal
}

func (e *RefusedError) Error() string { return e.Reason + ": " + e.Detail }

// IsNotFound reports whether err is a NotFoundError.
func IsNotFound(err error) bool {
	var e *NotFoundError
	return errors.As(err, &e)
}

// IsAmbiguous reports whether err is an AmbiguousError.
func IsAmbiguous(err error) bool {
	var e *AmbiguousError
	return errors.As(err, &e)
}

// IsRefused reports whether err is a RefusedError.
func IsRefused(err error) bool {
	var e *RefusedError
	return errors.As(err, &e)
}

// AllNamespaces asks every read for all namespaces.
const AllNamespaces = ""
