"""The log of decisions: every prefix of its bytes says what its whole lines say, and nothing else is believed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from labelling_files import RISKS, TIERS, header

from evalkit.errors import InputError
from evalkit.labelling.decisions import Decision, Event, Undo, as_line
from evalkit.labelling.log_file import DecisionFile, parse_decisions, read_decisions

NAMES = ("a", "b", "한글", 'x"\\', "\u202e\x9b[31m")


def decided(n: int, name: str = "a", tier: str = "mid", note: str = "", risk: str = "low") -> Decision:
    """A decision on three replies of which those from `tier` on are good enough."""
    shown = (("top",), ("cheap",), ("mid",))
    able = TIERS[TIERS.index(tier) :] if tier in TIERS else ()
    good = tuple(i for i, group in enumerate(shown) if group[0] in able)
    return Decision(n, name, "0" * 16, tier, risk, note, "2026-01-01T00:00:00Z", "1" * 16, shown, good)


steps = st.lists(
    st.one_of(
        st.just("undo"),
        st.tuples(st.sampled_from(NAMES), st.sampled_from([*TIERS, "unsolvable"]), st.text(max_size=20)),
    ),
    max_size=12,
)


def played(moves: list[Any]) -> tuple[list[Event], list[list[tuple[str, str]]]]:
    """Events, and after each of them what stands: a plain stack, by other code than that under test."""
    events: list[Event] = []
    stack: list[tuple[int, str, str]] = []
    after: list[list[tuple[str, str]]] = [[]]
    for move in moves:
        n = len(events) + 1
        if move == "undo":
            if not stack:
                continue
            events.append(Undo(n, stack.pop()[0], "2026-01-01T00:00:01Z"))
        else:
            name, tier, note = move
            events.append(decided(n, name, tier, note.encode("utf-8", "ignore").decode()))
            stack.append((n, name, tier))
        after.append([(name, tier) for _, name, tier in stack])
    return events, after


@given(moves=steps, cut=st.integers(0, 100_000))
def test_any_prefix_resumes_to_what_its_whole_lines_say(moves: list[Any], cut: int) -> None:
    events, after = played(moves)
    lines = [as_line(header()), *(as_line(event) for event in events)]
    data = b"".join(lines)
    kept = data[: cut % (len(data) + 1)]
    # A line counts from its closing brace on; its line end adds nothing.
    ends = [sum(map(len, lines[: k + 1])) - 1 for k in range(len(lines))]
    whole = sum(len(kept) >= end for end in ends)
    read = parse_decisions(kept, "log")
    if whole == 0:
        assert read.header is None
        assert (read.whole, read.torn) == (0, len(kept))
        return
    assert read.header == header()
    assert read.work.n == whole - 1
    assert [(d.id, d.required_tier) for d in read.work.standing] == after[whole - 1]
    last = dict(after[whole - 1])
    assert {name: d.required_tier for name in NAMES if (d := read.work.of(name))} == last
    assert read.torn == (len(kept) - sum(map(len, lines[:whole])) if len(kept) > ends[whole - 1] else 0)


@given(moves=steps)
def test_a_line_holds_no_character_that_a_terminal_obeys(moves: list[Any]) -> None:
    for event in played(moves)[0]:
        line = as_line(event)
        assert line.endswith(b"\n")
        text = line[:-1].decode("utf-8")
        assert not any(ord(ch) < 32 or 127 <= ord(ch) < 160 or ch in "\u202e\u2028\u200b" for ch in text)
        assert json.loads(text) == event.as_json()


def test_a_torn_last_line_is_cut_off_and_the_work_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with DecisionFile.open(path, header()) as file:
        file.append(decided(1))
    before = path.read_bytes()
    path.write_bytes(before + as_line(decided(2, "b"))[:-9])
    with DecisionFile.open(path, header()) as file:
        assert file.torn == len(as_line(decided(2, "b"))) - 9
        assert file.work.n == 1
        file.append(decided(2, "c"))
    assert path.read_bytes() == before + as_line(decided(2, "c"))


def test_a_last_line_that_only_lacks_its_end_counts(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes((as_line(header()) + as_line(decided(1)))[:-1])
    with DecisionFile.open(path, header()) as file:
        assert (file.torn, file.work.n) == (0, 1)
        file.append(Undo(2, 1, "2026-01-01T00:00:00Z"))
    assert read_decisions(path).work.n == 2


def test_a_file_that_died_in_its_first_line_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(as_line(header("somebody"))[:20])
    with DecisionFile.open(path, header()) as file:
        file.append(decided(1))
    assert path.read_bytes() == as_line(header()) + as_line(decided(1))


def test_reading_a_file_leaves_it_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    data = as_line(header()) + as_line(decided(1)) + b'{"n": 2, "do'
    path.write_bytes(data)
    assert read_decisions(path).work.n == 1
    assert path.read_bytes() == data


def test_two_processes_never_write_one_file(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    code = (
        "import sys; from pathlib import Path; from evalkit.labelling.decisions import Header\n"
        "from evalkit.labelling.log_file import DecisionFile\n"
        f"DecisionFile.open(Path(sys.argv[1]), Header('ann', 0, {TIERS!r}, {RISKS!r}, 'replies'))"
    )
    with DecisionFile.open(path, header()):
        other = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
        assert "another process writes it" in other.stderr
        assert other.returncode != 0
    freed = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    assert (freed.returncode, freed.stderr) == (0, "")


def test_a_full_disk_loses_nothing_and_leaves_no_half_line(tmp_path: Path) -> None:
    # A limit on the size of files is what a full disk is to a write; it can be set for one process.
    code = """
import resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from labelling_files import header
from test_decision_log import decided
from evalkit.errors import InputError
from evalkit.labelling.log_file import DecisionFile
path = Path(sys.argv[1])
with DecisionFile.open(path, header()) as file:
    file.append(decided(1))
    before = path.read_bytes()
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 30, hard))
    try:
        file.append(decided(2, "b"))
    except InputError as error:
        print(error.faults[0].what)
    assert path.read_bytes() == before, "half a line stayed"
    assert file.work.n == 1, "counted without being saved"
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    file.append(decided(2, "b"))
"""
    path = tmp_path / "log.jsonl"
    run = subprocess.run(
        [sys.executable, "-c", code, str(path), str(Path(__file__).parent)], capture_output=True, text=True
    )
    assert run.stderr == ""
    assert "cannot be written" in run.stdout
    assert read_decisions(path).work.n == 2


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"not json\n", "is not valid JSON"),
        (b"[]\n", "is no object"),
        (b'{"n": 1, "n": 2}\n', "stands more than once"),
        (as_line(decided(2)), "its number is 2, after 0"),
        (as_line(Undo(1, 1, "x")), "it takes back decision 1, and none stands"),
        (as_line(decided(1)).replace(b'"mid", "risk"', b'"cheap", "risk"'), "the marks say mid"),
        (as_line(decided(1)).replace(b'"risk": "low"', b'"risk": "none"'), "is not a risk class (low, high)"),
        (as_line(decided(1)).replace(b'["top"]', b'["mid"]'), "does not fit the replies"),
        (as_line(decided(1)).replace(b'"good": ["A", "C"]', b'"good": ["A", "Z"]'), "does not fit the replies"),
        (as_line(decided(1)).replace(b'"decide"', b'"delete"'), "neither decide nor undo"),
        (as_line(decided(1)).replace(b'"note": ""', b'"note": 3'), "not text"),
        (b"\xff\n", "is not UTF-8"),
    ],
)
def test_a_line_that_was_changed_by_hand_is_named(line: bytes, says: str) -> None:
    with pytest.raises(InputError) as error:
        parse_decisions(as_line(header()) + line + as_line(decided(2)), "log.jsonl")
    assert says in str(error.value)
    assert str(error.value).startswith("log.jsonl:2: ")


@pytest.mark.parametrize(
    ("other", "field"),
    [(header("bo"), "annotator"), (header(by="tier"), "by"), (header(seed=1), "seed"),
     (header(adjudicates=("a", "b")), "adjudicates")],
)  # fmt: skip
def test_a_file_that_was_begun_for_other_work_is_not_gone_on_with(tmp_path: Path, other: Any, field: str) -> None:
    path = tmp_path / "log.jsonl"
    with DecisionFile.open(path, header()) as file:
        file.append(decided(1))
    before = path.read_bytes()
    with pytest.raises(InputError, match=f"field {field}: was begun with"):
        DecisionFile.open(path, other)
    assert path.read_bytes() == before
    DecisionFile.open(path, header()).close()  # and the lock was let go


def test_the_seed_is_that_of_the_file_unless_it_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    DecisionFile.open(path, header(seed=9)).close()
    with DecisionFile.open(path, header(seed=0), seed_given=False) as file:
        assert file.header.seed == 9


def test_another_file_is_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text('{"id": "a", "prompt": "x"}\n', encoding="utf-8")
    with pytest.raises(InputError, match="name a file of decisions"):
        DecisionFile.open(path, header())
    assert path.read_text(encoding="utf-8") == '{"id": "a", "prompt": "x"}\n'


@pytest.mark.parametrize(
    "data", [b"my notes, without a line end", b"PAR1\0\1\xff", b'{"schema": "evalkit.labels"', b"\n\0", b"a\nb"]
)
def test_another_file_without_a_line_end_is_no_torn_line_of_ours(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(data)
    with pytest.raises(InputError):
        DecisionFile.open(path, header())
    assert path.read_bytes() == data
    path.write_bytes(as_line(header()) + data)
    with pytest.raises(InputError):
        DecisionFile.open(path, header())
    assert path.read_bytes() == as_line(header()) + data


def test_zeros_that_a_crash_of_the_system_left_are_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    whole = as_line(header()) + as_line(decided(1))
    path.write_bytes(whole + as_line(decided(2, "b"))[:40] + b"\0" * 100)
    with DecisionFile.open(path, header()) as file:
        assert (file.work.n, file.torn) == (1, 140)
    assert path.read_bytes() == whole


def test_no_decision_counts_that_went_into_a_file_nobody_will_find(tmp_path: Path) -> None:
    path, other = tmp_path / "log.jsonl", tmp_path / "other"
    with DecisionFile.open(path, header()) as file:
        file.append(decided(1))
        whole = path.read_bytes()
        path.rename(other)
        with pytest.raises(InputError, match="was moved, removed or replaced while"):
            file.append(decided(2, "b"))
        path.write_bytes(whole)  # as an editor does that writes a new file
        with pytest.raises(InputError, match="was moved, removed or replaced while"):
            file.append(decided(2, "b"))
        assert path.read_bytes() == other.read_bytes() == whole
        other.replace(path)
        for changed in (whole[:-9], whole + b"x"):
            os.truncate(path, 0)
            with path.open("ab") as by_hand:
                by_hand.write(changed)
            with pytest.raises(InputError, match="was changed by something else"):
                file.append(decided(2, "b"))
            assert path.read_bytes() == changed
        assert file.work.n == 1, "counted without being saved"
        os.truncate(path, 0)
        with path.open("ab") as by_hand:
            by_hand.write(whole)
        file.append(decided(2, "b"))
    assert read_decisions(path).work.n == 2


def test_half_a_line_that_could_not_be_taken_back_is_before_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.jsonl"
    write = os.write

    def full(handle: int, data: Any) -> int:
        write(handle, bytes(data)[:5])
        raise OSError(28, "No space left on device")

    with DecisionFile.open(path, header()) as file:
        file.append(decided(1))
        with monkeypatch.context() as broken:
            broken.setattr(os, "write", full)
            broken.setattr(file, "_file", _NoTruncate(file._file))
            with pytest.raises(InputError, match="No space left"):
                file.append(decided(2, "b"))
        assert path.read_bytes().endswith(b'{"n":')
        file.append(decided(2, "b"))
    assert path.read_bytes() == as_line(header()) + as_line(decided(1)) + as_line(decided(2, "b"))


class _NoTruncate:
    """A file whose length the disk will not change."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def fileno(self) -> int:
        return int(self._file.fileno())

    def truncate(self, length: int) -> int:
        raise OSError(5, "Input/output error")


def test_a_device_keeps_no_decision() -> None:
    with pytest.raises(InputError, match="is no file"):
        DecisionFile.open(Path(os.devnull), header())
