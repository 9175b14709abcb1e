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


async def measured(call: Callable[[int], Awaitable[Any]], calls: int) -> dict[str, float]:
    await many(call, 0, WARM_UP)
    wall, cpu = time.monotonic(), time.process_time()
    await many(call, WARM_UP, calls)
    return {"cpu_s": time.process_time() - cpu, "wall_s": time.monotonic() - wall}


async def run_litellm(url: str, calls: int) -> dict[str, float]:
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

    return await measured(call, calls)


async def run_openai(url: str, calls: int) -> dict[str, float]:
    import openai

    async with openai.AsyncOpenAI(api_key="none", base_url=url, max_retries=0) as client:

        async def call(number: int) -> None:
            await client.chat.completions.create(
                model="mid", messages=[{"role": "user", "content": prompt(number)}], max_tokens=20
            )

        return await measured(call, calls)


def evalkit_plan(items: int, samples: int = 1, first: int = 0) -> Any:
    from evalkit.replay import PlanCandidate, PlanItem, plan_cells

    content = [PlanItem(f"q{n}", ({"role": "user", "content": prompt(n)},)) for n in range(first, first + items)]
    return plan_cells(content, [PlanCandidate("mid", MODEL, {"max_tokens": 20})], samples)


def evalkit_pricing() -> Any:
    from evalkit.costs import PriceCard, PricePeriod, Rates
    from evalkit.replay import CardPricing

    return CardPricing(PriceCard({MODEL: (PricePeriod(Rates(Decimal("0.25"), Decimal(2))),)}))


async def run_evalkit(url: str, calls: int) -> dict[str, float]:
    from evalkit.providers.call import Connection
    from evalkit.providers.litellm_provider import LiteLLMProvider
    from evalkit.replay import Ledger, RunSettings, run

    provider = LiteLLMProvider(Connection(api_base=url, api_key="none"))
    settings = RunSettings(concurrency=IN_FLIGHT)
    with tempfile.TemporaryDirectory() as folder, Ledger.open(Path(folder) / "ledger.sqlite") as ledger:
        try:
            await run(evalkit_plan(WARM_UP), lambda _: provider, ledger, settings, pricing=evalkit_pricing())
            wall, cpu = time.monotonic(), time.process_time()
            plan = evalkit_plan(calls, first=WARM_UP)
            found = await run(plan, lambda _: provider, ledger, settings, pricing=evalkit_pricing())
            took = {"cpu_s": time.process_time() - cpu, "wall_s": time.monotonic() - wall}
        finally:
            await provider.aclose()
    assert (found.replied, found.attempts, found.from_ledger) == (calls, calls, 0), found
    assert found.spent_low_usd == found.spent_high_usd != 0
    return took


def run_inspect(url: str, calls: int) -> dict[str, float]:
    from inspect_ai import Task, eval
    from inspect_ai.dataset import Sample
    from inspect_ai.model import GenerateConfig, get_model
    from inspect_ai.solver import generate

    config = GenerateConfig(max_tokens=20)
    model = get_model(MODEL, base_url=url, api_key="none", config=config, responses_api=False)

    def once(first: int, count: int, folder: str) -> None:
        samples = [Sample(input=prompt(n), id=n) for n in range(first + 1, first + count + 1)]
        [log] = eval(
            Task(dataset=samples, solver=generate()),
            model=model,
            display="none",
            log_dir=folder,
            max_connections=IN_FLIGHT,
            max_samples=IN_FLIGHT,
        )
        assert log.status == "success", log.error

    with tempfile.TemporaryDirectory() as folder:
        once(0, WARM_UP, folder)
        wall, cpu = time.monotonic(), time.process_time()
        once(WARM_UP, calls, folder)
        return {"cpu_s": time.process_time() - cpu, "wall_s": time.monotonic() - wall}


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


def in_child(python: str, *arguments: object) -> dict[str, float]:
    command = [python, str(Path(__file__).resolve()), "--child", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=REPO)
    if done.returncode:
        sys.exit(f"{' '.join(command[2:])} failed:\n{done.stderr[-2000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def child(what: str, *arguments: str) -> None:
    if what == "memory":
        found = asyncio.run(run_memory(int(arguments[0]), int(arguments[1])))
    elif what == "inspect":
        found = run_inspect(arguments[0], int(arguments[1]))
    else:
        work = {"litellm": run_litellm, "openai": run_openai, "evalkit": run_evalkit}[what]
        found = asyncio.run(work(arguments[0], int(arguments[1])))
    print(json.dumps(found))


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
    best: dict[str, dict[str, float]] = {}
    with mock_server() as url:
        for _ in range(rounds):
            for name in who:
                found = in_child(peer if name == "inspect" else sys.executable, name, url, calls)
                if name not in best or found["cpu_s"] < best[name]["cpu_s"]:
                    best[name] = found
    bare = best["litellm"]["cpu_s"]
    print(f"{calls:,} calls, {IN_FLIGHT} in flight, best of {rounds}")
    print(f"  {'':<58} {'ms CPU':>8} {'calls/s':>8}")
    for name in who:
        found = best[name]
        per_call, pace = 1000 * found["cpu_s"] / calls, calls / found["wall_s"]
        print(f"  {WHO[name]:<58} {per_call:>8.2f} {pace:>8.0f}   {found['cpu_s'] / bare:.2f} x bare LiteLLM")
    if "inspect" not in who:
        print("  inspect_ai is not installed: install it elsewhere and name that Python with --peer")
    ours = best["evalkit"]["cpu_s"] / bare
    return [f"{ours:.2f} times bare LiteLLM is more than {MOST_OF_LITELLM}"] if ours > MOST_OF_LITELLM else []


def memory(calls: int) -> list[str]:
    """Print the table of peak memory; what broke its limit."""
    few = in_child(sys.executable, "memory", 1000, 1)
    many_calls = in_child(sys.executable, "memory", 1000, calls // 1000)
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
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
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
