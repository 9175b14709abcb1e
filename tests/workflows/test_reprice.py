"""`evalkit reprice` prices a finished run with another card: nothing is called, mixed, or written over."""

from __future__ import annotations

import asyncio
import json
import socket
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from evalkit.cli.app import main
from evalkit.costs import Cost
from evalkit.providers.call import Billed, Failure, FailureKind, Reply, Request
from evalkit.providers.key import request_key
from evalkit.replay.ledger import Ledger
from evalkit.replay.plan import Cell
from evalkit.study.prices import read_price_card

SECRET = "sk-FAKE-demo-0000-not-a-key"


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a network call")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def row(item: str, model: str | None = "demo/mid", **fields: Any) -> dict[str, Any]:
    return {
        "id": item,
        "tier": "mid",
        "model": model,
        "status": "ok",
        "cost_usd": 0.007,
        "input_tokens": 3000,
        "cache_read_tokens": 2000,
        "output_tokens": 500,
        **fields,
    }


@pytest.fixture
def cards(shared: Path) -> Path:
    return shared / "cases" / "C13-price-drift"


def test_c13_the_new_card_is_announced_and_prices_every_row(
    tmp_path: Path, cards: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = json.loads((cards / "run.json").read_text(encoding="utf-8"))
    prices = {"hash": f"sha256:{run['prices_sha256']}", "as_of": run["prices_as_of"]}
    (tmp_path / "result.json").write_text(json.dumps({"provenance": {"prices": prices}}), encoding="utf-8")
    outcomes = tmp_path / "outcomes.jsonl"
    # The last had a cost and says no tokens: it must not keep a price of the old table.
    write_rows(outcomes, [row("q1"), row("q2"), {"id": "q3", "tier": "mid", "model": "demo/mid", "cost_usd": 0.5}])
    before = outcomes.read_bytes()
    expected = json.loads((cards / "expect.json").read_text(encoding="utf-8"))
    arguments = ["reprice", str(tmp_path), "--prices", str(cards / "prices_new.json")]
    assert main([*arguments, "--json", str(tmp_path / "totals.json")]) == 0
    out, err = capsys.readouterr()
    for tokens in expected["message_must_contain"]:
        assert all(token in out.splitlines()[0] for token in tokens)
    assert out.splitlines()[0].endswith("prices_new.json as of 2026-03-01; run used 2026-01-15")
    assert outcomes.read_bytes() == before
    new = rows_of(tmp_path / "outcomes.repriced.jsonl")
    # 1,000 x 1 + 2,000 x .25 + 500 x 4, per million
    assert [one.get("cost_usd") for one in new] == [0.0035, 0.0035, None]
    assert {key: value for key, value in new[0].items() if key != "cost_usd"} == {
        key: value for key, value in row("q1").items() if key != "cost_usd"
    }
    assert "1 of 3 rows have no cost: input_tokens is unknown" in err
    totals = json.loads((tmp_path / "totals.json").read_text(encoding="utf-8"))
    assert totals["candidates"] == [
        {
            "name": "mid",
            "rows": 3,
            "old_usd": "0.514",
            "old_known_usd": "0.514",
            "old_priced": 3,
            "new_usd": None,
            "new_known_usd": "0.007",
            "new_priced": 2,
        }
    ]
    assert totals["run_used"]["as_of"] == "2026-01-15"


REQUESTS = {
    name: Request("demo/mid", ({"role": "user", "content": name},), {"max_tokens": 10})
    for name in ("q1", "q2", "q3")
}
USAGE = {
    "prompt_tokens": 3000,
    "completion_tokens": 500,
    "total_tokens": 3500,
    "prompt_tokens_details": {"cached_tokens": 2000},
}


async def record(ledger: Ledger, run: str, item: str, number: int, result: Reply | Failure) -> None:
    request = REQUESTS[item]
    cell, key = Cell(item, "mid", 0, request), request_key(request)
    await ledger.begin(cell, 0, key, request, number=number, run=run)
    await ledger.finish(key, number, result, Cost(Decimal(1)), duration_s=0.1)


def make_run(folder: Path, about: dict[str, Any] | None = None) -> None:
    """A run as the runner leaves it: q1 answered after a 429 and a failure that was charged; q2 served by another
    model; q3 never answered, and perhaps charged."""

    async def calls(ledger: Ledger) -> None:
        run = ledger.start_run(about or {})
        await record(ledger, run, "q1", 1, Failure(FailureKind.RATE_LIMIT, "slow down", 429, billed=Billed.NO))
        await record(ledger, run, "q1", 2, Failure(FailureKind.CUT, "cut", billed=Billed.YES, usage=USAGE))
        await record(ledger, run, "q1", 3, Reply("a", usage=USAGE, served_model="mid-2026-01-15"))
        await record(ledger, run, "q2", 1, Reply("b", usage=USAGE, served_model="demo/large"))
        await record(ledger, run, "q3", 1, Failure(FailureKind.TIMEOUT, "no reply", billed=Billed.UNKNOWN))

    with Ledger.open(folder / "ledger.sqlite") as ledger:
        asyncio.run(calls(ledger))
    rows = [{"id": name, "tier": "mid", "status": "ok", "cost_usd": 1.0} for name in ("q1", "q2", "q3", "q4")]
    write_rows(folder / "outcomes.jsonl", rows)


CARD = """\
currency: USD
unit: per_1m_tokens
as_of: "2026-03-01"
kind: cited
models:
  demo/mid: {input: 1, output: 4, cache_read: 0.25, batch_factor: 0.5}
  demo/large: {input: 10, output: 40, cache_read: 2.5}
"""


def test_a_ledger_is_priced_attempt_by_attempt_as_served(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(tmp_path)
    (tmp_path / "new.yaml").write_text(CARD, encoding="utf-8")
    assert main(["reprice", str(tmp_path), "--prices", str(tmp_path / "new.yaml")]) == 0
    out, err = capsys.readouterr()
    new = rows_of(tmp_path / "outcomes.repriced.jsonl")
    assert [one.get("cost_usd") for one in new] == [0.007, 0.035, None, None]
    assert "may have been charged" in err
    assert "the row is not in the ledger" in err
    assert "run used an unknown date" in out
    assert ">= 0.042" in out


def test_a_batch_run_is_priced_at_the_batch_factor(tmp_path: Path) -> None:
    make_run(tmp_path, {"batch": True})
    (tmp_path / "new.yaml").write_text(CARD, encoding="utf-8")
    assert main(["reprice", str(tmp_path), "--prices", str(tmp_path / "new.yaml"), "--quiet"]) == 0
    # demo/large has no batch factor: unknown, never the full price
    new = rows_of(tmp_path / "outcomes.repriced.jsonl")
    assert [one.get("cost_usd") for one in new][:2] == [0.0035, None]


def test_the_ledger_says_which_card_the_run_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(tmp_path)
    card = tmp_path / "new.yaml"
    card.write_text(CARD, encoding="utf-8")
    said = {"hash": f"sha256:{read_price_card(card).fingerprint}", "as_of": "2026-03-01"}
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        ledger.set_manifest({"prices": said})
    assert main(["reprice", str(tmp_path), "--prices", str(card)]) == 0
    assert "the card that the run used" in capsys.readouterr().out.splitlines()[0]


def test_nothing_priced_is_not_success_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_rows(tmp_path / "outcomes.jsonl", [row("q1", "demo/new"), row("q2", None)])
    (tmp_path / "new.yaml").write_text(CARD, encoding="utf-8")
    assert main(["reprice", str(tmp_path / "outcomes.jsonl"), "--prices", str(tmp_path / "new.yaml")]) == 3
    out, err = capsys.readouterr()
    assert not (tmp_path / "outcomes.repriced.jsonl").exists()
    assert "n/a" in out
    assert "demo/new has no price" in err
    assert "write --model mid=" in err


def test_a_model_can_be_named_for_a_tier_and_the_base_may_price_it(tmp_path: Path) -> None:
    served = row("q1", "gpt-5-nano-2025-08-07")
    blank = dict.fromkeys(("input_tokens", "cache_read_tokens", "output_tokens"))
    refused = row("q3", None, cost_usd=0, status="error", **blank)
    write_rows(tmp_path / "outcomes.jsonl", [served, row("q2", None), refused])
    arguments = ["reprice", str(tmp_path / "outcomes.jsonl"), "--prices", "genai-prices"]
    assert main([*arguments, "--model", "mid=openai/gpt-5-nano"]) == 0
    new = rows_of(tmp_path / "outcomes.repriced.jsonl")
    # 1,000 x .05 + 2,000 x .005 + 500 x .4; what was refused costs nothing at any price
    assert [one.get("cost_usd") for one in new] == [0.00026, 0.00026, 0.0]


def test_the_counts_of_several_calls_above_a_tier_have_no_cost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_rows(tmp_path / "outcomes.jsonl", [row("q1", attempts=2), row("q2", attempts=1)])
    text = CARD.replace("batch_factor: 0.5", "tiers: [{above: 2500, input: 2, output: 8, cache_read: 0.5}]")
    (tmp_path / "new.yaml").write_text(text, encoding="utf-8")
    assert main(["reprice", str(tmp_path / "outcomes.jsonl"), "--prices", str(tmp_path / "new.yaml")]) == 0
    assert [one.get("cost_usd") for one in rows_of(tmp_path / "outcomes.repriced.jsonl")] == [None, 0.007]
    assert "boundary of a price tier" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("out", "said"),
    [
        ("outcomes.jsonl", "is a file that this run reads"),
        ("new.yaml", "the suffix says no format"),
        ("sub/../outcomes.jsonl", "is a file that this run reads"),
    ],
)
def test_no_file_of_the_run_is_written_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], out: str, said: str
) -> None:
    (tmp_path / "sub").mkdir()
    write_rows(tmp_path / "outcomes.jsonl", [row("q1")])
    (tmp_path / "new.yaml").write_text(CARD, encoding="utf-8")
    files = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    arguments = ["reprice", str(tmp_path / "outcomes.jsonl"), "--prices", str(tmp_path / "new.yaml")]
    assert main([*arguments, "--out", str(tmp_path / out)]) == 2
    assert said in capsys.readouterr().err
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == files


def test_every_fault_of_both_cards_and_a_folder_without_outcomes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_rows(tmp_path / "o.jsonl", [row("q1")])
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text("currency: USD\nmodels: {demo/m: {input: 1, output: 2}}\n", encoding="utf-8")
    arguments = ["reprice", str(tmp_path / "o.jsonl"), "--prices", str(tmp_path / "a.yaml")]
    assert main([*arguments, "--was", str(tmp_path / "b.yaml")]) == 2
    err = capsys.readouterr().err
    assert "a.yaml:" in err
    assert "b.yaml:" in err
    assert main(["reprice", str(tmp_path), "--prices", str(tmp_path / "a.yaml")]) == 2
    assert "the folder has no outcomes.jsonl" in capsys.readouterr().err
    (tmp_path / "good.yaml").write_text(CARD, encoding="utf-8")
    arguments = ["reprice", str(tmp_path / "o.jsonl"), "--prices", str(tmp_path / "good.yaml")]
    assert main([*arguments, "--model", "mdi=demo/mid"]) == 2
    assert 'did you mean "mid"?' in capsys.readouterr().err


def test_h07_what_is_hostile_or_secret_in_a_run_reaches_no_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tier = f"t\x1b[2J {SECRET}"
    write_rows(tmp_path / "outcomes.jsonl", [row("q1", f"demo/{SECRET}", tier=tier), row("q2", tier=tier)])
    (tmp_path / "new.yaml").write_text(CARD, encoding="utf-8")
    arguments = ["reprice", str(tmp_path / "outcomes.jsonl"), "--prices", str(tmp_path / "new.yaml")]
    assert main(["--debug", *arguments, "--json", str(tmp_path / "t.json")]) == 0
    out, err = capsys.readouterr()
    said = out + err + (tmp_path / "t.json").read_text(encoding="utf-8")
    assert SECRET not in said
    assert "\x1b" not in said
    assert "demo/[hidden] has no price" in err
