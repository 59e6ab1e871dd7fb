#!/bin/sh
# Generates src/gen from api/. Run as `npm run gen`.
set -eu
cd "$(dirname "$0")/../api"
buf generate
