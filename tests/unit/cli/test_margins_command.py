"""`synth margins` as somebody who has one file, or a folder of tables, and nothing else."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import Result
from typer.testing import CliRunner

from resources.home import SynthHome
from resources.ledger import home_ledger
from synth_platform.cli import margins_advice
from synth_platform.cli.main import app
from synth_platform.cli.margins_spec import slug, spec_of
from synth_platform.release.folder import verify_package

Synth = Callable[..., Result]
LEAST = 1_237  # people in the smallest cell of the toy census; goes out as 1,240
DECLARED = """
variables:
  sex: {categories: [f, m]}
  age: {bands: [0, 30, 60], top: 60}
  town: {categories: [A, B, C]}
"""


@pytest.fixture
def synth(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Synth:
    """`synth margins` with a home that nobody made yet."""
    for name in ("SYNTH_HOME", "DAGSTER_HOME", "SYNTH_DAGSTER_STORAGE"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)

    def invoke(*arguments: object) -> Result:
        result = CliRunner().invoke(app, ["margins", *map(str, arguments)])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert "Traceback" not in result.output
        return result

    return invoke


@pytest.fixture
def census(tmp_path: Path) -> Path:
    """12 cells of sex, age and town, each of another size."""
    cells = list(product("fm", (10, 70), "ABC"))
    rows = [cell for number, cell in enumerate(cells) for _ in range(LEAST if number == 0 else 40 + 7 * number)]
    file = tmp_path / "Census of 1901.csv"
    pl.DataFrame(rows, schema=["sex", "age", "town"], orient="row").write_csv(file)
    return file


@pytest.fixture
def sparse(tmp_path: Path) -> Path:
    """Nobody of town B is a miller: a zero that, kept, tells where all millers are."""
    rows = [("A", "miller")] * 60 + [("A", "farmer")] * 70 + [("B", "farmer")] * 80
    file = tmp_path / "sparse.csv"
    pl.DataFrame(rows, schema=["town", "trade"], orient="row").write_csv(file)
    return file


def test_one_file_and_one_command(synth: Synth, census: Path, tmp_path: Path) -> None:
    """Claim: without a home or a cohort folder: a package that verifies, whose counts are multiples of the limit, that
    holds no true count, and says that nothing is registered; figures of rows beside it, for their owner; progress on
    standard error and a summary on standard output."""
    result = synth(census, "--out", "out", "--rows", 300)
    assert result.exit_code == 0
    package = tmp_path / "out" / "released" / "census_of_1901-margins-sdc"
    verify_package(package)
    counts = [pl.read_csv(file)["count"] for file in sorted(package.glob("margin_*.csv"))]
    assert len(counts) == 3
    assert all((count % 10 == 0).all() and (count >= 10).all() for count in counts)
    told = "".join(file.read_text("utf-8") for file in package.iterdir() if file.suffix in (".json", ".md", ".csv"))
    assert str(LEAST) not in told
    assert "NOT_REGISTERED" in (package / "README.md").read_text("utf-8")
    table = pl.read_parquet(package / "table.parquet")
    assert table.schema == {"sex": pl.String, "age": pl.Int64, "town": pl.String}
    assert len(table) == 300
    restricted = tmp_path / "out" / "restricted"
    assert {file.name for file in restricted.iterdir()} == {
        "curation.json",
        "disclosure.json",
        "heat_map.png",
        "utility.json",
    }
    assert restricted.stat().st_mode & 0o077 == 0
    for words in ("ELIGIBLE_SDC", "not differential privacy", "out/released/census_of_1901-margins-sdc"):
        assert words in result.stdout
    assert "comparing with the rows" in result.stderr
    assert not (tmp_path / "home").exists()


def test_json_is_one_document(synth: Synth, census: Path, tmp_path: Path) -> None:
    """Claim: standard output is one document, and what it says of the decision is what the package's files say."""
    result = synth(census, "--out", "out", "--replicates", 3, "--rows", 200, "--limit", 5, "--seed", 7, "--json")
    document = json.loads(result.stdout)
    package = Path(document["released"])
    decision = json.loads((package / "decision.json").read_text("utf-8"))
    for key in ("decision", "reasons", "notes", "policy", "assurance", "options"):
        assert document[key] == decision[key]
    assert (document["options"]["limit"], document["options"]["seed"], document["rows"]) == (5, 7, 200)
    assert document["utility"]["status"] in ("good", "acceptable", "poor")
    assert decision["utility"] is None
    assert document["fit"]["largest_residual"] == decision["fit"]["largest_residual"]
    assert sorted(file.name for file in package.glob("*.parquet")) == [
        "table.parquet",
        "table_2.parquet",
        "table_3.parquet",
    ]


def test_released_margins_are_a_source_again(synth: Synth, census: Path, tmp_path: Path) -> None:
    """Claim: a package's own margins, read by --tables, give the same fit and the same table: a round trip."""
    first = json.loads(synth(census, "--out", "one", "--json").stdout)
    again = json.loads(synth("--tables", first["released"], "--out", "two", "--json").stdout)
    assert again["fit"]["largest_residual"] == first["fit"]["largest_residual"]
    assert again["utility"] == {"status": "NOT_ASSESSED"}
    tables = [(Path(document["released"]) / "table.csv").read_text("utf-8") for document in (first, again)]
    assert tables[0] == tables[1]


def test_tables_that_somebody_published(synth: Synth, census: Path, tmp_path: Path) -> None:
    """Claim: a folder of counts is enough; nothing is compared, since there are no rows."""
    folder = tmp_path / "tables"
    folder.mkdir()
    for names in combinations(("sex", "age", "town"), 2):
        counted = pl.read_csv(census).group_by(names).agg(pl.len().alias("count"))
        counted.write_csv(folder / f"{'_'.join(names)}.csv")
    result = synth("--tables", folder, "--out", "out")
    assert result.exit_code == 0
    assert "not assessed" in result.stdout
    assert [file.name for file in (tmp_path / "out" / "restricted").iterdir()] == ["disclosure.json"]


def test_a_failed_gate_releases_nothing_and_says_what_passes(synth: Synth, sparse: Path, tmp_path: Path) -> None:
    """Claim: kept zeros disclose attributes here: exit code 1, nothing to release, the audit's reason in words, and the
    option that passes, which then does."""
    result = synth(sparse, "--zeros", "kept", "--out", "out")
    assert result.exit_code == 1
    assert "DISCLOSURE_FAIL" in result.stdout
    assert "all people of a group are known to be in one category" in result.stdout
    assert "the margins pass with --zeros lifted" in result.stdout
    assert not (tmp_path / "out" / "released").exists()
    assert (tmp_path / "out" / "restricted" / "disclosure.json").exists()
    assert synth(sparse, "--zeros", "lifted", "--out", "again").exit_code == 0


def test_the_same_again_is_the_same(synth: Synth, census: Path, tmp_path: Path) -> None:
    """Claim: all randomness is the seed's: equal checksums for one seed, another table for another."""
    sums = []
    for number, seed in enumerate((1, 1, 2)):
        document = json.loads(synth(census, "--out", f"o{number}", "--rows", 90, "--seed", seed, "--json").stdout)
        sums.append((Path(document["released"]) / "table.csv").read_text("utf-8"))
    assert sums[0] == sums[1]
    assert sums[0] != sums[2]


def test_noise_is_paid_for_once(synth: Synth, census: Path, tmp_path: Path) -> None:
    """Claim: a new domain is capped at what this ε costs; the same again, in another folder, charges nothing and gives
    the same table; a different question is refused with the way to a larger cap, and writes nothing."""
    terms = (census, "--dp-epsilon", 1, "--people", 2000, "--domain", "toy", "--json")
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(DECLARED, "utf-8")
    first = synth(*terms, "--recipe", recipe, "--out", "one")
    document = json.loads(first.stdout)
    assert (document["decision"], document["assurance"], document["epsilon"]) == ("ELIGIBLE_FORMAL", "DP", 1.0)
    assert len(document["entries"]) == 1
    again = json.loads(synth(*terms, "--recipe", recipe, "--out", "two").stdout)
    assert again["entries"] == document["entries"]
    tables = [(Path(one["released"]) / "table.csv").read_text("utf-8") for one in (document, again)]
    assert tables[0] == tables[1]
    assert json.loads((Path(document["released"]) / "ledger.json").read_text("utf-8"))["domain"] == "toy"
    changed = tmp_path / "other.yaml"
    changed.write_text(DECLARED.replace("[0, 30, 60]", "[0, 20, 60]"), "utf-8")
    refused = synth(*terms, "--recipe", changed, "--out", "three")
    assert refused.exit_code == 2
    assert "BUDGET_EXCEEDED" in refused.stderr
    assert "synth ledger cap" in refused.stderr
    elsewhere = synth(*terms[:-3], "--domain", "other", "--recipe", recipe, "--out", "three")
    assert elsewhere.exit_code == 2
    assert "say --domain toy" in elsewhere.stderr
    assert home_ledger(SynthHome(tmp_path / "home")).domains() == ("toy",)
    assert not (tmp_path / "three").exists()


def test_noise_needs_declared_categories(synth: Synth, census: Path, tmp_path: Path) -> None:
    """Claim: categories seen in rows are not hidden by noise: refused by the variable's name, before a cap is set."""
    terms = ("--dp-epsilon", 1, "--people", 2000, "--out", "out")
    bare = synth(census, *terms)
    assert bare.exit_code == 2
    assert "declares no variable" in bare.stderr
    recipe = tmp_path / "r.yaml"
    recipe.write_text("variables: {sex: {categories: [f, m]}}\ndrop: [age]\n", "utf-8")
    partly = synth(census, *terms, "--recipe", recipe)
    assert partly.exit_code == 2
    assert "town" in partly.stderr
    ledger = home_ledger(SynthHome(tmp_path / "home"))
    assert ledger.domains() == ()


BAD = {
    "no source": ([], "give FILE (microdata) or --tables FOLDER"),
    "two sources": (["FILE", "--tables", "."], "one of them"),
    "no file": (["nothere.csv"], "nothere.csv does not exist"),
    "another format": (["FILE.txt"], "is none of .parquet, .csv, .csv.gz"),
    "a folder as file": (["."], "is a folder; of published tables say --tables"),
    "totals of rows": (["FILE", "--totals", "differ"], "--totals: microdata have one total"),
    "people without noise": (["FILE", "--people", "100"], "--people: it belongs to --dp-epsilon"),
    "noise without people": (["FILE", "--dp-epsilon", "1"], "--people: with --dp-epsilon give the number"),
    "noise on tables": (["--tables", ".", "--dp-epsilon", "1"], "noise is added to counts of rows"),
    "noise and coarsening": (["FILE", "--dp-epsilon", "1", "--limit", "5"], "--limit: --dp-epsilon adds noise"),
    "no noise": (["FILE", "--dp-epsilon", "0", "--people", "100"], "--dp-epsilon 0: it has to be above 0"),
    "bad domain": (["FILE", "--dp-epsilon", "1", "--people", "9", "--domain", "A b"], "privacy.domain"),
    "a limit of one": (["FILE", "--limit", "1"], "--limit"),
    "unknown variant": (["FILE", "--variant", "blurred"], "'blurred' is not one of"),
    "no recipe": (["FILE", "--recipe", "nothere.yaml"], "nothere.yaml: no such file"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_options(synth: Synth, census: Path, tmp_path: Path, case: str) -> None:
    """Claim: exit code 2, the option or the file by name, what to do; nothing is written."""
    arguments, message = BAD[case]
    given = [str(census) if each == "FILE" else each for each in arguments]
    result = synth(*given, "--out", "out")
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.replace("│", "").split())
    assert not (tmp_path / "out").exists()


FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is not readable as CSV"),
    "header alone": (b"sex,age\n", "has no rows"),
    "binary": (bytes(range(256)) * 4, "is not readable as CSV"),
    "one column twice": (b"sex,sex\nf,m\n", "'sex' twice"),
    "missing value": (b"sex,age\nf,1\nm,\n", "column 'age' has missing values"),
    "count as a variable": (b"sex,Count\nf,1\nm,2\n", "a variable is called Count, as the counts of released margins"),
    "other separators": (b"a;b\nx;y\n", "has one column, 'a;b'"),
    "identifier": (b"id\n" + b"".join(b"SECRET%d\n" % n for n in range(200)), "column 'id' looks like an identifier"),
}


@pytest.mark.parametrize("case", FILES)
def test_bad_files(synth: Synth, tmp_path: Path, case: str) -> None:
    """Claim: the file and the column by name, what to do, no cell."""
    content, message = FILES[case]
    file = tmp_path / "bad.csv"
    file.write_bytes(content)
    result = synth(file, "--out", "out")
    assert result.exit_code == 2
    assert "bad.csv" in result.stderr
    assert message in result.stderr
    assert "SECRET" not in result.output
    assert not (tmp_path / "out").exists()


TABLES = {
    "negative": ("sex,count\nf,-3\n", [], "t.csv, line 2: the count is '-3'"),
    "totals": ("sex,count\nf,30\n", ["age,count\n1,40\n"], "--totals differ at the command"),
    "no counts": ("sex,age\nf,1\n", [], "one column named count is due"),
}


@pytest.mark.parametrize("case", TABLES)
def test_bad_tables(synth: Synth, tmp_path: Path, case: str) -> None:
    first, others, message = TABLES[case]
    folder = tmp_path / "tables"
    folder.mkdir()
    for number, content in enumerate([first, *others]):
        (folder / ("t.csv" if number == 0 else f"u{number}.csv")).write_text(content, "utf-8")
    result = synth("--tables", folder, "--out", "out")
    assert result.exit_code == 2
    assert message in result.stderr


def test_one_variable_is_a_census_too(synth: Synth, tmp_path: Path) -> None:
    """Claim: its own margin is fitted and released; there are no pairs to draw a picture of."""
    file = tmp_path / "one.csv"
    file.write_text("sex\n" + "f\nm\n" * 40, "utf-8")
    result = synth(file, "--out", "out")
    assert result.exit_code == 0
    assert "1 margin of 1 variable " in result.stderr
    assert not (tmp_path / "out" / "restricted" / "heat_map.png").exists()
    assert (tmp_path / "out" / "released" / "one-margins-sdc" / "margin_01_sex.csv").exists()


@pytest.mark.parametrize(
    ("options", "passes", "told"),
    [
        ({"limit": 3}, lambda plan, recipe: plan.limit >= 10, ["the margins pass with --limit 10"]),
        (
            {},
            lambda plan, recipe: recipe.combine_below == 50,
            ["the margins pass with `combine_below: 50` in the recipe"],
        ),
        (
            {"variant": "controlled", "zeros": "kept"},
            lambda plan, recipe: plan.variant == "coarsened" and plan.zeros == "lifted",
            ["the margins pass with --variant coarsened --zeros lifted"],
        ),
        (
            {"zeros": "kept"},
            lambda plan, recipe: False,
            [
                "they do not pass with --zeros lifted, `combine_below: 20` in the recipe, `combine_below: 50` in the "
                "recipe, `combine_below: 100` in the recipe either",
                "band, group or drop variables with rare categories in the recipe, above all of sex × age",
            ],
        ),
    ],
)
def test_advice_is_what_was_tried(
    monkeypatch: pytest.MonkeyPatch, census: Path, options: dict[str, Any], passes: Callable[..., bool], told: list[str]
) -> None:
    """Claim: the first change that passes is told and no other; where none does, those that were tried, and the tables
    that fail."""

    def disclosed(spec: Any, plan: Any, _: object) -> tuple[None, dict[str, str]]:
        return None, {"status": "PASS" if passes(plan, spec.recipe) else "FAIL"}

    monkeypatch.setattr(margins_advice, "disclosed", disclosed)
    spec = spec_of(census, totals=None, recipe=None, plan={"policy": "sdc", **options}, privacy=None)
    found = {"recoverable": 1, "groups_disclosed": 0, "zeros_inferred": 0}
    audit = {"tables": [{"title": "sex × age", **found}, {"title": "age × town", **found, "recoverable": 0}]}
    assert margins_advice.advice(spec, "sdc", census.parent, audit) == told


def test_results_of_two_runs_do_not_mix(synth: Synth, census: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("x", "utf-8")
    result = synth(census, "--out", "out")
    assert result.exit_code == 2
    assert "is there already and not empty" in result.stderr
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["mine.txt"]


def test_a_folder_that_cannot_be_made_is_told_before_the_work(synth: Synth, census: Path) -> None:
    result = synth(census, "--out", census / "out")
    assert result.exit_code == 2
    assert "cannot be made" in result.stderr
    assert "reading" not in result.stderr


def test_an_altered_package_is_no_source(synth: Synth, census: Path, tmp_path: Path) -> None:
    """Claim: margins of a package are read only as they were released."""
    package = Path(json.loads(synth(census, "--out", "out", "--rows", 50, "--json").stdout)["released"])
    (package / "margin_01_sex_age.csv").write_text("sex,age,count\nf,10,9000\n", "utf-8")
    result = synth("--tables", package, "--out", "two")
    assert result.exit_code == 2
    assert "FILE_ALTERED: margin_01_sex_age.csv" in result.stderr


@pytest.mark.parametrize(
    ("text", "name"),
    [("Census of 1901", "census_of_1901"), ("1901", "census_1901"), ("인구", "census"), ("__A-b!", "a_b")],
)
def test_names_of_files_become_names(text: str, name: str) -> None:
    assert slug(text) == name


def test_compressed_files_have_the_same_name(synth: Synth, census: Path, tmp_path: Path) -> None:
    file = tmp_path / "zipped.csv.gz"
    file.write_bytes(gzip.compress(census.read_bytes()))
    document: dict[str, Any] = json.loads(synth(file, "--out", "out", "--rows", 50, "--json").stdout)
    assert document["name"] == "zipped"
    assert np.isfinite(document["fit"]["total"])


def test_lifted_counts_that_outweigh_people_are_told_before_the_fit(synth: Synth, tmp_path: Path) -> None:
    """Claim: 10 × 9 combinations at 10 people each are 900 of 400: the margin and the wider variable are named, on
    standard error before the fit and in the document; not for a table whose combinations are full."""
    rows = [(number % 10, number * 7 % 9, number % 2) for number in range(400)]
    file = tmp_path / "wide.csv"
    pl.DataFrame(rows, schema=["place", "job", "sex"], orient="row").write_csv(file)
    result = synth(file, "--out", "out", "--json")
    assert "place × job counts" in json.loads(result.stdout)["advice"][0]
    assert "drop place" in json.loads(result.stdout)["advice"][0]
    assert result.stderr.index("warning: place × job") < result.stderr.index("fitting")


def test_too_many_categories_are_refused_with_a_recipe_that_works(synth: Synth, tmp_path: Path) -> None:
    """Claim: 120 × 30 combinations at 10 people each are 36,000 of 12,000: refused before the audit, nothing written;
    the two lines of recipe that the message shows then go all the way."""
    rows = [(number * 7 % 120, number % 30, number % 2) for number in range(12_000)]
    file, recipe = tmp_path / "wide.csv", tmp_path / "recipe.yaml"
    pl.DataFrame(rows, schema=["place", "job", "sex"], orient="row").write_csv(file)
    refused = synth(file, "--out", "out")
    assert refused.exit_code == 2
    assert "synth: place: too many categories" in refused.stderr
    assert not (tmp_path / "out").exists()
    lines = [line.strip() for line in refused.stderr.splitlines() if line.startswith("    ")]
    recipe.write_text("\n".join(lines[:2]), "utf-8")
    document = json.loads(synth(file, "--recipe", recipe, "--rows", 300, "--out", "out", "--json").stdout)
    assert (document["decision"], document["margins"]) == ("ELIGIBLE_SDC", 1)
