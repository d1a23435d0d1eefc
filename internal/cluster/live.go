package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // users' kubeconfigs name these
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// inCluster is the Cluster of a source without a kubeconfig.
const inCluster = "in-cluster"

// openLive makes a client of the cluster that a kubeconfig or the Pod's service
// account names. It reads files and opens no connection.
func openLive(o Options) (*Source, error) {
	cfg, name, namespace, err := restConfig(o)
	if err != nil {
		return nil, err
	}
	cfg.UserAgent = o.userAgent()
	// The library's five requests a second made the board of fifty Gates take
	// minutes upstream. The API server has its own fairness among clients, and
	// what a question costs is a constant number of LISTs: no second limit here.
	cfg.QPS = -1
	cfg.Timeout = o.Timeout
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	// Deprecation warnings of the API server are for whoever wrote the objects,
	// and the default handler wants a global logger.
	cfg.WarningHandlerWithContext = rest.NoWarnings{}
	if o.Wrap != nil {
		cfg.Wrap(o.Wrap)
	}
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, &UsageError{Message: fmt.Sprintf("cannot use the credentials or certificates of %s", name), Err: err}
	}
	c, err := client.New(cfg, client.Options{HTTPClient: httpClient, Scheme: Scheme(), Mapper: mapper()})
	if err != nil {
		return nil, &UsageError{Message: fmt.Sprintf("cannot make a client of %s", name), Err: err}
	}
	s := &Source{
		Client:    c,
		Mode:      ModeLive,
		Cluster:   name,
		Namespace: namespace,
		Identity:  whoAmI(c),
		Now:       o.clock(time.Time{}),
		AnyKind:   func() (client.Client, error) { return client.New(cfg, client.Options{HTTPClient: httpClient}) },
	}
	if o.Now != nil {
		s.Warnings = append(s.Warnings, fmt.Sprintf("the clock of a live cluster was set by hand to %s", s.Now().Format(time.RFC3339)))
	}
	return s, nil
}

// restConfig returns how to connect, the source's name and its namespace.
func restConfig(o Options) (cfg *rest.Config, name, namespace string, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	rules.MigrationRules = nil     // would copy a file in the user's home
	rules.WarnIfAllMissing = false // told as an error below
	looked := o.Kubeconfig
	if looked == "" {
		looked = strings.Join(rules.Precedence, string(os.PathListSeparator))
	}
	raw, err := rules.Load()
	if err != nil {
		return nil, "", "", &UsageError{Message: "cannot read the kubeconfig " + looked, Err: err}
	}
	if len(raw.Contexts) == 0 && o.Kubeconfig == "" && o.Context == "" {
		return inClusterConfig(o, looked)
	}
	name, err = contextName(raw, o.Context, looked)
	if err != nil {
		return nil, "", "", err
	}
	overrides := &clientcmd.ConfigOverrides{CurrentContext: name}
	overrides.Context.Namespace = o.Namespace
	loader := clientcmd.NewNonInteractiveClientConfig(*raw, name, overrides, rules)
	if cfg, err = loader.ClientConfig(); err != nil {
		return nil, "", "", &UsageError{Message: fmt.Sprintf("cannot use context %q of the kubeconfig %s", name, looked), Err: err}
	}
	if namespace, _, err = loader.Namespace(); err != nil {
		return nil, "", "", &UsageError{Message: fmt.Sprintf("cannot read the namespace of context %q of the kubeconfig %s", name, looked), Err: err}
	}
	return cfg, name, namespace, nil
}

// contextName returns the context to use: asked, else the current one.
func contextName(raw *clientcmdapi.Config, asked, looked string) (string, error) {
	valid := make([]string, 0, len(raw.Contexts))
	for n := range raw.Contexts {
		valid = append(valid, n)
	}
	slices.Sort(valid)
	name := asked
	if name == "" {
		name = raw.CurrentContext
	}
	switch {
	case len(valid) == 0:
		return "", &UsageError{Message: "there is no context in the kubeconfig " + looked}
	case name == "":
		return "", &UsageError{Message: "the kubeconfig " + looked + " has no current context; name one with --context", ValidValues: valid}
	case raw.Contexts[name] == nil:
		return "", &UsageError{Message: fmt.Sprintf("context %q is not in the kubeconfig %s", name, looked), ValidValues: valid}
	}
	return name, nil
}

// inClusterConfig uses the Pod's service account.
func inClusterConfig(o Options, looked string) (*rest.Config, string, string, error) {
	cfg, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, "", "", &UsageError{Message: "there is no kubeconfig with a context (looked at " + looked + ") and this is not a Pod; use --kubeconfig, --snapshot or --demo"}
	}
	if err != nil {
		return nil, "", "", &UsageError{Message: "cannot use the Pod's service account", Err: err}
	}
	namespace := o.Namespace
	if namespace == "" {
		namespace = podNamespace("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	}
	return cfg, inCluster, namespace, nil
}

// podNamespace is the namespace of the Pod as its service account's volume
// states it; a volume without it means "default", as for kubectl.
func podNamespace(path string) string {
	data, err := os.ReadFile(path)
	if ns := strings.TrimSpace(string(data)); err == nil && ns != "" {
		return ns
	}
	return "default"
}

// whoAmI asks the API server who the caller is, once: a name cannot change
// during a process, and an error is not remembered. One caller asks at a time,
// the others wait no longer than their own context.
func whoAmI(c client.Client) func(context.Context) (string, error) {
	turn := make(chan struct{}, 1)
	name := ""
	return func(ctx context.Context) (string, error) {
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-ctx.Done():
			return "", ctx.Err()
		}
		if name != "" {
			return name, nil
		}
		var review authenticationv1.SelfSubjectReview
		if err := c.Create(ctx, &review); err != nil {
			return "", fmt.Errorf("asking the API server who the caller is: %w", err)
		}
		name = review.Status.UserInfo.Username
		if name == "" {
			return "", errors.New("the API server did not say who the caller is: SelfSubjectReview without a user name")
		}
		return name, nil
	}
}
