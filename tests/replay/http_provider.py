"""A provider that speaks just enough HTTP for the mock server, and imports next to nothing: for children that are
started and killed by the dozen."""

from __future__ import annotations

import asyncio
import json
from urllib.parse import urlsplit

from evalkit.providers.call import Billed, Failure, FailureKind, Reply, Request

KINDS = {429: FailureKind.RATE_LIMIT, 401: FailureKind.AUTHENTICATION, 400: FailureKind.BAD_REQUEST}


class HttpProvider:
    """One connection for each request."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port, self._path = str(parts.hostname), parts.port, parts.path

    async def call(self, request: Request) -> Reply | Failure:
        body = {"model": request.model.partition("/")[2], "messages": list(request.messages), **request.params}
        data = json.dumps(body).encode()
        head = f"POST {self._path}/chat/completions HTTP/1.1\r\nHost: mock\r\nConnection: close\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        try:
            reader, writer = await asyncio.open_connection(self._host, self._port)
        except OSError as error:
            return Failure(FailureKind.CONNECTION, str(error))
        try:
            writer.write(head.encode() + data)
            answer = await reader.read()
        except OSError as error:
            return Failure(FailureKind.CUT, str(error), billed=Billed.UNKNOWN)
        finally:
            writer.close()
        return self._answer(answer)

    def _answer(self, answer: bytes) -> Reply | Failure:
        start, _, body = answer.partition(b"\r\n\r\n")
        lines = start.decode("latin-1").split("\r\n")
        if not start:
            return Failure(FailureKind.CUT, "closed before any byte", billed=Billed.UNKNOWN)
        status = int(lines[0].split(" ")[1])
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
        try:
            found = json.loads(body)
        except ValueError:
            return Failure(FailureKind.CUT, "cut, or no JSON", billed=Billed.UNKNOWN)
        if status != 200:
            kind = KINDS.get(status, FailureKind.SERVER)
            wait = headers.get("retry-after")
            after = float(wait) if wait is not None and wait.replace(".", "").isdigit() else None
            return Failure(kind, f"{status}: {found['error']['message']}", status, retry_after_s=after)
        choice = found["choices"][0]
        return Reply(
            choice["message"]["content"],
            finish_reason=choice["finish_reason"],
            served_model=found["model"],
            usage=found.get("usage"),
            response_id=found["id"],
        )

    async def aclose(self) -> None:
        pass
