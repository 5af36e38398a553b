"""Forbidden field names (8-1 §1.1), recognised word by word at any depth.

A name is cut into words at every character that is not a letter and at every lower-to-upper change of case, and a
run-together word is cut again where it consists of known words alone. A name is forbidden when its words hold a
forbidden term, singular or plural:

- refused: `patient_id`, `subjectId`, `dateOfBirth`, `birthdate`, `ZIP_code`, `zipcode`, `notes`, `free-text`,
  `address2`, `demographics.dob`, `e_mail`, `PATIENTID`, and by the same rule `file_name`, `birth_weight`,
  `gene_name`: a term that stands as a word of its own is refused whatever it means there; register the variable under
  another name;
- not refused: `nodes`, `textured`, `update`, `candidate`, `annotation`, `filename`, `context`, `zipper`, `denoted`,
  `phonation`: the letters are there, the word is not, and what is left over is no known word.

Nested fields count: a struct or list column is searched through all its fields. Only column names that the cohort has
registered as features of a matrix are exempt, because they are compared with the frozen panel letter by letter; else
the gene HLA-DOB would be a date of birth. Names in other languages need no list: an unregistered column is refused in
any case (`UNKNOWN_FIELD`, `FEATURE_SET`), the forbidden terms say why and close the registered tables' depths.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from polars._typing import PolarsDataType

FORBIDDEN_TERMS = (
    *("name", "mrn", "ssn", "rrn", "birth", "dob", "address", "phone", "email", "zip", "postcode", "barcode", "uuid"),
    *("subject_id", "hadm_id", "stay_id", "patient_id", "case_id", "date", "note", "text"),
)
_SPELLINGS = {"e_mail": "email", "post_code": "postcode", "postal_code": "postcode", "bar_code": "barcode"}
_TERMS = {tuple(term.split("_")): term for term in FORBIDDEN_TERMS} | {
    tuple(spelling.split("_")): term for spelling, term in _SPELLINGS.items()
}
# Words that are written together with a forbidden one; a run-together name must consist of these and forbidden terms.
_COMPANIONS = (
    *(
        "id",
        "code",
        "number",
        "no",
        "of",
        "first",
        "last",
        "middle",
        "maiden",
        "given",
        "family",
        "full",
        "sur",
        "nick",
    ),
    *("user", "patient", "subject", "case", "stay", "hadm", "person", "mother", "father", "doctor", "hospital", "free"),
    *("clinical", "home", "work", "mail", "tele", "mobile", "cell", "post", "postal", "bar", "street", "city", "place"),
    *("day", "time", "year", "month", "stamp", "admission", "discharge", "death", "visit", "sample", "diagnosis"),
)
_VOCABULARY = {
    form: word
    for word in (*_COMPANIONS, *(word for term in _TERMS for word in term if len(word) > 1))
    for form in (word, word + "s", word + "es")
}
_LONGEST = max(map(len, _VOCABULARY))


def words(name: str) -> tuple[str, ...]:
    """The words of a field name, lower case, known plurals in the singular."""
    folded = unicodedata.normalize("NFKC", name)
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", folded)
    return tuple(word for part in parts for word in _cut(part.lower()) or (part.lower(),))


def forbidden_term(name: str) -> str | None:
    """The forbidden term that a field name holds, as written in `FORBIDDEN_TERMS`, or None."""
    # The second reading mends names that case cuts badly, such as patientIDs.
    for reading in (words(name), words(name.lower())):
        for start in range(len(reading)):
            for length in (2, 1):
                term = _TERMS.get(reading[start : start + length])
                if term is not None:
                    return term
    return None


def forbidden_content(dtype: pl.DataType) -> str | None:
    """Why a column of this type is forbidden: the term in a nested field's name, "date" for points in time, or None.

    Time is accepted only as a number relative to a reference day (8-1 §1.1).
    """
    for name, inner in _fields(dtype):
        term = forbidden_term(name) if name else None
        if term is not None:
            return term
        if isinstance(inner, pl.Date | pl.Datetime | pl.Time):
            return "date"
    return None


def _fields(dtype: pl.DataType, name: str = "") -> Iterator[tuple[str, pl.DataType]]:
    yield name, dtype
    if isinstance(dtype, pl.Struct):
        for field in dtype.fields:
            yield from _fields(_instance(field.dtype), field.name)
    elif isinstance(dtype, pl.List | pl.Array):
        yield from _fields(_instance(dtype.inner))


def _instance(dtype: PolarsDataType) -> pl.DataType:
    return dtype() if isinstance(dtype, type) else dtype


@lru_cache(maxsize=4096)
def _cut(part: str) -> tuple[str, ...]:
    """`part` as known words without a remainder, longest first; empty if there is no such cut."""
    if part in _VOCABULARY:
        return (_VOCABULARY[part],)
    for end in range(min(len(part) - 1, _LONGEST), 1, -1):
        rest = _cut(part[end:]) if part[:end] in _VOCABULARY else ()
        if rest:
            return (_VOCABULARY[part[:end]], *rest)
    return ()
