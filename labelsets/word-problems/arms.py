"""The arms of the study: what each sends for a task, step by step, and nothing about how it is sent.

An arm is played by `play`, which asks for one completion after the other. Each prompt is the whole text that the
model sees, chat marks included, because two of the arms' tricks need it: the first words of the answer are written
for the model ("Final answer (a number):"), and thinking is opened and, when the budget is used up, closed for it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from evalkit.providers.local_server import LocalModel

Row = dict[str, Any]

CANDIDATES = {
    "0.5b": LocalModel(
        "local/qwen2.5-coder-0.5b-instruct-q4_k_m",
        "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        "Qwen/Qwen2.5-Coder-0.5B-Instruct, quantised to Q4_K_M",
    ),
    "1.5b": LocalModel(
        "local/qwen2.5-coder-1.5b-instruct-q4_k_m",
        "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        "Qwen/Qwen2.5-Coder-1.5B-Instruct, quantised to Q4_K_M",
    ),
}
"""The models that the pilot compared."""

MODEL = CANDIDATES["1.5b"]
"""The model of the study, the same in every arm."""

SEEDS = (1, 2, 3)
"""One sample each; a seed is the same for all arms and tasks."""

PARAMS: Row = {"temperature": 0.7, "top_k": 40, "top_p": 0.95, "min_p": 0.05, "repeat_penalty": 1.0}
"""How every token is drawn, in all arms and steps."""

ANSWER_TOKENS, PLAN_TOKENS, SOLVE_TOKENS = 16, 32, 80
END = "<|im_end|>"


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to use the model: at once, in `steps` requests, or thinking for at most `budget_tokens` first."""

    name: str
    steps: int = 1
    budget_tokens: int | None = None


ARMS = (
    Arm("plain"),
    Arm("multi-step", steps=3),
    Arm("think-32", budget_tokens=32),
    Arm("think-64", budget_tokens=64),
    Arm("think-160", budget_tokens=160),
)
"""The arms in their declared budget order."""

TEXTS = {
    "en": {
        "system": "You solve word problems.",
        "plain": "Reply with the final answer only.",
        "think": "Think step by step inside <think></think>, but keep it short. Then give the final answer.",
        "plan": "Plan the solution in at most two short lines. Do not calculate yet.",
        "solve": "Plan:\n{plan}\n\nCarry out the plan step by step, but keep it short.",
        "check": "Solution:\n{solve}\n\nCheck this solution and reply with the right final answer only.",
        "number": "Final answer (a number):",
        "choice": "Final answer (one word):",
    },
    "ko": {
        "system": "문장으로 된 문제를 풉니다.",
        "plain": "최종 답만 쓰세요.",
        "think": "<think></think> 안에서 차근차근, 그러나 짧게 생각한 다음 최종 답을 쓰세요.",
        "plan": "풀이 계획을 두 줄 이내로 짧게 쓰세요. 아직 계산하지 마세요.",
        "solve": "계획:\n{plan}\n\n계획대로 차근차근, 그러나 짧게 푸세요.",
        "check": "풀이:\n{solve}\n\n이 풀이를 검토하고 올바른 최종 답만 쓰세요.",
        "number": "최종 답(숫자):",
        "choice": "최종 답(한 단어):",
    },
}
"""What stands around a task, by its language. The system text and the task come first in every prompt."""


@dataclass(frozen=True, slots=True)
class Step:
    """One completion to ask for: the whole prompt, the cap on new tokens, and what ends the text."""

    name: str
    prompt: str
    max_tokens: int
    stop: tuple[str, ...]

    @property
    def prompt_sha256(self) -> str:
        """Digest of the prompt (UTF-8)."""
        return hashlib.sha256(self.prompt.encode()).hexdigest()


def shared_start(task: Row) -> str:
    """What the prompts of all arms and steps begin with, in the model's chat format: system text and task."""
    system = TEXTS[task["metadata"]["language"]]["system"]
    return f"<|im_start|>system\n{system}{END}\n<|im_start|>user\n{task['prompt']}"


def opening(task: Row, instruction: str) -> str:
    """A conversation up to the first word of the assistant: the task, then what is to be done with it."""
    return f"{shared_start(task)}\n\n{instruction}{END}\n<|im_start|>assistant\n"


def answer_line(task: Row) -> str:
    """The first words of the answer, written for the model in every arm."""
    meta = task["metadata"]
    return TEXTS[meta["language"]][meta["check"]["kind"]]


def forced_text(task: Row) -> str:
    """What closes the thinking and opens the answer, written by the script and not by the model."""
    return f"\n</think>\n\n{answer_line(task)}"


def play(arm: Arm, task: Row, ask: Callable[[Step], Row]) -> list[Row]:
    """The calls of one run of `arm` on `task`, in order; ends early at a call with an `error`.

    `ask` makes one completion and returns a row with its `text`. The last step is always named `answer`.
    """
    calls: list[Row] = []
    said = TEXTS[task["metadata"]["language"]]

    def text_of(step: Step) -> str | None:
        calls.append({"step": step.name, "prompt_sha256": step.prompt_sha256} | ask(step))
        return None if "error" in calls[-1] else str(calls[-1]["text"]).strip()

    def user(name: str, **replies: str) -> str:
        text = said[name]
        for mark, reply in replies.items():  # replaced and not formatted: a reply may hold braces
            text = text.replace(f"{{{mark}}}", reply)
        return opening(task, text)

    if arm.budget_tokens is not None:
        start = user("think") + "<think>\n"
        thought = text_of(Step("think", start, arm.budget_tokens, ("</think>", END)))
        if thought is not None:
            rest = start + thought + forced_text(task)
            text_of(Step("answer", rest, ANSWER_TOKENS, ("\n", END)))
        return calls
    if arm.steps == 3:
        plan = text_of(Step("plan", user("plan"), PLAN_TOKENS, (END,)))
        if plan is None:
            return calls
        solution = text_of(Step("solve", user("solve", plan=plan), SOLVE_TOKENS, (END,)))
        if solution is None:
            return calls
        start = user("check", solve=solution)
    else:
        start = user("plain")
    text_of(Step("answer", start + answer_line(task), ANSWER_TOKENS, ("\n", END)))
    return calls


def run_key(model: LocalModel, arm: Arm, task: Row, seed: int) -> str:
    """A digest of all that decides a run: weights, arm, every prompt's wording and cap, parameters, seed."""
    steps: list[Row] = []

    def note(step: Step) -> Row:
        steps.append(asdict(step))
        return {"text": f"[{step.name}]"}

    play(arm, task, note)
    sent = {"model_sha256": model.sha256, "steps": steps, "params": PARAMS, "seed": seed}
    text = json.dumps(sent, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
