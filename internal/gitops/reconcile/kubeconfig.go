package reconcile

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"regexp"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// ClusterConfig says which cluster to talk to and where its credentials are.
type ClusterConfig struct {
	// Prefix begins the names of the environment variables, as in PROD of
	// PROD_CA_FILE: capitals, digits and underscores.
	Prefix string
	// Server is the https URL of the API server.
	Server string
	// Token restricts where the token may come from.
	Token TokenSource
	// Folder is where the private folder is made; "" means the system's own for
	// temporary files.
	Folder string
}

// TokenSource is where a token comes from. Whatever is allowed, exactly one
// variable must name a token.
type TokenSource string

const (
	// AnyToken allows both of the others.
	AnyToken TokenSource = ""
	// OIDCToken is <PREFIX>_OIDC_TOKEN or a file, <PREFIX>_OIDC_TOKEN_FILE.
	OIDCToken TokenSource = "oidc"
	// ServiceAccountToken is the file <PREFIX>_SERVICE_ACCOUNT_TOKEN_FILE, or that
	// of the Pod with <PREFIX>_SERVICE_ACCOUNT=1.
	ServiceAccountToken TokenSource = "service-account"
)

// Kubeconfig is a kubeconfig file in a folder of its own (modes 0600 and 0700).
type Kubeconfig struct {
	// Path is that of the file.
	Path string
}

// Close removes the file and its folder. It may be called again.
func (k *Kubeconfig) Close() error { return os.RemoveAll(filepath.Dir(k.Path)) }

// RESTConfig is the client configuration of the file alone: no variable, flag or
// other kubeconfig has a say in it.
func (k *Kubeconfig) RESTConfig() (*rest.Config, error) {
	raw, err := clientcmd.LoadFromFile(k.Path)
	if err != nil {
		return nil, err
	}
	return clientcmd.NewDefaultClientConfig(*raw, &clientcmd.ConfigOverrides{}).ClientConfig()
}

var prefixName = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`)

// BuildKubeconfig writes a kubeconfig for one cluster. The certificate authority
// is the PEM file <PREFIX>_CA_FILE or the base64 of such a file, <PREFIX>_CA_B64.
// A token that is in a file stays there and is read anew when it rotates. Errors
// are of type *Error (or the context's) and name variables, never what is in them.
// A nil env is the environment of the process.
func BuildKubeconfig(ctx context.Context, cfg ClusterConfig, env func(string) string) (*Kubeconfig, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !prefixName.MatchString(cfg.Prefix) {
		return nil, &Error{InvalidConfig, "Prefix", "the prefix of the variables must be capitals, digits and underscores, beginning with a capital, at most 64"}
	}
	if err := checkServer(cfg.Server); err != nil {
		return nil, err
	}
	if env == nil {
		env = os.Getenv
	}
	v := variables{cfg.Prefix, env}
	ca, err := v.certificates()
	if err != nil {
		return nil, err
	}
	user, err := v.user(cfg.Token)
	if err != nil {
		return nil, err
	}
	const name = "target"
	raw := clientcmdapi.NewConfig()
	raw.Clusters[name] = &clientcmdapi.Cluster{Server: cfg.Server, CertificateAuthorityData: ca}
	raw.AuthInfos[name] = user
	raw.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	raw.CurrentContext = name

	dir, err := os.MkdirTemp(cfg.Folder, "hecate-kubeconfig-") // mode 0700
	if err != nil {
		return nil, &Error{NotWritten, "Folder", "no private folder can be made for the kubeconfig: " + fileReason(err)}
	}
	k := &Kubeconfig{Path: filepath.Join(dir, "config")}
	if err := clientcmd.WriteToFile(*raw, k.Path); err != nil { // mode 0600
		_ = k.Close() // the error before it says more
		return nil, &Error{NotWritten, "Folder", "the kubeconfig can't be written: " + fileReason(err)}
	}
	return k, nil
}

func checkServer(server string) error {
	// An address may hold a password: no message quotes it.
	u, err := url.Parse(server)
	switch {
	case err != nil || u.Scheme != "https" || u.Hostname() == "":
		return &Error{InvalidConfig, "Server", "the server must be an https URL with a host, as in https://host:6443"}
	case u.User != nil:
		return &Error{InvalidConfig, "Server", "the server's URL must not hold a user or password"}
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return &Error{InvalidConfig, "Server", "the server's URL must not hold a query or fragment"}
	}
	return nil
}
