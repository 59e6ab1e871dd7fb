#!/bin/sh
# Generates src/gen from api/ and config/rules.schema.json from the grammar. Run as `npm run gen`.
set -eu
cd "$(dirname "$0")/../api"
buf generate
node ../tools/rules-schema.ts
