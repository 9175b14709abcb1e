"""The files a study names: resolved against its folder, and there when the study is read."""

from __future__ import annotations

import difflib
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from evalkit.errors import HIDDEN, visible
from evalkit.study import nodes
from evalkit.study.fields import Section, shown
from evalkit.study.models import Source
from evalkit.study.names import SECTIONS
from evalkit.study.nodes import Scalar, join_path
from evalkit.study.prices_base import GENAI_PRICES

__all__ = ["Folder", "read_file", "read_folder", "read_prices", "read_source"]

_COLUMNS: dict[str, tuple[str, ...]] = {
    "labels": (
        "id",
        "prompt",
        "messages",
        "required_tier",
        "risk",
        "category",
        "weight",
        "group",
        "reference",
        "labels",
        "metadata",
    ),
    "outcomes": (
        "id",
        "tier",
        "arm",
        "model",
        "sample",
        "status",
        "score",
        "passed",
        "cost_usd",
        "input_tokens",
        "cache_read_tokens",
        "cache_write_tokens",
        "output_tokens",
        "reasoning_tokens",
        "ttft_s",
        "request_s",
        "task_s",
        "attempts",
        "error",
        "reply",
        "mean_logprob",
    ),
    "scores": ("id", "score"),
    "decisions": ("id", "routed_tier"),
}
_COLUMNS["train"] = _COLUMNS["labels"]
_BY_TIER = ("score_", "verifier_usd_")


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder that names are relative to. `must_exist`: a file that is not there is a fault."""

    base: Path
    must_exist: bool = True


def read_source(section: Section, key: str, base: Folder, *, missing: str | None = None) -> Source | None:
    """A table: the name of a file (labels also `hf://...`), or `{path: ..., columns: {...}, encoding: ...}`."""
    node = section.get(key, missing=missing)
    if node is None:
        return None
    if isinstance(node, nodes.Sequence):
        section.fault(key, "is a list", "write one file name, or {path: ..., columns: {...}}")
        return None
    if isinstance(node, Scalar):
        written = section.text(key)
        return None if written is None else _resolved(section, key, written, base, {}, None)
    inner = section.section(key, SECTIONS["source"])
    if inner is None:
        return None
    written = inner.text("path", missing="write the name of the file")
    columns = _columns(inner, key)
    encoding = _encoding(inner)
    return None if written is None else _resolved(inner, "path", written, base, columns, encoding, table=key)


def read_file(section: Section, key: str, base: Folder) -> Path | None:
    """The name of one file that is there."""
    written = section.text(key)
    return None if written is None else _existing(section, key, written, base)


def read_folder(section: Section, key: str, base: Folder) -> Path | None:
    """The name of one folder that is there."""
    written = section.text(key)
    if written is None:
        return None
    if HIDDEN in written:
        section.fault(key, "is a name that looks like a key or password", "rename the folder")
        return None
    path = base.base / written
    try:
        if path.is_dir() or not base.must_exist:
            return path
        what = (
            f'"{visible(written)}" is no folder' if path.exists() else f'there is no folder "{visible(written)}"'
        )
    except (OSError, ValueError):
        what = f'"{visible(written)}" cannot be the name of a folder'
    section.fault(key, what, "name a folder, relative to that of the study file")
    return None


def read_prices(section: Section, base: Folder) -> Path | None:
    """The file of the price card; `genai-prices` is no file but the prices of that package."""
    if section.has("prices") and section.text("prices") == GENAI_PRICES:
        return Path(GENAI_PRICES)
    return read_file(section, "prices", base)


def _resolved(
    section: Section,
    key: str,
    written: str,
    base: Folder,
    columns: dict[str, str],
    encoding: str | None,
    *,
    table: str | None = None,
) -> Source | None:
    if written.startswith("hf://"):
        if (table or key) not in {"labels", "train"}:
            section.fault(key, "is a Hub address, and only labels are read from the Hub", "name a file")
            return None
        return Source(written=written, hf=written, columns=columns, encoding=encoding)
    path = _existing(section, key, written, base)
    return None if path is None else Source(written=written, path=path, columns=columns, encoding=encoding)


def _existing(section: Section, key: str, written: str, base: Folder) -> Path | None:
    if HIDDEN in written:
        section.fault(key, "is a file name that looks like a key or password", "rename the file")
        return None
    path = base.base / written
    try:
        if path.is_file() or not base.must_exist:
            return path
        what = f'"{visible(written)}" is a folder' if path.is_dir() else f'there is no file "{visible(written)}"'
    except (OSError, ValueError):
        what = f'"{visible(written)}" cannot be a file name'
    section.fault(key, what, "name a file, relative to the folder of the study file")
    return None


def _columns(section: Section, table: str) -> dict[str, str]:
    node = section.get("columns")
    if node is None:
        return {}
    if not isinstance(node, nodes.Mapping):
        section.fault("columns", f"is {shown(node)}, not a mapping", "write {id: your_column, ...}")
        return {}
    known = _COLUMNS[table]
    columns = {}
    for name, entry in node.entries.items():
        path = join_path(section.where("columns"), name)
        value = entry.node.value if isinstance(entry.node, Scalar) else None
        if name not in known and not (table == "scores" and name.startswith(_BY_TIER)):
            fix = _column_fix(name, value, known)
            section.report.add(entry.line, path, f"is not a column of {table}", fix)
        elif isinstance(value, str) and value:
            columns[name] = unicodedata.normalize("NFC", value)
        elif not isinstance(value, nodes.Refused):
            what = f"is {shown(entry.node)}, not the name of a column"
            section.report.add(entry.line, path, what, "write the file's column name, as text")
    return columns


def _column_fix(name: str, value: object, known: tuple[str, ...]) -> str:
    if isinstance(value, str) and value in known:
        return f"write it the other way round, {value}: {visible(name, 60)}"
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.7)
    return f"write {near[0]}" if near else f"known here: {', '.join(known)}"


def _encoding(section: Section) -> str | None:
    encoding = section.text("encoding")
    if encoding is None:
        return None
    try:
        "".encode(encoding)
    except (LookupError, ValueError):
        section.fault(
            "encoding", f'"{visible(encoding, 60)}" is not a known text encoding', "write utf-8 or cp949, say"
        )
        return None
    return encoding
