# The real API server of test-cluster and bench. See test/README.md.
.PHONY: control-plane
control-plane: ## etcd, kube-apiserver and Flux into test/.cache, from source; about a quarter of an hour the first time
	GO="$(GO)" test/controlplane/build.sh
