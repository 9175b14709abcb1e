"""The labelling page on 127.0.0.1: what it answers, and how it is served until it is stopped."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from evalkit.errors import Fault, InputError
from evalkit.labelling.guard import PAGE, Guard
from evalkit.labelling.page import asset
from evalkit.labelling.session import Refused, Session, Stale
from evalkit.tabular.json_rows import StrictJSONError, parse_json

__all__ = ["listen", "new_token", "page_app", "serve"]

_TYPES = {"label.css": "text/css", "label.js": "text/javascript"}
_MOST_DIGITS = 12


def new_token() -> str:
    """A secret for one run of the page."""
    return secrets.token_urlsafe(24)


def listen(port: int) -> socket.socket:
    """A socket on 127.0.0.1; port 0 takes a free one. Raises `InputError` where the port cannot be had."""
    # With its protocol named, asyncio sends an answer at once; else each waits 40 ms for an acknowledgement.
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind(("127.0.0.1", port))
        made.listen(64)
    except OSError as error:
        made.close()
        what = f"port {port} cannot be used: {error.strerror or error}"
        raise InputError(Fault(what, "name another, or 0 for any free one", field="--port")) from None
    return made


def page_app(session: Session, html: str, token: str, port: int) -> Guard:
    """The page at `/<token>/` and what it calls, behind its guard."""

    async def page(_: Request) -> Response:
        return Response(html, media_type="text/html; charset=utf-8")

    async def without_slash(_: Request) -> Response:
        return RedirectResponse(f"/{token}/")

    async def static(request: Request) -> Response:
        name = request.url.path.rsplit("/", 1)[-1]
        return Response(asset(name), media_type=f"{_TYPES[name]}; charset=utf-8")

    async def state(_: Request) -> Response:
        return JSONResponse(await run_in_threadpool(session.state))

    async def item(request: Request) -> Response:
        place = request.path_params["place"]
        try:
            if not (place.isascii() and place.isdigit() and len(place) <= _MOST_DIGITS):
                raise IndexError(place)
            return JSONResponse(await run_in_threadpool(session.item, int(place)))
        except IndexError:
            return _said("there is no such item", 404)

    routes = [
        Route(PAGE, without_slash),
        Route(f"{PAGE}/", page),
        *(Route(f"{PAGE}/{name}", static) for name in _TYPES),
        Route("/api/state", state),
        Route("/api/item/{place}", item),
        Route("/api/decide", _changing(session.decide), methods=["POST"]),
        Route("/api/undo", _changing(session.undo), methods=["POST"]),
    ]
    app = Starlette(routes=routes)
    app.router.redirect_slashes = False
    return Guard(app, token, port)


def _changing(change: Callable[[Mapping[str, Any]], dict[str, Any]]) -> Callable[[Request], Any]:
    """An endpoint that takes a JSON object and changes the state."""

    async def endpoint(request: Request) -> Response:
        body = await request.body()
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return _said("send JSON", 415)
        try:
            sent = parse_json(body.decode("utf-8"))
        except (UnicodeDecodeError, StrictJSONError):
            return _said("this is no JSON", 400)
        if not isinstance(sent, dict):
            return _said("this is no JSON object", 400)
        try:
            return JSONResponse(await run_in_threadpool(change, sent))
        except Refused as error:
            return _said(str(error), 422)
        except Stale:
            return _said("another window has decided since", 409)
        except InputError as error:
            return _said(str(error.faults[0].what), 507)

    return endpoint


def _said(what: str, status: int) -> Response:
    return JSONResponse({"error": what}, status)


def serve(app: Guard, listening: socket.socket) -> None:
    """Serve until interrupted (Ctrl+C) or terminated. Nothing is logged."""
    import uvicorn

    config = uvicorn.Config(
        app, http="h11", ws="none", loop="asyncio", lifespan="off", access_log=False, log_config=None,
        log_level="critical", server_header=False, date_header=False, proxy_headers=False, limit_concurrency=64,
        timeout_keep_alive=75, timeout_graceful_shutdown=2, h11_max_incomplete_event_size=32 * 1024,
    )  # fmt: skip
    try:
        uvicorn.Server(config).run(sockets=[listening])
    except KeyboardInterrupt:
        return
    finally:
        listening.close()
