"""A provider for tests, by script: no model, no network, no surprise.

>>> import asyncio
>>> from evalkit.providers.call import Failure, FailureKind, Reply, Request
>>> busy = Failure(FailureKind.RATE_LIMIT, "429: slow down", status_code=429, retry_after_s=0.1)
>>> provider = ScriptedProvider({"2+2?": [busy, "4"], "3+3?": After(0.01, Reply("6", usage={"total_tokens": 9}))})
>>> def ask(text):
...     request = Request("demo/mid", ({"role": "user", "content": text},))
...     return asyncio.run(provider.call(request))
>>> ask("2+2?").kind.value, ask("2+2?").text, ask("3+3?").text, ask("what?").kind.value
('rate_limit', '4', '6', 'not_recorded')
>>> [last_text(request) for request in provider.requests]
['2+2?', '2+2?', '3+3?', 'what?']
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from evalkit.errors import visible
from evalkit.providers.call import Failure, FailureKind, Reply, Request
from evalkit.providers.key import request_key

__all__ = ["After", "ScriptedProvider", "Step", "last_text"]


@dataclass(frozen=True, slots=True)
class After:
    """Answer with `step` after `seconds`; None: never, the call ends by being cancelled."""

    seconds: float | None
    step: Reply | Failure | str = ""


Step = Reply | Failure | str | After
"""What one attempt gives. Text is short for a whole reply of that text by the model that was asked."""

Script = Mapping[str, Step | Sequence[Step]] | Callable[[Request], Step | Sequence[Step]]


def last_text(request: Request) -> str:
    """The text of a request's last message; the texts of its parts joined, where it has parts."""
    content = request.messages[-1].get("content") if request.messages else None
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in content or () if isinstance(part, Mapping))


class ScriptedProvider:
    """Answers by `script`: a mapping from the last message's text, or a function of the request.

    What it gives is a step, or a list of steps for the attempts at one request (equal by `request_key`), of which
    the last repeats. A request that the script does not know fails with `NOT_RECORDED`. `delay_s` is waited before
    every step. Replies and failures that do not say how long they took get the time that was scripted, so that
    results are the same in every run.

    `requests` are all requests in the order of their arrival, cancelled ones included; `finished` counts the calls
    that came to their end, `in_flight` those at work, `max_in_flight` the most of them at a time; `closed` says
    whether `aclose` was called.
    """

    def __init__(self, script: Script, *, delay_s: float = 0.0) -> None:
        self._script = script
        self._delay_s = delay_s
        self._attempts: Counter[str] = Counter()
        self.requests: list[Request] = []
        self.finished = 0
        self.in_flight = 0
        self.max_in_flight = 0
        self.closed = False

    async def call(self, request: Request) -> Reply | Failure:
        """The next step for `request`."""
        if self.closed:
            return Failure(FailureKind.OTHER, "the provider was closed")
        self.requests.append(request)
        key = request_key(request)
        self._attempts[key] += 1
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        try:
            answer = await self._play(request, self._step(request, self._attempts[key]))
        finally:
            self.in_flight -= 1
        self.finished += 1
        return answer

    def _step(self, request: Request, attempt: int) -> Step:
        if callable(self._script):
            found = self._script(request)
        else:
            text = last_text(request)
            if text not in self._script:
                return Failure(FailureKind.NOT_RECORDED, f"the script has no step for {visible(text)}")
            found = self._script[text]
        if isinstance(found, Reply | Failure | str | After):
            return found
        if not found:
            return Failure(FailureKind.NOT_RECORDED, "the script has an empty list of steps")
        return found[min(attempt, len(found)) - 1]

    async def _play(self, request: Request, step: Step) -> Reply | Failure:
        seconds = self._delay_s
        if isinstance(step, After):
            if step.seconds is None:
                await asyncio.Event().wait()
            seconds += step.seconds or 0.0
            step = step.step
        await asyncio.sleep(seconds)
        if isinstance(step, str):
            step = Reply(step, finish_reason="stop", served_model=request.model)
        return step if step.request_s is not None else replace(step, request_s=seconds)

    async def aclose(self) -> None:
        """Refuse calls from now on."""
        self.closed = True
