"""A strict YAML reader: one document, UTF-8, unique keys, no anchors, merges or tags, no guessed types.

Every node knows its line and column, and the faults of a whole file are found in one run. Values that YAML
readers turn into something else are named with how to write them (`scalars`).
"""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalkit.errors import Fault, visible
from evalkit.study.files import line_of, read_text
from evalkit.study.nodes import Document, Entry, Mapping, Node, Refused, Scalar, Sequence, join_path
from evalkit.study.scalars import plain_scalar

if TYPE_CHECKING:
    from ruamel.yaml.error import MarkedYAMLError

__all__ = ["load_yaml", "parse_yaml", "read_yaml"]

_MAX_DEPTH = 32
_SEPARATORS = {"\x85": "U+0085", "\u2028": "U+2028", "\u2029": "U+2029"}


def read_yaml(path: str | Path) -> Node:
    """The root node of a YAML file, or an `InputError` with every fault in it."""
    return load_yaml(path).require()


def load_yaml(path: str | Path) -> Document:
    """The file as a `Document` whose `faults` are for the caller to report together with its own."""
    return parse_yaml(read_text(path), str(path))


def parse_yaml(text: str, file: str) -> Document:
    """`text` as a `Document`; `file` is the name that messages give."""
    faults = _characters(text, file)
    if faults:
        return Document(file, text, None, tuple(faults))
    composer = _Composer(text, file)
    root = composer.compose()
    return Document(file, text, root, tuple(sorted(composer.faults, key=lambda fault: fault.line or 0)))


def _characters(text: str, file: str) -> list[Fault]:
    """Characters that no study needs and that hide what a reader sees."""
    faults = []
    for index, ch in enumerate(text):
        if ch >= " " and ch < "\x7f":
            continue
        if ch in _SEPARATORS:
            what = f"an invisible line separator ({_SEPARATORS[ch]})"
        elif unicodedata.category(ch) in {"Cc", "Cs"} and ch not in "\t\n\r":
            what = f"a control character (U+{ord(ch):04X})"
        else:
            continue
        faults.append(Fault(f"holds {what}", "delete it", file=file, line=line_of(text, index)))
        if len(faults) == 20:
            break
    return faults


class _UnreadableError(Exception):
    """The text cannot be read past this point."""


class _Composer:
    """Builds nodes from the parser's events; stops at the first place where the text is not YAML."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.faults: list[Fault] = []
        self._events: Iterator[Any] = iter(())

    def compose(self) -> Node | None:
        from ruamel.yaml import YAML
        from ruamel.yaml.error import MarkedYAMLError, YAMLError

        self._events = YAML(typ="safe", pure=True).parse(io.StringIO(self.text))
        try:
            return self._document()
        except _UnreadableError:
            return None
        except MarkedYAMLError as error:
            self._syntax(error)
        except (YAMLError, ValueError, ArithmeticError, LookupError) as error:
            # The parser lets a few errors of its own through, for example on the escape "\UFFFFFFFF".
            self._fault(None, f"is not YAML ({type(error).__name__})", "check the quotes and escapes in it")
        return None

    def _fault(self, line: int | None, what: str, fix: str, path: str | None = None) -> None:
        self.faults.append(Fault(what, fix, file=self.file, line=line, field=path or None))

    def _syntax(self, error: MarkedYAMLError) -> None:
        mark = error.problem_mark or error.context_mark
        index = getattr(mark, "index", None)
        line = None if mark is None else mark.line + 1 if index is None else line_of(self.text, index)
        if index is not None:
            start = max(self.text.rfind("\n", 0, index), self.text.rfind("\r", 0, index)) + 1
            end = min(at for at in (self.text.find("\n", index), len(self.text)) if at >= 0)
            source = self.text[start:end]
            if "\t" in source and "'\\t'" in str(error.problem):
                self._fault(line, "a tab stands where YAML wants spaces", "put spaces in place of the tab")
                return
        what = "is not YAML: " + visible(error.problem or error.context or "cannot be parsed", 200)
        if mark is not None:
            what += f" (column {mark.column + 1})"
        self._fault(line, what, "check the indentation, colons, brackets and quotes of this and the line above")

    def _document(self) -> Node | None:
        root: Node | None = None
        documents = 0
        for event in self._events:
            kind = type(event).__name__
            if kind == "DocumentStartEvent":
                documents += 1
                line = event.start_mark.line + 1
                if documents > 1:
                    self._fault(
                        line, "a second document starts here", "keep one document in a file; delete the ---"
                    )
                    raise _UnreadableError
                if event.version or event.tags:
                    self._fault(1, "has a % directive", "delete the line that starts with %")
            elif kind in {"ScalarEvent", "SequenceStartEvent", "MappingStartEvent", "AliasEvent"}:
                root = self._node(event, "", 0, 1)
        if root is None or (isinstance(root, Scalar) and root.value is None and not root.quoted):
            self._fault(1, "is empty", "write the keys that this kind of file needs")
            raise _UnreadableError
        return root

    def _node(self, event: Any, path: str, depth: int, key_line: int) -> Node:
        kind = type(event).__name__
        line, column = event.start_mark.line + 1, event.start_mark.column + 1
        if kind == "AliasEvent":
            self._fault(
                line, f"the alias *{visible(event.anchor)} copies another place", "write the value out", path
            )
            return Scalar(line, column, Refused(), "", quoted=False)
        if depth > _MAX_DEPTH:
            self._fault(line, f"is nested more than {_MAX_DEPTH} levels deep", "check the brackets")
            raise _UnreadableError
        if event.anchor is not None:
            self._fault(line, f"the anchor &{visible(event.anchor)} is not read", "delete it", path)
        if event.tag is not None:
            self._fault(line, f"the tag {visible(event.tag)} is not read", "delete it and quote text", path)
        if kind == "SequenceStartEvent":
            return self._sequence(line, column, path, depth)
        if kind == "MappingStartEvent":
            return self._mapping(line, column, path, depth)
        return self._scalar(event, line, column, path, key_line)

    def _scalar(self, event: Any, line: int, column: int, path: str, key_line: int) -> Scalar:
        if event.style is not None or event.tag is not None:
            return self._quoted(event, line, column, path)
        text: str = event.value
        value, problem = plain_scalar(text)
        if not text:
            line = key_line  # the parser places an empty value at whatever comes next
        if problem is not None:
            self._fault(line, *problem, path)
        return Scalar(line, column, value, text, quoted=False)

    def _quoted(self, event: Any, line: int, column: int, path: str) -> Scalar:
        """Text in quotes or a block; an escape in it may have made a character that no file should hold."""
        text: str = event.value
        bad = next((ch for ch in text if unicodedata.category(ch) in {"Cc", "Cs"} and ch not in "\t\n\r"), None)
        if bad is not None:
            self._fault(line, f"holds a control character (U+{ord(bad):04X})", "delete its escape", path)
        return Scalar(line, column, text if bad is None else Refused(), text, quoted=True)

    def _sequence(self, line: int, column: int, path: str, depth: int) -> Sequence:
        items: list[Node] = []
        last = line
        for event in self._events:
            if type(event).__name__ == "SequenceEndEvent":
                break
            items.append(self._node(event, join_path(path, len(items)), depth + 1, last))
            last = event.end_mark.line + 1
        return Sequence(line, column, tuple(items))

    def _mapping(self, line: int, column: int, path: str, depth: int) -> Mapping:
        entries: dict[str, Entry] = {}
        seen: dict[str, int] = {}
        for event in self._events:
            if type(event).__name__ == "MappingEndEvent":
                break
            at = event.start_mark.line + 1
            key = self._key(event, path, depth)
            below = path if key is None else join_path(path, key)
            node = self._node(next(self._events), below, depth + 1, at)
            if key is None:
                continue
            same = unicodedata.normalize("NFC", key)
            if same in seen:
                self._fault(at, f"the key stands on line {seen[same]} already", "keep one of the two", below)
                continue
            seen[same] = at
            entries[key] = Entry(key, at, event.start_mark.column + 1, node)
        return Mapping(line, column, entries)

    def _key(self, event: Any, path: str, depth: int) -> str | None:
        """The text of a key, or None where it is refused (its fault is noted)."""
        line = event.start_mark.line + 1
        if type(event).__name__ != "ScalarEvent":
            self._node(event, path, depth + 1, line)  # reads past it
            self._fault(line, "a key is a list, a mapping or an alias", "use plain text as the key", path)
            return None
        if event.style is None and event.tag is None and event.anchor is None:
            text: str = event.value
            value, problem = plain_scalar(text)
            if not text:
                self._fault(line, "a key is empty", "write the key before the colon", path)
            elif problem is not None or not isinstance(value, str):
                shown = visible(text, 60)
                self._fault(line, f"the key {shown} is not text for YAML", f'write "{shown}", in quotes', path)
            else:
                return text
            return None
        before = len(self.faults)
        node = self._node(event, path, depth + 1, line)
        return node.text if isinstance(node, Scalar) and len(self.faults) == before else None
