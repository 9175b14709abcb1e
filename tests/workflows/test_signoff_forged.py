"""Sign-offs forged by somebody who knows the format and puts every hash right, and bundles that reach outside."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalkit import __version__
from evalkit.cli.app import main
from evalkit.signoff.build import SOURCE, source_sha256
from evalkit.signoff.digest import document_digest, folder_faults
from evalkit.workflows.run_check import check_run
from evalkit.workflows.signoff_command import views
from tests.signoff.make import changed_json, copy_of, make_signoff

Change = Callable[[dict[str, Any]], Any]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_signoff(tmp_path_factory.mktemp("made"))


@pytest.fixture
def forged(made: Path, tmp_path: Path) -> Path:
    """A copy of an approved sign-off, to forge."""
    return copy_of(made, tmp_path / "forged")


def sha(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def list_anew(folder: Path) -> None:
    """manifest.json of whatever lies in the folder now."""
    rows = [
        {"path": path.relative_to(folder).as_posix(), "sha256": sha(path), "bytes": path.stat().st_size}
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "manifest.json"
    ]
    (folder / "manifest.json").write_text(json.dumps({"files": rows}))
    assert folder_faults(folder) == []


def digest_anew(folder: Path, change: Change) -> None:
    path = folder / "signoff.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    document["digest"] = document_digest(document)
    path.write_text(json.dumps(document), encoding="utf-8")


def verify(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    capsys.readouterr()
    code = main(["verify", str(folder)])
    return code, capsys.readouterr().out


@pytest.mark.parametrize("key", ["created_at", "runs", "policy"])
def test_a_document_that_cannot_be_followed_verifies_nothing(
    forged: Path, capsys: pytest.CaptureFixture[str], key: str
) -> None:
    (forged / "signoff.html").write_text("<p>APPROVE")
    digest_anew(forged, lambda document: document.pop(key))
    list_anew(forged)
    code, said = verify(forged, capsys)
    assert code == 1
    assert "changed: signoff.json: does not hold what a sign-off holds" in said


def test_a_page_of_another_version_is_compared_too(forged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def older(document: dict[str, Any]) -> None:
        document["evalkit_version"] = document["provenance"]["evalkit_version"] = "0.0.9"

    digest_anew(forged, older)
    document = json.loads((forged / "signoff.json").read_text(encoding="utf-8"))
    for name, content in views(document, "ko").items():
        (forged / name).write_bytes(content)
    list_anew(forged)
    assert verify(forged, capsys)[0] == 0  # the version itself is recorded only
    (forged / "signoff.html").write_text("<p>APPROVE")
    list_anew(forged)
    code, said = verify(forged, capsys)
    assert code == 1
    assert "differs: signoff.html: is not what signoff.json gives (written by evalkit 0.0.9, this is " in said
    assert "no hash is broken, and another version or another build of evalkit wrote these files" in said
    (forged / "signoff.html").write_text("<p>APPROVE!")
    code, said = verify(forged, capsys)
    assert code == 1
    assert "changed: signoff.html: is not as manifest.json says" in said
    assert "no hash is broken" not in said


@pytest.mark.parametrize("source", ["0" * 64, None])
def test_a_page_of_another_build_of_this_version_is_told_from_a_changed_one(
    forged: Path, capsys: pytest.CaptureFixture[str], source: str | None
) -> None:
    def other_build(document: dict[str, Any]) -> None:
        assert document["provenance"].pop(SOURCE) == source_sha256()
        if source is not None:
            document["provenance"][SOURCE] = source

    digest_anew(forged, other_build)
    document = json.loads((forged / "signoff.json").read_text(encoding="utf-8"))
    for name, content in views(document, "en").items():
        (forged / name).write_bytes(content)
    list_anew(forged)
    assert verify(forged, capsys)[0] == 0  # which build it was is recorded only
    (forged / "signoff.html").write_text("<p>APPROVE")
    list_anew(forged)
    code, said = verify(forged, capsys)
    assert code == 1
    named = "that names no source" if source is None else "of source 000000000000"
    wrote = f"(written by another build of evalkit {__version__}, {named}, this is of source "
    assert f"differs: signoff.html: is not what signoff.json gives {wrote}" in said
    assert "another build of evalkit wrote these files" in said
    (forged / "signoff.html").write_text("<p>APPROVE!")
    code, said = verify(forged, capsys)
    assert code == 1
    assert "changed: signoff.html: is not as manifest.json says" in said


def test_the_report_of_a_run_of_another_version_is_compared_too(
    forged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = forged / "runs/small"
    changed_json(run / "result.json", lambda result: result.update(evalkit_version="0.0.9"))
    (run / "report.html").write_text("<p>0 of 10,000 under-routed")

    def follow(document: dict[str, Any]) -> None:
        row = next(row for row in document["runs"] if row["id"] == "small")
        row |= {"result_sha256": sha(run / "result.json"), "report_sha256": sha(run / "report.html")}
        for row in document["manifest"]:
            row |= {"sha256": sha(forged / row["path"]), "bytes": (forged / row["path"]).stat().st_size}
        document["provenance"]["small"]["evalkit_version"] = "0.0.9"

    digest_anew(forged, follow)
    document = json.loads((forged / "signoff.json").read_text(encoding="utf-8"))
    for name, content in views(document, "en").items():
        (forged / name).write_bytes(content)
    list_anew(forged)
    code, said = verify(forged, capsys)
    assert code == 1
    assert "runs/small/report.html: is not the page that result.json gives (written by evalkit 0.0.9" in said


def test_a_listed_file_that_no_sign_off_has_and_a_page_that_is_gone_are_named(
    forged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (forged / "approval.html").write_text("<p>APPROVE")
    (forged / "signoff.md").unlink()
    list_anew(forged)
    code, said = verify(forged, capsys)
    assert code == 1
    assert "approval.html: is in manifest.json, and no file of this sign-off" in said
    assert "signoff.md: is missing" in said


def rebundled(run: Path, change: Callable[[dict[str, bytes], dict[str, Any]], None]) -> None:
    """Change the bundle of a run and put every hash of it right."""
    path = run / "evidence.zip"
    with zipfile.ZipFile(path) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    index = json.loads(parts.pop("files.json"))
    change(parts, index)
    for row in index["files"]:
        row |= {"sha256": hashlib.sha256(parts[row["name"]]).hexdigest(), "bytes": len(parts[row["name"]])}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in {**parts, "files.json": json.dumps(index).encode()}.items():
            file.writestr(name, content)
    changed_json(run / "result.json", lambda r: r["provenance"]["evidence"].update(sha256=sha(path)))


def without(role: str, parts: dict[str, bytes], index: dict[str, Any]) -> bytes:
    row = next(row for row in index["files"] if row["role"] == role)
    index["files"].remove(row)
    return parts.pop(row["name"])


def test_a_bundle_can_neither_read_nor_write_outside_of_itself(
    forged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its study names labels of this machine: their record of looks must not be put in place by the bundle's."""
    home = tmp_path / "home"
    home.mkdir()
    record = home / "labels.csv.looks.json"
    record.write_text('{"schema": "evalkit.looks/1", "looks": [{"key": "k", "delta": null}]}')
    before = record.read_bytes()

    def reach(parts: dict[str, bytes], index: dict[str, Any]) -> None:
        (home / "labels.csv").write_bytes(without("labels", parts, index))
        written = f"labels: {home / 'labels.csv'}".encode()
        assert b"labels: labels.csv" in parts["study.yaml"]
        parts["study.yaml"] = parts["study.yaml"].replace(b"labels: labels.csv", written)

    run = forged / "runs/small"
    rebundled(run, reach)
    code, said = verify(run, capsys)
    assert code == 1
    assert "evidence.zip: does not hold what its study names: labels" in said
    assert record.read_bytes() == before
    assert sorted(path.name for path in home.iterdir()) == ["labels.csv", "labels.csv.looks.json"]


@pytest.mark.parametrize("role", ["outcomes", "scores", "policy"])
def test_a_bundle_without_a_file_that_its_study_names_is_refused(forged: Path, role: str) -> None:
    run = forged / "runs/small"
    rebundled(run, lambda parts, index: (without(role, parts, index), None)[1])
    checked = check_run(run)
    assert checked.faults[0] == ("evidence.zip", f"does not hold what its study names: {role}")
    assert checked.rejudged is None


def test_labels_of_the_hub_are_not_fetched_and_leave_the_evidence_open(forged: Path) -> None:
    address = "hf://owner/name@" + "a" * 40 + "/test"

    def elsewhere(parts: dict[str, bytes], index: dict[str, Any]) -> None:
        without("labels", parts, index)
        parts["study.yaml"] = parts["study.yaml"].replace(b"labels: labels.csv", f"labels: {address}".encode())
        index["absent"] = [{"role": "labels", "written": address, "why": "it is no file beside the study"}]

    run = forged / "runs/small"
    rebundled(run, elsewhere)
    checked = check_run(run)
    assert checked.faults == ()
    assert checked.evidence == f"not everything is in the bundle (labels: {address})"


def test_the_hash_of_other_labels_cannot_be_kept_by_saying_that_keys_are_hidden(forged: Path) -> None:
    """Labels are changed and files.json claims that their copy only lost a key."""
    run = forged / "runs/small"
    original = json.loads((run / "result.json").read_text())["provenance"]["labels"]["hash"]

    def claim(parts: dict[str, bytes], index: dict[str, Any]) -> None:
        index["hidden"] = {"labels": original.removeprefix("sha256:")}

    def mark(parts: dict[str, bytes], index: dict[str, Any]) -> None:
        parts["labels/labels.csv"] = parts["labels/labels.csv"].replace(b"question 0,", b"[hidden] 0,")

    rebundled(run, claim)
    assert check_run(run).faults[0][1].endswith("something is hidden in its labels, and nothing is")
    rebundled(run, mark)
    assert check_run(run).faults[0] == (
        "evidence.zip",
        "hides keys or passwords in other tables than result.json says",
    )
    changed_json(run / "result.json", lambda r: r["provenance"]["evidence"].update(hidden_in=["labels"]))
    checked = check_run(run)  # now the run itself says it, and so does the gate of every sign-off
    assert checked.rejudged is not None
    assert checked.rejudged.hidden == {"labels"}


def test_a_broken_summary_of_a_replay_is_named(forged: Path) -> None:
    def add(parts: dict[str, bytes], index: dict[str, Any]) -> None:
        parts["replay/replay.json"] = b"[]"
        parts["outcomes/outcomes.csv"] = parts["outcomes/outcomes.csv"].replace(b"demo/cheap", b"[hidden]")
        index["files"].append({"role": "replay", "written": "replay.json", "name": "replay/replay.json"})
        index["hidden"] = {"outcomes": "0" * 64}

    run = forged / "runs/small"
    rebundled(run, add)
    assert check_run(run).faults[0] == ("evidence.zip", "its summary of the replay does not name the outcomes")


@pytest.mark.parametrize(
    ("run", "change"),
    [
        ("ladder", lambda r: r["acceptability"]["shares"].pop()),
        ("ladder", lambda r: r["arms"][0].update(marginal_cost_per_quality_point=10**30)),
        ("small", lambda r: r["gates"][0].update(status="fine")),
        ("small", lambda r: r["verdict"].update(decision="yes")),
        ("small", lambda r: r.update(looks=[])),
    ],
)
def test_a_result_that_holds_anything_ends_with_a_fault_and_no_traceback(
    made: Path, forged: Path, capsys: pytest.CaptureFixture[str], run: str, change: Change
) -> None:
    """Without a bundle nothing is computed again, and what stands there is read as it is."""
    folder = forged / "runs" / run
    (folder / "evidence.zip").unlink()
    changed_json(folder / "result.json", lambda result: result["provenance"].update(evidence={"left_out": "so"}))
    changed_json(folder / "result.json", change)
    policy = made.parent / "gates.yaml"
    capsys.readouterr()
    assert main(["sign-off", "--policy", str(policy), str(folder), "--out", str(forged.with_name("out"))]) == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert "internal error" not in said
    assert "result.json" in said
