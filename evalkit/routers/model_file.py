"""Fitted models as bytes and back, without pickle: skops, and nothing in a file but what is listed here.

Before anything is built from a file, every node of it is held against a list of loaders and types: plain
containers, numbers, arrays, estimators of scikit-learn that hold no code of others, and those of this package.
Functions, methods, partials, reduced objects and trees are refused, so no name in a file is ever called. Arrays
are read with `allow_pickle=False`.

The same models give the same bytes: skops names objects by where they lie in memory; here they are counted.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any

from evalkit.errors import Fault, InputError, visible
from evalkit.tabular.names import quoted

__all__ = ["model_bytes", "read_models"]

MOST_BYTES = 1_000_000_000
"""Of all parts of a model file when they are unpacked."""
MOST_PARTS = 100_000
_SCHEMA = "schema.json"
_DATE = (1980, 1, 1, 0, 0, 0)

_OWN = frozenset(
    f"evalkit.routers.{name}"
    for name in (
        "embeddings.StoredEmbedding",
        "embeddings.WordLlamaEmbedding",
        "estimators.CategoryLookup",
        "estimators.GroupCalibrated",
        "estimators.NearestNeighbours",
        "estimators.OrdinalTiers",
        "estimators.TextLength",
    )
)
_SKLEARN = (
    "sklearn.calibration.", "sklearn.compose.", "sklearn.decomposition.", "sklearn.discriminant_analysis.",
    "sklearn.dummy.", "sklearn.feature_extraction.", "sklearn.feature_selection.", "sklearn.impute.",
    "sklearn.isotonic.", "sklearn.linear_model.", "sklearn.multiclass.", "sklearn.naive_bayes.",
    "sklearn.pipeline.", "sklearn.preprocessing.", "sklearn.random_projection.",
)  # fmt: skip
_PLAIN = {
    "DictNode": {"builtins.dict"},
    "ListNode": {"builtins.list"},
    "TupleNode": {"builtins.tuple"},
    "SetNode": {"builtins.set"},
    "SliceNode": {"builtins.slice"},
    "JsonNode": {"builtins.str"},
    "SparseMatrixNode": {f"scipy.sparse.{m}.{k}_{s}" for m, k in (("_csr", "csr"), ("_csc", "csc"))
                         for s in ("matrix", "array")},
    "TypeNode": {"builtins.str", "builtins.int", "builtins.float", "builtins.bool", "numpy.float64",
                 "numpy.float32", "numpy.int64", "numpy.int32"},
}  # fmt: skip
_NUMPY = frozenset(
    f"numpy.{name}"
    for name in ("ndarray", "float64", "float32", "int64", "int32", "int16", "int8", "uint8", "bool", "bool_")
)


_SETTINGS = {"input": '"content"', "memory": "null"}
"""What these settings have to be, as skops writes them: else texts name files to read, or a folder is used."""


def model_bytes(models: Sequence[Any]) -> bytes:
    """The models as a file. Raises `InputError` where one holds what no file of ours may hold."""
    sio = _skops()
    try:
        raw = sio.dumps(list(models))
    except Exception as error:  # noqa: BLE001 (whatever a user's estimator holds)
        what = f"the model cannot be kept: {type(error).__name__}: {visible(error)}"
        raise InputError(Fault(what, "use estimators of scikit-learn, or kind: python")) from None
    with zipfile.ZipFile(io.BytesIO(raw)) as parts:
        schema = json.loads(parts.read(_SCHEMA))
        refused = _refused(schema)
        if refused:
            what = f"the model holds {', '.join(map(quoted, refused[:10]))}, which is not kept in a file"
            raise InputError(Fault(what, "use estimators of scikit-learn, or kind: python"))
        names = _counted(schema)
        content = {new: parts.read(old) for old, new in names.items()}
    content[_SCHEMA] = json.dumps(schema, sort_keys=False, separators=(",", ":")).encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as parts:
        for name, data in content.items():
            entry = zipfile.ZipInfo(name, _DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o600 << 16
            parts.writestr(entry, data)
    return out.getvalue()


def read_models(data: bytes, file: str) -> list[Any]:
    """The models in a file. Raises `InputError` where it is no model file, or names a type that is not listed."""
    sio = _skops()
    try:
        schema = _schema(data, file)
        refused = _refused(schema)
    except RecursionError:
        raise _broken(file, "it is nested too deeply") from None
    if schema.get("protocol") != _protocol():
        raise _broken(file, f"it is of protocol {visible(schema.get('protocol'))}, and {_protocol()} is read")
    if refused:
        what = (
            f"holds {', '.join(map(quoted, refused[:10]))}, which no fitted router has; nothing of it was loaded"
        )
        raise InputError(Fault(what, "fit the router again with evalkit router fit", file=file))
    try:
        found = sio.loads(data, trusted=sorted(_OWN))
    except MemoryError:
        raise _broken(file, "it is too large") from None
    except Exception as error:  # noqa: BLE001 (a damaged file breaks the reader anywhere)
        raise _broken(file, f"{type(error).__name__}: {visible(error)}") from None
    if not isinstance(found, list) or not found or not all(hasattr(m, "predict_proba") for m in found):
        raise _broken(file, "it holds no classifiers")
    return found


def _schema(data: bytes, file: str) -> dict[str, Any]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as parts:
            entries = parts.infolist()
            if len(entries) > MOST_PARTS or sum(entry.file_size for entry in entries) > MOST_BYTES:
                raise _broken(file, f"it unpacks to more than {MOST_BYTES:,} bytes or {MOST_PARTS:,} parts")
            if len({entry.filename for entry in entries}) < len(entries):
                raise _broken(file, "two parts of it have one name")
            schema = json.loads(parts.read(_SCHEMA))
    except (
        zipfile.BadZipFile,
        KeyError,
        ValueError,
        OSError,
        EOFError,
        NotImplementedError,
        RuntimeError,
    ) as error:
        if isinstance(error, RecursionError):
            raise
        raise _broken(file, f"{type(error).__name__}: {visible(error)}") from None
    if not isinstance(schema, dict):
        raise _broken(file, "its schema is no object")
    return schema


def _broken(file: str, why: str) -> InputError:
    return InputError(Fault(f"is no fitted router: {why}", "fit it again with evalkit router fit", file=file))


def _refused(schema: Any) -> list[str]:
    """The types in a file that are on no list, with their loader where that is what is refused."""
    found: dict[str, None] = {}
    for node in _nodes(schema):
        loader, kind = str(node.get("__loader__")), f"{node.get('__module__')}.{node.get('__class__')}"
        if loader == "ObjectNode":
            sound = kind in _OWN or (kind.startswith(_SKLEARN) and kind in _estimators())
        elif loader == "NdArrayNode":
            sound = kind in _NUMPY
        elif loader == "CachedNode":
            sound = True  # points to a node that is looked at where it stands
        else:
            sound = kind in _PLAIN.get(loader, ())
        for name in _settings(node) if loader == "ObjectNode" else ():
            found[f"{kind} with another {name}"] = None
        if not sound:
            found[kind if loader in {"ObjectNode", "FunctionNode", "TypeNode"} else f"{kind} ({loader})"] = None
    return list(found)


def _settings(node: dict[str, Any]) -> list[str]:
    """The settings of an estimator that are not what they have to be."""
    content = node.get("content")
    own = content.get("content") if isinstance(content, dict) else None
    if not isinstance(own, dict):
        return []
    given = {name: own[name] for name in _SETTINGS if name in own}
    return [name for name, v in given.items() if not isinstance(v, dict) or v.get("content") != _SETTINGS[name]]


def _estimators() -> frozenset[str]:
    """The estimators of scikit-learn by their full names."""
    from skops.io import _trusted_types

    return frozenset(_trusted_types.SKLEARN_ESTIMATOR_TYPE_NAMES)


def _protocol() -> int:
    """The layout that is read: loaders of older ones are others under the same names."""
    from skops.io._protocol import PROTOCOL

    return int(PROTOCOL)


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Every node, that is every object that names a loader, a class or a module."""
    if isinstance(value, dict):
        if {"__loader__", "__class__", "__module__"} & value.keys():
            yield value
        for inner in value.values():
            yield from _nodes(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _nodes(inner)


def _counted(schema: Any) -> dict[str, str]:
    """Number objects and parts in the order in which they stand; the parts by their old and new names."""
    ids: dict[Any, int] = {}
    names: dict[str, str] = {}
    for node in _nodes(schema):
        if "__id__" in node:
            node["__id__"] = ids.setdefault(node["__id__"], len(ids) + 1)
        if isinstance(node.get("file"), str):
            old = node["file"]
            new = names.setdefault(old, f"{len(names)}.{old.rpartition('.')[2]}")
            node["file"] = new
        content = node.get("content")
        if isinstance(content, dict) and "_stop_words_id" in content:
            content["_stop_words_id"]["content"] = "0"  # scikit-learn remembers where a list lay in memory
    return names


def _skops() -> Any:
    try:
        import skops.io
    except ImportError:
        what = "fitted routers are kept by the package skops, which is not installed"
        raise InputError(Fault(what, 'install it: pip install "evalkit[router]"')) from None
    return skops.io
