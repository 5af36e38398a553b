"""Text files as blocks of whole lines, and the cells of a block found by NumPy: what VCF, .traw and .bim share.

A block is one byte array in which the positions of tabs and line ends are looked up at once; no Python runs per line or
cell. Numbers and words are handed to Polars as a table of the cells asked for.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from synth_platform.sources.genotypes.block import (
    BLOCK_BYTES,
    OVERLONG_ID,
    GenotypeError,
    overlong_id,
    require_samples,
)

Bytes = NDArray[np.uint8]
Positions = NDArray[np.int64]

GZIP_MAGIC = b"\x1f\x8b"
BGZF_END = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")  # SAM specification, 4.1.2
LARGEST_LINE = 1 << 28  # bytes, unpacked: more is no line of genotypes but a file that lost its line ends
TAB, LINE_END, RETURN, COLON = b"\t\n\r:"
PADDING = b"\n" * 4  # a word of four bytes may be read at any position


@dataclass(frozen=True, eq=False)
class Lines:
    """b whole lines: line i is `text[starts[i]:ends[i]]`, without its line end; `first` is the number of line 0."""

    path: Path
    text: Bytes
    starts: Positions
    ends: Positions
    first: int

    def place(self, line: int) -> str:
        """How an error names line `line` of the block."""
        return f"{self.path}, line {self.first + line}"

    def cells(self, columns: int) -> tuple[Positions, Positions]:
        """Where the tab-separated cells start and end: two arrays [b, columns]. GenotypeError for a ragged line."""
        tabs = np.flatnonzero(self.text[: self.ends[-1]] == TAB)
        counts = np.diff(np.searchsorted(tabs, np.append(self.starts, self.ends[-1])))
        ragged = np.flatnonzero(counts != columns - 1)
        if ragged.size:
            raise GenotypeError(
                f"{self.place(int(ragged[0]))}: not the {columns} tab-separated columns that the header announces; "
                "the file is damaged, export it again"
            )
        inner = tabs.reshape(len(self.starts), columns - 1)
        return np.column_stack([self.starts, inner + 1]), np.column_stack([inner, self.ends])


def words(text: Bytes, dtype: str, at: Positions) -> NDArray[np.unsignedinteger]:
    """The little-endian unsigned integers of type `dtype` ("<u2", "<u4") that start at the positions `at`."""
    itemsize = np.dtype(dtype).itemsize
    view: NDArray[np.unsignedinteger] = np.ndarray(len(text) - itemsize + 1, dtype, buffer=text.data, strides=(1,))
    found: NDArray[np.unsignedinteger] = view[at]
    return found


def joined(text: Bytes, starts: Positions, ends: Positions) -> bytes:
    """The pieces `text[starts[i]:ends[i]]`, each followed by a line end."""
    lengths = ends - starts + 1
    stops = np.cumsum(lengths)
    at = np.arange(stops[-1]) + np.repeat(starts - (stops - lengths), lengths)
    pieces = text[at]
    pieces[stops - 1] = LINE_END
    return bytes(pieces)


def site_table(lines: Lines, starts: Positions, ends: Positions, names: Sequence[str]) -> pl.DataFrame:
    """The first columns of every line as text under `names`, `position` as Int64; GenotypeError where it is none."""
    try:
        table = pl.read_csv(
            joined(lines.text, starts[:, 0], ends[:, len(names) - 1]),
            has_header=False,
            separator="\t",
            quote_char=None,
            schema=dict.fromkeys(names, pl.String),
        )
    except pl.exceptions.PolarsError:
        raise GenotypeError(f"{lines.place(0)} or one after it: not UTF-8; write the file so") from None
    empty = table.select(pl.any_horizontal(pl.all().is_null())).to_series().arg_true()
    if len(empty):
        raise GenotypeError(f"{lines.place(empty[0])}: one of the columns {', '.join(names)} is empty; fill it")
    return placed(lines, table)


def placed(lines: Lines, table: pl.DataFrame) -> pl.DataFrame:
    """The table of the lines with its `position`s as Int64.

    Raises GenotypeError for what is no whole number and for a `variant_id` that is too long to be one.
    """
    table = table.with_columns(pl.col("position").cast(pl.Int64, strict=False))
    unplaced = table["position"].is_null().arg_true()
    if len(unplaced):
        raise GenotypeError(f"{lines.place(unplaced[0])}: the position is no whole number; correct it")
    overlong = overlong_id(table["variant_id"])
    if overlong is not None:
        raise GenotypeError(f"{lines.place(overlong)}: {OVERLONG_ID}")
    return table


class UnreadableRowError(ValueError):
    """A cell of row `row` is no number; whoever knows what the row is says so."""

    def __init__(self, row: int) -> None:
        super().__init__("a cell is no number")
        self.row = row


def numbers(text: Bytes, starts: Positions, ends: Positions, missing: str) -> NDArray[np.float32]:
    """Cells [rows, columns] as finite numbers, NaN where one reads `missing`; UnreadableRowError for anything else."""
    read = _numbers(text, starts, ends, missing)
    if read is None:
        raise UnreadableRowError(
            next(row for row in range(len(starts)) if _numbers(text, starts[[row]], ends[[row]], missing) is None)
        )
    return read


def _numbers(text: Bytes, starts: Positions, ends: Positions, missing: str) -> NDArray[np.float32] | None:
    if (starts == ends).any():
        return None
    try:
        column = pl.read_csv(
            joined(text, starts.ravel(), ends.ravel()),
            has_header=False,
            schema={"cell": pl.Float32},
            null_values=[missing],
            quote_char=None,
        )["cell"]
    except pl.exceptions.PolarsError:
        return None  # its message quotes the cell
    if len(column) != starts.size or not column.is_finite().fill_null(True).all():
        return None
    return column.fill_null(float("nan")).to_numpy().reshape(starts.shape)


def open_text(path: Path) -> BinaryIO:
    """The file's bytes, unpacked if its name ends in .gz. GenotypeError if name and content disagree, or it is cut."""
    with path.open("rb") as raw:
        head = raw.read(18)
        packed = head.startswith(GZIP_MAGIC)
        if not head:
            raise GenotypeError(f"{path}: the file is empty; export it again")
        if path.name.endswith(".gz") and not packed:
            raise GenotypeError(f"{path}: the name says gzip, the content is not; run bgzip on it or drop .gz")
        if packed and not path.name.endswith(".gz"):
            raise GenotypeError(f"{path}: the content is gzip; add .gz to its name")
        if packed and head[12:14] == b"BC":
            raw.seek(-min(len(BGZF_END), raw.seek(0, 2)), 2)
            if raw.read() != BGZF_END:
                raise GenotypeError(f"{path}: the end of the bgzip file is missing, it was cut; copy it again")
    return cast(BinaryIO, gzip.open(path)) if packed else path.open("rb")


def read_line(file: BinaryIO, path: Path, number: int) -> bytes:
    """The next line, number `number`, without its end, b"" after the last; errors as of `line_blocks`."""
    line = _read(file.readline, path, LARGEST_LINE + 1)
    if len(line) > LARGEST_LINE:
        raise _overlong(path, number)
    if line and not line.endswith(b"\n"):
        raise _cut(path)
    return line.rstrip(b"\r\n")


def sample_names(cells: Sequence[bytes], path: Path, line: int) -> tuple[str, ...]:
    """Names of the samples in the header, line `line`; GenotypeError if they are not UTF-8, or as `require_samples`."""
    try:
        names = [name.decode() for name in cells]
    except UnicodeDecodeError:
        raise GenotypeError(f"{path}, line {line}: the header is not UTF-8; write it so") from None
    return require_samples(names, path)


def line_blocks(file: BinaryIO, path: Path, *, size: int, first: int) -> Iterator[Lines]:
    """What is left of `file` as blocks of at most `size` lines and BLOCK_BYTES bytes (or one line, if that is longer).

    first: number of the line that comes next. Raises GenotypeError for a damaged gzip stream, for a line of more than
    LARGEST_LINE unpacked bytes and for a last line without a line end: it cannot be told from a line that was cut in
    the middle of a number.
    """
    rest: list[bytes] = []
    held = 0
    while data := _read(file.read, path, BLOCK_BYTES):
        cut = data.rfind(b"\n") + 1
        if held + (data.index(b"\n") + 1 if cut else len(data)) > LARGEST_LINE:
            raise _overlong(path, first)
        if cut:
            for lines in _split(b"".join([*rest, data[:cut]]), path, size, first):
                yield lines
                first += len(lines.starts)
            rest, held = [], 0
        rest.append(data[cut:])
        held += len(rest[-1])
    if any(rest):
        raise _cut(path)


def _split(whole: bytes, path: Path, size: int, first: int) -> Iterator[Lines]:
    text = np.frombuffer(whole + PADDING, dtype=np.uint8)
    line_ends = np.flatnonzero(text[: len(whole)] == LINE_END)
    starts = np.append(0, line_ends[:-1] + 1)
    for low in range(0, len(starts), size):
        high = min(low + size, len(starts))
        base, stop = starts[low], line_ends[high - 1]
        ends = line_ends[low:high] - base
        part = text[base : stop + len(PADDING) + 1]
        ends = ends - ((ends > starts[low:high] - base) & (part[ends - 1] == RETURN))
        yield Lines(path, part, starts[low:high] - base, ends, first + low)


def _read(take: Callable[[int], bytes], path: Path, size: int) -> bytes:
    try:
        return take(size)
    except (OSError, EOFError, zlib.error):
        raise GenotypeError(f"{path}: it cannot be read to its end, damaged or cut; copy it again") from None


def _overlong(path: Path, number: int) -> GenotypeError:
    return GenotypeError(
        f"{path}, line {number}: the line is longer than {LARGEST_LINE >> 20} MiB; the line ends are lost, export the "
        "file again"
    )


def _cut(path: Path) -> GenotypeError:
    return GenotypeError(
        f"{path}: the last line has no line end, the file was cut; copy it again (or add the line end)"
    )
