"""The files that a rubric names, for the bundle. Nothing is graded with them, and no check is imported."""

from __future__ import annotations

from pathlib import Path

from evalkit.errors import InputError
from evalkit.study import nodes
from evalkit.study.strict_yaml import load_yaml

__all__ = ["RUBRIC_ROLES", "rubric_files"]

RUBRIC_ROLES = {
    "judge_prompt": ("judge", "prompt_file"),
    "human_grades": ("human", "path"),
    "schema": ("contract", "schema"),
}
"""Where a rubric names each file, by its role in a bundle."""


def rubric_files(rubric: Path) -> list[tuple[str, str, Path]]:
    """(role, name that the rubric uses, file) of those that are there.

    A rubric that cannot be read names none: a replay says what is wrong with it, and a study of recorded outcomes
    does not need it.
    """
    try:
        root = load_yaml(rubric).root
    except InputError:
        return []
    found: list[tuple[str, str, Path]] = []
    for role, (part, key) in RUBRIC_ROLES.items():
        node = _entry(_entry(root, part), key)
        if isinstance(node, nodes.Scalar) and isinstance(node.value, str):
            path = rubric.parent / node.value
            if path.is_file():
                found.append((role, node.value, path))
    return found


def _entry(node: nodes.Node | None, key: str) -> nodes.Node | None:
    if not isinstance(node, nodes.Mapping) or key not in node.entries:
        return None
    return node.entries[key].node
