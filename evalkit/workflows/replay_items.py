"""From labels to what is sent: the messages of each item, with the study's prompts around them, byte for byte."""

from __future__ import annotations

import base64
import hashlib
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalkit.errors import Fault, InputError, visible
from evalkit.labels.labelset import LabelSet
from evalkit.providers.prompt import PromptTemplate, load_prompt
from evalkit.study.calls import Calls
from evalkit.tabular.faults import listed

__all__ = ["Item", "Prompts", "item_faults", "items_of", "read_prompts"]

_ATTACHED = "file:"
_ATTACHED_KEYS = {"url", "file_data", "data"}
_MOST_ATTACHED_BYTES = 50_000_000


@dataclass(frozen=True, slots=True)
class Prompts:
    """What stands around every item's prompt: the system message, and a template with `{prompt}` in it."""

    system: str | None = None
    template: PromptTemplate | None = None
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """An item as it is sent. `max_tokens` is its own cap, for candidates that name none."""

    id: str
    messages: tuple[Mapping[str, Any], ...]
    max_tokens: int | None = None


def read_prompts(calls: Calls) -> Prompts:
    """The prompt files of a study. Raises `InputError` with every fault of both."""
    faults: list[Fault] = []
    system = template = None
    digest = hashlib.sha256()
    if calls.system_prompt is not None:
        try:
            system = load_prompt(calls.system_prompt, allowed=()).render({})
            digest.update(b"system\0" + system.encode())
        except InputError as error:
            faults.extend(error.faults)
    if calls.prompt is not None:
        try:
            template = load_prompt(calls.prompt, allowed=("prompt",), required=("prompt",))
            digest.update(b"prompt\0" + "\0".join(template.parts).encode())
        except InputError as error:
            faults.extend(error.faults)
    if faults:
        raise InputError(faults)
    return Prompts(system, template, digest.hexdigest())


def item_faults(labels: LabelSet, prompts: Prompts) -> list[Fault]:
    """Why items cannot be sent: no prompt and no messages, or a second system message."""
    empty, doubled = [], []
    for i, name in enumerate(labels.ids):
        messages = None if labels.messages is None else labels.messages[i]
        if messages is None and not (labels.prompts[i] or "").strip():
            empty.append(name)
        elif messages is not None and prompts.system is not None and _role(messages) == "system":
            doubled.append(name)
    faults = []
    if empty:
        what = f"{len(empty)} items have neither a prompt nor messages: {_named(empty)}"
        faults.append(Fault(what, "write what is to be asked", file=labels.file, field="prompt"))
    if doubled:
        what = f"{len(doubled)} items have a system message, and the study has a system_prompt: {_named(doubled)}"
        fix = "leave one of them out, so that it is clear what is sent"
        faults.append(Fault(what, fix, file=labels.file, field="messages"))
    return faults


def items_of(labels: LabelSet, prompts: Prompts, folder: Path) -> list[Item]:
    """Every item of the labels as it is sent, in file order.

    In messages a text `file:NAME` where an address or data belongs is the file NAME below `folder` (that of the
    labels), which is sent as a data address. Raises `InputError` with every fault.
    """
    faults = item_faults(labels, prompts)
    if faults:
        raise InputError(faults)
    head = () if prompts.system is None else ({"role": "system", "content": prompts.system},)
    items = []
    attached = _Attached(folder, labels.file)
    for i, name in enumerate(labels.ids):
        given = None if labels.messages is None else labels.messages[i]
        if given is None:
            text = labels.prompts[i] or ""
            text = text if prompts.template is None else prompts.template.render({"prompt": text})
            given = ({"role": "user", "content": text},)
        else:
            given = tuple(attached.filled(message, name) for message in given)
        meta = None if labels.metadata is None else labels.metadata[i]
        items.append(Item(name, (*head, *given), _own_cap(meta, name, attached.faults, labels.file)))
    if attached.faults:
        raise InputError(attached.faults)
    return items


def _named(ids: list[str]) -> str:
    return listed([visible(name, 60) for name in ids])


def _role(messages: Any) -> object:
    first = messages[0] if isinstance(messages, list | tuple) and messages else None
    return first.get("role") if isinstance(first, Mapping) else None


def _own_cap(meta: Any, name: str, faults: list[Fault], file: str) -> int | None:
    given = meta.get("max_tokens") if isinstance(meta, Mapping) else None
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        what = f"max_tokens is {visible(given, 60)}, not a whole number of 1 or more"
        faults.append(Fault(what, "write a cap in tokens, or leave it out", file=file, id=name, field="metadata"))
        return None
    return given


class _Attached:
    """Puts the content of attached files into messages; nothing outside the folder is ever read."""

    def __init__(self, folder: Path, file: str) -> None:
        self.folder = folder
        self.file = file
        self.faults: list[Fault] = []

    def filled(self, value: Any, item: str, key: str = "") -> Any:
        if isinstance(value, Mapping):
            return {name: self.filled(inner, item, str(name)) for name, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.filled(inner, item, key) for inner in value]
        if isinstance(value, str) and key in _ATTACHED_KEYS and value.startswith(_ATTACHED):
            return self._data(value.removeprefix(_ATTACHED), item)
        return value

    def _data(self, name: str, item: str) -> str:
        root = self.folder.resolve()
        try:
            path = (root / name).resolve()
            inside = path.is_relative_to(root) and path.is_file()
            small = inside and path.stat().st_size <= _MOST_ATTACHED_BYTES
            content = path.read_bytes() if small else None
        except (OSError, ValueError):
            content = None
            inside = False
        if content is None:
            what = f'the attached file "{visible(name)}" is ' + (
                "over 50 MB" if inside else "not beside the labels"
            )
            fix = "put it into the folder of the labels, and name it relative to that"
            self.faults.append(Fault(what, fix, file=self.file, id=item, field="messages"))
            return ""
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
