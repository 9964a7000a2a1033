import importlib.util
import sys
from pathlib import Path

FRONTENDS = Path(__file__).resolve().parents[2] / "frontends"


def python_front_end():
    """The front end for Python, which is no part of the package that is tested."""
    path = FRONTENDS / "python" / "heterosis_library.py"
    specification = importlib.util.spec_from_file_location("heterosis_library", path)
    module = importlib.util.module_from_spec(specification)
    sys.modules["heterosis_library"] = module
    specification.loader.exec_module(module)
    return module
