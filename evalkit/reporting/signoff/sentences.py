"""Sentences of the engine in other languages.

A document holds them in English, with their figures in them. Here stands the form of each that an approver may
have to read, with names for its figures; a sentence that fits a form is said anew in the language, one that fits
none stays English and is marked as such. Names that begin with `n` stand for numbers, `free` for any text, others
for short ones, of which some are words with a form of their own.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from evalkit.reporting.language import N_, Language

__all__ = ["SENTENCES", "arm_name", "translated"]

SENTENCES: Final = (
    # What the labels are.
    N_("Required tiers were set by people."),
    N_("Required tiers are author labels: a written rule set them, not independent annotators."),
    N_("Required tiers are derived from the outcomes (the least tier that passed), not judged by people."),
    N_("Required tiers were set by a model, not by people."),
    N_("No audit of the labels is part of this run: it assumes that they miss no need."),
    N_("Items labelled with the cheapest tier that stay below the strongest one were audited."),
    N_("Items labelled with the cheapest tier were audited, wherever a router sends them."),
    N_(
        "These labels were audited, and this run leaves the audit out: nothing is certified without it. Name it "
        "in the study (audit: ...)."
    ),
    N_(
        "Audit of %(class)s: %(n)s of %(n2)s drawn items need more, so at most %(n3)s %% of its needs are "
        "labelled cheap."
    ),
    N_(
        "The audit takes unsolvable labels as right, and the ratio of cheap labels to needs as it is in the "
        "labels."
    ),
    N_(
        "The audit takes labels above the cheapest tier as right, and the ratio of cheap labels to needs as it is "
        "in the labels."
    ),
    N_("Audit of the needs of %(class)s: %(n)s of %(n2)s drawn are labelled wrongly, at most %(n3)s %%."),
    N_("Audit of %(class)s: %(n)s of %(n2)s drawn items need more."),
    N_("The audit takes the ratio of cheap labels to needs as it is in the labels."),
    # Looks.
    N_(
        "This is look %(n)s at these labels and %(n2)s declared: nothing is certified any more. Label a fresh "
        "sample, or declare the number of looks before the first."
    ),
    N_(
        "This is look %(n)s at these tasks and %(n2)s declared: nothing is certified any more. Collect fresh "
        "tasks, or declare the number of looks before the first."
    ),
    N_("Look %(n)s of %(n2)s declared: each spends its part of the error rate."),
    N_("The record of looks beside the labels could not be written, so later looks will not be counted."),
    N_("The record of looks beside the tasks could not be written, so later looks will not be counted."),
    # What was not answered.
    N_("%(n)s outcome unanswered (%(status)s)."),
    N_("%(n)s outcomes unanswered (%(status)s)."),
    N_("%(n)s outcome unanswered (%(status)s); first: %(free)s (%(n2)s time)."),
    N_("%(n)s outcomes unanswered (%(status)s); first: %(free)s (%(n2)s times)."),
    N_("%(n)s outcome unanswered (%(status)s); first: %(free)s (%(n2)s times)."),
    N_("%(n)s outcomes unanswered (%(status)s); first: %(free)s (%(n2)s time)."),
    N_("%(n)s query without score, treated as %(what)s."),
    N_("%(n)s queries without score, treated as %(what)s."),
    N_("%(n)s query has weight 0: not in weighted figures."),
    N_("%(n)s queries have weight 0: not in weighted figures."),
    N_(
        "What %(arms)s declines goes to a fallback that was not measured: these runs count as unanswered, at the "
        "stated cost."
    ),
    N_(
        "What %(arms)s decline goes to a fallback that was not measured: these runs count as unanswered, at the "
        "stated cost."
    ),
    N_("%(arms)s: made of recorded runs of another arm, not run by itself."),
    N_(
        "On the %(n)s of %(n2)s items that both answered, the judged policy passes %(n3)s points against always "
        "%(tier)s."
    ),
    N_(
        "On the %(n)s of %(n2)s items that both answered, the judged policy passes %(n3)s points [%(n4)s, %(n5)s] "
        "against always %(tier)s."
    ),
    # What no gate judges, and what a certificate rests on.
    N_("No limit on the pass rate is set: no gate judges what the tiers got right, only the labels."),
    N_(
        "The study does not say what the judged policy was made from (router.trained_on): if from these items, "
        "its certificate is void."
    ),
    N_("Approximate: cross-fitted. The scores come from fold models, so the bounds are not certificates."),
    N_("The study states that the router was trained and tuned on other items; this is not checked here."),
    N_(
        "The router was trained on labels that were compared with the judged items by id, prompt and group; what "
        "else it was tuned on is not checked here."
    ),
    N_(
        "Router %(router)s is the best of %(n)s on these items; they share the error rate, 1/%(n2)s each. Gains "
        "over the others are apparent: the choice was made on these items."
    ),
    N_(
        "Router %(router)s is one of several in the study and was picked to be judged alone; it spends 1/%(n)s of "
        "the error rate."
    ),
    N_(
        "%(n)s labelled item was left out for all routers, being in the training labels of %(routers)s or in one "
        "conversation with such an item: the certificate is about traffic that is like what is left."
    ),
    N_(
        "%(n)s labelled items were left out for all routers, being in the training labels of %(routers)s or in "
        "one conversation with such an item: the certificate is about traffic that is like what is left."
    ),
    N_("%(n)s outcome costs are the tier's assumed cost per request."),
    N_("%(n)s costs are the arm's assumed cost per request."),
    N_("router.seconds is not stated: times leave the router out."),
    N_("Rates of requests, USD and times are weighted to traffic shares; counts and class rates are not."),
    N_("Rates, USD, tokens and times are weighted to traffic shares; counts are not."),
    N_(
        "Items share groups: a class's bound counts conversations, each by its worst turn; a bound on a rate of"
        " requests divides their number by the turns of the longest conversation."
    ),
    N_("Tasks share groups: bounds count groups, each by its worst task."),
    N_("The bound printed at a searched threshold is pointwise; the guarantee is the sentence under the gates."),
    N_("Production must apply the printed threshold at full precision and round scores as the study did."),
    N_(
        "%(n)s tasks: no 95th percentile of time and no failure limit of 5 %% can be certified below 59, and a "
        "plateau of 1 point takes about 300 tasks."
    ),
    N_(
        "A true gain below %(n)s points between neighbouring arms would often be missed: that is the least this"
        " study finds with a chance of 80 %%."
    ),
    N_("A plateau speaks of single steps: several together may gain more than the smallest worthwhile gain."),
    N_("A task fails its risk class where any of its runs fails; more runs make that stricter."),
    N_("The frontier and the acceptability curve are descriptive; they select nothing."),
    N_("%(policy)s is stricter than the study: %(limit)s %(after)s, there %(before)s."),
    N_("The policy names no baseline: nothing holds the pass rate against production."),
    N_("No baseline of the policy goes with this run: nothing holds its pass rate against production."),
    N_("Each run keeps its error rate by itself: over all runs together the chance of a wrong pass adds up."),
    # Stop rules.
    N_("%(strong)s passes more often than %(cheap)s: %(n)s points [%(n2)s, %(n3)s] over %(n4)s items"),
    N_(
        "%(strong)s is not shown to pass more often than %(cheap)s: %(n)s points [%(n2)s, %(n3)s] over %(n4)s "
        "items"
    ),
    N_(
        "Not nearly everything escalates: %(n)s %% of %(n2)s requests escalate, at least %(n3)s %% (stop at "
        "%(n4)s %%)"
    ),
    N_(
        "Nearly everything escalates (%(n)s %% of %(n2)s requests escalate, at least %(n3)s %%; stop at %(n4)s %%)"
    ),
    N_("The score separates: AUC %(n)s [%(n2)s, %(n3)s] over %(n4)s items (%(n5)s need more)"),
    N_("The router is not shown to separate: AUC %(n)s [%(n2)s, %(n3)s] over %(n4)s items (%(n5)s need more)"),
    N_("No gain is shown over %(best)s: $%(n)s a request [%(n2)s, %(n3)s] in expected total over %(n4)s items"),
    N_(
        "Better than %(best)s, the best fixed arm: $%(n)s a request [%(n2)s, %(n3)s] in expected total over "
        "%(n4)s items"
    ),
    N_(
        "No gain is shown over %(best)s: $%(n)s a request [%(n2)s, %(n3)s] in expected total over %(n4)s items, "
        "each at a threshold chosen without it"
    ),
    N_(
        "Better than %(best)s, the best fixed arm: $%(n)s a request [%(n2)s, %(n3)s] in expected total over "
        "%(n4)s items, each at a threshold chosen without it"
    ),
    N_("Escalation: there is no operating point to judge"),
    N_("Quality: cannot be compared, there are no outcomes"),
    N_("Quality: too few items to compare the tiers"),
    N_("Gain over the best fixed arm: not known, since costs or outcomes are missing"),
    N_("Gain over the best fixed arm: too few items"),
    N_(
        "Gain over the best fixed arm: not known, since no threshold keeps every limit as observed, or too few "
        "items (or conversations) are there to judge a searched one on others: ten at least"
    ),
    N_("Separation: not judged, decisions have no score"),
    N_("Separation: cannot be judged, the items do not hold both some that need more and some that do not"),
    N_("Risk failures: there is no arm to judge"),
    N_("Risk failures: the first arm spends nothing more than itself"),
    N_("Risk failures: %(arm)s neither costs more nor takes longer than %(first)s"),
    N_("Risk failures: no task is in a class with a limit"),
    N_("Some limit can be certified"),
    N_("No limit on failures, pass rate or time is set that could be certified"),
    N_(
        "The scores rank in the opposite order (AUC %(n)s [%(n2)s, %(n3)s] over %(n4)s items (%(n5)s need more)): "
        "the direction looks reversed; check router.higher_means"
    ),
    N_("Risk failures fall: %(n)s of %(n2)s tasks fail at %(first)s, %(n3)s at %(arm)s, whose %(what)s is higher"),
    N_(
        "Risk failures fall: %(n)s of %(n2)s tasks fail at %(first)s, %(n3)s at %(arm)s, whose %(what)s are higher"
    ),
    N_(
        "Risk failures do not fall: %(n)s of %(n2)s tasks fail at %(first)s, %(n3)s at %(arm)s, whose "
        "%(what)s is higher"
    ),
    N_(
        "Risk failures do not fall: %(n)s of %(n2)s tasks fail at %(first)s, %(n3)s at %(arm)s, whose %(what)s "
        "are higher"
    ),
    N_(
        "Risk failures do not fall, but only by what was not answered: %(n)s of %(n2)s tasks fail at "
        "%(first)s, %(n3)s at %(arm)s, whose %(what)s is higher"
    ),
    N_(
        "Risk failures do not fall, but only by what was not answered: %(n)s of %(n2)s tasks fail at "
        "%(first)s, %(n3)s at %(arm)s, whose %(what)s are higher"
    ),
    N_(
        "Risk failures are not shown to fall: %(n)s of %(n2)s tasks fail at %(first)s, %(n3)s at %(arm)s, "
        "whose %(what)s is higher; more tasks may show it"
    ),
    N_(
        "Risk failures are not shown to fall: %(n)s of %(n2)s tasks fail at %(first)s, %(n3)s at %(arm)s, "
        "whose %(what)s are higher; more tasks may show it"
    ),
    # The rule that goes with a threshold.
    N_("score >= threshold goes up"),
    N_("score < threshold goes up"),
    N_("score >= threshold: the cheap reply is not accepted and the request goes up"),
    N_("score < threshold: the cheap reply is not accepted and the request goes up"),
    N_("each tier's reply has its own score and threshold; score >= threshold: go on to the next tier"),
    N_("each tier's reply has its own score and threshold; score < threshold: go on to the next tier"),
    N_("a request goes up one tier for each threshold with score >= threshold"),
    N_("a request goes up one tier for each threshold with score < threshold"),
    # Facts that a policy asks for.
    N_("the run recorded this very policy"),
    N_("every figure was computed again from the bundle"),
    N_("every figure was computed again from the bundle; keys or passwords are hidden in its %(tables)s"),
    N_("the run recorded none; name the policy in the study (policy: ...) and run it again, on fresh labels"),
    N_("this was look %(n)s (at most %(n2)s); label a fresh sample"),
    N_("%(n)s days, since %(day)s (at most %(n2)s); collect them again"),
    N_("not recorded; write labelled_at (YYYY-MM-DD) into each row's metadata"),
    N_("not recorded; name a price card with as_of in the study"),
    N_("not measured; grade a sample of the replies by hand (human grades) and run again"),
    N_("not measured; give the labels of several annotators in a column labels"),
    N_("not measured, the run records no judge"),
    N_("%(n)s requests cannot bound a 95th percentile; %(n2)s are the least"),
    N_(
        "the run judged a looser limit (%(n)s, here %(n2)s); name the policy in the study (policy: ...) and run "
        "it again"
    ),
    N_(
        "the policy limits it to %(n)s and the run judged no limit; name the policy in the study (policy: ...) "
        "and run it again"
    ),
    N_(
        "the policy asks for a bound, and the run judged the estimate; name the policy in the study (policy: ...) "
        "and run it again"
    ),
    N_("no routing run of this sign-off has this class; add a run that judges it"),
    N_("no reasoning-budget run of this sign-off has this class; add a run that judges it"),
    N_("no run of this sign-off judges it"),
    N_("%(n)s outcome costs are computed from tokens at %(kind)s prices as of %(when)s."),
    N_("the run kept no evidence bundle, so its figures cannot be computed again; run it without --no-evidence"),
    N_("evidence.zip is missing from the run's folder"),
    N_("result.json does not name the evidence.zip that is there"),
    N_("not everything is in the bundle (%(free)s)"),
    N_("not measured, the run has no tier of this name"),
    N_("not measured, there are no outcomes"),
    N_("not measured, no items with weight"),
    N_("not measured, the run of today judged other items (%(n)s of %(n2)s are the same)"),
    N_("no run of this sign-off can be held against it"),
    N_("%(n)s points on the same items: too few %(what)s for a bound"),
    N_("there are no outcomes"),
    N_("no task times are known"),
    N_("some costs are unknown"),
    N_("%(n)s costs unknown"),
    N_("cost unknown"),
    N_("measurable loss"),
    N_("better and cheaper"),
)

_INSIDE: Final = {
    name: name
    for name in (
        N_("cost"),
        N_("p95 task time"),
        N_("cost and p95 task time"),
        N_("no limit"),
        N_("going up"),
        N_("staying at the cheapest tier"),
        N_("budget exhausted"),
        N_("no final answer"),
        N_("provider refusal"),
        N_("served by other model"),
        N_("judge error"),
        N_("truncated"),
        N_("error"),
        N_("items"),
        N_("conversations"),
        N_("assumed"),
        N_("cited"),
    )
}
"""Words that stand in a sentence for themselves, which have a form of their own in other languages."""

_NAME: Final = re.compile(r"%\((\w+)\)s")
_NUMBER: Final = r"[-+−]?[\d.,]{1,20}(?:e[-+]?\d{1,3})?"
_SHORT: Final = r"(?:always:)?[^:;\[\]]{1,80}?"
_FREE: Final = r".{1,300}?"
_ALWAYS: Final = N_("always %(tier)s")


def arm_name(name: str, _: Language) -> str:
    """An arm or tier as it is said: a fixed one, `always:<tier>` or `always <tier>`, in the reader's language."""
    head, sep, tier = name.partition(":") if ":" in name else name.partition(" ")
    return _(_ALWAYS, tier=tier) if sep and head == "always" and not _.english else name


def _word(value: str, _: Language) -> str:
    return _(_INSIDE[value]) if value in _INSIDE else arm_name(value, _)


@cache
def _forms() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """The sentences with figures in them as patterns. What a name stands for is short: matching stays quick."""
    forms = []
    for sentence in SENTENCES:
        parts = _NAME.split(sentence)
        if len(parts) > 1:
            pattern = "".join(
                re.escape(part.replace("%%", "%"))
                if place % 2 == 0
                else f"(?P<{part}>{_NUMBER if part[0] == 'n' else _FREE if part == 'free' else _SHORT})"
                for place, part in enumerate(parts)
            )
            forms.append((sentence, re.compile(pattern)))
    return tuple(forms)


def translated(text: str, _: Language) -> str | None:
    """`text` in the language `_`, or None where no sentence of the catalogue fits it."""
    plain = text.replace("%", "%%")
    if _.knows(plain):
        return _(plain)
    for sentence, form in _forms():
        found = form.fullmatch(text)
        if found is not None and _.knows(sentence):
            return _(sentence, **{name: _word(value, _) for name, value in found.groupdict().items()})
    return None
