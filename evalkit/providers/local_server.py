"""A llama.cpp server for one local model, on a free loopback port of this process."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalkit.errors import Fault, InputError

__all__ = ["LocalModel", "start_server"]


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


def start_server(
    model: LocalModel, folder: Path, *, threads: int, slots: int, context_tokens: int, cache_prompt: bool = False
) -> Any:
    """A server for `model`'s file in `folder`; it stops when the object goes.

    Each of the `slots` parallel requests has `context_tokens` of its own. `cache_prompt` is what a request gets
    that does not say. Set OMP_WAIT_POLICY=passive before: threads that wait busily starve each other on a loaded
    machine. Raises `InputError` where the file is missing or is another one.
    """
    path = folder / model.file
    found = None
    if path.is_file():
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != model.sha256:
        what = "is not there" if found is None else f"has sha256 {found}"
        fix = f"put the file of {model.origin} with sha256 {model.sha256} there"
        raise InputError(Fault(what, fix, file=str(path)))
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.model_alias = {model.served_name}
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.n_ctx, params.n_parallel = context_tokens * slots, slots
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.cache_prompt, params.ui, params.verbosity = cache_prompt, False, 1
    return xllamacpp.Server(params)
