"""How a study's models are called: what is sent around each prompt, and how much at once. Frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["CallOptions", "Calls", "Weights"]


@dataclass(frozen=True, slots=True)
class CallOptions:
    """How calls travel. None of it changes an answer, so a run that is resumed may change all of it.

    `concurrency` is the most calls in flight to one endpoint; limits per minute hold for each endpoint too.
    `max_attempts` counts the first one. `stream` measures the time to the first token, at more work for each call.
    """

    concurrency: int = 8
    max_attempts: int = 4
    request_timeout_s: float = 120.0
    run_timeout_s: float | None = None
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    stream: bool = False


@dataclass(frozen=True, slots=True)
class Weights:
    """The file of a local model: its name in the folder of models, what it must hash to, and what it is.

    `threads` are those of its server (None: all cores) and `context_tokens` is the room for prompt and reply:
    with another number of threads a greedy reply can come out different.
    """

    file: str
    sha256: str
    origin: str = ""
    threads: int | None = None
    context_tokens: int = 4096


@dataclass(frozen=True, slots=True)
class Calls:
    """Everything about calls that is the same for all candidates.

    `system_prompt` is a file sent as the system message; `prompt` a template with `{prompt}` around each item's
    prompt. `aliases` are names under which a model may serve itself. `samples` is how often each item is asked.
    """

    system_prompt: Path | None = None
    prompt: Path | None = None
    samples: int = 1
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    local_models: Mapping[str, Weights] = field(default_factory=dict)
    options: CallOptions = field(default_factory=CallOptions)
