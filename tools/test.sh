#!/bin/sh
# Everything: provides what is missing, then types, lint, generated code and all tests. `npm test`.
set -eu
cd "$(dirname "$0")/.."
tools/provide.sh
tsc --noEmit
biome check --error-on-warnings .
tools/gen-check.sh
tools/build.sh
vitest run "$@"
