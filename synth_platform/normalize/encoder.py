"""The frozen map between contract tables and the model space: L0 and L1 forward, native units and types back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from synth_platform.contract.cohort_sections import ClinicalVariable, MatrixName, Outcome
from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.contract.tables import MATRICES, CohortTables, panel
from synth_platform.normalize import clinical as columns
from synth_platform.normalize import within_sample
from synth_platform.normalize.rows import EncodedRows
from synth_platform.normalize.standardise import Standardisation, fit_standardisation
from synth_platform.normalize.within_sample import Unit
from synth_platform.privacy.within_row import WithinRow, within_row

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

LOG2_SCALE_FLOOR = 0.05


class EncodeError(ValueError):
    """Tables or rows do not fit the encoder; the message names the column and what to do, never a value."""


@dataclass(frozen=True, eq=False)
class MatrixCodec:
    """L0 of one omics matrix; library_size (for counts) and quantiles (for the quantile map) are public constants."""

    modality: MatrixName
    unit: Unit
    panel: tuple[str, ...]
    library_size: float = within_sample.PER_MILLION
    quantiles: FloatArray | None = None

    def forward(self, native: FloatArray) -> FloatArray:
        """[n, p] native -> [n, p] on the log2 scale."""
        values = within_sample.to_log_scale(native, self.unit)
        return values if self.quantiles is None else within_sample.map_to_quantiles(values, self.quantiles)

    def inverse(self, values: FloatArray) -> FloatArray:
        """[n, p] on the log2 scale -> [n, p] native; counts are whole numbers at the public library size."""
        native = within_sample.to_native(values, self.unit, self.library_size)
        return np.rint(native) if self.unit == "count" else native


@dataclass(frozen=True, eq=False)
class Encoder:
    """Public constants that turn a patient's contract rows into model space and back.

    matrices: in feature order, before the clinical columns. variables: every registered clinical variable; those of
    `outcome` become label, time and event of the encoded rows, never features. labels, batches: names in code order.
    """

    matrices: tuple[MatrixCodec, ...]
    variables: tuple[ClinicalVariable, ...]
    outcome: Outcome
    labels: tuple[str, ...]
    batches: tuple[str, ...]
    standardisation: Standardisation

    @cached_property
    def features(self) -> tuple[str, ...]:
        """Names of the p encoded columns: panels in order, then the clinical columns."""
        panels = [feature for matrix in self.matrices for feature in matrix.panel]
        return (*panels, *(name for v in self._covariates for name in columns.column_names(v)))

    @cached_property
    def omics_columns(self) -> IntArray:
        """Positions of the omics features, the ones batch correction works on."""
        return np.arange(sum(len(matrix.panel) for matrix in self.matrices), dtype=np.int64)

    @property
    def encoding(self) -> WithinRow[CohortTables, EncodedRows]:
        """`encode` as the registered within-row map that a private table may be transformed by."""
        return within_row("normalize.encode", self.encode)

    def encode(self, tables: CohortTables) -> EncodedRows:
        """Validated tables -> model space, in the order of the manifest (8-1 §1.2, L0 then L1).

        A missing cell becomes 0; clinical variables carry an indicator for it, omics features do not: their decoded
        table is complete. Raises EncodeError for a missing table or column, an unregistered label or a bad outcome.
        """
        keys = tables.manifest["row_key"]
        clinical = _aligned(tables.clinical, keys, "clinical")
        label, time, event = (_column(clinical, name) for name in (self._label.name, self._time.name, self._event.name))
        codes = _label_codes(label, self.labels)
        if time.null_count() or event.null_count() or not bool((time > 0).all()):
            raise EncodeError(
                f"{time.name}, {event.name}: every row needs a positive time and an event; validate the tables first"
            )
        return EncodedRows(
            features=self.features,
            x=self.standardisation.apply(_raw(self.matrices, self._covariates, tables, clinical)),
            label=codes,
            event=event.cast(pl.Int64).to_numpy().astype(np.int64),
            time=time.cast(pl.Float64).to_numpy().astype(np.float64),
            batch=_batch_codes(tables.manifest["batch_id"], self.batches),
            split=np.asarray(tables.manifest["split"].to_list(), dtype=np.str_),
            key=np.asarray(keys.to_list(), dtype=np.str_),
        )

    def decode(self, rows: EncodedRows) -> pl.DataFrame:
        """Model space -> one wide frame in native units and types: row_key, clinical variables, panels.

        Any real x decodes to a table the contract accepts: clipped to bounds, categories restored, indicators to null.
        Raises EncodeError if the rows have other features or a label code that is not registered.
        """
        if rows.features != self.features:
            raise EncodeError("the rows' features are not this encoder's; encode and decode with the same encoder")
        if ((rows.label < 0) | (rows.label >= len(self.labels))).any():
            raise EncodeError(f"{self._label.name}: a label code is outside 0..{len(self.labels) - 1}")
        raw = self.standardisation.invert(rows.x)
        series = {
            self._label.name: pl.Series(np.asarray(self.labels, dtype=np.object_)[rows.label], dtype=pl.String),
            self._time.name: columns.admissible(self._time, rows.time),
            self._event.name: pl.Series(rows.event, dtype=pl.Int64),
        }
        at = self.omics_columns.size
        for variable in self._covariates:
            width = len(columns.column_names(variable))
            series[variable.name] = columns.from_columns(variable, raw[:, at : at + width])
            at += width
        frames = [pl.DataFrame({"row_key": pl.Series(rows.key.tolist(), dtype=pl.String)})]
        frames.append(pl.DataFrame({variable.name: series[variable.name] for variable in self.variables}))
        at = 0
        for matrix in self.matrices:
            native = matrix.inverse(raw[:, at : at + len(matrix.panel)])
            frames.append(pl.from_numpy(native, schema=list(matrix.panel), orient="row"))
            at += len(matrix.panel)
        return pl.concat(frames, how="horizontal")

    def to_document(self) -> dict[str, object]:
        """JSON values that `from_document` restores exactly."""
        return {
            "matrices": [
                {
                    "modality": matrix.modality,
                    "unit": matrix.unit,
                    "panel": list(matrix.panel),
                    "library_size": matrix.library_size,
                    "quantiles": None if matrix.quantiles is None else matrix.quantiles.tolist(),
                }
                for matrix in self.matrices
            ],
            "variables": [variable.model_dump(mode="json") for variable in self.variables],
            "outcome": self.outcome.model_dump(mode="json"),
            "labels": list(self.labels),
            "batches": list(self.batches),
            "mean": self.standardisation.mean.tolist(),
            "scale": self.standardisation.scale.tolist(),
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Encoder:
        """The encoder that `to_document` described; KeyError or ValueError if a part is missing or does not fit."""
        encoder = cls(
            matrices=tuple(
                MatrixCodec(
                    modality=part["modality"],
                    unit=part["unit"],
                    panel=tuple(part["panel"]),
                    library_size=part["library_size"],
                    quantiles=None if part["quantiles"] is None else np.asarray(part["quantiles"], dtype=np.float64),
                )
                for part in document["matrices"]
            ),
            variables=tuple(ClinicalVariable.model_validate(part) for part in document["variables"]),
            outcome=Outcome.model_validate(document["outcome"]),
            labels=tuple(document["labels"]),
            batches=tuple(document["batches"]),
            standardisation=Standardisation(
                np.asarray(document["mean"], dtype=np.float64), np.asarray(document["scale"], dtype=np.float64)
            ),
        )
        if encoder.standardisation.mean.size != len(encoder.features):
            raise ValueError(f"mean and scale have {encoder.standardisation.mean.size} entries for other features")
        return encoder

    @cached_property
    def _covariates(self) -> tuple[ClinicalVariable, ...]:
        return covariates(self.variables, self.outcome)

    @property
    def _label(self) -> ClinicalVariable:
        return self._variable(self.outcome.label)

    @property
    def _time(self) -> ClinicalVariable:
        return self._variable(self.outcome.time)

    @property
    def _event(self) -> ClinicalVariable:
        return self._variable(self.outcome.event)

    def _variable(self, name: str) -> ClinicalVariable:
        return next(variable for variable in self.variables if variable.name == name)


def covariates(variables: tuple[ClinicalVariable, ...], outcome: Outcome) -> tuple[ClinicalVariable, ...]:
    """The clinical variables that become features: all but the outcome."""
    roles = {outcome.label, outcome.time, outcome.event}
    return tuple(variable for variable in variables if variable.name not in roles)


def fit_encoder(public: CohortTables, spec: CohortSpec) -> Encoder:
    """L1 parameters, quantile reference and library size from public rows alone (8-1 §1.2).

    Raises EncodeError if a row is not of the public split or an encoded column has no name of its own, ValueError if a
    column has no public scale.
    """
    if not bool((public.manifest["split"] == spec.reference.split).all()):
        raise EncodeError(f"the encoder is fitted on split {spec.reference.split!r} alone; filter the tables first")
    clinical = _aligned(public.clinical, public.manifest["row_key"], "clinical")
    matrices = tuple(
        _fit_matrix(name, section.unit, panel(spec, name), public, spec.quantile_map)
        for name, section in zip(MATRICES, (spec.expression, spec.methylation), strict=True)
        if section is not None
    )
    inputs = covariates(spec.clinical, spec.outcome)
    names = [name for matrix in matrices for name in matrix.panel] + [
        name for variable in inputs for name in columns.column_names(variable)
    ]
    if len(set(names)) != len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise EncodeError(f"{twice}: two encoded columns have this name; rename it in one panel or variable")
    floors = [np.full(len(matrix.panel), LOG2_SCALE_FLOOR) for matrix in matrices]
    floor = np.concatenate([*floors, *(columns.scale_floor(variable) for variable in inputs)])
    raw = _raw(matrices, inputs, public, clinical)
    return Encoder(
        matrices=matrices,
        variables=spec.clinical,
        outcome=spec.outcome,
        labels=spec.labels,
        batches=spec.batches,
        standardisation=fit_standardisation(raw, floor, tuple(names)),
    )


def _fit_matrix(
    modality: MatrixName, unit: Unit, features: tuple[str, ...], public: CohortTables, mapped: bool
) -> MatrixCodec:
    codec = MatrixCodec(modality, unit, features)
    native = _matrix(codec, public)
    size = float(np.median(within_sample.library_sizes(native))) if unit == "count" else codec.library_size
    quantiles = within_sample.reference_quantiles(codec.forward(native)) if mapped else None
    return MatrixCodec(modality, unit, features, size, quantiles)


def _raw(
    matrices: tuple[MatrixCodec, ...],
    inputs: tuple[ClinicalVariable, ...],
    tables: CohortTables,
    clinical: pl.DataFrame,
) -> FloatArray:
    """L0 of every feature, [n, p], NaN where missing."""
    blocks = [matrix.forward(_matrix(matrix, tables)) for matrix in matrices]
    blocks += [columns.to_columns(variable, _column(clinical, variable.name)) for variable in inputs]
    return np.concatenate(blocks, axis=1)


def _matrix(codec: MatrixCodec, tables: CohortTables) -> FloatArray:
    frame = getattr(tables, codec.modality)
    if frame is None:
        raise EncodeError(f"{codec.modality}: the encoder expects this table and the cohort has none")
    missing = set(codec.panel).difference(frame.columns)
    if missing:
        raise EncodeError(f"{codec.modality}: no column {min(missing)!r}; the table must hold the whole panel")
    frame = _aligned(frame, tables.manifest["row_key"], codec.modality)
    cells = frame.select(pl.col(codec.panel).cast(pl.Float64))
    return np.asarray(cells.to_numpy(order="c"), dtype=np.float64)


def _aligned(frame: pl.DataFrame, keys: pl.Series, table: str) -> pl.DataFrame:
    """Rows of `frame` in the order of `keys`; a patient without a row there has nulls."""
    if frame["row_key"].equals(keys):
        return frame
    if frame["row_key"].is_duplicated().any():
        raise EncodeError(f"{table}: a row_key occurs twice; validate the tables first")
    return keys.to_frame("row_key").join(frame, on="row_key", how="left", maintain_order="left")


def _column(frame: pl.DataFrame, name: str) -> pl.Series:
    if name not in frame.columns:
        raise EncodeError(f"clinical: no column {name!r}; the table must hold every registered variable")
    return frame[name]


def _label_codes(values: pl.Series, labels: tuple[str, ...]) -> IntArray:
    codes = values.cast(pl.String).replace_strict(
        list(labels), list(range(len(labels))), default=-1, return_dtype=pl.Int64
    )
    codes = codes.fill_null(-1)
    if bool((codes == -1).any()):
        raise EncodeError(f"{values.name}: a row has no label of {list(labels)}; select the registered rows first")
    return codes.to_numpy().astype(np.int64)


def _batch_codes(values: pl.Series, batches: tuple[str, ...]) -> IntArray:
    codes = values.cast(pl.String).replace_strict(
        list(batches), list(range(len(batches))), default=-1, return_dtype=pl.Int64
    )
    return codes.fill_null(-1).to_numpy().astype(np.int64)
