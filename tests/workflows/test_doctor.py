"""`evalkit doctor` finds what a run would stumble over, and shows no secret while it looks."""

from __future__ import annotations

import json
import socket
import sqlite3
import threading
from base64 import b64encode
from collections.abc import Iterator
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from evalkit.cli.app import main
from evalkit.workflows import doctor_checks, doctor_study
from evalkit.workflows.doctor import table
from evalkit.workflows.doctor_checks import Check

SECRET = "sk-FAKE-demo-0000-not-a-key"
OTHER = "another-secret-of-no-known-shape"

STUDY = """\
study: demo
kind: routing
labels: labels.jsonl
rubric: rubric.yaml
tiers:
TIERS
PRICES
router: {policy: direct, scores: scores.csv, higher_means: needs_stronger, trained_on: other_items, cost_usd: 0}
risk: {low: {under_route_loss: 1, max_under_route: 0.1}}
"""
CARD = """\
currency: USD
unit: per_1m_tokens
as_of: "2026-11-20"
kind: cited
models:
  openai/gpt-5-nano: {input: 0.05, output: 0.4}
  openai/demo: {input: 1, output: 2}
"""


def write_study(folder: Path, *tiers: str, prices: str = "prices: prices.yaml") -> Path:
    text = STUDY.replace("TIERS", "\n".join(f"  - {tier}" for tier in tiers)).replace("PRICES", prices)
    (folder / "study.yaml").write_text(text, encoding="utf-8")
    (folder / "rubric.yaml").write_text("checks: []\n", encoding="utf-8")
    (folder / "labels.jsonl").write_text('{"id": "a"}\n', encoding="utf-8")
    (folder / "scores.csv").write_text("id,score\na,1\n", encoding="utf-8")
    (folder / "prices.yaml").write_text(CARD, encoding="utf-8")
    return folder / "study.yaml"


CHEAP = "{name: cheap, model: openai/gpt-5-nano, params: {max_tokens: 10}}"
DEMO = (
    "{name: mid, model: openai/demo, "
    'params: {max_tokens: 10, api_base: "ADDRESS", api_key: os.environ/DEMO_API_KEY}}'
)


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a network call")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, dict[str, Any]]:
    capsys.readouterr()
    result = tmp_path / "doctor.json"
    code = main(["doctor", *arguments, "--json", str(result)])
    out, err = capsys.readouterr()
    assert err == ""
    return code, out, json.loads(result.read_text(encoding="utf-8"))


def check(result: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = [one for one in result["checks"] if one["name"] == name]
    return dict(found)


@pytest.mark.usefixtures("no_network")
def test_an_installation_that_is_sound(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, result = run(tmp_path, capsys)
    assert (code, result["problems"]) == (0, 0)
    assert check(result, "sqlite")["what"] == sqlite3.sqlite_version
    assert metadata.version("litellm") in check(result, "packages")["what"]
    assert "genai-prices" in check(result, "prices")["what"]
    assert "none was named" in check(result, "study")["what"]
    assert all(len(line) <= 80 for line in out.splitlines())
    assert list(tmp_path.iterdir()) == [tmp_path / "doctor.json"]  # nothing else is left behind


@pytest.mark.usefixtures("no_network")
def test_keys_are_named_and_never_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    study = write_study(tmp_path, CHEAP, DEMO.replace("ADDRESS", "http://gw.example/v1"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("DEMO_API_KEY", OTHER)
    code, out, result = run(tmp_path, capsys, str(study), "--out", str(tmp_path / "run"))
    assert code == 2
    missing = check(result, "key of cheap")
    assert (missing["status"], missing["what"]) == ("problem", "openai/gpt-5-nano needs OPENAI_API_KEY, not set")
    assert missing["fix"] == "set OPENAI_API_KEY in the environment"
    assert check(result, "key of mid")["status"] == "ok"
    assert check(result, "endpoints")["what"].startswith("not checked; --live")
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    code, again, result = run(tmp_path, capsys, str(study))
    assert check(result, "key of cheap")["status"] == "ok"
    assert code == 0
    said = out + again + json.dumps(result)
    assert SECRET not in said
    assert OTHER not in said
    assert str(len(SECRET)) not in check(result, "key of cheap")["what"]
    monkeypatch.delenv("DEMO_API_KEY")
    code, out, result = run(tmp_path, capsys, str(study))
    assert code == 2
    assert "DEMO_API_KEY, which is not set" in " ".join(out.split())


@pytest.mark.usefixtures("no_network")
def test_h07_a_key_in_the_study_an_address_and_a_header_reaches_no_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEMO_API_KEY", SECRET)
    params = (
        f'{{max_tokens: 256, api_key: {SECRET}, api_base: "https://user:{OTHER}@gw.example/v1?api_key={SECRET}", '
        f'extra_headers: {{Authorization: "Bearer {SECRET}", X-Team: routing}}}}'
    )
    hostile = '"<b>\u202d$(id)"'
    study = write_study(
        tmp_path, f"{{name: cheap, model: openai/demo, params: {params}}}", f"{{name: mid, model: {hostile}}}"
    )
    code, out, result = run(tmp_path, capsys, "--debug", str(study))
    said = out + json.dumps(result)
    assert SECRET not in said
    assert OTHER not in said
    assert "\u202d" not in said
    assert "study.yaml:6: " in said  # the literal key is warned of, with its line
    assert "api_key" in said
    assert code == 2


@pytest.mark.usefixtures("no_network")
def test_prices_that_are_missing_old_or_broken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    new = "{name: mid, model: openai/brand-new}"
    study = write_study(tmp_path, CHEAP, new)
    code, _, result = run(tmp_path, capsys, str(study))
    assert code == 2
    assert check(result, "price of cheap")["what"] == "openai/gpt-5-nano by prices.yaml (cited)"
    assert check(result, "price of mid")["what"] == "openai/brand-new has no price"
    study = write_study(tmp_path, CHEAP, "{name: mid, model: openai/gpt-5-mini}", prices="prices: genai-prices")
    code, _, result = run(tmp_path, capsys, str(study))
    assert code == 0
    assert check(result, "price of cheap")["what"] == "openai/gpt-5-nano by genai-prices (cited)"
    assert "cannot run under a spend cap" in check(result, "price of mid")["what"]
    study = write_study(tmp_path, CHEAP, new, prices="")
    code, _, result = run(tmp_path, capsys, str(study))
    assert check(result, "prices")["status"] == "warning"
    study = write_study(tmp_path, CHEAP, new)
    (tmp_path / "prices.yaml").write_text("currency: USD\nunit: per_1m_tokens\nmodels: {a/b: {input: 2}}\n")
    code, out, result = run(tmp_path, capsys, str(study))
    assert code == 2
    assert "prices.yaml:3" in out


def test_an_old_card_is_a_warning(tmp_path: Path) -> None:
    from evalkit.study.prices import read_price_card

    (tmp_path / "prices.yaml").write_text(CARD, encoding="utf-8")
    card = read_price_card(tmp_path / "prices.yaml")
    assert doctor_study._aged(card, date(2027, 2, 18)).status == "ok"  # 90 days
    old = doctor_study._aged(card, date(2027, 2, 19))
    assert (old.status, old.what) == ("warning", "prices.yaml is of 2026-11-20, 91 days old")


class _Models(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server: Any = self.server
        server.seen.append((self.path, dict(self.headers)))
        code = server.answer
        self.send_response(code)
        if code == 302:
            self.send_header("Location", f"http://127.0.0.1:{server.server_port}/elsewhere")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Any]:
    made: Any = ThreadingHTTPServer(("127.0.0.1", 0), _Models)
    made.seen, made.answer = [], 200
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        (200, "ok", "answers (200)"),
        (404, "ok", "answers (404 for its list of models)"),
        (302, "ok", "answers (302 for its list of models)"),
        (401, "problem", "refuses the key (401)"),
        (503, "warning", "answers 503"),
    ],
)
def test_live_asks_each_address_once_with_its_own_key(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    server: Any,
    answer: int,
    status: str,
    said: str,
) -> None:
    server.answer = answer
    monkeypatch.setenv("DEMO_API_KEY", OTHER)
    address = f"http://127.0.0.1:{server.server_port}/v1"
    second = DEMO.replace("name: mid", "name: top")
    study = write_study(tmp_path, DEMO.replace("ADDRESS", address), second.replace("ADDRESS", address))
    code, out, result = run(tmp_path, capsys, str(study), "--live")
    found = check(result, "endpoint")
    assert (found["status"], found["what"]) == (status, f"{address} {said}")
    assert code == (2 if status == "problem" else 0)
    ((path, headers),) = server.seen  # once, and no redirect is followed
    assert (path, headers["Authorization"]) == ("/v1/models", f"Bearer {OTHER}")
    assert OTHER not in out + json.dumps(result)


def test_live_uses_the_user_of_an_address_and_says_when_nobody_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], server: Any
) -> None:
    tier = '{name: cheap, model: openai/demo, params: {max_tokens: 9, api_base: "ADDRESS"}}'
    port = server.server_port
    first = tier.replace("ADDRESS", f"http://me:{OTHER}@127.0.0.1:{port}/v1")
    second = tier.replace("cheap", "top").replace("ADDRESS", "http://127.0.0.1:1/v1")
    study = write_study(tmp_path, first, second)
    code, out, result = run(tmp_path, capsys, str(study), "--live")
    ((_, headers),) = server.seen
    assert headers["Authorization"] == f"Basic {b64encode(f'me:{OTHER}'.encode()).decode()}"
    silent, answers = sorted(
        (one for one in result["checks"] if one["name"] == "endpoint"), key=lambda one: one["status"], reverse=True
    )
    assert (silent["status"], answers["status"]) == ("problem", "ok")
    assert "does not answer" in silent["what"]
    assert code == 2
    assert OTHER not in out + json.dumps(result)


def test_packages_folders_and_disks_that_are_not_as_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_checks, "_requires", lambda: ["litellm>=999", "no-such-package>=1", "pydantic>=2"])
    found = list(doctor_checks.packages())
    assert [one.status for one in found] == ["problem", "problem", "ok"]
    assert found[0].what == f"litellm is {metadata.version('litellm')}, and >=999 is needed"
    assert found[1].what == "no-such-package is missing (needs >=1)"
    monkeypatch.setattr(doctor_checks, "_requires", list)
    assert [one.status for one in doctor_checks.packages()] == ["warning"]
    (tmp_path / "file").write_text("x", encoding="utf-8")
    assert next(doctor_checks.folder(tmp_path / "file" / "run")).status == "problem"
    for free, status in ((10, "problem"), (2**29, "warning"), (2**31, "ok")):
        monkeypatch.setattr(
            doctor_checks.shutil, "disk_usage", lambda _, free=free: type("Usage", (), {"free": free})
        )
        assert [one.status for one in doctor_checks.folder(tmp_path / "new" / "run")] == ["ok", status]
    monkeypatch.setattr(doctor_checks, "_version", lambda _: None)
    assert doctor_checks.extras(True).status == "problem"
    assert doctor_checks.extras(False).status == "ok"


def test_a_study_that_cannot_be_read_is_a_problem_with_every_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = write_study(tmp_path, CHEAP)
    study.write_text(study.read_text(encoding="utf-8").replace("risk:", "rsik:"), encoding="utf-8")
    code, _, result = run(tmp_path, capsys, str(study))
    said = [one["what"] for one in result["checks"] if one["status"] == "problem"]
    assert code == 2
    assert any("rsik" in one for one in said)
    assert main(["doctor", str(tmp_path / "none.yaml")]) == 2
    assert "there is no such file" in " ".join(capsys.readouterr().out.split())


def test_the_result_is_not_written_over_the_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = write_study(tmp_path, CHEAP)
    before = study.read_bytes()
    assert main(["doctor", str(study), "--json", str(study)]) == 2
    assert study.read_bytes() == before


def test_the_table_keeps_to_80_columns_whatever_is_in_it() -> None:
    lines = table(
        [Check("n" * 200, "problem", "w" * 500 + " \x1b[2J \u202e", "f" * 300 + "."), Check("b", "ok", "")]
    )
    assert all(len(line) <= 80 for line in lines)
    assert "\x1b" not in "".join(lines)
    assert lines[-1] == "2 checks, 1 problem, 0 warnings"
