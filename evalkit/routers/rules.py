"""Rules: the first one that a request meets gives its score.

```yaml
rules:
  - {name: contracts, category: [legal, billing], score: 1}
  - {name: code, patterns: ['(?i)stack ?trace', 'Exception in'], min_characters: 40, score: 0.8}
  - {name: greeting, max_characters: 30, not_patterns: ['\\d'], score: 0}
otherwise: 0.3
```
Patterns are RE2 (`grading.patterns`), which takes time linear in the text, whatever the pattern; it has no
look-around and no back-reference. So no prompt and no pattern can hang a run, and texts need not be cut.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalkit.errors import InputError, visible
from evalkit.grading.patterns import Pattern
from evalkit.routers.items import Requests, sound_text
from evalkit.study import nodes
from evalkit.study.fields import Report, Section, shown
from evalkit.study.nodes import Node, Scalar, join_path
from evalkit.study.strict_yaml import load_yaml
from evalkit.tabular.fingerprint import canonical_json

__all__ = ["Rule", "Rules", "read_rules"]

MOST_RULES = 1_000
MOST_PATTERNS = 100
MOST_SCORE = 1e9
MOST_CHARACTERS = 1_000_000_000
_KEYS = ("name", "score", "category", "min_characters", "max_characters", "patterns", "not_patterns")
_CONDITIONS = _KEYS[2:]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; a request meets it when it meets every condition that is not None or empty.

    `category`: it is one of them. `min_characters`, `max_characters`: the length of its text, both ends included.
    `patterns`: at least one is found in its text; `not_patterns`: none is.
    """

    score: float
    name: str = ""
    category: tuple[str, ...] = ()
    min_characters: int | None = None
    max_characters: int | None = None
    patterns: tuple[Pattern, ...] = ()
    not_patterns: tuple[Pattern, ...] = ()

    @property
    def reads_text(self) -> bool:
        """The rule needs the text of a request."""
        lengths = self.min_characters is not None or self.max_characters is not None
        return lengths or bool(self.patterns or self.not_patterns)


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules in order, and the score of a request that meets none. `file` is where they were read."""

    rules: tuple[Rule, ...]
    otherwise: float
    file: str = ""

    @property
    def reads_text(self) -> bool:
        """Some rule needs the text of a request."""
        return any(rule.reads_text for rule in self.rules)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of what the rules say, not how they are written; names do not count."""
        content = [
            [r.score, sorted(r.category), r.min_characters, r.max_characters,
             [p.source for p in r.patterns], [p.source for p in r.not_patterns]]
            for r in self.rules
        ]  # fmt: skip
        return hashlib.sha256(canonical_json(["evalkit.rules/1", content, self.otherwise]).encode()).hexdigest()

    def first(self, requests: Requests) -> NDArray[np.int64]:
        """(N,) the place of the first rule that each request meets; the number of rules where it meets none."""
        import pyarrow as pa

        text = [unicodedata.normalize("NFC", one) for one in requests.text]
        category = [None if c is None else unicodedata.normalize("NFC", c) for c in requests.category]
        length = np.array([len(one) for one in text], dtype=np.int64)
        place = np.full(len(text), len(self.rules), dtype=np.int64)
        open_ = np.ones(len(text), dtype=bool)
        for at, rule in enumerate(self.rules):
            left = np.flatnonzero(open_)
            if not left.size:
                break
            met = np.ones(left.size, dtype=bool)
            if rule.category:
                met &= np.array([category[i] in rule.category for i in left], dtype=np.bool_)
            if rule.min_characters is not None:
                met &= length[left] >= rule.min_characters
            if rule.max_characters is not None:
                met &= length[left] <= rule.max_characters
            if rule.patterns or rule.not_patterns:
                rest = left[met]
                texts = pa.array([text[i] for i in rest], pa.large_string())
                fits = _any(rule.patterns, texts) if rule.patterns else np.ones(rest.size, dtype=bool)
                met[met] = fits & ~_any(rule.not_patterns, texts)
            place[left[met]] = at
            open_[left[met]] = False
        return place

    def score(self, requests: Requests, place: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        """(N,) the score of each request; `place` is what `first` gives, where it is known."""
        table = np.array([*(rule.score for rule in self.rules), self.otherwise])
        return np.asarray(table[self.first(requests) if place is None else place])


def _any(patterns: Sequence[Pattern], texts: Any) -> NDArray[np.bool_]:
    """(n,) whether one of the patterns is found in each text."""
    import pyarrow.compute as pc

    found = np.zeros(len(texts), dtype=np.bool_)
    for pattern in patterns:
        source = unicodedata.normalize("NFC", sound_text(pattern.source))
        found |= np.asarray(pc.match_substring_regex(texts, source).to_numpy(zero_copy_only=False), dtype=np.bool_)
    return found


def read_rules(path: str | Path) -> Rules:
    """The rules in a YAML file. Raises `InputError` with every fault of the file, each with its line."""
    document = load_yaml(path)
    report = Report(document.file, document.faults)
    if document.root is None:
        raise InputError(report.in_order())
    if not isinstance(document.root, nodes.Mapping):
        report.add(document.root.line, None, "holds no keys", "write rules: and otherwise:")
        raise InputError(report.in_order())
    top = Section(report, document.root, "", ("rules", "otherwise"))
    otherwise = top.number(
        "otherwise", low=-MOST_SCORE, high=MOST_SCORE, missing="write the score of requests that meet no rule"
    )
    node = top.get("rules", missing="write a list of rules")
    rules: list[Rule] = []
    if node is not None and not isinstance(node, nodes.Sequence):
        top.fault("rules", f"is {shown(node)}, not a list", "write - {category: legal, score: 1} lines below it")
    elif node is not None:
        if not node.items or len(node.items) > MOST_RULES:
            what = f"has {len(node.items):,} rules" if node.items else "has no rules"
            top.fault("rules", what, f"write 1 to {MOST_RULES:,} rules")
        for at, item in enumerate(node.items[:MOST_RULES]):
            rule = _rule(report, item, join_path("rules", at))
            if rule is not None:
                rules.append(rule)
        _hidden(report, node, rules)
    if report.faults or otherwise is None:
        raise InputError(report.in_order())
    return Rules(tuple(rules), otherwise, document.file)


def _rule(report: Report, node: Node, path: str) -> Rule | None:
    if not isinstance(node, nodes.Mapping):
        report.add(node.line, path, f"is {shown(node)}, not a rule", "write {category: legal, score: 1}")
        return None
    section = Section(report, node, path, _KEYS)
    name = section.text("name") or ""
    score = section.number("score", low=-MOST_SCORE, high=MOST_SCORE, missing="write the score it gives")
    category = _texts(section, "category")
    least = section.integer("min_characters", low=0, high=MOST_CHARACTERS)
    most = section.integer("max_characters", low=0, high=MOST_CHARACTERS)
    if least is not None and most is not None and least > most:
        section.fault("min_characters", f"is {least}, above max_characters {most}", "write the lesser number here")
    patterns = _patterns(section, "patterns")
    without = _patterns(section, "not_patterns")
    if not any(section.has(key) for key in _CONDITIONS):
        what = "has no condition, so every request meets it"
        report.add(node.line, path, what, f"add one of {', '.join(_CONDITIONS)}, or write otherwise: at the end")
        return None
    if score is None:
        return None
    return Rule(score, name, category, least, most, patterns, without)


def _texts(section: Section, key: str) -> tuple[str, ...]:
    """One text or a list of texts."""
    node = section.get(key)
    if node is None:
        return ()
    if not isinstance(node, nodes.Sequence):
        text = section.text(key)
        return () if text is None else (text,)
    if not node.items or len(node.items) > MOST_PATTERNS:
        section.fault(key, f"has {len(node.items):,} entries", f"write 1 to {MOST_PATTERNS} of them")
        return ()
    found: list[str] = []
    for at, item in enumerate(node.items):
        if isinstance(item, Scalar) and isinstance(item.value, str) and item.value.strip():
            found.append(unicodedata.normalize("NFC", item.value))
        elif not (isinstance(item, Scalar) and isinstance(item.value, nodes.Refused)):
            where = join_path(section.where(key), at)
            section.report.add(item.line, where, f"is {shown(item)}, not text", "write text, in quotes")
    return tuple(found)


def _patterns(section: Section, key: str) -> tuple[Pattern, ...]:
    found = []
    for text in _texts(section, key):
        pattern = Pattern(text)
        problem = pattern.problem()
        if problem is None:
            found.append(pattern)
        else:
            section.fault(key, *problem)
    return tuple(found)


def _hidden(report: Report, node: nodes.Sequence, rules: Sequence[Rule]) -> None:
    """A rule with the very conditions of an earlier one is never reached."""
    if len(rules) != len(node.items):
        return
    seen: dict[object, int] = {}
    for at, rule in enumerate(rules):
        same = (rule.category, rule.min_characters, rule.max_characters, rule.patterns, rule.not_patterns)
        first = seen.setdefault(same, at)
        if first != at:
            what = f"has the conditions of rules[{first}], so no request gets to it"
            report.add(node.items[at].line, visible(join_path("rules", at)), what, "remove one of them")
