"""The page on pipelines: its YAML is what the systems read, and its commands do what it says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from evalkit.cli.app import COMMANDS
from evalkit.signoff.compare_inputs import INPUTS
from evalkit.signoff.fail_on import CONDITIONS
from tests.signoff.folders import public_line, ssh_key

REPO = Path(__file__).resolve().parent.parent
PAGE = (REPO / "docs" / "ci.md").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def yaml_of(text: str) -> Any:
    return YAML(typ="safe").load(text)


GITHUB, GITLAB, RELEASE = (yaml_of(block) for block in blocks("yaml"))


def shell(command: str, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path, **env},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository as the page describes it: the study of the README, judged, its record of looks committed."""
    tmp_path = tmp_path_factory.mktemp("repository")
    if shutil.which("git") is None:
        pytest.skip("needs git, to show that a record of looks is checked")
    readme = (REPO / "README.md").read_text(encoding="utf-8")
    (first,) = [block for block in re.findall(r"```sh\n(.*?)```", readme, re.DOTALL) if "first-study" in block]
    limits = "limits: {max_cost_per_request: 0.01}"
    signers = "signers: [{role: approver, name: Name Of Approver}]"
    write = f"printf '%s\\n' 'policy: release' '{limits}' '{signers}' > gates.yaml"
    named = f"{write}\nevalkit route-sweep"
    made = shell(first.replace("evalkit route-sweep", named), tmp_path)
    assert made.returncode == 0, made.stderr
    folder = tmp_path / "first-study"
    (folder / "reports" / "first-study").rename(folder / "production")
    identity = "git -c user.name=t -c user.email=t@example.com"
    made = shell(f"git init -q . && git add . && {identity} commit -qm study", folder)
    assert made.returncode == 0, made.stderr
    return folder


@pytest.fixture
def repository(committed: Path, tmp_path: Path) -> Path:
    """A checkout of it of one's own."""
    return shutil.copytree(committed, tmp_path / "checkout")


def github_runs() -> list[dict[str, Any]]:
    (job,) = GITHUB["jobs"].values()
    return [step for step in job["steps"] if "run" in step and "pip install" not in step["run"]]


def test_the_job_passes_and_leaves_what_it_uploads(repository: Path, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    for step in github_runs():
        done = shell(step["run"], repository, GITHUB_STEP_SUMMARY=str(summary))
        assert done.returncode == 0, f"{step['name']}: {done.stdout}{done.stderr}"
    said = summary.read_text(encoding="utf-8")
    assert "APPROVE" in said
    assert "Comparison of two runs" in said
    assert (repository / "reports" / "gates.xml").is_file()
    assert (repository / "reports" / "candidate" / "report.html").is_file()


def test_a_look_that_is_not_on_record_stops_the_job(repository: Path) -> None:
    study = repository / "study.yaml"
    study.write_text(study.read_text(encoding="utf-8").replace("0.80", "0.70"), encoding="utf-8")
    codes = [shell(step["run"], repository).returncode for step in github_runs()[:2]]
    assert codes[0] == 3  # a second look, which was not declared, certifies nothing
    assert codes[1] == 1


def test_a_worse_router_stops_the_job(repository: Path) -> None:
    rows = (repository / "scores.csv").read_text(encoding="utf-8").splitlines()
    low = [rows[0], *(f"{row.split(',')[0]},0.1" for row in rows[1:])]
    (repository / "scores.csv").write_text("\n".join(low) + "\n", encoding="utf-8")
    judge, _, compare = github_runs()[:3]
    assert shell(judge["run"], repository).returncode in {1, 3}
    assert shell(compare["run"], repository).returncode == 1


def test_github_keeps_reports_of_a_failed_job_and_asks_for_no_right() -> None:
    assert GITHUB["permissions"] == {"contents": "read"}
    (job,) = GITHUB["jobs"].values()
    after = job["steps"][-3:]
    assert [step["if"] for step in after] == ["${{ !cancelled() }}"] * 3
    assert after[-1]["uses"].startswith("actions/upload-artifact@")
    assert "secrets." not in PAGE


def test_gitlab_runs_the_same_commands_and_reports_junit() -> None:
    (job,) = GITLAB.values()
    assert job["script"] == [step["run"] for step in github_runs()[:3]]
    (file,) = re.findall(r"--junit (\S+)", job["script"][0])
    assert job["artifacts"]["reports"] == {"junit": file}
    assert job["artifacts"]["when"] == "always"
    installs = next(
        step["run"] for step in GITHUB["jobs"]["gates"]["steps"] if "pip install" in step.get("run", "")
    )
    assert job["before_script"] == installs.strip().splitlines()


def test_every_condition_and_input_is_on_the_page() -> None:
    table = PAGE.partition("## Conditions")[2]
    rows = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    rows = [row for row in rows if "--fail-on" not in row]
    named = {name.partition(":")[0] for row in rows for name in re.findall(r"`([^`]+)`", row)}
    assert named == set(CONDITIONS)
    (inputs,) = [row for row in table.splitlines() if row.startswith("| `inputs-differ`")]
    assert re.findall(r"[\w-]+", inputs.partition("another hash: ")[2].rstrip("| ")) == list(INPUTS)


def test_every_command_on_the_page_is_one() -> None:
    known = {command.name for command in COMMANDS}
    named = set(re.findall(r"^\s*(?:- |run: )*evalkit ([a-z-]+)", PAGE, re.MULTILINE))
    assert named >= {"route-sweep", "compare", "sign"}
    assert named - known == set()


def test_a_release_is_signed_and_verified_as_the_page_says(repository: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    key = ssh_key(home / ".ssh" / "id_ed25519")
    (release,) = [block for block in blocks("sh") if "evalkit sign " in block]
    judge = github_runs()[0]["run"]
    done = shell(f"{judge}\n{release}", repository, HOME=str(home))
    assert done.returncode == 0, done.stdout + done.stderr
    (example,) = [block for block in blocks("text") if "ssh-ed25519" in block]
    entry = f"{example.partition('ssh-ed25519')[0]}{public_line(key)}\n"
    (repository / "allowed_signers").write_text(entry, encoding="utf-8")
    (step,) = RELEASE
    done = shell(step["run"], repository)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "valid: signoff.1.sig.json: Name Of Approver (approver), approve" in done.stdout + done.stderr

    veto = (
        f"{release.partition('evalkit sign ')[2].partition(' --decision')[0]} --decision reject --reason 'not yet'"
    )
    done = shell(f"evalkit sign {veto}", repository, HOME=str(home))
    assert done.returncode == 0, done.stdout + done.stderr
    done = shell(step["run"], repository)
    assert done.returncode == 1  # the signatures hold, and one of them rejects
    assert "decision by signature: reject" in done.stdout + done.stderr
    (repository / "reports" / "signoff" / "signoff.2.sig.json").unlink()

    signature = repository / "reports" / "signoff" / "signoff.1.sig.json"
    content = bytearray(signature.read_bytes())
    content[len(content) // 2] ^= 1
    signature.write_bytes(content)
    done = shell(step["run"], repository)
    assert done.returncode == 1
    assert "INVALID: signoff.1.sig.json" in done.stdout + done.stderr
