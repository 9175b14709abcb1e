"""`evalkit compare` and `evalkit sign` from the command line, on runs that the commands made."""

from __future__ import annotations

import csv
import json
import os
import shutil
from pathlib import Path

import pytest

from evalkit.cli.app import main
from evalkit.signoff.allowed_signers import read_allowed_signers
from evalkit.signoff.signatures import verify_signatures
from tests.signoff.folders import NAME, NOW, pem_key, public_line, write_folder
from tests.signoff.runs import failing, item, write_run
from tests.workflows.ladders import write_ladder, write_runs
from tests.workflows.studies import write_csv, write_items, write_study

HOSTILE = "<img src=x onerror=alert(1)>|`@all`\u202e\x1b[2J[a](http://b)"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A router judged at its own threshold, and at one that is too high; then at new prices of the same calls."""
    folder = tmp_path_factory.mktemp("runs")
    write_items(folder)
    write_study(folder)
    study = str(folder / "study.yaml")
    assert main(["route-sweep", study, "--out", str(folder / "base"), "--quiet"]) == 0
    assert main(["route-sweep", study, "--out", str(folder / "high"), "--threshold", "0.95", "--quiet"]) == 1
    return folder


def compare(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main(["compare", *(str(argument) for argument in arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_worse_router_fails_the_job(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = tmp_path / "c.json", tmp_path / "c.md"
    conditions = ["--fail-on", "newly-failing:critical", "--fail-on", "gate-lost,higher-cost"]
    code, out, err = compare(
        capsys, runs / "base", runs / "high", *conditions, "--json", files[0], "--markdown", files[1]
    )
    assert (code, err) == (1, "")
    document = json.loads(files[0].read_bytes())
    # Half of 600 items are hard and are now sent to the cheap tier, which fails them; half of those are critical.
    assert document["newly_failing"]["count"] == 300
    assert [row["met"] for row in document["fail_on"]] == [True, True, False]
    text = files[1].read_text(encoding="utf-8")
    for shown in (out, text):
        assert "300 of 600 (50.0 %)" in shown
        assert "and 290 more" in shown
    assert "\x1b" not in out
    assert max(len(row) for row in out.splitlines()) <= 80


def test_the_other_way_round_nothing_newly_fails(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = compare(
        capsys, runs / "high", runs / "base", "--fail-on", "newly-failing", "--fail-on", "gate-lost"
    )
    assert code == 0
    assert "Newly working: 300 of 600" in out
    assert compare(capsys, runs / "high", runs / "base", "--fail-on", "newly-failing", "--quiet") == (0, "", "")


def test_the_same_comparison_gives_the_same_bytes(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = []
    for name in ("a", "b"):
        files = tmp_path / f"{name}.json", tmp_path / f"{name}.md"
        compare(capsys, runs / "base", runs / "high", "--json", files[0], "--markdown", files[1], "--quiet")
        written.append([file.read_bytes() for file in files])
    assert written[0] == written[1]


def test_the_page_on_formats_names_every_key(
    runs: Path, tmp_path: Path, repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compare(capsys, runs / "base", runs / "high", "--json", tmp_path / "c.json", "--quiet")
    document = json.loads((tmp_path / "c.json").read_bytes())
    section = (repo / "docs" / "formats.md").read_text(encoding="utf-8").partition("## A comparison")[2]
    section = section.partition("\n## ")[0]
    keys = {*document, *document["differences"][0], *document["pairs"], *document["newly_failing"]}
    inside = {"schema", "evalkit_version", "label", "under_routed", "not_passed"}
    unnamed = [key for key in keys - inside if f"`{key}`" not in section and not key.endswith("_ids")]
    assert unnamed == []


def test_two_price_cards_are_refused_with_names_and_dates(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same calls, priced from tokens with two cards."""
    for file in ("labels.csv", "scores.csv"):
        shutil.copy(runs / file, tmp_path / file)
    with (runs / "outcomes.csv").open(encoding="utf-8") as file:
        rows = [row | {"cost_usd": "", "input_tokens": 100, "output_tokens": 10} for row in csv.DictReader(file)]
    write_csv(tmp_path / "outcomes.csv", rows)
    for name, day, price in (("old", "2026-01-15", 1), ("new", "2026-03-01", 2)):
        models = "".join(f"  demo/{tier}: {{input: {price}, output: {price}}}\n" for tier in ("cheap", "frontier"))
        card = f'currency: USD\nunit: per_1m_tokens\nas_of: "{day}"\nmodels:\n{models}'
        (tmp_path / f"prices_{name}.yaml").write_text(card, encoding="utf-8")
        write_study(tmp_path, prices=f"prices_{name}.yaml")
        main(["route-sweep", str(tmp_path / "study.yaml"), "--out", str(tmp_path / name), "--quiet"])
    code, out, _ = compare(capsys, tmp_path / "old", tmp_path / "new", "--fail-on", "higher-cost")
    assert code == 3
    said = " ".join(out.split())
    for token in ("prices_new.yaml", "2026-03-01", "2026-01-15", "evalkit reprice", "CANNOT BE TOLD"):
        assert token in said


def test_two_ladders_are_compared_at_the_arm_that_each_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_runs(tmp_path, 80)
    write_ladder(tmp_path)
    main(["reasoning-budget", str(tmp_path / "study.yaml"), "--out", str(tmp_path / "a"), "--quiet"])
    write_runs(tmp_path, 80, outcome=lambda i, arm, s: {"status": "wrong" if i < 3 else "ok", "cost_usd": 0.01})
    main(["reasoning-budget", str(tmp_path / "study.yaml"), "--out", str(tmp_path / "b"), "--quiet"])
    code, out, _ = compare(capsys, tmp_path / "a", tmp_path / "b", "--fail-on", "newly-failing")
    assert code == 1
    arm = json.loads((tmp_path / "a" / "result.json").read_bytes())["shown"]
    assert f"arm {arm}" in out
    assert "Newly failing: 3 of 80" in out
    assert "Failed, of the tasks" in out


def test_two_arms_of_one_ladder_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_runs(tmp_path, 80)  # plain fails every fourth task, thinking none
    write_ladder(tmp_path)
    run = tmp_path / "a"
    main(["reasoning-budget", str(tmp_path / "study.yaml"), "--out", str(run), "--quiet"])
    file = tmp_path / "c.json"
    code, _, _ = compare(capsys, run, run, "--base-arm", "plain", "--json", file, "--fail-on", "newly-failing")
    document = json.loads(file.read_bytes())
    assert (code, document["newly_working"]["count"], document["newly_failing"]["count"]) == (0, 20, 0)
    assert {row["same"] for row in document["inputs"]} == {True}
    gate = next(gate for gate in document["gates"] if gate["name"] == "pass_rate")
    arms = {arm["name"]: arm for arm in json.loads((run / "result.json").read_bytes())["arms"]}
    (then,) = [g["status"] for g in arms["plain"]["gates"] if g["name"] == "pass_rate"]
    assert (gate["base"], gate["lost"]) == (then, False)
    code, _, err = compare(capsys, run, run, "--candidate-arm", "think-9k")
    assert code == 2
    assert 'has no arm "think-9k". Fix: its arms are: plain, think-1k, think-4k.' in err


def test_an_arm_of_a_router_is_refused(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = compare(capsys, runs / "base", runs / "high", "--base-arm", "x")
    assert code == 2
    assert "has no arms" in err


def test_a_router_and_a_ladder_are_not_compared(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arms = {"arms": {"plain": {"passed": 1.0, "cost_usd": 0.1, "status": "ok"}}}
    write_run(
        tmp_path / "l",
        [item("a", **arms)],
        schema="evalkit.reasoning-budget/1",
        arms=[{"name": "plain", "gates": []}],
        selected="plain",
    )
    code, out, err = compare(capsys, runs / "base", tmp_path / "l")
    assert (code, out) == (2, "")
    assert "Fix: compare two runs of one kind." in err


def test_the_faults_of_both_folders_are_named_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = compare(capsys, tmp_path / "a", tmp_path / "b")
    assert code == 2
    assert len(err.splitlines()) == 2
    assert all("result.json" in row and "Fix:" in row for row in err.splitlines())


def test_a_file_of_a_run_is_not_written_over(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (runs / "base" / "result.json").read_bytes()
    assert compare(capsys, runs / "base", runs / "high", "--json", runs / "base" / "result.json")[0] == 2
    assert (runs / "base" / "result.json").read_bytes() == before


def test_hostile_text_stays_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = {"study": HOSTILE, "risk_classes": [{"name": HOSTILE}], "gates": [{"name": HOSTILE, "label": HOSTILE}]}
    about = {"risk": HOSTILE, "category": HOSTILE, "group": HOSTILE, "required_tier": HOSTILE}
    write_run(tmp_path / "a", [item(HOSTILE, **about)], **names)
    write_run(tmp_path / "b", [failing(HOSTILE, **about, status=HOSTILE, routed_tier=HOSTILE)], **names)
    file = tmp_path / "c.md"
    code, out, err = compare(
        capsys, tmp_path / "a", tmp_path / "b", "--markdown", file, "--fail-on", "newly-failing"
    )
    assert (code, err) == (1, "")
    text = file.read_text(encoding="utf-8")
    for shown in (out, text):
        assert not {"\x1b", "\u202e"} & set(shown)
    assert "<img" not in text
    assert "@all" not in text.replace("&#64;", "")
    assert "](http" not in text.replace("\\]", "")


# sign


def sign(capsys: pytest.CaptureFixture[str], folder: Path, key: Path, *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main(["sign", str(folder), "--key", str(key), "--role", "approver", "--name", NAME, *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def signed_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(int(NOW.timestamp())))


@pytest.mark.usefixtures("signed_at")
def test_sign_writes_one_file_and_prints_no_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_folder(tmp_path / "s", release={"expires": None})
    key = pem_key(tmp_path / "key.pem")
    code, out, err = sign(capsys, folder, key, "--decision", "approve")
    assert (code, err) == (0, "")
    assert f"signed: approve, as computed, by {NAME} (approver)" in out
    assert json.loads((folder / "signoff.json").read_bytes())["digest"] in out
    assert f"{folder / 'signoff.1.sig.json'}" in out
    secret = key.read_text(encoding="ascii").splitlines()[1]
    assert secret not in out
    assert all(secret not in path.read_text(encoding="utf-8") for path in folder.iterdir())
    (tmp_path / "allowed").write_text(f'"{NAME}" {public_line(key)}\n', encoding="utf-8")
    found = verify_signatures(folder, read_allowed_signers(tmp_path / "allowed"), now=NOW)
    assert found.decision == "approve"


@pytest.mark.usefixtures("signed_at")
def test_an_override_without_a_reason_is_not_signed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_folder(tmp_path / "s", "reject", release={"expires": None})
    key = pem_key(tmp_path / "key.pem")
    code, out, err = sign(capsys, folder, key, "--decision", "approve")
    assert (code, out) == (2, "")
    assert "field --decision: approve is not the computed verdict (reject), and no reason is given" in err
    code, out, _ = sign(capsys, folder, key, "--decision", "approve", "--reason", "known, and rolled back at 1 %")
    assert code == 0
    assert "signed: approve, against the computed verdict (reject)" in out


def test_an_expired_sign_off_is_not_signed_whatever_the_fixed_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """SOURCE_DATE_EPOCH fixes what is written; it does not turn back the clock that the expiry is held against."""
    folder = write_folder(tmp_path / "s", created_at="2020-01-01T00:00:00Z", release={"expires": "2020-02-01"})
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1578000000")
    code, _, err = sign(capsys, folder, pem_key(tmp_path / "key.pem"), "--decision", "approve")
    assert code == 2
    assert "expired on 2020-02-01" in err


def test_a_missing_folder_and_a_missing_key_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = sign(capsys, tmp_path / "nowhere", tmp_path / "key", "--decision", "approve")
    assert code == 2
    assert "is not a folder" in err
    code, _, err = sign(capsys, write_folder(tmp_path / "s"), tmp_path / "key", "--decision", "approve")
    assert code == 2
    assert "cannot be read" in err


@pytest.mark.usefixtures("signed_at")
def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere, so no folder refuses it")
    folder = write_folder(tmp_path / "s", release={"expires": None})
    folder.chmod(0o500)
    try:
        code, _, err = sign(capsys, folder, pem_key(tmp_path / "key.pem"), "--decision", "approve")
    finally:
        folder.chmod(0o700)
    assert code == 2
    assert "cannot be written" in err
