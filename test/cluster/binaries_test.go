package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindBinaries(t *testing.T) {
	full, half := t.TempDir(), t.TempDir()
	for _, path := range []string{filepath.Join(full, "etcd"), filepath.Join(full, "kube-apiserver"), filepath.Join(half, "etcd")} {
		if err := os.WriteFile(path, nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "test"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(full, filepath.Join(root, cacheDir)); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, assets, root, wantDir, wantErr string }{
		{name: "cache", root: root, wantDir: filepath.Join(root, cacheDir)},
		{name: "variable", assets: full, root: t.TempDir(), wantDir: full},
		{name: "variable before cache", assets: half, root: root, wantErr: filepath.Join(half, "kube-apiserver")},
		{name: "nothing built", root: t.TempDir(), wantErr: "make control-plane"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv(assetsEnv, tc.assets)
			got, err := findBinaries(tc.root)
			switch {
			case tc.wantErr != "":
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("error %v, want one with %q", err, tc.wantErr)
				}
			case err != nil:
				t.Error(err)
			case got != binaries{etcd: filepath.Join(tc.wantDir, "etcd"), apiServer: filepath.Join(tc.wantDir, "kube-apiserver")}:
				t.Errorf("got %+v, want those of %s", got, tc.wantDir)
			}
		})
	}
}
