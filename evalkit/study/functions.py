"""A function of the user's own, which a study or a rubric names as `module:function`."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any

__all__ = ["load_function"]


def load_function(function: str, path: Path | None, own: str) -> Any:
    """What `function` names: in the file `path`, or without one in a module that can be imported.

    A file is imported under the name `own`, so that a checks.py beside a rubric hides no module called checks.
    Importing runs the user's code, which may raise anything; `ImportError` and `AttributeError` where nothing is
    found.
    """
    module_name, _, attribute = function.partition(":")
    found: Any
    if path is None:
        found = importlib.import_module(module_name)
    else:
        spec = importlib.util.spec_from_file_location(own, path)
        if spec is None or spec.loader is None:
            raise ImportError(f"{path.name} cannot be loaded")
        found = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found)
    for name in attribute.split("."):
        found = getattr(found, name)
    return found
