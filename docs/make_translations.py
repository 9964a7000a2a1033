"""Carries a page's programs into its translations: python docs/make_translations.py [--check]

`docs/page.md` is the source of `docs/<language>/page.md`. Its programs are copied, unless they
differ in comments alone, which are translated; what they print, and console blocks, are copied as
they are. Prose is not written here, but whatever a translation must not change is compared: the
levels of headings, code within the prose, links, the rows of tables. A translation that differs in
these ends the process with a status.

With --check, nothing is written, and the exit status says whether anything would be.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path

from make_examples import BLOCK, ROOT

FOLDER = ROOT / "docs"
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"`[^`]+`")


def translations(folder: Path = FOLDER) -> dict[Path, Path]:
    """The pages of languages, each with the page that it is translated from."""
    found = sorted(folder.glob("??/*.md"))
    return {page: folder / page.name for page in found}


def languages(folder: Path = FOLDER) -> list[str]:
    """The codes of the languages that there are pages in, besides English."""
    return sorted({page.parent.name for page in translations(folder)})


def carried(source: str, translation: str) -> str:
    """A translation with the programs of its source, and what they print."""
    ours = list(BLOCK.finditer(source))
    theirs = list(BLOCK.finditer(translation))
    if len(ours) != len(theirs):
        raise SystemExit(f"{len(theirs)} blocks of code, expected {len(ours)} as in the source")
    pairs = iter(zip(ours, theirs, strict=True))

    def block(_: re.Match[str]) -> str:
        our, their = next(pairs)
        if our["language"] == their["language"] == "python" and _same(our["code"], their["code"]):
            return our[0].replace(our["code"], their["code"], 1)
        return our[0]

    return BLOCK.sub(block, translation)


def _same(code: str, other: str) -> bool:
    """Whether two programs differ in comments alone, and each statement stands in its line."""
    try:
        return ast.dump(ast.parse(code), include_attributes=True) == ast.dump(
            ast.parse(other), include_attributes=True
        )
    except SyntaxError:
        return False


def differences(source: Path, translation: Path) -> Iterator[str]:
    """What a translation's prose must have in common with its source's, and has not."""
    ours, theirs = _sections(source), _sections(translation)
    if [s[0] for s in ours] != [s[0] for s in theirs]:
        yield f"headings of levels {[s[0] for s in theirs]}, expected {[s[0] for s in ours]}"
        return
    for (_, heading, our), (_, title, their) in zip(ours, theirs, strict=True):
        for what, first, second in (
            ("code", _CODE.findall(our), _CODE.findall(their)),
            ("links to", _targets(our, source), _targets(their, translation)),
            ("lines of tables or lists", _marks(our), _marks(their)),
        ):
            if Counter(first) != Counter(second):
                missing, more = Counter(first) - Counter(second), Counter(second) - Counter(first)
                yield (
                    f"{title!r}, which translates {heading!r}: {what}: "
                    f"missing {sorted(missing)}, not in the source {sorted(more)}"
                )


def _sections(page: Path) -> list[tuple[int, str, str]]:
    """Level, heading and prose of each section."""
    prose = BLOCK.sub("", page.read_text())
    parts = re.split(r"^(#+) (.*)$", prose, flags=re.MULTILINE)[1:]
    return [
        (len(level), heading, text)
        for level, heading, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    ]


def _targets(prose: str, page: Path) -> list[str]:
    """What links lead to, from the folder of all pages: headings of the page itself, which are
    translated, by their number, and pages of this one's languages not at all."""
    found = []
    for target in _LINK.findall(prose):
        name, _, heading = target.partition("#")
        path = Path(os.path.normpath(page.parent / name)) if name else page
        if path.with_suffix("").name == page.stem:
            found += [str(_number(heading, page))] if not name else []
        else:
            found.append(f"{path.name}#{heading}")
    return found


def _number(anchor: str, page: Path) -> int:
    """Which of a page's headings a link leads to."""
    for i, (_, heading, _) in enumerate(_sections(page)):
        if re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") == anchor:
            return i
    raise SystemExit(f"{page}: no heading is #{anchor}")


def _marks(prose: str) -> list[str]:
    return re.findall(r"^(\||- |\d+\. )", prose, flags=re.MULTILINE)


def main() -> int:
    """Write or check all translations; the exit status."""
    status = 0
    for page, source in translations().items():
        name, before = page.relative_to(ROOT), page.read_text()
        after = carried(source.read_text(), before)
        if after != before and "--check" not in sys.argv:
            page.write_text(after)
        elif after != before:
            status = 1
            print(f"{name} has other programs: run python docs/make_translations.py")
            lines = before.splitlines(), after.splitlines()
            print("\n".join(unified_diff(*lines, str(name), "its source", lineterm="")))
        for difference in differences(source, page):
            status = 1
            print(f"{name}: {difference}")
    return status


if __name__ == "__main__":
    sys.exit(main())
