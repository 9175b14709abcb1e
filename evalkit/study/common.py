"""What the two kinds of study have in common: how their file is opened, and the keys that both know."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from evalkit.errors import InputError
from evalkit.study import nodes
from evalkit.study.calls_section import read_calls
from evalkit.study.fields import Report, Section
from evalkit.study.fingerprint import study_fingerprint
from evalkit.study.models import RoutingStudy
from evalkit.study.reasoning_models import ReasoningStudy
from evalkit.study.secrets import hide_secrets
from evalkit.study.sections import read_name
from evalkit.study.sources import Folder, read_file, read_prices, read_source
from evalkit.study.strict_yaml import load_yaml

__all__ = ["MAX_SEED", "Kind", "read_common", "read_kind"]

MAX_SEED = 2**32 - 1

Study = TypeVar("Study", RoutingStudy, ReasoningStudy)

_COMMANDS = {"routing": "route-sweep", "reasoning-budget": "reasoning-budget"}


class Kind(NamedTuple):
    """A kind of study: its name, its keys by section, and where a key belongs that a section does not know."""

    name: str
    sections: Mapping[str, tuple[str, ...]]
    elsewhere: Callable[[str, str], tuple[str, str] | None]

    def section(self, report: Report, node: nodes.Mapping, path: str, name: str) -> Section:
        """The section `name` at `path`, which knows its keys."""
        return Section(report, node, path, self.sections[name], lambda key: self.elsewhere(name, key))


def read_kind(
    path: str | Path,
    kind: Kind,
    read: Callable[[Section, Path, Folder, tuple[str, ...]], Study | None],
    *,
    files_exist: bool,
) -> Study:
    """The study of that kind in the YAML file `path`, `read` from its top section.

    Files it names are looked for beside it; they have to exist unless `files_exist` is False. Literal secrets are
    dropped and named in the notices. Raises `InputError` with every fault of the file.
    """
    document, notices = hide_secrets(load_yaml(path))
    report = Report(document.file, document.faults, document.secrets)
    if document.root is None:
        raise InputError(report.in_order())
    if not isinstance(document.root, nodes.Mapping):
        report.add(document.root.line, None, "is not a study: it holds no keys", "write study: and the other keys")
        raise InputError(report.in_order())
    _refuse_other_kinds(report, document.root, kind.name)
    top = kind.section(report, document.root, "", "")
    top.choice("kind", (kind.name,), missing=f"write kind: {kind.name}")
    study = read(top, Path(path), Folder(Path(path).parent, must_exist=files_exist), notices)
    if report.faults or study is None:
        raise InputError(report.in_order())
    return replace(study, fingerprint=study_fingerprint(study))


def _refuse_other_kinds(report: Report, root: nodes.Mapping, wanted: str) -> None:
    """A study of another kind is told where it belongs, not that its keys are unknown."""
    entry = root.entries.get("kind")
    kind = nodes.plain(entry.node) if entry is not None else None
    if entry is not None and isinstance(kind, str) and kind in _COMMANDS and kind != wanted:
        report.faults = []
        what = f"is {kind}, and this command reads {wanted} studies"
        report.add(entry.line, "kind", what, f"run evalkit {_COMMANDS[kind]} {report.file}")
        raise InputError(report.faults)


def read_common(top: Section, base: Folder) -> dict[str, Any]:
    """The fields that both kinds have, by name, with their defaults filled in.

    `name` and `labels` are None where they are missing, which is a fault.
    """
    pass_at = top.number("pass_at", high=1)
    if pass_at == 0:
        top.fault("pass_at", "is 0, at which every reply passes", "write a score above 0, at most 1")
    confidence = top.number("confidence", low=0.5, high=1)
    if confidence == 1:
        top.fault("confidence", "is 1, which no data can reach", "write a number below 1, such as 0.95")
    looks = top.integer("looks", low=1, high=50)
    replicates = top.integer("bootstrap_replicates", low=100, high=100_000)
    calls = read_calls(top, base)
    return {
        "name": read_name(top),
        "description": top.text("description"),
        "labels": read_source(top, "labels", base, missing="name the file of labels"),
        "labels_kind": top.choice("labels_kind", ("human", "author_rule", "derived", "model")) or "human",
        "outcomes": read_source(top, "outcomes", base),
        "missing_outcomes": top.choice("missing_outcomes", ("error", "unanswered")) or "error",
        "prices": read_prices(top, base),
        "rubric": read_file(top, "rubric", base),
        "policy": read_file(top, "policy", base),
        "pass_at": 1.0 if pass_at is None else pass_at,
        "confidence": 0.95 if confidence is None else confidence,
        "looks": 1 if looks is None else looks,
        "seed": top.integer("seed", low=0, high=MAX_SEED) or 0,
        "bootstrap_replicates": 2000 if replicates is None else replicates,
        "calls": calls,
        "samples": calls.samples if top.has("samples") else None,
    }
