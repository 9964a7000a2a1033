"""The targets whose code this machine runs."""

from __future__ import annotations

from heterosis.backends.native.codegen.target import TARGETS, Target
from heterosis.backends.native.compile import compiler
from heterosis.runtime.errors import ArgumentError


def is_usable(target: Target) -> bool:
    try:
        return compiler._host_target.__wrapped__(target.name) is target
    except ArgumentError:
        return False


HERE = [target for target in TARGETS.values() if is_usable(target)]  # the best first
