"""`python -m heterosis <command>`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from heterosis.runtime.errors import FormatError, HeterosisError


@dataclass(frozen=True)
class Command:
    """A word on the command line: what it says of itself, its arguments, what it does."""

    name: str
    help: str
    run: Callable[[argparse.Namespace], None]
    add_arguments: Callable[[argparse.ArgumentParser], None] = lambda parser: None


def _demo(arguments: argparse.Namespace) -> None:
    from heterosis import demo

    demo.run(arguments.calls, arguments.chart, arguments.peers)


def _demo_arguments(parser: argparse.ArgumentParser) -> None:
    help = "calls in each timing (default: 1000)"
    parser.add_argument("--calls", type=_count, default=1000, help=help)
    help = "file for the bar chart (default: heterosis-demo.png)"
    parser.add_argument("--chart", default="heterosis-demo.png", metavar="FILE", help=help)
    help = "measure other libraries too, where they are installed; takes longer"
    parser.add_argument("--peers", action="store_true", help=help)


def _count(text: str) -> int:
    if text.isdecimal() and int(text):
        return int(text)
    raise argparse.ArgumentTypeError(f"{text} is no number of times; expected 1 or more")


def _names(arguments: argparse.Namespace) -> None:
    from heterosis.mxnet.compat import coverage

    print(coverage.table())


def _export(arguments: argparse.Namespace) -> None:
    import heterosis

    path = arguments.output or os.path.splitext(arguments.program)[0]
    if arguments.format == "onnx":
        path = path if path.endswith(".onnx") else f"{path}.onnx"
        net = heterosis.load(arguments.program)
        print(heterosis.models.to_onnx(net, path, weights=arguments.weights))
        return
    options = {name: getattr(arguments, name) for name in ("target", "threads", "weights")}
    if arguments.program.endswith(".onnx"):
        net = heterosis.models.from_onnx(arguments.program)
        inputs, axes = net.samples(dict(arguments.size or ()))
        written = heterosis.export(net, path, *inputs, dynamic=axes, **options)
    else:
        written = heterosis.export(heterosis.load(arguments.program), path, **options)
    print(*written, sep="\n")


def _size(text: str) -> tuple[str, int]:
    name, _, number = text.partition("=")
    if name and number.isdecimal():
        return name, int(number)
    raise argparse.ArgumentTypeError(f"{text} is no size; expected a name and a number, as n=1")


def _export_arguments(parser: argparse.ArgumentParser) -> None:
    help = "a file that heterosis.save has written, or an ONNX file, which ends in .onnx"
    parser.add_argument("program", help=help)
    help = (
        "fix a size that an ONNX file leaves open, by its name there, as batch=1; may be repeated"
    )
    parser.add_argument("--size", action="append", type=_size, metavar="NAME=N", help=help)
    help = "native: a shared library that needs no Python, and its header; onnx: an ONNX file"
    parser.add_argument("--format", choices=["native", "onnx"], default="native", help=help)
    help = "a path that ends in my_mlp, for libmy_mlp.so and my_mlp.h (default: the program's)"
    parser.add_argument("--output", metavar="PATH", help=help)
    help = "a kind of processors, as x86-64-v3; may be repeated (default: this one's)"
    parser.add_argument("--target", action="append", metavar="KIND", help=help)
    help = "how many threads may share a run (default: 1)"
    parser.add_argument("--threads", type=_count, default=1, help=help)
    help = "where parameters are: inside the library (default), or in a file beside it"
    parser.add_argument("--weights", choices=["inside", "file"], default="inside", help=help)


def _inspect(arguments: argparse.Namespace) -> None:
    from heterosis.backends.heterosis_library import Library, LibraryError
    from heterosis.backends.served import served

    try:
        library = Library(arguments.library)
    except (LibraryError, OSError) as error:
        raise FormatError(str(error)) from error
    size = f"{os.path.getsize(arguments.library):,} bytes"
    shared = f", {library.threads} threads" if library.threads > 1 else ""
    print(f"{library.name}: {size}, whole, runs here as {library.target}{shared}")
    for entry in library.entries.values():
        print(entry)
        for line in served(entry):
            print(f"  {line}")
        if entry.workspace_bytes is not None:
            print(f"  {entry.workspace_bytes:,} bytes of memory in a run")


def _inspect_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("library", help="a file that heterosis.export has written, lib<name>.so")


def _ir(arguments: argparse.Namespace) -> None:
    from heterosis.autograd.listing import COLUMNS
    from heterosis.ir import listing

    print(listing.text(COLUMNS))


def _run(arguments: argparse.Namespace) -> None:
    from heterosis.mxnet.compat import script

    script.run(arguments.script, arguments.arguments)


def _run_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("script", help="a Python file; its `import mxnet` gives Heterosis")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what the script gets")


COMMANDS = (
    Command("demo", "a network: imperative, hybridized, exported, timed", _demo, _demo_arguments),
    Command(
        "export",
        "a saved program, or an ONNX file, as a library without Python",
        _export,
        _export_arguments,
    ),
    Command("inspect", "what an exported library computes", _inspect, _inspect_arguments),
    Command("ir", "the primitives that programs are made of", _ir),
    Command("names", "MXNet's public names, and which of them exist here", _names),
    Command("run", "a script written for MXNet, unchanged", _run, _run_arguments),
)


def parser() -> argparse.ArgumentParser:
    """The command line, from `COMMANDS`."""
    made = argparse.ArgumentParser(prog="python -m heterosis", description=__doc__)
    words = made.add_subparsers(dest="command", required=True, metavar="command")
    for command in COMMANDS:
        word = words.add_parser(command.name, help=command.help, description=command.help)
        command.add_arguments(word)
        word.set_defaults(run=command.run)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; the exit status."""
    given = parser().parse_args(arguments)
    try:
        given.run(given)
    except HeterosisError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # a reader such as `head` has seen enough
        sys.stderr.close()
        return 0
    return 0
