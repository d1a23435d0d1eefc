# Targets for developers; .ci/run calls test, test-cluster and test-clients.
# Two cores are enough for everything here.
GO ?= go
BIN := bin/hecate-mcp

.PHONY: build test test-race test-cluster test-clients lint generate generate-schemas bench demo clean
build: ## the binary
	$(GO) build -trimpath -o $(BIN) ./cmd/hecate-mcp

test: ## everything that needs Go and git only
	$(GO) vet ./...
	$(GO) test ./cmd/... ./internal/... ./examples/... ./test/estate/... ./test/impactcheck/...

test-race: ## the same under the race detector (needs a C compiler), without the largest hostile repositories
	$(GO) test -race -short -timeout 20m ./internal/... ./cmd/... ./examples/...

include test/controlplane.mk

test-cluster: control-plane ## against a real kube-apiserver and Flux; the first build takes about a quarter of an hour
	HECATE_MCP_REQUIRE_CLUSTER=1 $(GO) test -count=1 -p 1 -timeout 40m ./test/...

test-clients: build ## against MCP clients that nobody here wrote (npm)
	test/clients/run.sh $(BIN) --demo

lint: ## staticcheck, pinned in a module of its own
	$(GO) tool -modfile=hack/tools/go.mod staticcheck ./...

generate: ## deep copies, CRDs and schemas from the code
	$(GO) tool -modfile=hack/tools/go.mod controller-gen object:headerFile=hack/tools/boilerplate.txt paths=./internal/api/...
	$(GO) tool -modfile=hack/tools/go.mod controller-gen crd paths=./internal/api/... output:crd:dir=internal/api/crds
	$(GO) run ./cmd/hecate-mcp schema --dir schemas

generate-schemas: ## the embedded schemas of Kubernetes and Flux from their modules (downloads them)
	cd hack/schemas && $(GO) run . -out ../../internal/schema/archives

bench: control-plane ## ratios and counts, printed side by side
	$(GO) test -p 1 -timeout 30m -run '^$$' -bench . -benchtime 3x ./test/bench/...

demo: build ## from the question to a crossing, on the embedded estate
	$(BIN) call explain_gate --demo --arg gate=production
	$(BIN) call preview_promotion --demo --arg gate=staging --arg namespace=shop --arg bundle=storefront-de4370fba351
	$(BIN) promote staging --demo -n shop --bundle storefront-de4370fba351 --watch --yes

clean:
	rm -rf bin
