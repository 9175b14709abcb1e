"""Every sentence that the engine can put into a sign-off, found in its source, each with all its forms."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import product
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "evalkit"

SOURCES = {
    "workflows/evidence.py": ("_LABELS", "evidence_limits", "unanswered_sentences", "common_sentences"),
    "workflows/router_evidence.py": None,
    "workflows/label_audit_result.py": ("audit_sentences",),
    "workflows/reasoning_budget.py": ("_evidence_limits",),
    "signoff/document.py": ("_limits",),
    "routing/stop_rules.py": None,
    "routing/units.py": ("rule_text",),
    "reasoning/stop_rules.py": None,
}
"""Modules, and the functions or constants in each that make such sentences (None: all)."""

SLOT = "\x00"
"""Stands where a figure or a name comes in."""


def sentences() -> set[str]:
    """The sentences, with SLOT for what is put in; where a word depends on a number, one for each."""
    found: set[str] = set()
    for name, parts in SOURCES.items():
        tree = ast.parse((PACKAGE / name).read_text(encoding="utf-8"))
        for node in tree.body:
            targets = [t.id for t in getattr(node, "targets", []) if isinstance(t, ast.Name)]
            called = getattr(node, "name", None) or next(iter(targets), None)
            if parts is None or called in parts:
                found |= {form for text in _texts(node) for form in _forms(text)}
    return {text for text in found if len(text.split()) > 3}


def _texts(node: ast.AST) -> Iterator[ast.expr]:
    """Texts that are no part of another text, of a docstring or of an error."""
    if isinstance(node, ast.Raise):
        return
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        yield node
        return
    for child in ast.iter_child_nodes(node):
        yield from _texts(child)


def _forms(node: ast.expr) -> set[str]:
    if isinstance(node, ast.Constant):
        return {str(node.value)}
    if isinstance(node, ast.IfExp):
        return _forms(node.body) | _forms(node.orelse)
    if isinstance(node, ast.JoinedStr):
        return {"".join(parts) for parts in product(*(_forms(value) for value in node.values))}
    if isinstance(node, ast.FormattedValue):
        return _forms(node.value) if isinstance(node.value, ast.IfExp) else {SLOT}
    return {SLOT}
