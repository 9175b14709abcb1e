"""What belongs in the key of a request, and what does not."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evalkit.providers.call import Request
from evalkit.providers.key import KEY_VERSION, request_key


@pytest.fixture
def case(shared: Path) -> Path:
    return shared / "cases" / "R02-cache-key"


def load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def request(body: dict[str, Any]) -> Request:
    """A body of the case as a request; the address stands beside the parameters, as a study's does."""
    params = {name: value for name, value in body.items() if name not in {"model", "messages"}}
    return Request(body["model"], tuple(body["messages"]), params, params.pop("api_base", None))


def test_case_r02_everything_that_can_change_the_answer_is_in_the_key(case: Path) -> None:
    differ = load(case / "must_differ.json")
    keys = {request_key(request(body)) for body in [load(case / "base.json"), *differ.values()]}
    assert (len(differ), len(keys)) == (13, 14)


def test_case_r02_nothing_else_is(case: Path) -> None:
    match = load(case / "must_match.json")
    assert len(match) == 5
    assert {request_key(request(body)) for body in match.values()} == {
        request_key(request(load(case / "base.json")))
    }


def test_case_r02_a_file_counts_by_its_content(case: Path) -> None:
    base = load(case / "base.json")
    keys = set()
    for version in ("v1", "v2"):
        digest = hashlib.sha256((case / "prompts" / version / "prompt.txt").read_bytes()).hexdigest()
        keys.add(request_key(Request(base["model"], tuple(base["messages"]), files={"prompt.txt": digest})))
    assert len(keys) == 2


def test_case_r02_a_key_is_the_same_in_every_process_and_carries_its_version(case: Path) -> None:
    code = (
        "import json, sys\n"
        "from evalkit.providers.call import Request\n"
        "from evalkit.providers.key import request_key\n"
        "body = json.load(sys.stdin)\n"
        "print(request_key(Request(body.pop('model'), tuple(body.pop('messages')), body)))\n"
    )
    base = (case / "base.json").read_text(encoding="utf-8")
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            input=base,
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        ).stdout.strip()
        for seed in ("0", "1", "77")
    }
    assert found == {request_key(request(json.loads(base)))}
    assert found.pop().startswith(f"v{KEY_VERSION}-")


def test_repeats_and_equal_items_are_draws_of_their_own() -> None:
    message = ({"role": "user", "content": "x"},)
    asked = [Request("m", message), Request("m", message, sample=1), Request("m", message, occurrence=1)]
    assert len({request_key(one) for one in asked}) == 3
    numbers = [Request("m", message, {"n": value}) for value in (1, 1.0, True, "1", None)]
    assert len({request_key(one) for one in numbers}) == 4
