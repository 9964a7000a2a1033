#!/usr/bin/env bash
# Makes an environment with MXNet 1.9.1 in FOLDER, and prints its interpreter:
#   export HETEROSIS_MXNET_PYTHON=$(bash tests/differential/environment.sh FOLDER)
# MXNet's last release needs NumPy 1.23, which is built for Python 3.9 to 3.11. The first such
# interpreter is taken; PYTHON311 names one that is not found. Without any, says so and ends with 3.
set -euo pipefail
folder=$(realpath -m "${1:?usage: environment.sh FOLDER}")
requirements=$(dirname "$(realpath "${BASH_SOURCE[0]}")")/requirements.txt

suitable() { # interpreter: a stand-in such as pyenv's may be found on PATH and run nothing
  "$1" -c 'import ensurepip, sys, venv; sys.exit(not (3, 9) <= sys.version_info < (3, 12))' 2>/dev/null
}

interpreter() {
  local found
  for found in ${PYTHON311:-} python3.11 python3.10 python3.9 python3 /usr/bin/python3 \
      "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/python; do
    if suitable "$found"; then echo "$found"; return; fi
  done
  echo "no Python from 3.9 to 3.11 with venv for MXNet 1.9.1: looked at PYTHON311, PATH and pyenv" >&2
  return 3
}

if [[ ! -x $folder/bin/python ]]; then
  python=$(interpreter)
  "$python" -m venv "$folder"
fi
"$folder/bin/python" -m pip install --quiet --requirement "$requirements" >&2
echo "$folder/bin/python"
