"""What is committed: nothing of this machine, pins that name no index, names that fit, layers without a gap."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import evalkit

REPO = Path(__file__).resolve().parent.parent


@cache
def files() -> dict[str, bytes]:
    """Every file that is committed, or would be by `git add .`, by its path in the repository."""
    if not (REPO / ".git").exists() or shutil.which("git") is None:
        pytest.skip("needs a git checkout and git, to know which files are committed")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPO,
        capture_output=True,
        check=True,
    )
    paths = [Path(os.fsdecode(name)) for name in listed.stdout.split(b"\0") if name]
    return {path.as_posix(): (REPO / path).read_bytes() for path in paths if (REPO / path).is_file()}


def texts(*endings: str) -> dict[str, str]:
    """The files whose names end so, as text."""
    return {path: content.decode("utf-8") for path, content in files().items() if path.endswith(endings)}


def lines_with(pattern: str, among: dict[str, str]) -> list[str]:
    found = re.compile(pattern)
    return [
        f"{path}:{number}: {line.strip()[:120]}"
        for path, text in among.items()
        for number, line in enumerate(text.splitlines(), 1)
        if found.search(line)
    ]


# What this machine is


def test_no_path_of_a_machine_is_committed() -> None:
    # Folders that mean a place only here. A checkout in a folder that every system has tells nothing.
    here = {REPO, REPO.parent, Path.home()} - {
        Path(path) for path in ("/", "/tmp", "/home", "/usr", "/opt", "/var")
    }
    hits = [
        f"{path}: {folder}"
        for path, content in files().items()
        for folder in here
        if os.fsencode(f"{folder}{os.sep}") in content
    ]
    homes = lines_with(
        r"(?<![\w.])/(?:home|Users)/\w+/|\bC:\\Users\\|file:///\w", texts(".py", ".md", ".toml", ".txt")
    )
    assert hits == []
    assert [hit for hit in homes if not hit.startswith("tests/test_repo.py:")] == []


def registry_hosts() -> set[str]:
    """The hosts and folders that packages come from on this machine, by its own configuration."""
    said = ["https://pypi" + ".org", "https://files.python" + "hosted.org", "https://registry.npm" + "js.org"]
    commands = [[sys.executable, "-m", "pip", "config", "list"]]
    if (npm := shutil.which("npm")) is not None:
        commands.append([npm, "config", "get", "registry"])
    said += [subprocess.run(command, capture_output=True, text=True, check=False).stdout for command in commands]
    said += [value for name, value in os.environ.items() if re.search(r"INDEX|REGISTRY|FIND_LINKS", name)]
    apt = [file for pattern in ("sources.list", "sources.list.d/*") for file in Path("/etc/apt").glob(pattern)]
    said += [file.read_text(encoding="utf-8", errors="replace") for file in apt if file.is_file()]
    urls = re.findall(r"\b(?:https?|file)://[^\s'\"]+", "\n".join(said))
    hosts = {
        re.sub(r"^https?://(?:[^/@]*@)?([^/:]+).*|^file://(.+?)/?(?:simple/?)?$", r"\1\2", url) for url in urls
    }
    return {host for host in hosts if re.search(r"[./]", host) and host != "127.0.0.1"}


def test_no_registry_is_named() -> None:
    hosts = registry_hosts()
    assert len(hosts) >= 3
    hits = [(path, host) for path, content in files().items() for host in hosts if host.encode() in content]
    assert hits == []


def test_docs_and_messages_do_not_point_at_the_reference_folder() -> None:
    readers = {
        path: text
        for path, text in texts(".md", ".py", ".html", ".j2", ".css", ".js", ".yaml", ".toml", "Makefile").items()
        if not path.startswith("tests/") or path == "tests/README.md"
    }
    assert lines_with(r"(?<![\w-])(?:\.\./)?shared/", readers) == []


# Code


def test_no_template_trusts_its_data() -> None:
    templates = {path: content.decode("utf-8") for path, content in files().items() if "/templates/" in path}
    assert templates
    assert (
        lines_with(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", templates)
        == []
    )
    assert lines_with(r"\|\s*safe\b|autoescape\s+false", templates) == []


def test_modules_stay_small() -> None:
    assert {path: n for path, text in texts(".py").items() if (n := text.count("\n")) > 500} == {}


def test_a_silenced_check_names_what_it_silences() -> None:
    sources = {path: text for path, text in texts(".py").items() if path != "tests/test_repo.py"}
    assert lines_with(r"#\s*type:\s*ignore(?!\[)|#\s*noqa(?!: *[A-Z]+\d)|pragma: no cover", sources) == []


def test_files_are_opened_with_their_encoding_named() -> None:
    # ruff knows the rule; it is a preview rule, so it must be asked for twice.
    lint = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"]["lint"]
    assert "PLW1514" in lint["select"]
    assert lint["preview"]
    assert "PLW1514" not in lint["ignore"]


def modules() -> list[str]:
    found = [info.name for info in pkgutil.walk_packages(evalkit.__path__, "evalkit.")]
    return [name for name in found if "._" not in name]


def test_nothing_is_missed_by_the_walk() -> None:
    on_disk = {
        ".".join(Path(path).with_suffix("").parts).removesuffix(".__init__")
        for path in files()
        if path.startswith("evalkit/") and path.endswith(".py") and "/_" not in path.replace("/__init__", "")
    }
    assert {"evalkit", *modules()} == on_disk


@pytest.mark.parametrize("name", modules())
def test_all_names_what_is_public(name: str) -> None:
    module = importlib.import_module(name)
    listed = getattr(module, "__all__", [])
    assert [name for name in listed if not hasattr(module, name)] == []
    assert len(set(listed)) == len(listed)
    defined = public_definitions(module)
    missing = sorted(defined - set(listed))
    assert missing == [], f"public in {name}, and not in its __all__"


def public_definitions(module: ModuleType) -> set[str]:
    """The functions and classes that a module defines under a public name, and in a package what it re-exports."""
    path = Path(module.__file__ or "")
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            # A command of a Typer app belongs to the app and is called by nobody else.
            if not any(ast.unparse(decorator).startswith("app.") for decorator in node.decorator_list):
                names.add(node.name)
        elif isinstance(node, ast.ImportFrom) and path.name == "__init__.py" and node.module != "__future__":
            names |= {alias.asname or alias.name for alias in node.names}
    return {name for name in names if not name.startswith("_")}


def test_every_command_is_told_in_the_changes() -> None:
    told = " ".join((REPO / "CHANGELOG.md").read_text(encoding="utf-8").split())
    page = (REPO / "docs" / "cli.md").read_text(encoding="utf-8")
    commands = re.findall(r"^## evalkit (.+)$", page, re.MULTILINE)
    assert {"sign-off", "labels plan"} <= set(commands)
    groups = {name for name in commands if any(other.startswith(f"{name} ") for other in commands)}
    short = {
        name: name.rsplit(" ", 1) for name in commands if " " in name
    }  # "`evalkit labels check` and `derive`"
    missing = [
        name
        for name in commands
        if name not in groups
        and f"`evalkit {name}" not in told
        and not (name in short and f"evalkit {short[name][0]}" in told and f"`{short[name][1]}`" in told)
        and not name.startswith("import ")
    ]
    assert missing == []


def layers_told() -> list[str]:
    """The first cells of the table of layers in CONTRIBUTING.md."""
    page = (REPO / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = page.split("| layer | what |\n|---|---|\n")[1].split("\n\n")[0]
    return [row.split("|")[1] for row in table.splitlines()]


def test_extras_are_named_for_contributors() -> None:
    extras = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    page = (REPO / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert [name for name in extras if f"`{name}`" not in page or f"--extra {name}" not in page] == []


def test_every_page_is_named_in_the_readme() -> None:
    readme = (REPO / "README.md").read_text(encoding="utf-8").split("## More")[1]
    pages = {path.name for path in (REPO / "docs").glob("*.md")}
    assert sorted(name for name in pages if f"(docs/{name})" not in readme) == []


def test_every_package_has_its_layer() -> None:
    contracts = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (layers,) = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    rows = [[f"evalkit.{part}" for part in re.findall(r"`(\w+)`", row)] for row in layers_told()]
    assert rows == [re.split(r" [|:] ", layer) for layer in layers], "CONTRIBUTING.md lists the layers"
    named = [name.strip() for layer in layers for name in re.split(r"[|:]", layer)]
    parts = {f"evalkit.{info.name}" for info in pkgutil.iter_modules(evalkit.__path__)}
    assert sorted(named) == sorted(parts - {"evalkit.__main__", "evalkit._bundled"})


# Pins


def pins(name: str) -> dict[str, str]:
    """A requirements file as {requirement: its hashes}, as pip reads it."""
    text = (REPO / "requirements" / name).read_text(encoding="utf-8").replace("\\\n", " ")
    entries = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    split = [re.split(r"\s+(?=--hash)", entry, maxsplit=1) for entry in entries]
    return {entry[0]: entry[1] if len(entry) == 2 else "" for entry in split}


@pytest.mark.parametrize("name", ["run.txt", "dev.txt"])
def test_requirements_are_exact_hashed_and_name_no_index(name: str) -> None:
    for requirement, hashes in pins(name).items():
        assert re.fullmatch(r"[a-z0-9._-]+==[\w.!+]+( ; .+)?", requirement), requirement
        assert re.fullmatch(r"--hash=sha256:[0-9a-f]{64}(\s+--hash=sha256:[0-9a-f]{64})*", hashes), requirement
    text = (REPO / "requirements" / name).read_text(encoding="utf-8")
    assert "://" not in text
    assert not re.search(r"^\s*(-i|-f|--index|--extra-index|--find|--trusted)", text, re.MULTILINE)


def test_the_two_sets_can_share_an_environment() -> None:
    run, dev = pins("run.txt"), pins("dev.txt")
    assert run.items() <= dev.items()
    assert len(run) > 50


def test_the_malicious_releases_are_out_of_reach() -> None:
    project = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (litellm,) = [need for need in project["dependencies"] if need.startswith("litellm")]
    minimum = tuple(int(part) for part in litellm.removeprefix("litellm>=").split("."))
    assert minimum > (1, 82, 8)
    (pinned,) = [requirement for requirement in pins("run.txt") if requirement.startswith("litellm==")]
    assert tuple(int(part) for part in pinned.removeprefix("litellm==").split(".")) >= minimum


# Startup files of the environment


@pytest.fixture(scope="module")
def startup_files() -> ModuleType:
    spec = importlib.util.spec_from_file_location("startup_files", REPO / "requirements" / "startup_files.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("file", "content", "fault"),
    [
        ("litellm_init.pth", "import os\n", "litellm_init.pth: unexpected startup file"),
        ("extra.pth", "", "extra.pth: unexpected startup file"),
        ("distutils-precedence.pth", "import evil\n", "distutils-precedence.pth: unexpected line: 'import evil'"),
        (
            "__editable__.evalkit-0.1.0.pth",
            "import evil; __editable___evalkit_0_1_0_finder.install()",
            "__editable__.evalkit-0.1.0.pth: unexpected line: "
            "'import evil; __editable___evalkit_0_1_0_finder.install()'",
        ),
        (
            "__editable__.evalkit-0.1.0.pth",
            "/elsewhere\n",
            "__editable__.evalkit-0.1.0.pth: unexpected line: '/elsewhere'",
        ),
        ("__editable__.other-0.1.0.pth", "/checkout\n", "__editable__.other-0.1.0.pth: unexpected startup file"),
        ("sitecustomize.py", "", "sitecustomize.py: runs at every start of Python"),
        ("usercustomize", None, "usercustomize: runs at every start of Python"),
    ],
)
def test_a_file_that_runs_at_every_start_is_found(
    startup_files: ModuleType, tmp_path: Path, file: str, content: str | None, fault: str
) -> None:
    if content is None:
        (tmp_path / file).mkdir()
    else:
        (tmp_path / file).write_text(content, encoding="utf-8")
    assert startup_files.unexpected(tmp_path, Path("/checkout")) == [fault]


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("__editable__.evalkit-0.1.0.pth", "/checkout"),
        (
            "__editable__.evalkit-0.1.0.pth",
            "import __editable___evalkit_0_1_0_finder; __editable___evalkit_0_1_0_finder.install()",
        ),
        ("numpy.py", "import os"),
    ],
)
def test_our_own_install_may_stay(startup_files: ModuleType, tmp_path: Path, file: str, content: str) -> None:
    (tmp_path / file).write_text(content, encoding="utf-8")
    assert startup_files.unexpected(tmp_path, Path("/checkout")) == []


# Make


def make(folder: Path, *arguments: str, path: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("make")
    if program is None:
        pytest.skip("needs make")
    shutil.copy(REPO / "Makefile", folder)
    return subprocess.run(
        [program, "--no-print-directory", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": path, "MAKEFLAGS": ""},
    )


def stand_in(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    (folder / name).chmod(0o755)


def test_make_takes_the_first_python_that_fits(tmp_path: Path) -> None:
    folder = tmp_path / "with space"
    folder.mkdir()
    tools = tmp_path / "tools"
    stand_in(tools, "python3.14", "exit 127")  # a shim of a version that is not there
    stand_in(tools, "python3.13", f'exec "{sys.executable}" "$@"')
    stand_in(tools, "python3", "exit 1")
    result = make(folder, ".venv/.made", path=f"{tools}:/usr/bin:/bin")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("Making .venv with ")
    assert (folder / ".venv" / "bin" / "python").exists()
    again = make(folder, ".venv/.made", path=f"{tools}:/usr/bin:/bin")
    assert "up to date" in again.stdout


def test_make_says_what_is_missing(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    for name in ("python3.14", "python3.13", "python3.12", "python3.11", "python3", "python"):
        stand_in(tools, name, "exit 1")
    result = make(tmp_path, ".venv/.made", path=f"{tools}:/usr/bin:/bin")
    assert result.returncode == 2
    assert "evalkit needs a Python from 3.11 to 3.14" in result.stderr
    assert "Fix: " in result.stderr
    assert not (tmp_path / ".venv" / ".made").exists()
    named = make(tmp_path, ".venv/.made", f"PYTHON={tools}/python3", path=os.environ["PATH"])
    assert named.returncode == 2


@pytest.mark.parametrize(("code", "expected"), [(0, 0), (1, 0), (3, 0), (2, 2), (4, 2), (70, 2), (130, 2)])
def test_make_run_passes_a_verdict_and_fails_a_failure(tmp_path: Path, code: int, expected: int) -> None:
    venv = tmp_path / ".venv"
    stand_in(venv if venv.mkdir() else venv / "bin", "python", f"echo verdict; exit {code}")
    (tmp_path / "requirements").mkdir()
    for name in ("requirements/run.txt", "pyproject.toml", ".venv/.made", ".venv/.run"):
        (tmp_path / name).write_text("", encoding="utf-8")
    result = make(tmp_path, "run", path=os.environ["PATH"])
    assert (result.returncode, result.stdout.splitlines()[0]) == (expected, "verdict")


def test_ci_hides_no_failure() -> None:
    script = (REPO / ".ci" / "run").read_text(encoding="utf-8")
    assert "set -euo pipefail" in script
    assert "|| true" not in script
    assert os.access(REPO / ".ci" / "run", os.X_OK)


# Docs


def test_links_between_pages_lead_somewhere() -> None:
    broken = []
    for path, text in texts(".md").items():
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
            if "://" not in target and not (REPO / path).parent.joinpath(target).exists():
                broken.append(f"{path}: {target}")
    assert broken == []
