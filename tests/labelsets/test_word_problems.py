"""The tasks of the word-problem study have right answers, its arms send what they say, its recorder resumes."""

from __future__ import annotations

import importlib
import json
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import permutations
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from evalkit.errors import InputError
from evalkit.grading import grade_reply, parse_check
from evalkit.providers.recordings import latest_replies, lock, read_recording
from evalkit.study.prices import read_price_card
from evalkit.study.reasoning import read_reasoning_study
from evalkit.tabular.write import write_table

Row = dict[str, Any]
FOLDER = Path(__file__).resolve().parents[2] / "labelsets" / "word-problems"
ENGLISH = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
KOREAN = ("월요일", "화요일", "수요일", "목요일", "금요일", "토요일", "일요일")


@pytest.fixture(scope="module")
def scripts() -> Iterator[dict[str, ModuleType]]:
    """The study's scripts, which lie beside their data and not in the package."""
    sys.path.insert(0, str(FOLDER))
    names = ("arms", "record_arms", "grade")
    try:
        yield {name: importlib.import_module(name) for name in names}
    finally:
        sys.path.remove(str(FOLDER))
        for name in names:
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def tasks() -> list[Row]:
    return [json.loads(line) for line in (FOLDER / "tasks.jsonl").read_text(encoding="utf-8").splitlines()]


# The answers, each worked out here in another way than in the file: by clocks, calendars, counting and trying.


def minutes(start: str, end: str) -> int:
    parsed = [datetime.strptime(text, "%H:%M") for text in (start, end)]  # noqa: DTZ007 (one day, no zone)
    return int((parsed[1] - parsed[0]).total_seconds()) // 60


def days(start: tuple[int, int], end: tuple[int, int]) -> int:
    """Days between (month, day) and (month, day), the same in leap years for the months used."""
    return (date(2026, *end) - date(2026, *start)).days


def order(names: tuple[str, ...], fits: Callable[[Callable[[str], int]], bool]) -> tuple[str, ...]:
    """The one order of names, greatest first, that fits."""
    (found,) = [p for p in permutations(names) if fits(lambda name, p=p: -p.index(name))]  # type: ignore[misc]
    return found


def weekday_after(start: int, steps: int, names: tuple[str, ...]) -> str:
    at = start
    for _ in range(steps):
        at = 0 if at == 6 else at + 1
    return names[at]


def first_full(capacity: int, plus: int, minus: int) -> int:
    level = minute = 0
    while level < capacity:
        level, minute = level + plus - minus, minute + 1
    return minute


ANSWERS: dict[str, Any] = {
    "en-01": sum([24] * 7),
    "en-02": len((["old"] * 35)[12:] + ["new"] * 8 * 2),
    "en-03": sum(60 for _ in range(2)) + sum(90 for _ in range(3)),
    "en-04": first_full(200, 14, 4),
    "en-05": weekday_after(0, 10 - 1, ENGLISH),
    "en-06": minutes(
        "21:00", (datetime(2026, 1, 1, 18, 45, tzinfo=UTC) + timedelta(minutes=137 + 15)).strftime("%H:%M")
    ),
    "en-07": minutes("09:50", "13:15"),
    "en-08": days((4, 28), (5, 6)),
    "en-09": order(
        ("Ann", "Ben", "Cara", "Dan"),
        lambda h: h("Ann") > h("Ben") and h("Cara") > h("Ann") and h("Dan") < h("Ben"),
    )[1],
    "en-10": {True: "yes", False: "no"}[any(red for red, empty in ((True, True), (False, False)) if not empty)],
    "en-11": next(
        place
        for place in ("left", "middle", "right")
        if place != "left" and (place != "middle" or "red" == "green")
    ),
    "en-12": (lambda v: max(v) - min(v))([120, 95, 140, 105, 150]),
    "en-13": min({"lamp": 4 + 11, "chair": 7 + 6, "table": 3 + 9}.items(), key=lambda pair: pair[1])[0],
    "en-14": 30 * 3 + 5 * 2,
    "en-15": Fraction(60, 4) * 12,
    "en-16": Fraction(60 + 90, 15) + 3,
    "en-17": 18 + 18 + 18,
    "en-18": Fraction(96) - Fraction(96, 12) * 7,
    "en-19": Fraction(5, 2) * 14,
    "en-20": 120 - Fraction(120, 4) - 6,
    "en-21": (70 - 50) + 2 * 70,
    "en-22": Fraction(4 * 30, 4) + Fraction(12, 4),
    "en-23": 4 * days((6, 27), (7, 3)),
    "en-24": sum([4] * 6) + sum([6] * 2),
    "en-25": 2 * 240 - 240 - 65,
    "en-26": "yes" if days((5, 10), (6, 12)) <= 30 else "no",
    "en-27": Fraction(450 * 20 - 405 * 20, 100),
    "en-28": Fraction(150, 3) * Fraction(1, 5) + 5,
    "ko-01": sum([15] * 8),
    "ko-02": len((["old"] * 40)[14:] + ["new"] * 6 * 3),
    "ko-03": sum(50 for _ in range(2)) + sum(80 for _ in range(3)),
    "ko-04": minutes("14:40", "16:25"),
    "ko-05": weekday_after(3, 10, KOREAN),
    "ko-06": days((5, 27), (6, 4)),
    "ko-07": order(
        ("민수", "영희", "철수", "지아"),
        lambda a: a("민수") > a("영희") and a("철수") > a("민수") and a("지아") < a("영희"),
    )[-1],
    "ko-08": (lambda v: max(v) - min(v))([80, 65, 110, 90, 75]),
    "ko-09": Fraction(45, 3) * 10,
    "ko-10": {True: "예", False: "아니요"}[
        any(blue for blue, empty in ((True, True), (False, False)) if not empty)
    ],
    "ko-11": sum([9] * len(range(0, 24, 4))) + 10,
    "ko-12": max({"의자": 8 + 5, "책상": 6 + 9, "전등": 7 + 7}.items(), key=lambda pair: pair[1])[0],
    "ko-13": sum([12000] * 4),
    "ko-14": 60000 - Fraction(60000, 12) * 8,
    "ko-15": 80000 - Fraction(80000 * 3, 10) - 3000,
    "ko-16": 2000 * days((9, 28), (10, 3)),
    "ko-17": 3000 + 3000 + 7000 + 7000,
    "ko-18": 2 * 45000 - 45000 - 8000,
    "ko-19": "예" if days((3, 25), (4, 5)) <= 14 else "아니요",
    "ko-20": Fraction(4500, 6) * 14,
}


def test_every_answer_comes_out_twice(tasks: list[Row]) -> None:
    assert {task["id"] for task in tasks} == set(ANSWERS)
    for task in tasks:
        second = ANSWERS[task["id"]]
        if task["metadata"]["check"]["kind"] == "number":
            first = eval(task["metadata"]["working"], {"__builtins__": {}})
            assert Fraction(task["reference"]) == Fraction(first) == Fraction(second), task["id"]
        else:
            assert task["reference"] == second, task["id"]


def test_the_mix(tasks: list[Row]) -> None:
    assert Counter((t["metadata"]["language"], t["risk"]) for t in tasks) == {
        ("en", "routine"): 16,
        ("en", "billing"): 12,
        ("ko", "routine"): 12,
        ("ko", "billing"): 8,
    }
    assert {task["metadata"]["steps"] for task in tasks} == {1, 2, 3, 4}
    assert len({task["prompt"] for task in tasks}) == len(tasks) == 48


def test_the_check_takes_the_reference_and_nothing_else(tasks: list[Row]) -> None:
    for task in tasks:
        check = parse_check(task["metadata"]["check"])
        assert check.reference_fault(task["reference"]) is None
        assert grade_reply(check, f" {task['reference']}", task["reference"]).passed is True
        for other in (o for o in task["metadata"]["check"].get("options", ["-1"]) if o != task["reference"]):
            assert grade_reply(check, other, task["reference"]).passed is False


def test_settings_and_arms_agree(scripts: dict[str, ModuleType]) -> None:
    arms = scripts["arms"]
    study = read_reasoning_study(FOLDER / "study.yaml")
    assert [(a.name, a.budget_tokens, len(a.steps) or 1, a.model) for a in study.arms] == [
        (a.name, a.budget_tokens, a.steps, arms.MODEL.name) for a in arms.ARMS
    ]
    for arm in study.arms:
        assert arm.params["temperature"] == arms.PARAMS["temperature"]
        if not arm.steps:
            assert arm.max_tokens == (arm.budget_tokens or 0) + arms.ANSWER_TOKENS
    assert study.samples == len(arms.SEEDS)
    assert set(study.risk) == {"routine", "billing"}
    assert set(read_price_card(FOLDER / "prices.yaml").models) == {arms.MODEL.name}


def test_regrading_the_recording_gives_the_outcomes(scripts: dict[str, ModuleType], tmp_path: Path) -> None:
    rows = scripts["grade"].outcomes()
    assert len(rows) == 48 * 5 * 3
    write_table(tmp_path / "again.jsonl", {name: [row[name] for row in rows] for name in rows[0]})
    assert (tmp_path / "again.jsonl").read_bytes() == (FOLDER / "outcomes.jsonl").read_bytes()


def test_the_recording_kept_to_its_caps(scripts: dict[str, ModuleType], tasks: list[Row]) -> None:
    arms = scripts["arms"]
    lines = read_recording(FOLDER / "recording.jsonl")
    assert {line["model_sha256"] for line in lines if line["kind"] == "run"} == {arms.MODEL.sha256}
    runs = latest_replies(lines)
    keys = {
        arms.run_key(arms.MODEL, arm, task, seed) for arm in arms.ARMS for task in tasks for seed in arms.SEEDS
    }
    assert set(runs) == keys
    for run in runs.values():
        assert [call["step"] for call in run["calls"]][-1] == "answer"
        for call in run["calls"]:
            assert call["served_model"] == arms.MODEL.served_name
            assert 0 < call["new_tokens"] <= call["max_tokens"]
            if call["step"] == "answer":
                assert call["max_tokens"] == arms.ANSWER_TOKENS


def test_passes_hold_under_a_plainer_reading(tasks: list[Row]) -> None:
    """Written apart from the grader: the one number of the answer, or its one word, is the reference."""
    references = {task["id"]: (task["metadata"]["check"]["kind"], task["reference"]) for task in tasks}
    rows = [json.loads(line) for line in (FOLDER / "outcomes.jsonl").read_text(encoding="utf-8").splitlines()]
    passed = [row for row in rows if row.get("passed")]
    assert len(passed) >= 100
    for row in passed:
        kind, reference = references[row["id"]]
        if kind == "number":
            (number,) = re.findall(r"-?\d[\d,]*\.?\d*", row["reply"])
            assert float(number.replace(",", "").rstrip(".")) == float(reference.replace(",", ""))
        else:
            assert "".join(ch for ch in row["reply"] if ch.isalnum()).casefold() == reference.casefold()


def played(arms: ModuleType, name: str, task: Row, reply: str) -> list[Any]:
    """The steps that an arm asks for when every reply is `reply`."""
    steps: list[Any] = []
    (arm,) = [arm for arm in arms.ARMS if arm.name == name]
    calls = arms.play(arm, task, lambda step: steps.append(step) or {"text": reply})
    assert [call["step"] for call in calls] == [step.name for step in steps]
    return steps


def test_what_each_arm_asks(scripts: dict[str, ModuleType], tasks: list[Row]) -> None:
    arms = scripts["arms"]
    hostile = "{plan} {solve} {{x}}"
    for task in tasks:
        line = arms.answer_line(task)
        for arm in arms.ARMS:
            steps = played(arms, arm.name, task, hostile)
            assert all(step.prompt.startswith(arms.shared_start(task)) for step in steps)
            assert steps[-1].name == "answer"
            assert steps[-1].prompt.endswith(line)
            assert steps[-1].max_tokens == arms.ANSWER_TOKENS
            # Neither the right answer of the file nor its working is ever sent.
            assert task["metadata"]["working"] not in "".join(step.prompt for step in steps)
        think = played(arms, "think-64", task, f" {hostile}\n")
        assert [step.max_tokens for step in think] == [64, arms.ANSWER_TOKENS]
        assert think[0].prompt.endswith("<think>\n")
        assert think[1].prompt == think[0].prompt + hostile + arms.forced_text(task)
        plan, solve, answer = played(arms, "multi-step", task, hostile)
        assert hostile not in plan.prompt
        assert hostile in solve.prompt
        assert hostile in answer.prompt
        assert [len(played(arms, "plain", task, "x"))] == [1]


def test_a_failed_step_ends_the_run(scripts: dict[str, ModuleType], tasks: list[Row]) -> None:
    arms = scripts["arms"]
    for arm in arms.ARMS:
        calls = arms.play(arm, tasks[0], lambda step: {"error": {"type": "TimeoutError"}})
        assert len(calls) == 1


def test_keys_tell_runs_apart(scripts: dict[str, ModuleType], tasks: list[Row]) -> None:
    arms, record = scripts["arms"], scripts["record_arms"]
    bundles = record.bundles_of(arms.MODEL, tasks)
    keys = [job.key for bundle in bundles for job in bundle]
    assert len(set(keys)) == len(keys) == 48 * 5 * 3
    changed = json.loads(json.dumps(tasks[0]))
    changed["prompt"] += " "
    other = {arms.run_key(arms.MODEL, arm, changed, 1) for arm in arms.ARMS}
    assert not other & set(keys)
    # Every arm comes first about equally often.
    first = Counter(bundle[0].arm.name for bundle in bundles)
    assert max(first.values()) - min(first.values()) <= 2


# The recorder, against a server on loopback that answers as llama.cpp does.


@dataclass
class Server:
    """Keeps every body; refuses prompts that hold the text `refuse`."""

    url: str = ""
    bodies: list[Row] = field(default_factory=list)
    refuse: str | None = None


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path == "/tokenize":
                answer: Row = {"tokens": [1, 2, 3]}
            else:
                state.bodies.append(body)
                answer = {
                    "content": "7",
                    "stop_type": "eos",
                    "tokens_evaluated": 30,
                    "tokens_predicted": 2,
                    "timings": {"cache_n": 12, "prompt_ms": 1.0, "predicted_ms": 2.0},
                    "model": "m",
                }
            failed = state.refuse is not None and state.refuse in str(body.get("prompt"))
            content = b"busy" if failed else json.dumps(answer).encode()
            self.send_response(503 if failed else 200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever)
    thread.start()
    state.url = f"http://127.0.0.1:{httpd.server_port}"
    yield state
    httpd.shutdown()
    thread.join()
    httpd.server_close()


def recorded(scripts: dict[str, ModuleType], server: Server, path: Path, tasks: list[Row]) -> int:
    arms, record = scripts["arms"], scripts["record_arms"]
    server.bodies.clear()
    bundles = record.bundles_of(arms.MODEL, tasks, seeds=(1, 2))
    return int(record.record(server.url, bundles, path, 2, {"kind": "run", "run": "r"}))


def test_it_records_everything_once_and_resumes(
    scripts: dict[str, ModuleType], server: Server, tasks: list[Row], tmp_path: Path
) -> None:
    path = tmp_path / "recording.jsonl"
    assert recorded(scripts, server, path, tasks[:2]) == 0
    replies = latest_replies(read_recording(path))
    assert Counter((r["id"], r["arm"], r["seed"]) for r in replies.values()) == Counter(
        (task["id"], arm.name, seed) for task in tasks[:2] for arm in scripts["arms"].ARMS for seed in (1, 2)
    )
    for reply in replies.values():
        assert [call["step"] for call in reply["calls"]][-1] == "answer"
        assert reply["task_s"] >= sum(call["request_s"] for call in reply["calls"]) - 0.001
        assert {call["new_tokens"] for call in reply["calls"]} == {2}
    asked = [body for body in server.bodies if body["n_predict"] > 4]
    assert {body["temperature"] for body in asked} == {0.7}
    assert {body["seed"] for body in asked} == {1, 2}
    with path.open("ab") as file:
        file.write(b'{"kind": "reply", "key": "tor')  # killed in the middle of a write
    assert recorded(scripts, server, path, tasks[:3]) == 0
    assert {body["prompt"].find(tasks[2]["prompt"]) >= 0 for body in server.bodies if body["n_predict"] > 4} == {
        True
    }
    assert recorded(scripts, server, path, tasks[:3]) == 0
    assert server.bodies == []


def test_a_failure_is_recorded_and_tried_again(
    scripts: dict[str, ModuleType], server: Server, tasks: list[Row], tmp_path: Path
) -> None:
    path = tmp_path / "recording.jsonl"
    server.refuse = "<think>"
    failed = recorded(scripts, server, path, tasks[:1])
    assert failed == 3 * 2  # the three thinking arms name the mark, two seeds
    rows = [row for row in read_recording(path) if row["kind"] == "reply"]
    broken = [row for row in rows if "error" in row]
    assert {row["error"]["status_code"] for row in broken} == {503}
    assert all(len(row["calls"]) == 1 for row in broken)
    server.refuse = None
    assert recorded(scripts, server, path, tasks[:1]) == 0
    assert not any("error" in row for row in latest_replies(read_recording(path)).values())


def test_two_runs_do_not_record_at_once(
    scripts: dict[str, ModuleType], server: Server, tasks: list[Row], tmp_path: Path
) -> None:
    path = tmp_path / "recording.jsonl"
    with path.open("ab") as file:
        lock(file)
        with pytest.raises(InputError, match="another run is recording"):
            recorded(scripts, server, path, tasks[:1])
    assert server.bodies == []
