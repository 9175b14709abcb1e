"""From a study to what can be called: nothing secret in what is stored, all of it in the connection."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalkit.errors import InputError
from evalkit.study import read_study
from evalkit.study.reasoning import read_reasoning_study
from evalkit.workflows.candidates import Candidate, candidates_of

SECRET = "sk-FAKE-demo-0000-not-a-key"
ROUTING = """
study: x
kind: routing
labels: l.csv
rubric: r.yaml
tiers:
  - name: cheap
    model: demo/mid
    params: %s
  - {name: top, model: demo/top}
router: {scores: l.csv, higher_means: needs_stronger, trained_on: other_items, cost_usd: 0}
risk: {low: {under_route_loss: 1, max_under_route: 0.1}}
"""
LADDER = """
study: x
kind: reasoning-budget
labels: l.csv
rubric: r.yaml
arms:
%s
"""


def routing(folder: Path, params: str) -> tuple[Candidate, ...]:
    for name in ("l.csv", "r.yaml"):
        (folder / name).touch()
    (folder / "s.yaml").write_text(ROUTING % params, encoding="utf-8")
    study = read_study(folder / "s.yaml")
    assert SECRET not in repr(study)
    return candidates_of(study)


def ladder(folder: Path, arms: str) -> tuple[Candidate, ...]:
    for name in ("l.csv", "r.yaml"):
        (folder / name).touch()
    (folder / "s.yaml").write_text(LADDER % arms, encoding="utf-8")
    return candidates_of(read_reasoning_study(folder / "s.yaml"))


def test_literal_secrets_reach_the_connection_and_nothing_that_is_stored(tmp_path: Path) -> None:
    params = (
        "{api_key: %s, max_tokens: 256, extra_headers: {Authorization: Bearer %s, X-Team: routing},"
        ' api_base: "https://user:%s@gw.example:8443/v1?api_key=%s"}'
    ).replace("%s", SECRET)
    cheap, _ = routing(tmp_path, params)
    assert cheap.connection.api_key == SECRET
    assert cheap.connection.api_base == f"https://user:{SECRET}@gw.example:8443/v1?api_key={SECRET}"
    assert cheap.connection.headers == {"Authorization": f"Bearer {SECRET}", "X-Team": "routing"}
    assert SECRET not in repr(cheap)
    assert cheap.endpoint == "https://gw.example:8443/v1"
    assert cheap.params["max_tokens"] == 256
    assert cheap.params["extra_headers"]["X-Team"] == "routing"
    assert not {"api_key", "api_base"} & set(cheap.params)


def test_a_variable_of_the_environment_is_read_for_the_call_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEMO_KEY", "a value that looks like nothing")
    cheap, _ = routing(tmp_path, "{api_key: os.environ/DEMO_KEY, extra_headers: {X-Api-Key: $DEMO_KEY}}")
    assert cheap.connection.api_key == "a value that looks like nothing"
    assert cheap.connection.headers == {"X-Api-Key": "a value that looks like nothing"}
    assert cheap.params["extra_headers"] == {"X-Api-Key": "$DEMO_KEY"}
    assert "looks like nothing" not in repr(cheap)


def test_every_variable_that_is_not_set_is_named_in_one_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DEMO_A", raising=False)
    monkeypatch.delenv("DEMO_B", raising=False)
    with pytest.raises(InputError) as error:
        routing(tmp_path, "{api_key: os.environ/DEMO_A, extra_headers: {Authorization: $DEMO_B}}")
    text = str(error.value)
    assert "DEMO_A" in text
    assert "DEMO_B" in text
    assert "tiers.cheap.params.api_key" in text


@pytest.mark.parametrize(
    ("arm", "params"),
    [
        ("{name: a, model: m/x, effort: low, max_tokens: 90}", {"reasoning_effort": "low", "max_tokens": 90}),
        (
            "{name: a, model: m/x, budget_tokens: 2048, params: {max_tokens: 4096}}",
            {"max_tokens": 4096, "thinking": {"type": "enabled", "budget_tokens": 2048}},
        ),
        ("{name: a, model: m/x, budget_tokens: 0}", {"thinking": {"type": "disabled"}}),
        ("{name: a, model: m/x, params: {timeout: 3, temperature: 1}}", {"temperature": 1}),
    ],
)
def test_budgets_become_parameters_and_transport_stays_out(
    tmp_path: Path, arm: str, params: dict[str, object]
) -> None:
    (found,) = ladder(tmp_path, f"  - {arm}")
    assert found.params == params


def test_steps_need_their_instructions(tmp_path: Path) -> None:
    (found,) = ladder(
        tmp_path, "  - name: m\n    model: m/x\n    steps:\n      - plan: Make a plan.\n      - solve: Solve it.\n"
    )
    assert found.instructions == ("Make a plan.", "Solve it.")
    with pytest.raises(InputError, match="steps without instructions"):
        ladder(tmp_path, "  - {name: m, model: m/x, steps: [plan, solve]}")


def test_arms_made_of_other_runs_are_not_called(tmp_path: Path) -> None:
    found = ladder(
        tmp_path, "  - {name: a, model: m/x}\n  - {name: v, of: a, vote: 3}\n  - {name: l, of: a, loop: 2}\n"
    )
    assert [candidate.name for candidate in found] == ["a"]


def test_a_local_model_is_known_by_its_file(tmp_path: Path) -> None:
    digest = "ab" * 32
    arms = f"  - {{name: a, model: local/x}}\nlocal_models: {{local/x: {{file: x.gguf, sha256: {digest}}}}}\n"
    (found,) = ladder(tmp_path, arms)
    assert found.is_local
    assert found.weights == digest
    (found,) = ladder(tmp_path, "  - {name: a, model: local/other}")
    assert found.weights == "installed"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("replay: {concurrency: 0}", "replay.concurrency"),
        ("replay: {speed: 3}", "replay.speed"),
        ("replay: {request_timeout_s: 0}", "replay.request_timeout_s"),
        ("samples: 0", "samples"),
        ("aliases: {m: [1]}", "aliases.m"),
        ("local_models: {other/x: {file: x, sha256: 00}}", "is not the name of a local model"),
        ("local_models: {local/x: {file: ../x, sha256: 00}}", "is a path"),
        ("system_prompt: nowhere.txt", "there is no file"),
    ],
)
def test_faults_of_the_keys_about_calls(tmp_path: Path, text: str, part: str) -> None:
    with pytest.raises(InputError) as error:
        ladder(tmp_path, f"  - {{name: a, model: m/x}}\n{text}\n")
    assert part in str(error.value)
    assert "s.yaml:" in str(error.value)
