"""Comparing two runs: figures against numbers worked out by hand, what is newly failing, and what is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.errors import InputError
from evalkit.signoff.compare import compare
from evalkit.signoff.compare_changes import changes_document
from evalkit.signoff.run_folder import RunItem
from tests.signoff.runs import failing, item, priced, run_of, under_routed, write_run


def both(
    tmp_path: Path, base: list[dict[str, Any]], candidate: list[dict[str, Any]], **changes: Any
) -> dict[str, Any]:
    return compare(run_of(tmp_path / "a", base), run_of(tmp_path / "b", candidate, **changes))


def figure(document: dict[str, Any], name: str) -> dict[str, Any]:
    return next(row for row in document["differences"] if row["figure"] == name)


def test_times_are_compared_where_both_answered(tmp_path: Path) -> None:
    base = [item(f"i{k}", task_s=1.0 + k) for k in range(20)] + [item("none", task_s=None)]
    candidate = [item(f"i{k}", task_s=3.0 + k) for k in range(20)] + [item("none", task_s=9.0)]
    document = both(tmp_path, base, candidate)
    mean, p95 = figure(document, "task_time"), figure(document, "p95_task")
    assert (mean["base"], mean["candidate"], mean["difference"], mean["n"]) == (10.5, 12.5, 2.0, 20)
    assert (mean["lower"], mean["upper"], mean["better"]) == (2.0, 2.0, "base")  # every item takes 2 s longer
    assert (p95["base"], p95["candidate"], p95["difference"]) == (19.0, 21.0, 2.0)  # the 19th of 20
    assert (p95["lower"], p95["better"]) == (None, None)
    assert p95["reason"] == "no interval is computed for a difference of percentiles"
    unknown = both(tmp_path / "x", [item("a", task_s=None)], [item("a")])
    assert figure(unknown, "task_time")["reason"] == "no paired item has a time in both"


def test_a_run_against_itself_differs_in_nothing(tmp_path: Path) -> None:
    rows = [item("a"), failing("b"), under_routed("c")]
    document = both(tmp_path, rows, rows)
    assert [row["difference"] for row in document["differences"]] == [0, 0, 0, 0, 0, None, 0, 0]
    assert (document["newly_failing"]["count"], document["newly_working"]["count"]) == (0, 0)
    assert all(row["same"] for row in document["inputs"])
    assert all(row["better"] is None for row in document["differences"])


def test_no_difference_seen_is_no_difference_proved(tmp_path: Path) -> None:
    """20 items alike in both: the t interval has no width; the exact one leaves 1 - .025 ** (1 / 20) a side."""
    rows = [item(f"q{i}") for i in range(20)]
    row = figure(both(tmp_path, rows, rows), "pass_rate")
    guard = 1 - 0.025 ** (1 / 20)
    assert (row["lower"], row["upper"]) == pytest.approx((-guard, guard))
    assert row["mcnemar_p"] == 1


def test_paired_figures_are_those_worked_out_by_hand(tmp_path: Path) -> None:
    """40 items; 15 fail in base only, 5 in candidate only: difference .25. sd of the differences:
    sum of squares 20, less 40 * .25 ** 2 = 2.5, over 39."""
    base = [failing(f"q{i}") if i < 15 else item(f"q{i}") for i in range(40)]
    candidate = [failing(f"q{i}") if 15 <= i < 20 else item(f"q{i}") for i in range(40)]
    for row in candidate:
        row["cost_usd"] = 0.003
    document = both(tmp_path, base, candidate)
    row = figure(document, "pass_rate")
    assert (row["base"], row["candidate"], row["difference"]) == pytest.approx((0.625, 0.875, 0.25))
    half = 2.0226909 * math.sqrt(17.5 / 39) / math.sqrt(40)  # the .975 quantile of t with 39 degrees of freedom
    assert row["lower"] <= 0.25 - half + 1e-6
    assert row["upper"] >= 0.25 + half - 1e-6
    assert (row["rose"], row["fell"], row["n"]) == (15, 5, 40)
    assert row["mcnemar_p"] == pytest.approx(0.041389465, abs=1e-9)
    assert figure(document, "cost_per_request")["difference"] == pytest.approx(0.002)
    assert (document["newly_failing"]["count"], document["newly_working"]["count"]) == (5, 15)
    # Clopper-Pearson for 5 of 40, one-sided 95 %: the p with P(X <= 5) = .05
    p = document["newly_failing"]["upper_bound"]
    assert sum(math.comb(40, k) * p**k * (1 - p) ** (40 - k) for k in range(6)) == pytest.approx(0.05)


def test_weights_are_the_candidates(tmp_path: Path) -> None:
    base = [item("a"), item("b")]
    candidate = [failing("a", weight=3.0), item("b")]
    document = both(tmp_path, base, candidate)
    assert figure(document, "pass_rate")["difference"] == pytest.approx(-0.75)
    assert "weight items differently" in " ".join(document["notes"])


def test_items_of_a_conversation_are_no_independent_items(tmp_path: Path) -> None:
    """Two conversations of 10 turns, one of which fails: as items 10 of 20, as conversations 1 of 2."""
    base = [item(f"q{i}", group=f"g{i // 10}") for i in range(20)]
    candidate = [failing(f"q{i}", group=f"g{i // 10}") if i < 10 else base[i] for i in range(20)]
    document = both(tmp_path, base, candidate)
    row = figure(document, "pass_rate")
    assert row["difference"] == -0.5
    assert (row["better"], row["mcnemar_p"]) == (None, None)
    # 1 of 2: 1 - p ** 2 = .05 at the bound
    assert document["newly_failing"]["upper_bound"] == pytest.approx(math.sqrt(0.95))
    assert document["pairs"]["groups"] == 2


def test_groups_that_are_not_told_leave_no_interval(tmp_path: Path) -> None:
    rows = [item(f"q{i}") for i in range(20)]
    document = both(tmp_path, rows, [failing(f"q{i}") for i in range(20)], counts={"items": 20, "groups": 3})
    row = figure(document, "pass_rate")
    assert (row["difference"], row["lower"], row["upper"], row["better"]) == (-1, None, None, None)


def test_under_routing_counts_needs_of_the_class_alone(tmp_path: Path) -> None:
    base = [item(f"q{i}", required_tier="frontier", routed_tier="frontier", risk="critical") for i in range(4)]
    base += [item("x", risk="critical"), item("u", risk="critical", required_tier="unsolvable"), item("l")]
    candidate = [under_routed("q0"), *base[1:]]
    document = both(tmp_path, base, candidate)
    row = figure(document, "under_route:critical")
    assert (row["n"], row["base"], row["candidate"]) == (4, 0, 0.25)
    assert figure(document, "under_route:low")["reason"] == "no paired item"
    assert figure(document, "under_route_loss")["difference"] == pytest.approx(40.0 / 7)
    (found,) = document["newly_failing"]["items"]
    assert (found["id"], found["ways"], found["required"]) == ("q0", ["under_routed"], "frontier")


def test_the_dearest_risk_comes_first_and_a_list_is_cut_with_its_length(tmp_path: Path) -> None:
    base = [item(f"q{i}") for i in range(1500)] + [item("last", risk="critical")]
    candidate = [failing(f"q{i}") for i in range(1500)] + [failing("last", risk="critical")]
    found = both(tmp_path, base, candidate)["newly_failing"]
    assert (found["count"], len(found["items"]), found["items"][0]["id"]) == (1501, 1000, "last")


def test_items_of_one_run_and_relabelled_items_are_counted_not_paired(tmp_path: Path) -> None:
    base = [item("a"), item("b"), item("gone")]
    candidate = [item("a"), failing("b", required_tier="frontier"), failing("new")]
    document = both(tmp_path, base, candidate)
    pairs = document["pairs"]
    assert (pairs["items"], pairs["only_in_base_ids"], pairs["only_in_candidate_ids"]) == (1, ["gone"], ["new"])
    assert pairs["relabelled_ids"] == ["b"]
    assert document["newly_failing"]["count"] == 0


def test_an_unknown_cost_leaves_the_figure_unknown(tmp_path: Path) -> None:
    row = figure(both(tmp_path, [item("a"), item("b")], [item("a", cost_usd=None), item("b")]), "cost_per_request")
    assert (row["difference"], row["reason"]) == (None, "not known for 1 in candidate")


OLD = {"file": "prices_old.json", "hash": "sha256:" + "a" * 64, "as_of": "2026-01-15"}
NEW = {"file": "prices_new.json", "hash": "sha256:" + "b" * 64, "as_of": "2026-03-01"}


def test_costs_of_two_price_tables_are_not_compared(tmp_path: Path, shared: Path) -> None:
    """Case C13, point 4; the dates are those of its files."""
    case = shared / "cases" / "C13-price-drift"
    assert all((case / card["file"]).is_file() for card in (OLD, NEW))
    rows = [item("a"), item("b")]
    base, candidate = run_of(tmp_path / "a", rows, **priced(**OLD)), run_of(tmp_path / "b", rows, **priced(**NEW))
    document = compare(base, candidate)
    said = document["costs"]["reason"]
    assert all(token in said for token in ("prices_new.json", "2026-03-01", "2026-01-15"))
    row = figure(document, "cost_per_request")
    assert (row["base"], row["candidate"], row["difference"], row["reason"]) == (None, None, None, said)
    assert figure(document, "pass_rate")["difference"] == 0
    assert {row["input"]: row["same"] for row in document["inputs"]}["prices"] is False


def test_one_table_under_two_names_is_one_table(tmp_path: Path) -> None:
    rows = [item("a"), item("b")]
    candidate = run_of(tmp_path / "b", rows, **priced(**(OLD | {"file": "copy.json"})))
    document = compare(run_of(tmp_path / "a", rows, **priced(**OLD)), candidate)
    assert document["costs"] == {"compared": True, "reason": None}


def test_a_card_on_one_side_only_is_two_tables(tmp_path: Path) -> None:
    rows = [item("a"), item("b")]
    document = compare(run_of(tmp_path / "a", rows), run_of(tmp_path / "b", rows, **priced(**NEW)))
    assert "without a card" in document["costs"]["reason"]


def test_a_lost_gate_is_named(tmp_path: Path) -> None:
    gates = [{"name": "under_route:critical", "label": "x", "status": "insufficient"}]
    (gate,) = both(tmp_path, [item("a")], [item("a")], gates=gates)["gates"]
    assert (gate["base"], gate["candidate"], gate["lost"]) == ("certified", "insufficient", True)


def test_a_gate_that_is_left_out_is_lost(tmp_path: Path) -> None:
    (gate,) = both(tmp_path, [item("a")], [item("a")], gates=[])["gates"]
    assert (gate["candidate"], gate["lost"]) == (None, True)


def test_two_kinds_of_runs_are_not_compared(tmp_path: Path) -> None:
    ladder = write_run(
        tmp_path / "b",
        [item("a", arms={"plain": {"passed": 1.0, "cost_usd": None, "status": "ok"}})],
        schema="evalkit.reasoning-budget/1",
        arms=[{"name": "plain", "gates": []}],
        selected="plain",
    )
    from evalkit.signoff.run_folder import read_run

    with pytest.raises(InputError, match="compare two runs of one kind"):
        compare(run_of(tmp_path / "a", [item("a")]), read_run(ladder))


def test_the_document_is_strict_json_whatever_the_text(tmp_path: Path) -> None:
    hostile = "<script>\u202e\x1b[2J"
    document = both(tmp_path, [item(hostile, risk=None, category=hostile)], [failing(hostile, risk=None)])
    assert json.loads(json.dumps(document, allow_nan=False)) == document


def run_items(values: list[tuple[bool | None, float | None]]) -> list[RunItem]:
    return [
        RunItem(str(i), "low", None, None, 1.0, None, "t", under, None, passed, None, None, None, ())
        for i, (under, passed) in enumerate(values)
    ]


OUTCOME = st.tuples(st.booleans(), st.sampled_from([None, 0.0, 0.5, 1.0]))


@given(st.lists(st.tuples(OUTCOME, OUTCOME), max_size=30))
def test_turning_the_comparison_round_swaps_failing_and_working(
    outcomes: list[tuple[tuple[bool, float | None], tuple[bool, float | None]]],
) -> None:
    then, now = (run_items([pair[side] for pair in outcomes]) for side in (0, 1))
    one = changes_document(list(zip(then, now, strict=True)), {}, None, 0.95, 1000)
    other = changes_document(list(zip(now, then, strict=True)), {}, None, 0.95, 1000)
    for name, turned in (("newly_failing", "newly_working"), ("newly_working", "newly_failing")):
        assert {row["id"] for row in one[name]["items"]} == {row["id"] for row in other[turned]["items"]}
    for row in one["newly_failing"]["items"]:
        under, passed = outcomes[int(row["id"])][1]
        assert under or (passed is not None and passed < 1)


# What is no run


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda f: (f / "result.json").unlink(), "result.json: cannot be read"),
        (lambda f: (f / "result.json").write_text("{"), "is no JSON"),
        (lambda f: (f / "result.json").write_text('{"schema": "x"}'), 'has the schema "x"'),
        (lambda f: (f / "result.json").write_text('{"schema": "evalkit.route-sweep/1"}'), "has no usable verdict"),
        (lambda f: (f / "items.jsonl.gz").write_bytes(b"plain"), "items.jsonl.gz: cannot be read"),
        (lambda f: (f / "items.jsonl.gz").write_bytes((f / "items.jsonl.gz").read_bytes()[:-9]), "cannot be read"),
        (lambda f: write_run(f, [item("a"), item("a")]), "items.jsonl.gz:2: id a: stands there twice"),
        (lambda f: write_run(f, [item("a")], counts={"items": 2}), "holds 1 items, and result.json counts 2"),
        (lambda f: write_run(f, [item("a", passed="yes")]), 'passed is "yes", which is no number'),
        (lambda f: write_run(f, [item("a", passed=1.5)]), "which is no share"),
        (lambda f: write_run(f, [item("a", weight=-1)]), "no usable weight"),
        (lambda f: write_run(f, [item("a", id=None)]), "has no id"),
        (lambda f: write_run(f, [item("a", flags="under_routed")]), "no usable flags"),
        (lambda f: write_run(f, [item("a", cost_usd=float("nan"))]), "NaN is no JSON"),
    ],
)
def test_what_is_no_run_is_named(tmp_path: Path, spoil: Any, message: str) -> None:
    from evalkit.signoff.run_folder import read_run

    folder = write_run(tmp_path / "a", [item("a")])
    spoil(folder)
    with pytest.raises(InputError) as refused:
        read_run(folder)
    assert message in str(refused.value)
