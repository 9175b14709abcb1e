"""Model files: what is not ours is refused by its name before anything is built, and nothing in it is executed."""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import skops.io as sio
from router_cases import planted
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from evalkit.errors import InputError
from evalkit.routers.fit import fit_router
from evalkit.routers.folder import read_router, router_files
from evalkit.routers.model_file import model_bytes, read_models
from evalkit.routers.options import options_of


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    router = fit_router(planted(60, 1), options_of("classifier", {"features": ["words"]}), seed=0)
    return router_files(router)


def rewritten(data: bytes, change: Callable[[dict[str, Any]], Any], **parts: bytes) -> bytes:
    """The file with another schema, and parts beside it."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        schema = json.loads(old.read("schema.json"))
        changed = change(schema)
        schema = schema if changed is None else changed
        for name in old.namelist():
            if name != "schema.json" and name not in parts:
                new.writestr(name, old.read(name))
        for name, content in parts.items():
            new.writestr(name, content)
        new.writestr("schema.json", json.dumps(schema))
    return out.getvalue()


def node(loader: str, kind: str, **more: Any) -> dict[str, Any]:
    module, _, name = kind.rpartition(".")
    return {"__loader__": loader, "__module__": module, "__class__": name, **more}


EMPTY = node("DictNode", "builtins.dict", content={}, key_types=node("ListNode", "builtins.list", content=[]))
COMMAND = node("JsonNode", "builtins.str", content='"touch /tmp/evalkit-was-here"', is_json=True)
HOSTILE: dict[str, dict[str, Any]] = {
    "posix.system": node("FunctionNode", "posix.system"),
    "builtins.eval": node("TypeNode", "builtins.eval"),
    "subprocess.Popen": node("ObjectNode", "subprocess.Popen", content=EMPTY),
    "functools.partial": node("PartialNode", "functools.partial", content={
        "func": node("FunctionNode", "os.system"), "args": EMPTY, "kwds": EMPTY, "namespace": EMPTY}),
    "operator.methodcaller": node("OperatorFuncNode", "operator.methodcaller", attrs=COMMAND),
    "evalkit.cli.app.main": node("FunctionNode", "evalkit.cli.app.main"),
    "evalkit.errors.InputError": node("ObjectNode", "evalkit.errors.InputError", content=EMPTY),
    "evalkit.routers.estimators.clone": node("ObjectNode", "evalkit.routers.estimators.clone", content=EMPTY),
    "builtins.str": node("MethodNode", "builtins.str", content={"func": "format", "obj": COMMAND}),
    "sklearn.utils.Bunch": node("ObjectNode", "sklearn.utils.Bunch", content=EMPTY),
    "sklearn.pipeline.make_pipeline": node("ObjectNode", "sklearn.pipeline.make_pipeline", content=EMPTY),
    "sklearn.ensemble._forest.RandomForestClassifier":
        node("ObjectNode", "sklearn.ensemble._forest.RandomForestClassifier", content=EMPTY),
    "sklearn.tree._tree.Tree": node("ReduceNode", "sklearn.tree._tree.Tree", args=EMPTY, content=EMPTY),
    "datetime.timezone": node("ConstructorFromReduceNode", "datetime.timezone", content=EMPTY),
    "None.None": {"__loader__": "ObjectNode"},
}  # fmt: skip


@pytest.mark.parametrize("kind", list(HOSTILE))
def test_what_is_not_ours_is_refused_by_name(files: dict[str, bytes], kind: str) -> None:
    def plant(schema: dict[str, Any]) -> None:
        schema["content"].append(HOSTILE[kind])

    with pytest.raises(InputError, match="nothing of it was loaded") as raised:
        read_models(rewritten(files["model.skops"], plant), "model.skops")
    assert kind in str(raised.value)
    assert not Path("/tmp/evalkit-was-here").exists()


def test_it_is_found_wherever_it_hides(files: dict[str, bytes]) -> None:
    def plant(value: Any, depth: int = 0) -> bool:
        """Put it in the deepest place there is."""
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            if plant(inner, depth + 1):
                return True
        if isinstance(value, dict) and value.get("__loader__") == "DictNode" and depth > 8:
            value["content"]["estimator"] = HOSTILE["posix.system"]
            return True
        return False

    with pytest.raises(InputError, match=r"posix\.system"):
        read_models(rewritten(files["model.skops"], lambda schema: None if plant(schema) else []), "model.skops")


def test_a_pickle_is_not_read(files: dict[str, bytes], tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "was-here",))

    held = io.BytesIO()
    np.save(held, np.array([Evil()], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(io.BytesIO(files["model.skops"])) as parts:
        array = next(name for name in parts.namelist() if name.endswith(".npy"))
    for data in (
        pickle.dumps(Evil()),
        rewritten(files["model.skops"], lambda schema: None, **{array: held.getvalue()}),
        rewritten(files["model.skops"], lambda schema: None, **{array: pickle.dumps(Evil())}),
    ):
        with pytest.raises(InputError, match="is no fitted router"):
            read_models(data, "model.skops")
    assert not (tmp_path / "was-here").exists()


@pytest.mark.parametrize(
    "data",
    [b"", b"PK\x03\x04", b"not a zip", b"PK\x05\x06" + b"\0" * 18],
    ids=["empty", "head", "text", "no parts"],
)
def test_what_is_no_file_of_ours(data: bytes) -> None:
    with pytest.raises(InputError, match=r"model\.skops: is no fitted router"):
        read_models(data, "model.skops")


@pytest.mark.parametrize(
    "change",
    [
        lambda schema: schema | {"protocol": 0},
        lambda schema: schema["content"].clear(),
        lambda schema: [],
        lambda schema: schema | {"content": 7},
        lambda schema: {"protocol": schema["protocol"]},
        lambda schema: json.loads("[" * 900 + "]" * 900),
    ],
    ids=["old protocol", "no models", "a list", "no content", "nothing", "nested"],
)
def test_a_changed_schema(files: dict[str, bytes], change: Any) -> None:
    with pytest.raises(InputError, match=r"model\.skops: is no fitted router"):
        read_models(rewritten(files["model.skops"], change), "model.skops")


def test_every_cut_of_a_file_is_refused(files: dict[str, bytes]) -> None:
    data = files["model.skops"]
    for end in range(0, len(data) - 1, len(data) // 40):
        with pytest.raises(InputError, match="is no fitted router"):
            read_models(data[:end], "model.skops")


def test_a_bomb_is_not_unpacked(files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    data = io.BytesIO(files["model.skops"])
    with zipfile.ZipFile(data, "a", zipfile.ZIP_DEFLATED) as parts:
        parts.writestr("big", b"\0" * 3_000_000)
    monkeypatch.setattr("evalkit.routers.model_file.MOST_BYTES", 2_000_000)
    with pytest.raises(InputError, match="unpacks to more than"):
        read_models(data.getvalue(), "model.skops")


def test_a_function_or_a_forest_of_the_user_is_not_kept() -> None:
    for estimator, name in (
        (make_pipeline(FunctionTransformer(np.log1p)), "numpy.log1p"),
        (RandomForestClassifier(), "RandomForestClassifier"),
    ):
        with pytest.raises(InputError, match="which is not kept in a file") as raised:
            model_bytes([estimator])
        assert name in str(raised.value)


def test_ours_is_read_by_skops_alone_too(files: dict[str, bytes]) -> None:
    """It is a file of skops like any other: the same types, the same arrays."""
    data = files["model.skops"]
    types = sio.get_untrusted_types(data=data)
    assert all(name.startswith("evalkit.routers.") for name in types)
    assert len(sio.loads(data, trusted=types)) == 1


# The folder


def write(folder: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


@pytest.mark.parametrize("name", ["router.json", "model.skops", "training.jsonl"])
def test_a_changed_or_missing_file_is_named(files: dict[str, bytes], tmp_path: Path, name: str) -> None:
    folder = write(tmp_path, files)
    data = bytearray(files[name])
    data[len(data) // 2] ^= 1
    (folder / name).write_bytes(bytes(data))
    if name != "router.json":
        with pytest.raises(InputError, match="it was changed or damaged") as raised:
            read_router(folder)
        assert name in str(raised.value)
    (folder / name).unlink()
    with pytest.raises(InputError) as raised:
        read_router(folder)
    assert name in str(raised.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("schema", "evalkit.router/9"),
        ("kind", "forest"),
        ("trained_on", "these_items"),
        ("trained_on", "cross_fitted"),
        ("tiers", ["cheap"]),
        ("tiers", "cheap"),
        ("options", {"estimator": "forest"}),
        ("options", []),
        ("seed", -1),
        ("seed", 1e400),
        ("models", 2),
        ("models", True),
        ("training", {}),
        ("training", {"items": 59, "counts": {"cheap": 1, "strong": 1, "unsolvable": 0}}),
        ("training", {"items": 60, "counts": {"cheap": -1, "strong": 1, "unsolvable": 0}}),
        ("training", {"items": 60, "counts": {"cheap": 30, "strong": 29, "unsolvable": 0}}),
        ("files", {}),
        ("versions", None),
    ],
)
def test_every_field_of_the_manifest_is_checked(
    files: dict[str, bytes], tmp_path: Path, key: str, value: object
) -> None:
    manifest = json.loads(files["router.json"]) | {key: value}
    folder = write(tmp_path, files | {"router.json": json.dumps(manifest).encode()})
    with pytest.raises(InputError) as raised:
        read_router(folder)
    assert all(fault.file and fault.file.startswith(str(folder)) for fault in raised.value.faults)


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b"[" * 100_000, b"\xff\xfe{}", b"null"])
def test_a_manifest_that_is_no_object(files: dict[str, bytes], tmp_path: Path, text: bytes) -> None:
    with pytest.raises(InputError, match=r"router\.json"):
        read_router(write(tmp_path, files | {"router.json": text}))


def test_a_training_item_that_hides_its_prompt_is_found(files: dict[str, bytes], tmp_path: Path) -> None:
    """Whoever cuts an item out of what the router saw, to hide a leak, has to change the manifest too."""
    lines = files["training.jsonl"].splitlines(keepends=True)
    with pytest.raises(InputError, match=r"training\.jsonl: is not the file that router\.json was written with"):
        read_router(write(tmp_path, files | {"training.jsonl": b"".join(lines[1:])}))


def test_another_version_is_a_notice(files: dict[str, bytes], tmp_path: Path) -> None:
    manifest = json.loads(files["router.json"])
    manifest["versions"]["scikit-learn"] = "1.0"
    router = read_router(write(tmp_path, files | {"router.json": json.dumps(manifest).encode()}))
    assert len(router.fitted.notices) == 1
    assert "was fitted with scikit-learn 1.0 (here" in router.fitted.notices[0]


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such folder of a fitted router"):
        read_router(tmp_path / "none")


def rehashed(folder: Path, files: dict[str, bytes], model: bytes) -> Path:
    """The folder of a router with another model, whose hash its manifest has."""
    folder.mkdir()
    manifest = json.loads(files["router.json"])
    manifest["files"]["model.skops"] = hashlib.sha256(model).hexdigest()
    for name, data in (files | {"model.skops": model, "router.json": json.dumps(manifest).encode()}).items():
        (folder / name).write_bytes(data)
    return folder


@pytest.mark.parametrize(("name", "value"), [("input", "filename"), ("memory", "/tmp/cache")])
def test_a_model_reads_no_file_of_this_machine(files: dict[str, bytes], name: str, value: str) -> None:
    """scikit-learn takes texts for names of files where a vectorizer says so; a pipeline may keep a folder."""

    def plant(schema: Any) -> int:
        inner = list(schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ())
        found = 0
        if _has_settings(schema) and name in schema["content"]:
            schema["content"][name] = node("JsonNode", "builtins.str", content=json.dumps(value), is_json=True)
            found = 1
        return found + sum(map(plant, inner))

    counts = []
    broken = rewritten(files["model.skops"], lambda schema: counts.append(plant(schema)))
    assert counts[0] > 0
    with pytest.raises(InputError, match=f"with another {name}.*nothing of it was loaded"):
        read_models(broken, "model.skops")


def test_a_loader_that_is_no_name_is_refused(files: dict[str, bytes]) -> None:
    for loader in (["ObjectNode"], {"a": 1}, None, 7):
        hidden = {"__loader__": loader, "__module__": "posix", "__class__": "system"}
        broken = rewritten(files["model.skops"], partial(_appended, hidden))
        with pytest.raises(InputError, match="nothing of it was loaded"):
            read_models(broken, "model.skops")


def test_a_model_that_breaks_while_it_scores_is_one_message(files: dict[str, bytes], tmp_path: Path) -> None:
    """Every setting in turn is taken out of a model whose hashes are right."""
    schema = json.loads(zipfile.ZipFile(io.BytesIO(files["model.skops"])).read("schema.json"))

    def settings(value: Any) -> list[tuple[dict[str, Any], str]]:
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        own = [(value["content"], key) for key in value["content"]] if _has_settings(value) else []
        return [*own, *(found for one in inner for found in settings(one))]

    said = set()
    places = settings(schema)
    for k in range(0, len(places), 3):
        changed = json.loads(json.dumps(schema))
        where, key = settings(changed)[k]
        del where[key]
        model = rewritten(files["model.skops"], partial(_instead, changed))
        try:
            read_router(rehashed(tmp_path / str(k), files, model)).fitted.score(planted(20, 2))
        except InputError as error:
            said.add("cannot score" in str(error))
    assert True in said


def _appended(node: dict[str, Any], schema: dict[str, Any]) -> None:
    schema["content"].append(node)


def _instead(changed: dict[str, Any], _: dict[str, Any]) -> dict[str, Any]:
    return changed


def _has_settings(value: Any) -> bool:
    return isinstance(value, dict) and value.get("__loader__") == "DictNode" and isinstance(value["content"], dict)
