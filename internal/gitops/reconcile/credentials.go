package reconcile

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// ErrorCode says why no kubeconfig could be built.
type ErrorCode string

// The codes of an Error.
const (
	// InvalidConfig: a field of ClusterConfig.
	InvalidConfig ErrorCode = "InvalidConfig"
	// MissingVariable: none of the variables that may name a thing is set.
	MissingVariable ErrorCode = "MissingVariable"
	// ConflictingVariables: more than one of them is set.
	ConflictingVariables ErrorCode = "ConflictingVariables"
	// InvalidCA: no base64, no PEM, or no certificates.
	InvalidCA ErrorCode = "InvalidCA"
	// InvalidToken: empty, too long, or of characters that no token has.
	InvalidToken ErrorCode = "InvalidToken"
	// Unreadable: a file that a variable names.
	Unreadable ErrorCode = "Unreadable"
	// NotWritten: the kubeconfig itself.
	NotWritten ErrorCode = "NotWritten"
)

// Error is a kubeconfig that could not be built.
type Error struct {
	Code ErrorCode
	// Variable is the variable, or the field of ClusterConfig, that is at fault.
	Variable string
	Message  string
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s: %s", e.Code, e.Variable, e.Message) }

const (
	maxCA    = 1 << 20
	maxToken = 64 << 10
)

// podToken is where a Pod finds the token of its service account.
var podToken = "/var/run/secrets/kubernetes.io/serviceaccount/token"

// variables reads the environment of one cluster.
type variables struct {
	prefix string
	env    func(string) string
}

// one gives the one variable that is set of those which may name a thing.
func (v variables) one(what string, suffixes ...string) (suffix, value string, err error) {
	names, set := []string{}, []string{}
	for _, s := range suffixes {
		names = append(names, v.prefix+s)
		if got := v.env(v.prefix + s); got != "" {
			set = append(set, v.prefix+s)
			suffix, value = s, got
		}
	}
	switch len(set) {
	case 1:
		return suffix, value, nil
	case 0:
		return "", "", &Error{MissingVariable, strings.Join(names, ", "), what + " is needed: set exactly one of these variables"}
	}
	return "", "", &Error{ConflictingVariables, strings.Join(set, ", "), what + " is named more than once: set exactly one of these variables"}
}

// certificates gives the certificate authority as PEM.
func (v variables) certificates() ([]byte, error) {
	suffix, value, err := v.one("the certificate authority of the cluster", "_CA_FILE", "_CA_B64")
	if err != nil {
		return nil, err
	}
	name := v.prefix + suffix
	var data []byte
	if suffix == "_CA_FILE" {
		if data, err = readFile(name, value, maxCA); err != nil {
			return nil, err
		}
	} else {
		// Tools wrap base64 at 64 or 76 characters.
		data, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(value), ""))
		if err != nil || len(data) > maxCA {
			return nil, &Error{InvalidCA, name, "the value is not the base64 of a PEM file of at most 1 MiB"}
		}
	}
	for rest, count := data, 0; ; count++ {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		if block == nil {
			// Text before and between certificates is usual, a broken one is not.
			if count == 0 || bytes.Contains(rest, []byte("-----BEGIN")) {
				return nil, &Error{InvalidCA, name, "no PEM certificates, or broken ones, are in it"}
			}
			return data, nil
		}
		if block.Type != "CERTIFICATE" {
			return nil, &Error{InvalidCA, name, "something other than a certificate is in it; only certificates belong there"}
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return nil, &Error{InvalidCA, name, fmt.Sprintf("certificate %d in it is not valid X.509", count+1)}
		}
	}
}

// user gives the credentials.
func (v variables) user(allowed TokenSource) (*clientcmdapi.AuthInfo, error) {
	oidc := []string{"_OIDC_TOKEN", "_OIDC_TOKEN_FILE"}
	account := []string{"_SERVICE_ACCOUNT", "_SERVICE_ACCOUNT_TOKEN_FILE"}
	var suffixes []string
	switch allowed {
	case AnyToken:
		suffixes = append(oidc, account...)
	case OIDCToken:
		suffixes = oidc
	case ServiceAccountToken:
		suffixes = account
	default:
		return nil, &Error{InvalidConfig, "Token", fmt.Sprintf("no such source of tokens; valid: %q, %q, or empty for any", OIDCToken, ServiceAccountToken)}
	}
	suffix, value, err := v.one("a token", suffixes...)
	if err != nil {
		return nil, err
	}
	name := v.prefix + suffix
	file := value
	switch suffix {
	case "_OIDC_TOKEN":
		token, err := checkToken(name, value)
		return &clientcmdapi.AuthInfo{Token: token}, err
	case "_SERVICE_ACCOUNT":
		if value != "1" {
			return nil, &Error{InvalidToken, name, "only the value 1 is known: use the token of the Pod's service account"}
		}
		file = podToken
	}
	data, err := readFile(name, file, maxToken)
	if err != nil {
		return nil, err
	}
	if _, err := checkToken(name, string(data)); err != nil {
		return nil, err
	}
	// A relative path would be read against the kubeconfig's folder.
	if file, err = filepath.Abs(file); err != nil {
		return nil, &Error{Unreadable, name, "the path of the file can't be made absolute"}
	}
	return &clientcmdapi.AuthInfo{TokenFile: file}, nil
}

// checkToken gives a token without the white space around it. What has other
// characters can't be sent as a header, and is usually a file that was mistaken.
func checkToken(name, token string) (string, error) {
	token = strings.TrimSpace(token)
	bad := strings.IndexFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
	if token == "" || len(token) > maxToken || bad >= 0 {
		return "", &Error{InvalidToken, name, "it holds no token: one word of printable ASCII, at most 64 KiB"}
	}
	return token, nil
}

// readFile reads a regular file of bounded size. Its path is a variable's value.
func readFile(name, path string, most int64) ([]byte, error) {
	unreadable := func(err error) error {
		return &Error{Unreadable, name, "the file can't be read: " + fileReason(err)}
	}
	// A pipe would wait for a writer when it is opened.
	if info, err := os.Stat(path); err != nil {
		return nil, unreadable(err)
	} else if !info.Mode().IsRegular() {
		return nil, &Error{Unreadable, name, "it does not name a regular file"}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return nil, unreadable(err)
	case int64(len(data)) > most:
		return nil, &Error{Unreadable, name, fmt.Sprintf("the file is larger than %d KiB", most>>10)}
	}
	return data, nil
}

// fileReason tells an error without the path in it.
func fileReason(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "it does not exist"
	case errors.Is(err, fs.ErrPermission):
		return "permission denied"
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return "an error of the file system"
}
