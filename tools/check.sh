#!/bin/sh
# The fast inner loop: types, format and lint, generated code, unit tests. Needs nothing installed. `npm run check`.
set -eu
cd "$(dirname "$0")/.."
tsc --noEmit
biome check --error-on-warnings .
tools/gen-check.sh
vitest run --project unit "$@"
