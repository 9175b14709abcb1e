"""Token counts in one normal form, and what providers' own layouts say in it.

Normal form: `input_tokens` are all prompt tokens, the cache counts are parts of it; `output_tokens` is all billed
output, `reasoning_tokens` a part of it. Providers differ in what is inside and what is beside, so a count is only
believed where the layout is declared, known, or decided by the total. Nothing is clamped and nothing becomes 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import attrgetter
from typing import Any

from evalkit.costs.conditions import read_conditions
from evalkit.costs.fields import Counts, read_counts, usage_of
from evalkit.costs.layouts import GEMINI, Layout, known_layout

__all__ = ["Reading", "Usage", "constant_counts", "normal_usage"]

_COUNTS = (
    "input_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "output_tokens",
    "reasoning_tokens",
    "cache_write_1h_tokens",
)


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of one request in the normal form; None is unknown.

    `cache_write_1h_tokens` is the part of `cache_write_tokens` that was written to live for an hour. `layout` says
    which layout the counts came in and what decided it. `problem` and `fix` say why the counts cannot be priced;
    `readings` are the possible normal forms where several remain. `media`, `fees` and `processing` say what the
    counts do not: tokens that are no text, what is billed beside tokens, and a way of processing that has a price
    of its own.
    """

    input_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cache_write_1h_tokens: int | None = None
    layout: str = "normal form"
    problem: str | None = None
    fix: str | None = None
    readings: tuple[Reading, ...] = ()
    media: str | None = None
    fees: str | None = None
    processing: str | None = None

    def __reduce__(self) -> tuple[type[Usage], tuple[Any, ...]]:
        """By the values in their order: usages are passed between processes by the hundred thousand."""
        return Usage, _VALUES(self)

    @property
    def inconsistent(self) -> bool:
        """The counts contradict themselves or leave several readings open: their cost is unknown."""
        return self.problem is not None

    @property
    def visible_tokens(self) -> int | None:
        """Output that is not reasoning."""
        if self.output_tokens is None or self.reasoning_tokens is None:
            return None
        return self.output_tokens - self.reasoning_tokens

    @property
    def reasoning_share(self) -> float | None:
        """Reasoning as a fraction of the output."""
        if not self.output_tokens or self.reasoning_tokens is None:
            return None
        return self.reasoning_tokens / self.output_tokens

    def contradiction(self) -> str | None:
        """What breaks the normal form in the counts themselves; None where they can be priced."""
        for name in _COUNTS:
            count = getattr(self, name)
            if count is not None and count < 0:
                return f"{name} is {count}, below 0"
        if self.input_tokens is None or self.output_tokens is None:
            missing = "input_tokens" if self.input_tokens is None else "output_tokens"
            return f"{missing} is unknown"
        if self.input_tokens == 0:
            return "input_tokens is 0, and every request has a prompt"
        cached = (self.cache_read_tokens or 0) + (self.cache_write_tokens or 0)
        if cached > self.input_tokens:
            return f"cached tokens {cached} are more than input_tokens {self.input_tokens}"
        if (self.reasoning_tokens or 0) > self.output_tokens:
            return f"reasoning_tokens {self.reasoning_tokens} are more than output_tokens {self.output_tokens}"
        if (self.cache_write_1h_tokens or 0) > (self.cache_write_tokens or 0):
            return "cache_write_1h_tokens are more than cache_write_tokens"
        return None


_VALUES = attrgetter(*Usage.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read counts that leave several open: `how` says what it assumes."""

    how: str
    usage: Usage


def normal_usage(raw: Mapping[str, Any] | None, layout: Layout | None = None) -> Usage:
    """The normal form of a provider's usage: the usage itself, or the response that holds it.

    `layout`, where given, is a declaration by the user and decides. Otherwise the total decides which counts are
    inside which; without a total, what the source is known for; and where that leaves both readings open, the
    usage has a `problem` and both `readings`.
    """
    found = usage_of(raw)
    if not found:
        return Usage(
            layout="none",
            problem="no usage was returned",
            fix="ask for it, in a stream with stream_options: {include_usage: true}",
        )
    said = read_conditions(raw or {}, found)
    usage = _of_counts(read_counts(found), known_layout(found), layout)
    if not (said.media or said.fees or said.processing):
        return usage
    return replace(usage, media=said.media, fees=said.fees, processing=said.processing)


def _of_counts(counts: Counts, known: Layout, declared: Layout | None) -> Usage:
    if counts.problem is not None:
        return Usage(layout="unclear", problem=counts.problem, fix=counts.fix)
    if known is GEMINI and counts.output is None and counts.input is not None and counts.total is not None:
        counts = replace(counts, output=0)  # it leaves out what is 0; the total must agree
    if declared is not None:
        pair = declared.cache_inside is not False, declared.reasoning_inside is not False
        return _checked(counts, *pair, f"declared: {declared}")
    return _decided(counts, known)


def _decided(counts: Counts, known: Layout) -> Usage:
    readings = list(_readings(counts))
    if counts.total is not None:
        fitting = [pair for pair in readings if _sum(counts, *pair) == counts.total]
        if not fitting:
            return _no_reading_fits(counts, known)
        decided_by = f"decided by {counts.names['total']}"
    else:
        fitting, decided_by = readings, f"as {known.name} is known for"
    # More than one left, or no total to ask: what the source is known for.
    wanted = [pair for pair in fitting if _allowed(known, counts, *pair)]
    candidates = wanted or fitting
    if counts.total is None:
        possible = [pair for pair in candidates if _form(counts, *pair).contradiction() is None]
        candidates = possible or candidates
    if len(candidates) == 1:
        return _checked(counts, *candidates[0], _decision(known.name, *candidates[0], decided_by))
    return _ambiguous(counts, candidates)


@lru_cache(maxsize=256)
def _decision(name: str, cache_inside: bool, reasoning_inside: bool, decided_by: str) -> str:
    """A layout in words, and what decided it: one text for all requests of which it is true."""
    return f"{Layout(name, cache_inside=cache_inside, reasoning_inside=reasoning_inside)}; {decided_by}"


def _allowed(known: Layout, counts: Counts, cache_inside: bool, reasoning_inside: bool) -> bool:
    """The layout does not speak against the reading, in what makes a difference for these counts."""
    return (not counts.cached or known.cache_inside in {None, cache_inside}) and (
        not counts.reasoning or known.reasoning_inside in {None, reasoning_inside}
    )


def _readings(counts: Counts) -> Iterator[tuple[bool, bool]]:
    """Every (cache inside, reasoning inside) that makes a difference for these counts."""
    for cache_inside in (True, False) if counts.cached else (True,):
        for reasoning_inside in (True, False) if counts.reasoning else (True,):
            yield cache_inside, reasoning_inside


def _sum(counts: Counts, cache_inside: bool, reasoning_inside: bool) -> int:
    total = (counts.input or 0) + (counts.output or 0)
    return total + (0 if cache_inside else counts.cached) + (0 if reasoning_inside else counts.reasoning or 0)


def _form(counts: Counts, cache_inside: bool, reasoning_inside: bool, layout: str = "normal form") -> Usage:
    prompt, output = counts.input, counts.output
    return Usage(
        input_tokens=None if prompt is None else prompt + (0 if cache_inside else counts.cached),
        cache_read_tokens=counts.cache_read,
        cache_write_tokens=counts.cache_write,
        output_tokens=None if output is None else output + (0 if reasoning_inside else counts.reasoning or 0),
        reasoning_tokens=counts.reasoning,
        cache_write_1h_tokens=counts.cache_write_1h,
        layout=layout,
    )


def _checked(counts: Counts, cache_inside: bool, reasoning_inside: bool, layout: str) -> Usage:
    """One reading of the counts, marked where it contradicts itself, in the names that the provider gave them."""
    usage = _form(counts, cache_inside, reasoning_inside, layout)
    problem = usage.contradiction()
    if problem is None:
        return usage
    names = counts.names
    fix = "store the raw usage and check what the provider's counts mean"
    if usage.input_tokens is not None and counts.cached > usage.input_tokens:
        parts = [
            f"{names[key]} {count}"
            for key, count in (("cache_read", counts.cache_read), ("cache_write", counts.cache_write))
            if count
        ]
        problem = f"{' and '.join(parts)} are more than {names['input']} {counts.input}"
        fix = "declare for this provider that its input excludes cached tokens"
    elif (usage.reasoning_tokens or 0) > (usage.output_tokens or 0) and usage.output_tokens is not None:
        problem = f"{names['reasoning']} {counts.reasoning} are more than {names['output']} {counts.output}"
        fix = "declare for this provider that its output excludes reasoning"
    return Usage(layout=layout, problem=problem, fix=fix)


def _no_reading_fits(counts: Counts, known: Layout) -> Usage:
    names = counts.names
    if counts.input is None or counts.output is None:
        return _checked(counts, True, True, known.name)
    if counts.cached > counts.input and known.cache_inside is not False:
        return _checked(counts, True, True, known.name)
    parts = [f"{names['input']} {counts.input}", f"{names['output']} {counts.output}"]
    for key, count in (
        ("cache_read", counts.cache_read),
        ("cache_write", counts.cache_write),
        ("reasoning", counts.reasoning),
    ):
        if count:
            parts.append(f"{names[key]} {count}")
    return Usage(
        layout=known.name,
        problem=f"{names['total']} {counts.total} fits no reading of {', '.join(parts)}",
        fix="declare the layout of this provider",
    )


def _ambiguous(counts: Counts, candidates: Sequence[tuple[bool, bool]]) -> Usage:
    """Nothing decides: the cost is unknown, and both readings are kept for the message."""
    names = counts.names
    readings = []
    for cache_inside, reasoning_inside in candidates:
        how = []
        if len({pair[0] for pair in candidates}) > 1:
            how.append(f"cached tokens are {'inside' if cache_inside else 'beside'} {names['input']}")
        if len({pair[1] for pair in candidates}) > 1:
            where = "inside" if reasoning_inside else "beside"
            how.append(f"{names['reasoning']} are {where} {names['output']}")
        readings.append(Reading(" and ".join(how), _form(counts, cache_inside, reasoning_inside)))
    if len({pair[1] for pair in candidates}) > 1:
        subject = (
            f"{names['reasoning']} {counts.reasoning} may be inside or beside {names['output']} {counts.output}"
        )
    else:
        subject = f"cached tokens {counts.cached} may be inside or beside {names['input']} {counts.input}"
    said = "there is no total_tokens to tell" if counts.total is None else f"{names['total']} fits both"
    return Usage(
        layout="undecided",
        problem=f"{subject}, and {said}",
        fix="declare the layout of this provider",
        readings=tuple(readings),
    )


def constant_counts(usages: Sequence[Usage], least: int = 10) -> str | None:
    """What is wrong where `least` or more requests all have the same counts: they were invented, not counted.

    None where the counts differ, or where there are too few to tell.
    """
    pairs = {(usage.input_tokens, usage.output_tokens) for usage in usages if usage.input_tokens is not None}
    if len(usages) < least or len(pairs) != 1 or any(usage.input_tokens is None for usage in usages):
        return None
    ((input_tokens, output_tokens),) = pairs
    return (
        f"all {len(usages):,} requests have the same counts, {input_tokens} input and {output_tokens} output "
        "tokens: they were not counted"
    )
