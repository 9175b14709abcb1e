"""Messages on a terminal: broken at blanks, never in a word; for a pipe as they are."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import subprocess
import sys
import termios
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.errors import _broken, fitted


def columns(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(ch) in "WF" else not unicodedata.combining(ch) for ch in text)


def test_what_is_piped_stays_as_it_is() -> None:
    text = "word " * 100
    assert fitted(text, io.StringIO()) == text


@given(st.lists(st.text("ab가", min_size=1, max_size=12), min_size=1, max_size=40), st.integers(20, 90))
def test_no_line_is_wider_and_no_word_is_cut(words: list[str], width: int) -> None:
    lines = _broken(" ".join(words), width)
    assert " ".join(lines).split() == words
    assert all(columns(line) <= width or len(line.split()) == 1 for line in lines)
    assert all(line.startswith("  ") for line in lines[1:])


def test_a_line_that_fits_keeps_its_blanks() -> None:
    assert _broken("a    b      c", 20) == ["a    b      c"]


@pytest.mark.parametrize("wide", [40, 80])
def test_a_fault_on_a_terminal_keeps_within_it(wide: int) -> None:
    """The program itself, with a terminal of so many columns on stderr."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, wide, 0, 0))
    command = [sys.executable, "-m", "evalkit", "labels", "check", "labels.jsonl"]
    done = subprocess.run(command, stderr=theirs, stdout=subprocess.DEVNULL, check=False)
    os.close(theirs)
    shown = b""
    while True:
        try:
            more = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not more:
            break
        shown += more
    os.close(ours)
    lines = shown.decode().replace("\r\n", "\n").rstrip("\n").split("\n")
    assert done.returncode == 2
    assert len(lines) > 1
    assert all(len(line) < wide for line in lines)
    said = " ".join(line.strip() for line in lines)
    assert "nothing says the tiers and risk classes. Fix: give --study" in said
