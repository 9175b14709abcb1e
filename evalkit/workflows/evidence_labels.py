"""Labels of the hub for a bundle: their parsed records, which read back are the same labels."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalkit.errors import InputError
from evalkit.labels.labelset import LabelSet
from evalkit.labels.read import read_labels
from evalkit.tabular.fingerprint import canonical_json
from evalkit.workflows.evidence_format import LABELS

__all__ = ["labels_jsonl"]


def labels_jsonl(labels: LabelSet, columns: Mapping[str, str]) -> bytes | None:
    """All records as JSON lines in ASCII, one an item in label order, under the names of columns that the study
    maps (`columns`: evalkit's name to the dataset's), so that it reads them as it stands.

    None where they do not read back with the fingerprint that they have: a copy that is not the same proves
    nothing. So for labels of which some were left out after reading.
    """
    content = b"".join(_line(labels, columns, i) for i in range(len(labels)))
    with tempfile.TemporaryDirectory(prefix="evalkit-") as folder:
        path = Path(folder) / LABELS
        path.write_bytes(content)
        try:
            again = read_labels(
                path,
                tiers=labels.tiers,
                risk_classes=labels.risk_classes,
                columns=dict(columns) or None,
                require_required_tier=bool((labels.required >= 0).all()) and bool(labels.tiers),
            )
        except InputError:
            return None
    return content if again.fingerprint == labels.fingerprint and again.ids == labels.ids else None


def _line(labels: LabelSet, names: Mapping[str, str], i: int) -> bytes:
    risk = int(labels.risk[i])
    weight = float(labels.weight[i])
    row: dict[str, Any] = {
        "id": labels.ids[i],
        "prompt": labels.prompts[i],
        "required_tier": labels.required_name(i),
        "risk": None if risk < 0 else labels.risk_classes[risk],
        "weight": int(weight) if weight.is_integer() and abs(weight) < 2**53 else weight,
    }
    more = {
        "category": labels.category,
        "group": labels.group,
        "reference": labels.reference,
        "messages": labels.messages,
        "labels": labels.annotations,
        "metadata": labels.metadata,
    }
    row |= {name: values[i] for name, values in more.items() if values is not None}
    kept = {names.get(name, name): value for name, value in row.items() if value is not None}
    plain = json.loads(canonical_json(kept))
    return (json.dumps(plain, ensure_ascii=True, allow_nan=False) + "\n").encode("ascii")
