"""Routers that evalkit runs, and several routers in one study: what is read, and every fault of it."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.errors import InputError
from evalkit.study import override, read_study
from evalkit.study.fingerprint import study_fingerprint
from tests.study.routing_studies import SMALL, Write, changed, faults

ROUTER = "router: {scores: scores.csv, higher_means: cheap_is_enough, trained_on: other_items, cost_usd: 0}"
VENDOR = "{name: vendor, scores: scores.csv, higher_means: cheap_is_enough, trained_on: untrained, cost_usd: 0.5}"
KEYWORDS = "{name: keywords, kind: rules, rules: rules.yaml, cost_usd: 0}"


@pytest.fixture
def study(write: Write, tmp_path: Path) -> Write:
    """A small study with another router section, beside the files that routers name."""
    for name in ("rules.yaml", "train.jsonl"):
        (tmp_path / name).touch()
    (tmp_path / "models" / "logistic").mkdir(parents=True)
    return lambda router: write(changed(SMALL, ROUTER, router))


def test_each_kind_is_read_with_its_defaults(study: Write, tmp_path: Path) -> None:
    router = read_study(study("router: {kind: rules, rules: rules.yaml, cost_usd: 0}")).router
    assert (router.trained_on, router.higher_means) == ("untrained", "needs_stronger")
    assert router.spec is not None
    assert (router.spec.kind, router.spec.written, router.spec.path) == (
        "rules",
        "rules.yaml",
        tmp_path / "rules.yaml",
    )
    text = "router: {kind: classifier, model: models/logistic, train: train.jsonl, leaks: drop, cost_usd: 0}"
    router = read_study(study(text)).router
    assert router.spec is not None
    assert router.spec.path == tmp_path / "models" / "logistic"
    assert router.train is not None
    assert router.train.path == tmp_path / "train.jsonl"
    assert (router.trained_on, router.higher_means, router.leaks) == (None, "needs_stronger", "drop")
    router = read_study(study("router: {kind: semantic, trained_on: cross_fitted, cost_usd: 0}")).router
    assert router.spec is not None
    assert router.spec.path is None
    assert router.trained_on == "cross_fitted"
    text = 'router: {kind: python, function: "mine.routing:score", higher_means: cheap_is_enough, '
    router = read_study(study(text + "trained_on: other_items, cost_usd: 0}")).router
    assert router.spec is not None
    assert (router.spec.function, router.higher_means) == ("mine.routing:score", "cheap_is_enough")


@pytest.mark.parametrize(
    ("router", "said"),
    [
        ("kind: rules", "router.rules: is required"),
        ("kind: rules, rules: none.yaml", 'router.rules: there is no file "none.yaml"'),
        ("kind: classifier", "router.model: is required where the router is not cross-fitted"),
        ("kind: classifier, model: train.jsonl", 'router.model: "train.jsonl" is no folder'),
        ("kind: classifier, model: nowhere", 'router.model: there is no folder "nowhere"'),
        ("kind: semantic, trained_on: other_items", "router.trained_on: is other_items, and there is no model"),
        (
            "kind: classifier, model: models/logistic, higher_means: cheap_is_enough",
            "router.higher_means: is cheap_is_enough, and a classifier that evalkit fits",
        ),
        ("kind: semantic, trained_on: cross_fitted, train: train.jsonl", "router.train: stands beside trained_on"),
        ("kind: rules, rules: rules.yaml, model: models/logistic", "router.model: means nothing for kind: rules"),
        ("kind: rules, rules: rules.yaml, function: 'a:b'", "router.function: means nothing for kind: rules"),
        ("kind: rules, rules: rules.yaml, leaks: drop", "router.leaks: stands without training labels"),
        ("kind: rules, rules: rules.yaml, missing_scores: escalate", "router.missing_scores: means nothing where"),
        ("kind: rules, rules: rules.yaml, decisions: routed.csv", "router.kind: stands beside decisions"),
        ("kind: rules, rules: rules.yaml, trained_on: these_items", "router.trained_on: is these_items, and high"),
        (
            "kind: python, higher_means: needs_stronger, trained_on: other_items, function: 'os.system(1)'",
            'router.function: "os.system(1)" is not module:function',
        ),
        ("kind: magic", 'router.kind: is "magic"; allowed: rules, classifier, semantic, python'),
        ("kind: rules, rules: rules.yaml, name: mine", "router.name: names one of several routers"),
    ],
)
def test_a_router_that_cannot_be_run_is_named(study: Write, router: str, said: str) -> None:
    (message,) = faults(study(f"router: {{{router}, cost_usd: 0}}"))
    assert message.startswith("study.yaml:")
    assert said in message


def test_a_function_says_its_direction_and_training(study: Write) -> None:
    messages = faults(study("router: {kind: python, function: 'mine:score', cost_usd: 0}"))
    assert [m.split("field ")[1].split(": ")[0] for m in messages] == ["router.higher_means", "router.trained_on"]


def test_several_routers_are_read_in_order(study: Write) -> None:
    read = read_study(study(f"routers:\n  - {KEYWORDS}\n  - {VENDOR}"))
    assert [router.name for router in read.routers] == ["keywords", "vendor"]
    assert read.router is read.routers[0]
    assert read.all_routers == read.routers
    assert read.routers[1].cost_usd == Decimal("0.5")
    one = read_study(study(ROUTER))
    assert one.routers == ()
    assert one.all_routers == (one.router,)
    assert one.router.name == ""


@pytest.mark.parametrize(
    ("routers", "said"),
    [
        (f"routers:\n  - {KEYWORDS}", "field routers: has 1 entries. Fix: list 2 to 32 routers, or write router:"),
        ("routers: {a: 1}", "field routers: is a mapping, not a list"),
        (f"routers:\n  - {KEYWORDS}\n  - 7", "field routers[1]: is 7, not a mapping"),
        (f"{ROUTER}\nrouters:\n  - {KEYWORDS}\n  - {VENDOR}", "field routers: stands beside router"),
        (
            f"routers:\n  - {KEYWORDS}\n  - {VENDOR.replace('name: vendor', 'name: KeyWords')}",
            'field routers[1].name: "KeyWords" names a router on line 7 already',
        ),
        (f"routers:\n  - {KEYWORDS}\n  - {VENDOR.replace('name: vendor, ', '')}", "routers[1].name: is required"),
        (
            f"routers:\n  - {KEYWORDS}\n  - {VENDOR.replace(', higher_means: cheap_is_enough', '')}",
            "field routers[1].higher_means: is required",
        ),
        (
            f"routers:\n  - {KEYWORDS}\n  - {VENDOR.replace('0.5', '0.5, threshold: [1]')}",
            "routers[1].threshold: is not a key of a routing study. Fix: write router.thresholds",
        ),
    ],
)
def test_a_list_of_routers_that_cannot_be_used_is_named(study: Write, routers: str, said: str) -> None:
    (message,) = faults(study(routers))
    assert said in message


@pytest.mark.parametrize(
    "name", ["../up", "a/b", "a\\b", ".hidden", "end.", '"a b"', '"a:b"', '"<b>"', '"x\\u202ey"', "n" * 61, '"="']
)
def test_a_name_is_safe_as_part_of_a_file_name(study: Write, name: str) -> None:
    (message,) = faults(study(f"routers:\n  - {KEYWORDS}\n  - {VENDOR.replace('vendor', name)}"))
    assert "field routers[1].name: " in message
    assert message.isprintable()


@given(st.text(min_size=1, max_size=70))
def test_whatever_is_taken_as_a_name_is_one_part_of_a_path(name: str) -> None:
    from evalkit.study.router_section import name_problem

    if name_problem(name) is None:
        assert Path(f"scores.{name}.csv").name == f"scores.{name}.csv"
        assert name.isprintable()
        assert not set(name) & set("\\/:*?\"<>| '`$;&")


def test_all_faults_of_all_routers_are_told_in_one_run(study: Write) -> None:
    text = (
        "routers:\n  - {name: a, kind: rules, cost_usd: -1}\n"
        "  - {name: b, scores: none.csv, higher_means: up, trained_on: other_items, cost_usd: 0}\n"
    )
    fields = [message.split("field ")[1].split(": ")[0] for message in faults(study(text))]
    assert fields == ["routers[0].rules", "routers[0].cost_usd", "routers[1].scores", "routers[1].higher_means"]


def test_what_is_said_of_routers_is_fingerprinted_and_old_studies_keep_theirs(
    study: Write, tmp_path: Path
) -> None:
    one = read_study(study(ROUTER))
    assert one.fingerprint == "c71b4b344836e5d471ac38379e0786f23c4c85e3351d59737b062adebfdc99fe"
    two = read_study(study(f"routers:\n  - {KEYWORDS}\n  - {VENDOR}"))
    again = read_study(study(f"routers:\n  - {VENDOR}\n  - {KEYWORDS}"))
    assert len({one.fingerprint, two.fingerprint, again.fingerprint}) == 3
    renamed = replace(two, routers=(two.routers[0], replace(two.routers[1], name="other")))
    assert study_fingerprint(renamed) != two.fingerprint
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    spec = two.router.spec
    assert spec is not None
    elsewhere = replace(two.router, spec=replace(spec, path=moved / "rules.yaml"))
    assert (
        study_fingerprint(replace(two, router=elsewhere, routers=(elsewhere, two.routers[1]))) == two.fingerprint
    )


def test_a_threshold_of_the_command_line_needs_one_router(study: Write) -> None:
    read = read_study(study(f"routers:\n  - {KEYWORDS}\n  - {VENDOR}"))
    with pytest.raises(InputError, match="the study has several routers: keywords, vendor"):
        override(read, threshold="0.5")
    only = override(read, threshold="0.5", router="vendor")
    assert only.routers == ()
    assert (only.router.name, only.router.thresholds) == ("vendor", (0.5,))
    assert only.router.routers == 2  # it was picked out of two
    with pytest.raises(InputError, match=r'"vendors" is none of its routers: keywords, vendor'):
        override(read, router="vendors")
    with pytest.raises(InputError, match="has one router, without a name"):
        override(read_study(study(ROUTER)), router="vendor")


def test_a_router_picked_out_of_several_keeps_its_part_of_the_error_rate(study: Write) -> None:
    both = VENDOR.replace("cost_usd", "policy: both, routers: 3, cost_usd")
    read = read_study(study(f"routers:\n  - {KEYWORDS}\n  - {both}"))
    assert override(read, router="keywords").router.routers == 7
    assert override(read, router="vendor").router.routers == 4  # two policies of four are at least seven
