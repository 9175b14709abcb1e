"""What a sign-off stands on: digest, policy, runs, versions and the files of its folder with their hashes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from evalkit.reporting import numbers, text
from evalkit.reporting.language import N_, Language
from evalkit.reporting.signoff.said import figure, mapping, missing
from evalkit.reporting.verdict import Result
from evalkit.signoff.build import SOURCE

__all__ = ["OriginRow", "digest_of", "files", "origin_rows"]

OriginRow = tuple[str, list[str], str]
"""Name, lines of text, hash ("" where there is none)."""

FILES_SHOWN: Final = 120
_HASHES: Final = {
    "result_sha256": "result.json",
    "report_sha256": "report.html",
    "items_sha256": "items.jsonl.gz",
    "evidence_sha256": "evidence.zip",
}
_NAMES: Final = {
    "evalkit_version": N_("evalkit"),
    SOURCE: N_("evalkit's source"),
    "dependencies": N_("Packages"),
    "python": N_("Python"),
    "seed": N_("Seed"),
    "models": N_("Models"),
    "prices": N_("Prices"),
    "labels": N_("Labels"),
    "outcomes": N_("Outcomes"),
    "study": N_("Study"),
    "judge": N_("Judge"),
    "platform": N_("Platform"),
    "started_at": N_("Started"),
    "finished_at": N_("Finished"),
}


def digest_of(document: Result) -> str:
    """The digest of the document, or why there is none."""
    return text.line(document.get("digest") or "n/a", 120)


def origin_rows(document: Result, _: Language) -> list[OriginRow]:
    """Digest first; then the policy, each run, and what else is recorded."""
    policy = mapping(document.get("policy"))
    rows: list[OriginRow] = [(_("Document digest"), [], digest_of(document))]
    fixed = policy.get("fixed_before_run") is True
    lines = [
        text.line(policy.get("file") or missing(None, _), 200),
        _("fixed before the run") if fixed else _("not shown to be fixed before the run"),
    ]
    rows.append((_("Gate policy"), lines, text.line(policy.get("sha256") or "", 100)))
    if document.get("created_at"):
        rows.append((_("Made at"), [text.moment(document["created_at"])], ""))
    for run in document.get("runs") or []:
        name = _("Run %(id)s", id=text.line(run["id"], 60))
        for key, file in _HASHES.items():
            if run.get(key):
                rows.append((name, [file], text.line(run[key], 100)))
                name = ""
            elif key == "evidence_sha256":
                rows.append((name, [_("no evidence bundle: its figures cannot be computed again")], ""))
    rows += _production(document, _)
    runs = {str(run["id"]) for run in document.get("runs") or []}
    for key, value in mapping(document.get("provenance")).items():
        known = _NAMES.get(str(key))
        title = _(known) if known else text.words(key).capitalize()
        if str(key) in runs:
            title = _("Run %(id)s", id=text.line(key, 60))
        found = [([], text.line(value, 100))] if str(key) == SOURCE else list(_flat(value))
        rows += [(title if place == 0 else "", *row) for place, row in enumerate(found)]
    return rows


def _production(document: Result, _: Language) -> list[OriginRow]:
    """What is in production and how much its pass rate may fall, as the policy says."""
    baseline = mapping(document.get("baseline"))
    if not baseline:
        return []
    named = [text.line(arm, 60) for arm in baseline.get("arms") or []]
    if baseline.get("study"):
        named.append(text.line(baseline["study"], 80))
    margin = baseline.get("margin_points")
    if margin is not None:
        named.append(_("margin %(x)s", x=figure(margin, "points", _)))
    return [(_("Production"), named, text.line(baseline.get("result_sha256") or "", 100))]


def _flat(value: Any, depth: int = 0) -> Iterator[tuple[list[str], str]]:
    """Lines and hash of a recorded value, whatever its shape."""
    if value in (None, "", [], {}):
        return
    if isinstance(value, Mapping):
        digest = next((value[k] for k in ("sha256", "hash", "digest") if isinstance(value.get(k), str)), "")
        plain = {k: v for k, v in value.items() if not isinstance(v, (Mapping, list, tuple)) and v != digest}
        deep = {k: v for k, v in value.items() if isinstance(v, (Mapping, list, tuple))}
        shown = ", ".join(
            text.line(v, 200) if k in {"file", "name"} else f"{text.words(k)} {_scalar(v)}"
            for k, v in plain.items()
            if v not in (None, "") and not str(k).endswith("_reason")  # why something is null, which is not shown
        )
        if shown or digest:
            yield [text.line(shown, 2000)] if shown else [], text.line(digest, 100)
        for key, inner in deep.items():
            if depth < 2:
                for lines, found in _flat(inner, depth + 1):
                    yield [f"{text.words(key)}: {' '.join(lines)}"], found
    elif isinstance(value, (list, tuple)):
        if any(isinstance(part, (Mapping, list, tuple)) for part in value):
            for part in value[:20]:
                yield from _flat(part, depth + 1)
        else:
            yield [text.line(", ".join(_scalar(part) for part in value[:50]), 2000)], ""
    else:
        yield [_scalar(value)], ""


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return numbers.threshold(value)
    return text.line("n/a" if value is None else value, 300)


def files(document: Result) -> tuple[list[tuple[str, str, str]], int]:
    """((path, size in bytes, hash) of the files beside the document, how many are left out)."""
    given = document.get("manifest") or []
    shown = [
        (text.line(one["path"], 200), numbers.count(one.get("bytes")), text.line(one.get("sha256") or "", 100))
        for one in given[:FILES_SHOWN]
    ]
    return shown, max(len(given) - FILES_SHOWN, 0)
