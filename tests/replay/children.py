"""Starts, interrupts and kills runs in processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parents[2]


class Child:
    """A run as `python -m tests.replay.child`."""

    def __init__(self, folder: Path, config: dict[str, Any]) -> None:
        command = [sys.executable, "-m", "tests.replay.child", str(folder), json.dumps(config)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=REPO, env=dict(os.environ)
        )

    def wait_for_start(self) -> None:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line == "started\n", self.process.communicate()[1]

    def kill_after(self, seconds: float, *, started: bool = True) -> bool:
        """SIGKILL after some time, counted from the start of its calls; False where it had ended by then."""
        if started:
            self.wait_for_start()
        time.sleep(seconds)
        alive = self.process.poll() is None
        self.process.kill()
        self.end()
        return alive

    def interrupt(self, number: signal.Signals = signal.SIGINT) -> float:
        """Seconds from the signal to the end of the process."""
        began = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(timeout=30)
        return time.monotonic() - began

    def end(self, timeout: float = 120) -> tuple[dict[str, Any], str]:
        """Its summary ({} where it printed none), and all that it said on stderr."""
        out, err = self.process.communicate(timeout=timeout)
        lines = [line for line in out.splitlines() if line.startswith("{")]
        return (json.loads(lines[-1]) if lines else {}), err
