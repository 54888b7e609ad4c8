"""A drawn river whose bends migrate month by month: the demo's scene, in pure numpy and the same every time.

Lengths are in units of which the whole scene has ``EXTENT``; a picture of that many pixels has one pixel a unit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Plane = NDArray[np.float32]
Line = NDArray[np.float64]
"""Points of a centreline in flow direction, shape (point, 2), as row and column in units."""
Scene = dict[str, NDArray[Any]]
"""Planes of one month by name; see :func:`draw_river`."""

MONTHS = 24
EXTENT = (600.0, 700.0)
BANDS = ("blue", "green", "red", "nir")
SCALE = 1e-4

HALF_WIDTH = 11.0
POINT_SPACING = 6.0
SPIN_UP_MONTHS = 274
MIGRATION = 10.0
CURVATURE_MEMORY = 35.0
OXBOW_MONTHS = 110
GROWN_MONTHS = 130
NOISE = 2e-4

FOREST = (0.021, 0.046, 0.026, 0.300)
PALMS = (0.031, 0.076, 0.040, 0.390)
MARSH = (0.034, 0.062, 0.048, 0.210)
PIONEERS = (0.045, 0.108, 0.068, 0.420)
SAND = (0.150, 0.205, 0.245, 0.320)
WATER = (0.074, 0.112, 0.136, 0.070)
LAKE = (0.036, 0.050, 0.034, 0.030)
SOIL = (0.080, 0.115, 0.150, 0.260)

FIELDS = (
    (-1, 566, 92, 34, 52, 0.1),
    (-1, 562, 146, 30, 40, 0.1),
    (3, 490, 560, 34, 46, -0.2),
    (6, 34, 330, 30, 46, 0.2),
    (9, 530, 566, 36, 50, -0.2),
    (13, 568, 198, 34, 48, 0.1),
    (15, 484, 612, 30, 44, -0.2),
    (18, 44, 384, 28, 40, 0.2),
    (20, 524, 622, 34, 46, -0.2),
)
"""Clearings: month of felling, row and column of the centre, height, width, rotation in radians."""

CLOUDS = {1: 0.10, 4: 0.16, 9: 0.22, 13: 0.12, 18: 0.30, 22: 0.08}
"""Share of the picture under cloud, by month."""

SWATHS = {6: 0.82, 15: 0.70}
"""Share of the picture that the satellite saw, by month."""


@dataclass(frozen=True)
class Oxbow:
    """A loop the river left in ``month`` (the first picture is month 0)."""

    line: Line
    month: int


def draw_river(month: int, shape: tuple[int, int]) -> Scene:
    """The scene of one month, 0 to 23.

    Returns
    -------
    dict of planes of ``shape``: ``blue``, ``green``, ``red``, ``nir`` as uint16 reflectance in units of 1e-4, never 0
    where seen and 0 under gaps; ``valid``, bool, False under clouds and beyond the satellite's swath.
    """
    reflectance = _reflectance(month, shape)
    valid = _valid(month, shape)
    counts = np.where(valid, np.clip(np.rint(reflectance / SCALE), 1, 10000), 0).astype(np.uint16)
    return {**dict(zip(BANDS, counts, strict=True)), "valid": valid}


def _reflectance(month: int, shape: tuple[int, int]) -> Plane:
    """Reflectance by band, shape (band, y, x): land, then lakes, then the river, then sensor noise."""
    season = _season(month)
    growth = np.array([1, 1 + 0.03 * season, 1, 1 + 0.06 * season], np.float32)
    scene = _land(month, shape) * growth[:, None, None]
    for oxbow in oxbows(month):
        scene = _blend(scene, LAKE, _lake_cover(oxbow, month, shape))
    silt = 1 + 0.06 * (_noise(shape, 18, seed=31) + season)
    scene = _blend(
        scene, WATER, _cover(centreline(month), shape, HALF_WIDTH + 1.5 * season), np.asarray(silt, np.float32)
    )
    return scene + _sensor_noise(month, shape)


def _season(month: int) -> float:
    """1 in the rains, when the water is high and the leaves are fresh; -1 half a year later."""
    return math.sin(2 * math.pi * month / 12)


def _blend(
    scene: Plane, color: tuple[float, ...], share: Plane, shade: NDArray[np.floating[Any]] | float = 1.0
) -> Plane:
    colored = np.array(color, np.float32)[:, None, None] * np.asarray(shade, np.float32)
    return np.asarray(scene + share * (colored - scene), np.float32)


def _land(month: int, shape: tuple[int, int]) -> Plane:
    """Forest, the ages of growth on what the river left, and clearings."""
    land, crowns = _forest(shape), _crowns(shape)
    for share, color in _growth(month, shape):
        land = _blend(land, color, share, 1 + 0.6 * (crowns - 1))
    return _clearings(land, month, shape)


@lru_cache(maxsize=2)
def _forest(shape: tuple[int, int]) -> Plane:
    """What grows where the river never was: forest, palms, marsh."""
    land = np.broadcast_to(np.array(FOREST, np.float32)[:, None, None], (len(BANDS), *shape))
    land = _blend(land, PALMS, _step(_noise(shape, 90, seed=13) + 0.4 * _noise(shape, 22, seed=14), 0.1, 0.9))
    land = _blend(land, MARSH, _step(_noise(shape, 130, seed=15) + 0.3 * _noise(shape, 26, seed=16), 0.7, 1.2))
    return land * _crowns(shape)


def _crowns(shape: tuple[int, int]) -> Plane:
    """Light and shade of tree crowns."""
    return 1 + 0.16 * _noise(shape, 2.5, seed=11) + 0.10 * _noise(shape, 7, seed=12)


def _growth(month: int, shape: tuple[int, int]) -> list[tuple[Plane, tuple[float, ...]]]:
    """What covers ground the river left: palms after years, pioneers after months, sand at first."""
    age = (month - _last_flooded(shape)[month]).astype(np.float32)
    age = age * np.exp(0.25 * _noise(shape, 14, seed=21)) + 0.8 * _noise(shape, 4, seed=22)
    ridges = 0.85 + 0.15 * np.sin(age * 1.6)  # scroll bars: one ridge for each season of deposits
    return [
        (0.75 * (1 - _step(age, 70, GROWN_MONTHS)) * ridges, PALMS),
        (0.9 * (1 - _step(age, 14, 60)) * ridges, PIONEERS),
        (1 - _step(age, 4, 11), SAND),
    ]


def _clearings(land: Plane, month: int, shape: tuple[int, int]) -> Plane:
    rows, cols = _coordinates(shape)
    for felled, row, col, height, width, angle in FIELDS:
        if felled > month:
            continue
        along = np.cos(angle) * (cols - col) + np.sin(angle) * (rows - row)
        across = np.cos(angle) * (rows - row) - np.sin(angle) * (cols - col)
        edge = np.minimum(height / 2 - np.abs(across), width / 2 - np.abs(along))
        furrows = 1 + 0.08 * np.sin(across * 1.3) + 0.06 * _noise(shape, 5, seed=41)
        bare = float(np.exp(-(month - felled) / 6))
        color = tuple(bare * soil + (1 - bare) * crop for soil, crop in zip(SOIL, PIONEERS, strict=True))
        land = _blend(land, color, 0.85 * _step(edge, -0.5, 1.5), furrows)
    return land


def _valid(month: int, shape: tuple[int, int]) -> NDArray[np.bool_]:
    valid = np.ones(shape, bool)
    if month in CLOUDS:
        veil = _noise(shape, 110, seed=500 + month) + 0.45 * _noise(shape, 30, seed=600 + month)
        veil = veil + 0.15 * _noise(shape, 8, seed=700 + month)
        valid &= veil < np.quantile(veil, 1 - CLOUDS[month])
    if month in SWATHS:
        rows, cols = _coordinates(shape)
        valid &= cols + 0.25 * (rows - EXTENT[0] / 2) < SWATHS[month] * EXTENT[1]
    return valid


def _sensor_noise(month: int, shape: tuple[int, int]) -> Plane:
    generator = np.random.default_rng(900 + month)
    return NOISE * generator.standard_normal((len(BANDS), *shape), np.float32)


def _coordinates(shape: tuple[int, int]) -> tuple[Plane, Plane]:
    """Rows and columns of pixel centres in units, shapes (y, 1) and (1, x)."""
    rows = (np.arange(shape[0], dtype=np.float32) + 0.5) * np.float32(EXTENT[0] / shape[0])
    cols = (np.arange(shape[1], dtype=np.float32) + 0.5) * np.float32(EXTENT[1] / shape[1])
    return rows[:, None], cols[None, :]


def _step(values: Plane, low: float, high: float) -> Plane:
    """0 below ``low``, 1 above ``high``, smooth between."""
    share = np.clip((values - low) / (high - low), 0, 1)
    return np.asarray(share * share * (3 - 2 * share), np.float32)


@lru_cache(maxsize=24)
def _noise(shape: tuple[int, int], size: float, seed: int) -> Plane:
    """Smooth noise of about unit variance with bumps of ``size`` units, fixed in space."""
    rows, cols = (axis.ravel() / size + 2 for axis in _coordinates(shape))
    lattice = np.random.default_rng(seed).standard_normal((int(EXTENT[0] / size) + 6, int(EXTENT[1] / size) + 6))
    smooth = _bumps(rows, lattice.shape[0]) @ lattice @ _bumps(cols, lattice.shape[1]).T
    return np.asarray(smooth / 0.88, np.float32)


def _bumps(positions: NDArray[np.float32], length: int) -> NDArray[np.float64]:
    """Weights of a bell on each lattice point, shape (position, lattice point): round, so the lattice does not show."""
    distance = positions[:, None] - np.arange(length)[None, :]
    return np.exp(-((distance / 0.7) ** 2))


def centreline(month: int) -> Line:
    """Where the river runs."""
    return _history()[0][SPIN_UP_MONTHS + month]


def oxbows(month: int) -> list[Oxbow]:
    """The loops that the river has left and that still hold water."""
    return [oxbow for oxbow in _history()[1] if oxbow.month <= month < oxbow.month + OXBOW_MONTHS]


@lru_cache(maxsize=1)
def _history() -> tuple[tuple[Line, ...], tuple[Oxbow, ...]]:
    """Centrelines month by month from the spin-up on, and every loop cut off."""
    lines, loops = [_first_line()], []
    for month in range(1 - SPIN_UP_MONTHS, MONTHS):
        line, cut = _cut_off(_migrate(lines[-1]))
        loops += [Oxbow(loop, month) for loop in cut]
        lines.append(line)
    return tuple(lines), tuple(loops)


def _first_line() -> Line:
    """A gently winding river from left to right, beginning and ending outside of the scene."""
    cols = np.arange(-260.0, EXTENT[1] + 260.0, POINT_SPACING)
    rows = EXTENT[0] / 2 + 26 * np.sin(cols / 43) + 20 * np.sin(cols / 71 + 1.0) + 10 * np.sin(cols / 29 + 2.0)
    return np.stack([rows, cols], axis=1)


def _migrate(line: Line) -> Line:
    """Move each point sideways by the curvature upstream of it, which is where the flow gained its swing."""
    step = np.gradient(line, axis=0)
    length = np.hypot(*step.T)
    tangent = step / length[:, None]
    heading = np.unwrap(np.arctan2(tangent[:, 0], tangent[:, 1]))
    curvature = _smooth(np.gradient(heading) / length, 3)
    rate = 2.5 * _upstream_mean(curvature) - curvature
    ends = np.clip(np.minimum(np.arange(len(line)), np.arange(len(line))[::-1]) / 12, 0, 1)
    outward = np.stack([-tangent[:, 1], tangent[:, 0]], axis=1)
    shift = MIGRATION * (rate * HALF_WIDTH * ends)[:, None] * outward
    return _resample(line + shift * _freedom(line, shift))


def _freedom(line: Line, shift: Line) -> Line:
    """The valley's walls hold the river: full freedom towards its middle, none at the picture's edge."""
    offset = (line[:, 0] - EXTENT[0] / 2) / (EXTENT[0] / 2)
    away = np.sign(offset) == np.sign(shift[:, 0])
    hold = np.where(away, np.clip(1 - np.abs(offset / 0.85) ** 3, 0, 1), 1)
    return np.stack([hold, np.ones_like(hold)], axis=1)


def _upstream_mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean over the points upstream, the near ones counting most."""
    reach = np.arange(0, 5 * CURVATURE_MEMORY, POINT_SPACING)
    weights = np.exp(-reach / CURVATURE_MEMORY)
    return np.convolve(values, weights / weights.sum())[: len(values)]


def _smooth(values: NDArray[np.float64], passes: int) -> NDArray[np.float64]:
    for _ in range(passes):
        padded = np.pad(values, 1, mode="edge")
        values = (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4
    return values


def _resample(line: Line, spacing: float = POINT_SPACING) -> Line:
    """The same line with points at even distances."""
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(line, axis=0).T))])
    even = np.linspace(0, along[-1], max(2, round(along[-1] / spacing) + 1))
    return np.stack([np.interp(even, along, axis) for axis in line.T], axis=1)


def _cut_off(line: Line) -> tuple[Line, list[Line]]:
    """Where two reaches touch, take the short way; return the new line and the loops left."""
    loops = []
    while (neck := _neck(line)) is not None:
        start, stop = neck
        loops.append(line[start : stop + 1])
        line = _resample(np.concatenate([line[: start + 1], line[stop:]]))
        line = np.stack([_smooth(axis, 4) for axis in line.T], axis=1)
    return line, loops


def _neck(line: Line) -> tuple[int, int] | None:
    """First and last point of a loop whose ends are nearer than the river is wide; None where there is none."""
    rows, cols = line.astype(np.float32).T
    squares = (rows[:, None] - rows) ** 2 + (cols[:, None] - cols) ** 2
    apart = round(8 * HALF_WIDTH / POINT_SPACING)
    close = np.argwhere(np.triu(squares < np.float32(2.1 * HALF_WIDTH) ** 2, apart))
    if not len(close):
        return None
    start, stop = close[np.argmax(close[:, 1] - close[:, 0])]
    return int(start), int(stop)


def _cover(line: Line, shape: tuple[int, int], half_width: float | NDArray[np.float64]) -> Plane:
    """Share of each pixel within ``half_width`` (one, or one for each point) of a line; edges are one unit soft."""
    inside = np.full(shape, -1.0, np.float32)
    dense = _resample(line, 2.5)
    along = np.linspace(0, 1, len(line))
    widths = np.interp(np.linspace(0, 1, len(dense)), along, np.broadcast_to(half_width, len(line)))
    rows, cols = _coordinates(shape)
    for (row, col), width in zip(dense, widths, strict=True):
        window = _window(row, col, width + 1, shape)
        distance = np.hypot(rows[window[0]] - np.float32(row), cols[:, window[1]] - np.float32(col))
        np.maximum(inside[window], np.float32(width) - distance, out=inside[window])
    return np.asarray(np.clip(inside + 0.5, 0, 1), np.float32)


def _window(row: float, col: float, reach: float, shape: tuple[int, int]) -> tuple[slice, slice]:
    """The pixels within ``reach`` units of a point, in a square."""
    rows, cols = shape[0] / EXTENT[0], shape[1] / EXTENT[1]
    return (
        slice(max(0, int((row - reach) * rows)), max(0, int((row + reach) * rows) + 1)),
        slice(max(0, int((col - reach) * cols)), max(0, int((col + reach) * cols) + 1)),
    )


def _lake_cover(oxbow: Oxbow, month: int, shape: tuple[int, int]) -> Plane:
    """An oxbow silts up from its ends, and shrinks."""
    age = (month - oxbow.month) / OXBOW_MONTHS
    along = np.linspace(0, 1, len(oxbow.line))
    ends = _step(np.minimum(along, 1 - along).astype(np.float32), 0.6 * age - 0.06, 0.6 * age + 0.14)
    return _cover(oxbow.line, shape, HALF_WIDTH * (1 - 0.6 * age) * ends.astype(np.float64))


@lru_cache(maxsize=2)
def _last_flooded(shape: tuple[int, int]) -> NDArray[np.int16]:
    """For each month, when each pixel was last under the river, shape (month, y, x); long ago where never."""
    latest = np.full(shape, -1000, np.int16)
    months = np.empty((MONTHS, *shape), np.int16)
    for month in range(-GROWN_MONTHS, MONTHS):
        latest[_cover(centreline(month), shape, HALF_WIDTH) > 0.5] = month
        if month >= 0:
            months[month] = latest
    return months
