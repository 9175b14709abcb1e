"""Typed reading of one mapping of a parsed file. Every problem becomes a fault with line and field path."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

from evalkit.errors import Fault, visible
from evalkit.study import nodes
from evalkit.study.nodes import Node, Refused, Scalar, join_path

__all__ = ["Report", "Section", "clean_name", "shown"]


class Report:
    """Collects the faults of one file. `secrets`: what was taken out of it, by field path."""

    def __init__(self, file: str, faults: Sequence[Fault] = (), secrets: Mapping[str, str] | None = None) -> None:
        self.file = file
        self.secrets: Mapping[str, str] = secrets or {}
        self.faults: list[Fault] = list(faults)

    def add(self, line: int | None, field: str | None, what: str, fix: str) -> None:
        """Note one fault."""
        self.faults.append(Fault(what, fix, file=self.file, line=line, field=field or None))

    def in_order(self) -> list[Fault]:
        """All faults in the order of the file."""
        return sorted(self.faults, key=lambda fault: fault.line or 0)


def shown(node: Node) -> str:
    """A value as a message may show it."""
    if isinstance(node, nodes.Mapping):
        return "a mapping"
    if isinstance(node, nodes.Sequence):
        return "a list"
    return f'"{visible(node.text, 60)}"' if node.quoted or isinstance(node.value, str) else visible(node.text, 60)


def clean_name(text: str) -> str | None:
    """What is wrong with `text` as the name of a tier or risk class; None where it is fine."""
    if not text.strip():
        return "is blank"
    if text != text.strip():
        return f'"{visible(text, 60)}" has blanks at its start or end'
    if len(text) > 100:
        return f"has {len(text)} characters, and at most 100 are taken"
    if any(unicodedata.category(ch) in {"Cc", "Cf", "Zl", "Zp"} for ch in text):
        return f'"{visible(text, 60)}" holds an invisible character'
    return None


Explain = Callable[[str], tuple[str, str] | None]


class Section:
    """One mapping with the keys it may hold. Unknown keys are faults; `explain` knows names from elsewhere."""

    def __init__(
        self,
        report: Report,
        node: nodes.Mapping,
        path: str,
        known: Sequence[str],
        explain: Explain | None = None,
    ) -> None:
        self.report = report
        self.mapping = node
        self.path = path
        for key, entry in node.entries.items():
            if key in known:
                continue
            told = explain(key) if explain else None
            near = difflib.get_close_matches(key.lower(), known, n=1, cutoff=0.7)
            what, fix = told or (
                "is not a known key",
                f"write {near[0]}" if near else f"known here: {', '.join(known)}",
            )
            report.add(entry.line, join_path(path, visible(key, 60)), what, fix)

    def where(self, key: str) -> str:
        """The path of a field of this section."""
        return join_path(self.path, key)

    def line(self, key: str | None = None) -> int:
        """The line of `key`, or of the section where the key is missing."""
        entry = self.mapping.entries.get(key) if key is not None else None
        return entry.line if entry is not None else self.mapping.line

    def fault(self, key: str, what: str, fix: str) -> None:
        """Note a fault of a field."""
        self.report.add(self.line(key), self.where(key), what, fix)

    def has(self, key: str) -> bool:
        """The key is written, and not as `null`."""
        entry = self.mapping.entries.get(key)
        if entry is None:
            return False
        node = entry.node
        return not (isinstance(node, Scalar) and node.value is None and node.text == "null")

    def get(self, key: str, *, missing: str | None = None) -> Node | None:
        """The node of a key; None where it is absent, empty or refused.

        `missing` makes the key required: it is the fix that the fault names. A key with nothing behind it is
        always a fault, so that a limit cannot be lost by accident.
        """
        if not self.has(key):
            if missing is not None:
                self.fault(key, "is required", missing)
            return None
        node = self.mapping.entries[key].node
        if isinstance(node, Scalar):
            if isinstance(node.value, Refused):
                return None
            if node.value is None:
                self.fault(key, "has no value", missing or "write a value, or leave the key out")
                return None
        return node

    def text(self, key: str, *, missing: str | None = None) -> str | None:
        """Text, NFC."""
        node = self.get(key, missing=missing)
        if node is None:
            return None
        if not isinstance(node, Scalar) or not isinstance(node.value, str):
            fix = f'write "{visible(node.text, 60)}", in quotes' if isinstance(node, Scalar) else "write text"
            self.fault(key, f"is {shown(node)}, not text", fix)
            return None
        if not node.value.strip():
            self.fault(key, "is blank", missing or "write text, or leave the key out")
            return None
        return unicodedata.normalize("NFC", node.value)

    def choice(self, key: str, allowed: Sequence[str], *, missing: str | None = None) -> str | None:
        """One of `allowed`."""
        node = self.get(key, missing=missing)
        if node is None:
            return None
        if isinstance(node, Scalar) and isinstance(node.value, str) and node.value in allowed:
            return node.value
        near = difflib.get_close_matches(node.text.lower(), allowed, n=1) if isinstance(node, Scalar) else []
        fix = f"write {near[0]}" if near else f"write one of: {', '.join(allowed)}"
        self.fault(key, f"is {shown(node)}; allowed: {', '.join(allowed)}", fix)
        return None

    def flag(self, key: str) -> bool | None:
        """`true` or `false`."""
        node = self.get(key)
        if node is None:
            return None
        if isinstance(node, Scalar) and isinstance(node.value, bool):
            return node.value
        self.fault(key, f"is {shown(node)}, not a truth value", "write true or false")
        return None

    def decimal(
        self,
        key: str,
        *,
        low: Decimal | float | None = 0,
        high: Decimal | float | None = None,
        missing: str | None = None,
    ) -> Decimal | None:
        """A finite number in [low, high]."""
        node = self.get(key, missing=missing)
        return None if node is None else self.number_of(node, self.line(key), self.where(key), low=low, high=high)

    def number(
        self,
        key: str,
        *,
        low: float | None = 0,
        high: float | None = None,
        missing: str | None = None,
    ) -> float | None:
        """A finite number in [low, high], as float."""
        value = self.decimal(key, low=low, high=high, missing=missing)
        return None if value is None else float(value)

    def integer(self, key: str, *, low: int, high: int, missing: str | None = None) -> int | None:
        """A whole number in [low, high]."""
        value = self.decimal(key, low=low, high=high, missing=missing)
        if value is None:
            return None
        if value != value.to_integral_value():
            self.fault(key, f"is {value}, not a whole number", "write a whole number")
            return None
        return int(value)

    def number_of(
        self,
        node: Node,
        line: int,
        path: str,
        *,
        low: Decimal | float | None = None,
        high: Decimal | float | None = None,
    ) -> Decimal | None:
        """The number a node stands for; a fault where it is none or out of range."""
        if isinstance(node, Scalar) and isinstance(node.value, Refused):
            return None
        if not isinstance(node, Scalar) or isinstance(node.value, bool | str | Refused) or node.value is None:
            self.report.add(line, path, f"is {shown(node)}, not a number", _number_fix(node))
            return None
        value = Decimal(node.value)
        below = low is not None and value < Decimal(str(low))
        if below or (high is not None and value > Decimal(str(high))):
            span = _span(low, high)
            fix = f"write a number {span}"
            if low == 0 and high == 1 and 1 < value <= 100:
                fix += f"; {value} % is {(value / 100).normalize():f}"
            self.report.add(line, path, f"is {visible(node.text, 60)}, which is not {span}", fix)
            return None
        return value

    def section(
        self, key: str, known: Sequence[str], *, missing: str | None = None, like: str = ""
    ) -> Section | None:
        """The mapping behind a key, as a section of its own."""
        node = self.get(key, missing=missing)
        if node is None:
            return None
        if not isinstance(node, nodes.Mapping):
            self.fault(key, f"is {shown(node)}, not a mapping", f"write {like or 'key: value lines below it'}")
            return None
        return Section(self.report, node, self.where(key), known)


def _span(low: Decimal | float | None, high: Decimal | float | None) -> str:
    if low is not None and high is not None:
        return f"from {low:,} to {high:,}"
    if low is not None:
        return "0 or more" if low == 0 else f"{low:,} or more"
    return f"at most {high:,}"


def _number_fix(node: Node) -> str:
    """How to write what was meant as a number."""
    if not isinstance(node, Scalar):
        return "write one number"
    text = node.text.strip()
    if text.endswith("%"):
        share = _parsed(text[:-1])
        if share is not None:
            return f"write {(share / 100).normalize():f}"
    if node.quoted and _parsed(text) is not None:
        return f"write {visible(text, 60)} without quotes"
    if text.count(",") == 1 and _parsed(text.replace(",", ".")) is not None:
        return f"write {visible(text.replace(',', '.'), 60)}, with a point"
    if text[:1] in {"$", "€", "£", "₩"} and _parsed(text[1:]) is not None:
        return f"write {visible(text[1:].strip(), 60)}, without a currency sign"
    if text.lower().lstrip("+-") in {"nan", "inf", "infinity"}:
        return "write a finite number"
    return "write a plain number such as 0.05"


def _parsed(text: str) -> Decimal | None:
    from evalkit.study.scalars import plain_scalar

    value, _ = plain_scalar(text.strip())
    return Decimal(value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else None
