"""Puts results into a document: python benchmarks/report.py RESULTS.json ... --into DOCUMENT.md

The results are what benchmarks write with --json, in files of their names. Between the document's
marks, the tables of these benchmarks are replaced, and those of others stay; a picture for every
benchmark goes into the folder `static` beside it. A document may have several such places, each for
a kind of processor with a name: --processor AVX-512.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import runner

_TITLES = {
    "mlp": "A small network, one row at a time",
    "models": "Inference of whole models",
    "more_models": "Inference of more models",
    "training": "One step of training",
    "eager": "Imperative operations",
}
_OWN, _OTHER = "#1a7f5a", "#9aa5b1"


def marks(processor: str) -> list[str]:
    """What stands before the results of a kind of processor, and behind them."""
    place = " ".join(["results", *processor.split()])
    return [f"<!-- {place}: {end} -->" for end in ("begin", "end")]


def title_of(name: str, processor: str) -> str:
    """The title of a benchmark's tables for a kind of processor."""
    return f"{_TITLES[name]}, {processor}" if processor else _TITLES[name]


def sections_in(text: str, processor: str) -> dict[str, str]:
    """The benchmarks whose tables a text has, and these."""
    titles = {f"## {title_of(name, processor)}": name for name in _TITLES}
    found: dict[str, list[str]] = {}
    name = None
    for line in text.splitlines():
        name = titles.get(line, name)
        if name:
            found.setdefault(name, []).append(line)
    return {name: "\n".join(lines).strip() for name, lines in found.items()}


def section(name: str, content: dict, folder: Path, processor: str) -> str:
    """A benchmark's tables, below a picture of them."""
    title, results = title_of(name, processor), content["results"]
    file = "_".join([name, *processor.lower().replace("-", "").split()]) + ".png"
    facts = ", ".join(f"{key}: {value}" for key, value in content["machine"].items())
    picture(results, title, folder / file)
    parts = [
        f"## {title}",
        f"`python benchmarks/{name}.py` on {facts}.",
        f"![{title}, as bars]({folder.name}/{file})",
    ]
    for result in results:
        parts += [f"### {title}: {threads(result)}", runner.markdown(result)]
        if result["first"]:
            parts.append(runner.first_calls(result))
    return "\n\n".join(parts)


def threads(result: dict) -> str:
    count = result["threads"]
    return "one thread" if count == 1 else f"{count} threads"


def ratios(result: dict) -> dict[str, float]:
    """For every case, the fastest other's time in units of ours."""
    found = {}
    for case, rounds in result["seconds"].items():
        medians = {name: runner.summary(r)["median"] for name, r in rounds.items()}
        own = [time for name, time in medians.items() if name.startswith("heterosis")]
        others = [t for n, t in medians.items() if not n.startswith(("heterosis", runner.PEAK))]
        if own and others:
            found[case] = min(others) / min(own)
    return found


def times(result: dict) -> dict[str, float]:
    """For every contender, the microseconds of the only case."""
    (rounds,) = result["seconds"].values()
    return {name: 1e6 * runner.summary(r)["median"] for name, r in rounds.items()}


def picture(results: list[dict], title: str, path: Path) -> None:
    """Of many cases the ratios, longer than 1 being a win; of one case the times."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    single = all(len(result["seconds"]) == 1 for result in results)
    found = [(times if single else ratios)(result) for result in results]
    rows = list(dict.fromkeys(row for values in found for row in values))
    figure, axes = pyplot.subplots(
        figsize=(8, 1.2 + 0.28 * len(rows) * len(results)), layout="constrained"
    )
    thick = 0.8 / len(results)
    for i, (values, result) in enumerate(zip(found, results, strict=True)):
        for row, value in values.items():
            at = rows.index(row) + (i - (len(results) - 1) / 2) * thick
            ours = row.startswith("heterosis") if single else value >= 1
            axes.barh(at, value, 0.9 * thick, color=_OWN if ours else _OTHER, alpha=1 - 0.4 * i)
            text = f"{value:.1f} µs" if single else f"{value:.2f}"
            label = axes.annotate(f" {text}, {threads(result)}", (value, at), fontsize=8)
            label.set(va="center", bbox={"color": "white", "pad": 0})  # in front of the line
    axes.set_yticks(range(len(rows)), rows)
    axes.invert_yaxis()
    axes.margins(x=0.3)
    axes.set_title(title)
    if single:
        axes.set_xscale("log")
        axes.set_xlabel("microseconds a call (logarithmic)")
    else:
        axes.set_xlim(left=0)
        axes.axvline(1, color="black", linewidth=0.8, zorder=1.5)
        axes.set_xlabel("time of the fastest other library / our time (more than 1: we are faster)")
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="+", type=Path)
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument("--processor", default="", help="the kind of processor, if not the first")
    given = parser.parse_args()
    for file in given.results:
        if file.stem not in _TITLES:
            parser.error(f"{file} is of no benchmark with tables: expected {', '.join(_TITLES)}")
    begin, end = marks(given.processor)
    before, rest = given.into.read_text().split(begin)
    old, after = rest.split(end)
    folder = given.into.parent / "static"
    found = sections_in(old, given.processor)
    for file in given.results:
        content = json.loads(file.read_text())
        found[file.stem] = section(file.stem, content, folder, given.processor)
    sections = [found[name] for name in _TITLES if name in found]
    given.into.write_text("\n\n".join([f"{before}{begin}", *sections, f"{end}{after}"]))


if __name__ == "__main__":
    main()
