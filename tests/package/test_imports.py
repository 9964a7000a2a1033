"""Imports point downwards and run in no circle, those that only a text names among them."""

from functools import cache
from pathlib import Path

import pytest

from tests.package.imports import FILES, Import, Unseen, circle, every

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10, where it comes with pytest
    import tomli as tomllib

# Texts that name modules come from elsewhere.
ELSEWHERE = {
    "heterosis.mxnet.compat.alias": "what is imported as `mxnet...`, under the name here",
    "heterosis.np.fallback": "NumPy's modules",
}

# What is imported late though it stands above, or beside.
UPWARDS = {
    ("heterosis.autograd", "heterosis.mxnet.symbols.history"): "`get_symbol` gives a symbol",
    ("heterosis.recordio", "heterosis.image.codec"): "records of images pack and unpack images",
}


pytestmark = pytest.mark.lengthy  # all sources are read


@cache
def _imports() -> list[Import | Unseen]:
    return list(every())


# What has folders of its own that stand in layers.
ROOMS = ["heterosis.backends.native", "heterosis.ops"]


@cache
def _layers(container: str) -> list[list[list[str]]]:
    """From the top: what stands side by side, in groups that must not import each other."""
    whole = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    contracts = whole["tool"]["importlinter"]["contracts"]
    (contract,) = (
        c for c in contracts if c["type"] == "layers" and c.get("containers", [""]) == [container]
    )
    inside = f"{container}." if container else ""
    return [
        [[inside + name for name in group.split(" : ")] for group in line.split(" | ")]
        for line in contract["layers"]
    ]


@cache
def _place(module: str, container: str = "") -> tuple[int, int] | None:
    """The layer that a module stands in, and the group; None for what stands beside the layers."""
    for i, layer in enumerate(_layers(container)):
        for j, group in enumerate(layer):
            if any(module == name or module.startswith(f"{name}.") for name in group):
                return i, j
    return None


def _is_down(one: Import, container: str = "") -> bool:
    importer, imported = _place(one.importer, container), _place(one.imported, container)
    if importer is None or imported is None:
        assert container, f"{one}: a module stands in no layer"
        return True
    return imported[0] > importer[0] or imported == importer


def _room(module: str) -> str:
    """What the layers call the folder, or the part of one, that a module stands in."""
    place = _place(module)
    assert place is not None, f"{module} stands in no layer"
    layer, group = place
    return next(n for n in _layers("")[layer][group] if f"{module}.".startswith(f"{n}."))


def _seen() -> list[Import]:
    """All imports but those of the package itself, which offers what it has, and of the entry."""
    tops = ("heterosis", "heterosis.__main__")
    found = [i for i in _imports() if isinstance(i, Import) and i.importer not in tops]
    return [i for i in found if i.imported != "heterosis"]


def test_all_imports_by_a_text_are_seen():
    unseen = [i for i in _imports() if isinstance(i, Unseen)]
    assert {i.importer for i in unseen} == set(ELSEWHERE), unseen
    by_text = {i.importer for i in _imports() if isinstance(i, Import) and i.by_text}
    assert {"heterosis", "heterosis.ir", "heterosis.autograd"} <= by_text


@pytest.mark.parametrize("late", [False, True])
def test_imports_point_downwards(late):
    wrong = []
    for one in _seen():
        listed = one.late and (one.importer, one.imported) in UPWARDS
        if one.late == late and not _is_down(one) and not listed:
            wrong.append(f"{one.importer} imports {one.imported}")
    assert not wrong


@pytest.mark.parametrize("container", ROOMS)
def test_rooms_import_downwards(container):
    folders = {file.parent for file in FILES.values()} - {FILES[container].parent}
    rooms = {f.name for f in folders if f.parent == FILES[container].parent}
    layers = _layers(container)
    assert rooms == {name.split(".")[-1] for layer in layers for group in layer for name in group}
    assert not [one for one in _seen() if not _is_down(one, container)]


@pytest.mark.parametrize("container", ["heterosis", *ROOMS, "heterosis.backends.native.codegen"])
def test_folders_import_each_other_in_no_circle(container):
    edges = set()
    for one in _seen():
        importer, imported = (_inside(name, container) for name in (one.importer, one.imported))
        listed = (one.importer, one.imported) in UPWARDS
        if importer and imported and importer != imported and not listed:
            edges.add((importer, imported))
    assert edges and not circle(edges)


def _inside(module: str, container: str) -> str:
    """The folder of `container` that a module stands in, if any; right below the top, the room of
    the layers."""
    if container == "heterosis":
        return _room(module)
    if not module.startswith(f"{container}."):
        return ""
    folder = ".".join(module.split(".")[: container.count(".") + 2])
    return folder if FILES[folder].name == "__init__.py" else ""


def test_modules_import_each_other_in_no_circle_while_they_are_imported():
    edges = {(one.importer, one.imported) for one in _seen() if not one.late}
    # A package is there for what stands in it; its own texts lead to what stands in it.
    assert not circle({(a, b) for a, b in edges if a != b and not a.startswith(f"{b}.")})


def test_what_is_listed_is_there():
    pairs = {(i.importer, i.imported) for i in _seen() if i.late}
    assert pairs >= set(UPWARDS)
    assert set(FILES) >= set(ELSEWHERE)


def test_a_circle_is_found():
    assert circle({("a", "b"), ("b", "c"), ("c", "b")}) == ["b", "c"]
    assert circle({("a", "b"), ("b", "c"), ("a", "c")}) == []
