"""A log of 100,000 requests, imported and sampled: seconds, processor time and memory.

Usage: python benchmarks/logs.py [--rows N] [--seed S] [--keep DIR]

The log is made first, from a seed: rows of LiteLLM's spend log and OpenTelemetry spans, in English and Korean,
with a system prompt that many share, conversations of several turns, personal data in about one in six, and nearly
the same request again in one of ten. Then `evalkit import logs` and `evalkit labels sample` run as processes of
their own. Beside them, in the same run, what nobody can do without: every line of the log through `json.loads`,
two regular expressions over its text, and out again through `json.dumps`.

Exit code 1 when both commands take more than `MOST_OF_BARE` times the processor seconds of the bare pass, more
than 1 GB of memory in all their processes together, or do not see all rows. 60 seconds by the clock for 100,000
rows are the aim; a machine that is busy with other things takes longer for the same work, for the bare pass too,
so that seconds alone decide nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import string
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

AIM_SECONDS = 60.0
MOST_BYTES = 10**9
MOST_OF_BARE = 4.0

_SYSTEMS = (
    "You are the assistant of an online shop. Answer in the language of the customer, in at most five sentences. "
    "Never promise a refund; say which form to fill in. When an order number is missing, ask for it once. Do not "
    "repeat addresses or card numbers. If the customer is upset, say sorry. Hand over to a person when asked.",
    "당신은 은행 앱의 상담 도우미입니다. 고객의 말투에 맞춰 존댓말로 짧게 답하세요. "
    "계좌 비밀번호는 절대 묻지 마세요. 이체 한도나 수수료를 물으면 표로 답하고, "
    "모르는 것은 모른다고 하세요. 사고 신고는 바로 상담원에게 연결합니다.",
    "Rewrite the text below so that it is clear and short. Keep names, numbers and the order of the facts.",
    "You write SQL for PostgreSQL 15. Return one statement, no explanation. Tables: orders(id, placed_at, "
    "total_usd, customer_id), customers(id, region, created_at), refunds(order_id, amount_usd, reason).",
)
_ENGLISH = """
my parcel {n} has not arrived although the tracking page says delivered since last {day}
can you tell me whether the {thing} works together with the {thing} that I bought in {month}
the {thing} stopped after {k} days and the light on the left blinks {k} times
I was charged twice for order {n}, once {amount} and once {amount}, please look into it
how do I export the report of {month} as a table with one row for every {thing}
please summarise the minutes of the meeting on {month} {k}, above all what {name} has to do
we compared {thing} and {thing} over {k} weeks, and the second one used {k} percent less
what is the difference between a {thing} and a {thing} when both are rated at {k} volts
translate the following into Korean and keep the line breaks, {name} wants it by {day}
write a query for all orders above {amount} placed before {month} {k} in region {k}
is it normal that the {thing} gets warm, it shows {k}.{k} degrees after an hour
the contract says {k} months, but {name} told me on {day} that it can be ended earlier
I would like to change the delivery of {n} from {day} to {day} if that is still possible
when I click on the button of the {thing}, the page shows error {k}{k} and nothing happens
explain to me as to a child why the {thing} needs a {thing}, with an example
the invoice of {month} lists {k} pieces of {thing}, yet only {k} were in the box
{name} and I are planning a trip in {month}, which {thing} should we take along
compare the two offers: {amount} with {k} years of warranty, or {amount} without any
""".strip().splitlines()
_KOREAN = """
주문번호 {n} 택배가 아직 도착하지 않았는데 {day}에 배송 완료로 표시되어 있습니다
{month}에 산 {thing}이 {k}일 만에 고장 났어요, 왼쪽 불이 {k}번 깜빡입니다
결제가 두 번 되었습니다, {amount}원과 {amount}원인데 확인 부탁드려요
{thing}하고 {thing} 중에서 어느 것이 더 오래 가는지 비교해서 알려 주세요
{day} 회의록을 요약해 주세요, 특히 {name}님이 해야 할 일을 먼저 적어 주시면 됩니다
배송지를 바꾸고 싶은데 {n} 주문이 아직 출발 전인지 알 수 있을까요
{month} 보고서를 표로 내려받는 방법을 단계별로 설명해 주세요
앱에서 {thing} 버튼을 누르면 오류 {k}{k} 화면이 나오고 더 진행되지 않습니다
계약 기간이 {k}개월인데 {name} 상담원이 중간에 해지할 수 있다고 했습니다
이체 한도를 {amount}원으로 올리려면 어떤 서류가 필요한가요
다음 문장을 영어로 자연스럽게 옮겨 주세요, {day}까지 {name}님께 보내야 합니다
청구서에는 {thing} {k}개라고 되어 있는데 상자에는 {k}개만 들어 있었습니다
""".strip().splitlines()
_THINGS = {
    "en": "kettle|router|sewing machine|headset|lamp|ladder|bicycle pump|scanner|tent|drill|monitor|blender"
    "|charger|suitcase|printer|thermostat|keyboard|camera|speaker|vacuum cleaner|coffee grinder|desk|rain jacket",
    "ko": "주전자|공유기|재봉틀|헤드셋|스탠드|사다리|자전거 펌프|스캐너|텐트|드릴|모니터|믹서기"
    "|충전기|여행 가방|프린터|온도 조절기|키보드|카메라|스피커|청소기|커피 그라인더|책상|우비",
}
_NAMES = {
    "en": "Dana|Minsu|Lee|Okafor|Priya|Tomás|Yuna|Ines|Farid|Greta",
    "ko": "민수|혜진|서연|지호|하은|도윤|유나|태오",
}
_DAYS = {"en": "Monday|Tuesday|Wednesday|Thursday|Friday", "ko": "월요일|화요일|수요일|목요일|금요일|토요일"}
_MONTHS = {"en": "January|March|April|June|August|October", "ko": "1월|3월|4월|6월|8월|10월|12월"}
_SYLLABLES = re.findall("..", "babebibodadedokakikolalelomamimonanerarirosasesotatetivavevi")
_HANGUL = "가나다라마바사아자차카타파하거너더러머버서어저처고노도로모보소오조초구누두루무부수우주"
_MODELS = ("gpt-5-nano", "gpt-5.4", "claude-sonnet-4-5")


class Run(NamedTuple):
    """Seconds by the clock, seconds of the processor, bytes of all its processes at the peak, what was printed."""

    wall_s: float
    cpu_s: float
    peak_bytes: int
    printed: str


class Texts:
    """Seeded requests: sentences with names, numbers and made-up words, personal data in some."""

    def __init__(self, seed: int) -> None:
        from personal_data_cases import PLANTED

        self.rng = random.Random(seed)
        self.planted = [sentence for _, _, sentence in PLANTED]
        self.past: list[tuple[str, str]] = []
        self.words = {
            language: {
                "thing": _THINGS[language].split("|"),
                "name": _NAMES[language].split("|"),
                "day": _DAYS[language].split("|"),
                "month": _MONTHS[language].split("|"),
            }
            for language in ("en", "ko")
        }

    def request(self) -> tuple[str, str]:
        """(language, text); in one of ten the words of an earlier one, a little changed."""
        rng = self.rng
        if self.past and rng.random() < 0.1:
            language, before = rng.choice(self.past)
            return language, f"{before} {'please' if language == 'en' else '부탁드립니다'}{rng.choice('.!')}"
        language = "ko" if rng.random() < 0.4 else "en"
        count = min(25, 1 + int(rng.expovariate(0.22)))
        parts = [self.sentence(language) for _ in range(count)]
        if rng.random() < 0.16:
            parts.insert(rng.randrange(len(parts) + 1), rng.choice(self.planted))
        one = (language, ". ".join(parts))
        if len(self.past) < 5000:
            self.past.append(one)
        else:
            self.past[rng.randrange(5000)] = one
        return one

    def sentence(self, language: str) -> str:
        """One sentence and, in half of them, words that stand in no other request."""
        rng, words = self.rng, self.words[language]
        text = rng.choice(_ENGLISH if language == "en" else _KOREAN)
        for slot, options in words.items():
            while "{" + slot + "}" in text:
                text = text.replace("{" + slot + "}", rng.choice(options), 1)
        while "{n}" in text:
            text = text.replace("{n}", f"{rng.choice('ABCD')}-{rng.randrange(10**7):07}", 1)
        while "{k}" in text:
            text = text.replace("{k}", str(rng.randrange(2, 60)), 1)
        while "{amount}" in text:
            text = text.replace("{amount}", f"{rng.randrange(10, 90000):,}", 1)
        if rng.random() < 0.5:
            own = "".join(rng.choices(_HANGUL, k=8)) if language == "ko" else "".join(rng.choices(_SYLLABLES, k=4))
            text += f" ({own})"
        return text


def messages(texts: Texts) -> list[dict[str, str]]:
    """A system prompt that many share, and one to three turns."""
    rng = texts.rng
    language, text = texts.request()
    system = _SYSTEMS[1] if language == "ko" else _SYSTEMS[rng.choice((0, 0, 2, 3))]
    told = [{"role": "system", "content": system}]
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        told.append({"role": "user", "content": texts.sentence(language)})
        told.append({"role": "assistant", "content": texts.sentence(language)})
    return [*told, {"role": "user", "content": text}]


def spend_row(texts: Texts, i: int) -> dict[str, Any]:
    """A row of LiteLLM's spend log, with the request and the reply."""
    rng = texts.rng
    own = "chatcmpl-" + "".join(rng.choices(string.ascii_letters + string.digits, k=29))
    told = messages(texts)
    prompt_tokens, completion_tokens = sum(len(m["content"]) for m in told) // 4 + 1, rng.randrange(20, 400)
    reply = ". ".join(texts.sentence("en") for _ in range(rng.randrange(1, 5)))
    start = f"2026-09-{1 + i % 28:02}T10:{i % 60:02}:00.000Z"
    return {
        "request_id": own, "call_type": "acompletion", "api_key": f"{rng.getrandbits(256):064x}",
        "spend": round(prompt_tokens * 1e-6 + completion_tokens * 4e-6, 9),
        "total_tokens": prompt_tokens + completion_tokens, "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens, "startTime": start,
        "endTime": start.replace(":00.000Z", ":03.250Z"), "completionStartTime": start.replace(":00.0", ":00.7"),
        "model": _MODELS[i % 2], "model_id": "dep-1", "model_group": "chat", "custom_llm_provider": "openai",
        "api_base": "https://api.openai.com/v1", "user": "",
        "metadata": {
            "usage_object": {
                "prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens,
                "total_tokens": prompt_tokens + completion_tokens, "prompt_tokens_details": {"cached_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": 0},
            },
            "status": "success", "attempted_retries": 0,
        },
        "cache_hit": "False", "cache_key": "", "request_tags": ["web"], "session_id": f"s{i // 3}",
        "status": "success", "messages": told,
        "response": {
            "id": own, "object": "chat.completion",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": reply}}],
        },
    }  # fmt: skip


def trace(texts: Texts, i: int) -> dict[str, Any]:
    """One export of spans: an agent, and two calls inside it."""
    rng = texts.rng
    own = f"{rng.getrandbits(128):032x}"
    ids = [f"{rng.getrandbits(64):016x}" for _ in range(3)]
    at = 1_780_000_000_000_000_000 + i * 10**9

    def value(of: Any) -> dict[str, Any]:
        if isinstance(of, int):
            return {"intValue": str(of)}
        return {"doubleValue": of} if isinstance(of, float) else {"stringValue": of}

    def span(number: int, name: str, attributes: dict[str, Any]) -> dict[str, Any]:
        return {
            "traceId": own, "spanId": ids[number], "parentSpanId": "" if number == 0 else ids[0],
            "name": name, "kind": 3, "startTimeUnixNano": str(at + number * 10**6),
            "endTimeUnixNano": str(at + 2 * 10**9), "status": {"code": 1},
            "attributes": [{"key": key, "value": value(of)} for key, of in attributes.items()],
        }  # fmt: skip

    spans = [
        span(0, "invoke_agent triage", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "triage"})
    ]
    for number in (1, 2):
        told = [{"role": m["role"], "parts": [{"type": "text", "content": m["content"]}]} for m in messages(texts)]
        answer = [{"role": "assistant", "parts": [{"type": "text", "content": texts.sentence("en")}]}]
        spans.append(
            span(number, "chat", {
                "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai",
                "gen_ai.request.model": _MODELS[i % 3], "gen_ai.response.model": _MODELS[i % 3],
                "gen_ai.conversation.id": f"c{i}", "gen_ai.response.id": f"r-{i}-{number}",
                "gen_ai.input.messages": json.dumps(told, ensure_ascii=False),
                "gen_ai.output.messages": json.dumps(answer, ensure_ascii=False),
                "gen_ai.usage.input_tokens": rng.randrange(50, 900),
                "gen_ai.usage.output_tokens": rng.randrange(9, 300),
                "gen_ai.response.time_to_first_chunk": 0.4, "server.address": "api.openai.com",
            })
        )  # fmt: skip
    scope = {"scope": {"name": "instrumentation", "version": "2.3"}, "spans": spans}
    service = {"attributes": [{"key": "service.name", "value": {"stringValue": "support-bot"}}]}
    return {"resourceSpans": [{"resource": service, "scopeSpans": [scope]}]}


def written(folder: Path, rows: int, seed: int) -> list[Path]:
    """Two files: six of ten requests as spend logs, the rest as spans."""
    texts = Texts(seed)
    spend = rows - 2 * (rows // 5)

    def lines() -> Iterator[tuple[str, dict[str, Any]]]:
        for i in range(spend):
            yield "litellm.jsonl", spend_row(texts, i)
        for i in range(rows // 5):
            yield "spans.jsonl", trace(texts, i)

    files = {name: folder / name for name in ("litellm.jsonl", "spans.jsonl")}
    streams = {name: path.open("w", encoding="utf-8") for name, path in files.items()}
    for name, record in lines():
        streams[name].write(json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n")
    for stream in streams.values():
        stream.close()
    return list(files.values())


_BARE = """
import json, re, sys
digits, email = re.compile(r"\\d[\\d -]{7,}\\d"), re.compile(r"[\\w.+-]+@[\\w-]+\\.[\\w.]+")
with open(sys.argv[1], "w", encoding="utf-8") as out:
    for name in sys.argv[2:]:
        for line in open(name, encoding="utf-8"):
            text = json.dumps(json.loads(line), ensure_ascii=False)
            out.write(email.sub("[email]", digits.sub("[digits]", text)) + "\\n")
"""


def run(command: list[str]) -> Run:
    """The command as a process of its own; its children count, where it waits for them."""
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+", encoding="utf-8") as printed:
        child = subprocess.Popen(command, stdout=printed, stderr=subprocess.STDOUT)
        ended = threading.Event()
        with ThreadPoolExecutor(1) as watcher:
            together = watcher.submit(peak_of_all, child.pid, ended)
            _, status, used = os.wait4(child.pid, 0)
            wall_s = time.perf_counter() - start
            ended.set()
        child.returncode = os.waitstatus_to_exitcode(status)
        printed.seek(0)
        text = printed.read()
    if child.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {child.returncode}\n{text}")
    unit = 1 if sys.platform == "darwin" else 1024
    peak_bytes = max(together.result(), used.ru_maxrss * unit)
    return Run(wall_s, used.ru_utime + used.ru_stime, peak_bytes, text)


def peak_of_all(parent: int, ended: threading.Event) -> int:
    """Bytes of a process and its children together at the peak, shared pages once; 0 where Linux does not tell."""
    peak = 0
    while not ended.wait(0.1):
        peak = max(peak, sum(map(proportional_bytes, [parent, *children(parent)])))
    return peak


def children(parent: int) -> list[int]:
    """Of all depths."""
    found: list[int] = []
    for task in Path("/proc").glob(f"{parent}/task/*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, task.read_text(encoding="utf-8").split()):
                found += [child, *children(child)]
    return found


def proportional_bytes(process: int) -> int:
    """What a process holds, its part of the pages that others hold too."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process}/smaps_rollup").read_text(encoding="utf-8").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def main() -> int:
    """Make the log, run both commands and the bare pass, print; 1 where a limit is broken."""
    options = argparse.ArgumentParser()
    options.add_argument("--rows", type=int, default=100_000)
    options.add_argument("--seed", type=int, default=7)
    options.add_argument("--keep", type=Path, help="a folder for the files, which then stay")
    given = options.parse_args()
    rows = given.rows - given.rows % 5
    with tempfile.TemporaryDirectory() as made:
        folder = given.keep or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        logs = written(folder, rows, given.seed)
        size = sum(path.stat().st_size for path in logs)
        print(f"{rows:,} requests in {size / 1e6:,.0f} MB, seed {given.seed}\n")
        requests, sample = folder / "requests.jsonl", folder / "sample.jsonl"
        evalkit = [sys.executable, "-m", "evalkit"]
        names = [str(path) for path in logs]
        bare = run([sys.executable, "-c", _BARE, str(folder / "bare.jsonl"), *names])
        taken = {
            "import logs": run([*evalkit, "import", "logs", *names, "--out", str(folder / "outcomes.parquet"),
                                "--requests-out", str(requests)]),
            "labels sample": run([*evalkit, "labels", "sample", str(requests), "--out", str(sample),
                                  "--count", "300", "--json", str(folder / "sample.json")]),
        }  # fmt: skip
        found = json.loads((folder / "sample.json").read_text(encoding="utf-8"))
    print(f"{'':<34}{'seconds':>9}{'processor s':>13}{'peak MB':>9}")
    for name, one in (("json.loads, regex, json.dumps", bare), *taken.items()):
        print(f"{name:<34}{one.wall_s:>9.1f}{one.cpu_s:>13.1f}{one.peak_bytes / 1e6:>9,.0f}")
    wall_s, cpu_s = (sum(of) for of in zip(*((one.wall_s, one.cpu_s) for one in taken.values()), strict=True))
    peak = max(one.peak_bytes for one in taken.values())
    aim_s = AIM_SECONDS * rows / 100_000
    print(f"\nboth: {wall_s:.1f} s (aim {aim_s:.0f}), {cpu_s:.1f} s of the processor")
    print(f"      {cpu_s / bare.cpu_s:.1f} times the bare pass (limit {MOST_OF_BARE:g})")
    print(f"      peak {peak / 1e6:,.0f} MB (limit {MOST_BYTES / 1e6:,.0f})")
    data = found["personal_data"]
    print(f"{sum(data['removed'].values()):,} pieces of personal data removed, in {data['rows']:,} rows; "
          f"{found['near_duplicates']['rows']:,} near duplicates")  # fmt: skip
    whole = found["rows"] == rows
    if not whole:
        print(f"only {found['rows']:,} of {rows:,} rows arrived")
    return int(not whole or cpu_s > MOST_OF_BARE * bare.cpu_s or peak > MOST_BYTES)


if __name__ == "__main__":
    sys.exit(main())
