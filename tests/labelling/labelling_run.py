"""`evalkit label` as a process of its own, as a person would run it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

REPO = Path(__file__).resolve().parents[2]


@dataclass
class Page:
    """A page that is served; `stop` gives what the process said."""

    process: subprocess.Popen[str]
    address: str
    said: list[str] = field(default_factory=list)

    @property
    def port(self) -> int:
        port = urlsplit(self.address).port
        assert port is not None
        return port

    @property
    def token(self) -> str:
        return self.address.rstrip("/").rsplit("/", 1)[-1]

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        **more: str,
    ) -> tuple[int, dict[str, str], bytes]:
        """One request as it is written here: `Host` and nothing else is added where `headers` has none."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in ({"Host": f"127.0.0.1:{self.port}"} | dict(headers or {}) | more).items():
                if value:
                    connection.putheader(name, value)
            if body is not None and "Content-Length" not in (headers or {}):
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def api(self, path: str, sent: Any = None) -> Any:
        """A call as the page makes it."""
        headers = {"X-Evalkit-Token": self.token}
        if sent is None:
            status, _, body = self.ask("GET", f"/api/{path}", headers=headers)
        else:
            headers |= {"Content-Type": "application/json", "Origin": f"http://127.0.0.1:{self.port}"}
            status, _, body = self.ask("POST", f"/api/{path}", json.dumps(sent).encode(), headers)
        assert status == 200, (status, body)
        return json.loads(body)

    def kill(self) -> None:
        """Kill the process as the system would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=20)

    def stop(self) -> tuple[int, str, str]:
        """Ctrl+C: exit code, stdout and stderr since the address."""
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=20)
        return self.process.returncode, out, err


def arguments(*given: object) -> list[str]:
    return [sys.executable, "-m", "evalkit", "label", *map(str, given)]


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(REPO)}


@contextmanager
def served(folder: Path, *given: object) -> Iterator[Page]:
    """The page of `evalkit label` with these arguments, run in `folder`; ended however the test ends."""
    process = subprocess.Popen(
        arguments(*given), cwd=folder, env=environment(), text=True, encoding="utf-8",
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        if not address.startswith("http://127.0.0.1:"):
            raise AssertionError((address, *process.communicate(timeout=20)))
        yield Page(process, address)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()
