"""The reader of own tables: clear errors, no origin key anywhere, types widened only where no value changes."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.contract.validate import validate
from synth_platform.sources.read import read_cohort
from synth_platform.sources.tables import SourceError, read_tables

PATIENTS = ["MRN-77", "MRN-12", "MRN-50", "MRN-31"]


def make_spec(**changes: Any) -> CohortSpec:
    document: dict[str, Any] = {
        "name": "own",
        "kind": "omics",
        "title": "Own tables",
        "source_code": "LOCAL",
        "dua_tag": "RELEASE_REVIEWED",
        "privacy": {"domain": "own", "n_ref": 100, "budget": {"epsilon": 1.0, "delta": 1e-5}},
        "source": {
            "reader": "tables",
            "key_column": "mrn",
            "files": {"manifest": "manifest.csv", "expression": "expression.parquet", "clinical": "clinical.csv.gz"},
        },
        "batches": ["B-01", "B-02"],
        "expression": {"unit": "tpm", "annotation": "none", "panel": ["ENSG1", "ENSG2"]},
        "clinical": [
            {"name": "grade", "kind": "categorical", "categories": ["1", "2"]},
            {"name": "days", "kind": "survival_time", "minimum": 1, "maximum": 4000},
            {"name": "died", "kind": "event"},
            {"name": "marker", "kind": "continuous", "minimum": 0, "maximum": 9, "nullable": True},
        ],
        "outcome": {"label": "grade", "time": "days", "event": "died"},
        "endpoints": [
            {"name": "c_index", "chance": 0.5},
            {"name": "macro_f1", "chance": 0.5},
            {"name": "auroc", "chance": 0.5},
            {"name": "spearman", "chance": 0.0},
        ],
        "plans": {},
        "generators": ["S_PUBLIC"],
        "synthetic": {"rows": 4, "seeds": [1, 2, 3, 4, 5]},
    }
    return CohortSpec.model_validate(document | changes)


def with_source(spec: CohortSpec, **changes: Any) -> CohortSpec:
    return spec.model_copy(update={"source": spec.source.model_copy(update=changes)})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, PATIENTS)
    return tmp_path


def write(folder: Path, patients: list[str], order: tuple[int, ...] = (0, 1, 2, 3)) -> None:
    """Four patients as a steward might write them: text keys, 32-bit floats, whole-number classes, NA for missing."""
    manifest = [
        "mrn,batch_id,split",
        *(f"{patients[i]},B-0{1 + i % 2},{('public', 'public', 'train', 'test')[i]}" for i in order),
    ]
    clinical = [
        "mrn,grade,days,died,marker",
        *(f"{patients[i]},{1 + i % 2},{10 * i + 5},{i % 2},{('NA', '', '1.5', '2')[i]}" for i in order),
    ]
    (folder / "manifest.csv").write_text("\n".join(manifest))
    (folder / "clinical.csv.gz").write_bytes(gzip.compress("\n".join(clinical).encode()))
    pl.DataFrame(
        {"mrn": [patients[i] for i in order], "ENSG1": [0.5 * i for i in order], "ENSG2": [i * i for i in order]},
        schema={"mrn": pl.String, "ENSG1": pl.Float32, "ENSG2": pl.Int32},
    ).write_parquet(folder / "expression.parquet")


def test_own_tables_pass_the_contract(folder: Path) -> None:
    """Whole-number classes stay text, NA and empty cells are missing, numbers widen, the manifest is filled."""
    spec = make_spec()
    report = validate(read_cohort(spec, folder), spec)
    assert report.rejections == ()
    accepted = report.accepted
    assert accepted.manifest.height == 4
    assert accepted.clinical.sort("days")["grade"].to_list() == ["1", "2", "1", "2"]
    assert accepted.clinical.sort("days")["marker"].to_list() == [None, None, 1.5, 2.0]
    assert set(accepted.manifest["modality_mask"]) == {"expression,clinical"}
    together = accepted.expression.join(accepted.clinical, on="row_key").sort("days")
    assert together["ENSG1"].to_list() == [0.0, 0.5, 1.0, 1.5]


def test_no_origin_key_is_left_anywhere(folder: Path) -> None:
    tables = read_tables(make_spec(), folder)
    for _, table in tables:
        assert "mrn" not in table.columns
        assert "MRN" not in table.write_csv()


def test_tokens_do_not_depend_on_origin_keys_or_file_order(folder: Path, tmp_path_factory) -> None:
    other = tmp_path_factory.mktemp("other")
    write(other, ["9", "8", "7", "6"], order=(2, 0, 3, 1))
    for (_, one), (_, two) in zip(read_tables(make_spec(), folder), read_tables(make_spec(), other), strict=True):
        assert_frame_equal(one, two)


@pytest.mark.parametrize(
    "numbers",
    [
        ["MRN-556815", "MRN-104422", "MRN-990031", "MRN-000007"],
        ["P-000001", "P-000002", "P-000003", "P-000004"],
        ["KIS-20260101", "4711", "MRN-556815", "R-000001"],
    ],
)
def test_hospital_numbers_that_look_like_tokens_go_too(folder: Path, numbers: list[str]) -> None:
    """Catches a reader that goes by the look of a key. Patients get the same tokens whatever they were called."""
    usual = read_tables(make_spec(), folder)
    write(folder, numbers)
    for (_, renamed), (_, table) in zip(read_tables(make_spec(), folder), usual, strict=True):
        assert_frame_equal(renamed, table)
        assert not any(number in renamed.write_csv() for number in numbers if number.startswith(("MRN", "KIS", "47")))
    assert sorted(usual.manifest["row_key"]) == ["P-000001", "P-000002", "R-000001", "R-000002"]


def test_tokens_are_kept_where_the_registration_says_so(folder: Path) -> None:
    tokens = [f"AB-{n:06d}" for n in (7, 3, 9, 1)]
    write(folder, tokens)
    tables = read_tables(with_source(make_spec(), keys="opaque"), folder)
    assert tables.manifest["row_key"].to_list() == tokens


def test_keys_registered_as_tokens_must_be_tokens(folder: Path) -> None:
    write(folder, ["AB-000007", "AB-000003", "AB-000009", "MRN-1"])
    with pytest.raises(
        SourceError, match=r"source\.keys is 'opaque', but manifest\.csv has keys that are no"
    ) as caught:
        read_tables(with_source(make_spec(), keys="opaque"), folder)
    assert "MRN-1" not in str(caught.value)


def test_public_tokens_say_nothing_of_private_rows(folder: Path) -> None:
    """Claim: the public rows' tokens are the same with one private patient or with two."""
    public = read_tables(make_spec(), folder).manifest.filter(split="public")
    write(folder, PATIENTS, order=(0, 1, 2))
    fewer = read_tables(make_spec(), folder)
    assert fewer.manifest.height == 3
    assert_frame_equal(fewer.manifest.filter(split="public"), public)
    assert public["row_key"].str.starts_with("R-").all()


def test_a_patient_in_a_public_and_a_private_split_is_private(folder: Path) -> None:
    with (folder / "manifest.csv").open("a") as manifest:
        manifest.write(f"\n{PATIENTS[0]},B-01,train")
    tables = read_tables(make_spec(), folder)
    assert tables.manifest["row_key"].str.slice(0, 2).value_counts(sort=True).rows() == [("P-", 4), ("R-", 1)]


def test_a_patient_without_a_clinical_row_is_found_in_the_clinical_table(folder: Path) -> None:
    """Claim: the finding names the table that lacks the patient, not a mask that the steward never wrote."""
    text = gzip.decompress((folder / "clinical.csv.gz").read_bytes()).decode().splitlines()
    (folder / "clinical.csv.gz").write_bytes(gzip.compress("\n".join(text[:-1]).encode()))
    spec = make_spec()
    report = validate(read_tables(spec, folder), spec)
    assert [(r.code, r.table, r.column, r.count) for r in report.rejections] == [("KEY_SET", "clinical", "row_key", 1)]


def test_a_table_under_other_keys_is_named(folder: Path) -> None:
    frame = pl.read_parquet(folder / "expression.parquet")
    frame.with_columns(pl.Series("mrn", ["1", "2", "3", "4"])).write_parquet(folder / "expression.parquet")
    spec = make_spec()
    report = validate(read_tables(spec, folder), spec)
    assert [(r.code, r.table, r.count) for r in report.rejections] == [("KEY_SET", "expression", 4)]


def test_a_patient_with_two_rows_is_left_for_the_contract(folder: Path) -> None:
    write(folder, ["MRN-77", "MRN-77", "MRN-50", "MRN-31"])
    spec = make_spec()
    report = validate(read_tables(spec, folder), spec)
    assert {(r.code, r.count) for r in report.rejections} == {("DUPLICATE_UNIT", 2)}


def test_a_patient_without_expression_says_so_in_the_mask(folder: Path) -> None:
    pl.read_parquet(folder / "expression.parquet").head(3).write_parquet(folder / "expression.parquet")
    spec = make_spec()
    tables = read_tables(spec, folder)
    assert sorted(tables.manifest["modality_mask"]) == ["clinical", *["expression,clinical"] * 3]
    assert validate(tables, spec).rejections == ()


def test_a_wrong_type_is_left_for_the_contract(folder: Path) -> None:
    text = gzip.decompress((folder / "clinical.csv.gz").read_bytes()).decode().replace(",15,", ",soon,")
    (folder / "clinical.csv.gz").write_bytes(gzip.compress(text.encode()))
    spec = make_spec()
    report = validate(read_tables(spec, folder), spec)
    assert {(r.code, r.column) for r in report.rejections} == {("DTYPE", "days")}


def broken_parquet(folder: Path, spec: CohortSpec) -> CohortSpec:
    (folder / "expression.parquet").write_bytes(b"MRN-77 PAR")
    return spec


def broken_csv(folder: Path, spec: CohortSpec) -> CohortSpec:
    (folder / "manifest.csv").write_text("mrn,batch_id,split\nMRN-77,B-01\nMRN-12,B-01,train,more,MRN-50\n")
    return spec


def broken_gzip(folder: Path, spec: CohortSpec) -> CohortSpec:
    (folder / "clinical.csv.gz").write_bytes((folder / "clinical.csv.gz").read_bytes()[:40])
    return spec


def empty_file(folder: Path, spec: CohortSpec) -> CohortSpec:
    (folder / "manifest.csv").write_text("")
    return spec


def missing_file(folder: Path, spec: CohortSpec) -> CohortSpec:
    (folder / "expression.parquet").unlink()
    return spec


def other_format(folder: Path, spec: CohortSpec) -> CohortSpec:
    (folder / "clinical.xlsx").write_bytes(b"MRN-77")
    return with_source(spec, files=spec.source.files | {"clinical": "clinical.xlsx"})


def unnamed_table(_: Path, spec: CohortSpec) -> CohortSpec:
    return with_source(spec, files={k: v for k, v in spec.source.files.items() if k != "clinical"})


def unregistered_table(_: Path, spec: CohortSpec) -> CohortSpec:
    return with_source(spec, files=spec.source.files | {"methylation": "expression.parquet"})


def same_file_twice(_: Path, spec: CohortSpec) -> CohortSpec:
    return with_source(spec, files=spec.source.files | {"clinical": "manifest.csv"})


def no_key_column(_: Path, spec: CohortSpec) -> CohortSpec:
    return with_source(spec, key_column="patient")


def two_key_columns(folder: Path, spec: CohortSpec) -> CohortSpec:
    text = (folder / "manifest.csv").read_text().replace("batch_id", "row_key")
    (folder / "manifest.csv").write_text(text)
    return spec


def fractional_keys(folder: Path, spec: CohortSpec) -> CohortSpec:
    frame = pl.read_parquet(folder / "expression.parquet")
    frame.with_columns(pl.Series("mrn", [77.5, 12.5, 50.5, 31.5])).write_parquet(folder / "expression.parquet")
    return spec


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (broken_parquet, r"source\.files\.expression: expression\.parquet is not readable as Parquet"),
        (broken_csv, r"source\.files\.manifest: manifest\.csv is not readable as CSV"),
        (broken_gzip, r"source\.files\.clinical: clinical\.csv\.gz is not readable as CSV"),
        (empty_file, r"source\.files\.manifest: manifest\.csv is not readable as CSV"),
        (missing_file, r"source\.files\.expression: .*expression\.parquet does not exist"),
        (other_format, r"source\.files\.clinical: clinical\.xlsx is none of \.parquet, \.csv, \.csv\.gz"),
        (unnamed_table, r"source\.files\.clinical: no file is named"),
        (unregistered_table, r"source\.files\.methylation: the cohort has no section"),
        (same_file_twice, r"source\.files: one file is named for two tables"),
        (no_key_column, r"has no column 'patient'"),
        (two_key_columns, r"has both 'mrn' and 'row_key'"),
        (fractional_keys, r"key column 'mrn' holds Float64"),
    ],
)
def test_an_error_names_cohort_file_and_remedy_and_no_cell(folder: Path, damage, says: str) -> None:
    spec = damage(folder, make_spec())
    with pytest.raises(SourceError, match=says) as caught:
        read_tables(spec, folder)
    message = str(caught.value)
    assert "cohort 'own'" in message
    assert ";" in message  # what is wrong; what to do
    assert not any(key in message for key in (*PATIENTS, "77.5"))
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_batch_and_split_may_have_the_stewards_own_names(folder: Path) -> None:
    """The same cohort comes out whatever the two manifest columns are called; whole-number batches stay text."""
    usual = read_tables(make_spec(), folder)
    path = folder / "manifest.csv"
    path.write_text(path.read_text().replace("batch_id,split", "scanner,arm"))
    renamed = read_tables(with_source(make_spec(), batch_column="scanner", split_column="arm"), folder)
    assert_frame_equal(renamed.manifest, usual.manifest)
    with pytest.raises(SourceError, match=r"manifest\.csv has no column 'batch_id'; name it in source\.batch_column"):
        read_tables(make_spec(), folder)


def test_two_columns_for_one_role_are_refused(folder: Path) -> None:
    """Neither column silently wins."""
    path = folder / "manifest.csv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0] + ",arm", *(f"{line},train" for line in lines[1:])]))
    with pytest.raises(SourceError, match="has both 'arm' and 'split'; keep one of them"):
        read_tables(with_source(make_spec(), split_column="arm"), folder)
