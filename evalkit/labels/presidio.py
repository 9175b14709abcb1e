"""Names of people, found by Presidio beside the rules, where somebody asks for it and has it installed.

No rule tells a name from another word; a language model such as spaCy's does, in part. Presidio is slow (a log of
100,000 requests takes hours) and is never needed.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from evalkit.errors import Fault, InputError
from evalkit.tabular.names import quoted

__all__ = ["Analyzer", "PresidioNames", "presidio_names"]

_LEAST_SCORE = 0.5
_ENTITY = "PERSON"


class Analyzer(Protocol):
    """What is used of `presidio_analyzer.AnalyzerEngine`."""

    def analyze(self, text: str, language: str, entities: list[str]) -> list[Any]:
        """Findings, each with `start`, `end`, `entity_type` and `score`."""
        ...


class PresidioNames:
    """Finds names with one analyzer, once for each of `languages`."""

    def __init__(self, analyzer: Analyzer, languages: tuple[str, ...]) -> None:
        self._analyzer = analyzer
        self._languages = languages

    def __call__(self, text: str) -> Iterator[tuple[int, int, str]]:
        """(start, end, "name") of what is probably a name."""
        for language in self._languages:
            for found in self._analyzer.analyze(text=text, language=language, entities=[_ENTITY]):
                if found.entity_type == _ENTITY and found.score >= _LEAST_SCORE and found.end > found.start:
                    yield found.start, found.end, "name"


def presidio_names(models: Mapping[str, str]) -> PresidioNames:
    """Presidio with an installed spaCy model for each language: `{"en": "en_core_web_sm"}`.

    Nothing is downloaded. Raises `InputError` where Presidio or a model is missing.
    """
    faults = []
    if importlib.util.find_spec("presidio_analyzer") is None:
        fix = "pip install presidio-analyzer, or leave the option out: what has a shape is found without"
        faults.append(Fault("Presidio is not installed", fix, field="--presidio"))
    for name in models.values():
        if not name.isidentifier() or importlib.util.find_spec(name) is None:
            fix = "install the model as a package, or name one that is installed: --presidio en=en_core_web_sm"
            faults.append(Fault(f"the spaCy model {quoted(name, 80)} is not installed", fix, field="--presidio"))
    if faults:
        raise InputError(faults)
    analyzers, engines = (importlib.import_module(f"presidio_analyzer{part}") for part in ("", ".nlp_engine"))
    listed = [{"lang_code": language, "model_name": name} for language, name in models.items()]
    engine = engines.NlpEngineProvider(nlp_configuration={"nlp_engine_name": "spacy", "models": listed})
    languages = list(models)
    analyzer = analyzers.AnalyzerEngine(nlp_engine=engine.create_engine(), supported_languages=languages)
    return PresidioNames(analyzer, tuple(languages))
