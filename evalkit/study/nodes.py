"""What a strict reader of YAML or JSON hands on: plain values that know their line and column."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, field
from decimal import Decimal

from evalkit.errors import Fault, InputError

__all__ = ["Document", "Entry", "Mapping", "Node", "Refused", "Scalar", "Sequence", "join_path", "plain", "walk"]


class Refused:
    """Stands where a value was refused; its fault is reported already, so nobody reports it again."""

    def __repr__(self) -> str:
        return "refused"


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value. `text` is what the file says; `value` is what it means; `quoted` tells text from numbers."""

    line: int
    column: int
    value: str | int | Decimal | bool | Refused | None
    text: str
    quoted: bool


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list and where it starts."""

    line: int
    column: int
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One `key: value`, with the place of the key."""

    key: str
    line: int
    column: int
    node: Node


@dataclass(frozen=True, slots=True)
class Mapping:
    """Keys in the order of the file; each key occurs once."""

    line: int
    column: int
    entries: dict[str, Entry]


Node = Scalar | Sequence | Mapping


@dataclass(frozen=True, slots=True)
class Document:
    """One parsed file. `root` is None where the text could not be parsed to its end; then `faults` says why.

    `secrets` are the literal secrets that were taken out of it, by field path: never shown, never stored.
    """

    file: str
    text: str
    root: Node | None
    faults: tuple[Fault, ...]
    secrets: MappingOf[str, str] = field(default_factory=dict, repr=False, compare=False)

    def require(self) -> Node:
        """The root, or an `InputError` with every fault."""
        if self.faults or self.root is None:
            raise InputError(self.faults)
        return self.root


def join_path(parent: str, key: str | int) -> str:
    """The path of a field: `risk.low`, `router.thresholds[0]`, `models."demo/mid"` (no plain word: quoted)."""
    if isinstance(key, int):
        return f"{parent}[{key}]"
    if not key or not all(ch.isalnum() or ch in "_-" for ch in key):
        key = f'"{key}"'
    return f"{parent}.{key}" if parent else key


def plain(node: Node) -> object:
    """`node` as dict, list, str, int, Decimal, bool or None. A refused value becomes None."""
    if isinstance(node, Mapping):
        return {key: plain(entry.node) for key, entry in node.entries.items()}
    if isinstance(node, Sequence):
        return [plain(item) for item in node.items]
    return None if isinstance(node.value, Refused) else node.value


def walk(node: Node, path: str = "", key: str = "") -> Iterator[tuple[str, str, Scalar]]:
    """Every scalar below `node` as (path, nearest key, scalar), in the order of the file."""
    if isinstance(node, Mapping):
        for name, entry in node.entries.items():
            yield from walk(entry.node, join_path(path, name), name)
    elif isinstance(node, Sequence):
        for index, item in enumerate(node.items):
            yield from walk(item, join_path(path, index), key)
    else:
        yield path, key, node
