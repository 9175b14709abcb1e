"""Thinking under a budget, on a local model that was not trained for it: think marks are opened, closed at the
budget, and the answer follows. "Budgeted chain of thought on an instruct model" is what to call it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx

from evalkit.providers.call import Failure, FailureKind, Reply
from evalkit.providers.failures import status_failure

__all__ = ["budget_of", "think"]

OPEN, CLOSE = "<think>\n", "\n</think>\n\n"
_END = ("</think>",)


def budget_of(params: Mapping[str, Any]) -> int:
    """The thinking budget in tokens that parameters ask for: `thinking: {budget_tokens}` or `budget_tokens`."""
    thinking = params.get("thinking")
    found = params.get("budget_tokens")
    if isinstance(thinking, Mapping):
        found = None if thinking.get("type") == "disabled" else thinking.get("budget_tokens", found)
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else 0


async def think(http: httpx.AsyncClient, body: Mapping[str, Any], budget: int) -> Reply | Failure:
    """The reply to `body` (a chat request) after at most `budget` tokens of thinking.

    Its output tokens are those of the thinking, of the marks that close it, and of the answer.
    """
    shown = await http.post("/apply-template", json={"messages": body["messages"]})
    if shown.status_code != 200:
        return status_failure(shown.status_code, _json(shown))
    prompt = str(shown.json()["prompt"]) + OPEN
    rest = {name: value for name, value in body.items() if name not in {"messages", "max_tokens", "stop"}}
    first = await http.post("/completion", json=rest | {"prompt": prompt, "n_predict": budget, "stop": list(_END)})
    if first.status_code != 200:
        return status_failure(first.status_code, _json(first))
    thought = first.json()
    said = str(thought["content"]).rstrip()
    stop = body.get("stop")
    more: dict[str, Any] = {"prompt": prompt + said + CLOSE}
    cap = next((body[name] for name in ("max_tokens", "max_completion_tokens") if name in body), None)
    more |= {} if cap is None else {"n_predict": cap}
    more |= {} if stop is None else {"stop": [stop] if isinstance(stop, str) else list(stop)}
    second = await http.post("/completion", json=rest | more)
    if second.status_code != 200:
        return status_failure(second.status_code, _json(second))
    answer = second.json()
    try:
        return _reply(thought, answer, said)
    except (KeyError, TypeError) as problem:
        return Failure(FailureKind.OTHER, f"the local server's answer lacks {problem}")


def _reply(thought: Mapping[str, Any], answer: Mapping[str, Any], said: str) -> Reply:
    before, reasoning = int(thought["tokens_evaluated"]), int(thought["tokens_predicted"])
    closing = max(0, int(answer["tokens_evaluated"]) - before - reasoning)
    output = reasoning + closing + int(answer["tokens_predicted"])
    notices = ["thinking used its whole budget and was closed"] if thought.get("stop_type") == "limit" else []
    return Reply(
        text=str(answer["content"]),
        finish_reason="length" if answer.get("stop_type") == "limit" else "stop",
        reasoning=said,
        served_model=str(answer["model"]),
        usage={
            "prompt_tokens": before,
            "completion_tokens": output,
            "total_tokens": before + output,
            "completion_tokens_details": {"reasoning_tokens": reasoning + closing},
        },
        notices=tuple(notices),
    )


def _json(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return response.text
