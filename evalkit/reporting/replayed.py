"""What a replay cost and how its judge did, as rows of the provenance.

What `replay.json` says is shown only where it is a number or a name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import numbers, text

__all__ = ["replay_rows"]

Row = tuple[str, list[str], str]


def replay_rows(provenance: Mapping[str, Any]) -> list[Row]:
    """(name, lines, hash) of the replay that made the outcomes and of its judge; none where there was none."""
    rows: list[Row] = []
    replay = provenance.get("replay")
    if isinstance(replay, Mapping):
        lines = [*_costs(_part(replay, "costs")), *_folder(_part(replay, "all_runs")), *_others(replay)]
        rows.append(("Replay", lines, text.line(replay.get("hash") or "", 100)))
    judge = provenance.get("judge")
    if isinstance(judge, Mapping):
        rows.append(("Judge", _judge(judge), ""))
    return rows


def _part(facts: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = facts.get(name)
    return found if isinstance(found, Mapping) else {}


def _costs(costs: Mapping[str, Any]) -> list[str]:
    """The cost of the decision: what the answers cost at list prices, recorded or not."""
    whole, known = _usd(costs.get("decision_usd")), _usd(costs.get("decision_known_usd"))
    if whole is not None:
        return [f"cost of the decision {whole} USD"]
    if known is None:
        return []
    priced, calls = _count(costs.get("priced_calls")), _count(costs.get("calls"))
    return [f"cost of the decision at least {known} USD ({priced:,} of {calls:,} calls priced)"]


def _folder(runs: Mapping[str, Any]) -> list[str]:
    """What was spent to collect them, all runs of the folder together."""
    low, high = _usd(runs.get("spent_low_usd")), _usd(runs.get("spent_high_usd"))
    if low is None:
        return []
    count = _count(runs.get("runs"))
    spent = f"at least {low}" if high is None else low if high == low else f"{low} to {high}"
    lines = [f"spent {spent} USD in {_n(count, 'run')}"]
    possibly, twice = _count(runs.get("possibly_billed")), _count(runs.get("possibly_paid_twice"))
    if possibly:
        lines.append(f"{_n(possibly, 'attempt')} possibly billed")
    if twice:
        lines.append(f"{_n(twice, 'call')} possibly paid twice")
    return lines


def _others(replay: Mapping[str, Any]) -> list[str]:
    """Replies of models that were not asked for."""
    lines = []
    for name, one in _part(replay, "candidates").items():
        served = _part(one, "other_model") if isinstance(one, Mapping) else {}
        count = sum(_count(n) for n in served.values())
        if count:
            lines.append(f"{text.line(name, 60)}: {_n(count, 'reply', 'replies')} of another model, not credited")
    return lines


def _judge(judge: Mapping[str, Any]) -> list[str]:
    missing, replies = _count(judge.get("unparseable")), _count(judge.get("replies"))
    agreement = judge.get("agreement")
    measured = isinstance(agreement, int | float) and not isinstance(agreement, bool)
    return [
        text.line(judge.get("model") or "not named", 200),
        f"no verdict on {missing:,} of {replies:,} replies",
        f"agrees with people on {numbers.percent(agreement)} of replies that both graded"
        if measured
        else "not measured against people",
    ]


def _usd(value: Any) -> str | None:
    return text.line(value, 60) if isinstance(value, str) else None


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _n(count: int, one: str, many: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"
