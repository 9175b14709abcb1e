"""The routers of a study as rows of text: each at its point, comparisons, probabilities, leaks and facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from . import calibration_figure, numbers, text
from .notes import Notes
from .points_view import figure, threshold_steps, thresholds
from .verdict import WORDS, Result

__all__ = [
    "CalibrationView",
    "RouterRow",
    "calibrations",
    "facts",
    "leaks",
    "router_comparisons",
    "router_rows",
    "router_rules",
    "separated_on",
]

LEAKS_SHOWN: Final = 20
FACTS_SHOWN: Final = 12
_POINTS: Final = {
    "selected": "passes every gate",
    "judged": "fixed in advance",
    "candidate": "candidate, not recommended",
    "all_strongest": "everything to the strongest tier",
}
_KINDS: Final = {
    "scores": "scores from a file",
    "decisions": "decisions from a file",
    "rules": "rules",
    "classifier": "classifier",
    "semantic": "semantic",
    "python": "Python function",
}
_TRAINED: Final = {
    "other_items": "trained on other items",
    "cross_fitted": "cross-fitted, approximate",
    "these_items": "trained on these items",
    "untrained": "not trained",
}


@dataclass(frozen=True, slots=True)
class RouterRow:
    """One router in words; money is per 1,000 requests. `under` has one cell a risk class.

    `cuts` are the thresholds one by one, each with the step that it guards ("" where there is one step only).
    `why` is what stands against a router that is not approved; the chosen one's reasons stand in the verdict.
    """

    name: str
    about: str
    chosen: bool
    state: str
    word: str
    why: str
    threshold: str
    cuts: list[tuple[str, str]]
    point: str
    escalated: str
    under: list[str]
    passed: str
    cost: str
    total: str
    auc: str


@dataclass(frozen=True, slots=True)
class CalibrationView:
    """The declared probabilities of one router: its curve, and a row for each bin."""

    index: int
    name: str
    svg: Markup
    what: str
    rows: list[list[str]]
    brier: str


def _rows(result: Result) -> Sequence[Mapping[str, Any]]:
    return result.get("routers") or []


def router_rows(result: Result) -> tuple[list[RouterRow], list[str]]:
    """(a row for each router in the study's order, notes below the table)."""
    notes = Notes()
    n = result["counts"].get("items")
    tiers = [tier["name"] for tier in result["tiers"]]
    risks = [c["name"] for c in result["risk_classes"]]
    found = []
    for row in _rows(result):
        decision = row["verdict"]["decision"]
        trained = row.get("trained_on")
        about = [_KINDS.get(row["kind"]) or text.line(row["kind"], 40)]
        about += [_TRAINED.get(trained) or text.line(trained, 40)] if trained else []
        if result.get("policies_compared") or row.get("policies"):
            about.append(f"{text.line(row['policy'], 20)} policy")
        cuts = thresholds(row.get("thresholds"), tiers)
        against = (row["verdict"].get("reasons") or []) if decision != "approve" and not row.get("chosen") else []
        found.append(
            RouterRow(
                name=text.line(row["name"], 60),
                about=", ".join(about),
                chosen=bool(row.get("chosen")),
                state={"approve": "pass", "reject": "fail"}.get(decision, "open"),
                word=WORDS[decision].capitalize(),
                why=text.line(against[0], 400) if against else "",
                threshold="as decided" if cuts == "none" else cuts,
                cuts=threshold_steps(row.get("thresholds"), tiers),
                point=_POINTS.get(row.get("point_is") or "", ""),
                escalated=figure(row, "escalation_rate", numbers.percent),
                under=[_under((row.get("by_risk") or {}).get(name) or {}) for name in risks],
                passed=notes.cell(figure(row, "pass_rate_lower", numbers.percent)),
                cost=notes.cell(figure(row, "cost_usd_per_request", numbers.per_thousand, 1)),
                total=notes.cell(figure(row, "expected_total_usd", numbers.per_thousand, n)),
                auc=_auc(row.get("separation")),
            )
        )
    return found, notes.texts


def router_rules(result: Result) -> list[tuple[str, list[str]]]:
    """Each rule that goes with the thresholds of the table, and the routers that it is the rule of."""
    found: dict[str, list[str]] = {}
    for row in _rows(result):
        if row.get("rule") and row.get("thresholds"):
            found.setdefault(text.line(row["rule"]), []).append(text.line(row["name"], 60))
    return list(found.items())


def separated_on(result: Result) -> str:
    """How many items the AUC of the routers stands on; "" where that is not one number."""
    parts = [row["separation"] for row in _rows(result) if row.get("separation")]
    sizes = {part["n_needs"] + part["n_other"] for part in parts if "n_needs" in part and "n_other" in part}
    return numbers.count(sizes.pop()) if len(sizes) == 1 else ""


def _under(part: Mapping[str, Any]) -> str:
    needs, k, rate = part.get("needs"), part.get("under_route_count"), part.get("under_route_rate")
    bound = part.get("under_route_upper_bound")
    if not needs or k is None:
        return "0 of 0"
    at_most = "" if bound is None else f"; at most {numbers.percent(bound)}"
    return f"{numbers.of(k, needs)} ({numbers.percent(rate)}{at_most})"


def _auc(part: Mapping[str, Any] | None) -> str:
    if not part:
        return numbers.na("no scores")
    ends = numbers.plain_interval(part.get("lower"), part.get("upper"))
    return f"{numbers.plain(part.get('auc'))} ({ends})"


def router_comparisons(result: Result) -> tuple[list[list[str]], str, list[str]]:
    """(a row for each other router: name, expected total, cost, passes, n; the level of the intervals; notes)."""
    items = result.get("router_comparisons") or []
    notes = Notes()
    rows = []
    for name in dict.fromkeys(item["against"] for item in items):
        mine = {item["what"]: item for item in items if item["against"] == name}
        cells = [_compared(mine.get(what)) for what in ("expected_total_usd", "cost_usd", "pass_rate")]
        count = numbers.count(max((item.get("n") or 0 for item in mine.values()), default=0))
        rows.append(notes.cells([text.line(name, 60), *cells, count]))
    levels = {item["confidence"] for item in items if item.get("confidence") is not None}
    level = numbers.exact(round(min(levels), 6), "share") if levels else ""
    return rows, level, notes.texts


def _compared(item: Mapping[str, Any] | None) -> str:
    if item is None or item.get("difference") is None:
        return numbers.na("not known for both")
    unit: numbers.Unit = "share" if item["what"] == "pass_rate" else "usd"
    times = 1 if unit == "share" else 1000
    shown = numbers.signed(times * item["difference"], unit)
    if item.get("lower") is None or item.get("upper") is None:
        return f"{shown} (no interval)"
    word = {True: "better", False: "worse"}.get(item.get("better"), "no difference shown")  # type: ignore[arg-type]
    ends = f"{numbers.signed(times * item['lower'], unit)} to {numbers.signed(times * item['upper'], unit)}"
    test = ""
    if item.get("p_value") is not None:
        gained, lost = numbers.count(item["gained"]), numbers.count(item["lost"])
        test = f"; {gained} gained, {lost} lost, p {item['p_value']:.3g}"
    return f"{shown} ({ends}; {word}{test})"


def calibrations(result: Result) -> tuple[list[CalibrationView], list[str]]:
    """(the routers whose score is a probability, names of the others)."""
    found, without = [], []
    for index, row in enumerate(_rows(result)):
        part = row.get("calibration")
        name = text.line(row["name"], 60)
        if not part:
            without.append(name)
            continue
        bins = part.get("bins") or []
        found.append(
            CalibrationView(
                index=index,
                name=name,
                what=text.line(part.get("what") or "", 100),
                svg=calibration_figure.calibration_curve(bins, index),
                rows=[
                    [
                        numbers.percent(one["predicted"]),
                        numbers.percent(one["observed"]),
                        numbers.interval(one.get("lower"), one.get("upper"), "share"),
                        numbers.count(one["n"]),
                    ]
                    for one in bins
                ],
                brier=numbers.plain(part.get("brier")),
            )
        )
    return found, without


def leaks(result: Result) -> tuple[str, list[list[str]]]:
    """(what was left out, "" where nothing was looked for; the first pairs: router, item, training item, how)."""
    left = result.get("left_out")
    if left is None:
        return "", []
    checked = [text.line(row["name"], 60) for row in _rows(result) if row.get("leaks_checked")]
    names = text.join(checked)
    count = left.get("items") or 0
    said = f"No judged item stands in the training labels of {names}."
    if count:
        items = "1 labelled item is" if count == 1 else f"{numbers.count(count)} labelled items are"
        where = f"in the training labels of {names} or in one conversation with such an item"
        said = f"{items} left out for all routers, being {where}."
    pairs = []
    for row in _rows(result):
        for leak in row.get("leaks") or []:
            how = text.line(leak["kind"], 20)
            if leak["kind"] == "near":
                how += f", {numbers.plain(leak.get('similarity'))}"
            pairs.append([text.line(row["name"], 60), text.line(leak["id"]), text.line(leak["training_id"]), how])
    return said, pairs[:LEAKS_SHOWN]


def facts(result: Result) -> list[tuple[str, list[str]]]:
    """What is known of each router that evalkit ran, as "name: value"."""
    found = []
    for row in _rows(result):
        lines = [f"{name}: {value}" for name, value in _flat(row.get("facts") or {})]
        if lines:
            more = [f"and {len(lines) - FACTS_SHOWN:,} more in result.json"] if len(lines) > FACTS_SHOWN else []
            found.append((text.line(row["name"], 60), lines[:FACTS_SHOWN] + more))
    return found


def _flat(part: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    for key, value in part.items():
        name = f"{path} {text.words(key)}".strip()
        if isinstance(value, Mapping):
            yield from _flat(value, name)
        elif isinstance(value, list):
            yield name, f"{len(value):,} entries"
        elif value not in (None, ""):
            yield text.line(name, 60), text.line(value, 120)
