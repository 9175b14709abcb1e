"""Keys, tokens and passwords in free text, by their shape or by the word in front of them.

Stricter than `evalkit.errors.redact`, which may hide too much of a message: here "password: required" stays,
because somebody is to label the prompt that holds it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["key_spans"]

_SHAPES = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"(?:sk|pk|rk|xai|gsk|glpat|xox[abeoprs]|pplx|nvapi)[-_](?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{16,512}"
    r"|(?:gh[oprsu]|github_pat|hf|npm|dop_v1)_[A-Za-z0-9_]{16,512}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])|AIza[A-Za-z0-9_-]{30,64}|ya29\.[A-Za-z0-9_-]{20,512}"
    r"|SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,64}"
    r"|[0-9]{8,10}:AA[A-Za-z0-9_-]{32,36}"
    r"|eyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{8,8000}(?:\.[A-Za-z0-9_-]{0,2000})?"
    r")"
)
_SHORTEST = 19  # characters without a blank: what the shortest of these shapes takes
_BLOCK = re.compile(
    r"-----BEGIN (?:[A-Z]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----.{0,20000}?"
    r"(?:-----END (?:[A-Z]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)
_IN_ADDRESS = re.compile(r"(?i)\b[a-z][a-z0-9+.-]{1,15}://[^\s/@:\"'<>]{0,256}:(?P<value>[^\s/@\"'<>]{1,256})@")
_NAMED = re.compile(
    r"(?i)(?:authorization|(?:api|access|secret|private|auth)[ _-]?key|(?:client[ _-]?)?secret"
    r"|pass(?:word|wd|code|phrase)"
    r"|(?:access|auth|refresh|session|bearer|api|secret)?[ _-]?token|bearer|비밀번호|비번|암호|인증키|토큰|시크릿|"
    r"(?:api|API) ?키|접근 ?키)"
    r"(?:[\"'`]?\s{0,3}(?::|=|：|\bis\b|은|는|이|가)\s{0,3}|\s{1,3})(?:(?:bearer|basic)\s{1,3})?[\"'`]?"
    r"(?P<value>[^\s\"'`,;<>()\[\]{}]{6,2000})"
)

_MARKED = re.compile(r"[0-9!@#$%^&*+~?|\\]")  # every credential looked for holds one, or is a block

# One of these is in every name of `_NAMED`; looking for them first is many times quicker.
_WORDS = (
    "key",
    "secret",
    "pass",
    "token",
    "bearer",
    "authorization",
    "비밀번호",
    "비번",
    "암호",
    "인증키",
    "토큰",
    "시크릿",
    "키",
)


_ANY_WORD = re.compile("|".join(_WORDS))
_BEFORE_WORD = 12  # characters that may stand in front of such a word in a name: "access ", "private_"


def key_spans(text: str) -> Iterator[tuple[int, int]]:
    """(start, end) of what looks like a credential."""
    if not _MARKED.search(text) and "-----BEGIN" not in text:
        return
    if "-----BEGIN" in text:
        for match in _BLOCK.finditer(text):
            yield match.span()
    if max(map(len, text.split()), default=0) >= _SHORTEST:
        for match in _SHAPES.finditer(text):
            yield match.span()
    low = text.lower()
    if "://" in low:
        for match in _IN_ADDRESS.finditer(text):
            yield match.span("value")
    for match in _named(text, low):
        value = match["value"].rstrip(".!?…")
        if _secret_like(value):
            yield match.start("value"), match.start("value") + len(value)


def _named(text: str, low: str) -> Iterator[re.Match[str]]:
    """The matches of `_NAMED`, which begin at one of its words or shortly before it."""
    if not any(word in low for word in _WORDS):
        return
    if len(low) != len(text):  # a few letters are two in lower case
        yield from _NAMED.finditer(text)
        return
    done = 0
    for word in _ANY_WORD.finditer(low):
        for start in range(max(done, word.start() - _BEFORE_WORD), word.start() + 1):
            match = _NAMED.match(text, start)
            if match is not None:
                yield match
                done = match.end()
                break
        else:
            done = max(done, word.start() + 1)


def _secret_like(value: str) -> bool:
    """Whether a value behind such a name is one: letters mixed with digits or marks, no plain word."""
    if value.startswith(("http", "www.", "$", "process.", "os.", "env.")) or not value.isascii():
        return False
    letters = any(ch.isalpha() for ch in value)
    digits = any(ch.isdigit() for ch in value)
    marks = any(ch in "!@#$%^&*+~?|\\" for ch in value)
    return len(value) >= 6 and letters and (digits or marks) and not re.fullmatch(r"[a-z]+[.:_-]?\d?", value)
