"""How much personal data is found in text, and how often harmless text is taken for it.

    python benchmarks/personal_data.py [--show]

200 planted sentences in English and Korean, one piece each, and 200 look-alikes (`personal_data_cases.py`).
A piece is found when nothing of it that could identify stays: no run of four of its letters or digits. Recall:
pieces found. Precision: replacements in planted sentences and in look-alikes that were right to make.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from personal_data_cases import HARMLESS, PLANTED

from evalkit.labels.personal_data import cleaned

LEAST_RECALL, LEAST_PRECISION = 0.98, 0.95


def leaks(value: str, text: str) -> bool:
    """Whether a part of `value` stays in `text`: four letters or digits in a row, or, of short ones, all."""
    text = re.sub(r"\[[a-z ]+\]", "", text)
    parts = re.findall(r"\w{4,}", value) or [value]
    return any(part in text for part in parts)


def main() -> int:
    """Print recall by kind and precision; 1 where one is below its limit."""
    options = argparse.ArgumentParser()
    options.add_argument("--show", action="store_true", help="print the sentences that went wrong (all invented)")
    show = options.parse_args().show
    planted: Counter[str] = Counter()
    found: Counter[str] = Counter()
    right = wrong = 0
    for kind, value, sentence in PLANTED:
        seen: Counter[str] = Counter()
        text = cleaned(sentence, seen)
        planted[kind] += 1
        gone = not leaks(value, text)
        found[kind] += gone
        right += gone
        wrong += max(0, seen.total() - sentence.count(value))
        if show and (not gone or seen.total() != sentence.count(value)):
            print(f"  {'MISSED' if not gone else 'MORE'} {kind}: {sentence}  ->  {text}")
    for sentence in HARMLESS:
        seen = Counter()
        text = cleaned(sentence, seen)
        wrong += seen.total()
        if show and seen:
            print(f"  FALSE {dict(seen)}: {sentence}  ->  {text}")
    print(f"{'kind':<12} {'planted':>8} {'found':>6} {'recall':>7}")
    for kind, n in planted.items():
        print(f"{kind:<12} {n:>8} {found[kind]:>6} {found[kind] / n:>7.3f}")
    recall = found.total() / planted.total()
    precision = right / (right + wrong)
    print(f"{'all':<12} {planted.total():>8} {found.total():>6} {recall:>7.3f}   (limit {LEAST_RECALL})")
    print(f"look-alikes  {len(HARMLESS):>8}; wrong replacements {wrong}")
    print(f"precision {precision:.3f} (limit {LEAST_PRECISION})")
    return int(recall < LEAST_RECALL or precision < LEAST_PRECISION)


if __name__ == "__main__":
    sys.exit(main())
