package reconcile

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const secretToken = "eyJhbGciOi.s3cr3t-t0ken"

// apiServer answers /version-like requests over TLS and keeps the last token.
func apiServer(t *testing.T) (server *httptest.Server, ca string, token *string) {
	t.Helper()
	token = new(string)
	server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*token = r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"NamespaceList","items":[]}`)) // the client notices
	}))
	t.Cleanup(server.Close)
	return server, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})), token
}

func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "secret-file-name")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestKubeconfig(t *testing.T) {
	server, ca, seen := apiServer(t)
	wrapped := base64.StdEncoding.EncodeToString([]byte(ca))
	wrapped = wrapped[:76] + "\n" + wrapped[76:] + "\n"
	pod := podToken
	podToken = write(t, secretToken)
	defer func() { podToken = pod }()
	tests := []struct {
		name   string
		env    map[string]string
		source TokenSource
	}{
		{"CA file, inline token", map[string]string{"PROD_CA_FILE": write(t, "# comment\n"+ca+ca), "PROD_OIDC_TOKEN": secretToken + "\n"}, AnyToken},
		{"CA in base64, token file", map[string]string{"PROD_CA_B64": wrapped, "PROD_OIDC_TOKEN_FILE": write(t, secretToken+"\n")}, OIDCToken},
		{"service account file", map[string]string{"PROD_CA_B64": wrapped, "PROD_SERVICE_ACCOUNT_TOKEN_FILE": write(t, secretToken)}, ServiceAccountToken},
		{"service account of the Pod", map[string]string{"PROD_CA_B64": wrapped, "PROD_SERVICE_ACCOUNT": "1"}, AnyToken},
		{"what is not allowed is not looked at", map[string]string{"PROD_CA_B64": wrapped, "PROD_SERVICE_ACCOUNT": "1", "PROD_OIDC_TOKEN": secretToken}, OIDCToken},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", "/nowhere") // must not have a say
			folder := t.TempDir()
			cfg := ClusterConfig{Prefix: "PROD", Server: server.URL, Token: tt.source, Folder: folder}
			k, err := BuildKubeconfig(t.Context(), cfg, func(name string) string { return tt.env[name] })
			if err != nil {
				t.Fatal(err)
			}
			for path, mode := range map[string]fs.FileMode{k.Path: 0o600, filepath.Dir(k.Path): 0o700} {
				info, err := os.Stat(path)
				if err != nil || info.Mode().Perm() != mode {
					t.Errorf("%s: %v, %v; want %v", path, info, err, mode)
				}
			}
			text, err := os.ReadFile(k.Path)
			if err != nil {
				t.Fatal(err)
			}
			inline := tt.env["PROD_OIDC_TOKEN"] != ""
			if strings.Contains(string(text), secretToken) != inline || strings.Contains(string(text), "tokenFile:") == inline {
				t.Errorf("a token of a file stays in the file:\n%s", text)
			}

			rc, err := k.RESTConfig()
			if err != nil {
				t.Fatal(err)
			}
			clients, err := kubernetes.NewForConfig(rc)
			if err != nil {
				t.Fatal(err)
			}
			*seen = ""
			if _, err := clients.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil || *seen != "Bearer "+secretToken {
				t.Errorf("the server saw another token (%d characters), error %v", len(*seen), err)
			}

			for range 2 {
				if err := k.Close(); err != nil {
					t.Error(err)
				}
			}
			left, err := os.ReadDir(folder)
			if err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

func TestKubeconfigErrors(t *testing.T) {
	_, ca, _ := apiServer(t)
	caFile, tokenFile := write(t, ca), write(t, secretToken)
	good := map[string]string{"P_CA_FILE": caFile, "P_OIDC_TOKEN": secretToken}
	keyPEM := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("secretkey")}))
	badCert := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("secretcert")}))
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	with := func(pairs ...string) map[string]string {
		m := map[string]string{}
		for k, v := range good {
			m[k] = v
		}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		return m
	}
	ok := ClusterConfig{Prefix: "P", Server: "https://host:6443"}
	server := func(s string) ClusterConfig { return ClusterConfig{Prefix: "P", Server: s} }
	tests := []struct {
		name     string
		cfg      ClusterConfig
		env      map[string]string
		code     ErrorCode
		variable string
	}{
		{"no prefix", ClusterConfig{Server: ok.Server}, good, InvalidConfig, "Prefix"},
		{"prefix in small letters", ClusterConfig{Prefix: "prod", Server: ok.Server}, good, InvalidConfig, "Prefix"},
		{"http", server("http://host"), good, InvalidConfig, "Server"},
		{"no server", server(""), good, InvalidConfig, "Server"},
		{"no host", server("https:///path"), good, InvalidConfig, "Server"},
		{"no URL", server("https://hunter2\x7f"), good, InvalidConfig, "Server"},
		{"password in the URL", server("https://user:hunter2@host"), good, InvalidConfig, "Server"},
		{"token in the URL", server("https://host?token=hunter2"), good, InvalidConfig, "Server"},
		{"unknown source of tokens", ClusterConfig{Prefix: "P", Server: ok.Server, Token: "vault"}, good, InvalidConfig, "Token"},
		{"no CA", ok, with("P_CA_FILE", ""), MissingVariable, "P_CA_FILE, P_CA_B64"},
		{"two CAs", ok, with("P_CA_B64", b64(ca)), ConflictingVariables, "P_CA_FILE, P_CA_B64"},
		{"CA file absent", ok, with("P_CA_FILE", caFile+"-hunter2"), Unreadable, "P_CA_FILE"},
		{"CA file a folder", ok, with("P_CA_FILE", filepath.Dir(caFile)), Unreadable, "P_CA_FILE"},
		{"CA file a device", ok, with("P_CA_FILE", os.DevNull), Unreadable, "P_CA_FILE"},
		{"CA file too large", ok, with("P_CA_FILE", write(t, strings.Repeat("x", maxCA+1))), Unreadable, "P_CA_FILE"},
		{"CA no PEM", ok, with("P_CA_FILE", write(t, "hunter2")), InvalidCA, "P_CA_FILE"},
		{"CA cut off", ok, with("P_CA_FILE", write(t, ca+ca[:len(ca)-40])), InvalidCA, "P_CA_FILE"},
		{"CA a key", ok, with("P_CA_FILE", write(t, ca+keyPEM)), InvalidCA, "P_CA_FILE"},
		{"CA no certificate", ok, with("P_CA_FILE", write(t, badCert)), InvalidCA, "P_CA_FILE"},
		{"CA no base64", ok, with("P_CA_FILE", "", "P_CA_B64", "hunter2!"), InvalidCA, "P_CA_B64"},
		{"CA base64 of no PEM", ok, with("P_CA_FILE", "", "P_CA_B64", b64("hunter2")), InvalidCA, "P_CA_B64"},
		{"CA not in base64 at all", ok, with("P_CA_FILE", "", "P_CA_B64", ca), InvalidCA, "P_CA_B64"},
		{"no token", ok, with("P_OIDC_TOKEN", ""), MissingVariable, "P_OIDC_TOKEN, P_OIDC_TOKEN_FILE, P_SERVICE_ACCOUNT, P_SERVICE_ACCOUNT_TOKEN_FILE"},
		{"two tokens", ok, with("P_OIDC_TOKEN_FILE", tokenFile), ConflictingVariables, "P_OIDC_TOKEN, P_OIDC_TOKEN_FILE"},
		{"token of white space", ok, with("P_OIDC_TOKEN", " \n"), InvalidToken, "P_OIDC_TOKEN"},
		{"token of two words", ok, with("P_OIDC_TOKEN", "hunter2 hunter2"), InvalidToken, "P_OIDC_TOKEN"},
		{"token with a header in it", ok, with("P_OIDC_TOKEN", "hunter2\r\nX: y"), InvalidToken, "P_OIDC_TOKEN"},
		{"token file absent", ok, with("P_OIDC_TOKEN", "", "P_OIDC_TOKEN_FILE", tokenFile+"-hunter2"), Unreadable, "P_OIDC_TOKEN_FILE"},
		{"token file empty", ok, with("P_OIDC_TOKEN", "", "P_OIDC_TOKEN_FILE", write(t, "")), InvalidToken, "P_OIDC_TOKEN_FILE"},
		{"token where a path belongs", ok, with("P_OIDC_TOKEN", "", "P_OIDC_TOKEN_FILE", secretToken), Unreadable, "P_OIDC_TOKEN_FILE"},
		{"service account of another value", ok, with("P_OIDC_TOKEN", "", "P_SERVICE_ACCOUNT", "hunter2"), InvalidToken, "P_SERVICE_ACCOUNT"},
		{"no folder", ClusterConfig{Prefix: "P", Server: ok.Server, Folder: filepath.Join(caFile, "x")}, good, NotWritten, "Folder"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.cfg.Folder == "" {
				tt.cfg.Folder = t.TempDir()
			}
			k, err := BuildKubeconfig(t.Context(), tt.cfg, func(name string) string { return tt.env[name] })
			var e *Error
			if !errors.As(err, &e) || k != nil || e.Code != tt.code || e.Variable != tt.variable {
				t.Fatalf("got %v; want %s of %s", err, tt.code, tt.variable)
			}
			for _, secret := range []string{"hunter2", secretToken, "secret", caFile, tokenFile} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the error quotes a value: %v", err)
				}
			}
			if left, err := os.ReadDir(tt.cfg.Folder); err == nil && len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := BuildKubeconfig(ctx, ok, func(name string) string { return good[name] }); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled context: %v", err)
	}
}
