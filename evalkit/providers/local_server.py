"""A llama.cpp server for one local model, on a free loopback port: of this process, or of one of its own.

`python -m evalkit.providers.local_server` reads its settings as one line of JSON, writes its port as another, and
ends when its input ends, so that it never outlives who started it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalkit.errors import Fault, InputError

__all__ = ["LocalModel", "check_model", "main", "start_server"]


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A local model: `name` is what study, prices and outcomes call it; `file` is its GGUF file.

    `sha256` (hex) identifies the weights, `origin` says in words where they come from.
    """

    name: str
    file: str
    sha256: str
    origin: str

    @property
    def served_name(self) -> str:
        """What the server calls it: the name behind the first slash."""
        return self.name.partition("/")[2]


def check_model(model: LocalModel, folder: Path) -> Path:
    """The path of `model`'s file in `folder`.

    Raises `InputError` where the package that runs it is missing, or the file is missing or another one.
    """
    path = folder / model.file
    if importlib.util.find_spec("xllamacpp") is None:
        what = f"the model {model.name} needs a package that is not installed"
        raise InputError(Fault(what, "pip install 'evalkit[local]'"))
    found = None
    if path.is_file():
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != model.sha256:
        what = "is not there" if found is None else f"has sha256 {found}"
        fix = f"put the file of {model.origin or model.name} with sha256 {model.sha256} there"
        raise InputError(Fault(what, fix, file=str(path)))
    return path


def start_server(
    model: LocalModel, folder: Path, *, threads: int, slots: int, context_tokens: int, cache_prompt: bool = False
) -> Any:
    """A server for `model`'s file in `folder`; it stops when the object goes.

    Each of the `slots` parallel requests has `context_tokens` of its own. `cache_prompt` is what a request gets
    that does not say. Set OMP_WAIT_POLICY=passive before: threads that wait busily starve each other on a loaded
    machine. Raises `InputError` as `check_model` does.
    """
    path = check_model(model, folder)
    return _server(path, model.served_name, threads, slots, context_tokens, cache_prompt=cache_prompt)


def _server(
    path: Path,
    served_name: str,
    threads: int,
    slots: int,
    context_tokens: int,
    *,
    cache_prompt: bool = False,
    api_key: str | None = None,
) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.model_alias = {served_name}
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.n_ctx, params.n_parallel = context_tokens * slots, slots
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.cache_prompt, params.ui, params.verbosity = cache_prompt, False, 1
    if api_key is not None:
        params.api_keys = [api_key]
    return xllamacpp.Server(params)


def main() -> None:
    """Serve until the input ends; the settings come on its first line."""
    settings = json.loads(sys.stdin.readline())
    os.environ["OMP_WAIT_POLICY"] = "passive"
    server = _server(
        Path(settings["path"]),
        settings["served_name"],
        settings["threads"],
        settings["slots"],
        settings["context_tokens"],
        api_key=settings["api_key"],
    )
    print(json.dumps({"url": server.listening_address}), flush=True)
    sys.stdin.read()
    os._exit(0)  # nothing to save, and threads in the middle of a token need not be waited for


if __name__ == "__main__":
    main()
