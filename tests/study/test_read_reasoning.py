"""Reasoning-budget studies: read strictly, and what must not reach a provider refused before any call."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
from decimal import Decimal
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from evalkit.errors import InputError
from evalkit.study import wire
from evalkit.study.reasoning import override_reasoning, read_reasoning_study
from evalkit.study.reasoning_models import Fallback, ReasoningStudy
from evalkit.study.wire import expected_wire, same_requests

MINIMAL = """\
study: hard-math
kind: reasoning-budget
labels: tasks.jsonl
outcomes: runs.csv
arms:
  - {name: plain, model: demo/small}
"""


def write(folder: Path, text: str) -> Path:
    for name in ("tasks.jsonl", "runs.csv"):
        (folder / name).touch()
    path = folder / "config.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def read(folder: Path, text: str) -> ReasoningStudy:
    return read_reasoning_study(write(folder, text))


def faults(folder: Path, text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        read(folder, text)
    return [str(fault) for fault in caught.value.faults]


def arms(*entries: str) -> str:
    lines = "".join(f"  - {{{entry}}}\n" for entry in entries)
    return MINIMAL.partition("arms:")[0] + "arms:\n" + lines


def test_the_smallest_study_has_every_default(tmp_path: Path) -> None:
    study = read(tmp_path, MINIMAL)
    assert [arm.name for arm in study.arms] == ["plain"]
    assert (study.confidence, study.looks, study.seed, study.risk) == (0.95, 1, 0, {})
    assert (study.value_per_point_usd, study.smallest_worthwhile_gain, study.samples) == (None, None, None)


def test_the_whole_study(tmp_path: Path) -> None:
    study = read(
        tmp_path,
        """\
study: hard-math
kind: reasoning-budget
labels: tasks.jsonl
outcomes: {path: runs.csv, columns: {id: task, arm: budget}}
arms:
  - {name: multi-step, model: openai/gpt-5-mini, steps: [plan, solve, check]}
  - {name: reasoning-1k, model: anthropic/claude-opus-5, budget_tokens: 1024}
  - {name: reasoning-4k, model: anthropic/claude-opus-5, budget_tokens: 4096, max_tokens: 6000}
  - {name: low, model: openai/gpt-5-mini, effort: low, declines_as: no_final_answer, fallback: reasoning-4k}
  - {name: vote, of: reasoning-1k, vote: 3, at_once: false}
  - {name: loop, of: reasoning-1k, loop: 2, check_usd: 0.001, check_seconds: 0.5}
risk:
  high: {max_failure: 0.05}
  low: {}
value_per_point_usd: 0.002
smallest_worthwhile_gain: 1.0
limits: {min_pass_rate: 0.85, p95_task_seconds: 60, max_cost_per_request: 0.05}
samples: 3
""",
    )
    assert study.arms[0].steps == ("plan", "solve", "check")
    assert study.arms[2].max_tokens == 6000
    assert study.arms[3].fallback == Fallback(arm="reasoning-4k")
    assert (study.arms[4].vote, study.arms[4].at_once) == (3, False)
    assert study.arms[5].check_usd == Decimal("0.001")
    assert [arm.requested for arm in study.arms] == [
        "3 steps",
        "1,024 tokens",
        "4,096 tokens",
        "low effort",
        "majority of 3 runs of reasoning-1k",
        "up to 2 runs of reasoning-1k",
    ]
    assert [arm.name for arm in study.tiers] == ["multi-step", "reasoning-1k", "reasoning-4k", "low"]
    assert study.risk["high"].max_failure == 0.05
    assert study.risk["low"].max_failure is None
    assert study.outcomes is not None
    assert study.outcomes.columns == {"id": "task", "arm": "budget"}


class TestBudgets:
    """Case B01: a budget that leaves no room for an answer, or is below what the provider takes."""

    TEXT = """\
study: b01
kind: reasoning-budget
labels: tasks.jsonl
outcomes: runs.csv
arms:
  - {name: mid, model: demo/mid, params: {max_tokens: 1024}}
  - name: reasoning
    params: {thinking: {type: enabled, budget_tokens: 4096}, max_tokens: 4096}
  - {name: sweep, max_tokens: 4096, min_budget_tokens: 1024, budget_sweep: [512, 1024, 2048, 4096, 8192]}
"""

    def test_each_is_refused_with_line_field_and_fix(self, tmp_path: Path) -> None:
        found = faults(tmp_path, self.TEXT)
        for tokens in (
            ("config.yaml", "8", "budget_tokens", "4096", "max_tokens"),
            ("config.yaml", "9", "budget_sweep", "512", "1024"),
            ("config.yaml", "9", "budget_sweep", "8192"),
        ):
            assert any(all(token in message for token in tokens) for message in found), (tokens, found)
        assert len(found) == 4
        assert "9216 = 8192 + 1024" in "".join(found)
        assert "of this sweep 1024, 2048 can be asked for" in "".join(found)

    def test_what_fits_becomes_one_arm_a_budget(self, tmp_path: Path) -> None:
        text = self.TEXT.replace("[512, 1024, 2048, 4096, 8192]", "[1024, 2048]").replace(
            "budget_tokens: 4096", "budget_tokens: 4095"
        )
        study = read(tmp_path, text)
        assert [(a.name, a.budget_tokens) for a in study.arms] == [
            ("mid", None),
            ("reasoning", 4095),
            ("sweep-1024", 1024),
            ("sweep-2048", 2048),
        ]

    @pytest.mark.parametrize(
        ("entry", "fits"),
        [
            ("model: anthropic/claude-opus-4-5, budget_tokens: 1023", False),
            ("model: anthropic/claude-opus-4-5, budget_tokens: 1024", True),
            ("model: anthropic/claude-opus-4-5, budget_tokens: 0", True),
            ("model: demo/other, budget_tokens: 64", True),
            ("model: demo/other, budget_tokens: 64, params: {max_completion_tokens: 64}", False),
        ],
    )
    def test_the_minimum_of_a_known_provider(self, tmp_path: Path, entry: str, fits: bool) -> None:
        text = arms(f"name: a, {entry}")
        if fits:
            read(tmp_path, text)
        else:
            assert len(faults(tmp_path, text)) == 1

    def test_two_budgets_are_none(self, tmp_path: Path) -> None:
        assert "stands beside budget_tokens" in faults(tmp_path, arms("name: a, budget_tokens: 9, effort: low"))[0]
        (message,) = faults(tmp_path, arms("name: a, budget_tokens: 9, params: {thinking: {budget_tokens: 8}}"))
        assert "keep one of them" in message


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        (arms("name: a, vote: 3"), ("vote", "of:")),
        (arms("name: a, of: b", "name: b"), ("of", "vote: 3")),
        (arms("name: a, of: c, vote: 3", "name: b"), ("of", '"c"', "name one of: b")),
        (arms("name: a, of: a, vote: 3"), ("of", "itself")),
        (arms("name: a", "name: b, of: a, vote: 2", "name: c, of: b, vote: 2"), ("of", '"b"')),
        (arms("name: a, of: b, vote: 3, model: demo/x", "name: b"), ("model", "belongs to the arm b")),
        (arms("name: a, declines_as: no_final_answer"), ("declines_as", "fallback")),
        (arms("name: a, declines_as: wrong, fallback: b", "name: b"), ("declines_as", "wrong", "no_final_answer")),
        (arms("name: a, fallback: b", "name: b"), ("fallback", "declines_as")),
        (arms("name: a, declines_as: contract_fail, fallback: {seconds: 5}"), ("fallback.cost_usd", "write 0")),
        (arms("name: a", "name: a"), ("arms[1].name", "line 6 already")),
        (arms("name: a, steps: 0"), ("steps", "0")),
        (arms("name: a, effort: huge"), ("effort", "huge", "low")),
        (arms("name: a, reasoning_effort: low"), ("reasoning_effort", "effort: low")),
        (arms("name: a, check_usd: 1"), ("check_usd", "loop")),
        (MINIMAL + "tiers: []\n", ("tiers", "route-sweep")),
        (MINIMAL + "min_pass_rate: 0.9\n", ("min_pass_rate", "under limits")),
        (MINIMAL + "risk: {high: {max_failure: 1}}\n", ("max_failure", "nothing can break")),
        (MINIMAL + "risk: {high: {max_failure: 5}}\n", ("max_failure", "5 % is 0.05")),
        (MINIMAL + "risk: {high: {max_failure: 0.1, gate_on: estimate}}\n", ("gate_on", "certified")),
        (MINIMAL + "limits: {min_pass_rate: 0}\n", ("min_pass_rate", "nothing can break")),
        (MINIMAL + "smallest_worthwhile_gain: 0\n", ("smallest_worthwhile_gain", "above 0")),
        (MINIMAL.replace("kind: reasoning-budget", "kind: routing"), ("kind", "evalkit route-sweep")),
        (MINIMAL.replace("outcomes: runs.csv\n", ""), ("rubric", "missing")),
        (MINIMAL.partition("arms:")[0] + "arms: []\n", ("arms", "0 entries")),
    ],
)
def test_faults_name_the_field_and_the_way_out(tmp_path: Path, text: str, tokens: tuple[str, ...]) -> None:
    found = faults(tmp_path, text)
    assert any(all(token in message for token in tokens) for message in found), found
    assert all("config.yaml" in message and "Fix: " in message for message in found)


def test_secrets_reach_neither_study_nor_fingerprint(tmp_path: Path) -> None:
    def keyed(key: str) -> ReasoningStudy:
        return read(tmp_path, arms(f"name: a, params: {{api_key: {key}}}, sent: {{authorization: Bearer {key}}}"))

    one, two = keyed("sk-aaaaaaaaaaaaaaaaaaaa"), keyed("sk-bbbbbbbbbbbbbbbbbbbb")
    assert "sk-" not in repr(one)
    assert one.fingerprint == two.fingerprint
    assert len(one.notices) == 2


def test_the_fingerprint_is_of_what_is_said(tmp_path: Path) -> None:
    base = read(tmp_path, MINIMAL)
    assert read(tmp_path, MINIMAL + "# a comment\nsmallest_worthwhile_gain: 1.0\n").fingerprint == (
        read(tmp_path, MINIMAL + "smallest_worthwhile_gain: 1\n").fingerprint
    )
    assert override_reasoning(base, seed=3).fingerprint != base.fingerprint
    assert override_reasoning(base) is base
    with pytest.raises(InputError, match="--seed"):
        override_reasoning(base, seed=-1)


class TestOnTheWire:
    """Case B04: arms that ask for different things and send the same."""

    def study(self, tmp_path: Path, *entries: str, client: str = "other") -> ReasoningStudy:
        return read(tmp_path, arms(*entries) + f"client: {client}\n")

    def test_recorded_bodies_that_are_equal_are_one_arm(self, tmp_path: Path, shared: Path) -> None:
        case = shared / "cases" / "B04-effort-dropped"
        rows = [json.loads(line) for line in (case / "arms.jsonl").read_text(encoding="utf-8").splitlines()]
        efforts = [row["requested"]["reasoning_effort"] for row in rows]
        entries = [
            f"name: '{row['arm']}', effort: {effort}, sent: {json.dumps(row['sent'])}"
            for row, effort in zip(rows, efforts, strict=True)
        ]
        merged, notices = same_requests(self.study(tmp_path, *entries).arms, "other")
        assert [(same.kept, same.others) for same in merged] == [("low", ("high", "off"))]
        assert all(token in merged[0].how for token in ("low", "high", "reasoning_effort"))
        assert notices == []
        expect = json.loads((case / "expect.json").read_text(encoding="utf-8"))
        assert len(rows) - len(merged[0].others) == expect["values"]["distinct_arms"]

    def test_bodies_that_differ_are_two_arms_whatever_was_asked(self, tmp_path: Path) -> None:
        study = self.study(
            tmp_path,
            "name: a, model: m, effort: low, sent: {effort: low}",
            "name: b, model: m, effort: low, sent: {effort: high}",
        )
        assert same_requests(study.arms, "litellm") == ([], [])

    def test_a_body_whose_budget_leaves_no_room_is_named(self, tmp_path: Path) -> None:
        body = "{max_tokens: 4096, thinking: {type: enabled, budget_tokens: 4096}}"
        with pytest.raises(InputError) as caught:
            self.study(tmp_path, f"name: a, model: m, sent: {body}", "name: b, model: m, effort: low")
        assert "thinking.budget_tokens is 4096, and max_tokens is 4096" in str(caught.value)
        self.study(tmp_path, f"name: a, model: m, sent: {body.replace('4096,', '4097,', 1)}", "name: b, model: m")

    def test_equal_bodies_to_two_models_are_two_arms(self, tmp_path: Path) -> None:
        study = self.study(
            tmp_path, "name: a, model: m, sent: {top_k: 1}", "name: b, model: other, sent: {top_k: 1}"
        )
        assert same_requests(study.arms, "other") == ([], [])

    def test_the_same_request_written_twice_is_one_arm(self, tmp_path: Path) -> None:
        study = self.study(tmp_path, "name: a, model: m, effort: low", "name: b, model: m, effort: low")
        merged, _ = same_requests(study.arms, "other")
        assert [(s.kept, s.others) for s in merged] == [("a", ("b",))]

    def test_arms_without_a_model_say_too_little(self, tmp_path: Path) -> None:
        assert same_requests(self.study(tmp_path, "name: a", "name: b").arms, "litellm") == ([], [])

    def test_what_a_known_client_makes_one_is_merged_only_where_it_sent_them(self, tmp_path: Path) -> None:
        entries = [
            f"name: {e}, model: anthropic/claude-opus-4-5, effort: {e}" for e in ("minimal", "low", "medium")
        ]
        merged, notices = same_requests(self.study(tmp_path, *entries).arms, "litellm")
        assert [(s.kept, s.others) for s in merged] == [("minimal", ("low",))]
        merged, notices = same_requests(self.study(tmp_path, *entries).arms, "other")
        assert merged == []
        assert len(notices) == 1
        assert "minimal, low" in notices[0]
        assert "LiteLLM 1.110.2" in notices[0]

    @pytest.mark.parametrize(
        ("entry", "sent"),
        [
            ("model: anthropic/claude-haiku-4-5-20251001, effort: high", {"budget_tokens": 4096}),
            ("model: anthropic/claude-opus-4-20250514, effort: max", {"budget_tokens": 16384}),
            ("model: anthropic/claude-3-7-sonnet-20250219, budget_tokens: 2000", {"budget_tokens": 2000}),
            ("model: anthropic/claude-opus-4-6, budget_tokens: 2000", {"budget_tokens": 2000}),
            ("model: anthropic/claude-opus-5, budget_tokens: 1024", {"effort": "low"}),
            ("model: anthropic/claude-opus-5, budget_tokens: 4096", {"effort": "high"}),
            ("model: anthropic/claude-opus-5, budget_tokens: 16384", {"effort": "xhigh"}),
            ("model: anthropic/claude-opus-5, effort: minimal", {"effort": "low"}),
            ("model: anthropic/claude-opus-4-5, effort: none", {}),
            ("model: gemini/gemini-3-pro, effort: none", {"thinkingLevel": "low"}),
            ("model: gemini/gemini-3-pro, budget_tokens: 2048", {}),
            ("model: gemini/gemini-2.5-pro, effort: medium", {"thinkingBudget": 2048}),
            ("model: deepseek/deepseek-reasoner, budget_tokens: 2048", {}),
            ("model: openai/gpt-5, effort: low", {"effort": "low"}),
        ],
    )
    def test_the_maps(self, tmp_path: Path, entry: str, sent: Any) -> None:
        assert expected_wire(self.study(tmp_path, f"name: a, {entry}").arms[0])[0] == sent

    def test_bedrock_raises_small_budgets(self, tmp_path: Path) -> None:
        arm = self.study(
            tmp_path,
            "name: a, model: bedrock/anthropic.claude-3-7-sonnet, budget_tokens: 512, min_budget_tokens: 0",
        ).arms[0]
        assert expected_wire(arm)[0] == {"budget_tokens": 1024}

    def test_the_maps_are_those_of_the_client_they_name(self) -> None:
        # Read, not imported: the import takes seconds.
        spec = importlib.util.find_spec("litellm")
        assert spec is not None
        assert spec.origin is not None
        package = Path(spec.origin).parent
        if metadata.version("litellm") not in wire.MAP_SOURCE:
            pytest.fail("another LiteLLM is installed: compare its maps with evalkit.study.wire")
        constants = (package / "constants.py").read_text(encoding="utf-8")
        for effort, budget in wire._CLAUDE_BUDGETS.items():
            found = re.search(rf'"DEFAULT_REASONING_EFFORT_{effort.upper()}_THINKING_BUDGET", (\d+)', constants)
            if budget is not None and effort != "minimal":
                assert found is not None
                assert int(found[1]) == budget
        source = (package / "llms/anthropic/chat/transformation.py").read_text(encoding="utf-8")
        table = re.search(r"REASONING_EFFORT_TO_OUTPUT_CONFIG_EFFORT[^=]*= (\{.*?\})", source, re.DOTALL)
        assert table is not None
        assert ast.literal_eval(table[1]) == {k: v for k, v in wire._CLAUDE_EFFORTS.items() if v}
