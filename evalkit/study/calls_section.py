"""The keys of a study that say how its models are called, the same for every kind of study."""

from __future__ import annotations

import re
from collections.abc import Mapping

from evalkit.errors import visible
from evalkit.study import nodes
from evalkit.study.calls import CallOptions, Calls, Weights
from evalkit.study.fields import Section, shown
from evalkit.study.nodes import Scalar, join_path
from evalkit.study.sources import Folder, read_file

__all__ = ["CALL_KEYS", "read_calls", "read_secrets"]

CALL_KEYS = ("system_prompt", "prompt", "samples", "aliases", "local_models", "replay")
"""The keys at the top of a study that `read_calls` reads."""

_OPTIONS = (
    "concurrency",
    "max_attempts",
    "request_timeout_s",
    "run_timeout_s",
    "requests_per_minute",
    "tokens_per_minute",
    "stream",
)
_WEIGHTS = ("file", "sha256", "origin", "threads", "context_tokens")
_MOST_SAMPLES = 10_000
_DAY_S = 86_400.0


def read_calls(top: Section, base: Folder) -> Calls:
    """What the study says of calls, with every default filled in."""
    return Calls(
        system_prompt=read_file(top, "system_prompt", base),
        prompt=read_file(top, "prompt", base),
        samples=top.integer("samples", low=1, high=_MOST_SAMPLES) or 1,
        aliases=_aliases(top),
        local_models=_local_models(top),
        options=_options(top),
    )


def read_secrets(section: Section) -> Mapping[str, str]:
    """The literal secrets in the `params` of a candidate, by their path there (`extra_headers.X-Key`)."""
    start = f"{section.where('params')}."
    found = section.report.secrets
    return {path.removeprefix(start): value for path, value in found.items() if path.startswith(start)}


def _options(top: Section) -> CallOptions:
    default = CallOptions()
    section = top.section("replay", _OPTIONS, like="{concurrency: 8, ...}")
    if section is None:
        return default
    request = section.number("request_timeout_s", low=0.001, high=_DAY_S)
    return CallOptions(
        concurrency=section.integer("concurrency", low=1, high=10_000) or default.concurrency,
        max_attempts=section.integer("max_attempts", low=1, high=100) or default.max_attempts,
        request_timeout_s=default.request_timeout_s if request is None else request,
        run_timeout_s=section.number("run_timeout_s", low=0.001, high=365 * _DAY_S),
        requests_per_minute=section.number("requests_per_minute", low=0.001),
        tokens_per_minute=section.number("tokens_per_minute", low=1),
        stream=section.flag("stream") is True,
    )


def _aliases(top: Section) -> dict[str, tuple[str, ...]]:
    """Model by model, the other names under which it may say that it answered."""
    node = top.get("aliases")
    if node is None:
        return {}
    like = "write model: [name, name]"
    if not isinstance(node, nodes.Mapping):
        top.fault("aliases", f"is {shown(node)}, not a mapping", like)
        return {}
    found = {}
    for model, entry in node.entries.items():
        items = entry.node.items if isinstance(entry.node, nodes.Sequence) else (entry.node,)
        names = [item.value for item in items if isinstance(item, Scalar) and isinstance(item.value, str)]
        if len(names) != len(items) or not all(name.strip() for name in names):
            top.report.add(entry.line, join_path("aliases", model), "is not a list of model names", like)
            continue
        found[model] = tuple(names)
    return found


def _local_models(top: Section) -> dict[str, Weights]:
    node = top.get("local_models")
    if node is None:
        return {}
    if not isinstance(node, nodes.Mapping):
        fix = "write local/<name>: {file: name.gguf, sha256: ...} for each"
        top.fault("local_models", f"is {shown(node)}, not a mapping", fix)
        return {}
    found = {}
    for model, entry in node.entries.items():
        path = join_path("local_models", model)
        if not isinstance(entry.node, nodes.Mapping):
            fix = "write {file: name.gguf, sha256: ...}"
            top.report.add(entry.line, path, f"is {shown(entry.node)}, not a mapping", fix)
            continue
        section = Section(top.report, entry.node, path, _WEIGHTS)
        if not model.startswith("local/") or len(model) == len("local/"):
            what = f'"{visible(model, 60)}" is not the name of a local model'
            top.report.add(entry.line, path, what, "write local/ and a name, as the tiers or arms call it")
        file = section.text("file", missing="write the name of the GGUF file")
        digest = section.text("sha256", missing="write the sha256 of the file, 64 hex digits")
        if file is not None and ("/" in file or "\\" in file or file in {".", ".."}):
            section.fault(
                "file", f'"{visible(file, 60)}" is a path', "write the file's name; its folder is --models"
            )
        if digest is not None and re.fullmatch(r"[0-9a-fA-F]{64}", digest) is None:
            section.fault("sha256", f'"{visible(digest, 80)}" is not a sha256', "write 64 hex digits")
        if file is not None and digest is not None:
            found[model] = Weights(
                file,
                digest.lower(),
                section.text("origin") or "",
                section.integer("threads", low=1, high=1024),
                section.integer("context_tokens", low=64, high=10**7) or 4096,
            )
    return found
