"""Catalogues: none lacks a message, none holds one too many, and every translation fits its message."""

from __future__ import annotations

import ast
import re
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import signoff_examples as examples
from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po
from engine_sentences import SLOT, sentences

from evalkit.reporting.language import LANGUAGES, Language, language
from evalkit.reporting.signoff import render_signoff_html, render_signoff_markdown
from evalkit.reporting.signoff.sentences import SENTENCES, translated

REPO = Path(__file__).resolve().parents[2]
PACKAGE = REPO / "evalkit"
OTHERS = [code for code in LANGUAGES if code != "en"]


@pytest.fixture(scope="module")
def messages() -> dict[str, Any]:
    """Every message in the source, by its first form, as Babel finds it with the project's own settings."""
    mappings = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["babel"]["mappings"]
    found = extract_from_dir(PACKAGE, [(m["pattern"], m["method"]) for m in mappings])
    return {m[2] if isinstance(m[2], str) else m[2][0]: m[2] for m in found}


def catalogue(code: str) -> Catalog:
    with files("evalkit.reporting").joinpath(f"catalogues/{code}.po").open("rb") as file:
        return read_po(file, locale=code, abort_invalid=True)


def test_babel_sees_every_message_of_the_python_sources(messages: dict[str, Any]) -> None:
    # A call inside an f-string is one token to Babel before Python 3.12, so it would be lost without a word.
    called = set()
    for path in (PACKAGE / "reporting").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if name in {"_", "N_", "ngettext"} and isinstance(node.args[0].value, str):
                    called.add(node.args[0].value)
    assert len(called) > 100
    assert called - set(messages) == set()


@pytest.mark.parametrize("code", OTHERS)
def test_no_message_is_missing_empty_fuzzy_or_left_over(code: str, messages: dict[str, Any]) -> None:
    known = {}
    for message in catalogue(code):
        if message.id:
            known[message.id if isinstance(message.id, str) else message.id[0]] = message
    assert set(messages) - set(known) == set()
    assert set(known) - set(messages) == set()
    strings = {k: [m.string] if isinstance(m.string, str) else list(m.string) for k, m in known.items()}
    assert [k for k, shown in strings.items() if not all(shown) or known[k].fuzzy] == []


@pytest.mark.parametrize("code", OTHERS)
def test_a_translation_takes_the_values_of_its_message(code: str) -> None:
    form = re.compile(r"%\(\w+\)[a-z]|\{[a-z]\}|%%?")
    for message in catalogue(code):
        if not message.id:
            continue
        assert [str(error) for error in message.check(catalogue(code))] == []
        ids = [message.id] if isinstance(message.id, str) else list(message.id)
        shown = [message.string] if isinstance(message.string, str) else list(message.string)
        for text in shown:
            # A plural's singular may leave its number out.
            assert sorted(form.findall(text)) == sorted(form.findall(ids[-1])), ids
            assert not set(text) & set('<>"\\\n'), f"{text!r} would not stand as it is in a page or a style sheet"


@pytest.mark.parametrize("name", ["approve", "reject", "insufficient", "many", "bare"])
def test_a_korean_document_leaves_no_english_of_its_own(name: str) -> None:
    document = examples.ALL[name]()
    html = render_signoff_html(document, "ko")
    body = re.sub(r"<(style|script|title)[^>]*>.*?</\1>", "", html, flags=re.S)
    shown = " ".join(re.findall(r">([^<>]+)<", body))
    data = " ".join(_texts(document))
    for word in ("Limit", "Estimate", "Bound", "Pass", "Open", "Fail", "Verdict", "Gates", "Signature", "points"):
        if word not in data:
            assert not re.search(rf"\b{word}\b", shown), word
    markdown = render_signoff_markdown(document, "ko")
    assert "게이트" in markdown
    assert not re.search(r"\b(Gates|Verdict|Next step|Not certified)\b", markdown)


def _texts(node: Any) -> list[str]:
    if isinstance(node, dict):
        return [text for value in node.values() for text in _texts(value)]
    if isinstance(node, list):
        return [text for value in node for text in _texts(value)]
    return [node] if isinstance(node, str) else []


def _constants() -> str:
    """Every constant text of the engine, one after the other."""
    found = []
    for path in PACKAGE.rglob("*.py"):
        if "reporting" not in path.parts:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            found += [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return "\0".join(found)


def test_the_sentences_are_those_of_the_engine() -> None:
    # A sentence that the engine no longer says would be English again in every other language, without a word.
    said = _constants()
    for sentence in SENTENCES:
        clauses = re.split(r"%\(\w+\)s|%%|[():;,.$\[\]]", sentence)
        longest = max((clause.strip() for clause in clauses), key=len)
        # A plural is put together from two of them.
        halves = [(longest[:i], longest[i:]) for i in range(5, len(longest) - 5)]
        known = longest in said or any(a in said and b in said for a, b in halves)
        assert known, f"the engine does not say {longest!r} any more: change the sentence and its catalogues"


@pytest.mark.parametrize("code", OTHERS)
def test_no_sentence_of_the_engine_stays_english(code: str) -> None:
    """Each is said anew or, where it is put together from several, has all its words in one that is."""
    _ = language(code)
    known = [sentence.replace("%%", "%") for sentence in SENTENCES]
    missing = []
    for text in sorted(sentences()):
        if any(translated(text.replace(SLOT, value), _) for value in ("3", "x")):
            continue
        clauses = [clause.strip(" .,;:") for clause in re.split(rf"{SLOT}|\d+|[()\[\];:]", text)]
        longest = max(clauses, key=len)
        if not any(longest in sentence for sentence in known):
            missing.append(text.replace(SLOT, "{}"))
    assert missing == [], "write it into SENTENCES, and its translation into the catalogues"


def test_the_engine_has_as_many_sentences_as_it_had() -> None:
    # The test above would pass on nothing, where the source is laid out otherwise.
    assert len(sentences()) > 80


@pytest.mark.parametrize("code", OTHERS)
@pytest.mark.parametrize(
    ("text", "word"),
    [
        (
            "Better than always:frontier, the best fixed arm: $0.0084 a request [0.007, 0.009] in expected total "
            "over 400 items",
            "frontier",
        ),
        (
            "Risk failures fall: 75 of 150 tasks fail at plain, 0 at think-1k, whose cost and p95 task time are "
            "higher",
            "think-1k",
        ),
        (
            "2 outcomes unanswered (budget exhausted); first: HTTP 500: [down]; try later (2 times).",
            "HTTP 500: [down]; try later",
        ),
        (
            "gates.yaml is stricter than the study: limits.max_cost_per_request 0.0005, there no limit.",
            "gates.yaml",
        ),
    ],
)
def test_what_real_runs_said_is_said_anew(code: str, text: str, word: str) -> None:
    shown = translated(text, language(code))
    assert shown is not None
    assert word in shown
    for english in ("always", "no limit", "cost", "budget exhausted"):
        assert not re.search(rf"\b{english}\b(?!_)", shown), shown


@pytest.mark.parametrize("code", OTHERS)
def test_a_sentence_is_said_anew_with_its_own_figures(code: str) -> None:
    _ = language(code)
    for sentence in SENTENCES:
        names = re.findall(r"%\((\w+)\)s", sentence)
        values = {name: f"{place + 2}.5" if name[0] == "n" else f"x {place}" for place, name in enumerate(names)}
        shown = translated(sentence % values if values else sentence.replace("%%", "%"), _)
        assert shown is not None, sentence
        assert all(value in shown for value in values.values()), sentence
        assert not re.search(r"%\(|%%", shown)


@pytest.mark.parametrize("code", OTHERS)
def test_a_sentence_with_other_words_in_it_stays_as_it_is(code: str) -> None:
    _ = language(code)
    for text in (
        "Required tiers were set by people. And by a dog.",
        "many outcomes unanswered (truncated).",
        "12 outcomes unanswered (" + "a" * 200 + ").",
        "Better than <b>, the best fixed arm: $1 a request",
        "On the " * 200,
        "100 %(n)s",
        "%",
        "",
    ):
        assert translated(text, _) is None


def test_an_unknown_message_stays_english_and_an_unknown_language_is_refused() -> None:
    assert language("ko")("nobody translated %(this)s", this="that") == "nobody translated that"
    assert Language("xx", {})("100 %% of it") == "100 % of it"
    with pytest.raises(ValueError, match="must be one of en, ko"):
        language("de")


def test_one_and_many() -> None:
    _ = language("en")
    assert _.ngettext("The one gate passes", "All %(n)s gates pass", 1) == "The one gate passes"
    assert _.ngettext("The one gate passes", "All %(n)s gates pass", 1200) == "All 1,200 gates pass"
    assert language("ko").ngettext("%(n)s run", "%(n)s runs", 2) == "실행 2건"
