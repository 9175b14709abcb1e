"""Options of the routers that evalkit fits: what a study may write, its defaults, and every fault in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any, Literal, cast

from evalkit.errors import Fault, InputError, visible
from evalkit.study.models import Router
from evalkit.tabular.names import did_you_mean, quoted

__all__ = ["EMBEDDED", "WORDLLAMA", "FitOptions", "fit_options", "options_of"]

Estimator = Literal["logistic", "lookup", "neighbours"]

_TEXT = ("words", "characters", "category", "length")
EMBEDDED = "embedding"
WORDLLAMA = "wordllama"
_FEATURES = {"classifier": _TEXT, "semantic": (EMBEDDED, "category", "length")}
_ESTIMATORS = {"classifier": ("logistic", "lookup"), "semantic": ("logistic", "neighbours")}
_DIMENSIONS = (64, 128, 256)


@dataclass(frozen=True, slots=True)
class FitOptions:
    """How a router is fitted.

    estimator: logistic (calibrated logistic regression), lookup (mean need of a category), neighbours (mean need
    of the nearest embeddings). features: what logistic regression sees. regularisation: its C, the inverse of the
    penalty. smoothing: how many items of the overall mean a category or a neighbourhood is mixed with.
    neighbours: how many. unsolvable: items that no tier gets right are no needs; `cheapest` trains on them as
    such, `leave_out` leaves them out. folds: of the cross-fitting, and of the calibration. embedding, dimensions:
    of the semantic kind; with wordllama 64, 128 or 256, else None for as many as the model gives.
    """

    kind: Literal["classifier", "semantic"]
    estimator: Estimator
    features: tuple[str, ...]
    regularisation: float = 1.0
    smoothing: float = 10.0
    neighbours: int = 50
    unsolvable: Literal["cheapest", "leave_out"] = "cheapest"
    folds: int = 5
    embedding: str = WORDLLAMA
    dimensions: int | None = 256

    def as_json(self) -> dict[str, Any]:
        """The options as plain values."""
        return {**asdict(self), "features": list(self.features)}


def fit_options(router: Router, file: str, where: str = "router") -> FitOptions:
    """The options of a `classifier` or `semantic` router. Raises `InputError` with every fault of them."""
    spec = router.spec
    assert spec is not None
    return options_of(cast(Literal["classifier", "semantic"], spec.kind), spec.options, file, where)


def options_of(
    kind: Literal["classifier", "semantic"], given: Mapping[str, object], file: str = "", where: str = "router"
) -> FitOptions:
    """The options of a kind from what a study writes, or from a manifest."""
    reader = _Reader(kind, given, file, where)
    estimator = reader.choice("estimator", _ESTIMATORS[kind], "logistic")
    default = ("category",) if estimator == "lookup" else _TEXT if kind == "classifier" else (EMBEDDED,)
    features = reader.features(default)
    if estimator == "lookup" and features != ("category",):
        reader.fault("features", "mean nothing for estimator: lookup, which goes by category", "leave them out")
    if estimator == "neighbours" and features != (EMBEDDED,):
        reader.fault("features", "mean nothing for estimator: neighbours", "leave them out")
    found = FitOptions(
        kind=kind,
        estimator=cast(Estimator, estimator),
        features=features,
        regularisation=reader.number(
            "regularisation", 1.0, lambda v: 1e-6 <= v <= 1e6, "from 0.000001 to 1000000"
        ),
        smoothing=reader.number("smoothing", 10.0, lambda v: 0 <= v <= 1e6, "from 0 to 1000000"),
        neighbours=int(reader.number("neighbours", 50, _whole(1, 10_000), "a whole number from 1 to 10000")),
        unsolvable=cast(Any, reader.choice("unsolvable", ("cheapest", "leave_out"), "cheapest")),
        folds=int(reader.number("folds", 5, _whole(2, 20), "a whole number from 2 to 20")),
        embedding=reader.text("embedding", WORDLLAMA),
        dimensions=reader.dimensions(),
    )
    reader.raise_if_any()
    return found


def _whole(low: int, high: int) -> Callable[[float], bool]:
    return lambda value: low <= value <= high and value == int(value)


class _Reader:
    """Reads one option after the other and collects the faults."""

    def __init__(self, kind: str, given: Mapping[str, object], file: str, where: str) -> None:
        self.kind, self.given, self.file, self.where = kind, given, file, where
        self.faults: list[Fault] = []
        known = [name for name in FitOptions.__slots__ if name != "kind"]
        for key in given:
            if key not in known:
                fix = f"leave it out{did_you_mean(key, known)}"
                self.fault(key, f"is no option of kind: {kind}", fix)

    def fault(self, key: str, what: str, fix: str) -> None:
        self.faults.append(Fault(what, fix, file=self.file or None, field=f"{self.where}.{key}"))

    def raise_if_any(self) -> None:
        if self.faults:
            raise InputError(self.faults)

    def choice(self, key: str, allowed: tuple[str, ...], default: str) -> str:
        value = self.given.get(key, default)
        if isinstance(value, str) and value in allowed:
            return value
        what = f"is {quoted(value)}; allowed for kind: {self.kind}: {', '.join(allowed)}"
        self.fault(key, what, "write one of them")
        return default

    def text(self, key: str, default: str) -> str:
        value = self.given.get(key, default)
        if isinstance(value, str) and value.strip():
            return value
        self.fault(key, f"is {visible(value)}, not text", f"write {default}")
        return default

    def number(self, key: str, default: float, fits: Callable[[float], bool], span: str) -> float:
        value = self.given.get(key, default)
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool) and fits(float(value)):
            return float(value)
        self.fault(key, f"is {visible(value)}, which is not {span}", f"write {span}")
        return default

    def dimensions(self) -> int | None:
        if self.given.get("embedding", WORDLLAMA) == WORDLLAMA:
            return int(self.number("dimensions", 256, lambda v: v in _DIMENSIONS, "64, 128 or 256"))
        if self.given.get("dimensions") is None:
            return None
        return int(self.number("dimensions", 256, _whole(1, 10_000), "a whole number from 1 to 10000"))

    def features(self, default: tuple[str, ...]) -> tuple[str, ...]:
        value = self.given.get("features", list(default))
        allowed = _FEATURES[self.kind]
        names = [value] if isinstance(value, str) else value
        if not isinstance(names, list | tuple) or not names or not all(n in allowed for n in names):
            what = f"is {visible(value)}; allowed for kind: {self.kind}: {', '.join(allowed)}"
            self.fault("features", what, f"write a list of them: [{', '.join(default)}]")
            return default
        if self.kind == "semantic" and EMBEDDED not in names:
            self.fault("features", "lack embedding", "add it, or write kind: classifier")
        return tuple(name for name in allowed if name in names)  # the order they are written in means nothing
