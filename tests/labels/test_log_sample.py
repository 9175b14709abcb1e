"""A sample of a log: near duplicates once, traffic shares back by the weights, and no value in any message."""

from __future__ import annotations

import json
import traceback
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.cli.app import main
from evalkit.errors import InputError
from evalkit.labels.log import read_log, withheld
from evalkit.labels.near_duplicates import clusters, similarity
from evalkit.labels.stratified import draw_by_stratum
from evalkit.statistics.strata import stratified_mean


def words(rng: np.random.Generator, n: int) -> str:
    return " ".join(f"w{k}" for k in rng.integers(0, 5000, n))


def shingled(text: str) -> tuple[frozenset[str], int]:
    """The runs of 8 characters of a text, of 4 where it is shorter than 40, and which of the two."""
    plain = " ".join(text.split())
    width = 8 if len(plain) >= 40 else 4
    plain = plain.ljust(width, "\0")
    return frozenset(plain[k : k + width] for k in range(len(plain) - width + 1)), width


class TestNearDuplicates:
    def test_similarity_by_hand(self) -> None:
        # shingles of 4: abcd bcde cdef | abcd bcde cdeg: 2 of 4
        assert similarity("abcdef", "abcdeg") == pytest.approx(0.5)
        assert similarity("Same  TEXT here", "same text HERE") == 1.0

    def test_one_word_changed_is_the_same_and_another_text_is_not(self) -> None:
        rng = np.random.default_rng(1)
        base = [words(rng, 80) for _ in range(200)]
        near = [text + " please" for text in base]
        found = clusters([*base, *near])
        assert found[:200].tolist() == list(range(200))
        assert np.mean(found[200:] == np.arange(200)) >= 0.99

    @settings(max_examples=150, deadline=None)
    @given(
        st.lists(st.tuples(st.text("ab ", max_size=14), st.text("xyz", max_size=60), st.booleans()), max_size=12),
        st.sampled_from([0.3, 0.5, 0.55, 0.7, 0.85, 0.9, 1.0]),
    )
    def test_no_pair_is_missed(self, drawn: list[tuple[str, str, bool]], threshold: float) -> None:
        """Against every pair compared: the first earlier first one that is as similar, within the same part."""
        texts, parts = ["-".join([a, b, a]) for a, b, _ in drawn], [c for _, _, c in drawn]
        expected: list[int] = []
        sets = [shingled(text) for text in texts]
        for i, (own, width) in enumerate(sets):
            near = (
                j
                for j in range(i)
                if expected[j] == j and parts[j] == parts[i] and sets[j][1] == width
                if len(own & sets[j][0]) / len(own | sets[j][0]) >= threshold
            )
            same = next((expected[j] for j in range(i) if parts[j] == parts[i] and sets[j] == sets[i]), None)
            expected.append(next(near, i) if same is None else same)
        assert clusters(texts, threshold, parts).tolist() == expected

    def test_a_template_brings_nobody_together_and_costs_no_pair(self) -> None:
        """Half of each of 3,000 texts is one greeting; each says something of its own."""
        rng = np.random.default_rng(2)
        greeting = words(rng, 60)
        texts = [greeting + words(rng, 60) for _ in range(3000)]
        assert clusters([*texts, texts[5] + " w1"]).tolist() == [*range(3000), 5]

    @settings(max_examples=50)
    @given(st.lists(st.text(max_size=40), max_size=15))
    def test_a_leader_leads_itself(self, texts: list[str]) -> None:
        found = clusters(texts)
        assert all(found[k] == k and k <= i for i, k in enumerate(found.tolist()))
        for i, k in enumerate(found.tolist()):
            assert similarity(texts[i], texts[k]) >= 0.85


def test_rows_that_held_personal_data_are_counted_not_equal_texts(tmp_path: Path) -> None:
    rows = [{"prompt": "hello", "group": "a b"}, {"prompt": "mail a.b@example.com", "group": "a b"}]
    rows += [{"prompt": "hello", "group": "a b"}, {"prompt": "x", "group": "call 010-1234-5678"}] * 2
    file = tmp_path / "log.csv"
    file.write_text("prompt,group\n" + "".join(f"{r['prompt']},{r['group']}\n" for r in rows), encoding="utf-8")
    assert read_log(file).touched == 3


class TestSystemPrompts:
    def test_a_long_system_prompt_makes_no_two_requests_alike(self, tmp_path: Path) -> None:
        rng = np.random.default_rng(4)
        system = {"role": "system", "content": words(rng, 400)}
        asked = [words(rng, 12) for _ in range(50)]
        lines = [{"messages": [system, {"role": "user", "content": text}]} for text in [*asked, asked[0] + "!"]]
        file = tmp_path / "log.jsonl"
        file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        log = read_log(file)
        drawn = draw_by_stratum(log.texts, log.weight, [None] * 51, 51, contexts=log.contexts)
        assert drawn.strata[0].distinct == 50

    def test_the_same_words_under_another_system_prompt_are_another_request(self) -> None:
        texts = ["the quick brown fox jumps over the lazy dog and sleeps"] * 4
        contexts = ["Translate into Korean.", "Count the words of it.", "Translate into Korean.", ""]
        drawn = draw_by_stratum(texts, np.ones(4), [None] * 4, 4, contexts=contexts)
        assert sorted(drawn.chosen.tolist()) == [0, 1, 3]
        assert drawn.weight[drawn.chosen == 0] == 2


class TestWeights:
    def test_planted_shares_are_recovered_within_the_interval(self) -> None:
        """2,000 requests, 88 % low, 9 % mid, 3 % high; a need in 5, 20 and 60 % of them."""
        rng = np.random.default_rng(7)
        strata = rng.choice(["low", "mid", "high"], size=2000, p=[0.88, 0.09, 0.03])
        need = rng.random(2000) < np.select([strata == "low", strata == "mid"], [0.05, 0.2], 0.6)
        texts = [words(rng, 12) for _ in range(2000)]
        shares = {name: float((strata == name).mean()) for name in ("low", "mid", "high")}
        hits = 0
        for seed in range(15):
            drawn = draw_by_stratum(texts, np.ones(2000), strata.tolist(), 180, seed=seed, threshold=1.0)
            of = strata[drawn.chosen]
            for name, share in shares.items():  # exactly, whatever was drawn
                assert drawn.weight[of == name].sum() / drawn.weight.sum() == pytest.approx(share)
            got = stratified_mean(need[drawn.chosen].astype(float), of, shares)
            assert got.lower is not None
            hits += got.lower <= need.mean() <= got.upper
            assert np.average(need[drawn.chosen], weights=drawn.weight) == pytest.approx(got.mean)
        assert hits >= 12
        assert (of == "high").sum() >= 45  # a thirtieth of the traffic, a third of the sample

    def test_a_template_keeps_its_traffic(self) -> None:
        """Half of a stratum is one template: drawn once, it stands for all its copies; the mean is unbiased."""
        rng = np.random.default_rng(3)
        texts = ["Please reset my password for the portal, thank you in advance for your help"] * 100
        texts += [words(rng, 15) for _ in range(100)]
        value = np.array([1.0] * 100 + [0.0] * 100)
        means = []
        for seed in range(60):
            drawn = draw_by_stratum(texts, np.ones(200), [None] * 200, 20, seed=seed)
            assert len(set(drawn.chosen.tolist())) == 20
            assert drawn.weight.sum() == pytest.approx(200)
            means.append(np.average(value[drawn.chosen], weights=drawn.weight))
        assert np.mean(means) == pytest.approx(0.5, abs=0.03)
        assert drawn.strata[0].distinct == 101

    def test_rows_without_traffic_are_never_drawn(self) -> None:
        rng = np.random.default_rng(3)
        texts = [words(rng, 12) for _ in range(50)]
        traffic = np.r_[np.zeros(25), np.full(25, 4.0)]
        drawn = draw_by_stratum(texts, traffic, [None] * 50, 50)
        assert sorted(drawn.chosen.tolist()) == list(range(25, 50))
        assert drawn.weight.tolist() == [4.0] * 25


SECRETS = ["dana.reyes@example.com", "010-1234-5678", "4000123456789017", "850312-1001230"]


class TestNothingIsTold:
    def test_ids_groups_and_classes_are_renamed(self, tmp_path: Path) -> None:
        file = tmp_path / "log.jsonl"
        rows = [
            {"id": SECRETS[0], "prompt": "hi there", "group": SECRETS[1], "risk": "low"},
            {"id": "b", "messages": [{"role": "user", "content": f"card {SECRETS[2]}"}], "group": SECRETS[1]},
            {"id": "c", "prompt": "  "},
        ]
        file.write_text("\n".join(json.dumps(r) for r in rows), encoding="utf-8")
        log = read_log(file)
        assert (len(log), log.blank, log.touched) == (2, 1, 2)
        assert log.columns["id"][0] == "id-1-renamed"
        assert log.columns["group"] == ["group-1-renamed"] * 2
        assert dict(log.removed) == {"card": 1}
        assert not any(secret in repr(log) for secret in SECRETS)

    @pytest.mark.parametrize("secret", SECRETS)
    @pytest.mark.parametrize(
        "row",
        [
            '{{"id": "a", "prompt": "x"}}\n{{"id": "a {s}", "prompt": ["{s}"]}}',
            '{{"id": "{s}", "prompt": "x"}}\n{{"id": "{s}", "prompt": "y"}}',
            '{{"id": "a", "prompt": "x", "weight": "{s}"}}',
            '{{"id": "a", "prompt": "x {s}" oops}}',
            '{{"id": "a", "prompt": "x", "metadata": "{s}", "messages": "{s}"}}',
            '{{"id": "a", "{s}": 1}}',
            '{{"id": "a", "prompt": "x", "prompt": "{s}"}}',
            '{{"id": "a", "prompt": 1.5, "note": "say \\"{s}\\""}}',
        ],
    )
    def test_faults_hold_no_value(self, tmp_path: Path, row: str, secret: str) -> None:
        file = tmp_path / "log.jsonl"
        file.write_text(row.format(s=secret) + "\n", encoding="utf-8")
        try:
            log = read_log(file)
        except InputError as error:
            told = str(error) + "".join(traceback.format_exception(error))
            assert "log.jsonl" in told
        else:
            told = repr(log)
        assert secret not in told
        assert secret[:7] not in told

    def test_header_of_a_table_without_one(self, tmp_path: Path) -> None:
        file = tmp_path / "log.csv"
        file.write_text(f"1,{SECRETS[0]},hello\n2,b@example.com,hi\n", encoding="utf-8")
        with pytest.raises(InputError) as caught:
            read_log(file)
        assert "dana" not in str(caught.value)

    def test_a_bug_is_told_without_its_message(self) -> None:
        with pytest.raises(RuntimeError, match="KeyError on the way") as caught, withheld():
            raise KeyError(SECRETS[0])
        assert SECRETS[0] not in "".join(traceback.format_exception(caught.value))


def test_a_row_without_traffic_is_no_near_duplicate(tmp_path: Path) -> None:
    rows = [
        ("a", "How do I reset my password?", 3),
        ("b", "Cancel the order of Monday", 0),
        ("c", "Cancel the order", 2),
    ]
    log, summary = tmp_path / "log.csv", tmp_path / "s.json"
    log.write_text("id,prompt,weight\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows), encoding="utf-8")
    command = ["labels", "sample", str(log), "--out", str(tmp_path / "s.jsonl"), "--json", str(summary)]
    assert main(command) == 0
    found = json.loads(summary.read_text(encoding="utf-8"))
    assert (found["rows_without_traffic"], found["near_duplicates"]["rows"], found["drawn"]) == (1, 0, 2)
