"""JSON read as strictly as the YAML: UTF-8, unique keys, no NaN, and every value knows its line and column."""

from __future__ import annotations

import contextlib
import json
import re
import unicodedata
from decimal import Decimal
from pathlib import Path
from typing import NoReturn

from evalkit.errors import Fault, visible
from evalkit.study.files import line_of, read_text
from evalkit.study.nodes import Document, Entry, Mapping, Node, Refused, Scalar, Sequence, join_path
from evalkit.study.scalars import MAX_DIGITS

__all__ = ["load_json", "parse_json"]

_MAX_DEPTH = 32
_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?(?![0-9A-Za-z_.+-])")
_WORD = re.compile(r"[^\s,:{}\[\]\"]+")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}


def load_json(path: str | Path) -> Document:
    """The file as a `Document` whose `faults` are for the caller to report together with its own."""
    return parse_json(read_text(path), str(path))


def parse_json(text: str, file: str) -> Document:
    """`text` as a `Document`; `file` is the name that messages give."""
    parser = _Parser(text, file)
    root: Node | None = None
    with contextlib.suppress(_UnreadableError):
        root = parser.document()
    return Document(file, text, root, tuple(sorted(parser.faults, key=lambda fault: fault.line or 0)))


class _UnreadableError(Exception):
    """The text cannot be read past this point."""


class _Parser:
    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.at = 0
        self.faults: list[Fault] = []

    def document(self) -> Node:
        if not self.text.strip():
            self._stop("is empty", "write the keys that this kind of file needs")
        node = self._value("", 0)
        if self._peek():
            self._stop(f"goes on after its end: {self._here()}", "keep one JSON value in a file")
        return node

    def _fault(self, index: int, what: str, fix: str, path: str | None = None) -> None:
        line = line_of(self.text, index)
        self.faults.append(Fault(what, fix, file=self.file, line=line, field=path or None))

    def _stop(
        self, what: str, fix: str = "check the commas, quotes and brackets of this and the line above"
    ) -> NoReturn:
        self._fault(min(self.at, max(len(self.text) - 1, 0)), what, fix)
        raise _UnreadableError

    def _peek(self) -> str:
        space = _SPACE.match(self.text, self.at)
        self.at = space.end() if space else self.at
        return self.text[self.at : self.at + 1]

    def _here(self) -> str:
        return (
            f'"{visible(self.text[self.at : self.at + 20])}"'
            if self.at < len(self.text)
            else "the end of the file"
        )

    def _expect(self, sign: str) -> None:
        if self._peek() != sign:
            self._stop(f"is not JSON: {self._here()} stands where {sign} is expected")
        self.at += 1

    def _place(self) -> tuple[int, int]:
        start = max(self.text.rfind("\n", 0, self.at), self.text.rfind("\r", 0, self.at)) + 1
        return line_of(self.text, self.at), self.at - start + 1

    def _value(self, path: str, depth: int) -> Node:
        first = self._peek()
        if depth > _MAX_DEPTH:
            self._stop(f"is nested more than {_MAX_DEPTH} levels deep", "check the brackets")
        if first == "{":
            return self._mapping(path, depth)
        if first == "[":
            return self._sequence(path, depth)
        line, column = self._place()
        if first == '"':
            text = self._string()
            return Scalar(line, column, text, text, quoted=True)
        return self._plain(line, column, path)

    def _string(self) -> str:
        text: str
        try:
            text, self.at = json.JSONDecoder().raw_decode(self.text, self.at)
        except json.JSONDecodeError as error:
            self.at = error.pos
            self._stop(
                f"is not JSON: {error.msg.split(':')[0].lower()}", "check the quotes and escapes of this line"
            )
        if any(unicodedata.category(ch) == "Cs" for ch in text):
            self._stop("holds half of a character (a lone surrogate escape)", "write the whole character")
        return text

    def _plain(self, line: int, column: int, path: str) -> Scalar:
        start = self.at
        number = _NUMBER.match(self.text, self.at)
        if number:
            self.at = number.end()
            return self._number(number, line, column, path)
        word = _WORD.match(self.text, self.at)
        if word is None:
            self._stop(f"is not JSON: {self._here()} stands where a value is expected")
        text = word.group()
        self.at += len(text)
        if text in _WORDS:
            return Scalar(line, column, _WORDS[text], text, quoted=False)
        if text.lower().lstrip("+-") in {"nan", "inf", "infinity"}:
            self._fault(start, f"{visible(text, 40)} is not a finite number", "write a finite number", path)
        else:
            self._fault(
                start, f"{visible(text, 40)} is not a JSON value", "put text in quotes, write plain numbers", path
            )
        return Scalar(line, column, Refused(), text, quoted=False)

    def _number(self, number: re.Match[str], line: int, column: int, path: str) -> Scalar:
        text = number.group()
        value = Decimal(text) if len(text) <= MAX_DIGITS and len(number.group(2) or "") <= 4 else None
        if value is None or abs(value.adjusted()) > MAX_DIGITS:
            self._fault(number.start(), f"the number {visible(text, 40)} is too long", "write fewer digits", path)
            return Scalar(line, column, Refused(), text, quoted=False)
        whole = number.group(1) is None and number.group(2) is None
        return Scalar(line, column, int(text) if whole else value, text, quoted=False)

    def _sequence(self, path: str, depth: int) -> Sequence:
        line, column = self._place()
        self.at += 1
        items: list[Node] = []
        if self._peek() == "]":
            self.at += 1
            return Sequence(line, column, ())
        while True:
            items.append(self._value(join_path(path, len(items)), depth + 1))
            if self._peek() == "]":
                self.at += 1
                return Sequence(line, column, tuple(items))
            self._expect(",")

    def _mapping(self, path: str, depth: int) -> Mapping:
        line, column = self._place()
        self.at += 1
        entries: dict[str, Entry] = {}
        seen: dict[str, int] = {}
        if self._peek() == "}":
            self.at += 1
            return Mapping(line, column, entries)
        while True:
            if self._peek() != '"':
                self._stop(f"is not JSON: {self._here()} stands where a key in quotes is expected")
            start, (key_line, key_column) = self.at, self._place()
            key = self._string()
            self._expect(":")
            below = join_path(path, key)
            node = self._value(below, depth + 1)
            same = unicodedata.normalize("NFC", key)
            if same in seen:
                self._fault(start, f"the key stands on line {seen[same]} already", "keep one of the two", below)
            else:
                seen[same] = key_line
                entries[key] = Entry(key, key_line, key_column, node)
            if self._peek() == "}":
                self.at += 1
                return Mapping(line, column, entries)
            self._expect(",")
