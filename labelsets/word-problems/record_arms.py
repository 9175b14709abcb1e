"""Records every arm of the study on a real model on this machine: 48 tasks x 5 arms x 3 samples.

    python labelsets/word-problems/record_arms.py --models DIR [--threads 2] [--slots 4]

DIR holds the GGUF file of the model, which is checked against its sha256. A llama.cpp server (xllamacpp) is
started on a loopback port. Every run of an arm (one to three calls) is appended to `recording.jsonl` and synced to
disk before its worker takes the next one, and a run whose key is there already is not made again, so the same
command resumes. A failed run is recorded as a failure and tried again by the next command. Nothing is graded here.

For a pilot name other tasks, another recording and one seed: `--tasks FILE --out FILE --seeds 1`.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from arms import ARMS, CANDIDATES, MODEL, PARAMS, SEEDS, Arm, Step, forced_text, play, run_key, shared_start

from evalkit.errors import Incomplete, InputError, visible
from evalkit.providers.local_server import LocalModel, start_server
from evalkit.providers.recordings import append, latest_replies, lock, read_recording

HERE = Path(__file__).resolve().parent
CALL_LIMIT_S = 600.0
CONTEXT_TOKENS = 1024

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Job:
    """One run to make: a task, an arm and a seed, with their key."""

    key: str
    task: Row
    arm: Arm
    seed: int


def read_tasks(path: Path = HERE / "tasks.jsonl") -> list[Row]:
    """The tasks in file order."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").rstrip("\n").split("\n")]


def bundles_of(model: LocalModel, tasks: list[Row], seeds: Sequence[int] = SEEDS) -> list[list[Job]]:
    """Every run of the study, in bundles: all arms on one task with one seed, each time from another arm on.

    The load of the machine changes while it records; a bundle is made in one go, so that this does not look like
    an arm's own time.
    """
    bundles = []
    for seed in seeds:
        for at, task in enumerate(tasks):
            first = (at + seed) % len(ARMS)
            arms = (*ARMS[first:], *ARMS[:first])
            bundles.append([Job(run_key(model, arm, task, seed), task, arm, seed) for arm in arms])
    return bundles


def post(url: str, path: str, body: Row) -> Row:
    """One request with a JSON body; the JSON of the reply."""
    request = urllib.request.Request(url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=CALL_LIMIT_S) as reply:
        found: Row = json.load(reply)
    return found


def complete(url: str, step: Step, seed: int, slot: int) -> Row:
    """One completion: text, why it ended, raw token counts and times in seconds; or the error in their place."""
    body = PARAMS | {
        "prompt": step.prompt,
        "n_predict": step.max_tokens,
        "stop": list(step.stop),
        "seed": seed,
        "id_slot": slot,
        "cache_prompt": True,  # the slot keeps the problem that all arms of a bundle begin with
    }
    started = time.perf_counter()
    try:
        reply = post(url, "/completion", body)
        timings = reply["timings"]
        row = {
            "text": reply["content"],
            "stop_type": reply["stop_type"],
            "prompt_tokens": reply["tokens_evaluated"],
            "prompt_tokens_reused": timings["cache_n"],
            "new_tokens": reply["tokens_predicted"],
            "server_prompt_s": round(timings["prompt_ms"] / 1000, 4),
            "server_new_s": round(timings["predicted_ms"] / 1000, 4),
            "served_model": reply["model"],
        }
    except urllib.error.HTTPError as problem:
        said = problem.read(2000).decode("utf-8", "replace")
        row = {"error": {"type": "HTTPError", "status_code": problem.code, "message": visible(said, 200)}}
    except (OSError, ValueError, KeyError) as problem:  # no reply, a cut one, or one of another shape
        row = {"error": {"type": type(problem).__name__, "message": visible(str(problem), 200)}}
    return {"max_tokens": step.max_tokens} | row | {"request_s": round(time.perf_counter() - started, 4)}


def forced_tokens(url: str, tasks: Iterable[Row]) -> dict[str, int]:
    """Tokens of each text that the script itself puts behind the thinking."""
    texts = {forced_text(task): None for task in tasks}
    return {text: len(post(url, "/tokenize", {"content": text})["tokens"]) for text in texts}


def record(url: str, bundles: list[list[Job]], path: Path, slots: int, run: Row) -> int:
    """Make every run that is not recorded yet, `slots` bundles at a time; returns how many runs failed."""
    with path.open("ab") as file:
        lock(file)
        done = latest_replies(read_recording(path, repair=True))
        waiting = [
            [job for job in bundle if "error" in done.get(job.key, {"error": "not asked"})] for bundle in bundles
        ]
        total, to_go = sum(map(len, bundles)), sum(map(len, waiting))
        print(f"{total - to_go} recorded, {to_go} to go", file=sys.stderr, flush=True)
        if not to_go:
            return 0
        forced = forced_tokens(url, (bundle[0].task for bundle in bundles))
        append(file, run | {"forced_tokens": forced})
        complete(url, Step("warm-up", "Say ok.", 4, ()), 1, 0)  # the first call is slow: not recorded
        return _work(url, [bundle for bundle in waiting if bundle], file, slots, str(run["run"]))


def _work(url: str, waiting: list[list[Job]], file: BinaryIO, slots: int, run: str) -> int:
    queue, guard = iter(waiting), threading.Lock()
    to_go = sum(map(len, waiting))
    failed = finished = 0
    began = time.monotonic()

    def worker(slot: int) -> None:
        nonlocal failed, finished
        while True:
            with guard:
                bundle = next(queue, None)
            if bundle is None:
                return
            read = complete(url, Step("read", shared_start(bundle[0].task), 0, ()), bundle[0].seed, slot)
            for job in bundle:
                row = one_run(url, job, slot) | {"read_s": read["request_s"], "run": run}
                with guard:
                    append(file, row)
                    failed += "error" in row
                    finished += 1
                    if finished % 20 == 0 or finished == to_go:
                        pace = (time.monotonic() - began) / finished
                        left = pace * (to_go - finished) / 60
                        said = f"{finished}/{to_go}, {pace:.2f} s each, {left:.0f} min left"
                        print(said, file=sys.stderr, flush=True)

    with ThreadPoolExecutor(slots) as pool:
        for done in [pool.submit(worker, slot) for slot in range(slots)]:
            done.result()
    return failed


def one_run(url: str, job: Job, slot: int) -> Row:
    """One run of an arm on a task: its calls, its time from the first request to the last reply."""
    at = datetime.now(UTC).isoformat(timespec="seconds")
    started = time.perf_counter()
    calls = play(job.arm, job.task, lambda step: complete(url, step, job.seed, slot))
    task_s = round(time.perf_counter() - started, 4)
    head = {"kind": "reply", "key": job.key, "id": job.task["id"], "arm": job.arm.name, "seed": job.seed}
    error = {"error": calls[-1]["error"]} if "error" in calls[-1] else {}
    return head | {"started_at": at, "calls": calls, "task_s": task_s} | error


def run_header(model: LocalModel, threads: int, slots: int) -> Row:
    """What the runs of one command have in common."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {
        "kind": "run",
        "run": now,
        "model": model.name,
        "model_sha256": model.sha256,
        "params": PARAMS,
        "threads": threads,
        "slots": slots,
        "context_tokens": CONTEXT_TOKENS,
        "versions": {"xllamacpp": importlib.metadata.version("xllamacpp")},
    }


def main(argv: list[str] | None = None) -> int:
    """Record what is missing."""
    parser = argparse.ArgumentParser(description="Records every arm of the study; the same command resumes.")
    parser.add_argument("--models", type=Path, required=True, help="folder with the GGUF files")
    parser.add_argument("--threads", type=int, default=2, help="threads of the server")
    parser.add_argument("--slots", type=int, default=4, help="runs at a time")
    parser.add_argument("--tasks", type=Path, default=HERE / "tasks.jsonl", help="the tasks")
    parser.add_argument("--out", type=Path, default=HERE / "recording.jsonl", help="the recording")
    parser.add_argument("--model", choices=list(CANDIDATES), help="another model than the study's (pilot)")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS, help="other seeds than the study's (pilot)")
    options = parser.parse_args(argv)
    model = CANDIDATES[options.model] if options.model else MODEL
    # Before the import that reads it: busy-waiting threads starve each other on a loaded machine.
    os.environ["OMP_WAIT_POLICY"] = "passive"
    try:
        bundles = bundles_of(model, read_tasks(options.tasks), options.seeds)
        server = start_server(
            model, options.models, threads=options.threads, slots=options.slots, context_tokens=CONTEXT_TOKENS
        )
        run = run_header(model, options.threads, options.slots)
        failed = record(server.listening_address, bundles, options.out, options.slots, run)
        del server
        if failed:
            raise Incomplete(
                f"{failed} runs failed; their failures are recorded. The same command tries them again."
            )
    except (InputError, Incomplete) as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
