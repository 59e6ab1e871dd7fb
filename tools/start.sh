#!/bin/sh
# Runs weir from its sources, with the example rules unless RUNTIME_ROOT says where others are. `npm start`.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
if [ -z "${RUNTIME_ROOT:-}" ]; then
  export RUNTIME_ROOT="$here/../config" RUNTIME_APPDIRECTORY=rules
fi
# Nobody balances to it, so Ctrl-C need not wait.
export WEIR_DRAIN="${WEIR_DRAIN:-0}"
exec node --import "$here/require-node.mjs" "$@" "$here/../src/cli/main.ts" serve
