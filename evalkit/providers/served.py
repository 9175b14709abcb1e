"""Whether the model that answered is the one that was asked."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

__all__ = ["same_model"]

_SNAPSHOT = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|20\d{6})$")
_GEMINI_VERSION = re.compile(r"-00\d$")
_LATEST = re.compile(r"[-:]latest$")


def same_model(requested: str, served: str | None, aliases: Mapping[str, Collection[str]] | None = None) -> bool:
    """Whether `served` is `requested`: by name, as a dated snapshot of it, or as one of its `aliases`.

    Prefixes that name the provider or the way to it do not count (`openai/x` and `x`), nor do case and `-latest`.
    A snapshot is the requested name and `-YYYY-MM-DD` or `-YYYYMMDD` (for Gemini `-001` to `-009`); one snapshot
    is not another. A served model that is not known (None or empty) is no mismatch.

    >>> same_model("openai/gpt-5-mini", "gpt-5-mini-2025-08-07"), same_model("demo/cheap", "demo/frontier")
    (True, False)
    """
    if not served:
        return True
    names = (requested, *(aliases or {}).get(requested, ()))
    return any(_matches(_LATEST.sub("", name.casefold()), served.casefold()) for name in names)


def _matches(asked: str, answered: str) -> bool:
    bare = [answered, _LATEST.sub("", answered), _SNAPSHOT.sub("", answered)]
    if answered.rpartition("/")[2].startswith("gemini-"):
        bare.append(_GEMINI_VERSION.sub("", answered))
    return any(_ends_alike(asked, name) for name in bare)


def _ends_alike(left: str, right: str) -> bool:
    """The shorter path is the end of the longer: `a/b/c` and `b/c`, not `a/c`."""
    one, two = left.split("/"), right.split("/")
    n = min(len(one), len(two))
    return one[-n:] == two[-n:]
