"""Numbers that belong to a person: telephones, payment cards, national ids and bank accounts.

A number with a check digit is one only where the digit is right, so that order numbers and measurements stay.
Where it has none, its usual separators or the word in front of it tell it apart.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

__all__ = ["REGIONS", "Run", "account_spans", "card_spans", "digit_runs", "national_id_spans", "phone_spans"]

Span = tuple[int, int]

REGIONS = ("KR", "US", "GB")
"""Countries whose numbers are known without a country code."""

_RUN = re.compile(r"\d(?:\D{0,4}\d){5,}")
_BEFORE, _BEHIND = 10, 24


class Run(NamedTuple):
    """A stretch of text with digits close to each other, and how many of them there are."""

    start: int
    end: int
    digits: int


def digit_runs(text: str) -> list[Run]:
    """Stretches with six digits and more, at most four other characters between two of them.

    Every number that is looked for, except for an account's, has all of its digits in one of these, so that
    the rest of a text need not be searched for it.
    """
    return [Run(*match.span(), sum(map(str.isdecimal, match[0]))) for match in _RUN.finditer(text)]


def _matches(shape: re.Pattern[str], text: str, runs: Sequence[Run], least: int) -> Iterator[re.Match[str]]:
    """The matches of `shape`, which has `least` digits, that begin in a run or in the letters just before it."""
    for start, end, digits in runs:
        if digits >= least:
            for match in shape.finditer(text, max(0, start - _BEFORE), end + _BEHIND):
                if match.start() < end:
                    yield match


_D = r"(?<![0-9A-Za-z])"  # no digit or letter in front: not the middle of a longer code
_E = r"(?![0-9A-Za-z])"

# -- telephones -----------------------------------------------------------------------------------------------
_MAYBE_PHONE = re.compile(r"(?<![\dA-Za-z])\d(?:[\s().–‑/-]{0,3}\d){6,30}")
_KR_MOBILE = re.compile(
    r"(?<![\d.])(?:\+?82[\s.-]{0,2}\(?0?\)?|\(?0)1[016789]\)?[\s.-]{0,2}\d{3,4}[\s.-]{0,2}\d{4}(?![\d])"
)
_PHONE_WORD = re.compile(
    r"(?i)(?:phone|tel|call|mobile|cell|fax|text|sms|whatsapp|dial|reach|contact|number is|ring"
    r"|전화|연락|휴대폰|핸드폰|"
    r"번호|폰|문자|팩스|모바일)[^\d\n+(]{0,24}$"
)
# What a number without a country code begins with; the library also takes numbers without their area code.
_WITH_AREA = {
    "KR": re.compile(r"(?<!\d)\(?0|(?<!\d)1[5-8]\d\d"),
    "US": re.compile(r"(?<!\d)(?:1[\s.-])?\(?[2-9]\d\d(?:\)|[\s.-]|\d{7}(?!\d))"),
    "GB": re.compile(r"(?<!\d)\(?0"),
}


_US_DIGITS = 10  # without the area code a number there is not valid


def phone_spans(text: str, regions: Sequence[str], runs: Sequence[Run]) -> Iterator[Span]:
    """Telephone numbers: with a country code any that is possible, without one those valid in `regions`.

    A run of digits without any separator is one only behind a word such as "call", except Korean mobiles. Only
    runs of seven digits and more are looked at: the library is slow on what is long and holds none.
    """
    for match in _matches(_KR_MOBILE, text, runs, 10):
        yield match.span()
    for run in _matches(_MAYBE_PHONE, text, runs, 7):
        start = max(0, run.start() - 2)
        yield from _phones_in(text, start, text[start : run.end() + 1], regions)


def _phones_in(text: str, offset: int, part: str, regions: Sequence[str]) -> Iterator[Span]:
    from phonenumbers import Leniency, PhoneNumberMatcher

    digits = sum(map(str.isdecimal, part))
    if "+" in part:
        for found in PhoneNumberMatcher(part, None, leniency=Leniency.POSSIBLE):
            yield offset + found.start, offset + found.end
    for region in regions:
        begins = _WITH_AREA.get(region)
        if region == "US" and digits < _US_DIGITS:
            continue
        if begins is not None and not begins.search(part):
            continue
        for found in PhoneNumberMatcher(part, region, leniency=Leniency.VALID):
            raw, start = found.raw_string, offset + found.start
            if begins is not None and not begins.match(raw) and not raw.startswith("+"):
                continue
            if raw.isdigit() and not _PHONE_WORD.search(text[max(0, start - 40) : start]):
                continue
            if text[:start].endswith((".", "#")) or _is_date(raw):
                continue
            yield start, offset + found.end


def _is_date(text: str) -> bool:
    return bool(re.fullmatch(r"(?:19|20)\d\d[-./](?:0?[1-9]|1[0-2])[-./][0-3]?\d(?:\s+\d{1,4})?", text))


# -- payment cards --------------------------------------------------------------------------------------------
_CARD = re.compile(r"(?<![\w.])(?<!\d[-])\d(?:[ -]?\d){12,18}(?![\d])(?!-\d)")
_CARD_BRANDS = re.compile(
    r"4\d{12}(?:\d{3}){0,2}|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}"
    r"|3(?:0[0-5]|[689]\d)\d{11,16}|6(?:011|4[4-9]\d|5\d\d|2\d\d|[03]\d\d|[678]\d\d)\d{8,15}|35(?:2[89]|[3-8]\d)\d{12}"
    r"|9\d{15}"
)


def card_spans(text: str, runs: Sequence[Run]) -> Iterator[Span]:
    """Numbers of payment cards: a range that card brands use, and the right check digit (Luhn)."""
    from stdnum import luhn

    for match in _matches(_CARD, text, runs, 13):
        digits = re.sub(r"\D", "", match[0])
        groups = re.split(r"[ -]", match[0])
        regular = len(groups) == 1 or all(3 <= len(g) <= 6 for g in groups[:-1])
        if regular and _CARD_BRANDS.fullmatch(digits) and len(set(digits)) > 1 and luhn.is_valid(digits):
            yield match.span()


# -- national ids ---------------------------------------------------------------------------------------------
_RRN = re.compile(r"(?<![\d-])\d{6}\s?[-–]?\s?[0-9]\d{6}(?![\d-])")
_RRN_MASKED = re.compile(r"(?<![\d-])\d{6}\s?[-–]\s?[1-8](?:\*{6}|[Xx]{6})")
_RRN_WORD = re.compile(r"(?i)(?:주민|외국인)\s?등록\s?번호[^\d\n]{0,12}$|\brrn\b[^\d\n]{0,12}$")
_NO_CHECK_SINCE = datetime.date(2020, 10, 1)


def _korean(text: str, runs: Sequence[Run]) -> Iterator[Span]:
    from stdnum.exceptions import ValidationError
    from stdnum.kr import rrn

    for match in _matches(_RRN_MASKED, text, runs, 7):
        yield match.span()
    for match in _matches(_RRN, text, runs, 13):
        digits = re.sub(r"\D", "", match[0])
        try:
            born = rrn.get_birth_date(digits)
        except ValidationError:
            continue
        if _RRN_WORD.search(text[max(0, match.start() - 24) : match.start()]):
            yield match.span()
        elif born > datetime.date.max or digits[6] in "90":
            continue
        elif rrn.is_valid(digits) or (digits[6] in "5678" and _foreigner(digits)):
            yield match.span()
        elif born >= _NO_CHECK_SINCE and born.year <= 2035 and len(match[0]) > 13:
            yield match.span()  # given out since October 2020: no check digit any more


def _foreigner(digits: str) -> bool:
    """The check digit of a number given to a foreigner: that of a citizen, plus 2."""
    from stdnum.kr import rrn

    return digits[-1] == str((int(rrn.calc_check_digit(digits[:-1])) + 2) % 10)


_NI = (  # United Kingdom, national insurance: no check digit, but pairs of letters that are not given out
    r"(?i)(?<![a-z0-9])(?!bg|gb|nk|kn|tn|nt|zz)[abceghj-prstw-z][abceghj-nprstw-z] ?\d{2} ?\d{2} ?\d{2} ?[a-d]"
    r"(?![a-z0-9])"
)


def _validators() -> list[tuple[re.Pattern[str], int, re.Pattern[str] | None, Callable[[str], bool]]]:
    """(shape, the digits that it has at least, word that must stand in front or None, check)."""
    from stdnum.br import cpf
    from stdnum.ca import sin
    from stdnum.cn import ric
    from stdnum.es import dni, nie
    from stdnum.fr import nir
    from stdnum.in_ import aadhaar
    from stdnum.it import codicefiscale
    from stdnum.us import ssn

    def word(words: str) -> re.Pattern[str]:
        return re.compile(rf"(?i)(?:{words})[^\d\n]{{0,24}}$")

    def always(_: str) -> bool:
        return True

    c = re.compile
    return [
        (c(r"(?<![\d-])\d{3}-\d{2}-\d{4}(?![\d-])"), 9, None, ssn.is_valid),
        (c(rf"{_D}\d{{3}} ?\d{{2}} ?\d{{4}}{_E}"), 9, word(r"\bssn\b|social security"), _ssn_digits),
        (c(_NI), 6, None, always),
        (c(rf"{_D}\d{{8}}-?[A-Z]{_E}"), 8, None, dni.is_valid),
        (c(rf"{_D}[XYZ]-?\d{{7}}-?[A-Z]{_E}"), 7, None, nie.is_valid),
        (c(rf"{_D}[12] ?\d{{2}} ?\d{{2}} ?\d[\dAB] ?\d{{3}} ?\d{{3}} ?\d{{2}}{_E}"), 14, None, nir.is_valid),
        (c(rf"{_D}[A-Z]{{6}}\d{{2}}[A-EHLMPR-T]\d{{2}}[A-Z]\d{{3}}[A-Z]{_E}"), 7, None, codicefiscale.is_valid),
        (c(rf"{_D}\d{{3}}\.\d{{3}}\.\d{{3}}-\d{{2}}{_E}"), 11, None, cpf.is_valid),
        (c(rf"{_D}\d{{4}} \d{{4}} \d{{4}}(?! ?\d){_E}"), 12, None, aadhaar.is_valid),
        (c(rf"{_D}\d{{3}}[ -]\d{{3}}[ -]\d{{3}}{_E}"), 9, word(r"\bsin\b|social insurance"), sin.is_valid),
        (c(rf"{_D}\d{{17}}[\dX]{_E}"), 17, None, ric.is_valid),
        (c(r"(?<![\d-])\d{2}-\d{2}-\d{6}-\d{2}(?![\d-])"), 12, None, always),  # Korea, driving licence
        (c(rf"{_D}[A-Z]\d{{8}}{_E}|{_D}[A-Z]\d{{3}}[A-Z]\d{{4}}{_E}|{_D}\d{{9}}{_E}"), 7,
         word(r"passport|여권"), always),
    ]  # fmt: skip


_BEHIND_WORDS = (
    "ssn",
    "social",
    "sin",
    "passport",
    "여권",
)  # one of these is in every word that must stand in front


def _ssn_digits(text: str) -> bool:
    from stdnum.us import ssn

    return bool(ssn.is_valid(text.replace(" ", "")))


_TABLE: list[tuple[re.Pattern[str], int, re.Pattern[str] | None, Callable[[str], bool]]] = []


def national_id_spans(text: str, runs: Sequence[Run]) -> Iterator[Span]:
    """National ids, passports and driving licences; with their check digits where they have them.

    Korea (residents, foreigners, driving licence, passport), United States, United Kingdom, Spain, France, Italy,
    Brazil, India, Canada, China.
    """
    if not _TABLE:
        _TABLE.extend(_validators())
    yield from _korean(text, runs)
    low = text.lower()
    behind_words = any(word in low for word in _BEHIND_WORDS)
    for shape, least, word, check in _TABLE:
        if word is not None and not behind_words:
            continue
        for match in _matches(shape, text, runs, least):
            if word is not None and not word.search(text[max(0, match.start() - 48) : match.start()]):
                continue
            if check(match[0]):
                yield match.span()


# -- bank accounts --------------------------------------------------------------------------------------------
_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?![A-Za-z0-9])")
_ACCOUNT = re.compile(
    r"(?i)(?:계좌(?:\s?번호)?|은행|입금|account (?:number|no\.?|#)|acct\.?(?: no\.?)?|routing number)[^\d\n]{0,24}"
    r"(?P<value>\d(?:[ -]?\d){7,15})(?!\d)"
)


_ACCOUNT_WORDS = ("계좌", "은행", "입금", "account", "acct", "routing")


def account_spans(text: str) -> Iterator[Span]:
    """Bank accounts: an IBAN with the right check digits, or a number behind the word for one."""
    from stdnum import iban

    for match in _IBAN.finditer(text):
        if iban.is_valid(match[0], check_country=False):
            yield match.span()
    low = text.lower()
    if any(word in low for word in _ACCOUNT_WORDS):
        for match in _ACCOUNT.finditer(text):
            if not _KR_MOBILE.fullmatch(match["value"]):  # a telephone, which a sentence may ask a bank to call
                yield match.span("value")
