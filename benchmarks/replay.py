"""A call through evalkit beside the same call made by hand: processor time, calls a second, and memory.

Usage: python benchmarks/replay.py [--calls N] [--rounds R] [--peer PYTHON] [--memory-calls N]

One mock server on loopback, a process of its own that answers at once, serves everybody in turn: bare
`litellm.acompletion`, the `openai` client, evalkit (plan, runner, ledger on disk, costs, and the LiteLLM
provider), and inspect_ai, where it can be imported; it is no dependency, so `--peer` may name the Python of
another environment that has it. Each runs in a process of its own, after a warm-up that is not counted, with the
same number of calls in flight; processor time is of that process with all its threads, the server's apart. Rounds
take turns, so that a busy machine slows all alike; the best of each counts.

Memory is the peak resident set of evalkit's runner and ledger, with a provider that answers at once: 1,000 items
asked once, and asked as often as makes 50,000 calls.

Exit code 1 when evalkit takes more than 1.3 times the processor time of bare LiteLLM, or 50,000 calls take more
than 20 MB beyond 1,000.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parent.parent
MOCK = REPO / "tests/providers/mock_openai.py"

MOST_OF_LITELLM = 1.3
MOST_RISE_MB = 20.0
IN_FLIGHT = 16
WARM_UP = 50
MODEL = "openai/mid"
WHO = {
    "litellm": "litellm.acompletion, bare",
    "openai": "openai.AsyncOpenAI",
    "evalkit": "evalkit: plan, runner, ledger, costs, LiteLLM provider",
    "inspect": "inspect_ai: eval of a task without a scorer",
}


def prompt(number: int) -> str:
    return f"Question {number}: how many parcels fit into the van, if each takes the place of two?"


async def many(call: Callable[[int], Awaitable[Any]], first: int, count: int) -> None:
    """`call` for each number, so many at a time."""
    numbers = iter(range(first, first + count))

    async def worker() -> None:
        for number in numbers:
            await call(number)

    await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))


Block = Callable[[int, int], Awaitable[None]]


async def blocks(block: Block, calls: int) -> None:
    """`block(first, count)` for the warm-up, then once for each line that comes in, and the times of each out."""
    await block(0, WARM_UP)
    print("ready", flush=True)
    first = WARM_UP
    while sys.stdin.readline():
        wall, cpu = time.monotonic(), time.process_time()
        await block(first, calls)
        took = {"cpu_s": time.process_time() - cpu, "wall_s": time.monotonic() - wall}
        print(json.dumps(took), flush=True)
        first += calls


async def run_litellm(url: str, calls: int) -> None:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = os.environ["LITELLM_OFFLINE_MODE"] = "true"
    import litellm

    async def call(number: int) -> None:
        await litellm.acompletion(
            model=MODEL,
            messages=[{"role": "user", "content": prompt(number)}],
            max_tokens=20,
            api_base=url,
            api_key="none",
            max_retries=0,
        )

    await blocks(lambda first, count: many(call, first, count), calls)


async def run_openai(url: str, calls: int) -> None:
    import openai

    async with openai.AsyncOpenAI(api_key="none", base_url=url, max_retries=0) as client:

        async def call(number: int) -> None:
            await client.chat.completions.create(
                model="mid", messages=[{"role": "user", "content": prompt(number)}], max_tokens=20
            )

        await blocks(lambda first, count: many(call, first, count), calls)


def evalkit_plan(items: int, samples: int = 1, first: int = 0) -> Any:
    from evalkit.replay import PlanCandidate, PlanItem, plan_cells

    content = [PlanItem(f"q{n}", ({"role": "user", "content": prompt(n)},)) for n in range(first, first + items)]
    return plan_cells(content, [PlanCandidate("mid", MODEL, {"max_tokens": 20})], samples)


def evalkit_pricing() -> Any:
    from evalkit.costs import PriceCard, PricePeriod, Rates
    from evalkit.replay import CardPricing

    return CardPricing(PriceCard({MODEL: (PricePeriod(Rates(Decimal("0.25"), Decimal(2))),)}))


async def run_evalkit(url: str, calls: int) -> None:
    from evalkit.providers.call import Connection
    from evalkit.providers.litellm_provider import LiteLLMProvider
    from evalkit.replay import Ledger, RunSettings, run

    provider = LiteLLMProvider(Connection(api_base=url, api_key="none"))
    settings = RunSettings(concurrency=IN_FLIGHT)

    async def block(first: int, count: int) -> None:
        plan = evalkit_plan(count, first=first)
        found = await run(plan, lambda _: provider, ledger, settings, pricing=evalkit_pricing())
        assert (found.replied, found.attempts, found.from_ledger) == (count, count, 0), found
        assert found.spent_low_usd == found.spent_high_usd != 0

    with tempfile.TemporaryDirectory() as folder, Ledger.open(Path(folder) / "ledger.sqlite") as ledger:
        try:
            await blocks(block, calls)
        finally:
            await provider.aclose()


async def run_inspect(url: str, calls: int) -> None:
    from inspect_ai import Task, eval_async
    from inspect_ai.dataset import Sample
    from inspect_ai.model import GenerateConfig, get_model
    from inspect_ai.solver import generate

    config = GenerateConfig(max_tokens=20, max_connections=IN_FLIGHT)
    model = get_model(MODEL, base_url=url, api_key="none", config=config, responses_api=False)

    async def block(first: int, count: int) -> None:
        samples = [Sample(input=prompt(n), id=n + 1) for n in range(first, first + count)]
        task = Task(dataset=samples, solver=generate())
        [log] = await eval_async(task, model=model, log_dir=folder, max_samples=IN_FLIGHT)
        assert log.status == "success", log.error

    with tempfile.TemporaryDirectory() as folder:
        await blocks(block, calls)


def peak_mb() -> float:
    """The peak resident set of this process (VmHWM)."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise OSError("/proc/self/status has no VmHWM line: memory can be measured on Linux only")


async def run_memory(items: int, samples: int) -> dict[str, float]:
    from evalkit.providers.call import Failure, Reply, Request
    from evalkit.replay import Ledger, RunSettings, run

    class Instant:
        async def call(self, request: Request) -> Reply | Failure:
            usage = {"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 30}
            return Reply("ANSWER: " + "word " * 50, finish_reason="stop", usage=usage, served_model="mid")

        async def aclose(self) -> None:
            pass

    began, cpu = time.monotonic(), time.process_time()
    with tempfile.TemporaryDirectory() as folder, Ledger.open(Path(folder) / "ledger.sqlite") as ledger:
        plan, settings = evalkit_plan(items, samples), RunSettings(concurrency=64)
        found = await run(plan, lambda _: Instant(), ledger, settings, pricing=evalkit_pricing())
    assert found.replied == items * samples
    return {"peak_mb": peak_mb(), "cpu_s": time.process_time() - cpu, "wall_s": time.monotonic() - began}


def in_child(*arguments: object) -> dict[str, float]:
    command = [sys.executable, str(Path(__file__).resolve()), "--child", *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=REPO)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def child(what: str, *arguments: str) -> None:
    if what == "memory":
        print(json.dumps(asyncio.run(run_memory(int(arguments[0]), int(arguments[1])))))
        return
    work = {"litellm": run_litellm, "openai": run_openai, "evalkit": run_evalkit, "inspect": run_inspect}[what]
    asyncio.run(work(arguments[0], int(arguments[1])))


class Contestant:
    """A child that makes a block of calls whenever it is told to."""

    def __init__(self, python: str, name: str, url: str, calls: int) -> None:
        command = [python, str(Path(__file__).resolve()), "--child", name, url, str(calls)]
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=quiet, text=True, cwd=REPO
        )
        self._wait_for("ready")

    def _wait_for(self, start: str) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(start):
                return line
        sys.exit(f"{' '.join(map(str, self._process.args[2:]))} ended: run it by hand to see why")

    def block(self) -> dict[str, float]:
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        return dict(json.loads(self._wait_for("{")))

    def end(self) -> None:
        self._process.communicate()


def has_inspect(python: str) -> bool:
    if python == sys.executable:
        return importlib.util.find_spec("inspect_ai") is not None
    return subprocess.run([python, "-c", "import inspect_ai"], capture_output=True, check=False).returncode == 0


@contextlib.contextmanager
def mock_server() -> Any:
    command = [sys.executable, str(MOCK), "--until-stdin-closes", "--config", "{}"]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        yield json.loads(server.stdout.readline())["url"]
    finally:
        server.kill()
        server.wait()


def compare(calls: int, rounds: int, peer: str) -> list[str]:
    """Print the table of times; what broke its limit."""
    who = ["litellm", "evalkit", "openai"]
    if has_inspect(peer):
        who.append("inspect")
    cpu: dict[str, list[float]] = {name: [] for name in who}
    wall: dict[str, list[float]] = {name: [] for name in who}
    with mock_server() as url:
        racing = {
            name: Contestant(peer if name == "inspect" else sys.executable, name, url, calls) for name in who
        }
        for _ in range(rounds):
            for name, contestant in racing.items():
                found = contestant.block()
                cpu[name].append(1000 * found["cpu_s"] / calls)
                wall[name].append(found["wall_s"] / calls)
        for contestant in racing.values():
            contestant.end()
    bare = min(cpu["litellm"])
    print(f"{rounds} rounds of {calls:,} calls, {IN_FLIGHT} in flight; the best round of each")
    print(f"  {'':<58} {'ms CPU':>8} {'calls/s':>8}")
    for name in who:
        best, pace = min(cpu[name]), 1 / min(wall[name])
        print(f"  {WHO[name]:<58} {best:>8.2f} {pace:>8.0f}   {best / bare:.2f} x bare LiteLLM")
    if "inspect" not in who:
        print("  inspect_ai is not installed: install it elsewhere and name that Python with --peer")
    ours = min(cpu["evalkit"]) / bare
    return [f"{ours:.2f} times bare LiteLLM is more than {MOST_OF_LITELLM}"] if ours > MOST_OF_LITELLM else []


def memory(calls: int) -> list[str]:
    """Print the table of peak memory; what broke its limit."""
    few = in_child("memory", 1000, 1)
    many_calls = in_child("memory", 1000, calls // 1000)
    print("Runner and ledger alone, 64 in flight")
    print(f"  {'':<58} {'peak MB':>8} {'ms CPU':>8}")
    for count, found in ((1000, few), (calls, many_calls)):
        print(f"  {f'{count:,} calls':<58} {found['peak_mb']:>8.1f} {1000 * found['cpu_s'] / count:>8.2f}")
    rise = many_calls["peak_mb"] - few["peak_mb"]
    return [f"{calls:,} calls take {rise:.1f} MB beyond 1,000"] if rise > MOST_RISE_MB else []


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
        return 0
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--calls", type=int, default=250, help="in each round")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--peer", default=sys.executable, help="a Python that has inspect_ai")
    parser.add_argument("--memory-calls", type=int, default=50_000)
    chosen = parser.parse_args()
    broken = compare(chosen.calls, chosen.rounds, chosen.peer)
    broken += memory(chosen.memory_calls)
    for line in broken:
        print(f"Too much: {line}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
