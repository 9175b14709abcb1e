"""Audits of other studies: three tiers, weights, conversations, hidden keys, files that are in the way."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta

from tests.workflows.audits import run, sweep

THREE = """study: three
kind: routing
labels: labels.jsonl
outcomes: outcomes.csv
tiers: [{name: cheap}, {name: mid}, {name: strong}]
router: {scores: scores.csv, higher_means: cheap_is_enough, trained_on: other_items, cost_usd: 0, seconds: 0}
risk:
  low: {under_route_loss: 0.01}
  high: {under_route_loss: 0.02, max_under_route: 0.15}
bootstrap_replicates: 200
seed: 7
"""


class TestOtherShapes:
    """Three tiers, where 60 % of the items certify; weights and conversations; a score that means the opposite."""

    def write(self, folder: Path, *, secret: bool = False) -> list[dict[str, Any]]:
        rng = np.random.default_rng(8)
        world = []
        for i in range(1600):
            required = int(rng.choice(3, p=[0.5, 0.3, 0.2]))
            demand = float(required + rng.uniform(0, 0.9))
            world.append(
                {"id": f"q{i}", "tier": ("cheap", "mid", "strong")[required], "need": required, "score": -demand}
            )
        with (folder / "labels.jsonl").open("w", encoding="utf-8") as file:
            for i, row in enumerate(world):
                said = {"id": row["id"], "prompt": "hm", "required_tier": row["tier"], "weight": 1 + i % 3,
                        "risk": "high" if i % 4 else "low", "group": f"g{i // 2}"}  # fmt: skip
                if secret and i == 5:
                    said["prompt"] = "my key is sk-proj-FAKEfakeFAKEfake0123456789abcdefFAKE"
                file.write(json.dumps(said) + "\n")
        with (folder / "scores.csv").open("w", encoding="utf-8", newline="") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerows([("id", "score"), *((row["id"], row["score"]) for row in world)])
        with (folder / "outcomes.csv").open("w", encoding="utf-8", newline="") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerow(("id", "tier", "status", "cost_usd", "task_s"))
            for row in world:
                for k, (name, usd) in enumerate((("cheap", 0.001), ("mid", 0.004), ("strong", 0.02))):
                    out.writerow((row["id"], name, "ok" if k >= row["need"] else "wrong", usd, 1))
        (folder / "study.yaml").write_text(THREE, encoding="utf-8")
        return world

    def audit(self, folder: Path, capsys: Any, world: list[dict[str, Any]], *options: object) -> dict[str, Any]:
        study = folder / "study.yaml"
        code, _, err = run(capsys, "labels", "audit", study, "--out", folder / "audit.csv", *options)
        assert code == 0, err
        true = {row["id"]: row["tier"] for row in world}
        with (folder / "audit.csv").open(encoding="utf-8", newline="") as file:
            rows = [{**row, "required_tier": true[row["id"]]} for row in csv.DictReader(file)]
        with (folder / "audit.csv").open("w", encoding="utf-8", newline="") as file:
            out = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            out.writeheader()
            out.writerows(rows)
        asked = ("labels", "audit", study, "--judged", folder / "audit.csv", "--json", folder / "audit.json")
        code, _, err = run(capsys, *asked)
        assert code == 0, err
        study.write_text(THREE + "audit: audit.json\n", encoding="utf-8")
        return json.loads((folder / "audit.json").read_text(encoding="utf-8"))

    @pytest.mark.parametrize("options", [("--per-class", 400), ("--all", "--per-class", 400)])
    def test_three_tiers_weights_and_conversations(self, options: Any, tmp_path: Path, capsys: Any) -> None:
        world = self.write(tmp_path)
        audit = self.audit(tmp_path, capsys, world, *options)
        code, found = sweep(capsys, tmp_path)
        assert code == 0, found["verdict"]
        gate = found["gates"][0]
        assert (gate["status"], gate["n_is"]) == ("certified", "conversations with a need")
        row = found["label_audit"]["classes"][1]
        assert row["cheap_labels"] == audit["classes"][1]["cheap_labels"] < found["counts"]["certifying"]
        # R_true <= R + M / n, with M in units of the heaviest need.
        share = row["missed_share_upper"]
        n, k = gate["n"], gate["k"]
        assert gate["upper_bound"] == pytest.approx(float(beta.ppf(0.975, k + 1, n - k)) + share)
        missed = row["cheap_labels"] * (1 - 0.025 ** (1 / row["audited"]))
        assert share >= missed / n * (1 - 1e-9)
        assert run(capsys, "verify", tmp_path / "run")[0] == 0

    def test_verify_reads_the_audit_where_a_key_was_hidden_in_the_labels(
        self, tmp_path: Path, capsys: Any
    ) -> None:
        world = self.write(tmp_path, secret=True)
        self.audit(tmp_path, capsys, world, "--all", "--per-class", 400)
        code, found = sweep(capsys, tmp_path)
        assert code == 0
        assert found["provenance"]["evidence"]["hidden_in"] == ["labels"]
        code, out, err = run(capsys, "verify", tmp_path / "run")
        assert (code, err) == (0, ""), out

    def test_verify_names_a_result_that_says_another_audit(self, tmp_path: Path, capsys: Any) -> None:
        world = self.write(tmp_path)
        self.audit(tmp_path, capsys, world, "--all", "--per-class", 400)
        sweep(capsys, tmp_path)
        file = tmp_path / "run" / "result.json"
        document = json.loads(file.read_text(encoding="utf-8"))
        document["label_audit"]["classes"][1]["missed_share_upper"] = 0.0001
        file.write_text(json.dumps(document), encoding="utf-8")
        code, out, err = run(capsys, "verify", tmp_path / "run")
        assert code != 0
        assert "label_audit" in out + err

    def test_the_run_does_not_write_over_its_audit(self, tmp_path: Path, capsys: Any) -> None:
        world = self.write(tmp_path)
        self.audit(tmp_path, capsys, world, "--all", "--per-class", 400)
        before = (tmp_path / "audit.json").read_bytes()
        code, _, _ = run(
            capsys,
            "route-sweep",
            tmp_path / "study.yaml",
            "--out",
            tmp_path / "run",
            "--json",
            tmp_path / "audit.json",
        )
        assert code == 2
        assert (tmp_path / "audit.json").read_bytes() == before

    @pytest.mark.parametrize("first", ["searched", "fixed"])
    def test_a_fixed_router_beside_a_searched_one_is_audited_on_all_items_that_certify_it(
        self, first: str, tmp_path: Path, capsys: Any
    ) -> None:
        """The searched one certifies on 60 % of the items, the fixed one on all: so all its cheap labels count."""
        world = self.write(tmp_path)
        about = (
            "scores: scores.csv, higher_means: cheap_is_enough, trained_on: other_items, cost_usd: 0, seconds: 0"
        )
        rows = {
            "searched": f"  - {{name: searched, {about}}}",
            "fixed": f"  - {{name: fixed, {about}, thresholds: [-0.95, -1.95]}}",
        }
        listed = "\n".join([rows.pop(first), *rows.values()])
        lines = [f"routers:\n{listed}" if line.startswith("router:") else line for line in THREE.splitlines()]
        text = "\n".join(lines) + "\n"
        (tmp_path / "study.yaml").write_text(text, encoding="utf-8")
        study, drawn = tmp_path / "study.yaml", tmp_path / "audit.csv"
        code, _, err = run(capsys, "labels", "audit", study, "--out", drawn, "--all", "--per-class", 400)
        assert code == 0, err
        record = json.loads((tmp_path / "audit.csv.draw.json").read_text(encoding="utf-8"))
        cheap = [row["need"] == 0 and i % 4 > 0 for i, row in enumerate(world)]
        assert record["classes"][1]["cheap_labels"] == sum(cheap)

    def test_a_missed_need_weighs_as_much_as_any_where_the_heaviest_needs_do_not_certify(
        self, tmp_path: Path
    ) -> None:
        """Of a searched router beside a fixed one: in units of the heaviest need that certifies it."""
        from dataclasses import replace

        from evalkit.study.routing import read_study
        from evalkit.workflows.label_audit_draw import draw_classes, point_everywhere
        from evalkit.workflows.route_sweep import read_inputs

        self.write(tmp_path)
        inputs = read_inputs(read_study(tmp_path / "study.yaml"))
        data = replace(inputs.assembled.data, group=None)
        assert data.direction is not None
        weight = np.where(data.needs & ~data.direction, 1.0, 4.0)
        data = replace(data, weight=weight / weight.mean())
        searched = inputs.study.router
        fixed = replace(searched, name="fixed", thresholds=(-0.95, -1.95))
        study = replace(inputs.study, routers=(replace(searched, name="searched"), fixed))
        drawn = draw_classes(
            study, inputs.labels.ids, data, point_everywhere(study, data), 50, 7, labels_hash="sha256:0"
        )
        assert drawn[1].counts.scale == pytest.approx(4.0)
