"""What is sent of an item: its own bytes, the study's prompts around them, attached files by content."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from evalkit.errors import InputError
from evalkit.labels.read import read_labels
from evalkit.study.calls import Calls
from evalkit.workflows.replay_items import Item, items_of, read_prompts


def sent(
    folder: Path, rows: list[dict[str, object]], *, system: str | None = None, prompt: str | None = None
) -> list[Item]:
    path = folder / "labels.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    paths: dict[str, Path] = {}
    for name, text in (("system_prompt", system), ("prompt", prompt)):
        if text is not None:
            paths[name] = folder / f"{name}.txt"
            paths[name].write_text(text, encoding="utf-8")
    labels = read_labels(path, tiers=(), risk_classes=(), require_required_tier=False)
    return items_of(labels, read_prompts(Calls(**paths)), folder)  # type: ignore[arg-type]


def test_a_prompt_goes_out_byte_for_byte_inside_the_template(shared: Path, tmp_path: Path) -> None:
    case = shared / "cases" / "L13-braces-in-query"
    labels = read_labels(
        case / "labels_braces.csv",
        tiers=("cheap", "mid"),
        risk_classes=("low",),
        columns={"id": "query_id", "prompt": "query", "risk": "risk_class", "weight": "risk_weight"},
    )
    template = (case / "prompt.txt").read_text(encoding="utf-8").replace("{query}", "{prompt}")
    (tmp_path / "p.txt").write_text(template, encoding="utf-8")
    items = items_of(labels, read_prompts(Calls(prompt=tmp_path / "p.txt")), tmp_path)
    texts = [item.messages[0]["content"] for item in items]
    assert texts[1] == 'Answer briefly.\n\nQuestion: Return {"name": "{subject}"} as JSON'
    assert texts[2] == "Answer briefly.\n\nQuestion: Show me {{ 7*7 }} and {{ config.api_key }}"
    assert texts[3].endswith("Price is 5} or {0} or %s or $HOME")


def test_the_system_prompt_comes_first_and_an_items_own_cap_is_kept(tmp_path: Path) -> None:
    (item,) = sent(
        tmp_path, [{"id": "a", "prompt": "2+2?", "metadata": {"max_tokens": 8}}], system="Be {{brief}}."
    )
    assert item.messages == (
        {"role": "system", "content": "Be {brief}."},
        {"role": "user", "content": "2+2?"},
    )
    assert item.max_tokens == 8


def test_a_prompt_file_of_other_content_is_another_fingerprint(tmp_path: Path) -> None:
    path = tmp_path / "prompt.txt"
    found = set()
    for text in ("Answer briefly: {prompt}", "Answer in one word: {prompt}"):
        path.write_text(text, encoding="utf-8")
        found.add(read_prompts(Calls(prompt=path)).fingerprint)
    assert len(found) == 2


def test_items_that_cannot_be_sent_are_all_named(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"id": "a", "prompt": None, "messages": None},
        {"id": "b", "prompt": "x", "messages": [{"role": "system", "content": "y"}]},
    ]
    with pytest.raises(InputError) as error:
        sent(tmp_path, rows, system="s")
    text = str(error.value)
    assert "1 items have neither" in text
    assert "1 items have a system message" in text


def test_an_attached_file_is_sent_by_content(tmp_path: Path) -> None:
    (tmp_path / "p.png").write_bytes(b"\x89PNG")
    part = {"type": "image_url", "image_url": {"url": "file:p.png"}}
    (item,) = sent(tmp_path, [{"id": "a", "messages": [{"role": "user", "content": [part]}]}])
    url = item.messages[0]["content"][0]["image_url"]["url"]
    assert url == "data:image/png;base64," + base64.b64encode(b"\x89PNG").decode()


@pytest.mark.parametrize("name", ["../secret.txt", "/etc/hostname", "none.png", "\0"])
def test_nothing_outside_the_folder_of_the_labels_is_attached(tmp_path: Path, name: str) -> None:
    inner = tmp_path / "in"
    inner.mkdir()
    (tmp_path / "secret.txt").write_text("secret", encoding="utf-8")
    part = {"type": "image_url", "image_url": {"url": f"file:{name}"}}
    with pytest.raises(InputError, match="not beside the labels"):
        sent(inner, [{"id": "a", "messages": [{"role": "user", "content": [part]}]}])


def test_text_that_only_looks_like_an_attachment_stays_text(tmp_path: Path) -> None:
    (item,) = sent(tmp_path, [{"id": "a", "messages": [{"role": "user", "content": "file:/etc/hostname"}]}])
    assert item.messages[0]["content"] == "file:/etc/hostname"


@pytest.mark.parametrize("cap", [0, -1, "8", True])
def test_a_cap_of_an_item_is_a_whole_number(tmp_path: Path, cap: object) -> None:
    with pytest.raises(InputError, match="max_tokens"):
        sent(tmp_path, [{"id": "a", "prompt": "x", "metadata": {"max_tokens": cap}}])
