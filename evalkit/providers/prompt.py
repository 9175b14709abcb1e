"""Prompt templates: a text with `{name}` placeholders, filled once and never rendered.

What is put in is data. It is not looked at, so braces, template marks and format codes in it reach the
provider byte for byte, and a placeholder's name inside it stays text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from evalkit.errors import Fault, InputError, visible

__all__ = ["PromptTemplate", "load_prompt", "parse_prompt"]

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_MARK = re.compile(rf"\{{\{{(?P<literal>{_NAME})\}}\}}|\{{(?P<name>{_NAME})\}}")
_SPACED = re.compile(rf"\{{+[ \t]*(?P<name>{_NAME})[ \t]*\}}+")


@dataclass(frozen=True, slots=True)
class PromptTemplate:
    """A parsed template: `parts` holds literal text at even places and placeholder names at odd ones."""

    parts: tuple[str, ...]

    @property
    def names(self) -> frozenset[str]:
        """The placeholders that the template uses."""
        return frozenset(self.parts[1::2])

    def render(self, values: Mapping[str, str]) -> str:
        """The template with every placeholder replaced by its value, in one pass.

        Raises KeyError with the name where `values` lacks one: a caller's mistake, since `parse_prompt` lets
        through only the names that the caller allows.
        """
        return "".join(values[part] if place % 2 else part for place, part in enumerate(self.parts))


def parse_prompt(
    text: str,
    *,
    allowed: Collection[str],
    required: Collection[str] = (),
    file: str | None = None,
) -> PromptTemplate:
    """Read a template. `{name}` is a placeholder, `{{name}}` the text `{name}`, any other brace is text.

    Raises `InputError` with every fault: a placeholder that is not `allowed`, an allowed one in doubled or spaced
    braces (as other template languages write it: it would silently be text), and a `required` one that is missing.
    """
    parts, literal, at = [], "", 0
    faults: list[Fault] = list(_lookalikes(text, allowed, file))
    for mark in _MARK.finditer(text):
        literal += text[at : mark.start()]
        at = mark.end()
        if mark["literal"] is not None:
            literal += "{" + mark["literal"] + "}"
            continue
        parts += [literal, mark["name"]]
        literal = ""
        if mark["name"] not in allowed:
            faults.append(_unknown(mark["name"], allowed, file, _line(text, mark.start())))
    template = PromptTemplate((*parts, literal + text[at:]))
    for name in required:
        if name not in template.names and not any(fault.field == name for fault in faults):
            fix = f"write {{{name}}} where it belongs"
            faults.append(Fault(f"has no placeholder {{{name}}}", fix, file=file, field=name))
    if faults:
        raise InputError(sorted(faults, key=lambda fault: fault.line or 0))
    return template


def _lookalikes(text: str, allowed: Collection[str], file: str | None) -> Iterator[Fault]:
    for mark in _SPACED.finditer(text):
        name, shown = mark["name"], mark.group()
        if name in allowed and shown != f"{{{name}}}":
            what = f"the placeholder is written {visible(shown)} and would stay text"
            yield Fault(what, f"write {{{name}}}", file=file, line=_line(text, mark.start()), field=name)


def _unknown(name: str, allowed: Collection[str], file: str | None, line: int) -> Fault:
    known = ", ".join(f"{{{known}}}" for known in allowed) or "none"
    fix = f"use one of the known placeholders ({known}), or {{{{{name}}}}} for the text {{{name}}}"
    return Fault(f"unknown placeholder {{{visible(name)}}}", fix, file=file, line=line, field=visible(name))


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def load_prompt(path: Path, *, allowed: Collection[str], required: Collection[str] = ()) -> PromptTemplate:
    """Read a template from a UTF-8 file; the line end that closes the file is not part of it.

    Raises `InputError` for a missing file, for bytes that are not UTF-8 (with line and offset), and as
    `parse_prompt` does.
    """
    try:
        data = path.read_bytes()
    except OSError as problem:
        what = f"cannot be read: {problem.strerror}"
        raise InputError(Fault(what, "name a text file", file=str(path))) from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        what = f"is not UTF-8: byte 0x{data[problem.start]:02x} at offset {problem.start}"
        raise InputError(Fault(what, "save the file as UTF-8", file=str(path), line=line)) from None
    text = text.removesuffix("\n").removesuffix("\r")
    return parse_prompt(text, allowed=allowed, required=required, file=str(path))
