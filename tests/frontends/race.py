"""Looks for data races in the pool of exported libraries, by ThreadSanitizer; needs clang 15 or
later.

python -m tests.frontends.race --seconds 10

The functions of a library are compiled as they are written but for what the sanitizer adds to each
reading and writing; the program that they run is a loop in C.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from heterosis.backends.native.codegen.target import FALLBACK
from heterosis.backends.native.export import facts, interface
from tests.frontends.check import HEADER

# What stands in for machine code of ours: loops like those of kernels, one inside of another.
_PROGRAM = r"""
#include <stdint.h>
#include "heterosis.h"
typedef struct { void** buffers; void* unused[2]; float* workspace; heterosis_pool* threads; } call;
char weights_[64] __asm__("heterosis.weights");
static void inner(void* context, int64_t begin, int64_t end, int64_t worker) {
  float* room = context;
  (void)worker;
  for (; begin < end; ++begin) room[begin] = room[begin] * 2 + 1;
}
static void outer(void* context, int64_t begin, int64_t end, int64_t worker) {
  call* c = context;
  (void)worker;
  for (; begin < end; ++begin) {
    c->threads->run(c->threads->state, inner, c->workspace + 64 * begin, 64, 16);
  }
}
int64_t program(call* c) __asm__("heterosis.own");
int64_t program(call* c) {
  float *from = c->buffers[0], *to = c->buffers[1];
  int turn, i;
  for (i = 0; i < 1024; ++i) c->workspace[i] = from[i];
  for (turn = 0; turn < 6; ++turn) {
    if (turn % 2) c->threads->run(c->threads->state, outer, c, 16, 1);
    else c->threads->run(c->threads->state, inner, c->workspace, 1024, 32);
  }
  for (i = 0; i < 1024; ++i) to[i] = c->workspace[i];
  return 0;
}
"""


def _functions(threads):
    """The functions of a library with one program, for the sanitizer."""
    x = facts.ArrayFacts("x", 7, ("1024",))
    buffers = ((facts.GIVEN, 0), (facts.MADE, 0))
    arrays = ((_word(4096), (_word(1024),)),) * 2
    case = facts.CaseFacts("heterosis.own", buffers, (), _word(4096), arrays, (), ())
    entry = facts.EntryFacts("own", (x,), (x,), (), (case,))
    level = facts.Level("x86-64", FALLBACK, (entry,))
    text, _ = interface.interface([level], "race", threads)
    text = text.replace(" hidden ", " ").replace("nounwind", "nounwind sanitize_thread")
    return re.sub(r"splat \((\S+) (\S+)\)", r"\2", text)


def _word(number):
    """A number as tables of libraries have it."""
    return 2 * number + 1


def main():
    """Compile and run the stress test with the sanitizer; the exit status is its."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", default="10")
    parser.add_argument("--clang", default="clang")
    wanted = parser.parse_args()
    if not shutil.which(wanted.clang):
        sys.exit(f"there is no {wanted.clang}")
    stress = Path(__file__).with_name("stress.c")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "functions.ll").write_text(_functions(threads=4))
        (folder / "program.c").write_text(_PROGRAM)
        files = [str(folder / "functions.ll"), str(folder / "program.c"), str(stress)]
        options = ["-g", "-O1", "-fsanitize=thread", "-DLINKED", f"-I{HEADER}", "-pthread"]
        options += ["-Wno-override-module"]
        built = str(folder / "stress")
        subprocess.run([wanted.clang, *options, *files, "-o", built], check=True)
        sys.exit(subprocess.run([built, "none", "8", wanted.seconds], check=False).returncode)


if __name__ == "__main__":
    main()
