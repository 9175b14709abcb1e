"""Sign-offs of real small studies, run through the commands: verdicts agree everywhere, and tampering is named."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from evalkit.cli.app import main
from evalkit.signoff.digest import document_digest, folder_faults
from evalkit.signoff.strict import BrokenFileError
from evalkit.workflows.evidence_open import open_evidence
from tests.signoff.make import (
    POLICY,
    SIGNED_OFF,
    changed_json,
    copy_of,
    make_signoff,
    make_studies,
    run_studies,
)

EPOCH = "1796083200"
Made = dict[str, Path]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A sign-off of each verdict, with its studies and runs beside it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", EPOCH)
        return {decision: make_signoff(tmp_path_factory.mktemp(decision), decision) for decision in SIGNED_OFF}


@pytest.fixture
def approved(made: Made, tmp_path: Path) -> Path:
    """A copy of the approved sign-off, to spoil."""
    return copy_of(made["approve"], tmp_path / "copy")


def document(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "signoff.json").read_text(encoding="utf-8"))
    return found


def verify(capsys: pytest.CaptureFixture[str], folder: Path, *options: str) -> tuple[int, str]:
    capsys.readouterr()
    code = main(["verify", str(folder), *options])
    captured = capsys.readouterr()
    return code, captured.out + captured.err


def rehash(folder: Path) -> None:
    """Make every hash of the folder right again, as somebody who tampers would."""

    def sha(path: Path) -> str:
        return hashlib.sha256(path.read_bytes()).hexdigest()

    def rows(names: list[str]) -> list[dict[str, Any]]:
        return [{"path": n, "sha256": sha(folder / n), "bytes": (folder / n).stat().st_size} for n in names]

    found = document(folder)
    for run in found["runs"]:
        place = folder / run["folder"]
        if (place / "evidence.zip").is_file():
            evidence = sha(place / "evidence.zip")
            changed_json(place / "result.json", lambda r, e=evidence: r["provenance"]["evidence"].update(sha256=e))
        for key, name in (("result", "result.json"), ("report", "report.html"), ("items", "items.jsonl.gz")):
            run[f"{key}_sha256"] = sha(place / name)
        run["evidence_sha256"] = sha(place / "evidence.zip")
    found["policy"]["sha256"] = sha(folder / "policy.yaml")
    found["manifest"] = rows([row["path"] for row in found["manifest"]])
    found["digest"] = document_digest(found)
    (folder / "signoff.json").write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    names = [row["path"] for row in json.loads((folder / "manifest.json").read_text())["files"]]
    (folder / "manifest.json").write_text(json.dumps({"files": rows(names)}, indent=1) + "\n")


def in_bundle(folder: Path, name: str, change: Callable[[bytes], bytes], *, index: bool = True) -> None:
    """Change a file of the routing run's bundle; with `index` its hash in files.json too."""
    path = folder / "runs" / "small" / "evidence.zip"
    with zipfile.ZipFile(path) as file:
        parts = {one: file.read(one) for one in file.namelist()}
    parts[name] = change(parts[name])
    if index:
        listing = json.loads(parts["files.json"])
        for row in listing["files"]:
            if row["name"] == name:
                row |= {"sha256": hashlib.sha256(parts[name]).hexdigest(), "bytes": len(parts[name])}
        parts["files.json"] = json.dumps(listing).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for one, content in parts.items():
            file.writestr(one, content)


@pytest.mark.parametrize("decision", list(SIGNED_OFF))
def test_all_outputs_say_the_same(made: Made, decision: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = made[decision]
    found = document(folder)
    assert found["verdict"]["decision"] == decision
    html = (folder / "signoff.html").read_text(encoding="utf-8")
    markdown = (folder / "signoff.md").read_text(encoding="utf-8")
    word = decision.replace("_", " ").upper()
    assert word in html
    assert word in markdown.splitlines()[0]
    cases = ET.parse(folder / "junit.xml").getroot().iter("testcase")
    verdict = next(case for case in cases if case.get("name") == "verdict")
    kind = {"approve": None, "reject": "failure", "insufficient_evidence": "error"}[decision]
    assert {"failure", "error"} & {child.tag for child in verdict} == (set() if kind is None else {kind})
    assert verify(capsys, folder)[0] == 0


def test_the_three_verdicts_come_from_what_was_planted(made: Made) -> None:
    gates = {d: {g["id"]: g for g in document(made[d])["gates"]} for d in SIGNED_OFF}
    assert {g["state"] for g in gates["approve"].values()} == {"pass"}
    assert gates["reject"]["small:cost_per_request"]["state"] == "fail"
    assert gates["insufficient_evidence"]["small:under_route:critical"]["state"] == "open"
    assert gates["insufficient_evidence"]["small:under_route:critical"]["missing_n"] > 0
    # 20 critical needs, and 1.00 % to 4 %: the smallest n without an error for 4 % is 74.
    assert gates["insufficient_evidence"]["small:under_route:critical"]["missing_n"] == 74 - 20


def test_the_approved_document_holds_what_it_should(made: Made) -> None:
    found = document(made["approve"])
    assert found["schema"] == "evalkit.signoff/1"
    assert found["created_at"] == "2026-12-01T00:00:00Z"
    assert found["digest"] == document_digest(found)
    assert found["policy"]["fixed_before_run"] is True
    assert [run["id"] for run in found["runs"]] == ["small", "ladder"]
    # The policy's 4 % was searched for, not the study's 5 %.
    gates = {gate["id"]: gate for gate in found["gates"]}
    assert gates["small:under_route:critical"]["limit"] == 0.04
    searched = gates["small:non_inferiority:always:frontier"]
    assert (searched["status"], searched["basis"]) == ("certified", "bound")
    assert "at every point of the path from all-strongest to the threshold" in searched["message"]
    assert gates["ladder:non_inferiority:think-4k"]["status"] == "certified"
    changes = {(row["run"], row["what"]): row for row in found["changes"]}
    assert changes["small", "cost_per_request"]["before"] == 0.02
    assert changes["ladder", "arm"]["before"] == "think-4k"
    assert changes["ladder", "arm"]["after"] == "think-1k"
    assert [rung["arm"] for rung in found["ladder"] if rung["chosen"]] == ["think-1k"]
    assert found["release"]["rollout"] == ["5 % of traffic for one day", "all of it"]
    listed = {row["path"] for row in found["manifest"]}
    assert {"policy.yaml", "runs/small/evidence.zip", "runs/ladder/result.json"} <= listed


def test_the_same_study_gives_the_same_bytes(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", EPOCH)
    again = make_signoff(tmp_path, "approve")
    first = made["approve"]
    names = sorted(path.relative_to(first).as_posix() for path in first.rglob("*") if path.is_file())
    assert names == sorted(path.relative_to(again).as_posix() for path in again.rglob("*") if path.is_file())
    for name in names:
        assert (first / name).read_bytes() == (again / name).read_bytes(), name


def flip_label(content: bytes) -> bytes:
    """One critical item that needs the frontier tier becomes one that does not."""
    assert b"q0,question 0,frontier,critical" in content
    return content.replace(b"q0,question 0,frontier,critical", b"q0,question 0,cheap,critical")


def flip_outcome(content: bytes) -> bytes:
    assert b"q0,cheap,demo/cheap,wrong" in content
    return content.replace(b"q0,cheap,demo/cheap,wrong", b"q0,cheap,demo/cheap,ok")


def cheaper(content: bytes) -> bytes:
    return content.replace(b"ok,0.02,", b"ok,0.01,")


@pytest.mark.parametrize(
    ("name", "change", "fields"),
    [
        ("labels/labels.csv", flip_label, ["provenance.labels.hash", "item q0"]),
        ("outcomes/outcomes.csv", flip_outcome, ["provenance.outcomes.hash"]),
        ("outcomes/outcomes.csv", cheaper, ["provenance.outcomes.hash", "cost_usd"]),
        ("scores/scores.csv", lambda c: c.replace(b"q1,0.1", b"q1,0.2"), ["provenance.scores.hash"]),
        ("study.yaml", lambda c: c.replace(b"0.05", b"0.06", 1), ["provenance.study_hash"]),
        ("policy/gates.yaml", lambda c: c.replace(b"margin_points: 2.0", b"margin_points: 2.5"), ["policy"]),
        ("looks.json", lambda c: c.replace(b'"delta": 0.05', b'"delta": 0.04'), ["looks.delta"]),
    ],
)
def test_tampering_with_evidence_is_named_whatever_hashes_are_put_right(
    approved: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    change: Callable[[bytes], bytes],
    fields: list[str],
) -> None:
    bundle = copy_of(approved, approved.with_name("first")) / "runs/small/evidence.zip"
    in_bundle(bundle.parents[2], name, change, index=False)
    with pytest.raises(BrokenFileError, match=f"{name} is not as files.json says"):  # hashes alone: the very file
        open_evidence(bundle, approved.with_name("unpacked"))
    in_bundle(approved, name, change)
    rehash(approved)
    code, said = verify(capsys, approved)
    assert code == 1
    for field in fields:
        assert field in said


def edit_result(folder: Path) -> None:
    changed_json(folder / "runs/small/result.json", lambda r: r["gates"][1].update(upper_bound=0.001))


def edit_items(folder: Path) -> None:
    path = folder / "runs/small/items.jsonl.gz"
    rows = gzip.decompress(path.read_bytes()).replace(b'"cost_usd": 0.0201', b'"cost_usd": 0.0101', 1)
    path.write_bytes(gzip.compress(rows, mtime=0))


def edit_report(folder: Path) -> None:
    path = folder / "runs/small/report.html"
    path.write_text(path.read_text(encoding="utf-8").replace("APPROVE", "APPROVED", 1), encoding="utf-8")


def edit_page(folder: Path) -> None:
    path = folder / "signoff.html"
    path.write_text(path.read_text(encoding="utf-8").replace("APPROVE", "APPROVED", 1), encoding="utf-8")


def edit_policy(folder: Path) -> None:
    path = folder / "policy.yaml"
    path.write_text(
        path.read_text(encoding="utf-8").replace("owner: support team", "owner: nobody"), encoding="utf-8"
    )


def edit_document(folder: Path) -> None:
    changed_json(folder / "signoff.json", lambda d: d["gates"][0].update(limit=0.2))


@pytest.mark.parametrize(
    ("change", "file", "what"),
    [
        (edit_result, "runs/small/result.json", "gates[under_route:critical].upper_bound is 0.001"),
        (edit_items, "runs/small/items.jsonl.gz", "item q"),
        (edit_report, "runs/small/report.html", "is not the page that result.json gives"),
        (edit_page, "signoff.html", "is not what signoff.json gives"),
        (edit_policy, "signoff.json", "release.owner"),
        (edit_document, "signoff.json", "limit is 0.2"),
    ],
)
def test_a_changed_file_is_named_before_and_after_its_hash_is_put_right(
    approved: Path, capsys: pytest.CaptureFixture[str], change: Callable[[Path], None], file: str, what: str
) -> None:
    change(approved)
    assert any("manifest.json says" in said for _, said in folder_faults(approved))
    rehash(approved)
    code, said = verify(capsys, approved, "--json", str(approved.with_name("found.json")))
    assert code == 1
    found = json.loads(approved.with_name("found.json").read_text())
    assert any(row["file"] == file and what in row["what"] for row in found["findings"]), said


def test_a_file_that_nobody_vouches_for_and_one_that_is_gone_are_named(
    approved: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (approved / "runs/small/extra.html").write_text("<p>approved")
    (approved / "runs/ladder/report.html").unlink()
    code, said = verify(capsys, approved)
    assert code == 1
    assert "runs/small/extra.html: is not in manifest.json" in said
    assert "runs/ladder/report.html: is missing" in said


def test_a_run_that_is_not_what_its_evidence_gives_is_no_input_of_a_sign_off(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = copy_of(made["approve"] / "runs/small", tmp_path / "run")
    changed_json(run / "result.json", lambda r: r["gates"][1].update(upper_bound=0.001))
    policy = made["approve"].parent / "gates.yaml"
    capsys.readouterr()
    code = main(["sign-off", "--policy", str(policy), str(run), "--out", str(tmp_path / "out")])
    assert code == 2
    assert "gates[under_route:critical].upper_bound is 0.001" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_another_policy_than_the_runs_recorded_leaves_it_open(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = tmp_path / "gates.yaml"
    policy.write_text(POLICY + "# a word more\n", encoding="utf-8")
    runs = [str(made["approve"] / "runs" / name) for name in ("small", "ladder")]
    assert main(["sign-off", "--policy", str(policy), *runs, "--out", str(tmp_path / "out"), "--quiet"]) == 3
    gates = {g["name"]: g["state"] for g in document(tmp_path / "out")["gates"] if g["state"] != "pass"}
    assert gates == {"policy_before_run": "open"}
    capsys.readouterr()


def test_fail_on_changes_the_exit_code_alone(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = made["insufficient_evidence"]
    runs = [str(source / "runs" / name) for name in ("small", "ladder")]
    base = ["sign-off", "--policy", str(source.parent / "gates.yaml"), *runs, "--out", str(tmp_path / "out")]
    assert main([*base, "--fail-on", "reject"]) == 0
    captured = capsys.readouterr()
    assert "INSUFFICIENT EVIDENCE" in captured.out
    assert "the verdict is insufficient evidence" in captured.err
    assert main([*base, "--fail-on", "often"]) == 2
    assert "--fail-on" in capsys.readouterr().err


def test_without_evidence_a_sign_off_stays_open(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy, routing, _ = make_studies(tmp_path)
    policy.write_text("policy: p\nrisk: {critical: {max_under_route: 0.04}}\n", encoding="utf-8")
    run = routing / "run"
    assert main(["route-sweep", str(routing / "study.yaml"), "--out", str(run), "--no-evidence", "--quiet"]) == 0
    assert not (run / "evidence.zip").exists()
    out = tmp_path / "out"
    assert main(["sign-off", "--policy", str(policy), str(run), "--out", str(out), "--quiet"]) == 3
    assert [g["id"] for g in document(out)["gates"] if g["state"] == "open"] == ["small:evidence"]
    capsys.readouterr()
    assert verify(capsys, run)[0] == 1
    shutil.rmtree(run)


def test_judging_again_books_no_look(made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = made["approve"].parent / "routing" / "labels.csv.looks.json"
    before = record.read_bytes()
    assert len(json.loads(before)["looks"]) == 1
    assert verify(capsys, made["approve"])[0] == 0
    assert verify(capsys, made["approve"] / "runs/small")[0] == 0
    assert record.read_bytes() == before


def test_to_ask_for_something_else_of_the_same_labels_is_another_look(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A margin that is widened after the run has seen the labels certifies nothing any more."""
    policy, routing, ladder = make_studies(tmp_path)
    run_studies(routing, ladder)
    policy.write_text(POLICY.replace("margin_points: 2.0", "margin_points: 9"), encoding="utf-8")
    runs = run_studies(routing, ladder)
    result = json.loads((runs[0] / "result.json").read_text())
    assert (result["looks"]["this"], result["looks"]["delta"]) == (2, None)
    policy.write_text(policy.read_text() + "# the owner has moved\n", encoding="utf-8")
    runs = run_studies(routing, ladder)
    assert json.loads((runs[0] / "result.json").read_text())["looks"]["this"] == 2  # nothing else is asked for
    code = main(["sign-off", "--policy", str(policy), *map(str, runs), "--out", str(tmp_path / "out"), "--quiet"])
    assert code == 3
    capsys.readouterr()


def test_todays_run_is_a_baseline_on_the_same_items(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import csv

    policy, routing, _ = make_studies(tmp_path)
    today = tmp_path / "today"
    shutil.copytree(routing, today, ignore=shutil.ignore_patterns("run", "*.looks.json"))
    with (today / "labels.csv").open(encoding="utf-8", newline="") as file:
        ids = [row["id"] for row in csv.DictReader(file)]
    from tests.workflows.studies import write_csv, write_study

    write_csv(today / "decisions.csv", [{"id": i, "routed_tier": "frontier"} for i in ids])
    write_study(today, study="today", router={"decisions": "decisions.csv", "cost_usd": 0})
    text = "policy: p\nrisk: {critical: {max_under_route: 0.04}}\nbaseline: {today: today/run, margin_points: 2}\n"
    policy.write_text(text, encoding="utf-8")
    for study in (today, routing):
        main(["route-sweep", str(study / "study.yaml"), "--out", str(study / "run"), "--quiet"])
    out = tmp_path / "out"
    assert main(["sign-off", "--policy", str(policy), str(routing / "run"), "--out", str(out), "--quiet"]) == 0
    gates = {g["id"]: g for g in document(out)["gates"]}
    assert gates["small:non_inferiority:today"]["observed"] == 0
    assert document(out)["changes"][1]["before"] == pytest.approx(0.02)
    assert (out / "baseline/evidence.zip").is_file()
    assert verify(capsys, out)[0] == 0


def test_a_signed_sign_off_is_never_written_over(
    approved: Path, made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    (approved / "signoff.1.sig.json").write_text("{}")
    policy = made["approve"].parent / "gates.yaml"
    run = made["approve"] / "runs/small"
    assert main(["sign-off", "--policy", str(policy), str(run), "--out", str(approved)]) == 2
    assert "signed" in capsys.readouterr().err
