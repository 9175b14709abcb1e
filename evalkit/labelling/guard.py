"""Who may talk to the page: this machine, with the token, from the page itself, in small pieces."""

from __future__ import annotations

import hmac

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["MOST_BODY", "PAGE", "POLICY", "TOKEN_HEADER", "Guard"]

MOST_BODY = 64 * 1024
"""Bytes of a request: a decision with the longest note is far smaller."""

PAGE = "/page"
"""Where the application has what stands behind the token: a call of the page cannot be reached that way."""

TOKEN_HEADER = "x-evalkit-token"

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)

_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


class Guard:
    """Refuses, before anything else sees the request:

    - another Host than 127.0.0.1 or localhost with this port (a name of somebody else's that leads here): 421
    - another Origin than that Host's, none where something is changed, or a fetch of another site: 403
    - a path without the token, and a call of the page without it in its header: 403, compared in constant time
    - bodies of more than `MOST_BODY` bytes: 413

    No cookie is used: those of 127.0.0.1 are sent to every port of it, and asked for by none.
    """

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app = app
        self._token = token
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        if port == 80:
            self._hosts |= {"127.0.0.1", "localhost"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, with the headers that every answer has."""
        if scope["type"] != "http":  # no websocket, no lifespan
            return

        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            await PlainTextResponse(refusal[1], refusal[0])(scope, receive, sealed)
            return
        body = await _body(receive)
        if body is None:
            await PlainTextResponse("the request is too large", 413)(scope, receive, sealed)
            return
        path = scope["path"]
        if not path.startswith("/api/"):
            path = PAGE + path.removeprefix(f"/{self._token}")

        async def received() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app({**scope, "path": path, "raw_path": path.encode("utf-8")}, received, sealed)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return 421, "this page is on 127.0.0.1 only"
        origins = headers.getlist("origin")
        changes = scope["method"] not in {"GET", "HEAD"}
        if origins != [f"http://{hosts[0].lower()}"] and (origins or changes):
            return 403, "the request comes from another page"
        # What a browser itself says of the request; "none": an address that was typed or opened from outside.
        if headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"} and (
            changes or headers.get("sec-fetch-mode") != "navigate"
        ):
            return 403, "the request comes from another page"
        path = scope["path"]
        first = path.partition("/")[2].partition("/")[0]  # a target may be "*", or a host
        given = headers.get(TOKEN_HEADER, "") if path.startswith("/api/") else first
        if not hmac.compare_digest(given.encode("utf-8", "replace"), self._token.encode("ascii")):
            return 403, "the address is not the one that evalkit label printed"
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length) > MOST_BODY:
            return 413, "the request is too large"
        return None


async def _body(receive: Receive) -> bytes | None:
    """The whole body; None where it is longer than it may be, whatever its headers said."""
    parts = []
    got = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b""  # the other side is gone
        parts.append(message.get("body", b""))
        got += len(parts[-1])
        if got > MOST_BODY:
            return None
        if not message.get("more_body", False):
            return b"".join(parts)
