"""Case H07 through the commands: a key is found in nothing that is written or printed, with --debug too."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path

import pytest

from tests.providers.mock_openai import running_mock
from tests.workflows.replays import evalkit, items, write_study

KEYS = {
    "env": "a value of the environment 77",
    "header": "hX9-header-value-1234",
    "user": "u5er-passw0rd-in-address",
    "query": "qu3ry-key-in-address",
    "literal": "sk-FAKE-demo-0000-not-a-key",
}


def held_by(folder: Path, secrets: list[bytes]) -> dict[str, list[bytes]]:
    """The secrets that any file below the folder holds, packed files included."""
    found: dict[str, list[bytes]] = {}
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as file:
                content = b"".join(file.read(name) for name in file.namelist())
        held = [secret for secret in secrets if secret in content]
        if held:
            found[str(path)] = held
    return found


@pytest.mark.parametrize("debug", [False, True])
def test_no_key_is_written_or_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, debug: bool
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    monkeypatch.chdir(out)
    monkeypatch.setenv("DEMO_KEY", KEYS["env"])
    monkeypatch.setenv("OPENAI_API_KEY", "sk-FAKE-openai-of-the-environment")
    everything = " ".join(KEYS.values())
    rules = [
        {"contains": "prompt q1", "fault": "status", "status": 401, "echo": True, "message": f"no {everything}"},
        {
            "contains": "prompt q2",
            "fault": "status",
            "status": 400,
            "echo": True,
            "message": "x" * 290 + everything,
        },
        {"contains": "prompt q3", "answer": f"My key is {everything}", "served_model": f"top {everything}"},
        {"contains": "prompt q4", "answer": f"ANSWER: {everything}"},
    ]
    with running_mock(rules=rules) as mock:
        host = mock.url.removeprefix("http://").removesuffix("/v1")
        address = f"http://someone:{KEYS['user']}@{host}/v1?api_key={KEYS['query']}"
        write_study(
            tmp_path / "study",
            mock,
            items([f"q{n}" for n in range(12)]),
            options={"max_attempts": 1},
            changes={
                "tiers": [
                    {
                        "name": "cheap",
                        "model": "openai/cheap",
                        "params": {
                            "api_base": address,
                            "api_key": KEYS["literal"],
                            "max_tokens": 256,
                            "extra_headers": {"X-Api-Key": KEYS["header"], "X-Team": "routing"},
                        },
                    },
                    {
                        "name": "top",
                        "model": "openai/top",
                        "params": {"api_base": mock.url, "api_key": "os.environ/DEMO_KEY", "max_tokens": 256},
                    },
                ]
            },
        )
        flags = ["--debug"] if debug else []
        study = tmp_path / "study" / "study.yaml"
        said = []
        ran = evalkit(
            capsys, "replay", study, "--out", "run", "--export", "kept.jsonl", "--json", "s.json", *flags, out=out
        )
        said += [ran.out, ran.err]
        assert ran.code == 4, ran.err  # 401 may work with another key
        swept = evalkit(capsys, "route-sweep", study, "--out", "report", *flags, out=out)
        said += [swept.out, swept.err]
        bad = evalkit(capsys, "replay", study, "--out", "run", "--recorded", study, *flags, out=out)
        said += [bad.out, bad.err]
        assert bad.code == 2
        text = study.read_text(encoding="utf-8")
        study.write_text(
            f"{text}outcomes: {out}/run/outcomes.jsonl\nmissing_outcomes: unanswered\n", encoding="utf-8"
        )
        named = evalkit(capsys, "route-sweep", study, "--out", "report", "--json", "r.json", *flags, out=out)
        said += [named.out, named.err]
        assert named.code in {0, 1, 3}, named.err
    secrets = [*KEYS.values(), "sk-FAKE-openai-of-the-environment"]
    for stream in said:
        assert not [secret for secret in secrets if secret in stream]
    assert len(list(out.rglob("*"))) > 8
    assert held_by(out, [secret.encode() for secret in secrets]) == {}
    # No half of one either, where a message was cut.
    halves = [secret[:12].encode() for secret in secrets]
    assert held_by(out, halves) == {}
    # What is no secret can be read.
    manifest = json.dumps((out / "kept.jsonl").read_text(encoding="utf-8"))
    assert "256" in manifest
    assert "routing" in manifest
    assert host in manifest
    assert "[hidden]" in (out / "run" / "outcomes.jsonl").read_text(encoding="utf-8")
    literal = next(n for n, line in enumerate(text.splitlines(), 1) if KEYS["literal"] in line)
    assert f"study.yaml:{literal}: " in said[1]
    assert "api_key" in said[1]
