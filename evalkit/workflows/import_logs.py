"""`evalkit import logs`: calls that a tool logged become outcomes to grade, and requests to sample and label."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evalkit.costs import PriceCard, cost_on_card
from evalkit.errors import Fault, InputError
from evalkit.grading.reply_status import reply_status
from evalkit.outcomes.logs.call import LoggedCall
from evalkit.outcomes.logs.read import LoggedCalls, read_logs
from evalkit.outcomes.status import Status
from evalkit.tabular.faults import listed
from evalkit.tabular.names import did_you_mean, nfc, quoted
from evalkit.tabular.write import check_table_suffix, write_table
from evalkit.workflows.collector import collector_paused
from evalkit.workflows.cut_texts import cut_request, cut_system_prompt, is_cut
from evalkit.workflows.labels import pairs_in, say_at_work, show
from evalkit.workflows.run_files import refuse_to_overwrite

__all__ = ["outcome_columns", "request_columns", "run_logs"]

_KNOWN_WITHOUT_GRADE = {Status.TRUNCATED, Status.BUDGET_EXHAUSTED, Status.PROVIDER_REFUSAL, Status.ERROR}
_ALWAYS = ("id", "tier", "model", "status")
_CUT = "a request whose text the log cut, and that is left out: long requests are missing from what is sampled"


@collector_paused()
def run_logs(
    files: Sequence[Path],
    *,
    out: Path | None,
    requests_out: Path | None,
    tiers: Sequence[str],
    model: str | None,
    prices: Path | None,
    encoding: str | None,
    quiet: bool,
) -> None:
    """Read the logs, write outcomes (`out`) and requests (`requests_out`), say what could not be mapped.

    Raises `InputError` with every fault of the files.
    """
    outputs = [path for path in (out, requests_out) if path is not None]
    if not outputs:
        what = "nothing is to be written"
        raise InputError(Fault(what, "give --out for outcomes, --requests-out for requests", field="--out"))
    for path in outputs:
        check_table_suffix(path)
    refuse_to_overwrite([*files, prices], outputs)
    chosen = pairs_in("--tier", tiers) if tiers else {}
    card = None
    if prices is not None:
        from evalkit.study.prices import read_price_card

        card = read_price_card(prices)
    say_at_work("reading", files, quiet=quiet)
    found = read_logs(files, encoding=encoding)
    if model is not None:
        found.calls = [call if call.model else call._replace(requested=model) for call in found.calls]
    lines = [_summary(found)]
    notices: list[str] = []
    table = requests = None
    if out is not None:
        table = outcome_columns(found, chosen, card, notices)
        lines += _outcome_lines(out, table)
    if requests_out is not None:
        requests = request_columns(found)
        lines.append(_request_line(requests_out, requests, found, files))
    found.forget_calls()
    if out is not None and table is not None:
        write_table(out, table)
        ungraded = table["status"].count(None) - sum(s is not None for s in table.get("score", ()))
        if ungraded:
            notices.append(
                f"{ungraded:,} rows have no grade: whether a reply was good enough no log knows. Add a column "
                "passed or score (0 to 1) before the file is used as outcomes; it is refused without one"
            )
    if requests_out is not None and requests is not None:
        write_table(requests_out, requests)
    for kind, count in sorted(found.unmapped.items()):
        notices.append(f"not mapped, {kind}: {count:,} ({found.examples[kind]})")
    show([] if quiet else lines, notices)


def outcome_columns(
    found: LoggedCalls, tiers: Mapping[str, str], card: PriceCard | None, notices: list[str]
) -> dict[str, list[Any]]:
    """The outcome table of the calls, in file order; columns of which nothing is known are left out.

    `tiers` maps a tier to a model as asked for, served, or by its group; calls of other models are left out and
    told. Without `tiers` the tier is the model asked for (or served, where only that is logged). `cost_usd` is
    computed from the tokens with `card` and never taken from the log, whose figure stands as `logged_cost_usd`.
    """
    back = {nfc(model): tier for tier, model in tiers.items()}
    if len(back) != len(tiers):
        raise InputError(Fault("two tiers are the same model", "name each model once", field="--tier"))
    columns: defaultdict[str, list[Any]] = defaultdict(list)
    other: Counter[str] = Counter()
    for call, place in zip(found.calls, found.places, strict=True):
        names = [nfc(n) for n in (call.requested, call.served, *call.names) if n]
        tier = next((back[n] for n in names if n in back), None) if tiers else (names[0] if names else None)
        if tier is None:
            if tiers and names:
                other[names[0]] += 1
            else:
                found.note(place, "a call whose log does not name a model", call.error or "")
            continue
        for name, value in _row(call, tier, card, found, place).items():
            columns[name].append(value)
    seen = set(columns["tier"])
    faults = _twice(zip(columns["id"], columns["tier"], strict=True))
    faults += [
        Fault(f"no call is of {quoted(model)}{did_you_mean(model, list(other))}",
              f"the logs hold {listed([quoted(n, 60) for n in other], 20) or 'no other model'}", field="--tier")
        for tier, model in tiers.items() if tier not in seen
    ]  # fmt: skip
    if faults:
        raise InputError(faults)
    if other:
        left = listed([f"{quoted(n, 60)} {count:,}" for n, count in other.items()])
        notices.append(f"{other.total():,} calls left out, of models that are no tier: {left}")
    if not columns["id"]:
        raise InputError(Fault("no call names a model", "export the model's name too", file=found.places[0]))
    return {
        name: values
        for name, values in columns.items()
        if name in _ALWAYS or any(value is not None for value in values)
    }


def _twice(rows: Iterable[tuple[str, str]]) -> list[Fault]:
    counts = Counter(rows)
    twice = [key for key, n in counts.items() if n > 1]
    fix = "import the files one by one, or number the rows of an item in a column sample"
    more = [Fault(f"{len(twice) - 100:,} more ids stand twice", fix)] if len(twice) > 100 else []
    return [Fault(f"two calls of the tier {quoted(tier)}", fix, id=own) for own, tier in twice[:100]] + more


def _row(call: LoggedCall, tier: str, card: PriceCard | None, found: LoggedCalls, place: str) -> dict[str, Any]:
    usage = call.usage
    counted = usage.problem is None
    if cut := is_cut(call.reply):
        found.note(place, "a reply that the log cut, and that is left out", "")
    return {
        "id": nfc(call.id),
        "tier": tier,
        "model": call.model,
        "status": _status(call),
        "score": call.score,
        "cost_usd": _cost_usd(call, card, found, place),
        "input_tokens": usage.input_tokens,
        "cache_read_tokens": usage.cache_read_tokens if counted else None,
        "cache_write_tokens": usage.cache_write_tokens if counted else None,
        "output_tokens": usage.output_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "ttft_s": call.ttft_s,
        "request_s": call.request_s,
        "attempts": call.attempts,
        "error": call.error,
        "reply": None if call.failed or cut else call.reply,
        "logged_cost_usd": call.logged_cost_usd,
        "started_at": None if call.started is None else call.started.iso(),
        "group": call.group,
        "cached": call.cached or None,
        "batch": call.batch or None,
        "source": call.source,
        "usage": call.raw_usage or None,
        "usage_problem": None if counted or call.failed else usage.problem,
    }


def _status(call: LoggedCall) -> str | None:
    """The status where it is known without a grade: no reply, a cut one, a refusal. Never ok, never wrong."""
    if call.failed:
        return Status.ERROR.value
    if call.finish_reason is None:
        return None
    # Where the text was not logged, nothing is concluded from its absence.
    said = reply_status("not logged" if call.reply is None else call.reply, call.finish_reason).status
    return said if said in _KNOWN_WITHOUT_GRADE else None


def _cost_usd(call: LoggedCall, card: PriceCard | None, found: LoggedCalls, place: str) -> float | None:
    if card is None or call.failed or call.model is None or call.usage.problem is not None:
        return None
    day = None
    if call.started is not None and call.started.zoned:
        day = datetime.fromtimestamp(call.started.us / 1e6, UTC).date()
    names = [name for name in (call.served, call.requested) if name]
    name = next((n for n in names if card.price(n, day) is not None), names[0])
    cost = cost_on_card(call.usage, card, name, on=day, batch=call.batch)
    if cost.usd is None:
        found.note(place, "a call that the price card does not price", cost.reason or "")
        return None
    return float(cost.usd)


def request_columns(found: LoggedCalls) -> dict[str, list[Any]]:
    """The requests whose text was logged, for `evalkit labels sample`: id, prompt or messages, group.

    Failed calls and replies from a cache are requests too: they are traffic. One whose text the log cut is none:
    it cannot be labelled, and personal data is not recognised at a cut. Nothing else of a record is taken, no
    user, header, key or metadata. Raises `InputError` where an id stands for requests of different text.
    """
    columns: dict[str, list[Any]] = {"id": [], "prompt": [], "messages": [], "group": []}
    seen: dict[str, int] = {}
    faults: list[Fault] = []
    for at, (call, place) in enumerate(zip(found.calls, found.places, strict=True)):
        if call.messages is None and call.prompt is None:
            found.note(place, "a request whose text was not logged", "")
            continue
        if cut_request(call):
            found.note(place, _CUT, "")
            continue
        if cut_system_prompt(call):
            found.note(place, "a system prompt that the log cut, of a request that is kept", "")
        own = nfc(call.id)
        if own in seen:  # one item on several models, or attempts of one request
            first = found.calls[seen[own]]
            if (first.prompt, first.messages) != (call.prompt, call.messages):
                what = f"the request also stands on {found.places[seen[own]]}, with other text"
                faults.append(Fault(what, "give each request its own id", file=place, id=own))
            else:
                found.note(place, "a request that another call made before", own)
            continue
        seen[own] = at
        columns["id"].append(own)
        columns["prompt"].append(call.prompt)
        columns["messages"].append(None if call.messages is None else list(call.messages))
        columns["group"].append(call.group)
    if faults:
        more = (
            [Fault(f"{len(faults) - 100:,} more requests share an id", faults[0].fix)] if len(faults) > 100 else []
        )
        raise InputError(faults[:100] + more)
    return {name: values for name, values in columns.items() if name == "id" or any(v is not None for v in values)}


def _summary(found: LoggedCalls) -> str:
    by_source = Counter(call.source for call in found.calls)
    kinds = ", ".join(f"{name} {count:,}" for name, count in sorted(by_source.items()))
    return f"{found.records:,} records read, {len(found.calls):,} calls: {kinds}"


def _outcome_lines(out: Path, table: Mapping[str, list[Any]]) -> list[str]:
    n = len(table["id"])
    lines = [f"{out}: {n:,} {'row' if n == 1 else 'rows'}"]
    for tier in dict.fromkeys(table["tier"]):
        at = [i for i, name in enumerate(table["tier"]) if name == tier]
        graded = sum(table["score"][i] is not None for i in at) if "score" in table else 0
        unanswered = sum(table["status"][i] is not None for i in at)
        parts = [f"{len(at):,} rows", f"{graded:,} graded", f"{unanswered:,} unanswered"]
        for name, said in (("logged_cost_usd", "as logged"), ("cost_usd", "computed")):
            known = [table[name][i] for i in at if table[name][i] is not None] if name in table else []
            if known:
                parts.append(f"${sum(known):.6f} {said} ({len(known):,} of {len(at):,} known)")
        lines.append(f"  {tier}: {', '.join(parts)}")
    return lines


def _request_line(out: Path, table: Mapping[str, list[Any]], found: LoggedCalls, files: Sequence[Path]) -> str:
    n = len(table["id"])
    if not n:
        kinds = ", ".join(f"{kind}: {count:,}" for kind, count in sorted(found.unmapped.items()))
        what = f"holds no request whose text was logged ({kinds})"
        fix = "let the tool log prompts, or leave --requests-out out"
        raise InputError(Fault(what, fix, file=str(files[0]), field="--requests-out"))
    noun = "request" if n == 1 else "requests"
    return f"{out}: {n:,} {noun} with personal data still in them: draw with evalkit labels sample"
