#!/usr/bin/env bash
# Runs exported models in every language that this machine has, and compares them to the bit with
# Python: bash frontends/check.sh [--install]
# With --install, what is missing is installed first: from Debian, from npm, and Heterosis itself into
# an environment in build/frontends unless PYTHON (or python3) has it. Then all languages must be there.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
options=()
if [[ ${1:-} == --install ]]; then
  as_root=$([[ $EUID == 0 ]] || echo sudo)
  node=$(command -v npm >/dev/null || echo nodejs npm) # others' packages of Node have npm inside
  $as_root apt-get update
  # shellcheck disable=SC2086 # words, or nothing
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    build-essential python3-dev python3-venv perl libffi-platypus-perl $node \
    default-jdk-headless libjna-java scala r-base-core qemu-user gcc-aarch64-linux-gnu \
    libc6-dev-arm64-cross
  npm install --prefix frontends/javascript --no-package-lock --no-audit --no-fund
  if ! "$python" -c 'import heterosis' 2>/dev/null; then
    "$python" -m venv build/frontends
    python=$PWD/build/frontends/bin/python
    "$python" -m pip install --quiet .
  fi
  options+=(--all)
fi
exec "$python" -m tests.frontends.check "${options[@]}"
