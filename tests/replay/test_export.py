"""What a ledger says when it is asked: exports, cells, repeats, and what a recording of it replays."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from evalkit.costs import PriceCard, PricePeriod, Rates
from evalkit.errors import InputError
from evalkit.providers.call import Billed, Failure, FailureKind, Reply
from evalkit.providers.recorded import CellId, RecordedProvider, recording_files
from evalkit.replay import (
    CardPricing,
    Ledger,
    Plan,
    PlanCandidate,
    cells_of,
    export_jsonl,
    plan_cells,
    plan_of,
    repeat_notices,
)
from evalkit.testing import After, ScriptedProvider, last_text
from tests.replay.support import BUSY, COST_USD, DOWN, FAST, WRONG, go, item, ok, plan_for

STEPS = [PlanCandidate("s", "demo/mid", {"max_tokens": 100}, follow_ups=("check",))]
FIVE = ["q1", "q2", "q3", "q4", "q5"]


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A folder with a ledger of replies, of retried and of failed calls, and of a plan of two steps."""
    provider = ScriptedProvider(
        {
            "q1": ok("eins \u2603", request_s=1.5, ttft_s=0.5),
            "q2": [BUSY, ok("zwei")],
            "q3": WRONG,
            "q4": DOWN,
            "q5": Reply("no usage"),
            "start": ok("draft"),
            "check": ok("done"),
        }
    )
    go(tmp_path, plan_for(FIVE), provider, replace(FAST, max_attempts=2))
    go(tmp_path, plan_cells([item("start")], STEPS), provider)
    return tmp_path


def export(folder: Path, name: str = "export.jsonl", *, text: bool = True) -> list[dict[str, object]]:
    with Ledger.read(folder / "ledger.sqlite") as ledger:
        count = export_jsonl(ledger, folder / name, text=text)
    lines = (folder / name).read_text(encoding="utf-8").splitlines()
    assert len(lines) == count
    return [json.loads(line) for line in lines]


def test_an_export_has_a_line_for_each_step_in_one_order(made: Path) -> None:
    lines = export(made)
    assert [(line["candidate"], line["item"], line["step"], line["state"]) for line in lines] == [
        ("mid", "q1", 0, "reply"),
        ("mid", "q2", 0, "reply"),
        ("mid", "q3", 0, "failure"),
        ("mid", "q4", 0, "failure"),
        ("mid", "q5", 0, "reply"),
        ("s", "start", 0, "reply"),
        ("s", "start", 1, "reply"),
    ]
    first = lines[0]
    assert first["reply"] == {
        "text": "eins \u2603",
        "finish_reason": "stop",
        "served_model": "demo/mid",
        "usage": {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150},
        "ttft_s": 0.5,
        "request_s": 1.5,
    }
    assert first["cost_usd"] == "0.0006"
    assert "cost_usd" not in lines[4]
    assert lines[4]["cost_reason"]
    attempts = lines[1]["attempts"]
    assert isinstance(attempts, list)
    assert [attempt.get("kind", "reply") for attempt in attempts] == ["rate_limit", "reply"]


def test_equal_ledgers_give_equal_bytes_and_the_file_is_whole_or_as_it_was(made: Path) -> None:
    export(made, "one.jsonl")
    export(made, "two.jsonl")
    assert (made / "one.jsonl").read_bytes() == (made / "two.jsonl").read_bytes()
    with Ledger.read(made / "ledger.sqlite") as ledger, pytest.raises(InputError, match="is a folder"):
        export_jsonl(ledger, made)
    assert [path.name for path in made.iterdir() if path.name.startswith(".")] == []


def test_an_export_without_text_holds_none(made: Path) -> None:
    lines = export(made, text=False)
    data = (made / "export.jsonl").read_text(encoding="utf-8")
    for word in ("eins", "zwei", "draft", "no such parameter", 'start", "role'):
        assert word not in data
    assert all(line["text_left_out"] for line in lines)
    assert lines[0]["cost_usd"] == "0.0006"


def test_a_ledger_replayed_from_its_export_says_the_same(
    made: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    export(made)
    again = tmp_path_factory.mktemp("again")
    recorded = RecordedProvider([made / "export.jsonl"])
    found = go(again, plan_for(FIVE), recorded)
    go(again, plan_cells([item("start")], STEPS), recorded)
    assert found.replied == 3
    # Case C12: a recorded answer costs its list price as evidence, and nothing now.
    assert (found.spent_low_usd, found.spent_high_usd, found.charged_usd) == (0, 0, 0)
    plans = [plan_for(FIVE), plan_cells([item("start")], STEPS)]
    with Ledger.read(made / "ledger.sqlite") as first, Ledger.read(again / "ledger.sqlite") as second:
        for plan in plans:
            for one, two in zip(cells_of(first, plan), cells_of(second, plan), strict=True):
                assert one.result == two.result
                assert one.cost.usd == two.cost.usd
                assert one.request_s == two.request_s
                assert not two.fresh(found.run)
    assert [line["state"] for line in export(again)] == [line["state"] for line in export(made)]


def test_what_was_recorded_elsewhere_is_no_latency_of_now(tmp_path: Path, shared: Path) -> None:
    """Case C12, as its files say it."""
    case = shared / "cases/C12-replay-cost-latency"
    hit = json.loads((case / "hit.json").read_text(encoding="utf-8"))
    values = json.loads((case / "expect.json").read_text(encoding="utf-8"))["values"]
    rates = json.loads((case / "prices.json").read_text(encoding="utf-8"))["models"]["demo/mid"]
    card = PriceCard({"demo/mid": (PricePeriod(Rates(**{k: Decimal(str(v)) for k, v in rates.items()})),)})
    recording = tmp_path / "hit.jsonl"
    row = {"item": "q1", "candidate": "mid", "reply": {"text": "x", "usage": hit["usage"], "request_s": 2.4}}
    recording.write_text(json.dumps(row) + "\n", encoding="utf-8")
    plan = plan_for(["q1"])
    provider = RecordedProvider([recording], identity=lambda _: CellId("q1", "mid"))
    found = go(tmp_path, plan, provider, pricing=CardPricing(card))
    with Ledger.read(tmp_path / "ledger.sqlite") as ledger:
        [record] = cells_of(ledger, plan)
    assert record.cost.usd == Decimal(values["decision_cost_usd"])
    assert found.spent_high_usd == Decimal(values["run_spend_usd"])
    assert int(record.fresh(found.run)) == values["measured_latencies"]
    assert record.request_s == hit["latency_s"]


def test_a_recording_without_times_gives_none(tmp_path: Path) -> None:
    recording = tmp_path / "r.jsonl"
    recording.write_text('{"item": "q1", "candidate": "mid", "output": "x"}\n', encoding="utf-8")
    plan = plan_for(["q1"])
    go(tmp_path, plan, RecordedProvider([recording], identity=lambda _: CellId("q1", "mid")))
    with Ledger.read(tmp_path / "ledger.sqlite") as ledger:
        [record] = cells_of(ledger, plan)
    assert isinstance(record.result, Reply)
    assert (record.request_s, record.task_s) == (None, None)


def test_a_recorded_failure_is_not_waited_for(tmp_path: Path) -> None:
    recording = tmp_path / "r.jsonl"
    recording.write_text('{"item": "q1", "candidate": "mid", "error": "timed out"}\n', encoding="utf-8")
    provider = RecordedProvider([recording], identity=lambda _: CellId("q1", "mid"))
    found = go(tmp_path, plan_for(["q1"]), provider)
    assert (found.attempts, found.failed) == (1, {FailureKind.TIMEOUT: 1})


def test_only_what_no_attempt_file_holds_is_called(tmp_path: Path, shared: Path) -> None:
    """Case R10: the newest log is empty, and the good one is older."""
    case = shared / "cases/R10-empty-retry-log"
    values = json.loads((case / "expect.json").read_text(encoding="utf-8"))["values"]
    files = recording_files([case / "run"])
    before = [path.read_bytes() for path in files]
    live = ScriptedProvider(lambda _: ok())
    provider = RecordedProvider(files, identity=lambda request: CellId(last_text(request), "mid"), otherwise=live)
    assert go(tmp_path, plan_for(["q1", "q2", "q3", "q4"]), provider).replied == 4
    assert [last_text(request) for request in live.requests] == values["calls"]
    assert [path.read_bytes() for path in files] == before


def notices(folder: Path, plan: Plan) -> tuple[str, ...]:
    with Ledger.read(folder / "ledger.sqlite") as ledger:
        return repeat_notices(cells_of(ledger, plan))


def test_repeats_that_are_all_the_same_are_said(tmp_path: Path) -> None:
    """Case R03: three byte-equal outputs at temperature 1.0 on every query."""
    warm, cold = {"temperature": 1.0, "max_tokens": 9}, {"temperature": 0, "max_tokens": 9}
    plan = plan_for(["q1", "q2"], samples=3, params=warm)
    go(tmp_path, plan, ScriptedProvider(lambda _: ok("same")))
    [said] = notices(tmp_path, plan)
    assert "all 3 samples" in said
    assert "temperature 1" in said
    frozen = plan_for(["q1", "q2"], samples=3, params=cold)
    go(tmp_path, frozen, ScriptedProvider(lambda _: ok("same")))
    assert notices(tmp_path, frozen) == ()
    varied = plan_for(["q3", "q4"], samples=3, params=warm)
    script = ScriptedProvider(lambda r: ok("other" if (last_text(r), r.sample) == ("q4", 2) else "same"))
    go(tmp_path, varied, script)
    assert notices(tmp_path, varied) == ()
    assert notices(tmp_path, plan_for(["q1", "q2"], samples=1, params=warm)) == ()


def test_a_cell_that_was_not_reached_has_no_figures(tmp_path: Path) -> None:
    provider = ScriptedProvider({"q1": After(None), "q2": ok()})
    settings = replace(FAST, run_timeout_s=0.3, grace_s=0.0)
    plan = plan_for(["q1", "q2", "q3"])
    go(tmp_path, plan_of(cell for cell in plan if cell.item != "q3"), provider, settings)
    with Ledger.read(tmp_path / "ledger.sqlite") as ledger:
        first, second, third = cells_of(ledger, plan)
    assert (first.result, first.task_s, first.attempts, first.abandoned) == (None, None, 0, 1)
    assert not first.complete
    assert first.cost.usd is None
    assert second.cost.usd == COST_USD
    assert (third.steps, third.result, third.cost.usd, third.attempts) == ((), None, None, 0)


def test_a_failure_costs_nothing_where_it_was_refused_and_nobody_knows_where_it_was_not(tmp_path: Path) -> None:
    timeout = Failure(FailureKind.TIMEOUT, "timeout", billed=Billed.UNKNOWN)
    plan = plan_for(["q1", "q2"])
    go(tmp_path, plan, ScriptedProvider({"q1": WRONG, "q2": timeout}), replace(FAST, max_attempts=1))
    with Ledger.read(tmp_path / "ledger.sqlite") as ledger:
        refused, lost = cells_of(ledger, plan)
    assert refused.cost.usd == 0
    assert lost.cost.usd is None
    assert lost.cost.reason is not None


def test_a_ledger_is_read_while_it_is_written(tmp_path: Path) -> None:
    from evalkit.replay import run

    async def main() -> int:
        seen = 0
        with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
            provider = ScriptedProvider(lambda _: ok(), delay_s=0.002)
            work = asyncio.create_task(
                run(plan_for([f"q{n}" for n in range(100)]), lambda _: provider, ledger, FAST)
            )
            while not work.done():
                with Ledger.read(tmp_path / "ledger.sqlite") as other:
                    seen = max(seen, sum(attempt.state == "reply" for attempt in other.every_attempt()))
                await asyncio.sleep(0.01)
            await work
        return seen

    assert 0 < asyncio.run(main()) <= 100
