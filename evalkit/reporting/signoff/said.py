"""Text in the language of the reader, and figures with their words in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from evalkit.reporting import numbers, text
from evalkit.reporting.language import N_, Language
from evalkit.reporting.signoff.sentences import translated

__all__ = ["KINDS", "Said", "change", "exact", "figure", "mapping", "missing", "of", "said", "things"]


class Said(NamedTuple):
    """A text and the language it is in where that is not the page's ("" where it is)."""

    text: str
    lang: str = ""


KINDS: Final = {"measured": N_("measured"), "cited": N_("cited"), "assumed": N_("assumed")}

_THINGS: Final = {
    name: name
    for name in (
        N_("items"),
        N_("audited items"),
        N_("needs"),
        N_("requests"),
        N_("effective requests"),
        N_("conversations"),
        N_("conversations with a need"),
        N_("tasks"),
        N_("tasks (effective, groups counted whole)"),
        N_("runs"),
        N_("outcomes"),
        N_("pairs"),
        N_("judgements"),
        N_("labels"),
        N_("labels with two annotators"),
        N_("attempts"),
    )
}
_REASONS: Final = {
    name: name
    for name in (
        N_("not known"),
        N_("not measured"),
        N_("no bound"),
        N_("no limit"),
        N_("not statable"),
        N_("not stated"),
        N_("unknown"),
        N_("no sample"),
        N_("does not apply"),
        N_("least costly arm"),
        N_("no measurable gain"),
        N_("dominated"),
        N_("extended dominated"),
    )
}


def said(value: object, _: Language, limit: int = 400) -> Said:
    """A sentence of the document: in the reader's language where the catalogue has it, else marked as English."""
    shown = text.line(value, limit)
    if _.english:
        return Said(shown)
    found = translated(shown, _) or translated(f"{shown}.", _)
    return Said(shown, "en") if found is None else Said(found)


def things(name: object, _: Language) -> str:
    """What a number counts."""
    known = text.line(name or "items", 80)
    return _(_THINGS[known]) if known in _THINGS else known


def missing(reason: object, _: Language, default: str = "not known") -> str:
    """What stands where a number is unknown, with the reason."""
    why = text.line(reason or default, 200)
    shown = _(why) if why in _REASONS else why if _.english else translated(why, _) or why
    return _("n/a (%(why)s)", why=shown)


def figure(
    value: Any, unit: str, _: Language, *, limit: Any = None, reason: object = None, default: str = "not known"
) -> str:
    """A figure in its unit; beside a `limit` it never rounds on to it or across it."""
    if value is None:
        return missing(reason, _, default)
    if unit == "share":
        return numbers.percent(value, limit=limit)
    if unit == "usd":
        return numbers.usd(value, limit=limit)
    if unit == "s":
        return numbers.seconds(value, limit=limit)
    if unit in {"score", "index", "agreement", "alpha", "kappa", ""}:
        return numbers.plain(value)
    if unit == "points":
        return _("%(n)s points", n=_points(value, limit))
    shown = numbers.quantity(value, "items", limit=limit)
    if unit == "days":
        return _days(shown, _)
    return shown if unit in {"items", "count", "attempts"} else f"{shown} {things(unit, _)}"


def exact(value: Any, unit: str, _: Language) -> str:
    """A limit at full precision."""
    if value is None:
        return missing("no limit", _)
    if unit in {"share", "usd", "s", "items"}:
        return numbers.exact(value, unit)  # type: ignore[arg-type]
    if unit == "points":
        return _("%(n)s points", n=numbers.exact(value, "items"))
    shown = numbers.exact(value, "items")
    if unit == "days":
        return _days(shown, _)
    return (
        shown
        if unit in {"score", "index", "agreement", "alpha", "kappa", "", "count", "attempts"}
        else (f"{shown} {things(unit, _)}")
    )


def _points(value: float, limit: float | None) -> str:
    """A difference of rates in points, as finely as a rate in percent is written."""
    edge = None if limit is None else limit / 100
    return numbers.percent(value / 100, limit=edge).removesuffix(" %")


def _days(shown: str, _: Language) -> str:
    return _("1 day") if shown == "1" else _("%(n)s days", n=shown)


def change(before: Any, after: Any, unit: str, _: Language) -> str:
    """The difference of two figures with its sign; of money also the relative one."""
    before, after = _one(before), _one(after)
    if not _numeric(before) or not _numeric(after):
        return ""
    difference = after - before
    if unit == "share":
        shown = numbers.signed(difference, "share")
        return shown if _.english else shown.replace(" points", "%p").replace(" point", "%p")
    if unit in {"usd", "s"}:
        shown = numbers.signed(difference, unit)  # type: ignore[arg-type]
        return shown if not before else f"{shown} ({numbers.signed_percent(round(after / before - 1, 10))})"
    if unit == "points":
        return _("%(n)s points", n=numbers.signed(difference, "items"))
    return numbers.signed(difference, "items")


def _one(value: Any) -> Any:
    """A single threshold out of its list."""
    return value[0] if isinstance(value, (list, tuple)) and len(value) == 1 else value


def _numeric(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def of(k: Any, n: Any, _: Language) -> str:
    """Counts with their denominator: "2 of 50"."""
    if k is None or n is None:
        return missing(None, _)
    return _("%(k)s of %(n)s", k=numbers.count(k), n=numbers.count(n))


def mapping(value: Any) -> Mapping[str, Any]:
    """`value` where it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}
