package cluster

import (
	"context"
	"io/fs"
	"net/http"
	"runtime/debug"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Mode is where the data of a Source comes from.
type Mode string

// Modes of a Source.
const (
	ModeLive     Mode = "live"
	ModeSnapshot Mode = "snapshot"
	ModeDemo     Mode = "demo"
)

// DefaultTimeout bounds one request to a live API server, its body included.
const DefaultTimeout = 15 * time.Second

// Source is a cluster to ask, or something that answers like one.
type Source struct {
	// Client reads the cluster. On a snapshot every write is refused with a
	// *ReadOnlyError; the demo takes those that its controller acts on.
	Client client.Client
	Mode   Mode
	// AnyKind makes a client for every kind that the API server has, by asking
	// it which there are; nil but for a live cluster.
	AnyKind func() (client.Client, error)
	// Cluster names the source: the kubeconfig's context or "in-cluster", the
	// base name of the snapshot's path, or "demo".
	Cluster string
	// Namespace is used where a question names none: Options.Namespace, else
	// the context's, else (snapshot and demo) the only namespace that holds
	// Hecate objects when it is the only one, else "default".
	Namespace string
	// Identity says who is asking: live, what the API server says that the
	// user is (SelfSubjectReview, asked once and remembered; errors are those
	// of a client call); else "snapshot" or "demo".
	Identity func(context.Context) (string, error)
	// Now is the source's clock, in UTC. It stands still for a snapshot and the
	// demo whose capture time is known; the demo's runs from its first write on.
	Now func() time.Time
	// Untimed: a snapshot does not say when it was captured, so that the clock
	// says nothing of how fresh its objects are.
	Untimed bool
	// Offline: nothing may open a connection on behalf of this source.
	Offline bool
	// Warnings are what a person should know about the source, such as an
	// unknown capture time.
	Warnings []string
	// HTTPClient reaches the demo's evidence server without a socket; nil
	// otherwise.
	HTTPClient *http.Client
}

// Options say which source to open. The zero value is the live cluster of the
// current context.
type Options struct {
	// Kubeconfig is the path of one file to use instead of those of the
	// KUBECONFIG variable (merged) or the home directory.
	Kubeconfig string
	// Context of the kubeconfig; empty: its current one.
	Context string
	// Namespace overrides the source's default namespace.
	Namespace string
	// Snapshot is the path of a file or a folder.
	Snapshot string
	// Demo opens DemoFS and DemoEvidence.
	Demo bool
	// DemoFS holds the demo's objects as a snapshot folder does.
	DemoFS fs.FS
	// DemoEvidence answers for the demo's evidence server; may be nil.
	DemoEvidence http.Handler
	// DemoController acts on the demo's objects; nil: the demo is read-only.
	DemoController Controller
	// DemoWall is the clock by which the demo's time passes; nil: time.Now.
	DemoWall func() time.Time
	// Now replaces the source's clock by an instant that stands still, for a
	// demo until its first write.
	Now *time.Time
	// Wrap sees every request to a live API server.
	Wrap func(http.RoundTripper) http.RoundTripper
	// Timeout of one request to a live API server; zero: DefaultTimeout.
	Timeout time.Duration
	// UserAgent of requests; empty: hecate-mcp/ and the build's version.
	UserAgent string
}

// Open returns the source that o asks for. It opens no connection. Errors are
// a *UsageError (options that exclude each other, a kubeconfig, context or
// path that does not exist), a *SnapshotError, or the context's.
func Open(ctx context.Context, o Options) (*Source, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	switch {
	case o.Demo:
		return openDemo(ctx, o)
	case o.Snapshot != "":
		return openSnapshot(ctx, o)
	default:
		return openLive(o)
	}
}

// check refuses options of two sources at once: taking one silently would
// answer about a cluster that nobody asked about.
func (o Options) check() error {
	if o.Demo && o.Snapshot != "" {
		return &UsageError{Message: "--demo and --snapshot exclude each other"}
	}
	source := ""
	switch {
	case o.Demo:
		source = "--demo"
	case o.Snapshot != "":
		source = "--snapshot"
	default:
		return nil
	}
	if o.Kubeconfig != "" {
		return &UsageError{Message: source + " and --kubeconfig exclude each other"}
	}
	if o.Context != "" {
		return &UsageError{Message: source + " and --context exclude each other"}
	}
	return nil
}

func (o Options) userAgent() string {
	if o.UserAgent != "" {
		return o.UserAgent
	}
	version := "devel"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		version = info.Main.Version
	}
	return "hecate-mcp/" + version
}

// clock returns o.Now when it is set, else captured when it is, else the wall
// clock.
func (o Options) clock(captured time.Time) func() time.Time {
	if o.Now != nil {
		captured = *o.Now
	}
	if captured.IsZero() && o.Now == nil {
		return func() time.Time { return time.Now().UTC() }
	}
	captured = captured.UTC()
	return func() time.Time { return captured }
}

// fixedIdentity is the identity of a source that has no users.
func fixedIdentity(name string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return name, nil }
}
