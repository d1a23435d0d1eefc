#!/usr/bin/env bash
# Builds etcd and kube-apiserver, at the versions of the go.mod beside this file,
# and Flux's source-controller and kustomize-controller, at those of flux/go.mod,
# into test/.cache, unless what is there was built from the same versions by the
# same Go, or KUBEBUILDER_ASSETS names a folder that has the first two. A first
# build takes about a quarter of an hour on two cores; a check that nothing changed
# a moment.
set -euo pipefail
cd "$(dirname "$0")"
mkdir -p ../.cache
cache=$(cd ../.cache && pwd)

if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
	if [ -x "$KUBEBUILDER_ASSETS/etcd" ] && [ -x "$KUBEBUILDER_ASSETS/kube-apiserver" ]; then
		echo "control plane: using etcd and kube-apiserver of $KUBEBUILDER_ASSETS (KUBEBUILDER_ASSETS)"
	else
		echo "control plane: KUBEBUILDER_ASSETS=$KUBEBUILDER_ASSETS lacks etcd or kube-apiserver; the tests will look there and find none. Unset it to build them, or name a folder that has both." >&2
		exit 1
	fi
fi

export CGO_ENABLED=0
go=${GO:-go}
toolchain=$("$go" version)

# build NAME PACKAGE MODULE LDFLAGS: one binary of the module of the working
# directory, if its stamp is not the wanted one.
build() {
	local name=$1 package=$2 version started stamp
	version=$("$go" list -m -f '{{.Version}}' "$3")
	stamp="$name $version, $toolchain, $(cat go.mod go.sum | cksum), $4"
	if [ -x "$cache/$name" ] && [ "$(cat "$cache/$name.stamp" 2>/dev/null)" = "$stamp" ]; then
		echo "control plane: $name $version is up to date in test/.cache"
		return
	fi
	echo "control plane: building $name $version with $toolchain"
	started=$SECONDS
	# A name of its own until it is whole: an interrupted build must not pass for a finished one.
	"$go" build -p 2 -trimpath -ldflags "-s -w ${4//VERSION/$version}" -o "$cache/$name.part$$" "$package"
	mv "$cache/$name.part$$" "$cache/$name"
	echo "$stamp" >"$cache/$name.stamp"
	echo "control plane: built $name in $((SECONDS - started)) s"
}

if [ -z "${KUBEBUILDER_ASSETS:-}" ]; then
	# Without a version a kube-apiserver calls itself v0.0.0, and clients ask.
	v=k8s.io/component-base/version
	build etcd go.etcd.io/etcd/server/v3 go.etcd.io/etcd/server/v3 ""
	build kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes \
		"-X $v.gitVersion=VERSION -X $v.gitMajor=1 -X $v.gitMinor=36 -X $v.gitTreeState=clean"
fi
cd flux
rm -rf "$cache/flux-crds.part"
mkdir "$cache/flux-crds.part"
for name in source-controller kustomize-controller; do
	build $name github.com/fluxcd/$name github.com/fluxcd/$name ""
	cp "$("$go" list -m -f '{{.Dir}}' github.com/fluxcd/$name)"/config/crd/bases/*.yaml "$cache/flux-crds.part"
done
chmod -R u+w "$cache/flux-crds.part" # the module cache is read-only
rm -rf "$cache/flux-crds"
mv "$cache/flux-crds.part" "$cache/flux-crds"
