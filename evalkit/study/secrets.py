"""Literal secrets in a file a person wrote: found, named by line and field, and dropped at once.

What is read later (faults, the study, its fingerprint, every output) never sees the value.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from decimal import Decimal

from evalkit.errors import HIDDEN, Fault, redact, remember_secret
from evalkit.study.nodes import Document, Entry, Mapping, Node, Refused, Scalar, Sequence, join_path

__all__ = ["hide_secrets", "is_secret_name"]

_NAMES = (
    "api_key",
    "apikey",
    "access_key",
    "secret_key",
    "private_key",
    "subscription_key",
    "secret",
    "password",
    "passwd",
    "authorization",
    "cookie",
    "credentials",
    "credential",
    "bearer",
    "token",
)
_TEXT_TOKENS = {"bos_token", "eos_token", "mask_token", "pad_token", "sep_token", "stop_token", "unk_token"}
_KEY_LIKE = re.compile(r"(?:sk|pk|rk|xai|gsk|glpat|pplx|nvapi)[-_][A-Za-z0-9_-]{12,}")
_REFERENCES = ("$", "os.environ/", "env:")
_FIX = "put it into an environment variable and write its name here, as os.environ/NAME; then renew the key"


def is_secret_name(name: str) -> bool:
    """Whether a field of this name holds a secret: `api_key`, `X-Api-Key`, `Authorization`; not `max_tokens`."""
    plain = name.lower().replace("-", "_").replace(" ", "_")
    if plain in _TEXT_TOKENS:
        return False
    return any(plain == secret or plain.endswith(f"_{secret}") for secret in _NAMES)


def hide_secrets(document: Document) -> tuple[Document, tuple[str, ...]]:
    """The document with every literal secret replaced by `[hidden]`, and a notice for each.

    References to an environment variable (`os.environ/NAME`, `${NAME}`, `env:NAME`) are no secrets and stay.
    Comments are searched too: they are never stored, but the file may be passed on.
    """
    search = _Search(document.file)
    root = None if document.root is None else search.clean(document.root, "", secret=False)
    faults = tuple(search.clean_fault(fault) for fault in document.faults)
    for number, line in enumerate(document.text.splitlines(), 1):
        rest = line if document.faults else line.partition("#")[2]
        if number not in search.lines and redact(rest) != rest:
            search.note(number, None, "holds what looks like a key or password")
    notices = tuple(str(found) for found in sorted(search.found, key=lambda fault: fault.line or 0))
    return replace(document, root=root, faults=faults, text="", secrets=search.taken), notices


def _variable(reference: str) -> str:
    """The name of the environment variable that a reference names."""
    return reference.removeprefix("os.environ/").removeprefix("env:").lstrip("$").strip("{}")


class _Search:
    def __init__(self, file: str) -> None:
        self.file = file
        self.found: list[Fault] = []
        self.lines: set[int] = set()
        self._hidden_fields: set[str] = set()
        self.taken: dict[str, str] = {}

    def note(self, line: int, path: str | None, what: str) -> None:
        self.lines.add(line)
        self.found.append(Fault(what, _FIX, file=self.file, line=line, field=path))

    def clean(self, node: Node, path: str, *, secret: bool) -> Node:
        if isinstance(node, Mapping):
            entries: dict[str, Entry] = {}
            for key, entry in node.entries.items():
                name = redact(key)
                below = join_path(path, name)
                if name != key:
                    self.note(entry.line, below, "a key holds what looks like a secret")
                child = self.clean(entry.node, below, secret=secret or is_secret_name(key))
                entries[name] = replace(entry, key=name, node=child)
            return replace(node, entries=entries)
        if isinstance(node, Sequence):
            items = (self.clean(item, join_path(path, at), secret=secret) for at, item in enumerate(node.items))
            return replace(node, items=tuple(items))
        return self._scalar(node, path, secret=secret)

    def _scalar(self, node: Scalar, path: str, *, secret: bool) -> Scalar:
        if secret:
            empty = node.value is None or node.text == "" or isinstance(node.value, bool)
            if not empty and node.text.startswith(_REFERENCES):
                remember_secret(os.environ.get(_variable(node.text), ""))
                return node
            if empty or node.text == HIDDEN:
                return node
            for word in node.text.split():
                remember_secret(word)
            self.taken[path] = node.text
            self.note(node.line, path, "holds a secret as plain text")
            if isinstance(node.value, Refused):
                self._hidden_fields.add(path)
                return replace(node, text=HIDDEN)
            return replace(node, value=HIDDEN, text=HIDDEN, quoted=True)
        shown = redact(node.text)
        if shown == node.text:
            return node
        for word in _KEY_LIKE.findall(node.text):
            remember_secret(word)
        self.taken[path] = node.text
        self.note(node.line, path, "holds what looks like a key or password")
        value = shown if isinstance(node.value, str | int | Decimal) else node.value
        return replace(node, value=value, text=shown)

    def clean_fault(self, fault: Fault) -> Fault:
        """A fault of the parser may quote the value it refused."""
        if fault.field is not None and fault.field in self._hidden_fields:
            return replace(fault, what="the secret here is not plain text for YAML", fix=_FIX)
        return replace(
            fault,
            what=redact(fault.what),
            fix=redact(fault.fix),
            field=None if fault.field is None else redact(fault.field),
        )
