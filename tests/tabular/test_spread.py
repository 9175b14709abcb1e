"""Work over several processes: the same results in the same order, and nothing lost when a process dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evalkit.tabular.spread import processors, spread


def squared(number: int) -> tuple[int, int]:
    return number * number, os.getpid()


def fails_at_seven(number: int) -> int:
    if number == 7:
        raise ValueError("seven")
    return number


def dies_once(part: tuple[str, int]) -> int:
    """Kills its own process at part 5, unless that happened before."""
    mark, number = part
    if number == 5 and not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.mark.parametrize("count", [1, 2, 3])
def test_results_come_in_order_whatever_the_number_of_processes(
    monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setenv("EVALKIT_PROCESSES", str(count))
    found = list(spread(squared, range(30), least=4))
    assert [value for value, _ in found] == [n * n for n in range(30)]
    elsewhere = {pid for _, pid in found} - {os.getpid()}
    assert len(elsewhere) == 0 if count == 1 else 0 < len(elsewhere) <= count


def test_few_parts_are_worked_on_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALKIT_PROCESSES", "2")
    assert {pid for _, pid in spread(squared, range(4), least=4)} == {os.getpid()}


def test_what_a_part_raises_is_raised_and_what_came_before_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALKIT_PROCESSES", "2")
    results = spread(fails_at_seven, range(30), least=4)
    assert [next(results) for _ in range(7)] == list(range(7))
    with pytest.raises(ValueError, match="seven"):
        next(results)


def test_a_process_that_is_killed_loses_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EVALKIT_PROCESSES", "2")
    parts = [(str(tmp_path / "died"), n) for n in range(40)]
    assert list(spread(dies_once, parts, least=4)) == list(range(40))
    assert (tmp_path / "died").exists()


def test_parts_are_taken_as_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALKIT_PROCESSES", "2")
    taken: list[int] = []

    def parts() -> Iterator[int]:
        for n in range(1000):
            taken.append(n)
            yield n

    results = spread(squared, parts(), least=4)
    next(results)
    assert len(taken) < 20
    results.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize(("written", "count"), [("3", 3), ("99", 8)])
def test_the_number_of_processes_can_be_set(monkeypatch: pytest.MonkeyPatch, written: str, count: int) -> None:
    monkeypatch.setenv("EVALKIT_PROCESSES", written)
    assert processors() == count


@pytest.mark.parametrize("written", ["", "0", "-1", "many", "²"])
def test_what_is_no_number_of_processes_sets_nothing(monkeypatch: pytest.MonkeyPatch, written: str) -> None:
    monkeypatch.setenv("EVALKIT_PROCESSES", written)
    assert 1 <= processors() <= 8


_FEW_FILES = """
import resource, sys
from tests.tabular.test_spread import squared
from evalkit.tabular.spread import spread

if __name__ == "__main__":
    room = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (room, room))
    assert [value for value, _ in spread(squared, range(30), least=4)] == [n * n for n in range(30)]
    print("all there")
"""


@pytest.mark.parametrize("room", [4, 7, 9, 12, 14, 16, 18, 20, 24])
def test_where_no_process_can_be_started_the_work_is_done_here(tmp_path: Path, room: int) -> None:
    """With too few files to open, a pool fails while its queues are made, or at its first process, or later."""
    script = tmp_path / "few.py"
    script.write_text(_FEW_FILES)
    root = Path(__file__).parents[2]
    told = subprocess.run(
        [sys.executable, script, str(room)],
        cwd=root,
        env=os.environ | {"EVALKIT_PROCESSES": "3", "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (told.returncode, told.stdout) == (0, "all there\n"), told.stderr
