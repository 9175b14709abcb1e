"""What a sign-off computes with: a finished run as facts, and a gate with its place. Pure values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalkit.gates import Gate, Status
from evalkit.routing.paired_walk import PairedWalk

__all__ = ["STATE", "Paired", "RunFacts", "SignoffGate", "gate_of_row"]

Document = Mapping[str, Any]

STATE = {
    Status.CERTIFIED: "pass",
    Status.ESTIMATE: "pass",
    Status.INSUFFICIENT: "open",
    Status.NOT_STATABLE: "open",
    Status.VIOLATED: "fail",
    Status.INFEASIBLE: "fail",
}
"""What a status means to people. Open blocks."""


@dataclass(frozen=True)
class Paired:
    """A run against a baseline on the same items.

    differences (n,): candidate's share of passes minus the baseline's, unanswered counted as failed, in [-1, 1].
    weight (n,) of traffic; group (n,) codes of conversations, None where every item is its own.
    walk: of a threshold that was searched for on these items, the path to it. approximate: why no bound on this
    pair is a certificate. baseline_of: from how many the baseline was chosen on these items, each of which counts.
    """

    differences: NDArray[np.float64]
    weight: NDArray[np.float64]
    group: NDArray[np.int64] | None
    walk: PairedWalk | None = None
    approximate: str | None = None
    baseline_of: int = 1


@dataclass(frozen=True)
class RunFacts:
    """One run of a sign-off. Hashes are SHA-256 in hex of the files of its folder.

    id: a folder name that is unique in the sign-off; kind: route-sweep or reasoning-budget; result: result.json
    evidence: "recomputed" where every figure was computed again from the bundle and is the same, else why not
    paired: by baseline (an arm's name, or "today"), where both passed or failed the same items
    paired_missing: by baseline, why there is no pairing
    hidden_in: tables whose copies in the bundle lost keys or passwords, so that their hashes are recorded only
    """

    id: str
    kind: str
    result: Document
    hashes: Mapping[str, str | None]
    evidence: str
    paired: Mapping[str, Paired] = field(default_factory=dict)
    paired_missing: Mapping[str, str] = field(default_factory=dict)
    today: Document | None = None
    hidden_in: tuple[str, ...] = ()

    @property
    def is_routing(self) -> bool:
        """The run judged a router; else a ladder of arms."""
        return self.kind == "route-sweep"

    @property
    def study(self) -> str:
        """The name of its study."""
        return str(self.result["study"])

    @property
    def provenance(self) -> Document:
        """Where its numbers come from."""
        found = self.result["provenance"]
        return found if isinstance(found, Mapping) else {}

    @property
    def classes(self) -> frozenset[str]:
        """The risk classes of its study."""
        return frozenset(str(row["name"]) for row in self.result["risk_classes"])

    @property
    def fixed(self) -> bool:
        """What it judged was fixed in advance: a threshold or a policy, not searched for."""
        return self.is_routing and self.result.get("judged") is not None

    @property
    def shown(self) -> Document:
        """The operating point or arm that its gates are about."""
        if self.is_routing:
            found = self.result.get("shown")
        else:
            found = next((arm for arm in self.result["arms"] if arm["name"] == self.result.get("shown")), None)
        return found if isinstance(found, Mapping) else {}

    @property
    def selects(self) -> bool:
        """It names something to release."""
        return self.result.get("selected") is not None or self.fixed

    @property
    def cost_kind(self) -> str:
        """Whether its costs are measured, cited or assumed."""
        numbers = self.provenance.get("numbers")
        found = numbers.get("costs") if isinstance(numbers, Mapping) else None
        return found if found in {"measured", "cited", "assumed"} else "measured"


@dataclass(frozen=True)
class SignoffGate:
    """A gate with its place in the sign-off. run None: about no single run. kind: measured, cited, assumed."""

    id: str
    run: str | None
    gate: Gate
    kind: str = "measured"

    @property
    def state(self) -> str:
        """pass, open or fail."""
        return STATE[self.gate.status]

    @property
    def risk(self) -> str | None:
        """The risk class that it is about."""
        head, _, tail = self.gate.name.partition(":")
        return tail or None if head in {"under_route", "risk_failure"} else None

    def as_json(self) -> dict[str, Any]:
        """The row of signoff.json."""
        gate = self.gate
        row: dict[str, Any] = {"id": self.id, "run": self.run, "name": gate.name}
        if self.risk is not None:
            row["risk"] = self.risk
        row |= {
            "label": gate.label,
            "limit": gate.limit,
            "limit_is": gate.limit_is,
            "unit": gate.unit,
            "observed": gate.observed,
            "bound": gate.bound,
            "k": gate.k,
            "n": gate.n,
            "n_is": gate.n_is,
            "status": gate.status.value,
            "state": self.state,
            "missing_n": gate.missing_n,
            "more_helps": self.state == "open" and bool(gate.missing_n),
            "message": gate.message,
            "basis": gate.basis,
            "confidence": gate.confidence,
            "kind": self.kind,
        }
        if gate.basis == "fact":
            row |= {f"{key}_reason": "does not apply" for key in ("observed", "bound") if row[key] is None}
        return row


def gate_of_row(row: Document) -> Gate:
    """A gate as result.json has it. ValueError for an unknown status; KeyError where a field is missing."""
    side = "upper_bound" if row["limit_is"] == "max" else "lower_bound"
    return Gate(
        name=str(row["name"]),
        label=str(row["label"]),
        limit=row["limit"],
        limit_is=str(row["limit_is"]),
        unit=str(row["unit"]),
        observed=row["observed"],
        bound=row[side],
        k=row["k"],
        n=row["n"],
        n_is=str(row["n_is"]),
        status=Status(row["status"]),
        missing_n=row["missing_n"],
        message=str(row["message"]),
        basis=str(row["basis"]),
        confidence=row["confidence"],
    )
