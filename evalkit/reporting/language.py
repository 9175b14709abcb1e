"""The languages of a report: English is in the source, every other one in a catalogue that translators edit.

A message is written `_("... %(name)s ...", name=value)` where it is shown, or marked with `N_` where it is a
constant; `pybabel extract` finds both. A catalogue is a .po file, read as it is: nothing has to be compiled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

__all__ = ["ENGLISH", "LANGUAGES", "N_", "Language", "language"]

LANGUAGES: Final = ("en", "ko")


def N_(message: str) -> str:  # noqa: N802  the name that extractors of messages know
    """Marks a constant as a message to translate; returns it as it is."""
    return message


@dataclass(frozen=True, slots=True)
class Language:
    """A language by its code (BCP 47) and what it makes of the English messages."""

    code: str
    messages: Mapping[str, str]

    @property
    def english(self) -> bool:
        """Whether the sentences of a document, which are English, are in this language."""
        return self.code == "en"

    def __call__(self, message: str, **values: str | int) -> str:
        """`message` in this language, with `values` put in; English where the catalogue lacks it."""
        found = self.messages.get(message) or message
        return found % _shown(values) if values else found.replace("%%", "%")

    def ngettext(self, one: str, many: str, n: int, **values: str | int) -> str:
        """`one` for n = 1, else `many`, with `%(n)s` the number itself; both forms share one translation."""
        found = self.messages.get(one) or (one if n == 1 else many)
        return found % _shown({"n": n} | values)

    def knows(self, message: str) -> bool:
        """Whether the catalogue has this message."""
        return self.english or message in self.messages

    def together(self, parts: list[str]) -> str:
        """A list in a sentence: "a, b and c"."""
        if len(parts) < 2 or not self.english:
            return ", ".join(parts)
        return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _shown(values: Mapping[str, str | int]) -> dict[str, str]:
    return {name: value if isinstance(value, str) else f"{value:,}" for name, value in values.items()}


ENGLISH: Final = Language("en", {})


@cache
def language(code: str) -> Language:
    """The language `code`, one of LANGUAGES.

    Raises ValueError for any other.
    """
    if code not in LANGUAGES:
        raise ValueError(f"The `lang` parameter must be one of {', '.join(LANGUAGES)}. Got {code!r} instead.")
    if code == "en":
        return ENGLISH
    from babel.messages.pofile import read_po

    with files("evalkit.reporting").joinpath(f"catalogues/{code}.po").open("rb") as file:
        catalogue = read_po(file, locale=code, abort_invalid=True)
    messages: dict[str, str] = {}
    for message in catalogue:
        if not message.id or message.fuzzy:
            continue
        one = message.id[0] if isinstance(message.id, (tuple, list)) else message.id
        shown = message.string[0] if isinstance(message.string, (tuple, list)) else message.string
        if shown:
            messages[str(one)] = str(shown)
    return Language(code, messages)
