"""What the label commands print: lines that fit a terminal, columns that stand, commands to paste."""

from __future__ import annotations

import os
import sys
import termios
from pathlib import Path
from typing import Any

import pytest

from evalkit.cli.app import main
from evalkit.errors import InputError, width_of
from evalkit.workflows.labels import names_in, say_at_work, show


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    capsys.readouterr()
    code = main(["labels", *map(str, arguments)])
    return code, capsys.readouterr().out


def test_long_lines_are_broken_at_blanks_on_a_terminal_and_commands_are_not(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    sentence = "needs: items on which most of the others say more than the cheapest tier; missed: labelled below"
    command = f"labels: evalkit label study.yaml --decisions {'a' * 60}.jsonl --export labels.jsonl"
    show([sentence, command], [])
    assert capsys.readouterr().out == f"{sentence}\n{command}\n"
    screen, ours = os.openpty()
    try:
        termios.tcsetwinsize(ours, (24, 80))
        with os.fdopen(os.dup(ours), "w", encoding="utf-8") as terminal:
            monkeypatch.setattr(sys, "stdout", terminal)
            show([sentence, command], [])
            terminal.flush()
        shown = b""
        while f"{command}\r\n".encode() not in shown:  # what was written arrives in pieces
            shown += os.read(screen, 4000)
        lines = shown.decode("utf-8").replace("\r\n", "\n").splitlines()
    finally:
        os.close(screen)
        os.close(ours)
    assert max(map(len, lines[:-1])) <= 80
    assert " ".join(line.strip() for line in lines[:-1]) == sentence
    assert lines[-1] == command


def test_work_on_a_large_file_is_said_at_a_terminal_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    large, small = tmp_path / "large.jsonl", tmp_path / "small.jsonl"
    large.write_bytes(b" " * 12_000_000)
    small.write_bytes(b" ")
    say_at_work("reading", [large], quiet=False)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    say_at_work("reading", [small], quiet=False)
    say_at_work("reading", [large], quiet=True)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr("evalkit.workflows.labels.fitted", lambda text, stream: text)
    say_at_work("reading", [large], quiet=False)
    assert capsys.readouterr().err == "reading large.jsonl (12 MB)\n"


def test_one_name_where_several_are_needed_is_told_so() -> None:
    with pytest.raises(InputError, match=r'"cheap" is not a list of names of 2 or more. Fix: write --tiers a,b,c'):
        names_in("--tiers", "cheap", least=2)
    with pytest.raises(InputError, match=r'"a,,b" is not a list of names. Fix'):
        names_in("--risk-classes", "a,,b")


def test_tables_of_korean_names_stand_in_columns(tmp_path: Path, capsys: Any) -> None:
    risk = "매우 위험한 결제 문의"
    rows = "".join(f"{i},{risk if i % 2 else '일반'},{'대형' if i % 4 else '소형'}\n" for i in range(40))
    (tmp_path / "labels.csv").write_text(f"id,risk,required_tier\n{rows}", encoding="utf-8")
    (tmp_path / "study.yaml").write_text(
        "study: 상점\nkind: routing\nlabels: labels.csv\noutcomes: o.csv\ntiers: [{name: 소형}, {name: 대형}]\n"
        "router: {kind: rules, rules: r.yaml, cost_usd: 0}\nrisk:\n"
        "  일반: {under_route_loss: 0.05, max_under_route: 0.3}\n"
        f"  {risk}: {{under_route_loss: 2, max_under_route: 0.2}}\n",
        encoding="utf-8",
    )
    code, plan = run(capsys, "plan", tmp_path / "study.yaml")
    assert code == 0
    head, *table = plan.splitlines()[1:10]
    assert {width_of(line) for line in table if line.endswith("%")} == {width_of(head)}
    code, checked = run(capsys, "check", tmp_path / "labels.csv", "--study", tmp_path / "study.yaml")
    assert code == 0
    assert len({width_of(line) for line in checked.splitlines()[1:6]}) == 1
