"""Published tables: what a folder says is what a margin holds, sets come back as they went, errors name the place."""

import gzip
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_platform.margins.coarsen import coarsen
from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.margin import Margin, MarginSet
from synth_platform.margins.reading.domain_file import natural_order, read_domain
from synth_platform.margins.reading.published import read_tables, write_tables
from synth_platform.margins.rows import Rows, count_margins
from synth_platform.margins.structural_zeros import StructuralZero

CENSUS = Path(__file__).resolve().parents[4] / "shared" / "data" / "census" / "adult.csv.gz"
AGE_SEX = "age,sex,count\n16-64,m,4\n0-15,f,3\n65+,m,2\n0-15,m,1\n"
ROOMS = "rooms,sex,N\n10,f,3\n2,m,6\n-1,m,1\n"
DOMAIN_YAML = "sex: [f, m]\nage: [65+, 16-64, 0-15]\n"


@pytest.fixture
def folder(tmp_path):
    def of(**files):
        for name, content in files.items():
            path = tmp_path / name.replace("__", ".")
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return tmp_path

    return of


def test_a_table_is_laid_out_by_hand(folder):
    margins = read_tables(folder(b__csv=ROOMS, a__csv=AGE_SEX, README__md="from the office"))
    assert margins.domain == Domain(
        (
            Variable("age", ("0-15", "16-64", "65+")),
            Variable("sex", ("f", "m")),
            Variable("rooms", ("-1", "2", "10"), "integer"),
        )
    )
    first, second = margins
    assert first.names == ("age", "sex")
    assert first.counts.tolist() == [[3, 1], [0, 4], [0, 2]]
    assert first.provenance == ("published table a.csv",)
    assert second.names == ("rooms", "sex")
    assert second.counts.tolist() == [[0, 1], [0, 6], [3, 0]]


def test_every_format_says_the_same(folder, tmp_path):
    expected = read_tables(folder(a__csv=ROOMS)).margins[0].counts
    (tmp_path / "a.csv").unlink()
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(("\ufeff" + ROOMS.replace("\n", "\r\n") + "\n").encode()))
    assert (read_tables(tmp_path).margins[0].counts == expected).all()
    (tmp_path / "a.csv.gz").unlink()
    typed = pl.DataFrame({"rooms": [10, 2, -1], "Count": [3, 6, 1], "sex": ["f", "m", "m"]})
    typed.with_columns(pl.col("sex").cast(pl.Categorical)).write_parquet(tmp_path / "a.parquet")
    assert (read_tables(tmp_path).margins[0].counts == expected).all()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("domain__yaml", "sex: [m, f, x]\nrooms: {categories: [no, 2, -1, 10], kind: text, missing: no}\n"),
        (
            "domain__json",
            '{"sex": ["m","f","x"],\n\t"rooms": {"categories":["no",2,-1,10],"kind":"text","missing":"no"}}',
        ),
    ],
)
def test_a_stated_domain_orders_and_adds_categories(folder, name, text):
    margins = read_tables(folder(**{"a__csv": ROOMS, name: text}))
    assert margins.domain.names == ("sex", "rooms")
    assert margins.domain.variables[1] == Variable("rooms", ("no", "2", "-1", "10"), "text", "no")
    assert margins.margins[0].counts.tolist() == [[0, 0, 0], [6, 0, 0], [1, 0, 0], [0, 3, 0]]


def test_yaml_words_stay_words(folder):
    domain = read_domain(folder(domain__yaml="own: [no, yes, null, 1.0]\nmonth: [1, 2]\ncode: [01, 02]\n"))
    assert domain == Domain(
        (
            Variable("own", ("no", "yes", "null", "1.0")),
            Variable("month", ("1", "2"), "integer"),
            Variable("code", ("01", "02")),
        )
    )


def test_natural_order():
    assert natural_order(["10", "9", "-1", "0"]) == ["-1", "0", "9", "10"]
    assert natural_order(["100+", "16-64", "5-15", "0-4", "?"]) == ["0-4", "5-15", "16-64", "100+", "?"]
    assert natural_order(["grade 10", "grade 9", "grade 9b"]) == ["grade 9", "grade 9b", "grade 10"]


def test_totals_may_differ_only_when_asked(folder):
    files = {"a__csv": "sex,count\nf,10\nm,10\n", "b__csv": "age,count\nold,0\nyoung,30\n"}
    with pytest.raises(
        ValueError, match=r"different totals \(a\.csv: 20; b\.csv: 30\).*totals: differ in census\.yaml"
    ):
        read_tables(folder(**files))
    first, second = read_tables(folder(**files), totals="differ")
    assert first.counts.tolist() == [10, 10]
    assert second.counts.tolist() == [0, 30]
    assert second.provenance == ("published table b.csv",)


def test_decimal_counts_with_one_total_pass(folder):
    read_tables(folder(a__csv="sex,count\nf,.1\nm,.2\n", b__csv="age,count\nold,.3\n"))


def test_structural_zeros_come_from_the_caller(folder):
    files = {"a__csv": AGE_SEX}
    child = StructuralZero.of({"age": ["0-15"], "sex": ["m"]})
    with pytest.raises(ValueError, match="margin age × sex: people in a cell that is declared a structural zero"):
        read_tables(folder(**files), (child,))
    old = StructuralZero.of({"age": ["65+"], "sex": ["f"]})
    assert read_tables(folder(**files), (old,)).zeros == (old,)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("structural_zeros__yaml", "- {age: [65+], sex: [f]}\n- {rooms: [-1], sex: [f]}\n"),
        ("structural_zeros__json", '[{"age": ["65+"], "sex": ["f"]}, {"rooms": [-1], "sex": ["f"]}]'),
    ],
)
def test_structural_zeros_are_stated_beside_the_tables(folder, name, text):
    old, none = StructuralZero.of({"age": ["65+"], "sex": ["f"]}), StructuralZero.of({"rooms": ["-1"], "sex": ["f"]})
    files = {"a__csv": AGE_SEX, "b__csv": ROOMS, name: text}
    assert read_tables(folder(**files)).zeros == (old, none)
    young = StructuralZero.of({"age": ["16-64"], "sex": ["f"]})
    assert read_tables(folder(**files), (none, young)).zeros == (old, none, young)


def assert_comes_back(margins, folder):
    write_tables(margins, folder)
    back = read_tables(folder)
    assert back.domain == margins.domain
    assert back.zeros == margins.zeros
    for before, after in zip(margins, back, strict=True):
        assert before.names == after.names
        assert (before.counts == after.counts).all()
        assert after.provenance[:-1] == before.provenance
        assert re.fullmatch(r"published table [0-9]{2}_.*\.csv", after.provenance[-1], re.DOTALL)


@st.composite
def any_margins(draw):
    label = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=6)
    name = st.text(st.characters(codec="utf-8", exclude_characters="\r"), min_size=1, max_size=6)
    names = draw(st.lists(name.filter(lambda n: n.casefold() != "count"), min_size=2, max_size=3, unique=True))
    integers = st.integers(-(10**17), 10**17).map(str)
    variables = []
    for each in names:
        kind = draw(st.sampled_from(("text", "integer")))
        labels = draw(st.lists(integers if kind == "integer" else label, min_size=1, max_size=4, unique=True))
        missing = draw(st.sampled_from((None, labels[0])))
        variables.append(Variable(each, tuple(labels), kind, missing))
    domain = Domain(tuple(variables))
    margins = []
    for pair in ((names[0], names[1]), *((each, names[0]) for each in names[2:])):
        shape = domain.project(pair).shape
        size = int(np.prod(shape))
        counts = draw(st.lists(st.sampled_from((0.0, 0.0, 1.0, 7.0, 0.1, 1e-7)), min_size=size, max_size=size))
        counts = np.array(counts)
        counts[-1] += 1000 - counts.sum()
        margins.append(Margin(pair, counts.reshape(shape), ("census.csv", draw(label))))
    impossible = [
        StructuralZero.of(
            {n: [of.categories[at]] for n, of, at in zip(m.names, domain.project(m.names).variables, cell, strict=True)}
        )
        for m in margins
        for cell in np.argwhere(m.counts == 0).tolist()
    ]
    return MarginSet(domain, tuple(margins), tuple(draw(st.permutations(impossible)))[:2])


@settings(max_examples=25, deadline=None)
@given(any_margins())
def test_any_set_comes_back_as_it_went(tmp_path_factory, margins):
    assert_comes_back(margins, tmp_path_factory.mktemp("tables") / "out")


@pytest.mark.skipif(not CENSUS.exists(), reason="the Adult census excerpt is not there")
def test_coarsened_census_tables_come_back(tmp_path):
    frame = pl.read_csv(CENSUS, infer_schema=False, columns=["age", "education-num", "native-country", "sex"])
    variables = tuple(
        Variable(c.name, tuple(natural_order(c.unique())), "integer" if c.name == "age" else "text") for c in frame
    )
    codes = np.column_stack(
        [frame[v.name].replace_strict(v.categories, range(len(v)), return_dtype=pl.Int64) for v in variables]
    )
    names = [("age", "sex"), ("native-country", "education-num"), ("sex", "native-country", "education-num")]
    margins = count_margins(Rows(Domain(variables), codes), names, "microdata adult.csv.gz")
    assert_comes_back(coarsen(margins, 3), tmp_path / "out")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "there are no tables; put one file"),
        ({"a__csv": ""}, "a.csv is empty or not readable as CSV"),
        ({"a__csv": b"sex,count\n\xe9,2\n"}, "a.csv is empty or not readable as CSV"),
        ({"a__csv": "sex,count\nf,2,3\n"}, "a.csv is empty or not readable as CSV"),
        ({"a__parquet": "sex,count\nf,2\n"}, "a.parquet is empty or not readable as Parquet"),
        ({"a__csv__gz": gzip.compress(AGE_SEX.encode())[:-20]}, "a.csv.gz is empty or not readable as CSV"),
        ({"a__csv": AGE_SEX, "b__xlsx": "x"}, "b.xlsx is none of .csv, .csv.gz, .parquet"),
        ({"a__csv": "sex,count\n"}, "a.csv: there is no line below the header"),
        ({"a__csv": "sex,age\nf,2\n"}, "a.csv: one column named count is due, among sex, age"),
        (
            {"a__csv": "sex;count\nf;2\n"},
            "a.csv: one column named count is due, among sex;count; CSV is split at commas",
        ),
        ({"a__csv": "sex,count,Count\nf,2,2\n"}, "a.csv: one column named count is due"),
        ({"a__csv": "sex,sex,count\nf,f,2\n"}, "a.csv: column sex is there twice"),
        ({"a__csv": "sex,,count\nf,f,2\n"}, "a.csv: column 2 has no name"),
        ({"a__csv": "count\n2\n"}, "a.csv: there is nothing but counts"),
        ({"a__csv": "sex,count\nf,2\nm,-1\n"}, "a.csv, line 3: the count is '-1'; a plain number from 0 on"),
        ({"a__csv": "sex,count\nf,2\nm,\n"}, "a.csv, line 3: the count is missing"),
        ({"a__csv": 'sex,count\n\nf,"1,234"\nm,*\n'}, "a.csv, line 3: the count is '1,234'.*2 such lines"),
        ({"a__csv": "sex,count\nf,inf\n"}, "a.csv, line 2: the count is 'inf'"),
        ({"a__csv": "sex,count\nf,nan\n"}, "a.csv, line 2: the count is 'nan'"),
        ({"a__csv": "sex,count\nf,0\n"}, "a.csv: it counts nobody"),
        ({"a__csv": "sex,count\nf,1\n,2\n"}, "a.csv, line 3: column sex is empty"),
        ({"a__csv": AGE_SEX + "0-15,f,9\n"}, "a.csv: lines 3 and 6 both count 0-15, f; add them up"),
        ({"a__csv": "sex,count\nf,1\n f,2\n"}, "variable sex: ' f' and 'f' differ in white space alone"),
        ({"a__csv": AGE_SEX, "b__csv": "sex,age,n\nf,0-15,9\n"}, "b.csv: it counts sex × age, as a.csv does"),
        ({"a__csv": AGE_SEX, "domain__yaml": "sex: [f, m]\n"}, "a.csv: variable age is not in the stated domain"),
        (
            {"a__csv": AGE_SEX, "domain__yaml": "sex: [f]\nage: [0-15, 16-64, 65+]\n"},
            "a.csv: column sex: 'm' is no category of the stated domain \\(3 such lines, the first is 2\\)",
        ),
        ({"a__csv": "sex,count\nf,1\n", "domain__yaml": DOMAIN_YAML}, "no margin counts variable age"),
        ({"a__csv": AGE_SEX, "domain__yaml": DOMAIN_YAML, "domain__json": "{}"}, "both domain.yaml and domain.json"),
        ({"a__csv": AGE_SEX, "domain__yaml": "sex: [f\nage: x\n"}, "domain.yaml, line 2: not readable as YAML"),
        ({"a__csv": AGE_SEX, "domain__json": "{"}, "domain.json: not readable as JSON"),
        ({"a__csv": AGE_SEX, "domain__yaml": "sex: [f]\nsex: [m]\n"}, "domain.yaml, line 1: not readable as YAML"),
        ({"a__csv": AGE_SEX, "domain__yaml": ""}, "domain.yaml: variables are due"),
        (
            {"a__csv": AGE_SEX, "structural_zeros__yaml": "age: [0-15]\n"},
            "structural_zeros.yaml: a list of impossible combinations is due",
        ),
        ({"a__csv": AGE_SEX, "structural_zeros__yaml": "- {age: []}\n"}, "structural_zeros.yaml: a list of impossible"),
        (
            {"a__csv": AGE_SEX, "structural_zeros__yaml": "- {age: [16], sex: [f]}\n"},
            "structural zero: variable age has no category '16'",
        ),
        (
            {"a__csv": AGE_SEX, "structural_zeros__yaml": "- {region: [north], sex: [f]}\n"},
            "unknown variable region; there are age, sex",
        ),
        (
            {"a__csv": AGE_SEX, "provenance__json": '{"a.csv": "counted"}'},
            "provenance.json: a list of steps by the name",
        ),
        ({"a__csv": AGE_SEX, "domain__yaml": "sex: f\n"}, "domain.yaml: variable sex: it needs a list of categories"),
        ({"a__csv": AGE_SEX, "domain__yaml": "sex: {categories: [f], order: 1}\n"}, "variable sex: it needs a list"),
        (
            {"a__csv": AGE_SEX, "domain__json": '{"sex": [true]}'},
            "domain.json: variable sex: its categories are a list",
        ),
        ({"a__csv": AGE_SEX, "domain__yaml": "sex: {categories: [f], kind: real}\n"}, "kind 'real' is none of text"),
        ({"a__csv": AGE_SEX, "domain__yaml": "sex: [f, f]\n"}, "domain.yaml: variable sex has the category 'f' twice"),
    ],
)
def test_what_is_wrong_is_named(folder, files, message):
    with pytest.raises(ValueError, match=message):
        read_tables(folder(**files))


def test_too_many_categories_or_combinations_are_refused_before_a_table_is_laid_out(folder, tmp_path):
    many = pl.DataFrame({"id": np.arange(1_000_000), "count": 1})
    many.write_parquet(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="variable id has 1,000,000 categories"):
        read_tables(tmp_path)
    wide = pl.DataFrame({**{f"v{k}": np.arange(100) for k in range(20)}, "count": 1})
    wide.write_parquet(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"a.parquet: 10(,0+)+ combinations, more than 20,000,000"):
        read_tables(tmp_path)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"age": [1.0], "count": [2]}, "column age holds Float64; categories are text or whole numbers"),
        ({"age": ["old"], "count": [True]}, "the column of counts holds Boolean"),
        ({"age": ["old", "young"], "count": [2, -3]}, "line 2: the count is -3"),
        ({"age": ["old", "young"], "count": [2, None]}, "line 2: the count is missing"),
    ],
)
def test_what_is_wrong_in_parquet_is_named(tmp_path, columns, message):
    pl.DataFrame(columns).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="a.parquet.*" + message):
        read_tables(tmp_path)


def test_tables_of_two_sets_do_not_mix(folder):
    margins = read_tables(folder(a__csv=AGE_SEX))
    with pytest.raises(ValueError, match="is not empty"):
        write_tables(margins, folder())
    with pytest.raises(ValueError, match="totals 'same' is none of"):
        read_tables(folder(), totals="same")
    with pytest.raises(ValueError, match="is no folder"):
        read_tables(folder() / "absent")
    named = MarginSet(Domain((Variable("Count", ("1",)),)), (Margin(("Count",), np.ones(1), ()),))
    with pytest.raises(ValueError, match="variable Count has the name"):
        write_tables(named, folder() / "new")


def test_files_are_named_after_their_variables(tmp_path):
    domain = Domain((Variable("a/b", ("x",)), Variable("c d", ("y",))))
    margins = MarginSet(domain, (Margin(("a/b", "c d"), np.ones((1, 1)), ()), Margin(("c d",), np.ones(1), ())))
    write_tables(margins, tmp_path / "new" / "out")
    names = sorted(path.name for path in (tmp_path / "new" / "out").iterdir())
    assert names == ["01_a-b_c-d.csv", "02_c-d.csv", "domain.json", "provenance.json"]
    assert re.match(r"a/b,c d,count\nx,y,1\n$", (tmp_path / "new" / "out" / names[0]).read_text())


def test_a_category_that_only_one_table_has_is_refused_by_both_files(tmp_path):
    """Claim: another spelling is no other category with nobody in it, unless a domain or a line of 0 says so."""
    (tmp_path / "a.csv").write_text("sex,age,count\nf,old,10\nm,old,20\n")
    (tmp_path / "b.csv").write_text("sex,town,count\nF,x,10\nm,x,20\n")
    with pytest.raises(ValueError, match=r"variable sex: category 'f' is in a\.csv and not in b\.csv; write it alike"):
        read_tables(tmp_path)
    (tmp_path / "b.csv").write_text("sex,town,count\nf,x,0\nm,x,30\n")
    (tmp_path / "a.csv").write_text("sex,age,count\nf,old,0\nm,old,30\n")
    assert read_tables(tmp_path).domain.variables[0].categories == ("f", "m")
