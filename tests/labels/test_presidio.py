"""Names through Presidio: an analyzer of the same interface stands in for it, which needs a model of its own."""

from __future__ import annotations

import importlib.util
import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evalkit.cli.labels import app
from evalkit.errors import InputError
from evalkit.labels.log import read_log
from evalkit.labels.personal_data import cleaned
from evalkit.labels.presidio import PresidioNames, presidio_names


@dataclass
class Result:
    """As `presidio_analyzer.RecognizerResult`."""

    entity_type: str
    start: int
    end: int
    score: float


class Names:
    """Takes every Dana for a person, 07 for a date, and every Kim for a person whom it doubts."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[str]]] = []

    def analyze(self, text: str, language: str, entities: list[str]) -> list[Result]:
        self.asked.append((language, entities))
        found = [Result("PERSON", *match.span(), 0.85) for match in re.finditer(r"Dana(?: Reyes)?", text)]
        found += [Result("PERSON", *match.span(), 0.3) for match in re.finditer("Kim", text)]
        return found + [Result("DATE_TIME", *match.span(), 0.9) for match in re.finditer("07", text)]


def test_names_are_removed_beside_what_the_rules_find() -> None:
    analyzer, found = Names(), Counter[str]()
    text = "Dana Reyes and Kim wrote from dana@example.com on 07, Dana"
    assert cleaned(text, found, also=PresidioNames(analyzer, ("en",))) == (
        "[name] and Kim wrote from [email] on 07, [name]"
    )
    assert found == {"name": 2, "email": 1}
    assert analyzer.asked == [("en", ["PERSON"])]


def test_a_name_inside_an_address_is_part_of_it() -> None:
    found = Counter[str]()
    text = cleaned("write to Dana@example.com", found, also=PresidioNames(Names(), ("en", "ko")))
    assert (text, found) == ("write to [email]", {"email": 1})


def test_a_log_is_cleaned_of_names(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    rows = [{"messages": [{"role": "user", "content": "I am Dana"}]}, {"prompt": "who is it?"}]
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    log = read_log(file, also=PresidioNames(Names(), ("en",)))
    assert log.columns["messages"] == [[{"role": "user", "content": "I am [name]"}], None]
    assert (log.removed["name"], log.touched) == (1, 1)


@pytest.mark.skipif(importlib.util.find_spec("presidio_analyzer") is not None, reason="Presidio is installed")
def test_without_presidio_or_its_model_both_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        presidio_names({"en": "no_such_model", "ko": "../evil"})
    assert [fault.field for fault in caught.value.faults] == ["--presidio"] * 3
    assert "pip install presidio-analyzer" in str(caught.value)
    file = tmp_path / "log.jsonl"
    file.write_text('{"prompt": "x"}\n', encoding="utf-8")
    out = tmp_path / "out.jsonl"
    done = CliRunner().invoke(app, ["sample", str(file), "--out", str(out), "--presidio", "en=no_such_model"])
    assert isinstance(done.exception, InputError)
    assert not out.exists()
