"""A sign-off of a run that judged several routers names the chosen one and keeps to its part of the error rate."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.workflows.router_studies import KEYWORDS, NOISE, VENDOR, write_routers
from tests.workflows.studies import evalkit

POLICY = """\
policy: routers
risk:
  critical: {max_under_route: 0.05}
baseline: {arm: "always:frontier", margin_points: 2}
signers: [{role: approver, name: The owner}]
"""


def test_the_chosen_router_is_named_and_its_share_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from evalkit.cli.app import main

    (tmp_path / "policy.yaml").write_text(POLICY, encoding="utf-8")
    fixed = [router | {"thresholds": [0.5]} for router in (KEYWORDS, VENDOR, NOISE)]
    write_routers(tmp_path, *fixed, policy="policy.yaml")
    ran = evalkit(capsys, tmp_path)
    out = tmp_path / "signoff"
    code = main(["sign-off", str(ran.folder), "--policy", str(tmp_path / "policy.yaml"), "--out", str(out)])
    printed = capsys.readouterr()
    assert code == 0, printed.err
    document = json.loads((out / "signoff.json").read_text(encoding="utf-8"))
    (run,) = document["runs"]
    assert run["router"] == {"name": "keywords", "of": 3}
    (gate,) = [row for row in document["gates"] if row["name"] == "non_inferiority"]
    assert gate["status"] == "certified"
    assert gate["confidence"] == pytest.approx(1 - 0.05 / 3)
    routers = next(iter(document["provenance"][run["id"]]["routers"]))
    assert (routers["name"], routers["kind"]) == ("keywords", "rules")
    page = (out / "signoff.html").read_text(encoding="utf-8")
    assert "; router keywords, the best of 3" in page
    assert main(["verify", str(out)]) == 0
    asked = ["sign-off", str(ran.folder), "--policy", str(tmp_path / "policy.yaml"), "--lang", "ko"]
    assert main([*asked, "--out", str(out / "ko")]) == 0
    page = (out / "ko" / "signoff.html").read_text(encoding="utf-8")
    assert "라우터 keywords, 3개 가운데 최선" in page
    assert "라우터 keywords: 이 항목에서 3개 가운데 가장 나은 것으로 선택했습니다. 오류율은 1/3씩" in page
