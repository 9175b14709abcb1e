"""Faults from practice in what is written and shown, each as its case describes, through the command line."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
import zipfile
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.workflows.cases import case, decided, mentions, study
from tests.workflows.studies import evalkit, write_items, write_study


def test_h06_every_file_is_strict_json_and_no_page_says_nan(shared: Path, tmp_path: Path, capsys: Any) -> None:
    case(shared, "H06-strict-json-out", tmp_path)
    study(tmp_path, decided("routed.csv"))
    ran = evalkit(capsys, tmp_path)
    result = ran.result  # the parser refuses NaN and Infinity
    high = result["judged"]["by_risk"]["high"]
    assert high["under_route_rate"] is None
    assert high["under_route_rate_reason"] == "0 needs"
    assert result["judged"]["p95_task_s"] is None
    assert result["judged"]["p95_task_s_reason"] == "no task times"
    shown = _Text(ran.html).text
    assert "n/a" in shown
    for word in ("nan", "None", "null", "Infinity"):
        assert not re.search(rf"(?<![A-Za-z]){word}(?! of)(?![A-Za-z])", shown), word


class _Text(HTMLParser):
    """Visible text and the elements of a page."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.parts: list[str] = []
        self._hidden = 0
        self.feed(html)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.parts).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._hidden += tag in {"script", "style"}

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in {"script", "style"}

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(data)


def test_h01_text_from_labels_and_models_stays_text(shared: Path, tmp_path: Path, capsys: Any) -> None:
    case(shared, "H01-xss", tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text(encoding="utf-8").splitlines()]
    evil = [
        rows[0]["query"],
        rows[0]["output"],
        rows[0]["query_id"],
        rows[0]["model"],
        rows[1]["output"],
        "</script><script>document.title='pwned-5'</script>",
        "${7*7}{{7*7}}",
        "\u202e\u2066\x1b[31mred",
    ]
    labels, outcomes, routed = [], [], []
    for n, text in enumerate(evil):
        item = f"{rows[0]['query_id']}{n}"
        labels.append(
            {
                "id": item,
                "prompt": text,
                "required_tier": "frontier",
                "risk": "low<i>",
                "category": text,
                "reference": text,
            }
        )
        routed.append({"id": item, "routed_tier": "cheap"})
        outcomes += [
            {
                "id": item,
                "tier": tier,
                "model": text,
                "status": "error" if n % 2 else "wrong",
                "cost_usd": 0.1,
                "reply": text,
                "error": {"message": text},
            }
            for tier in ("cheap", "frontier")
        ]
    for name, table in (("labels", labels), ("outcomes", outcomes), ("routed", routed)):
        lines = "".join(json.dumps(row) + "\n" for row in table)
        (tmp_path / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    write_study(
        tmp_path,
        description='x"><svg onload=document.title=1>',
        labels="labels.jsonl",
        outcomes="outcomes.jsonl",
        tiers=[{"name": "cheap", "model": "<b>mid</b>"}, {"name": "frontier"}],
        router={"decisions": "routed.jsonl", "cost_usd": 0},
        risk={"low<i>": {"under_route_loss": 1, "max_under_route": 0.5}},
    )
    ran = evalkit(capsys, tmp_path, "--markdown", str(tmp_path / "s.md"), "--junit", str(tmp_path / "j.xml"))
    assert ran.code in {1, 3}, ran.err
    page = _Text(ran.html)
    assert not {tag for tag, _ in page.tags} & {"img", "iframe", "b", "i", "object", "embed", "base", "form"}
    assert not [a for _, attrs in page.tags for a in attrs if a.startswith("on")]
    assert not [v for _, attrs in page.tags for v in attrs.values() if v and "javascript:" in v.lower()]
    assert "&amp;lt;already escaped&amp;gt;" in ran.html
    assert "&lt;already escaped&gt;" in page.text
    for control in ("\u202e", "\u2066", "\x1b"):
        assert control not in ran.html
        assert control not in ran.out + ran.err
        assert control not in (tmp_path / "s.md").read_text(encoding="utf-8")
    assert "<script" not in (tmp_path / "s.md").read_text(encoding="utf-8")


def test_h03_the_report_loads_nothing(shared: Path, tmp_path: Path, capsys: Any) -> None:
    case(shared, "M02-matrix-orientation", tmp_path)
    study(tmp_path, decided("routed.csv"), description="see https://example.org/page")
    ran = evalkit(capsys, tmp_path)
    check = subprocess.run(
        [sys.executable, str(shared / "cases/H03-offline/check_offline.py"), str(ran.folder / "report.html")],
        check=False,
        capture_output=True,
    )
    assert check.returncode == 0, check.stdout
    assert "<svg" in ran.html
    names = ["evidence.zip", "items.jsonl.gz", "report.html", "result.json"]
    assert sorted(p.name for p in ran.folder.iterdir()) == names


def test_h04_twenty_thousand_long_items_stay_a_small_page(shared: Path, tmp_path: Path, capsys: Any) -> None:
    case(shared, "H04-huge-report", tmp_path)
    subprocess.run([sys.executable, "make_input.py", "20000"], cwd=tmp_path, check=True)
    with (
        (tmp_path / "results.jsonl").open(encoding="utf-8") as results,
        (tmp_path / "labels.jsonl").open("w", encoding="utf-8") as labels,
        (tmp_path / "outcomes.jsonl").open("w", encoding="utf-8") as out,
        (tmp_path / "routed.csv").open("w", encoding="utf-8") as routed,
    ):
        routed.write("id,routed_tier\n")
        for line in results:
            row = json.loads(line)
            item = row["query_id"]
            labels.write(
                json.dumps({"id": item, "prompt": row["query"], "required_tier": "cheap", "risk": "low"}) + "\n"
            )
            for tier in ("cheap", "frontier"):
                out.write(
                    json.dumps(
                        {
                            "id": item,
                            "tier": tier,
                            "passed": row["correct"],
                            "cost_usd": 0.001,
                            "reply": row["output"],
                        }
                    )
                    + "\n"
                )
            routed.write(f"{item},cheap\n")
    write_study(
        tmp_path,
        labels="labels.jsonl",
        outcomes="outcomes.jsonl",
        router={"decisions": "routed.csv", "cost_usd": 0},
        risk={"low": {"under_route_loss": 1, "max_under_route": 0.5}},
    )
    ran = evalkit(capsys, tmp_path)
    assert (ran.folder / "report.html").stat().st_size < 3_000_000
    assert ran.result["judged"]["pass_rate"] == pytest.approx(18_000 / 20_000)
    assert ran.result["worst_items_total"] == 2_000
    text = _Text(ran.html).text
    assert "40 of 2,000" in text
    assert "items.jsonl.gz" in text
    # "long " 800 times and the number of the item: the mark says the whole length, not that of what is kept
    assert re.search(r"cut here; 4,00[0-9] characters in all", text)


SECRET = "sk-FAKE-demo-0000-not-a-key"


@pytest.mark.parametrize("debug", [False, True])
def test_h07_a_key_reaches_no_output(shared: Path, tmp_path: Path, capsys: Any, debug: bool) -> None:
    case(shared, "H07-secrets", tmp_path)
    labels = "id,prompt,required_tier,risk\n" + "".join(
        f"q{i},my key is {SECRET} thanks,frontier,low\n" for i in range(4)
    )
    (tmp_path / "labels.csv").write_text(labels, encoding="utf-8")
    (tmp_path / "routed.csv").write_text(
        "id,routed_tier\n" + "".join(f"q{i},cheap\n" for i in range(4)), encoding="utf-8"
    )
    error = json.loads((tmp_path / "error.json").read_text(encoding="utf-8"))
    rows = [
        {
            "id": f"q{i}",
            "tier": tier,
            "status": "error",
            "error": error,
            "cost_usd": 0.1,
            "reply": "x" * 1990 + f" {SECRET}",
        }
        for i in range(4)
        for tier in ("cheap", "frontier")
    ]
    (tmp_path / "outcomes.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    (tmp_path / "study.yaml").write_text(
        f"""study: secrets
kind: routing
labels: labels.csv
outcomes: outcomes.jsonl
tiers:
  - name: cheap
    model: demo/mid
    params:
      api_key: {SECRET}
      api_base: "https://user:{SECRET}@gw.example/v1?api_key={SECRET}"
      extra_headers:
        Authorization: "Bearer {SECRET}"
        X-Team: routing
      max_tokens: 256
  - {{name: frontier, model: demo/frontier}}
router: {{decisions: routed.csv, cost_usd: 0}}
risk:
  low: {{under_route_loss: 1, max_under_route: 0.5}}
""",
        encoding="utf-8",
    )
    options = ["--markdown", str(tmp_path / "run" / "s.md"), "--junit", str(tmp_path / "run" / "j.xml")]
    ran = evalkit(capsys, tmp_path, *options, *(["--debug"] if debug else []))
    assert ran.code in {1, 3}, ran.err
    assert mentions(ran.err, ["study.yaml:9", "api_key", "environment variable"])
    written = {p.name: p.read_bytes() for p in ran.folder.iterdir()}
    written["items.jsonl.gz"] = gzip.decompress(written["items.jsonl.gz"])
    with zipfile.ZipFile(ran.folder / "evidence.zip") as bundle:
        written |= {f"evidence.zip/{name}": bundle.read(name) for name in bundle.namelist()}
    written |= {p.name: p.read_bytes() for p in tmp_path.glob("*.looks.json")}
    written |= {"stdout": ran.out.encode(), "stderr": ran.err.encode()}
    for name, content in written.items():
        assert SECRET.encode() not in content, name
        assert SECRET[:14].encode() not in content, f"half a key in {name}"
    text = written["result.json"].decode()
    for kept in ("256", "routing", "gw.example", "demo/mid"):
        assert kept in text, kept


@pytest.mark.parametrize("written", ["Zq7vT2mXw9Lp4RkY8bNc", "os.environ/EVALKIT_TEST_KEY"])
def test_h07_a_key_of_no_known_shape_is_hidden_where_it_comes_back(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    secret = "Zq7vT2mXw9Lp4RkY8bNc"
    monkeypatch.setenv("EVALKIT_TEST_KEY", secret)
    write_items(tmp_path, 20)
    rows = [
        {"id": f"q{i}", "tier": tier, "passed": False, "cost_usd": 1, "reply": f"x{secret}y the key is {secret}"}
        for i in range(20)
        for tier in ("cheap", "frontier")
    ]
    (tmp_path / "outcomes.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    tiers = [{"name": "cheap", "model": "demo/a", "params": {"api_key": written}}, {"name": "frontier"}]
    write_study(tmp_path, outcomes="outcomes.jsonl", tiers=tiers)
    ran = evalkit(capsys, tmp_path)
    assert ran.code in {1, 3}, ran.err
    for file in ran.folder.iterdir():
        content = file.read_bytes()
        content = gzip.decompress(content) if file.suffix == ".gz" else content
        assert secret.encode() not in content, file.name
    assert secret not in ran.out + ran.err
