"""What a run has come to: while it is at work, and at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from evalkit.providers.call import FailureKind
from evalkit.replay.retry import FINAL_KINDS

__all__ = ["CellFailure", "EndpointSummary", "RunSummary", "Tally"]

MOST_FAILURES = 100


@dataclass(frozen=True, slots=True)
class CellFailure:
    """A cell that got no reply: why, and after how many attempts of this run at its last step."""

    item: str
    candidate: str
    sample: int
    kind: FailureKind
    message: str
    attempts: int


@dataclass(frozen=True, slots=True)
class EndpointSummary:
    """Calls in flight to one endpoint: `peak` at most; their limit was `highest` at most, and `final` at the end.

    `slowed` is how often the limit was halved because the endpoint said 429, `lowest` what that left at least
    (None: it was not halved).
    """

    peak: int
    lowest: int | None
    highest: int
    final: int
    slowed: int


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The end of a run. Counts are of cells unless their name says otherwise.

    `cells` is the size of the plan. `replied` have the reply of their last step, of which `from_ledger` needed no
    call in this run. `failed` counts the others that were tried, by kind; `final` of them are failures that no
    later run tries anew. The rest was not reached. `calls` and `attempts` are of this run: a call is a request,
    an attempt one time that it was sent. `spent_low_usd` to `spent_high_usd` is what this run was charged:
    `possibly_billed` attempts may or may not be; high is None where one of them has no bound. `charged_usd` is
    what counts against a cap, all runs of the folder together (None: not known). `ended` is `done`, or why the run
    stopped.
    """

    run: str
    ended: str
    cells: int
    replied: int
    from_ledger: int
    failed: Mapping[FailureKind, int]
    final: int
    calls: int
    attempts: int
    attempts_failed: Mapping[FailureKind, int]
    spent_low_usd: Decimal
    spent_high_usd: Decimal | None
    possibly_billed: int
    unpriced: Mapping[str, int]
    charged_usd: Decimal | None
    possibly_paid_twice: int
    over_bound: int
    endpoints: Mapping[str, EndpointSummary]
    stopped: Mapping[str, str]
    failures: tuple[CellFailure, ...]
    elapsed_s: float

    @property
    def unreached(self) -> int:
        """Cells that were neither answered nor failed when the run ended."""
        return self.cells - self.replied - sum(self.failed.values())

    @property
    def complete(self) -> bool:
        """Every cell has a reply or a failure that no later run would change."""
        return self.replied + self.final == self.cells

    @property
    def exit_code(self) -> int:
        """0 where the run is complete, else 4: the same command resumes it."""
        return 0 if self.complete else 4


@dataclass(slots=True)
class Tally:
    """The counts of a run at work. Each is of something that is on disk."""

    cells: int | None = None
    replied: int = 0
    from_ledger: int = 0
    failed: Counter[FailureKind] = field(default_factory=Counter)
    calls: int = 0
    attempts: int = 0
    attempts_failed: Counter[FailureKind] = field(default_factory=Counter)
    spent_low_usd: Decimal = Decimal(0)
    possible_usd: Decimal = Decimal(0)
    unbounded: int = 0
    possibly_billed: int = 0
    unpriced: Counter[str] = field(default_factory=Counter)
    possibly_paid_twice: int = 0
    over_bound: int = 0
    in_flight: int = 0
    failures: list[CellFailure] = field(default_factory=list)

    def fail(self, failure: CellFailure) -> None:
        """Count a cell without a reply; the first hundred are kept."""
        self.failed[failure.kind] += 1
        if len(self.failures) < MOST_FAILURES:
            self.failures.append(failure)

    @property
    def spent_high_usd(self) -> Decimal | None:
        """The most that this run was charged; None where an attempt has no bound."""
        return None if self.unbounded else self.spent_low_usd + self.possible_usd

    @property
    def final(self) -> int:
        """Cells that failed for good."""
        return sum(self.failed[kind] for kind in FINAL_KINDS)

    @property
    def settled(self) -> int:
        """Cells with a reply or a failure."""
        return self.replied + sum(self.failed.values())

    def summary(
        self,
        *,
        run: str,
        ended: str | None,
        charged_usd: Decimal | None,
        elapsed_s: float,
        endpoints: Mapping[str, EndpointSummary] | None = None,
        stopped: Mapping[str, str] | None = None,
    ) -> RunSummary:
        """The end of the run that was counted here; `ended` None: it did all there was to do."""
        return RunSummary(
            run=run,
            ended=ended or "done",
            cells=self.settled if self.cells is None else self.cells,
            replied=self.replied,
            from_ledger=self.from_ledger,
            failed=dict(self.failed),
            final=self.final,
            calls=self.calls,
            attempts=self.attempts,
            attempts_failed=dict(self.attempts_failed),
            spent_low_usd=self.spent_low_usd,
            spent_high_usd=self.spent_high_usd,
            possibly_billed=self.possibly_billed,
            unpriced=dict(self.unpriced),
            charged_usd=charged_usd,
            possibly_paid_twice=self.possibly_paid_twice,
            over_bound=self.over_bound,
            endpoints=dict(endpoints or {}),
            stopped=dict(stopped or {}),
            failures=tuple(self.failures),
            elapsed_s=elapsed_s,
        )
