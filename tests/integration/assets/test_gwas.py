"""A genotype study from its files to a package by the command line alone, what it spends, and what is refused.

60 cases and 58 controls, 200 variants of which three differ: of 1,000 draws of the noise each list had exactly these.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np
import polars as pl
import pytest
import yaml
from filelock import FileLock

from resources.artefacts import read_artefact
from resources.home import HomeResource, SynthHome
from resources.private import fingerprint_key
from synth_platform.contract.genotype_spec import GenotypeSpec, load_genotype_spec
from synth_platform.definitions import GWAS_JOB
from synth_platform.discovery.genotypes import genotype_study, read_study
from synth_platform.privacy.accounting import gaussian_epsilon
from synth_platform.privacy.noise import CryptographicNoise
from synth_platform.release.folder import verify_package
from synth_platform.sources.genotypes.open import open_genotypes
from synth_platform.sources.genotypes.study import content_digest, list_variants, source_digest
from tests.integration.assets.conftest import QUIET, Platform, Said, Session, said

CASES, CONTROLS, NEITHER, VARIANTS = 60, 58, 3, 200
PLANTED = (17, 101, 180)
STUDY, PLAN = "arrays", "ill-mu3-alpha0.05-for3"
PACKAGE = f"{STUDY}-gwas-{PLAN}"
STAGE = ("private_e_values", "discoveries", "decision", "audit", "release")
COMMANDS = ("cohort list", f"discover {STUDY} --json")
BED = {0: 0b11, 1: 0b10, 2: 0b00, -1: 0b01}
Document = dict[str, Any]


def write_study(folder: Path) -> Path:
    """A .bed with its .bim and .fam, and a study.yaml that registers them."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(7)
    status = np.array([2] * CASES + [1] * CONTROLS + [-9] * NEITHER)
    rng.shuffle(status)
    dosages = rng.binomial(2, rng.uniform(0.1, 0.5, VARIANTS), (len(status), VARIANTS))
    for at in PLANTED:
        dosages[:, at] = rng.binomial(2, np.where(status == 2, 0.9, 0.1))
    dosages[rng.random(dosages.shape) < 0.01] = -1
    codes = np.vectorize(BED.__getitem__)(dosages.T)
    codes = np.pad(codes, ((0, 0), (0, -len(status) % 4)))
    packed = (codes.reshape(VARIANTS, -1, 4) << [0, 2, 4, 6]).sum(axis=2).astype(np.uint8)
    (folder / "arrays.bed").write_bytes(b"\x6c\x1b\x01" + packed.tobytes())
    (folder / "arrays.bim").write_text("".join(f"2\trs{at}\t0\t{5000 + at}\tT\tC\n" for at in range(VARIANTS)))
    people = [f"KIN{n:03d} PERSON{n:03d} 0 0 0 {value}\n" for n, value in enumerate(status)]
    (folder / "arrays.fam").write_text("".join(people))
    document: Document = {
        "name": STUDY,
        "kind": "genotypes",
        "title": "An array of two hundred",
        "dua_tag": "RELEASE_REVIEWED",
        "privacy": {"domain": "gwas_people", "budget": {"epsilon": 40.0, "delta": 1e-5}},
        "genotypes": {
            "file": "arrays.bed",
            "variants": VARIANTS,
            "list_sha256": list_variants(open_genotypes(folder / "arrays.bed"))[1],
        },
        "phenotypes": {"ill": {"file": "fam", "sizes": [CASES, CONTROLS]}},
        "discovery": {"mu": 3.0, "expected": 3},
    }
    (folder / "study.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    return folder


def edit(folder: Path, change: Callable[[Document], Any]) -> None:
    """Change study.yaml, as a steward would between two runs."""
    document = yaml.safe_load((folder / "study.yaml").read_text(encoding="utf-8"))
    change(document)
    (folder / "study.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")


@pytest.fixture(scope="session")
def studied(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """A home with the list of the study; made once for all test processes. Only to be read."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    root = base / "studied" / "home"
    folder, record = root / "study", base / "studied" / "said.json"
    with FileLock(base / "studied.lock"):
        if not record.exists():
            write_study(folder)
            commands = (f"cohort check {folder} --json", f"cohort add {folder}", *COMMANDS)
            record.write_text(json.dumps({c: asdict(said(c, root)) for c in commands}), "utf-8")
    return Session(root, folder, {c: Said(**s) for c, s in json.loads(record.read_text("utf-8")).items()})


@pytest.fixture(scope="session")
def listed(studied: Session) -> Document:
    """What `synth discover --json` said."""
    done = studied.said[f"discover {STUDY} --json"]
    assert done.exit_code == 0, done.stderr
    [document] = json.loads(done.stdout)
    return document


@pytest.fixture
def harmed(studied: Session, listed: Document, tmp_path: Path) -> Session:
    """A copy of that home that a test may harm."""
    root = tmp_path / "home"
    shutil.copytree(studied.root, root)
    register = root / "cohorts.json"
    register.write_text(register.read_text("utf-8").replace(str(studied.root), str(root)), "utf-8")
    return Session(root, root / "study", {})


@pytest.fixture
def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing noise is an error."""

    def drawn(*_: Any) -> None:
        raise AssertionError("noise was drawn")

    for name in ("discrete_gaussian", "gumbel_top"):
        assert hasattr(CryptographicNoise, name)
        monkeypatch.setattr(CryptographicNoise, name, drawn)


def spec_of(home: Session) -> GenotypeSpec:
    return load_genotype_spec(home.folder / "study.yaml")


def everything_outside(root: Path) -> Iterator[tuple[str, bytes]]:
    """Files of a home outside the restricted zone and the study's own folder."""
    for path in sorted(root.rglob("*")):
        place = path.relative_to(root)
        if path.is_file() and place.parts[0] not in ("restricted", "study"):
            yield str(place), path.read_bytes()


# --- from files to a package ----------------------------------------------------------------------------------------


def test_a_study_is_checked_added_and_listed(studied: Session) -> None:
    """Claim: `cohort check` tells the list and the sizes, `cohort add` names the command that runs a study, and
    `cohort list` has it."""
    checked = json.loads(studied.said[f"cohort check {studied.folder} --json"].stdout)
    spec = spec_of(studied)
    assert checked == {
        "cohort": STUDY,
        "accepted": True,
        "variants": {"variants": VARIANTS, "list_sha256": spec.genotypes.list_sha256, "fits": True},
        "contrasts": {"ill": {"registered": [CASES, CONTROLS], "found": [CASES, CONTROLS], "fits": True}},
    }
    assert f"synth discover {STUDY}" in studied.said[f"cohort add {studied.folder}"].stdout
    assert "ill" in studied.said["cohort list"].stdout


def test_what_the_command_tells(listed: Document, studied: Session) -> None:
    """Claim: `synth discover --json` lists contrast, μ, ε(δ), method, size, discoveries with private log e-values, and
    the ledger entries; three entries for an adaptive size, and the planted variants by name."""
    assert set(listed) == {
        "cohort", "contrast", "plan", "mu", "epsilon", "delta", "alpha", "statistic", "hypotheses", "method", "size",
        "discoveries", "selected", "entries", "decision", "reasons", "package",
    }  # fmt: skip
    assert (listed["cohort"], listed["contrast"], listed["plan"]) == (STUDY, "ill", PLAN)
    assert (listed["mu"], listed["delta"], listed["alpha"]) == (3.0, 1e-5, 0.05)
    assert listed["epsilon"] == pytest.approx(gaussian_epsilon(3.0, 1e-5))
    assert (listed["statistic"], listed["hypotheses"], listed["method"]) == ("dosage", VARIANTS, "adaptive")
    assert {line["feature"] for line in listed["discoveries"]} == {f"rs{at} 2:{5000 + at}:C:T" for at in PLANTED}
    assert listed["size"] == len(listed["discoveries"]) + len(listed["selected"])
    assert all(isinstance(line["log_e"], float) for line in listed["discoveries"] + listed["selected"])
    assert (listed["decision"], listed["reasons"]) == ("ELIGIBLE_FORMAL", [])
    assert listed["package"] == str(studied.root / "released" / PACKAGE)
    rows = Platform.at(studied.root).rows()
    assert {row["entry_id"] for row in rows if row["state"] == "committed"} == set(listed["entries"])
    assert len(listed["entries"]) == 3


def test_the_package_is_the_list(listed: Document, studied: Session) -> None:
    """Claim: the package verifies, its table is what the command told, and its ledger has the entries."""
    package = studied.root / "released" / PACKAGE
    verify_package(package)
    table = pl.read_parquet(package / "table.parquet")
    told = listed["discoveries"] + listed["selected"]
    assert table["feature"].to_list() == [line["feature"] for line in told]
    assert table["log_e"].to_list() == [line["log_e"] for line in told]
    assert table["discovered"].sum() == len(listed["discoveries"])
    ledger = json.loads((package / "ledger.json").read_text("utf-8"))
    assert [entry["entry_id"] for entry in ledger["entries"]] == listed["entries"]
    assert f"groups of {CASES} and {CONTROLS} records" in (package / "README.md").read_text("utf-8")


def test_every_asset_has_its_checks_and_its_ledger_entries(listed: Document, studied: Session) -> None:
    """Claim: the whole stage is materialised in the partition of study and plan, and names what paid for it."""
    platform = Platform.at(studied.root)
    for name in STAGE:
        assert platform.latest(f"gwas/{name}", PLAN, STUDY) is not None, name
    for name in ("private_e_values", "discoveries", "decision", "release"):
        assert platform.metadata(f"gwas/{name}", PLAN, STUDY)["ledger_entries"] == listed["entries"]


def test_a_package_is_followed_back_to_its_entries(listed: Document, studied: Session) -> None:
    traced = json.loads(said(f"lineage {PACKAGE} --json", studied.root).stdout)
    assert {row["entry_id"] for row in traced["ledger"]} == set(listed["entries"])


def test_a_vcf_with_a_table_of_phenotypes_goes_the_same_way(harmed: Session) -> None:
    """Claim: another study of the same people, from a VCF without ids and a CSV, on other terms, spends in the same
    domain; a variant without an id is called by its place, once."""
    bed = open_genotypes(harmed.folder / "arrays.bed")
    dosages = np.concatenate([block.dosages for block in bed.blocks()], axis=1)
    folder = harmed.root / "study" / "vcf"
    folder.mkdir()
    head = ["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT", *bed.samples]
    calls = {-1: "./.", 0: "0/0", 1: "0/1", 2: "1/1"}
    lines = ["##fileformat=VCFv4.3", "\t".join(head)]
    lines += [
        "\t".join(
            ["2", str(5000 + at), ".", "C", "T", ".", ".", ".", "GT", *(calls[d] for d in dosages[:, at].tolist())]
        )
        for at in range(VARIANTS)
    ]
    (folder / "calls.vcf").write_text("\n".join(lines) + "\n")
    fam = [line.split() for line in (harmed.folder / "arrays.fam").read_text().splitlines()]
    (folder / "who.csv").write_text("sample,status\n" + "".join(f"{cells[1]},{cells[5]}\n" for cells in fam))
    shutil.copy(harmed.folder / "study.yaml", folder)
    digest = list_variants(open_genotypes(folder / "calls.vcf"))[1]

    def to_vcf(document: Document) -> None:
        document["name"] = "calls"
        document["genotypes"] |= {"file": "calls.vcf", "list_sha256": digest}
        document["phenotypes"]["ill"] |= {"file": "who.csv", "column": "status", "case": [2], "control": [1]}

    edit(folder, to_vcf)
    assert said(f"cohort add {folder}", harmed.root).exit_code == 0
    done = said("discover calls --mu 2 --alpha 0.1 --size 3 --json", harmed.root)
    assert done.exit_code == 0, done.stderr
    [document] = json.loads(done.stdout)
    assert (document["method"], document["size"], document["plan"]) == ("fixed", 3, "ill-mu2-alpha0.1-top3")
    assert {line["feature"] for line in document["discoveries"]} == {f"2:{5000 + at}:C:T" for at in PLANTED}
    spent = Platform.at(harmed.root).ledger.budget_summary("gwas_people")["mu"]
    assert spent == pytest.approx(np.sqrt(3.0**2 + 2.0**2), rel=1e-5)


# --- paid once ------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_noise")
def test_the_same_again_is_free(listed: Document, harmed: Session) -> None:
    """Claim: the command once more gives the same list and the same package, draws nothing, and the ledger is as it
    was."""
    platform = Platform.at(harmed.root)
    rows, sums = platform.rows(), (harmed.root / "released" / PACKAGE / "SHA256SUMS").read_bytes()
    done = said(f"discover {STUDY} --contrast ill --json", harmed.root)
    assert done.exit_code == 0, done.stderr
    [again] = json.loads(done.stdout)
    assert again | {"package": None} == listed | {"package": None}
    assert platform.rows() == rows
    assert (harmed.root / "released" / PACKAGE / "SHA256SUMS").read_bytes() == sums


@pytest.mark.usefixtures("no_noise")
def test_a_plan_past_the_cap_buys_nothing(harmed: Session) -> None:
    rows = Platform.at(harmed.root).rows()
    done = said(f"discover {STUDY} --mu 5", harmed.root)
    assert (done.exit_code, "BUDGET_EXCEEDED" in done.stderr) == (1, True), done.stderr
    assert Platform.at(harmed.root).rows() == rows


@pytest.mark.usefixtures("no_noise")
def test_the_same_genotypes_under_another_domain_are_recognised(harmed: Session) -> None:
    """Claim: a fresh budget cannot be had by renaming the domain."""
    edit(harmed.folder, lambda document: document["privacy"].update(domain="fresh"))
    done = said(f"discover {STUDY} --mu 1", harmed.root)
    assert done.exit_code == 2
    assert "ROWS_OF_OTHER_DOMAIN" in done.stderr


# --- refused --------------------------------------------------------------------------------------------------------


def gone(folder: Path) -> None:
    (folder / "arrays.bed").unlink()


def raw(folder: Path) -> None:
    (folder / "arrays.raw").write_text("FID IID PAT MAT SEX PHENOTYPE rs0_T\n")
    edit(folder, lambda document: document["genotypes"].update(file="arrays.raw"))


def no_fam(folder: Path) -> None:
    (folder / "arrays.fam").unlink()


def one_variant_renamed(folder: Path) -> None:
    path = folder / "arrays.bim"
    path.write_text(path.read_text().replace("\trs50\t", "\trs50b\t"))


def quantitative(folder: Path) -> None:
    path = folder / "arrays.fam"
    path.write_text(path.read_text().replace(" 2\n", " 737.25375\n"))


REFUSED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "sizes": (
        lambda folder: edit(folder, lambda d: d["phenotypes"]["ill"].update(sizes=[CASES + 1, CONTROLS - 1])),
        "cases and controls among the samples are not as many as registered; correct the registered sizes",
    ),
    "digest": (
        lambda folder: edit(folder, lambda d: d["genotypes"].update(list_sha256="ab" * 32)),
        "the file does not hold the 200 variants that genotypes.variants and genotypes.list_sha256 register",
    ),
    "a variant renamed": (one_variant_renamed, "`synth cohort check` tells which it holds"),
    "missing file": (gone, "arrays.bed: no such file; correct the path"),
    "missing table": (
        lambda folder: edit(folder, lambda d: d["phenotypes"]["ill"].update(file="who.csv", case=[2], control=[1])),
        "who.csv: no such file; correct the path",
    ),
    "missing fam": (no_fam, "arrays.fam: no such file; put the .fam beside its .bed"),
    "raw": (raw, ".raw is sorted by sample and cannot be streamed by variant; export it with plink2"),
    "quantitative": (quantitative, "column 6 is not a case-control phenotype"),
    "study.yaml": (
        lambda folder: edit(folder, lambda d: d["genotypes"].update(frequency=2)), "genotypes.frequency"
    ),
    "a cohort.yaml beside it": (
        lambda folder: (folder / "cohort.yaml").write_text("name: arrays\n"), "give each a folder of its own"
    ),
}  # fmt: skip


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize("what", list(REFUSED))
def test_what_does_not_fit_is_refused_before_it_costs(what: str, harmed: Session) -> None:
    """Claim: exit code 2, a message that names what to correct, no traceback, and nothing spent, drawn or released;
    neither the message nor what the run leaves in the event log holds a person or a figure of private rows."""
    harm, message = REFUSED[what]
    before = {name for name, _ in everything_outside(harmed.root)}
    rows = Platform.at(harmed.root).rows()
    harm(harmed.folder)
    done = said(f"discover {STUDY} --mu 1", harmed.root)
    told = " ".join(done.stderr.split())
    assert done.exit_code == 2, told
    assert message in told
    assert "Traceback" not in told
    assert not re.search(
        rf"PERSON|KIN|737\.25375|\b({CASES}|{CONTROLS}|{CASES + CONTROLS})\b", told.replace(str(harmed.root), "")
    )
    assert Platform.at(harmed.root).rows() == rows
    assert Platform.at(harmed.root).packages() == [PACKAGE]
    for name, content in everything_outside(harmed.root):
        assert b"PERSON" not in content, name
        assert b"737.25375" not in content, name
    assert before <= {name for name, _ in everything_outside(harmed.root)}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (f"discover {STUDY} --contrast gout", "study 'arrays' has no phenotype 'gout'; it has ill"),
        (f"discover {STUDY} --size 201", "--size: 201 of the 200 hypotheses of 'ill' cannot be selected; use fewer"),
        (f"discover {STUDY} --mu 9", "--mu: a list at mu = 9 costs epsilon = 83.69 at delta = 1e-05"),
        (f"discover {STUDY} --mu 1000", "at most 60"),
        (f"discover {STUDY} --size 0", "at least one hypothesis has to be selected"),
        (f"discover {STUDY} --mu 0", "mu must be > 0"),
        (f"discover {STUDY} --alpha 1", "the false discovery rate lies between 0 and 1"),
        (f"run {STUDY}", "'arrays' is a genotype study, not a cohort of tables; synth discover arrays runs it"),
    ],
)
def test_what_cannot_be_asked_is_refused(arguments: str, message: str, harmed: Session) -> None:
    rows = Platform.at(harmed.root).rows()
    done = said(arguments, harmed.root)
    assert done.exit_code == 2, done.stderr
    assert message in " ".join(done.stderr.split())
    assert Platform.at(harmed.root).rows() == rows


def test_the_check_tells_what_to_register(harmed: Session) -> None:
    """Claim: a steward who registered placeholders is told list and sizes, in the words that study.yaml takes."""
    spec = spec_of(harmed)

    def placeholders(document: Document) -> None:
        document["genotypes"] |= {"variants": 1, "list_sha256": "0" * 64}
        document["phenotypes"]["ill"]["sizes"] = [5, 5]

    edit(harmed.folder, placeholders)
    for place in (harmed.folder, harmed.folder / "study.yaml", STUDY):
        done = said(f"cohort check {place}", harmed.root)
        assert done.exit_code == 2
        assert "arrays: rejected" in done.stdout
        assert f"{{variants: {VARIANTS}, list_sha256: {spec.genotypes.list_sha256}}} is not what is" in done.stdout
        assert f"contrast ill: {CASES} and {CONTROLS} private rows, but sizes: [5, 5] is registered" in done.stdout


# --- nothing private outside ----------------------------------------------------------------------------------------


def test_nothing_private_leaves_the_restricted_zone(listed: Document, studied: Session) -> None:
    """Claim: no person, no plain digest of the study and no e-value before noise is in a package, in metadata, in the
    event log, in the ledger or in what a command said. Private log e-values are searched for as well: they do turn up.
    """
    spec = spec_of(studied)
    rows = read_study(spec, studied.folder, "ill")
    study = genotype_study(spec, studied.folder, spec.discovery_plan(PLAN))
    scores = study.asked_for(study.expected)[0](rows)
    words = [*everything_outside(studied.root), *((c, (s.stdout + s.stderr).encode()) for c, s in studied.said.items())]
    for name, content in words:
        assert b"PERSON" not in content, name
        assert b"KIN0" not in content, name
        assert content_digest(rows).hex().encode() not in content, name
        assert content_digest(rows) not in content, name
        for score in scores[list(PLANTED)]:
            assert f"{score:.9f}"[:-1].encode() not in content, name
    top = str(listed["discoveries"][0]["log_e"])[:9].encode()
    assert any(top in content for name, content in words if name.endswith(".csv"))


def test_the_study_is_named_by_a_key(studied: Session, listed: Document) -> None:
    """Claim: the ledger knows the study by a keyed name of the genotyped people, and its head says both names."""
    rows = read_study(spec_of(studied), studied.folder, "ill")
    key = fingerprint_key(HomeResource(root=str(studied.root)))
    chain = Platform.at(studied.root).ledger.chain()
    charged = {row["input_fingerprint"] for row in chain if row["entry_id"] in listed["entries"]}
    assert charged == {key.name(source_digest(rows))}
    head = read_artefact(SynthHome(studied.root).artefact(dg.AssetKey(["gwas", "study"]), STUDY, PLAN), key)
    assert (head["people"], head["rows"]) == (key.name(source_digest(rows)), key.name(content_digest(rows)))


# --- looked at again ------------------------------------------------------------------------------------------------


def test_a_published_list_is_looked_at_again(studied: Session, harmed: Session) -> None:
    """Claim: nothing is found in it while nothing has changed; a package that was altered is recalled."""
    looked = said("reaudit --json", harmed.root)
    assert looked.exit_code == 0, looked.stderr
    document = json.loads(looked.stdout)
    assert (document["recalled"], document["hindered"]) == ({}, {})
    table = harmed.root / "released" / PACKAGE / "table.csv"
    table.write_text(table.read_text().replace("true", "false"))
    assert said("reaudit --json", harmed.root).exit_code == 1


@pytest.mark.usefixtures("no_noise")
def test_a_list_that_does_not_follow_from_its_files_is_not_released(harmed: Session) -> None:
    """Claim: with one genotype changed the answers paid for are those of other rows, and the stored list stays."""
    platform = Platform.at(harmed.root)
    platform.withdraw()
    genotypes = bytearray((harmed.folder / "arrays.bed").read_bytes())
    genotypes[1000] ^= 0b10
    (harmed.folder / "arrays.bed").write_bytes(genotypes)
    result = platform.definitions.resolve_job_def(GWAS_JOB).execute_in_process(
        instance=platform.instance,
        partition_key=dg.MultiPartitionKey({"cohort": STUDY, "plan": PLAN}),
        asset_selection=[dg.AssetKey(["gwas", "release"])],
        run_config=QUIET,
        raise_on_error=False,
    )
    assert not result.success
    assert "run the plan again" in platform.failure(result)
    assert platform.packages() == []
