"""The strict reader of rubrics: every fault with its line, in one run, and nothing guessed."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from evalkit.errors import InputError
from evalkit.grading import (
    Choice,
    Contract,
    Decider,
    Exact,
    Item,
    JsonMode,
    Number,
    PythonCheck,
    Regex,
    Rubric,
    read_rubric,
    rubric_faults,
)

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def _write(text: str) -> Path:
        path = tmp_path / "rubric.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return _write


def faults(path: Path) -> list[tuple[int | None, str | None, str]]:
    with pytest.raises(InputError) as error:
        read_rubric(path)
    return [(fault.line, fault.field, str(fault)) for fault in error.value.faults]


def test_every_bundled_rubric_reads(repo: Path) -> None:
    found = sorted((repo / "rubrics").glob("*.yaml"))
    assert len(found) >= 9
    names = {path.stem: read_rubric(path).name for path in found}
    assert {stem.replace("_", "-"): name for stem, name in names.items()} == {
        name: name for name in names.values()
    }
    listed = (repo / "rubrics" / "README.md").read_text(encoding="utf-8")
    assert [stem for stem in names if f"`{stem}.yaml`" not in listed] == []


def test_checks_of_every_form(write: Write) -> None:
    rubric = read_rubric(
        write(
            """
            rubric: mixed
            pass_at: 0.5
            check:
              by_category:
                sums: {kind: number, tolerance: 0.01, relative_tolerance: 0.1}
                words: {kind: choice, options: ["yes", "no"]}
                codes: {kind: regex, pattern: '[A-Z]{2}\\d+'}
                own: {from: item}
                default: {kind: exact}
            """
        )
    )
    assert rubric.pass_at == 0.5
    assert rubric.grader_for(Item("a", category="sums")) == Number(Decimal("0.01"), Decimal("0.1"))
    assert rubric.grader_for(Item("a", category="words")) == Choice(("yes", "no"))
    assert isinstance(rubric.grader_for(Item("a", category="codes")), Regex)
    assert rubric.grader_for(Item("a", category="own", metadata={"check": {"kind": "exact"}})) == Exact()
    assert rubric.grader_for(Item("a")) == rubric.grader_for(Item("a", category="other")) == Exact()


def test_a_category_called_nothing_is_no_way_around_the_default(write: Write) -> None:
    rubric = read_rubric(write("rubric: r\ncheck: {by_category: {sums: {kind: number}}}\n"))
    with pytest.raises(InputError, match="no check of the rubric is for the category"):
        rubric.grader_for(Item("a", category="words"))


@pytest.mark.parametrize(
    ("text", "decides"),
    [
        ("contract: {json: strict}", Decider.CONTRACT),
        ("human: {path: grades.csv}", Decider.HUMAN),
        ("judge: {model: m, prompt: '{{ answer }}', words: {A: pass, B: fail}}", Decider.JUDGE),
        (
            "judge: {model: m, prompt: '{{ answer }}', words: {A: pass, B: fail}}\nhuman: {path: grades.csv}",
            Decider.JUDGE,
        ),
    ],
)
def test_who_decides_without_a_check(write: Write, tmp_path: Path, text: str, decides: Decider) -> None:
    (tmp_path / "grades.csv").touch()
    assert read_rubric(write(f"rubric: r\n{text}\n")).default is decides


def test_contracts(write: Write, tmp_path: Path) -> None:
    inline = read_rubric(
        write(
            "rubric: r\ncontract:\n  json: fenced_ok\n  schema: {type: object, required: [a], minProperties: 1}\n"
        )
    )
    (tmp_path / "s.json").write_text('{"required": ["a"], "minProperties": 1, "type": "object"}', encoding="utf-8")
    named = read_rubric(write("rubric: r\ncontract: {json: fenced_ok, schema: s.json}\n"))
    assert inline.contract == named.contract == Contract(JsonMode.FENCED_OK, inline.contract.schema)  # type: ignore[union-attr]
    assert inline.fingerprint == named.fingerprint


def test_all_faults_at_once(write: Write) -> None:
    found = faults(
        write(
            """rubric: r
descripton: typo
pass_at: 1e-3
think_tags: ["<think>", "</think>"]
answer_pattern: "no group"
check:
  by_category:
    sums: {kind: number, tolerance: no}
    words: {kind: choise, options: [a, b]}
    codes: {kind: regex, pattern: "(?=x)"}
    lists: {kind: choice, options: [1, 2]}
    nothing: exact
contract: {json: lenient, schema: {type: objekt}}
judge:
  prompt: |
    Is this right?
    {{ anwser }} {{ answer.__class__ }}
  words: {CORRECT: pass, correct.: fail, WRONG: maybe}
  scale: {worst: 5, best: 1}
  max_error_share: 20
human: {path: none.csv}
"""
        )
    )
    places = [(line, field) for line, field, _ in found]
    for place in [
        (2, "descripton"),
        (3, "pass_at"),
        (4, "think_tags[0]"),
        (5, "answer_pattern"),
        (8, "check.by_category.sums.tolerance"),
        (9, "check.by_category.words.kind"),
        (10, "check.by_category.codes.pattern"),
        (11, "check.by_category.lists.options"),
        (12, "check.by_category.nothing"),
        (13, "contract.json"),
        (13, "contract.schema"),
        (15, "judge.model"),
        (17, "judge.prompt"),
        (18, 'judge.words."correct."'),
        (18, "judge.words.WRONG"),
        (19, "judge.scale.best"),
        (20, "judge.max_error_share"),
        (21, "human.path"),
    ]:
        assert place in places, place
    assert [line for line, _, _ in found] == sorted(line or 0 for line, _, _ in found)
    text = "\n".join(message for _, _, message in found)
    assert "rubric.yaml:8: field check.by_category.sums.tolerance: " in text
    assert 'Fix: write false, or "no" in quotes' in text
    assert "write 0.001" in text  # 1e-3
    assert text.count("tolerance") == 1  # the value was refused once, not twice
    assert "anwser" in text
    assert "__class__" in text


@pytest.mark.parametrize(
    ("text", "line", "field"),
    [
        ("rubric: r\n", None, "check"),
        ("rubric: r\ncheck: exact\n", 2, "check"),
        ("rubric: r\ncheck: {kind: judge}\n", 2, "check"),
        ("rubric: r\ncheck: {kind: human}\n", 2, "check"),
        ("rubric: r\ncheck: {kind: contract}\n", 2, "check"),
        ("rubric: r\ncheck: {from: label}\n", 2, "check.from"),
        ("rubric: r\ncheck: {from: item, kind: exact}\n", 2, "check.kind"),
        ("rubric: r\ncheck: {by_category: {}}\n", 2, "check.by_category"),
        ("rubric: r\ncheck: {by_category: {a: {kind: exact}}, kind: exact}\n", 2, "check.kind"),
        ("rubric: r\npass_at: 0\ncheck: {kind: exact}\n", 2, "pass_at"),
        ("rubric: r\npass_at: 90\ncheck: {kind: exact}\n", 2, "pass_at"),
        ("rubric: r\ncheck: {kind: python}\n", 2, "check.function"),
        ("rubric: r\ncheck: {kind: python, function: nowhere_at_all:f}\n", 2, "check.function"),
        ("rubric: r\ncheck: {kind: python, function: os}\n", 2, "check.function"),
        ("rubric: r\ncheck: {kind: number, tolerance: -1}\n", 2, "check.tolerance"),
        ("rubric: r\ncheck: {kind: exact, ignore_case: true}\n", 2, "check"),
        ("check: {kind: exact}\n", None, "rubric"),
        ("rubric: r\ncontract: {}\n", 2, "contract.json"),
        (
            "rubric: r\ncontract: {json: strict, schema: {$ref: 'https://example.org/s.json'}}\n",
            2,
            "contract.schema",
        ),
        ("rubric: r\njudge: {model: m, prompt: '{{ answer }}'}\n", 2, "judge.words"),
        ("rubric: r\njudge: {model: m, prompt: '{{ answer }}', words: {A: pass, B: pass}}\n", 2, "judge.words"),
        (
            "rubric: r\njudge:\n  {model: m, prompt: '{{ answer }}', words: {A: 1, B: 0}, on_disagreement: tie}\n",
            3,
            "judge.on_disagreement",
        ),
        (
            "rubric: r\njudge: {model: m, prompt: '{{ answer }}', words: {A: 1, B: 0.5}}\npass_at: 0.5\n",
            2,
            "judge.words",
        ),
        ("rubric: r\njudge: {model: m, prompt: '{{ answer }}', words: {A: 0.9, B: 0}}\n", 2, "judge.words"),
        (
            "rubric: r\njudge: {model: m, prompt: '{{ answer }}', words: {A: pass, B: fail}, json: strict}\n",
            2,
            "judge.json",
        ),
        (
            "rubric: r\njudge: {model: m, pairwise: true, prompt: '{{ answer }}', words: {A: first, B: second}}\n",
            2,
            "judge.prompt",
        ),
        (
            "rubric: r\njudge:\n  {model: m, pairwise: true, prompt: '{{first}}{{second}}', words: {A: first}}\n",
            3,
            "judge.words",
        ),
        ("- rubric\n", 1, None),
        ("rubric: r\ncheck: {kind: exact}\ncheck: {kind: exact}\n", 3, "check"),
    ],
)
def test_single_faults(write: Write, text: str, line: int | None, field: str | None) -> None:
    found = faults(write(text))
    assert (line or 1, field) in [(at, name) for at, name, _ in found], found
    assert all("Fix: " in message for _, _, message in found)


def test_a_prompt_in_a_file_is_faulted_there(write: Write, tmp_path: Path) -> None:
    (tmp_path / "judge.j2").write_text("Right?\n{{ answer }}\n{% import 'os' as o %}\n", encoding="utf-8")
    path = write("rubric: r\njudge: {model: m, prompt_file: judge.j2, words: {A: pass, B: fail}}\n")
    (fault,) = [message for _, _, message in faults(path)]
    assert "judge.j2:3: " in fault


def test_secrets_are_dropped_and_named(write: Write) -> None:
    rubric = read_rubric(
        write(
            "rubric: r\njudge:\n  model: m\n  prompt: '{{ answer }}'\n  words: {A: pass, B: fail}\n"
            "  params: {api_key: very-secret-value-123, max_tokens: 5}\n"
        )
    )
    assert "very-secret" not in repr(rubric)
    assert rubric.judge is not None
    assert rubric.judge.secrets == {"api_key": "very-secret-value-123"}
    assert rubric.judge.params == {"api_key": "[hidden]", "max_tokens": 5}
    assert len(rubric.notices) == 1


def fingerprint(write: Write, text: str) -> str:
    return read_rubric(write(text)).fingerprint


def test_the_fingerprint_is_of_what_the_rubric_says(write: Write, tmp_path: Path) -> None:
    one = fingerprint(write, "rubric: r\ncheck: {kind: number, tolerance: 0.5}\n")
    assert fingerprint(write, "# a comment\ncheck: {tolerance: 0.50, kind: number}\nrubric: r\n") == one
    assert fingerprint(write, "rubric: r\ncheck: {kind: number, tolerance: 0.6}\n") != one
    assert fingerprint(write, "rubric: r\ncheck: {kind: number, tolerance: 0.5}\npass_at: 0.5\n") != one
    (tmp_path / "checks.py").write_text("def right(answer, item): return True\n", encoding="utf-8")
    code = fingerprint(write, "rubric: r\ncheck: {kind: python, function: checks:right}\n")
    (tmp_path / "checks.py").write_text("def right(answer, item): return False\n", encoding="utf-8")
    assert fingerprint(write, "rubric: r\ncheck: {kind: python, function: checks:right}\n") != code


class TestBeforeAnythingIsSpent:
    def of(self, write: Write, text: str, item: Item) -> list[str]:
        return [str(fault) for fault in rubric_faults(read_rubric(write(text)), [item], file="labels.jsonl")]

    def test_references(self, write: Write) -> None:
        text = "rubric: r\ncheck: {kind: number}\n"
        assert self.of(write, text, Item("a", reference="5")) == []
        assert self.of(write, text, Item("a", reference=["5", "6"])) == []
        (fault,) = self.of(write, text, Item("a", reference=["5", "six"], line=7))
        assert fault.startswith("labels.jsonl:7: id a, field reference: ")
        (fault,) = self.of(write, text, Item("a", line=7))
        assert "is missing" in fault

    def test_the_check_of_an_item(self, write: Write) -> None:
        text = "rubric: r\ncheck: {from: item}\n"
        (fault,) = self.of(write, text, Item("a", reference="5", line=3))
        assert fault.startswith("labels.jsonl:3: id a, field metadata.check: ")
        for spec in ({"kind": "fuzzy"}, {"kind": "judge"}, {"kind": "human"}, {"kind": "contract"}, "exact"):
            assert len(self.of(write, text, Item("a", reference="5", metadata={"check": spec}))) == 1

    def test_a_label_file_names_no_code(self, write: Write) -> None:
        check = {"kind": "python", "function": "os:system"}
        item = Item("a", reference="5", metadata={"check": check})
        (fault,) = self.of(write, "rubric: r\ncheck: {from: item}\n", item)
        assert "metadata.check.kind" in fault

    def test_what_a_judge_asks_for(self, write: Write) -> None:
        text = (
            "rubric: r\njudge: {model: m, prompt: '{{ prompt }} {{ metadata.tone }} {{ answer }}', "
            "words: {A: pass, B: fail}}\n"
        )
        assert self.of(write, text, Item("a", prompt="q", metadata={"tone": "kind"})) == []
        (fault,) = self.of(write, text, Item("a", prompt="q"))
        assert "tone" in fault
        (fault,) = self.of(write, text, Item("a", metadata={"tone": "kind"}))
        assert "prompt" in fault
        (fault,) = self.of(write, text, Item("a", prompt="q" * 400_000, metadata={"tone": "kind"}))
        assert "too long" in fault


def test_a_check_that_ends_the_program_when_it_is_imported_is_a_fault(write: Write, tmp_path: Path) -> None:
    """Exit code 0 says approved: a script without a guard must not say it."""
    (tmp_path / "checks.py").write_text("def right(answer, item): return True\nraise SystemExit(0)\n")
    with pytest.raises(InputError, match="cannot be imported: SystemExit"):
        read_rubric(write("rubric: r\ncheck: {kind: python, function: checks:right}\n"))


def test_python_beside_the_rubric(write: Write, tmp_path: Path) -> None:
    (tmp_path / "checks.py").write_text("def right(answer, item): return answer == item.reference\n")
    rubric: Rubric = read_rubric(write("rubric: r\ncheck: {kind: python, function: checks:right}\n"))
    assert rubric.default == PythonCheck("checks:right", tmp_path)
