"""Forbidden names are found as words at any depth, and words that merely contain one are left alone."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_platform.contract.names import FORBIDDEN_TERMS, forbidden_content, forbidden_term

# The list of 8-1 §1.1, copied by hand.
DOCUMENT = (
    "name|mrn|ssn|rrn|birth|dob|address|phone|email|zip|postcode|barcode|uuid|subject_id|hadm_id|stay_id|patient_id|"
    "case_id|date|note|text"
)
LISTED = DOCUMENT.split("|")

REFUSED = {
    "patient_id": "patient_id",
    "patientId": "patient_id",
    "patientIDs": "patient_id",
    "PATIENTID": "patient_id",
    "Patient ID": "patient_id",
    "bcr_patient_barcode": "barcode",
    "case-id": "case_id",
    "hadmid": "hadm_id",
    "SubjectID": "subject_id",
    "stay.id": "stay_id",
    "dateOfBirth": "date",
    "dateofbirth": "date",
    "birth_date": "birth",
    "birthday": "birth",
    "BirthYear": "birth",
    "DOB": "dob",
    "dob_1": "dob",
    "zip_code": "zip",
    "ZIPCode": "zip",
    "zipcode": "zip",
    "postal_code": "postcode",
    "post_code": "postcode",
    "bar_code": "barcode",
    "e-mail": "email",
    "emails": "email",
    "home_address2": "address",
    "addresses": "address",
    "telephone": "phone",
    "cellphone": "phone",
    "last_name": "name",
    "lastname": "name",
    "surname": "name",
    "file_name": "name",
    "notes": "note",
    "clinical_notes": "note",
    "casenotes": "note",
    "freetext": "text",
    "free_text": "text",
    "admissionDate": "date",
    "datetime": "date",
    "dates": "date",
    "demographics/mrn": "mrn",
    "ｎａｍｅ": "name",  # full-width letters
    "sample_uuid": "uuid",
    "birth_weight": "birth",
}
WORDS = """
nodes node lymph_nodes textured texture context contextual update updated candidate candidates mandate mandatory
annotation annotations notable denoted keynote notebook filename rename enamel ornament filenames renamed tournament
zipper zipped phonation microphone headphones symphony patient case stay subject identity caseload uuidless
barcoded_not casein_id_level dobutamine emailed addressed rebirthed stillborn consolidated sedated antedated
subjective_id patients_identified idcase dated age sex stage survival_days died marker batch_id row_key split dua_tag
modality_mask source sample_type
"""
ALLOWED = WORDS.split()


def test_the_list_is_the_one_of_the_document() -> None:
    assert list(FORBIDDEN_TERMS) == LISTED


@pytest.mark.parametrize("term", LISTED)
def test_every_listed_term_in_every_spelling(term: str) -> None:
    camel = "".join(part.capitalize() for part in term.split("_"))
    for name in (term, term.upper(), term + "s", f"x_{term}", f"{term}_7", f"a.{term}", camel, "the" + camel):
        assert forbidden_term(name) == term, name
    glued = term.replace("_", "")
    assert forbidden_term(glued) == term


@pytest.mark.parametrize(("name", "term"), REFUSED.items())
def test_refused(name: str, term: str) -> None:
    assert forbidden_term(name) == term


@pytest.mark.parametrize("name", ALLOWED)
def test_not_refused(name: str) -> None:
    """Catches matching on letters instead of words."""
    assert forbidden_term(name) is None


@settings(deadline=None, max_examples=200)
@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz_-. ABC019", max_size=24), st.sampled_from(LISTED))
def test_a_word_of_its_own_is_always_found(rest: str, term: str) -> None:
    assert forbidden_term(f"{rest}_{term}") is not None
    assert forbidden_term(f"{term}.{rest}") is not None


def wrap(dtype: pl.DataType, depth: int) -> pl.DataType:
    wrappers = (pl.List, lambda t: pl.Struct({"level": t}), lambda t: pl.Array(t, 2))
    for level in range(depth):
        dtype = wrappers[level % 3](dtype)
    return dtype


@pytest.mark.parametrize("depth", range(7))
def test_nested_fields_count_at_any_depth(depth: int) -> None:
    assert forbidden_content(wrap(pl.Struct({"value": pl.Float64, "zipCode": pl.String}), depth)) == "zip"
    assert forbidden_content(wrap(pl.Struct({"value": pl.Float64, "nodes": pl.String}), depth)) is None


@pytest.mark.parametrize("dtype", [pl.Date(), pl.Datetime("us"), pl.Datetime("ms", "UTC"), pl.Time()])
@pytest.mark.parametrize("depth", range(4))
def test_points_in_time_are_dates_whatever_their_name(dtype: pl.DataType, depth: int) -> None:
    assert forbidden_content(wrap(dtype, depth)) == "date"


def test_a_span_of_time_is_no_date() -> None:
    assert forbidden_content(pl.Duration("ms")) is None
