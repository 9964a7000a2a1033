#!/usr/bin/env bash
# Runs exported models in every language that this machine has, and compares them to the bit with
# Python. With --install, what the languages need is installed first: from Debian and npm.
set -euo pipefail
cd "$(dirname "$0")/.."
if [[ ${1:-} == --install ]]; then
  as_root=$([[ $EUID == 0 ]] || echo sudo)
  node=$(command -v npm >/dev/null || echo nodejs npm) # others' packages of Node have npm inside
  # shellcheck disable=SC2086 # words, or nothing
  $as_root apt-get install -y build-essential perl libffi-platypus-perl $node \
    default-jdk-headless libjna-java scala r-base-core qemu-user gcc-aarch64-linux-gnu
  npm install --prefix frontends/javascript --no-package-lock --no-audit --no-fund
fi
exec "${PYTHON:-python3}" -m tests.frontends.check
