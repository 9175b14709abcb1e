"""The same study makes the same bytes in another process, folder, hash seed, zone and number of threads."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.workflows.router_studies import KEYWORDS, NOISE, VENDOR, write_routers

ROOT = Path(__file__).resolve().parents[2]
CROSS_FITTED = {"name": "낱말", "kind": "classifier", "trained_on": "cross_fitted", "cost_usd": 0, "seconds": 0}
MADE = ["result.json", "report.html", "items.jsonl.gz", "evidence.zip", "junit.xml", "summary.md"]


def _run(study: Path, out: Path, cwd: Path, **environment: str) -> None:
    views = ["--junit", str(out / "junit.xml"), "--markdown", str(out / "summary.md")]
    done = subprocess.run(
        [sys.executable, "-m", "evalkit", "route-sweep", str(study), "--out", str(out), "--quiet", *views],
        cwd=cwd,
        env=os.environ | {"SOURCE_DATE_EPOCH": "1790000000", "PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in {0, 1, 3}, done.stderr


def test_several_routers_of_which_one_is_fitted_here(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "다른 곳" / "deeper"
    here.mkdir()
    write_routers(here, KEYWORDS, VENDOR, NOISE, CROSS_FITTED, n=300)
    shutil.copytree(here, there)
    _run(here / "study.yaml", here / "run", here, PYTHONHASHSEED="1", TZ="UTC")
    _run(there / "study.yaml", there / "run", tmp_path, PYTHONHASHSEED="77", TZ="Asia/Seoul", OMP_NUM_THREADS="1")
    for name in MADE:
        assert (here / "run" / name).read_bytes() == (there / "run" / name).read_bytes(), name
