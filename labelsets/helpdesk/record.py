"""Records the replies of the three real models to every item, one call at a time, on this machine.

    python labelsets/helpdesk/record.py --models DIR [--tiers cheap,mid,top] [--threads 1] [--slots 1]

DIR holds the GGUF files that `MODELS` names; each is checked against its sha256. A llama.cpp server (xllamacpp) is
started on a loopback port and called through LiteLLM. Every reply is appended to `recordings/<tier>.jsonl` and
synced to disk before the next call, and a call whose key is there already is not made again, so the same command
resumes. A failed call is recorded as a failure and is tried again by the next run. Nothing is graded here.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import importlib.metadata
import json
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evalkit.errors import Incomplete, InputError, visible
from evalkit.providers.local_server import LocalModel, start_server
from evalkit.providers.prompt import load_prompt
from evalkit.providers.recordings import append, latest_replies, lock, read_recording

HERE = Path(__file__).resolve().parent
CALL_LIMIT_S = 240.0
CONTEXT_TOKENS = 2048

Row = dict[str, Any]


MODELS = {
    "cheap": LocalModel(
        "local/smollm2-135m-instruct-q4_1",
        "smollm2-135m-instruct-q4_1.gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        "HuggingFaceTB/SmolLM2-135M-Instruct, quantised to Q4_1",
    ),
    "mid": LocalModel(
        "local/qwen2.5-coder-0.5b-instruct-q4_k_m",
        "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        "Qwen/Qwen2.5-Coder-0.5B-Instruct, quantised to Q4_K_M",
    ),
    "top": LocalModel(
        "local/qwen2.5-coder-1.5b-instruct-q4_k_m",
        "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        "Qwen/Qwen2.5-Coder-1.5B-Instruct, quantised to Q4_K_M",
    ),
}
# What every call sends beside messages and max_tokens. Without the prompt cache and with one slot greedy decoding
# does not depend on the calls before.
PARAMS: Row = {"temperature": 0, "seed": 7, "cache_prompt": False}


def read_items(folder: Path = HERE) -> list[Row]:
    """The certifying and the training items, in this order."""
    return [
        json.loads(line)
        for name in ("labels.jsonl", "train.jsonl")
        for line in (folder / name).read_text(encoding="utf-8").rstrip("\n").split("\n")
    ]


def system_prompt(folder: Path = HERE) -> str:
    """The system prompt of every call."""
    return load_prompt(folder / "prompt.txt", allowed=()).render({})


def messages_for(item: Row, system: str) -> list[dict[str, str]]:
    """The conversation that is sent: the system prompt, then the item's prompt as it is."""
    return [{"role": "system", "content": system}, {"role": "user", "content": item["prompt"]}]


def call_key(model: LocalModel, item: Row, system: str) -> str:
    """A digest of all that decides the reply: weights, messages and parameters."""
    sent = {
        "model_sha256": model.sha256,
        "messages": messages_for(item, system),
        "params": {**PARAMS, "max_tokens": item["metadata"]["max_tokens"]},
    }
    text = json.dumps(sent, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def connect(url: str) -> Any:
    """A client of its own for LiteLLM, which else keeps clients beyond the event loop that they belong to."""
    import openai

    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=CALL_LIMIT_S)


async def call(client: Any, alias: str, messages: list[dict[str, str]], max_tokens: int) -> Row:
    """One streamed call: reply, finish reason, raw usage and times in seconds, or the error in their place."""
    import litellm
    import openai

    reply: Row = {"reply": None, "finish_reason": None, "usage": None, "served_model": None}
    parts: list[str] = []
    started = time.perf_counter()
    ttft_s = None
    try:
        async with asyncio.timeout(CALL_LIMIT_S):
            stream = await litellm.acompletion(
                model=f"openai/{alias}",
                client=client,
                api_key="none",
                messages=messages,
                max_tokens=max_tokens,
                temperature=PARAMS["temperature"],
                seed=PARAMS["seed"],
                extra_body={"cache_prompt": PARAMS["cache_prompt"]},
                stream=True,
                stream_options={"include_usage": True},
                max_retries=0,
                timeout=CALL_LIMIT_S,
            )
            async for chunk in stream:
                if getattr(chunk, "usage", None) is not None:
                    reply["usage"] = chunk.usage.model_dump(exclude_none=True)
                for choice in chunk.choices:
                    if choice.delta.content:
                        ttft_s = ttft_s or time.perf_counter() - started
                        parts.append(choice.delta.content)
                    reply["finish_reason"] = choice.finish_reason or reply["finish_reason"]
                reply["served_model"] = chunk.model or reply["served_model"]
    except (TimeoutError, openai.OpenAIError) as problem:  # the base of all that LiteLLM maps
        status = getattr(problem, "status_code", None)
        what = visible(str(problem), 200)
        reply = {"error": {"type": type(problem).__name__, "status_code": status, "message": what}}
    else:
        reply["reply"] = "".join(parts)
    times = {"ttft_s": ttft_s, "request_s": time.perf_counter() - started}
    return reply | {name: None if value is None else round(value, 4) for name, value in times.items()}


async def record(url: str, tier: str, items: list[Row], system: str, path: Path, slots: int, run: Row) -> int:
    """Call `tier`'s model for every item that has no reply yet; returns the number of failed calls."""
    with path.open("ab") as file:
        lock(file)
        done = latest_replies(read_recording(path, repair=True))
        keys = {item["id"]: call_key(MODELS[tier], item, system) for item in items}
        waiting = [item for item in items if "error" in done.get(keys[item["id"]], {"error": "not asked"})]
        print(f"{tier}: {len(items) - len(waiting)} recorded, {len(waiting)} to go", file=sys.stderr, flush=True)
        if not waiting:
            return 0
        append(file, run)
        queue = iter(waiting)
        alias = MODELS[tier].served_name
        failed = finished = 0
        started = time.monotonic()

        async def work(client: Any) -> None:
            nonlocal failed, finished
            for item in queue:
                max_tokens = item["metadata"]["max_tokens"]
                reply = await call(client, alias, messages_for(item, system), max_tokens)
                head = {"kind": "reply", "run": run["run"], "key": keys[item["id"]], "id": item["id"]}
                append(file, head | {"max_tokens": max_tokens} | reply)
                failed += "error" in reply
                finished += 1
                if finished % 20 == 0 or finished == len(waiting):
                    pace = (time.monotonic() - started) / finished
                    print(f"{tier}: {finished}/{len(waiting)}, {pace:.2f} s each", file=sys.stderr, flush=True)

        async with connect(url) as client:
            # The first call is slow: not recorded.
            await call(client, alias, messages_for({"prompt": "Say ok."}, system), 4)
            await asyncio.gather(*(work(client) for _ in range(slots)))
        return failed


def run_header(tier: str, system: str, threads: int, slots: int) -> Row:
    """What the replies of this run have in common."""
    model = MODELS[tier]
    now = datetime.now(UTC).isoformat(timespec="seconds")
    versions = {name: importlib.metadata.version(name) for name in ("xllamacpp", "litellm")}
    return {
        "kind": "run",
        "run": f"{tier}-{now}",
        "tier": tier,
        "model": model.name,
        "model_sha256": model.sha256,
        "system_prompt_sha256": hashlib.sha256(system.encode()).hexdigest(),
        "params": PARAMS,
        "threads": threads,
        "slots": slots,
        "started_at": now,
        "versions": versions,
    }


def main(argv: list[str] | None = None) -> int:
    """Record the tiers asked for, one after the other."""
    parser = argparse.ArgumentParser(
        description="Records the models' replies to all items; the same command resumes."
    )
    parser.add_argument("--models", type=Path, required=True, help="folder with the GGUF files")
    parser.add_argument("--tiers", default=",".join(MODELS), help="which tiers, parted by commas")
    parser.add_argument("--threads", type=int, default=1, help="threads of the server")
    parser.add_argument("--slots", type=int, default=1, help="calls at a time; more than 1 may change replies")
    options = parser.parse_args(argv)
    tiers = options.tiers.split(",")
    if unknown := [tier for tier in tiers if tier not in MODELS]:
        parser.error(f"unknown tier {', '.join(unknown)}; there are {', '.join(MODELS)}")
    # Before the imports that read them: busy-waiting threads starve each other on a loaded machine, and LiteLLM
    # would fetch a price list.
    os.environ["OMP_WAIT_POLICY"] = "passive"
    os.environ["LITELLM_OFFLINE_MODE"] = "true"
    try:
        system = system_prompt()
        items = read_items()
        failed = 0
        for tier in tiers:
            server = start_server(
                MODELS[tier],
                options.models,
                threads=options.threads,
                slots=options.slots,
                context_tokens=CONTEXT_TOKENS,
            )
            path = HERE / "recordings" / f"{tier}.jsonl"
            run = run_header(tier, system, options.threads, options.slots)
            failed += asyncio.run(record(server.listening_address, tier, items, system, path, options.slots, run))
            del server
        if failed:
            raise Incomplete(
                f"{failed} calls failed; their failures are recorded. The same command tries them again."
            )
    except (InputError, Incomplete) as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
