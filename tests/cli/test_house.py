"""What every command has in common: it starts quickly, and whatever happens becomes the right exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import typer

from evalkit import __version__
from evalkit.cli import app as house
from evalkit.cli.lazy import LazyCommand
from evalkit.errors import EvalkitError, Fault, Incomplete, InputError, Undecided

SECRET = "sk-FAKE-demo-0000-not-a-key"
HEAVY = (
    # pydantic is not among them: Typer itself reads options with it
    "datasets", "genai_prices", "jsonschema", "litellm", "numpy", "pandas", "pyarrow", "rich", "ruamel", "scipy",
    "sklearn", "statsmodels", "jinja2",
)  # fmt: skip

# Everything that a command can do. `fail_house` offers them all to `main`.


def done() -> None:
    typer.echo("done")


def rejected() -> None:
    raise typer.Exit(1)


def insufficient() -> int:
    return 3


def two_faults() -> None:
    raise InputError(
        [
            Fault("score is 'nan'", "give a number", file="a.csv", line=3, row=2, id="q2", field="score"),
            Fault(f"key {SECRET} is refused", "use a variable", file="a.csv", line=4),
        ]
    )


def incomplete() -> None:
    raise Incomplete("stopped at 3 of 5 calls\x1b[2J")


def bug() -> None:
    raise KeyError(f"Authorization: Bearer {SECRET}\x1b]0;owned\x07\nsecond line")


def library_exits() -> None:
    sys.exit(0)


def odd_result() -> str:
    return "approve"


def yes() -> bool:
    return True


def interrupted() -> None:
    raise KeyboardInterrupt


def aborted() -> None:
    raise typer.Abort


def cannot_write(to: Path) -> None:
    to.write_text("x", encoding="utf-8")


def echo_back(words: list[str], last: str = "") -> None:
    typer.echo("|".join([*words, last]))


FAILURES = (
    done, rejected, insufficient, two_faults, incomplete, bug, library_exits, odd_result, yes,
    interrupted, aborted, cannot_write, echo_back,
)  # fmt: skip


@pytest.fixture
def fail_house(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = tuple(LazyCommand(function.__name__, __name__, function.__name__, "-") for function in FAILURES)
    monkeypatch.setattr(house.Commands, "lazy_commands", commands)


def evalkit(
    arguments: Sequence[str], *, after: str = "", stdout: int = subprocess.PIPE
) -> subprocess.CompletedProcess[bytes]:
    """Run the command line in a process of its own; `after` is Python that runs behind it."""
    script = f"import sys; from evalkit.cli.app import main; code = main(sys.argv[1:])\n{after}\nsys.exit(code)"
    return subprocess.run(
        [sys.executable, "-c", script, *arguments], stdout=stdout, stderr=subprocess.PIPE, check=False, timeout=120
    )


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], *([command.name, "--help"] for command in house.COMMANDS)]
)
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    show = f"print(sorted(set(sys.modules) & set({HEAVY!r})), file=sys.stderr)"
    result = evalkit(arguments, after=show)
    assert (result.returncode, result.stderr.decode().strip()) == (0, "[]")
    assert result.stdout


def test_the_list_of_commands_imports_no_command_and_a_command_no_other() -> None:
    show = "print(*sorted(m for m in sys.modules if m.startswith('evalkit.cli.')), file=sys.stderr)"
    listed = evalkit(["--help"], after=show).stderr.decode().split()
    assert listed == ["evalkit.cli.app", "evalkit.cli.lazy", "evalkit.cli.streams"]
    called = evalkit(["labels", "--help"], after=show).stderr.decode().split()
    assert set(called) - set(listed) == {"evalkit.cli.labels"}


def test_every_command_is_there_and_says_what_it_is_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert house.main(["--help"]) == 0
    listed = capsys.readouterr().out
    for command in house.COMMANDS:
        assert f"\n  {command.name} " in listed
        assert house.main([command.name, "--help"]) == 0
        assert capsys.readouterr().out.startswith(f"Usage: evalkit {command.name}")
    assert "--install-completion" not in listed


def test_python_m_evalkit_is_the_command(repo: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "evalkit", "--version"], capture_output=True, text=True, check=False, cwd=repo
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, f"evalkit {__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Commands:"),
        (["labels"], "Commands:"),
        (["--nonsense"], "No such option: --nonsense. Fix: see evalkit --help."),
        (["route-sweeps"], "No such command 'route-sweeps'. Did you mean 'route-sweep'? Fix: see evalkit --help."),
        (["route-sweep", "--qqq"], "No such option: --qqq. Fix: see evalkit route-sweep --help."),
        (["route-sweep", "--seed", "x"], "Fix: see evalkit route-sweep --help."),
        (["route-sweep", "a.yaml", "b.yaml"], "Fix: see evalkit route-sweep --help."),
        (["labels", "derive"], "Fix: see evalkit labels derive --help."),
    ],
)
def test_wrong_usage_is_exit_code_2(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert house.main(arguments) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert said in output.err
    assert "Traceback" not in output.err


def test_what_somebody_typed_cannot_move_the_cursor_nor_leak_a_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert house.main([f"--x\x1b[2J={SECRET}"]) == 2
    assert house.main([f"a\x1b[2J\u202eb {SECRET}"]) == 2
    err = capsys.readouterr().err
    assert not {"\x1b", "\u202e"} & set(err)
    assert SECRET not in err


@pytest.mark.usefixtures("fail_house")
@pytest.mark.parametrize(
    ("command", "code", "out", "err"),
    [
        ("done", 0, "done\n", ""),
        ("rejected", 1, "", ""),
        ("insufficient", 3, "", ""),
        (
            "two_faults",
            2,
            "",
            "a.csv:3: row 2 (id q2), field score: score is 'nan'. Fix: give a number.\n"
            "a.csv:4: key [hidden] is refused. Fix: use a variable.\n",
        ),
        ("incomplete", 4, "", "stopped at 3 of 5 calls\\u001b[2J\n"),
        ("interrupted", 130, "", "interrupted\n"),
        ("aborted", 130, "", "interrupted\n"),
    ],
)
def test_what_a_command_does_becomes_an_exit_code(
    command: str, code: int, out: str, err: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert house.main([command]) == code
    assert capsys.readouterr() == (out, err)


@pytest.mark.usefixtures("fail_house")
@pytest.mark.parametrize("command", ["bug", "library_exits", "odd_result", "yes"])
def test_a_fault_of_evalkit_is_no_verdict(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert house.main([command]) == 70
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("internal error: ")
    assert output.err.endswith(" Fix: run it again with --debug and report what it shows.\n")
    assert output.err.count("\n") == 1
    assert not {"\x1b", "\x07"} & set(output.err)
    assert SECRET not in output.err


@pytest.mark.usefixtures("fail_house")
@pytest.mark.parametrize("arguments", [["--debug", "bug"], ["bug", "--debug"]])
def test_debug_shows_the_traceback_without_the_key(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert house.main(arguments) == 70
    err = capsys.readouterr().err
    assert "Traceback (most recent call last)" in err
    assert "in bug" in err
    assert SECRET not in err
    assert not {"\x1b", "\x07"} & set(err)


@pytest.mark.usefixtures("fail_house")
def test_debug_behind_a_double_dash_is_an_argument(capsys: pytest.CaptureFixture[str]) -> None:
    assert house.main(["echo_back", "--debug", "--last", "z", "a", "--", "--debug"]) == 0
    assert capsys.readouterr().out == "a|--debug|z\n"


@pytest.mark.usefixtures("fail_house")
def test_a_file_the_system_refuses_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "no" / "file"
    assert house.main(["cannot_write", str(missing)]) == 2
    assert capsys.readouterr().err == (
        f"{missing}: No such file or directory. Fix: check the path, its permissions and the free space.\n"
    )


def test_no_error_of_ours_reads_as_a_verdict() -> None:
    def all_below(kind: type[EvalkitError]) -> list[type[EvalkitError]]:
        return [kind, *(below for sub in kind.__subclasses__() for below in all_below(sub))]

    for kind in all_below(EvalkitError):
        # Undecided is the one verdict that may be given without judging: insufficient evidence.
        assert kind.exit_code in ({3} if kind is Undecided else {2, 4}), kind


def test_a_reader_that_went_away_ends_it_quietly() -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        result = evalkit(["--help"], stdout=write)
    finally:
        os.close(write)
    assert (result.returncode, result.stderr) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, which this system lacks")
def test_a_full_disk_under_stdout_is_said() -> None:
    with Path("/dev/full").open("wb") as full:
        result = evalkit(["--version"], stdout=full.fileno())
    assert result.returncode == 2
    assert result.stderr.decode() == (
        "No space left on device. Fix: check the path, its permissions and the free space.\n"
    )


def test_without_stdout_it_still_ends() -> None:
    result = subprocess.run(
        ["/bin/sh", "-c", 'exec "$0" -m evalkit --version >&-', sys.executable],
        capture_output=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert result.returncode == 0
    assert b"Traceback" not in result.stderr


TEXT = "café 한국어 \u2009😀 \ud800"


@pytest.mark.parametrize(
    ("environment", "encoding", "shown"),
    [
        ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, "utf-8", "café 한국어 \u2009😀 \\ud800"),
        ({"LC_ALL": "C", "PYTHONUTF8": "1"}, "utf-8", "café 한국어 \u2009😀 \\ud800"),
        ({"PYTHONIOENCODING": "cp949", "PYTHONUTF8": "0"}, "cp949", "caf\\xe9 한국어 \\u2009\\U0001f600 \\ud800"),
        (
            {"PYTHONIOENCODING": "ascii:strict"},
            "ascii",
            "caf\\xe9 \\ud55c\\uad6d\\uc5b4 \\u2009\\U0001f600 \\ud800",
        ),
    ],
)
def test_text_arrives_whatever_the_locale(environment: dict[str, str], encoding: str, shown: str) -> None:
    script = "import sys; from evalkit.cli import streams; streams.prepare(); text = eval(sys.argv[1])\n"
    script += "print(text); print(text, file=sys.stderr)"
    run = subprocess.run(
        [sys.executable, "-c", script, ascii(TEXT)],
        capture_output=True,
        check=False,
        env={**os.environ, **environment},
    )
    assert (run.returncode, run.stdout.decode(encoding).strip()) == (0, shown)
    assert run.stderr.decode(encoding).strip() == shown


@pytest.mark.parametrize("group", ["labels", "router", "import"])
def test_a_group_says_of_each_command_a_whole_sentence(
    group: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert house.main([group, "--help"]) == 0
    listed = capsys.readouterr().out.partition("Commands:")[2]
    assert "..." not in listed
    assert max(map(len, listed.splitlines())) <= 80
    assert listed.rstrip().endswith(".")
