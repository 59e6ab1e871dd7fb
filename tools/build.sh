#!/bin/sh
# Emits dist/ for the container image and the npm package. Run as `npm run build`.
set -eu
cd "$(dirname "$0")/.."
rm -rf dist
tsc -p tsconfig.build.json
cp -R src/gen dist/gen
chmod +x dist/cli/main.js
