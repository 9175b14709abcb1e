"""The tables of the page as text: what changes, tiers, matrices, comparisons, other figures, items, provenance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from . import numbers, text
from .points_view import Chosen, chosen, figure, point_label
from .replayed import replay_rows
from .verdict import Result

__all__ = [
    "ITEMS_SHOWN",
    "Cell",
    "Matrix",
    "changes",
    "comparisons",
    "cost_matrix",
    "items",
    "kinds",
    "matrices",
    "other_figures",
    "provenance",
    "risk_ranks",
    "tier_rows",
]

ITEMS_SHOWN: Final = 40
_PROMPT_SHOWN: Final = 320
_REPLY_SHOWN: Final = 240


@dataclass(frozen=True, slots=True)
class Cell:
    """One pair of required and routed tier. `kind` is under, over or right."""

    count: str
    kind: str
    lines: tuple[str, ...]
    empty: bool


@dataclass(frozen=True, slots=True)
class Matrix:
    """Rows are the required tiers and then `unsolvable`, columns the routed tiers."""

    title: str
    risk: str | None
    columns: list[str]
    rows: list[tuple[str, list[Cell], str]]
    note: str


def risk_ranks(result: Result) -> dict[str, int]:
    """A mark from 0 (the highest loss of an under-route) to 3 for each risk class."""
    losses = sorted({c.get("under_route_loss_usd") or 0.0 for c in result["risk_classes"]}, reverse=True)
    return {c["name"]: min(losses.index(c.get("under_route_loss_usd") or 0.0), 3) for c in result["risk_classes"]}


def changes(result: Result) -> list[tuple[str, list[str]]]:
    """The chosen point against always the strongest and always the cheapest tier: signed differences."""
    now = chosen(result)
    rows: list[tuple[str, list[str]]] = []
    if not now:
        return rows
    n = result["counts"].get("items")
    for tier in dict.fromkeys((result["tiers"][-1]["name"], result["tiers"][0]["name"])):
        base = (result.get("baselines") or {}).get(f"always:{tier}")
        if base:
            rows.append((point_label(f"always:{tier}"), _differences(now.point, base, n)))
    return rows


def _differences(point: Mapping[str, Any], base: Mapping[str, Any], n: int | None) -> list[str]:
    money = 1000 / n if n else None
    return [
        _difference(point, base, "cost_usd_per_request", "usd", 1000),
        _ratio(point, base, "cost_usd_per_request"),
        _difference(point, base, "expected_total_usd", "usd", money),
        _difference(point, base, "pass_rate_lower", "share"),
        _difference(point, base, "under_route_count", None),
        _difference(point, base, "p95_task_s", "s"),
    ]


def _difference(
    point: Mapping[str, Any], base: Mapping[str, Any], key: str, unit: numbers.Unit | None, times: float | None = 1
) -> str:
    a, b = point.get(key), base.get(key)
    if a is None or b is None or times is None:
        return numbers.na(_why(point, base, key))
    if unit is None:
        return numbers.signed_count(a - b)
    return numbers.signed(times * (a - b), unit)


def _ratio(point: Mapping[str, Any], base: Mapping[str, Any], key: str) -> str:
    a, b = point.get(key), base.get(key)
    if a is None or b is None:
        return numbers.na(_why(point, base, key))
    return numbers.na("it costs nothing") if b == 0 else numbers.signed_percent(a / b - 1)


def _why(point: Mapping[str, Any], base: Mapping[str, Any], key: str) -> str | None:
    reason = point.get(f"{key}_reason") or base.get(f"{key}_reason")
    return text.line(reason) if reason else None


def tier_rows(result: Result) -> list[tuple[str, list[str]]]:
    """One row a figure, one column a tier."""
    tiers = result.get("by_tier") or []

    def row(title: str, make: Callable[[Mapping[str, Any]], str]) -> tuple[str, list[str]]:
        return title, [make(tier) for tier in tiers]

    def rate(key: str) -> Callable[[Mapping[str, Any]], str]:
        return lambda tier: figure(tier, key, numbers.percent)

    def time(key: str, q: int) -> Callable[[Mapping[str, Any]], str]:
        def make(tier: Mapping[str, Any]) -> str:
            reason = tier.get(f"{key}_reason")
            return numbers.percentile(
                tier.get(key), q, tier.get("n"), reason=text.line(reason) if reason else None
            )

        return make

    if not tiers:
        return []
    return [
        row("Requests sent there (n)", lambda tier: figure(tier, "n", numbers.count)),
        row("Share of traffic", rate("share_of_traffic")),
        row("Passed, of the answered", rate("pass_rate")),
        row(
            "Passed, of all (lowest to highest)",
            lambda tier: numbers.interval(tier.get("pass_rate_lower"), tier.get("pass_rate_upper"), "share"),
        ),
        row("Cost per 1,000 requests", lambda tier: _per_request(tier, "cost_usd_per_request")),
        row("Time to first token, p50", time("ttft_p50_s", 50)),
        row("Time to first token, p95", time("ttft_p95_s", 95)),
        row("Request, p50", time("request_p50_s", 50)),
        row("Request, p95", time("request_p95_s", 95)),
        row("Whole task, p50", time("task_p50_s", 50)),
        row("Whole task, p95", time("task_p95_s", 95)),
        row("Fallback rate", rate("fallback_rate")),
        row("Retry rate", rate("retry_rate")),
        row("Unnecessary escalations to it", lambda tier: figure(tier, "unnecessary_escalations", numbers.count)),
        row(
            "Seconds these added, in all",
            lambda tier: figure(tier, "unnecessary_escalation_seconds", numbers.seconds),
        ),
    ]


def _per_request(source: Mapping[str, Any], key: str) -> str:
    reason = source.get(f"{key}_reason")
    return numbers.per_thousand(source.get(key), 1, reason=text.line(reason) if reason else None)


def matrices(result: Result) -> list[Matrix]:
    """All items first, then each risk class, at the chosen point."""
    now = chosen(result)
    if not now or not now.point.get("confusion"):
        return []
    point = now.point
    found = [_matrix(result, "All items", None, point, "confusion_weighted", "confusion_loss_usd")]
    for risk in result["risk_classes"]:
        part = (point.get("by_risk") or {}).get(risk["name"])
        if part and part.get("confusion"):
            found.append(
                _matrix(
                    result, text.line(risk["name"]), risk["name"], part, "confusion_weighted", "confusion_loss_usd"
                )
            )
    return found


def _matrix(
    result: Result, title: str, risk: str | None, source: Mapping[str, Any], weighted_key: str, usd_key: str
) -> Matrix:
    tiers = [text.line(tier["name"], 32) for tier in result["tiers"]]
    counts = source["confusion"]
    weighted, usd = source.get(weighted_key), source.get(usd_key)
    if weighted == counts:
        weighted = None  # every item weighs the same: nothing to add
    rows = []
    for r, row in enumerate(counts):
        cells = [_cell(r, c, len(tiers), value, weighted, usd) for c, value in enumerate(row)]
        rows.append((tiers[r] if r < len(tiers) else "unsolvable", cells, numbers.count(sum(row))))
    under = source.get("under_route_count")
    needs = source.get("needs") if risk is not None else result["counts"].get("needs")
    if needs and under is not None:
        reached = numbers.of(needs - under, needs, (needs - under) / needs)
        note = f"{reached} of the needs reached their tier or a stronger one"
    else:
        note = "no item here needs more than the cheapest tier"
    return Matrix(title, risk, tiers, rows, note)


def _cell(r: int, c: int, k: int, value: Any, weighted: Any, usd: Any) -> Cell:
    kind = ("over" if c > 0 else "right") if r >= k else "under" if c < r else "over" if c > r else "right"
    lines = []
    if value and weighted is not None:
        lines.append(f"weighted {numbers.count(weighted[r][c], reason='weights')}")
    if value and usd is not None and kind != "right":
        lines.append(f"loss {numbers.usd(usd[r][c], reason='cost not known')}")
    return Cell(numbers.count(value), kind, tuple(lines), not value)


def cost_matrix(result: Result) -> list[tuple[str, list[str]]]:
    """Mean cost per 1,000 requests: rows required, columns routed."""
    table = result.get("cost_matrix_usd")
    if not table:
        return []
    names = [*(text.line(tier["name"], 32) for tier in result["tiers"]), "unsolvable"]
    why = text.line(result.get("cost_matrix_usd_reason") or "no such item, or its cost is not known")
    return [
        (name, [numbers.per_thousand(value, 1, reason=why) for value in row])
        for name, row in zip(names, table, strict=False)
    ]


_WHAT: Final = {
    "expected_total_usd": ("expected total", "usd"),
    "cost_usd": ("cost", "usd"),
    "pass_rate": ("pass rate", "share"),
}


_ENDS: Final = ("difference", "lower", "upper")


def comparisons(result: Result) -> tuple[list[str], list[list[str]]]:
    """Paired differences, USD per 1,000 requests: the figures compared, and a row for each other policy.

    A row holds the policy, n, and for each figure "difference (interval; reading)".
    """
    found = result.get("comparisons") or []
    whats = list(dict.fromkeys(item["what"] for item in found))
    rows = []
    for name in dict.fromkeys(item["against"] for item in found):
        mine = {item["what"]: item for item in found if item["against"] == name}
        n = {numbers.count(item.get("n")) for item in mine.values()}
        cells = [_compared(mine[what]) if what in mine else numbers.na("not compared") for what in whats]
        rows.append([point_label(name), ", ".join(sorted(n)), *cells])
    return [_WHAT.get(what, (text.words(what), ""))[0] for what in whats], rows


def _compared(item: Mapping[str, Any]) -> str:
    unit: numbers.Unit = "share" if item["what"] == "pass_rate" else "usd"
    reason = text.line(item["difference_reason"]) if item.get("difference_reason") else None
    times = 1 if unit == "share" else 1000  # USD are means per request
    change, lower, upper = (None if v is None else times * v for v in (item.get(k) for k in _ENDS))
    if change is None:
        return numbers.na(reason)
    if lower is None or upper is None:
        return f"{numbers.signed(change, unit)} (no interval)"
    better = item.get("better")
    word = "no difference shown" if better is None else "better" if better else "worse"
    return (
        f"{numbers.signed(change, unit)} ({numbers.signed(lower, unit)} to {numbers.signed(upper, unit)}; {word})"
    )


def other_figures(result: Result, now: Chosen | None) -> list[tuple[str, str, str]]:
    """Figures that stand behind the decision, each with what it means: name, value, note."""
    rows: list[tuple[str, str, str]] = []
    n = result["counts"].get("items")
    part = result.get("separation")
    if part:
        value = figure(part, "auc", numbers.plain)
        ends = numbers.plain_interval(part.get("lower"), part.get("upper"))
        note = f"{numbers.count(part.get('n_needs'))} needs against {numbers.count(part.get('n_other'))} others"
        rows.append(("Separation of the score (AUC)", f"{value} ({ends})", _with(note, part.get("detail"))))
    if now:
        apparent = _total(now.point, "routing_loss_usd", n)
        rows.append(
            ("Routing loss, apparent, per 1,000", apparent, "on the items that chose the threshold: optimistic")
        )
        if now.point.get("routing_loss_corrected_usd") is not None and not result.get("cross_fitted"):
            value = _total(now.point, "routing_loss_corrected_usd", n)
            rows.append(("Routing loss, corrected, per 1,000", value, ""))
    fitted = result.get("cross_fitted")
    if fitted:
        low, high = (numbers.per_thousand(fitted.get(key), n) for key in ("lower", "upper"))
        value = f"{_total(fitted, 'routing_loss_usd', n)} ({low} to {high})"
        note = f"{numbers.count(fitted.get('folds'))} folds by group; approximate, its interval covers about 90 %"
        rows.append(("Routing loss, cross-fitted, per 1,000", value, _with(note, fitted.get("detail"))))
    if result.get("routing_loss_upper_usd") is not None:
        value = numbers.per_thousand(result["routing_loss_upper_usd"], n)
        rows.append(
            ("Routing loss, upper value, per 1,000", value, "every error rate at its Bonferroni exact upper bound")
        )
    if now:
        point = now.point
        rows.append(
            (
                "Saved against always the strongest, per 1,000",
                _total(point, "saving_usd_vs_strongest", n),
                f"of it on unsolvable items: {_total(point, 'saving_on_unsolvable_usd', n)}",
            )
        )
        rows.append(
            (
                "Unnecessary escalations",
                figure(point, "unnecessary_escalation_count", numbers.count),
                f"of {numbers.count(n)} items",
            )
        )
        rows.append(
            (
                "Contract failures of final replies",
                figure(point, "contract_failure_count", numbers.count),
                f"of {numbers.count(n)} items",
            )
        )
        solvable = None if n is None else n - (result["counts"].get("unsolvable") or 0)
        rows.append(
            (
                "Routed to exactly the required tier",
                figure(point, "accuracy", numbers.percent),
                f"of {numbers.count(solvable)} solvable items; easy items dominate it and it hides under-routing: "
                "read the share of needs that reached their tier beside it, by risk class, above",
            )
        )
    return rows


def _with(note: str, detail: Any) -> str:
    return f"{note}; {text.line(detail, 300)}" if detail else note


def _total(source: Mapping[str, Any], key: str, n: Any) -> str:
    reason = source.get(f"{key}_reason")
    return numbers.per_thousand(source.get(key), n, reason=text.line(reason) if reason else None)


def items(result: Result) -> list[dict[str, Any]]:
    """The worst items, cut to what somebody will read."""
    ranks = risk_ranks(result)
    rows = []
    for item in (result.get("worst_items") or [])[:ITEMS_SHOWN]:
        rows.append(
            {
                "id": text.line(item["id"], 80),
                "risk": text.line(item.get("risk") or "", 40),
                "rank": ranks.get(item.get("risk"), 3),
                "category": text.line(item.get("category") or "", 60),
                "required": text.line(item.get("required_tier") or "", 32),
                "routed": text.line(item.get("routed_tier") or "", 32),
                "score": figure(item, "score", numbers.threshold),
                "loss": figure(item, "loss_usd", numbers.usd),
                "flags": [text.words(flag) for flag in item.get("flags") or []],
                "prompt": _block(item, "prompt", _PROMPT_SHOWN),
                "reply": _block(item, "reply", _REPLY_SHOWN),
                "reference": _block(item, "reference", 120),
                "model": text.line(item.get("model") or "", 80),
                "status": text.words(item.get("status") or ""),
            }
        )
    return rows


def _block(item: Mapping[str, Any], name: str, limit: int) -> text.Block | None:
    value = item.get(name)
    if value is None or value == "":
        return None
    return text.block(value, limit, full=item.get(f"{name}_characters"))


def provenance(result: Result) -> list[tuple[str, list[str], str]]:
    """What the run stood on: name, lines of text, hash ("" where there is none)."""
    source = result.get("provenance") or {}
    rows: list[tuple[str, list[str], str]] = []

    def add(name: str, *lines: Any, digest: Any = None) -> None:
        shown = [text.line(value, 300) for value in lines if value not in (None, "", [])]
        if shown or digest:
            rows.append((name, shown, text.line(digest or "", 100)))

    def add_file(name: str, key: str, *more: str, of: Mapping[str, Any] = source) -> None:
        part = of.get(key)
        if part:
            extra = [
                f"{word.replace('_', ' ')}: {part[word]}".replace("_", " ") for word in more if part.get(word)
            ]
            add(name, part.get("file"), *extra, digest=part.get("hash"))

    add("Study", source.get("study_file"), digest=source.get("study_hash"))
    add_file("Labels", "labels", "kind")
    add_file("Outcomes", "outcomes")
    routers = source.get("routers") or []
    for router in routers if len(routers) > 1 else []:
        name = text.line(router["name"], 60)
        add_file(f"Scores of {name}", "scores", "trained_on", of=router)
        add_file(f"Decisions of {name}", "decisions", of=router)
    if len(routers) < 2:
        add_file("Scores", "scores", "trained_on")
        add_file("Decisions", "decisions")
    add_file("Audit", "audit")
    add_file("Prices", "prices", "kind", "as_of")
    for tier, model in (source.get("models") or {}).items():
        served = [str(name) for name in model.get("served") or []]
        add(
            f"Tier {text.line(tier, 40)}",
            f"requested {model.get('requested') or 'n/a (the study names no model)'}",
            f"served by {', '.join(served)}" if served else None,
        )
    rows += replay_rows(source)
    started, finished = source.get("started_at"), source.get("finished_at")
    if started:
        add("Run", f"{text.moment(started)} to {text.moment(finished) if finished else 'not known'}")
    add("Seed", None if source.get("seed") is None else str(source["seed"]))
    add("Looks kept in", source.get("looks_file"))
    versions = ", ".join(
        f"{name} {version}" for name, version in sorted((source.get("dependencies") or {}).items())
    )
    add("evalkit", result.get("evalkit_version"), digest=source.get("evalkit_source_sha256"))
    add("Python and packages", source.get("python"), text.line(versions, 2000) if versions else None)
    return rows


def kinds(result: Result) -> Sequence[tuple[str, str]]:
    """For each figure whether it is cited, assumed or measured."""
    known = (result.get("provenance") or {}).get("numbers") or {}
    return [(text.line(name), text.line(kind, 40)) for name, kind in sorted(known.items())]
