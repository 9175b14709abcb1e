"""`evalkit label`: read what is to be labelled, serve the page, or make labels from files of decisions."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from evalkit.errors import Fault, InputError
from evalkit.labelling.adjudicate import Annotator, check_items, check_pair, check_replies, conflicts
from evalkit.labelling.blind import LETTERS
from evalkit.labelling.decisions import Header
from evalkit.labelling.export import export_columns
from evalkit.labelling.items import Items, Replies, read_items, read_replies
from evalkit.labelling.log_file import DecisionFile, Read, read_decisions
from evalkit.tabular.faults import listed
from evalkit.tabular.names import nfc, quoted
from evalkit.tabular.write import check_table_suffix, write_atomic, write_table
from evalkit.workflows.labels import names_in, pairs_in, show
from evalkit.workflows.run_files import refuse_to_overwrite

__all__ = ["LabelOptions", "label"]

_LONGEST_NAME = 80
_AGREED = "the two annotators agree on every item that both decided: nothing is to be settled"


@dataclass(frozen=True)
class LabelOptions:
    """What the command line gave; None means not given."""

    target: str
    annotator: str | None = None
    replies: Path | None = None
    port: int = 0
    lang: str = "en"
    adjudicate: tuple[Path, Path] | None = None
    out: Path | None = None
    seed: int | None = None
    tiers: str | None = None
    risk_classes: str | None = None
    columns: Sequence[str] = field(default_factory=tuple)
    reply_columns: Sequence[str] = field(default_factory=tuple)
    encoding: str | None = None
    export: Path | None = None
    decisions: Sequence[Path] = field(default_factory=tuple)
    partial: bool = False
    quiet: bool = False


class _Target(NamedTuple):
    """What is labelled and by which names."""

    title: str
    labels: str
    columns: Mapping[str, str]
    encoding: str | None
    tiers: tuple[str, ...]
    risk_classes: tuple[str, ...]
    study: Path | None
    reply_columns: Mapping[str, str]
    reply_encoding: str | None


def label(options: LabelOptions) -> None:
    """Serve the page until it is stopped, or export. Raises `InputError` with every fault."""
    target = _target(options)
    if options.export is not None:
        _export(options, target, options.export)
        return
    if options.decisions or options.partial:
        given = "--decisions" if options.decisions else "--partial"
        raise InputError(Fault("is for making labels", "name the labels to write: --export FILE", field=given))
    _serve(options, target)


def _target(options: LabelOptions) -> _Target:
    given = options.target
    columns = pairs_in("--column", options.columns)
    reply_columns = pairs_in("--reply-column", options.reply_columns)
    if Path(given).suffix.lower() in {".yaml", ".yml"}:
        from evalkit.study.routing import read_study

        if options.tiers is not None or options.risk_classes is not None:
            named = "--tiers" if options.tiers is not None else "--risk-classes"
            raise InputError(Fault("the study says it already", "leave it out", field=named))
        study = read_study(given, files_exist=False)
        tiers = study.tier_names
        outcomes, encoding = study.outcomes, None
        if outcomes is not None and options.replies is not None and _same_file(outcomes.path, options.replies):
            reply_columns = {**outcomes.columns, **reply_columns}
            encoding = outcomes.encoding
        target = _Target(
            study.name, study.labels.address, {**study.labels.columns, **columns},
            options.encoding or study.labels.encoding, tiers, study.risk_classes, Path(given), reply_columns,
            encoding,
        )  # fmt: skip
    else:
        if options.tiers is None or options.risk_classes is None:
            fix = "give a study, or --tiers and --risk-classes"
            raise InputError(Fault("nothing says the tiers and risk classes", fix))
        target = _Target(
            Path(given).name.split(".")[0] or "labels", given, columns, options.encoding,
            names_in("--tiers", options.tiers, least=2), names_in("--risk-classes", options.risk_classes),
            None, reply_columns, None,
        )  # fmt: skip
    if len(target.tiers) > len(LETTERS):
        what = f"names {len(target.tiers)} tiers, and the page has {len(LETTERS)} letters"
        raise InputError(Fault(what, "name fewer", file=given))
    return target


def _same_file(left: Path | None, right: Path) -> bool:
    try:
        return left is not None and left.resolve() == right.resolve()
    except OSError:
        return False


# -- the page ----------------------------------------------------------------------------------------------------


def _serve(options: LabelOptions, target: _Target) -> None:
    _check_page(options)
    annotator = _annotator(options.annotator)
    items = _items(target)
    replies = _replies(options, target, items)
    pair = None if options.adjudicate is None else _pair(options.adjudicate, annotator, target, items, replies)
    header = Header(
        annotator=annotator,
        seed=options.seed or 0,
        tiers=target.tiers,
        risk_classes=target.risk_classes,
        by="tier" if replies is None else "replies",
        adjudicates=() if pair is None else tuple(one.header.annotator for one in pair),
    )
    out = options.out or Path(_file_name(target.title, annotator, adjudicating=pair is not None))
    labels = None if target.labels.startswith("hf://") else Path(target.labels)
    refuse_to_overwrite([target.study, labels, options.replies, *(options.adjudicate or ())], [out])

    from evalkit.labelling.page import render_page
    from evalkit.labelling.server import listen, new_token, page_app, serve
    from evalkit.labelling.session import Session
    from evalkit.reporting.language import language

    found = None if pair is None else conflicts(pair[0].work, pair[1].work, items.ids)
    if found is not None and not found and not out.exists():
        show([_AGREED], [])
        return
    with DecisionFile.open(out, header, seed_given=options.seed is not None) as file:
        check_items(Annotator(str(out), file.header, file.work), items, replies)
        queue = None
        if found is not None:
            queue = [i for i, name in enumerate(items.ids) if name in found or file.work.of(name) is not None]
            if not queue:
                show([_AGREED], [])
                return
        session = Session(items, replies, file, queue=queue, conflicts=found)
        with listen(options.port) as listening:
            port = int(listening.getsockname()[1])
            token = new_token()
            html = render_page(target.title, file.header, language(options.lang), options.lang)
            notices = [*items.notices, *(replies.notices if replies is not None else ())]
            if file.torn:
                notices.append(
                    f"{out}: the last line was cut off when it was written; it was never saved and is gone"
                )
            state = session.state()
            lines = [
                f"http://127.0.0.1:{port}/{token}/",
                f"{state['done']:,} of {state['total']:,} decided, in {out}",
                "Ctrl+C stops; the same command goes on where it was",
            ]
            show(lines[:1] if options.quiet else lines, notices)
            print(end="", flush=True)
            serve(page_app(session, html, token, port), listening)
        state = session.state()
        lines = [f"{state['done']:,} of {state['total']:,} decided, in {out}"]
        if state["done"] == state["total"]:
            lines.append(f"labels: {_next_command(options, target, out)}")
        show([] if options.quiet else lines, [])


def _check_page(options: LabelOptions) -> None:
    """What the page needs, before anything is read."""
    from importlib.util import find_spec

    from evalkit.reporting.language import LANGUAGES

    if options.lang not in LANGUAGES:
        what = f"{quoted(options.lang, 40)} is no language of the page"
        raise InputError(Fault(what, f"write one of {', '.join(LANGUAGES)}", field="--lang"))
    if not 0 <= options.port <= 65535:
        raise InputError(Fault(f"{options.port} is no port", "write 0 for any free one", field="--port"))
    if any(find_spec(name) is None for name in ("starlette", "uvicorn")):
        raise InputError(Fault("the page needs the extra `label`", "pip install 'evalkit[label]'"))


def _annotator(name: str | None) -> str:
    name = nfc((name or "").strip())
    if not name:
        raise InputError(Fault("nobody is named", "say who labels: --annotator NAME", field="--annotator"))
    if len(name) > _LONGEST_NAME or not name.isprintable():
        what = f"{quoted(name)} is no name"
        fix = f"write at most {_LONGEST_NAME} characters that can be printed"
        raise InputError(Fault(what, fix, field="--annotator"))
    return name


def _items(target: _Target) -> Items:
    return read_items(
        target.labels, risk_classes=target.risk_classes, columns=target.columns, encoding=target.encoding
    )


def _replies(options: LabelOptions, target: _Target, items: Items) -> Replies | None:
    if options.replies is None:
        return None
    return read_replies(
        options.replies, items=items, tiers=target.tiers, columns=target.reply_columns,
        encoding=target.reply_encoding,
    )  # fmt: skip


def _pair(
    files: tuple[Path, Path], annotator: str, target: _Target, items: Items, replies: Replies | None
) -> tuple[Annotator, Annotator]:
    first, second = (_annotations(path, target) for path in files)
    check_pair(first, second)
    wanted = "tier" if replies is None else "replies"
    if first.header.by != wanted:
        what = "chose tiers by name" if wanted == "replies" else "judged replies"
        fix = "leave --replies out" if wanted == "replies" else "give the same --replies"
        raise InputError(Fault(f"the annotators {what}", fix, file=first.file))
    for one in (first, second):
        check_items(one, items, replies)
    if annotator in {first.header.annotator, second.header.annotator}:
        fix = "name a third person; where both settled it together, name both: --annotator 'ann and bo'"
        raise InputError(Fault(f"{quoted(annotator)} is one of the two", fix, field="--annotator"))
    return first, second


def _annotations(path: Path, target: _Target) -> Annotator:
    read: Read = read_decisions(path)
    assert read.header is not None
    faults = [
        Fault(f"is {', '.join(old)}, and here {', '.join(new)}", "use the study that was labelled",
              file=str(path), line=1, field=name)
        for name, old, new in (
            ("tiers", read.header.tiers, target.tiers),
            ("risk_classes", read.header.risk_classes, target.risk_classes),
        )
        if old != new
    ]  # fmt: skip
    if faults:
        raise InputError(faults)
    return Annotator(str(path), read.header, read.work)


def _file_name(title: str, annotator: str, *, adjudicating: bool) -> str:
    def plain(text: str) -> str:
        kept = "".join(ch if ch.isalnum() or ch in "-_" else "-" for ch in text).strip("-")
        return kept.encode("utf-8")[:80].decode("utf-8", "ignore") or "labels"

    return f"{plain(title)}.{plain(annotator)}.{'settled' if adjudicating else 'decisions'}.jsonl"


def _next_command(options: LabelOptions, target: _Target, out: Path) -> str:
    files = [*(options.adjudicate or ()), out]
    words = ["evalkit", "label", *_named(options, target)]
    for path in files:
        words += ["--decisions", str(path)]
    return shlex.join([*words, "--export", _export_name(target)])


def _settle_command(
    options: LabelOptions, target: _Target, annotators: Sequence[Annotator], settled: Sequence[Annotator]
) -> str:
    """The command that opens the page on what annotators differ on."""
    words = ["evalkit", "label", *_named(options, target)]
    if annotators[0].header.by == "replies":
        words += ["--replies", "REPLIES"]
    words += ["--annotator", settled[0].header.annotator if settled else "NAME"]
    if settled:
        words += ["--out", settled[0].file]
    return shlex.join([*words, "--adjudicate", *(one.file for one in annotators)])


def _named(options: LabelOptions, target: _Target) -> list[str]:
    """What is labelled and by which names, as the command line was given it."""
    words = [options.target]
    if target.study is None:
        words += ["--tiers", options.tiers or "", "--risk-classes", options.risk_classes or ""]
    for pair in options.columns:
        words += ["--column", pair]
    if options.encoding is not None:
        words += ["--encoding", options.encoding]
    return words


def _export_name(target: _Target) -> str:
    """A file to write labels to that is not what was labelled, nor, where that was drawn for an audit, labels."""
    if target.labels.startswith("hf://"):
        return "labels.jsonl"
    items = Path(target.labels)
    if _draw_record(items).is_file():
        return str(items.with_name(f"{items.stem}.judged{items.suffix}"))
    return "labels.labelled.jsonl" if _same_file(items, Path("labels.jsonl")) else "labels.jsonl"


def _draw_record(items: Path) -> Path:
    from evalkit.workflows.label_audit import draw_path

    return draw_path(items)


# -- labels from decisions ---------------------------------------------------------------------------------------


def _export(options: LabelOptions, target: _Target, out: Path) -> None:
    for name, given in (
        ("--annotator", options.annotator), ("--replies", options.replies), ("--adjudicate", options.adjudicate),
        ("--out", options.out), ("--seed", options.seed),
    ):  # fmt: skip
        if given is not None:
            fix = "leave it out; name the files of decisions with --decisions"
            raise InputError(Fault("is for the page, and --export opens none", fix, field=name))
    if not options.decisions:
        fix = "name one, or those of two annotators and of who settled their conflicts"
        raise InputError(Fault("no file of decisions is named", fix, field="--decisions"))
    check_table_suffix(out)
    labels = None if target.labels.startswith("hf://") else Path(target.labels)
    refuse_to_overwrite([target.study, labels, *options.decisions], [out])
    found = [_annotations(path, target) for path in options.decisions]
    annotators = [one for one in found if not one.header.adjudicates]
    settled = [one for one in found if one.header.adjudicates]
    _check_roles(annotators, settled)
    items = _items(target)
    for one in found:
        check_items(one, items, None)
    check_replies(found)
    made = export_columns(items, annotators, settled[0] if settled else None, partial=options.partial)
    if made.undecided and not options.partial:
        what = f"{len(made.undecided):,} of {len(items):,} items are not decided: {_some(made.undecided)}"
        fix = "decide them, or leave them out with --partial"
        raise InputError(Fault(what, fix, file=annotators[0].file))
    rows = len(made.columns["id"])
    if not rows:
        raise InputError(Fault("decides no item", "label some first", file=annotators[0].file))
    write_table(out, made.columns)
    lines = [f"{out}: {rows:,} items labelled by {listed([one.header.annotator for one in annotators])}"]
    if made.settled:
        lines.append(f"{made.settled:,} conflicts settled by {settled[0].header.annotator}")
    if made.disputed:
        lines.append(f"settle: {_settle_command(options, target, annotators, settled)}")
    if labels is not None and (record := _draw_record(labels)).is_file():
        write_atomic(_draw_record(out), record.read_bytes())
        judged = shlex.join(["evalkit", "labels", "audit", "STUDY", "--judged", str(out), "--json", "audit.json"])
        lines.append(f"drawn for an audit: {judged}")
    notices = list(items.notices)
    if made.undecided:
        notices.append(f"{len(made.undecided):,} items that nobody decided are left out: {_some(made.undecided)}")
    if made.single:
        notices.append(
            f"{len(made.single):,} items were decided by one annotator only, whose label they have: "
            f"{_some(made.single)}"
        )
    if made.disputed:
        alone = f" ({len(made.on_risk):,} of them on the risk class alone)" if made.on_risk else ""
        notices.append(
            f"{len(made.disputed):,} items are in dispute{alone}, and their required_tier is blank until it is "
            f"settled (evalkit label --adjudicate): {_some(made.disputed)}"
        )
    show([] if options.quiet else lines, notices)


def _check_roles(annotators: Sequence[Annotator], settled: Sequence[Annotator]) -> None:
    fix = "name the files of one or two annotators, and at most one that settles their conflicts"
    if not 1 <= len(annotators) <= 2 or len(settled) > 1:
        what = f"{len(annotators)} files of annotators and {len(settled)} that settle conflicts"
        raise InputError(Fault(what, fix, field="--decisions"))
    if len(annotators) == 2:
        check_pair(*annotators)
    names = {one.header.annotator for one in annotators}
    if settled and set(settled[0].header.adjudicates) != names:
        what = f"settles conflicts of {listed([quoted(name) for name in settled[0].header.adjudicates])}"
        raise InputError(Fault(what, "name the files of these two", file=settled[0].file))


def _some(ids: Sequence[str]) -> str:
    return listed([quoted(name, 40) for name in ids], 10)
