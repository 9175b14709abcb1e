"""The files that a rubric names, for the bundle. Nothing is graded with them, and no check is imported."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from evalkit.errors import InputError
from evalkit.grading.entry_point import PythonCheck
from evalkit.study import nodes
from evalkit.study.strict_yaml import load_yaml

__all__ = ["CHECK", "RUBRIC_ROLES", "is_module", "rubric_files"]

RUBRIC_ROLES = {
    "judge_prompt": ("judge", "prompt_file"),
    "human_grades": ("human", "path"),
    "schema": ("contract", "schema"),
}
"""Where a rubric names each file, by its role in a bundle."""

CHECK = "check"
"""The role of the source of a rubric's checks in Python, in front of the module: `check.<module>`."""

_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", re.ASCII)


def is_module(name: str) -> bool:
    """Whether this can be the name of a module."""
    return len(name) <= 120 and _MODULE.fullmatch(name) is not None


def rubric_files(rubric: Path) -> list[tuple[str, str, Path | None]]:
    """(role, name that the rubric uses, file) of those that are there; None for a check in an installed module.

    A rubric that cannot be read names none: a replay says what is wrong with it, and a study of recorded outcomes
    does not need it.
    """
    try:
        root = load_yaml(rubric).root
    except InputError:
        return []
    found: list[tuple[str, str, Path | None]] = []
    for role, (part, key) in RUBRIC_ROLES.items():
        name = _text(_entry(_entry(root, part), key))
        if name is not None:
            path = rubric.parent / name
            if path.is_file():
                found.append((role, name, path))
    modules: dict[str, Path | None] = {}
    for function in _functions(root):
        module = function.partition(":")[0]
        if is_module(module):
            modules[module] = PythonCheck(function, rubric.parent).source()
    found += [(f"{CHECK}.{module}", f"{module}.py", path) for module, path in sorted(modules.items())]
    return found


def _functions(node: nodes.Node | None) -> Iterator[str]:
    """The functions of all checks in Python, wherever they stand."""
    if isinstance(node, nodes.Mapping):
        function = _text(_entry(node, "function"))
        if _text(_entry(node, "kind")) == "python" and function is not None:
            yield function
        for entry in node.entries.values():
            yield from _functions(entry.node)
    elif isinstance(node, nodes.Sequence):
        for item in node.items:
            yield from _functions(item)


def _text(node: nodes.Node | None) -> str | None:
    return node.value if isinstance(node, nodes.Scalar) and isinstance(node.value, str) else None


def _entry(node: nodes.Node | None, key: str) -> nodes.Node | None:
    if not isinstance(node, nodes.Mapping) or key not in node.entries:
        return None
    return node.entries[key].node
