"""Seconds and memory to read a log of reasoning runs and to analyse every ladder in it.

Usage: python benchmarks/effort_log.py LOG

LOG is a file that `evalkit import effort` reads, such as a public log of 135,080 runs. Exits 1 beyond 10 seconds
of processor time or 1 GB.
"""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

MOST_SECONDS = 10.0
MOST_BYTES = 10**9


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: python benchmarks/effort_log.py LOG", file=sys.stderr)
        return 2
    from evalkit.outcomes.importers.effort import read_effort
    from evalkit.reasoning.analysis import analyse
    from evalkit.reasoning.data import Limits, Settings
    from tests.outcomes.effort_ladders import ladder_of_log

    wall, start = time.perf_counter(), time.process_time()
    log = read_effort(sys.argv[1])
    read, runs, ladders = time.process_time() - start, 0, log.ladders()
    for task, model, arms in ladders:
        data = ladder_of_log(log, task, model, arms)
        analyse(data, Settings(limits=Limits(min_pass_rate=0.8), smallest_gain=0.01, value_usd=0.2))
        runs += int(data.sampled.sum())
    spent = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(
        f"{runs:,} runs, {len(ladders):,} ladders: read {read:.1f} s, analysed {spent - read:.1f} s of processor "
        f"time ({time.perf_counter() - wall:.1f} s by the clock), peak {peak / 1e6:,.0f} MB"
    )
    return int(spent > MOST_SECONDS or peak > MOST_BYTES)


if __name__ == "__main__":
    sys.exit(main())
