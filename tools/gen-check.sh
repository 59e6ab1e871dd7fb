#!/bin/sh
# Fails when src/gen is not what api/ generates.
set -eu
cd "$(dirname "$0")/.."
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
(cd api && buf generate --output "$fresh/api")
diff -r src/gen "$fresh/src/gen" || {
  echo "src/gen does not match api/: run \`npm run gen\` and commit the result" >&2
  exit 1
}
