"""Street addresses in English and Korean, as far as a rule can find them.

A street needs its number; a city, a district or a station alone is no address of a person. Names of people are not
found: no rule can tell them from other words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["address_spans"]

_TYPES = (
    r"(?:Street|St|Avenue|Ave|Road|Rd|Boulevard|Blvd|Lane|Ln|Drive|Dr|Court|Ct|Place|Pl|Terrace|Ter|Square|Sq"
    r"|Parkway|Pkwy|Circle|Cir|Close|Crescent|Cres|Highway|Hwy|Way|Trail|Trl|Alley|Grove|Gardens|Mews|Quay|Row|Walk)"
)
_UNIT = (
    r"(?:,?\s{1,2}(?:Apt|Apartment|Suite|Ste|Unit|Flat|Floor|Fl|Rm|Room|#)\.?"
    r"\s{0,2}#?\s?[A-Za-z0-9-]{1,6}(?![A-Za-z]))?"
)
_STATES = (
    "A[KLRZ]|C[AOT]|D[CE]|FL|GA|HI|I[ADLN]|K[SY]|LA|M[ADEINOST]|"
    "N[CDEHJMVY]|O[HKR]|PA|RI|S[CD]|T[NX]|UT|V[AT]|W[AIVY]"
)
_CITY = (
    r"(?:,?\s{1,2}(?:[A-Z][A-Za-z.'-]{1,20}\s?){1,3},?\s{1,2}(?:"
    rf"(?:{_STATES})(?:\s{{1,2}}\d{{5}}(?:-\d{{4}})?)?|[A-Z]{{1,2}}\d[A-Z\d]?\s?\d[A-Z]{{2}}"
    r"|(?:[A-Z]{2,3}\s{1,2})?\d{4,5}(?:-\d{4})?)(?![A-Za-z0-9]))?"
)
_WORD = r"(?:[A-Z][A-Za-z'’.-]{0,20}|\d{1,3}(?:st|nd|rd|th)|(?:de|la|of|the)(?=\s))"
_ENGLISH = re.compile(
    r"(?<![\w.,/$€£₩%-])(?:(?:Apt|Flat|Unit|Suite)\.?\s{1,2}#?[A-Za-z0-9-]{1,5},?\s{1,2})?"
    rf"\d{{1,5}}(?:[-/]\d{{1,4}})?[A-Za-z]?\s{{1,2}}(?:(?:N|S|E|W|NE|NW|SE|SW|North|South|East|West)\.?\s{{1,2}})?"
    rf"(?:{_WORD}\s{{1,2}}){{1,4}}?{_TYPES}\b(?!['’-])\.?(?:\s{{1,2}}(?:N|S|E|W|NE|NW|SE|SW)\b\.?)?{_UNIT}{_CITY}"
)
_LOWER = re.compile(  # in small letters only with its state and postal code behind it
    rf"(?i)(?<![\w.,/$€£₩%-])\d{{1,5}}[a-z]?\s{{1,2}}(?:[a-z0-9'’.-]{{1,20}}\s{{1,2}}){{1,4}}?{_TYPES}\b\.?{_UNIT}"
    rf",?\s{{1,2}}(?:[a-z.'-]{{1,20}}\s?){{1,3}},?\s{{1,2}}(?:{_STATES})\s{{1,2}}\d{{5}}(?:-\d{{4}})?(?!\d)"
)
_BOX = re.compile(
    r"(?i)\b(?:p\.?\s?o\.?|post office)\s?box\s{1,2}#?\d{1,6}\b"
    rf"(?-i:{_CITY})"
)

_SIDO = (
    r"(?:서울|부산|대구|인천|광주|대전|울산|세종|경기|강원|충북|충남|전북|전남|경북|경남|제주|충청[북남]|전라[북남]|경상[북남])"
    r"(?:특별자치시|특별자치도|특별시|광역시|시|도)?"
)
_AREA = rf"(?:{_SIDO}\s{{0,2}}|[가-힣]{{1,6}}(?:시|군|구|읍|면)\s{{1,2}}|[가-힣]{{1,6}}(?:시|군|구)\s{{0,2}})"
_MORE = (
    r"(?:\s{0,2},?\s{0,2}(?:\([가-힣0-9,\s]{1,30}\)|지하\s?\d{1,2}층|[가-힣A-Za-z0-9]{1,15}(?:아파트|빌라|빌딩|오피스텔|타워|맨션|하우스)"
    r"|[A-Za-z가-나다라마바사0-9]{1,5}동(?=\s?\d)|\d{1,3}층|[A-Za-z]?\d{1,5}호)){0,5}"
)
# What stands behind a number of something else.
_UNITS = r"(?:원|개|명|분|시간|회|번째|위|점|월|년|일|곳|건|호선|km|m\b|%)"
_STREET = (
    r"[가-힣0-9·]{1,15}(?:대로|로|길)(?:\s?\d{1,4}(?:번|가|나|다|라)?길)?\s{0,2}(?:지하\s?)?\d{1,5}(?:-\d{1,4})?(?![\d%]|[,.:]\d|\s?"
    + _UNITS
    + ")"
)
_LOT = (
    r"[가-힣0-9]{1,10}(?:동|리|가)\s{0,2}(?:산\s?)?\d{1,5}(?:-\d{1,4})?(?:번지)?(?![\d%]|[,.:]\d|\s?"
    + _UNITS
    + ")"
)
_KOREAN = (
    re.compile(rf"(?<![가-힣]){_AREA}{{1,4}}(?:{_STREET}|{_LOT}){_MORE}"),
    # without a district only where a building's number or a flat follows
    re.compile(
        rf"(?<![가-힣0-9]){_STREET}(?=\s{{0,2}},?\s{{0,2}}(?:\(|[가-힣A-Za-z0-9]{{0,15}}\s{{0,2}}\d{{1,5}}(?:동|호|층))){_MORE}"
    ),
    re.compile(r"(?<![가-힣0-9])[가-힣]{1,10}(?:로|길)\s?\d{1,4}번길\s?\d{1,4}(?:-\d{1,4})?(?!\d)" + _MORE),
    re.compile(r"(?<![가-힣0-9])[가-힣]{1,10}(?:동|리)\s{0,2}\d{1,5}(?:-\d{1,4})?번지" + _MORE),
    re.compile(
        r"(?<![가-힣A-Za-z0-9])[가-힣A-Za-z0-9]{1,15}(?:아파트|빌라|오피스텔|맨션|자이|푸르지오|래미안|힐스테이트)\s{0,2},?\s{0,2}"
        r"(?:\d{1,4}동\s{0,2}\d{1,4}호|\d{1,4}-\d{3,4}(?!\d))"
    ),
)
_HAS_KOREAN = re.compile(r"(?:로|길|동|리|가|트|라|텔|션|이|오|안)\s{0,2}(?:산\s?|지하\s?|,\s?)?\d")
_WORDS = re.compile(r"[a-z]+")
_TYPE_WORDS = frozenset(_WORDS.findall(_TYPES.lower())) | {"box"}
_NUMBER = re.compile(r"\d[a-z]?\s")
_REACH = 95  # characters from the number of a street to its kind, at most


def address_spans(text: str) -> Iterator[tuple[int, int]]:
    """(start, end) of street addresses."""
    if _may_have_street(text.lower()):
        for shape in (_ENGLISH, _LOWER, _BOX):
            for match in shape.finditer(text):
                yield _trimmed(text, *match.span())
    if not text.isascii() and _HAS_KOREAN.search(text):
        for shape in _KOREAN:
            for match in shape.finditer(text):
                yield _trimmed(text, *match.span())


def _may_have_street(low: str) -> bool:
    """A kind of street has a number in front of it, or a box is named."""
    if _TYPE_WORDS.isdisjoint(_WORDS.findall(low)):
        return False
    kinds = (word for word in _WORDS.finditer(low) if word[0] in _TYPE_WORDS)
    return any(
        word[0] == "box" or _NUMBER.search(low, max(0, word.start() - _REACH), word.start()) for word in kinds
    )


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while end > start and text[end - 1] in " ,\n\t":
        end -= 1
    return start, end
