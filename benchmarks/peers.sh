#!/usr/bin/env bash
# Makes interpreters with PyTorch, MXNet, JAX, TensorFlow, ONNX Runtime and OpenVINO from PyPI, and prints
# the settings that name them:
#   eval "$(bash benchmarks/peers.sh FOLDER)"
# MXNet's last release needs Python 3.11 or older: tests/differential/environment.sh looks for one.
set -euo pipefail
folder=$(realpath -m "${1:?usage: peers.sh FOLDER}")

make_environment() { # name, python, packages
  local target=$folder/$1 python=$2
  shift 2
  [[ -x $target/bin/python ]] || "$python" -m venv "$target"
  "$target/bin/pip" install --quiet "$@" >&2
}

make_environment torch python3 torch==2.13.0 numpy onnx onnxscript
echo "export HETEROSIS_TORCH_PYTHON=$folder/torch/bin/python"
mxnet=$(bash "$(dirname "${BASH_SOURCE[0]}")/../tests/differential/environment.sh" "$folder/mxnet")
echo "export HETEROSIS_MXNET_PYTHON=$mxnet"
make_environment jax python3 jax
echo "export HETEROSIS_JAX_PYTHON=$folder/jax/bin/python"
make_environment tensorflow python3 tensorflow-cpu
echo "export HETEROSIS_TENSORFLOW_PYTHON=$folder/tensorflow/bin/python"
make_environment onnx python3 onnxruntime openvino onnx
echo "export HETEROSIS_ONNX_PYTHON=$folder/onnx/bin/python"
