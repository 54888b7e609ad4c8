"""Rules of what the chunks hold, and the walk that decodes each of them once, strip by strip (§2, §4, §5, §6)."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chronozarr_core.chunks import ChunkFormat
from chronozarr_core.errors import CorruptStoreError
from chronozarr_core.frames import Strip
from chronozarr_core.json_values import shown
from chronozarr_core.layout import data_key, plane_key
from chronozarr_core.plan import default_workers
from chronozarr_core.progress import Progress
from chronozarr_core.pyramid import PyramidBuilder
from chronozarr_core.storage import StorageError
from chronozarr_core.temporal import Group, absolute_difference_sum, groups, reconstruct
from chronozarr_core.validate.rules import Found, Judge, UnknownError, rule
from chronozarr_core.validate.subject import ROLES, Subject
from chronozarr_core.volatility import volatility

_FLOAT32_ROUNDING = 1e-6


@dataclass(frozen=True)
class StoredChunk:
    """One chunk and what it is to hold: ``inside`` rows and columns of pixels, one of ``padding`` beyond them."""

    subject: Subject
    key: str
    role: str
    chunks: ChunkFormat
    inside: tuple[int, int]
    padding: tuple[int | float, ...]

    @property
    def section(self) -> str:
        return ROLES[self.role].section

    @cached_property
    def decoded(self) -> NDArray[Any] | CorruptStoreError | None:
        """All elements, or why they cannot be decoded; None where there is no object."""
        try:
            encoded = self.subject.storage.get(self.key)
            return None if encoded is None else self.chunks.decode(encoded, self.key)
        except CorruptStoreError as error:
            return error
        except StorageError as error:
            return CorruptStoreError(str(error))

    @property
    def stored(self) -> NDArray[Any]:
        """All elements of an object that is there and decodes."""
        if not isinstance(self.decoded, np.ndarray):
            raise UnknownError(f"{self.key} holds no values")
        return self.decoded

    @property
    def sound(self) -> bool:
        return not isinstance(self.decoded, CorruptStoreError)

    @property
    def pixels(self) -> NDArray[Any]:
        """The elements inside the array, shape (..., rows, cols); fill where they cannot be known."""
        decoded = self.decoded if isinstance(self.decoded, np.ndarray) else self.chunks.decode(None, self.key)
        rows, cols = self.inside
        return decoded[0, ..., :rows, :cols]


@rule(None, StoredChunk)
def chunk_decodes(chunk: StoredChunk) -> Found:
    """A chunk that is there decodes to its full size (§2.1)."""
    if isinstance(chunk.decoded, CorruptStoreError):
        yield chunk.key, str(chunk.decoded)


@rule("§2.1", StoredChunk)
def padding_is_fill_or_0(chunk: StoredChunk) -> Found:
    """Elements outside the array are fill_value, or 0 in residuals (§2.1)."""
    rows, cols = chunk.inside
    outside = (chunk.stored[..., rows:, :], chunk.stored[..., :rows, cols:])
    wrong = np.concatenate([part[~np.isin(part, chunk.padding)] for part in outside])
    if wrong.size:
        yield chunk.key, f"holds {wrong[0]} beyond the array's edge: expected {chunk.padding[0]}"


@rule("§2.4", StoredChunk)
def mask_is_0_or_1(chunk: StoredChunk) -> Found:
    """Values of a mask are 0 and 1 (§2.4)."""
    if chunk.role == "mask" and chunk.stored.max() > 1:
        yield chunk.key, f"holds {chunk.stored.max()}: expected 0 (invalid) and 1 (valid)"


class Row(NamedTuple):
    """A row of cells of one timestep and level with its true values; not ``sound`` where a chunk is broken."""

    level: int
    cell_row: int
    strip: Strip
    sound: bool


@dataclass(frozen=True)
class CoarseRow:
    """A row of cells as it is stored, and as it follows from the level below."""

    subject: Subject
    t: int
    level: int
    cell_row: int
    found: Strip
    expected: Strip

    def data_key(self, col: int) -> str:
        return data_key(str(self.level), self.subject.variable, self.t, self.cell_row, col)

    def plane_key(self, name: str, col: int) -> str:
        return plane_key(str(self.level), name, self.t, self.cell_row, col)

    def cells_with(self, wrong: NDArray[np.bool_]) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Each cell with a wrong pixel, and the first of them, as an index into the strip."""
        size = self.subject.chunk_size
        for col in range(-(-wrong.shape[-1] // size)):
            for first in np.argwhere(wrong[..., col * size : (col + 1) * size])[:1]:
                yield col, (*first[:-1], first[-1] + col * size)

    def message(self, found: NDArray[Any], expected: NDArray[Any], at: tuple[int, ...], rule: str) -> str:
        row, col = self.cell_row * self.subject.chunk_size + int(at[-2]), int(at[-1])
        band = f"band {at[0]}, " if len(at) > 2 else ""
        return f"{band}pixel ({row}, {col}) is {found[at]}: expected {expected[at]}, {rule} of level {self.level - 1}"


@rule("§6", CoarseRow)
def level_is_the_block_mean(row: CoarseRow) -> Found:
    """Level k is the block mean of the valid pixels of level k-1 (§6)."""
    found, expected = row.found.data, row.expected.data
    wrong = ~_same(found, expected)
    if row.expected.mask is not None:
        wrong &= row.expected.mask != 0
    for col, at in row.cells_with(wrong):
        yield row.data_key(col), row.message(found, expected, at, "the block mean")


def _same(found: NDArray[Any], expected: NDArray[Any]) -> NDArray[np.bool_]:
    """Equal; for floats up to float32 rounding, and NaN, which the specification does not interpret, is any value."""
    if found.dtype.kind != "f":
        return np.asarray(found == expected)
    finite = np.abs(expected[np.isfinite(expected)])
    cancelled = 1e-12 * float(finite.max(initial=0))
    close = np.isclose(found.astype(np.float64), expected.astype(np.float64), rtol=_FLOAT32_ROUNDING, atol=cancelled)
    return np.asarray(close | np.isnan(expected))


@rule("§2.4", CoarseRow)
def mask_is_the_maximum(row: CoarseRow) -> Found:
    """Level k mask is the block maximum (§2.4)."""
    found, expected = row.found.mask, row.expected.mask
    if found is not None and expected is not None:
        for col, at in row.cells_with(found != expected):
            yield row.plane_key("mask", col), row.message(found, expected, at, "the maximum")


@rule("§2.5", CoarseRow)
def coverage_is_the_rounded_mean(row: CoarseRow) -> Found:
    """Level k coverage is (sum + 2) // 4 (§2.5)."""
    found, expected = row.found.coverage, row.expected.coverage
    if found is not None and expected is not None:
        for col, at in row.cells_with(found != expected):
            yield row.plane_key("coverage", col), row.message(found, expected, at, "the rounded mean")


@dataclass(frozen=True)
class Volatility:
    """Volatility as it follows from the differences of a star-delta store; NaN where a chunk is broken."""

    subject: Subject
    expected: NDArray[np.float32]


@rule("§5", Volatility)
def volatility_is_the_mean_difference(volatilities: Volatility) -> Found:
    """Volatility is the clipped mean difference to the references (§5)."""
    expected = volatilities.expected
    for array in volatilities.subject.of_role("volatility"):
        found = volatilities.subject.coordinate(array)
        same = np.isclose(found, expected, rtol=_FLOAT32_ROUNDING, atol=1e-12) | np.isnan(expected)
        for at in np.argwhere(~same)[:1]:
            cell = tuple(int(n) for n in at)
            yield array.key, f"cell {cell} is {shown(float(found[cell]))}: expected {float(expected[cell])!r}"


class Walk:
    """Decodes every chunk of a store whose documents are sound, in memory of a few strips per timestep of a group."""

    def __init__(self, subject: Subject, judge: Judge, progress: Progress | None) -> None:
        self._subject, self._judge, self._progress = subject, judge, progress
        self._grids = [subject.grid(level) for level in range(len(subject.level_paths))]
        self._rows, cols = subject.cells(0)
        self._sums = np.zeros((self._rows, cols), np.float64)
        self._done = 0
        self._data = subject.data_format("")
        self._plane = subject.plane_format("")

    def run(self) -> None:
        """Judge every chunk, every coarser level and, in a star-delta store, the volatility."""
        with ThreadPoolExecutor(default_workers()) as self._pool:
            for group in groups(self._subject.n_time, self._subject.references):
                self._group(group)
        if self._subject.references:
            self._judge.judge(Volatility(self._subject, self._volatility()))

    def _volatility(self) -> NDArray[np.float32]:
        subject = self._subject
        n_delta = len(subject.references)
        values = volatility(self._sums, n_delta, subject.n_band, self._grids[0], subject.chunk_size)
        return np.where(np.isnan(self._sums), np.float32(np.nan), values)

    def _group(self, group: Group) -> None:
        histories = {t: _History(self, t) for t in group.timesteps}
        for cell_row in range(self._rows):
            anchor = histories[group.anchor].advance(cell_row, None)
            self._step()
            for t in group.members:
                self._add_differences(histories[t].advance(cell_row, anchor)[0], anchor[0])
                self._step()

    def _step(self) -> None:
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, self._subject.n_time * self._rows)

    def _add_differences(self, row: Row, anchor: Row) -> None:
        sums, size = self._sums[row.cell_row], self._subject.chunk_size
        for col in range(len(sums)):
            cols = slice(col * size, (col + 1) * size)
            sums[col] += absolute_difference_sum(row.strip.data[:, :, cols], anchor.strip.data[:, :, cols])
        if not (row.sound and anchor.sound):
            sums[:] = np.nan

    def builder(self) -> PyramidBuilder:
        """What halves the level-0 strips of a timestep."""
        return PyramidBuilder(self._grids, self._subject.chunk_size, self._subject.nodata)

    def judge(self, t: int, row: Row, expected: Strip) -> None:
        """Compare a row of a coarser level with what follows from the level below."""
        self._judge.judge(CoarseRow(self._subject, t, row.level, row.cell_row, row.strip, expected))

    def read(self, t: int, level: int, cell_row: int, anchor: Row | None) -> Row:
        """A row of cells with its true values; each of its chunks is judged."""
        data, sound = self._read("data", t, level, cell_row, anchor is not None)
        if anchor is not None:
            data, sound = reconstruct(data, anchor.strip.data), sound and anchor.sound
        planes: dict[str, NDArray[np.uint8] | None] = {"mask": None, "coverage": None}
        for name in self._subject.planes:
            planes[name], known = self._read(name, t, level, cell_row, False)
            sound = sound and known
        mask = planes["mask"]
        if mask is not None:
            sound = sound and not (mask > 1).any()
        return Row(level, cell_row, Strip(data, mask, planes["coverage"]), sound)

    def _read(self, role: str, t: int, level: int, cell_row: int, refers: bool) -> tuple[NDArray[Any], bool]:
        cells = [self._chunk(role, t, level, cell_row, col, refers) for col in range(self._subject.cells(level)[1])]
        list(self._pool.map(lambda chunk: chunk.decoded, cells))
        for chunk in cells:
            self._judge.judge(chunk)
        return np.concatenate([chunk.pixels for chunk in cells], axis=-1), all(chunk.sound for chunk in cells)

    def _chunk(self, role: str, t: int, level: int, row: int, col: int, refers: bool) -> StoredChunk:
        subject, path, grid = self._subject, self._subject.level_paths[level], self._grids[level]
        size = subject.chunk_size
        inside = min(size, grid.height - row * size), min(size, grid.width - col * size)
        if role == "data":
            # §2.1 says 0 in residuals, and fill_value in every edge chunk; writers follow the one or the other.
            padding = (0, self._data.fill_value) if refers else (self._data.fill_value,)
            key = data_key(path, subject.variable, t, row, col)
            return StoredChunk(subject, key, role, self._data, inside, padding)
        return StoredChunk(subject, plane_key(path, role, t, row, col), role, self._plane, inside, (0,))


class _History:
    """One timestep on its way from the top row of cells to the bottom one."""

    def __init__(self, walk: Walk, t: int) -> None:
        self._walk, self._t = walk, t
        self._builder = walk.builder()
        self._sound = True

    def advance(self, cell_row: int, anchor: list[Row] | None) -> list[Row]:
        """Read the next row of cells of level 0, and those of coarser levels that it completes."""
        first = self._walk.read(self._t, 0, cell_row, anchor[0] if anchor else None)
        self._sound = self._sound and first.sound
        rows = [first]
        for built in self._builder.push(first.strip):
            if built.level:
                true = anchor[len(rows)] if anchor else None
                rows.append(self._walk.read(self._t, built.level, built.cell_row, true))
                if self._sound and rows[-1].sound:
                    self._walk.judge(self._t, rows[-1], built.strip)
        return rows
