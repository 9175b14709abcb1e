"""What a run has to do: one cell for each item, candidate and sample, made when it is asked for.

A plan holds the items and candidates and no cells, so that its size does not grow with what a run asks.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from evalkit.providers.call import Reply, Request

__all__ = [
    "Cell",
    "Plan",
    "PlanCandidate",
    "PlanItem",
    "Purpose",
    "endpoint_of",
    "next_step",
    "plan_cells",
    "plan_of",
]

Json = Mapping[str, Any]
Purpose = Literal["candidate", "judge"]


@dataclass(frozen=True, slots=True)
class Cell:
    """One run of one item by one candidate for one sample.

    `first` is the request of the first step; each of `follow_ups` is a user turn that goes out after the reply
    before it. A plain call has none.
    """

    item: str
    candidate: str
    sample: int
    first: Request
    follow_ups: tuple[str, ...] = ()
    purpose: Purpose = "candidate"

    @property
    def steps(self) -> int:
        """The number of calls that the cell takes when each of them gets a reply."""
        return 1 + len(self.follow_ups)


@dataclass(frozen=True, slots=True)
class PlanItem:
    """An item as it is sent: `messages` go out byte for byte; `files` as in `Request`.

    `params` are the item's own, for candidates that do not say otherwise.
    """

    id: str
    messages: tuple[Json, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    params: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlanCandidate:
    """A candidate as it is asked. No secret is in it.

    `files` are those behind the model (the weights of a local one). `instruction` goes behind the item's last
    message, as a part of it: the first of several steps, of which `follow_ups` are the others.
    """

    name: str
    model: str
    params: Json = field(default_factory=dict)
    endpoint: str | None = None
    follow_ups: tuple[str, ...] = ()
    stream: bool = False
    files: Mapping[str, str] = field(default_factory=dict)
    instruction: str | None = None


class Plan:
    """The cells of a run, made anew in the same order each time they are asked for.

    `sources` gives the cells of each candidate; `count` is how many there are in all, None where nobody knows.
    """

    def __init__(self, sources: Mapping[str, Callable[[], Iterable[Cell]]], count: int | None = None) -> None:
        self._sources = dict(sources)
        self.count = count

    @property
    def candidates(self) -> tuple[str, ...]:
        """Names of the candidates in order."""
        return tuple(self._sources)

    def of(self, *candidates: str) -> Iterator[Cell]:
        """The cells of these candidates, one of each in turn, so that a run that ends early asked all alike."""
        turns = [iter(self._sources[name]()) for name in candidates]
        while turns:
            left = []
            for turn in turns:
                cell = next(turn, None)
                if cell is not None:
                    yield cell
                    left.append(turn)
            turns = left

    def __iter__(self) -> Iterator[Cell]:
        return self.of(*self._sources)


def plan_cells(items: Sequence[PlanItem], candidates: Iterable[PlanCandidate], samples: int = 1) -> Plan:
    """Every item by every candidate, `samples` times; samples count from 0, all items before the next sample.

    Items with equal content get `occurrence` 0, 1, ... in their order, so that each is a draw of its own.
    """
    if samples < 1:
        raise ValueError(f"The `samples` parameter of `plan_cells` must be at least 1. Got {samples} instead.")
    asked = tuple(candidates)
    if len({candidate.name for candidate in asked}) < len(asked):
        raise ValueError("The `candidates` parameter of `plan_cells` must have names of their own.")
    repeats = _occurrences(items)

    def cells(candidate: PlanCandidate) -> Iterator[Cell]:
        for sample in range(samples):
            for place, item in enumerate(items):
                request = Request(
                    model=candidate.model,
                    messages=_instructed(item.messages, candidate.instruction),
                    params={**item.params, **candidate.params} if item.params else candidate.params,
                    endpoint=candidate.endpoint,
                    files={**item.files, **candidate.files} if candidate.files else item.files,
                    sample=sample,
                    occurrence=repeats.get(place, 0),
                    stream=candidate.stream,
                )
                yield Cell(item.id, candidate.name, sample, request, candidate.follow_ups)

    def source(candidate: PlanCandidate) -> Callable[[], Iterator[Cell]]:
        return lambda: cells(candidate)

    sources = {candidate.name: source(candidate) for candidate in asked}
    return Plan(sources, len(items) * len(asked) * samples)


def _instructed(messages: tuple[Json, ...], instruction: str | None) -> tuple[Json, ...]:
    if instruction is None:
        return messages
    *before, last = messages
    content = last.get("content")
    if isinstance(content, list | tuple):
        return (*before, {**last, "content": [*content, {"type": "text", "text": instruction}]})
    return (*before, {**last, "content": f"{content or ''}\n\n{instruction}"})


def plan_of(cells: Iterable[Cell]) -> Plan:
    """A plan of cells that exist already, such as the questions to a judge."""
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        found.setdefault(cell.candidate, []).append(cell)

    def source(of: list[Cell]) -> Callable[[], Iterable[Cell]]:
        return lambda: of

    return Plan({name: source(of) for name, of in found.items()}, sum(map(len, found.values())))


def next_step(cell: Cell, step: int, request: Request, reply: Reply) -> Request | None:
    """The request that follows `request` (of `step`, from 0) and its reply; None where the cell ends with it.

    The visible text of a reply goes into the next request, never its reasoning. A reply without text leaves
    nothing to go on from, so it ends the cell.
    """
    if step >= len(cell.follow_ups) or reply.text is None or not reply.text.strip():
        return None
    turns = ({"role": "assistant", "content": reply.text}, {"role": "user", "content": cell.follow_ups[step]})
    return replace(request, messages=(*request.messages, *turns))


def endpoint_of(request: Request) -> str:
    """What limits are kept for: the address a request goes to, or the provider before the slash of its model.

    A local model is an endpoint by itself: each has a server of its own.
    """
    provider = request.model.partition("/")[0]
    return request.endpoint or (request.model if provider == "local" else provider)


def _occurrences(items: Sequence[PlanItem]) -> dict[int, int]:
    """Place of an item -> how many items before it have the same content; only where there are any."""
    seen: Counter[bytes] = Counter()
    found = {}
    for place, item in enumerate(items):
        content = json.dumps(
            [item.messages, dict(item.files), dict(item.params)], sort_keys=True, separators=(",", ":")
        )
        digest = hashlib.sha256(content.encode("ascii")).digest()
        if seen[digest]:
            found[place] = seen[digest]
        seen[digest] += 1
    return found
