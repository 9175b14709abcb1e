"""What the ledger says of each cell of a plan: its replies, its cost, and its times. Calls nobody."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal, localcontext

from evalkit.costs import Cost
from evalkit.providers.call import Billed, Failure, Reply, Request
from evalkit.providers.key import request_key
from evalkit.replay.ledger import Attempt, Ledger
from evalkit.replay.plan import Cell, next_step

__all__ = ["CellRecord", "StepRecord", "cells_of"]

_DIGITS = 60


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One step: its request and every attempt at it, in all runs, first to last."""

    key: str
    request: Request
    attempts: tuple[Attempt, ...]

    @property
    def answered(self) -> Attempt | None:
        """The attempt that got the reply."""
        return next((attempt for attempt in self.attempts if attempt.state == "reply"), None)

    @property
    def result(self) -> Reply | Failure | None:
        """The reply, or else the last failure; None where there is neither."""
        if (answered := self.answered) is not None:
            return answered.result
        return next((a.result for a in reversed(self.attempts) if a.state == "failure"), None)


@dataclass(frozen=True, slots=True)
class CellRecord:
    """One cell as the ledger has it; `steps` are those that were sent, in order."""

    cell: Cell
    steps: tuple[StepRecord, ...]
    complete: bool

    @property
    def result(self) -> Reply | Failure | None:
        """The reply of the last step, or the failure that ended the cell; None where a later run has to go on.

        A failure of an earlier run stands until a later one tries again.
        """
        last = self.steps[-1].result if self.steps else None
        return last if self.complete or isinstance(last, Failure) else None

    @property
    def cost(self) -> Cost:
        """The cost of the decision: replies of all steps, and failed attempts that say what they used.

        Unknown where a reply's is. A cell that ended with a failure which may have been charged has an unknown
        cost; one that was refused each time cost nothing.
        """
        total = Decimal(0)
        notices: tuple[str, ...] = ()
        with localcontext() as context:
            context.prec = _DIGITS
            for attempt in self._attempts():
                silent = attempt.state == "abandoned" or (attempt.state == "failure" and attempt.cost_usd is None)
                if attempt.cost_usd is not None:
                    total += attempt.cost_usd
                elif not silent:
                    return Cost(None, attempt.cost_reason)
        result = self.result
        if result is None:
            return Cost(None, "there is no reply yet")
        if isinstance(result, Failure) and result.billed is not Billed.NO:
            last = [a for a in self.steps[-1].attempts if a.state == "failure"][-1]
            if last.cost_usd is None:
                return Cost(None, last.cost_reason)
        return Cost(total, notices=notices)

    @property
    def task_s(self) -> float | None:
        """Backoff and duration of all attempts of all steps, in all runs; None before there is any.

        Attempts of a process that was killed took a time that nobody knows; they are not counted.
        """
        known = [a.waited_s + a.duration_s for a in self._attempts() if a.duration_s is not None]
        return sum(known) if known else None

    @property
    def request_s(self) -> float | None:
        """Duration of the attempt that got the reply of the last step."""
        answered = self._answered()
        return None if answered is None else answered.duration_s

    @property
    def ttft_s(self) -> float | None:
        """Time to the first token of that reply, where it was streamed."""
        answered = self._answered()
        reply = None if answered is None else answered.result
        return reply.ttft_s if isinstance(reply, Reply) else None

    @property
    def attempts(self) -> int:
        """Attempts of all steps in all runs that had an end. What a killed process had in flight says nothing of
        the model: see `abandoned`."""
        return sum(attempt.state != "abandoned" for attempt in self._attempts())

    @property
    def abandoned(self) -> int:
        """Attempts that a killed or interrupted run gave up: sent, possibly paid, and never heard of again."""
        return sum(attempt.state == "abandoned" for attempt in self._attempts())

    @property
    def run(self) -> str | None:
        """The run that made the reply of the last step: its latencies were measured then."""
        answered = self._answered()
        return None if answered is None else answered.run

    def fresh(self, run: str) -> bool:
        """All its replies were made by `run`, by calls of its own: its latencies are measured in it."""
        answered = [step.answered for step in self.steps]
        return self.complete and all(a is not None and a.run == run and a.paid for a in answered)

    def _answered(self) -> Attempt | None:
        return self.steps[-1].answered if self.complete and self.steps else None

    def _attempts(self) -> Iterator[Attempt]:
        return (attempt for step in self.steps for attempt in step.attempts)


def cells_of(ledger: Ledger, cells: Iterable[Cell]) -> Iterator[CellRecord]:
    """What the ledger says of each of `cells` (a plan, or any of its cells), in their order."""
    for cell in cells:
        steps: list[StepRecord] = []
        request: Request | None = cell.first
        complete = False
        while request is not None:
            key = request_key(request)
            step = StepRecord(key, request, tuple(ledger.attempts(key)))
            if not step.attempts:
                break
            steps.append(step)
            reply = step.result
            if not isinstance(reply, Reply):
                break
            request = next_step(cell, len(steps) - 1, request, reply)
            complete = request is None
        yield CellRecord(cell, tuple(steps), complete)
