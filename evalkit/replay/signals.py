"""What SIGINT and SIGTERM do to a run."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

__all__ = ["on_signals"]


@contextlib.contextmanager
def on_signals(stop: Callable[[], None], wanted: bool = True) -> Iterator[None]:
    """Inside, SIGINT and SIGTERM call `stop` in the event loop. Outside of the main thread nothing changes."""
    if not wanted or threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM)
    for number in numbers:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
