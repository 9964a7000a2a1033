"""The expressions that are compared with MXNet, eager and captured: functions, members, operators,
indexing, creation."""

import numpy
import pytest

import heterosis
from heterosis import np, npx
from heterosis.runtime.errors import CaptureError
from tests.capture.comparison import same
from tests.differential.expressions import DRAWN, SETUP, expressions

_TOGETHER = 12  # expressions in one program
# They need elements while Python runs, or have results whose shape depends on elements.
REFUSED = """
    np.nonzero(m); np.nonzero(b); np.unique(i); np.unique(v, return_index=True); np.bincount(i)
    m[b]; v[v > 0]; m.nonzero(); m.tolist(); i.tolist(); b.tolist(); v.item(2); w.item()
    m.item(1, 0); bool(w); float(w); int(w); 5 in m; npx.nonzero(m); npx.nonzero(b); '%.2f' % w
    f'{w:.3f}'
""".replace("\n", ";").split(";")
REFUSED = [text.strip() for text in REFUSED if text.strip()]
_SHOWN = ("repr(", "str(m)", "str(w)", "f'{v}'", "m.ctx")  # what stands for no elements shows none


def _space():
    space = {"np": np, "npx": npx, "onp": numpy}
    exec(SETUP, space)  # noqa: S102
    arrays = {name: value for name, value in space.items() if isinstance(value, np.ndarray)}
    return {name: value for name, value in space.items() if name not in arrays}, arrays


def _works(expression):
    others, arrays = _space()
    try:
        eval(expression, {**others, **arrays})
    except heterosis.runtime.errors.HeterosisError:
        return False
    return True


def _chunks():
    texts = [e for e in [*expressions(), *DRAWN] if e not in REFUSED and not e.startswith(_SHOWN)]
    return [texts[i : i + _TOGETHER] for i in range(0, len(texts), _TOGETHER)]


def _all_of(texts, others):
    def run(arrays):
        return {text: eval(text, {**others, **arrays}) for text in texts}

    return run


@pytest.mark.parametrize("texts", _chunks(), ids=lambda texts: texts[0])
def test_expressions(texts):
    others, _ = _space()
    texts = [text for text in texts if _works(text)]
    run = _all_of(texts, others)
    compiled = heterosis.hybridize(run)
    for _ in range(2):
        np.random.seed(5)
        wanted = run(_space()[1])
        np.random.seed(5)
        found = compiled(_space()[1])
        for text in texts:
            same(found[text], wanted[text], what=text)


@pytest.mark.parametrize("text", REFUSED)
def test_what_needs_elements_is_refused(text):
    others, arrays = _space()
    compiled = heterosis.hybridize(_all_of([text], others))
    with pytest.raises(CaptureError, match="More: docs/blockers"):
        compiled(arrays)
