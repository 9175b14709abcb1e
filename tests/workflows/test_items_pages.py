"""Every item of a run as pages: none is lost, the order is the report's, and nobody's folder is touched."""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import re
import tracemalloc
from html import unescape
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from evalkit.cli.app import main
from evalkit.reporting.items_page import Selection, frame_of, render_page, row_renderer
from evalkit.signoff import run_folder
from evalkit.signoff.run_folder import read_run
from evalkit.workflows import items_pages
from evalkit.workflows.items_pages import ItemsOptions, write_items
from tests.workflows.item_runs import HOSTILE, hostile_run, item, write_run
from tests.workflows.ladders import reasoning_budget, write_ladder, write_runs
from tests.workflows.studies import evalkit, write_study
from tests.workflows.studies import write_items as write_labels


def ids(page: Path) -> list[str]:
    return [unescape(found) for found in re.findall(r'<bdi class="id">(.*?)</bdi>', page.read_text("utf-8"))]


def all_ids(folder: Path, code: str) -> list[str]:
    """The ids of a selection's pages in order; its pages are numbered without a gap."""
    pages = sorted(p for p in folder.glob(f"{code}*.html") if re.fullmatch(re.escape(code) + r"\d{4}", p.stem))
    assert [p.stem[-4:] for p in pages] == [f"{i:04d}" for i in range(1, len(pages) + 1)]
    return [found for page in pages for found in ids(page)]


def rows_of(run: Path) -> list[dict[str, Any]]:
    with gzip.open(run / "items.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@pytest.fixture
def routed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The folder of a real routing run with under-routed items of both classes."""
    write_study(tmp_path)
    write_labels(tmp_path, n=240)
    ran = evalkit(capsys, tmp_path, "--threshold", "0.95")
    assert ran.code in {0, 1, 3}, ran.err
    return ran.folder


def test_the_order_of_a_router_is_that_of_its_report(routed: Path) -> None:
    assert main(["items", str(routed), "--page-size", "30", "--quiet"]) == 0
    pages = routed / "items"
    shown = [row["id"] for row in json.loads((routed / "result.json").read_text())["worst_items"]]
    assert len(shown) == 40
    assert all_ids(pages, "")[:40] == shown
    given = [row["id"] for row in rows_of(routed)]
    assert all_ids(pages, "given-") == given
    assert sorted(all_ids(pages, "")) == sorted(given)


def test_the_order_of_a_ladder_is_that_of_its_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_ladder(tmp_path, limits={"min_pass_rate": 0.9})
    write_runs(tmp_path, tasks=40)
    ran = reasoning_budget(capsys, tmp_path)
    assert ran.code in {0, 1, 3}, ran.err
    run = ran.folder
    assert main(["items", str(run), "--quiet"]) == 0
    document = json.loads((run / "result.json").read_text())
    shown = [row["id"] for row in document["worst_items"]]
    assert all_ids(run / "items", "")[: len(shown)] == shown
    assert sorted(all_ids(run / "items", "")) == sorted(row["id"] for row in rows_of(run))
    first = (run / "items" / "0001.html").read_text()
    assert all(f"<bdi>{arm['name']}</bdi>" in first for arm in document["arms"])


def test_every_selection_holds_its_items_and_the_index_counts_them(routed: Path) -> None:
    assert main(["items", str(routed), "--page-size", "7", "--quiet"]) == 0
    pages = routed / "items"
    rows = rows_of(routed)
    risks = [row["name"] for row in json.loads((routed / "result.json").read_text())["risk_classes"]]
    index = (pages / "index.html").read_text()
    order = {name: place for place, name in enumerate(all_ids(pages, ""))}
    for r, risk in enumerate((None, *risks)):
        for f, flag in enumerate((None, *items_pages.ROUTING_FLAGS)):
            wanted = [
                row["id"]
                for row in rows
                if (risk is None or row["risk"] == risk) and (flag is None or flag in row["flags"])
            ]
            code = ("" if r == 0 else f"risk{r}-") + ("" if f == 0 else f"flag{f}-")
            assert all_ids(pages, code) == sorted(wanted, key=order.__getitem__)
            link = f'<a href="{code}0001.html">{len(wanted):,}</a>'
            assert (link in index) == bool(wanted)


def test_every_link_leads_to_a_page_and_every_page_is_reached(routed: Path) -> None:
    assert main(["items", str(routed), "--page-size", "11", "--quiet"]) == 0
    pages = routed / "items"
    reached, open_ = set(), ["index.html"]
    while open_:
        name = open_.pop()
        if name in reached:
            continue
        reached.add(name)
        for link in re.findall(r'<a [^>]*?href="([^"]*)"', (pages / name).read_text()):
            if link == "../report.html":
                assert (pages / link).is_file()
            elif not link.startswith("#"):
                open_.append(link)
    assert reached == {path.name for path in pages.glob("*.html")}
    assert {path.name for path in pages.iterdir()} == set(json.loads((pages / "pages.json").read_text())["files"])


def test_the_same_run_gives_the_same_bytes(routed: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert main(["items", str(routed), "--out", str(tmp_path / name), "--quiet"]) == 0
    one, two = ({p.name: p.read_bytes() for p in (tmp_path / name).iterdir()} for name in ("one", "two"))
    assert one == two
    assert b"report.html" not in one["index.html"]  # it lies elsewhere


def test_verify_of_the_run_does_not_mind_them(routed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["items", str(routed), "--quiet"]) == 0
    assert main(["verify", str(routed)]) == 0


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (["--only", "wrong"], {"q1", "q2"}),
        (["--only", "wrong,under_routed"], {"q0", "q1", "q2"}),
        (["--only", "wrong", "--only", "under_routed"], {"q0", "q1", "q2"}),
        (["--only", "unsolvable"], set()),
    ],
)
def test_only_items_with_a_flag(tmp_path: Path, given: list[str], found: set[str]) -> None:
    flags = {0: ["under_routed"], 1: ["wrong"], 2: ["wrong", "contract_failure"]}
    run = write_run(tmp_path / "run", (item(i, flags=flags.get(i, [])) for i in range(9)))
    assert main(["items", str(run), *given, "--quiet"]) == 0
    assert set(all_ids(run / "items", "")) == found
    assert f"{len(found)} of 9 items" in (run / "items" / "index.html").read_text()


def test_a_flag_that_there_is_not_is_named_with_those_that_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "run", [item(0)])
    assert main(["items", str(run), "--only", "wrnog"]) == 2
    said = capsys.readouterr().err
    assert "wrnog" in said
    assert "under_routed, unnecessary_escalation" in said
    assert not (run / "items").exists()


def test_hostile_texts_are_inert_in_every_page(tmp_path: Path) -> None:
    run = hostile_run(tmp_path / "run")
    assert main(["items", str(run), "--quiet"]) == 0
    pages = list((run / "items").glob("*.html"))
    assert len(pages) == 8  # index, all, given, the risk, two flags, and both with the risk
    for page in pages:
        html = page.read_text(encoding="utf-8")
        assert not re.search(r"<(script|img|base|b)\b", html)
        assert not re.search(
            r"\son\w+\s*=|javascript:|\x1b|\u202e|\u2028", re.sub(r"&lt;img src=x onerror", "", html)
        )
        assert set(re.findall(r'href="([^"]*)"', html)) <= {p.name for p in pages} | {"data:,", "#items"}
    assert "&lt;script&gt;" in (run / "items" / "0001.html").read_text()


@pytest.mark.parametrize(
    ("rows", "changes", "said"),
    [
        ([item(0), item(0)], {}, "stands there twice"),
        ([item(0)], {"counts": {"items": 2}}, "holds 1 items, and result.json counts 2"),
        ([item(0, risk="other")], {}, 'has the risk class "other"'),
        ([item(0, routed_tier="else")], {}, 'is routed to "else"'),
        ([item(0, passed=3)], {}, "no share"),
        ([item(0, loss_usd="x")], {}, "loss_usd"),
        ([item(0, flags="wrong")], {}, "flags"),
        ([item(i, flags=[f"f{i}"]) for i in range(80)], {}, "different flags"),
        ([item(0)], {"schema": "other/1"}, "schema"),
        ([item(0)], {"study": None}, "no usable study"),
        ([item(0)], {"risk_classes": [{"name": "low", "under_route_loss_usd": "x"}]}, "that is no number"),
        ([item(0)], {"counts": {}}, "result.json counts None"),
    ],
)
def test_a_file_that_is_no_runs_is_one_message_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rows: list[dict[str, Any]], changes: Any, said: str
) -> None:
    run = write_run(tmp_path / "run", rows, **changes)
    before = sorted(path.name for path in run.iterdir())
    assert main(["items", str(run)]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("Fix:") == 1
    assert "Traceback" not in error
    assert sorted(path.name for path in run.iterdir()) == before


@pytest.mark.parametrize(
    "content",
    [b"", b"\x1f\x8b broken", gzip.compress(b'{"id":', mtime=0), gzip.compress(b"[]\n", mtime=0)],
    ids=["empty", "cut", "half a record", "a list"],
)
def test_a_broken_file_of_items(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes) -> None:
    run = write_run(tmp_path / "run", [item(0)])
    (run / "items.jsonl.gz").write_bytes(content)
    assert main(["items", str(run)]) == 2
    assert capsys.readouterr().err.count("Fix:") == 1


def test_pages_are_replaced_whole_and_pages_of_before_do_not_stay(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", (item(i) for i in range(10)))
    assert main(["items", str(run), "--page-size", "2", "--quiet"]) == 0
    assert (run / "items" / "0005.html").exists()
    assert main(["items", str(run), "--page-size", "5", "--quiet"]) == 0
    assert not (run / "items" / "0003.html").exists()
    assert sorted(path.name for path in run.iterdir()) == ["items", "items.jsonl.gz", "result.json"]


def test_a_run_that_breaks_leaves_the_pages_of_before(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "run", (item(i) for i in range(10)))
    assert main(["items", str(run), "--quiet"]) == 0
    before = {path.name: path.read_bytes() for path in (run / "items").iterdir()}
    write_run(run, [*(item(i) for i in range(9)), item(9, risk="other")])
    assert main(["items", str(run), "--quiet"]) == 2
    assert {path.name: path.read_bytes() for path in (run / "items").iterdir()} == before
    assert sorted(path.name for path in run.iterdir()) == ["items", "items.jsonl.gz", "result.json"]


def test_a_folder_of_something_else_is_never_written_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "run", [item(0)])
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "notes.txt").write_text("keep")
    assert main(["items", str(run), "--out", str(mine)]) == 2
    assert main(["items", str(run), "--out", str(mine / "notes.txt")]) == 2
    assert main(["items", str(run), "--out", str(run)]) == 2
    assert "never written over" in capsys.readouterr().err
    # One that was ours until somebody kept something in it.
    assert main(["items", str(run), "--quiet"]) == 0
    (run / "items" / "notes.txt").write_text("keep")
    assert main(["items", str(run)]) == 2
    assert (run / "items" / "notes.txt").read_text() == "keep"
    assert (mine / "notes.txt").read_text() == "keep"


def test_a_folder_in_the_place_of_a_page_is_nobody_elses_to_remove(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "run", [item(0)])
    assert main(["items", str(run), "--quiet"]) == 0
    mine = run / "items" / "0001.html"
    mine.unlink()
    mine.mkdir()
    (mine / "notes.txt").write_text("keep")
    assert main(["items", str(run)]) == 2
    assert "never written over" in capsys.readouterr().err
    assert (mine / "notes.txt").read_text() == "keep"


def test_a_link_that_leads_to_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "run", [item(0)])
    (run / "items").symlink_to("items")
    assert main(["items", str(run)]) == 2
    assert capsys.readouterr().err.count("Fix:") == 1


def test_what_a_killed_run_left_is_removed_by_the_next_and_nothing_of_one_at_work(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [item(0)])
    left, working, young = (run / f".items.{digit * 12}.part" for digit in "abc")
    old, other = run / ".items.0123456789ab.old", run / ".items.mine.part"
    for folder in (left, working, young, old, other):
        folder.mkdir()
        (folder / "0001.html").write_text("x")
        if folder is not young:
            os.utime(folder, (1, 1))
    held = os.open(working, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert main(["items", str(run), "--quiet"]) == 0
    finally:
        os.close(held)
    names = {path.name for path in run.iterdir() if path.name.startswith(".")}
    assert names == {working.name, young.name, other.name}


def test_nobody_adds_to_a_sign_off(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "signoff" / "runs" / "small", [item(0)])
    (tmp_path / "signoff" / "signoff.json").write_text("{}")
    assert main(["items", str(run)]) == 2
    assert "--out" in capsys.readouterr().err
    assert main(["items", str(run), "--out", str(tmp_path / "pages"), "--quiet"]) == 0


@pytest.mark.parametrize("size", ["0", "-3", "5001"])
def test_a_page_size_that_makes_no_page(tmp_path: Path, capsys: pytest.CaptureFixture[str], size: str) -> None:
    run = write_run(tmp_path / "run", [item(0)])
    assert main(["items", str(run), "--page-size", size]) == 2
    assert "--page-size" in capsys.readouterr().err


def test_long_texts_make_more_pages_not_larger_ones(tmp_path: Path) -> None:
    long = "長" * 5000
    rows = (item(i, id=f"{i}{long}", category=long, group=long, status=long) for i in range(700))
    run = write_run(tmp_path / "run", rows)
    assert main(["items", str(run), "--page-size", "5000", "--quiet"]) == 0
    pages = list((run / "items").glob("*.html"))
    assert max(path.stat().st_size for path in pages) < 500_000
    assert len(all_ids(run / "items", "")) == 700


def test_memory_does_not_grow_with_what_is_written_of_an_item(tmp_path: Path) -> None:
    """20,000 items in rows of about 600 bytes are 12 MB on every one of their pages; far less is ever held."""
    rows = (item(i, category=f"category {i % 7} " + "x" * 40, flags=["wrong"] * (i % 2)) for i in range(20_000))
    run = write_run(tmp_path / "run", rows)
    tracemalloc.start()
    try:
        write_items(ItemsOptions(run, quiet=True))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    written = sum(path.stat().st_size for path in (run / "items").iterdir())
    assert written > 20_000_000
    assert most < 16_000_000


@pytest.mark.parametrize("key", ["id", "category", "status"])
def test_memory_does_not_grow_with_texts_that_are_as_long_as_may_be(tmp_path: Path, key: str) -> None:
    """200 items with 500,000 characters each, which a file of 1 MB unpacks to, are 100 MB; one is ever held."""
    run = write_run(tmp_path / "run", (item(i, **{key: f"{i}" + "x" * 500_000}) for i in range(200)))
    tracemalloc.start()
    try:
        write_items(ItemsOptions(run, quiet=True))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 16_000_000
    assert len(all_ids(run / "items", "")) == 200


def test_a_file_that_unpacks_without_end_is_read_to_a_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_folder, "_MOST_UNPACKED", 100_000)
    run = write_run(tmp_path / "run", (item(i, id=f"{i}" + "x" * 900) for i in range(200)))
    assert main(["items", str(run)]) == 2
    assert "items.jsonl.gz: unpacks to more than" in capsys.readouterr().err


def test_a_score_is_any_number_that_a_router_may_give(tmp_path: Path) -> None:
    """A time in nanoseconds, say: the run takes it, so its items are read again."""
    scores = [1.7e18, -1.7976931348623157e308, 1_700_000_000_000_000_000]
    run = write_run(tmp_path / "run", (item(i, score=score) for i, score in enumerate(scores)))
    assert main(["items", str(run), "--quiet"]) == 0
    found = read_run(run).items
    assert [found[f"q{i}"].score for i in range(3)] == scores
    broken = write_run(tmp_path / "broken", [item(0, score=10**400)])
    assert main(["items", str(broken), "--quiet"]) == 2


def test_pages_between_are_left_out_of_the_links_and_named(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", (item(i) for i in range(20)))
    document = json.loads((run / "result.json").read_text())
    whole = Selection("", None, None, False, 20)
    frame = frame_of(document, None, [whole, Selection("given-", None, None, True, 20)])
    row = row_renderer(document, None)
    assert row is not None
    html = render_page(frame, whole, 10, 20, 10, b"")
    pager = re.search(r'<nav class="pager" aria-label="Pages">(.*?)</nav>', html, re.DOTALL)
    assert pager is not None
    numbers = re.findall(r">(\d+|…)<", pager.group(1))
    assert numbers == ["1", "…", "7", "8", "9", "10", "11", "12", "13", "…", "20"]
    assert '<span aria-current="page">10</span>' in pager.group(1)
    assert all(a != b for a, b in pairwise(numbers))


def test_what_is_unknown_is_no_figure(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [item(0, cost_usd=None, task_s=None, score=None, passed=None, status=None)])
    assert main(["items", str(run), "--quiet"]) == 0
    html = (run / "items" / "0001.html").read_text()
    assert "<td></td><td></td><td>$0</td><td></td><td></td></tr>" in html
    assert HOSTILE not in html
