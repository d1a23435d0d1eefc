# The real API server of test-cluster and bench. See test/README.md.
.PHONY: control-plane
control-plane: ## etcd and kube-apiserver into test/.cache, from source; about ten minutes the first time
	GO="$(GO)" test/controlplane/build.sh
