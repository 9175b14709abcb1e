"""The pages say what is true: examples print what is shown, lists are whole, the guarantee is word for word."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from evalkit.labels.read import LABEL_SCHEMA
from evalkit.outcomes.columns import OUTCOME_FIELDS
from evalkit.outcomes.status import STATUSES
from evalkit.study.names import SECTIONS

REPO = Path(__file__).resolve().parent.parent


def page(name: str) -> str:
    return (REPO / name).read_text(encoding="utf-8")


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, REPO / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def first_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the examples of README.md and getting-started leave behind; what they print is compared."""
    examples = script("examples")
    folder = tmp_path_factory.mktemp("examples of the pages")
    for name, start in examples.SERIES[0]:
        assert examples.with_output(page(name), folder / start) == page(name), (
            f"run python docs/examples.py: {name}"
        )
    return folder / "first-study"


def test_the_examples_of_readme_and_getting_started_print_what_is_shown(first_study: Path) -> None:
    written = sorted(path.name for path in (first_study / "reports" / "first-study").iterdir())
    assert written == ["evidence.zip", "items.jsonl.gz", "report.html", "result.json"]


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen, to make a key")
def test_the_readme_leads_from_a_run_to_a_signed_sign_off_that_verifies(first_study: Path, tmp_path: Path) -> None:
    folder = tmp_path / "first-study"
    shutil.copytree(first_study, folder)
    code = "".join(re.findall(r"```bash\n(.*?)```", page("README.md"), re.DOTALL))
    printed = script("examples").printed_by(code, folder)
    assert "\nAPPROVE" in printed
    assert "valid: signoff.1.sig.json: Your Name (approver), approve" in printed
    assert printed.splitlines()[-1].startswith("verified: every figure of this sign-off follows from its evidence")


def test_the_examples_of_methods_print_what_is_shown(tmp_path: Path) -> None:
    examples = script("examples")
    assert examples.with_output(page("docs/methods.md"), tmp_path) == page("docs/methods.md")


def test_a_failing_example_is_no_success(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="exit code 3"):
        script("examples").with_output("```sh\necho a\nexit 3\n```\n", tmp_path)


def test_the_guarantee_in_the_docs_is_the_one_that_is_printed(first_study: Path) -> None:
    result = json.loads((first_study / "reports" / "first-study" / "result.json").read_text(encoding="utf-8"))
    assert result["verdict"]["decision"] == "approve"
    assert f"> {result['guarantee']}\n" in page("docs/methods.md")


def test_formats_names_every_key_of_a_result(first_study: Path) -> None:
    result = json.loads((first_study / "reports" / "first-study" / "result.json").read_text(encoding="utf-8"))
    formats = page("docs/formats.md")
    for key in (
        "verdict",
        "gates",
        "stop_rules",
        "points",
        "baselines",
        "by_tier",
        "provenance",
        "guarantee",
        "selected",
    ):
        assert key in result
        assert f"`{key}`" in formats
    for gate in result["gates"]:
        assert f"`{gate['status']}`" in formats


def test_formats_names_every_field_a_user_may_write() -> None:
    formats = page("docs/formats.md")
    names = {*LABEL_SCHEMA.required, *LABEL_SCHEMA.optional, *OUTCOME_FIELDS, *STATUSES}
    for keys in SECTIONS.values():
        names |= set(keys)
    names -= {"path", "columns", "encoding"}  # of a source: written as one mapping
    assert sorted(name for name in names if f"`{name}`" not in formats) == []


def test_the_message_in_formats_is_what_a_wrong_file_prints(tmp_path: Path) -> None:
    rows = [f"q{n:03},chat,{'cheep' if n == 10 else 'cheap'}" for n in range(12)]
    (tmp_path / "labels.csv").write_text("\n".join(["id,risk,required_tier", *rows, ""]), encoding="utf-8")
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "evalkit",
            "labels",
            "check",
            "labels.csv",
            "--tiers=cheap,strong",
            "--risk-classes=chat",
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPO)},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert run.returncode == 2
    (shown,) = re.findall(r"```text\n(labels\.csv:.*\n)```", page("docs/formats.md"))
    assert run.stderr == shown


def test_the_command_reference_is_up_to_date() -> None:
    assert script("cli_reference").page() == page("docs/cli.md")


@pytest.mark.parametrize("code", [0, 1, 2, 3, 4])
def test_exit_codes_are_documented(code: int) -> None:
    assert re.search(rf"^\| {code} \| ", page("README.md"), re.MULTILINE)


def test_the_study_of_the_way_from_a_log_is_planned_before_any_of_its_files_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from evalkit.cli.app import main

    (study,) = (
        code for code in re.findall(r"```yaml\n(.*?)```", page("docs/labels.md"), re.DOTALL) if "kind:" in code
    )
    (command,) = re.findall(r"^evalkit labels plan study.yaml (.*)$", page("docs/labels.md"), re.MULTILINE)
    (tmp_path / "study.yaml").write_text(study, encoding="utf-8")
    assert main(["labels", "plan", str(tmp_path / "study.yaml"), *command.split()]) == 0
    said = capsys.readouterr()
    assert "Shared by 2 routers" in said.out
    assert "gates.yaml: there is no such policy yet" in said.err
