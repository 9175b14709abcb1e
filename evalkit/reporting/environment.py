"""The one template environment of all reports: every value is escaped, and only text and counts can be printed."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from . import numbers

__all__ = ["asset", "environment", "page_policy", "parts"]


@cache
def environment() -> Environment:
    """Templates of this package, with autoescaping whatever a template is called."""
    environment = Environment(
        loader=PackageLoader("evalkit.reporting", "templates"),
        autoescape=True,  # for every template, whatever its name ends in
        undefined=StrictUndefined,
        finalize=_only_text,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["parts"] = parts
    environment.filters["unbroken"] = numbers.unbroken
    return environment


def _only_text(value: Any) -> Any:
    """What a template may print: text and counts. A bare float, None or bool would be a missing format."""
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise TypeError(
        f"a template printed {type(value).__name__} {value!r}: numbers are written by evalkit.reporting.numbers"
    )


_NUMERIC = frozenset("0123456789≤≥+−$")


def parts(shown: str) -> tuple[str, str]:
    """A number and what stands in parentheses behind it: "2 of 50 (4.0 %)" is "2 of 50" and "4.0 %"."""
    head, found, rest = shown.partition(" (")
    rest = rest.removesuffix(")") if found else ""
    return numbers.unbroken(head), numbers.unbroken(rest) if rest[:1] in _NUMERIC else rest


@cache
def asset(name: str) -> str:
    """The source of a style sheet or script of this package."""
    source = environment().loader
    assert source is not None
    return source.get_source(environment(), name)[0]


def _source_hash(source: str) -> str:
    digest = hashlib.sha256(source.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def page_policy(style: str, script: str | None) -> str:
    """A content policy that allows this one style sheet and this one script (None: no script at all) by their
    hashes, and nothing else: no request can leave the page and no text of it can run."""
    allowed = "'none'" if script is None else _source_hash(script)
    return (
        f"default-src 'none'; style-src {_source_hash(style)}; script-src {allowed}; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
