"""Gates, stop rules, the one verdict that follows from them, and the exit code that follows from it. Pure."""

from __future__ import annotations

from evalkit.gates.gate import Gate, Status, StopRule
from evalkit.gates.verdict import Decision, Verdict, decide, exit_code

__all__ = ["Decision", "Gate", "Status", "StopRule", "Verdict", "decide", "exit_code"]
