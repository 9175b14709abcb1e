"""What the mock server does besides chat: files, batches, canned answers. Only its own process imports this.

Configuration, under `batch`: polls (times a batch is asked for before it is done; 1), end (its last status:
completed, expired, failed, cancelled), done (the share of its lines that were answered before an end other than
completed; 0), lose (lines left out of the output of a completed batch), torn (the output ends in the middle of a
line), error_at (a status for the creation of a batch).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]


def share(seed: int, place: int, content: str) -> float:
    """A number of [0, 1) that depends on nothing else: a rule with `share` s matches where it is below s."""
    digest = hashlib.sha256(f"{seed}|{place}|{content}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


class Batches:
    """Files and batches of one server; `answer` makes the output line of one input line."""

    def __init__(self, config: Json, answer: Callable[[Json], Json]) -> None:
        self.config, self.answer = config, answer
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, Json] = {}
        self.polls: dict[str, int] = {}
        self.lines = 0

    def counts(self) -> Json:
        """Batches made and lines answered."""
        return {"batches": len(self.batches), "lines": self.lines}

    def add_file(self, data: bytes) -> Json:
        """A new file."""
        name = f"file-{len(self.files)}"
        self.files[name] = data
        return {
            "id": name,
            "object": "file",
            "bytes": len(data),
            "created_at": 1760000000,
            "filename": "batch.jsonl",
            "purpose": "batch",
            "status": "processed",
        }

    def create(self, asked: Json) -> Json:
        """A new batch."""
        name = f"batch_{len(self.batches)}"
        self.batches[name] = {
            "id": name,
            "object": "batch",
            "endpoint": asked["endpoint"],
            "input_file_id": asked["input_file_id"],
            "completion_window": asked["completion_window"],
            "status": "validating",
            "created_at": 1760000000,
            "metadata": asked.get("metadata"),
            "output_file_id": None,
            "error_file_id": None,
        }
        return self.batches[name]

    def poll(self, name: str) -> Json:
        """The batch, worked on a little further."""
        batch = self.batches[name]
        self.polls[name] = self.polls.get(name, 0) + 1
        if batch["status"] in {"validating", "in_progress"}:
            batch["status"] = "in_progress"
            if self.polls[name] >= self.config.get("polls", 1):
                self.finish(batch, self.config.get("end", "completed"))
        return batch

    def finish(self, batch: Json, end: str) -> None:
        """Answer what is to be answered, and end the batch."""
        asked = [json.loads(line) for line in self.files[batch["input_file_id"]].splitlines() if line.strip()]
        done = len(asked) if end == "completed" else round(self.config.get("done", 0) * len(asked))
        good, bad = [], []
        for line in asked[:done]:
            found = self.answer(line)
            self.lines += 1
            (good if found["response"]["status_code"] == 200 else bad).append(found)
        for line in asked[done:] if end != "failed" else []:
            error = {"code": f"batch_{end}", "message": "This request could not be executed in time."}
            bad.append({"id": "x", "custom_id": line["custom_id"], "response": None, "error": error})
        good = good[self.config.get("lose", 0) :]
        for key, lines in (("output_file_id", good), ("error_file_id", bad)):
            if lines:
                data = "".join(json.dumps(line) + "\n" for line in lines).encode()
                if key == "output_file_id" and self.config.get("torn"):
                    data = data[:-20]
                batch[key] = self.add_file(data)["id"]
        if end == "failed":
            batch["errors"] = {"object": "list", "data": [{"code": "invalid", "message": "line 1 is no request"}]}
        counts = {"total": len(asked), "completed": len(good), "failed": len(bad)}
        batch |= {"status": end, "request_counts": counts}


def add_routes(application: Any, batches: Batches) -> None:
    """The routes of OpenAI's files and batches."""
    from aiohttp import web

    def missing() -> Any:
        return web.json_response({"error": {"message": "no such object"}}, status=404)

    async def new_file(request: Any) -> Any:
        form = await request.post()
        return web.json_response(batches.add_file(form["file"].file.read()))

    async def content(request: Any) -> Any:
        data = batches.files.get(request.match_info["name"])
        return missing() if data is None else web.Response(body=data, content_type="application/octet-stream")

    async def new_batch(request: Any) -> Any:
        status = batches.config.get("error_at")
        if status:
            return web.json_response({"error": {"message": "no batch now"}}, status=status)
        return web.json_response(batches.create(await request.json()))

    async def one(request: Any) -> Any:
        name = request.match_info["name"]
        return web.json_response(batches.poll(name)) if name in batches.batches else missing()

    async def all_batches(_: Any) -> Any:
        data = list(reversed(batches.batches.values()))
        return web.json_response({"object": "list", "data": data, "has_more": False})

    async def cancel(request: Any) -> Any:
        batch = batches.batches.get(request.match_info["name"])
        if batch is None:
            return missing()
        batches.finish(batch, "cancelled")
        return web.json_response(batch)

    router = application.router
    router.add_post("/v1/files", new_file)
    router.add_get("/v1/files/{name}/content", content)
    router.add_post("/v1/batches", new_batch)
    router.add_get("/v1/batches", all_batches)
    router.add_get("/v1/batches/{name}", one)
    router.add_post("/v1/batches/{name}/cancel", cancel)


def add_canned(application: Any, answers: list[Json]) -> None:
    """Canned answers to every other POST, and what was asked at /_canned."""
    from aiohttp import web

    asked: list[Json] = []

    async def canned(request: Any) -> Any:
        asked.append({"path": request.path_qs, "body": await request.text(), "headers": dict(request.headers)})
        for known in answers:
            if re.search(known["path"], request.path):
                headers = {"Content-Type": known.get("type", "application/json")} | known.get("headers", {})
                return web.Response(status=known.get("status", 200), body=known["body"].encode(), headers=headers)
        return web.json_response({"error": {"message": f"no such path: {request.path}"}}, status=404)

    async def requests(_: Any) -> Any:
        return web.json_response(asked)

    application.router.add_get("/_canned", requests)
    application.router.add_post("/{path:.*}", canned)
