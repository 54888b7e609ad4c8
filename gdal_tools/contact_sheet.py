"""Contact sheets: dates in columns, levels in rows, to see a store at a glance."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chronozarr_core.errors import SelectionError
from chronozarr_core.instants import format_instant
from chronozarr_core.store import ChronoStore
from gdal_tools.pictures import Image, ImageDraw, ImageFont

TRUE_COLOR = ("red", "green", "blue")
TILE = 360
"""Longest edge of a picture, in pixels of the sheet."""
MARGIN, GAP, LABEL_WIDTH = 24, 10, 150
TITLE_SIZE, HEADING_SIZE, LABEL_SIZE = 30, 20, 17
PAPER, INK, FAINT_INK = (250, 249, 246), (28, 28, 28), (105, 105, 105)
HATCH = ((206, 206, 206), (178, 178, 178))

Limits = tuple[float, float]
Picture = NDArray[np.uint8]
"""Red, green, blue and validity (255 valid, 0 missing), shape (y, x, 4)."""


@dataclass(frozen=True)
class Panel:
    """What of a store is shown: one row for each level, one column for each date.

    Attributes
    ----------
    dates : timesteps
    bands : indices of red, green and blue, or of one band shown in grey
    limits : stored values shown black and white, the same for every picture
    """

    store: ChronoStore
    heading: str
    dates: tuple[int, ...]
    levels: tuple[int, ...]
    bands: tuple[int, ...]
    limits: Limits


def contact_sheet(
    store: ChronoStore,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    dates: int | Sequence[int] = 6,
    levels: Sequence[int] | None = None,
    bands: Sequence[int | str] | None = None,
) -> Path:
    """Draw dates and levels of a store to a PNG; see :func:`make_panel` for what is shown."""
    sheet = draw_sheet(title or store.location, [make_panel(store, dates=dates, levels=levels, bands=bands)])
    sheet.save(path)
    return Path(path)


def make_panel(
    store: ChronoStore,
    *,
    heading: str | None = None,
    dates: int | Sequence[int] = 6,
    levels: Sequence[int] | None = None,
    bands: Sequence[int | str] | None = None,
) -> Panel:
    """Choose what of a store a sheet shows.

    Parameters
    ----------
    heading : text above the pictures; by default what the store is
    dates : timesteps, or how many to take at even distances
    levels : pyramid levels; by default all
    bands : one band, shown in grey, or three for red, green and blue, by index or name; by default those with these
        common names (§3.6), else the first three, else the first

    Raises
    ------
    SelectionError
        The store has no such timestep, level or band, or neither one nor three bands are given.
    """
    chosen = _chosen_dates(store, dates)
    shown = tuple(range(len(store.levels))) if levels is None else _members(levels, len(store.levels), "level")
    colors = default_bands(store) if bands is None else _chosen_bands(store, bands)
    limits = stretch(store, chosen, max(shown), colors)
    return Panel(store, heading or describe(store), chosen, shown, colors, limits)


def describe(store: ChronoStore) -> str:
    """One line: data type, bands, CRS, encoding, validity."""
    missing = "mask" if store.has_mask else "no nodata" if store.nodata is None else f"nodata {store.nodata:.12g}"
    bands = ", ".join(store.metadata.band_names[:6]) + (", ..." if len(store.bands) > 6 else "")
    encoding = store.metadata.temporal.encoding
    return f"{store.dtype.name}  |  {bands}  |  {store.crs}  |  {len(store.times)} dates  |  {encoding}  |  {missing}"


def _members(chosen: Sequence[int], count: int, what: str) -> tuple[int, ...]:
    for index in chosen:
        if not -count <= index < count:
            raise SelectionError(f"{what} {index} does not exist: the store has {count}, 0 to {count - 1}")
    if not chosen:
        raise SelectionError(f"no {what} is chosen: give at least one")
    return tuple(index % count for index in chosen)


def _chosen_dates(store: ChronoStore, dates: int | Sequence[int]) -> tuple[int, ...]:
    count = len(store.times)
    if not isinstance(dates, int):
        return _members(dates, count, "timestep")
    return tuple(int(t) for t in np.unique(np.linspace(0, count - 1, max(1, dates)).round().astype(int)))


def default_bands(store: ChronoStore) -> tuple[int, ...]:
    """Red, green and blue by common name, then by name; else the first three; one or two bands: the first."""
    names = [band.common_name or band.name.lower() for band in store.bands]
    if set(TRUE_COLOR) <= set(names):
        return tuple(names.index(color) for color in TRUE_COLOR)
    return (0, 1, 2) if len(names) >= 3 else (0,)


def _chosen_bands(store: ChronoStore, bands: Sequence[int | str]) -> tuple[int, ...]:
    names = store.metadata.band_names
    for band in bands:
        if isinstance(band, str) and band not in names:
            raise SelectionError(f"band {band!r} does not exist: the store has {', '.join(names)}")
    if len(bands) not in (1, 3):
        raise SelectionError(f"{len(bands)} bands are given: expected one (grey) or three (red, green, blue)")
    return _members([names.index(band) if isinstance(band, str) else band for band in bands], len(names), "band")


def stretch(store: ChronoStore, dates: Sequence[int], lod: int, bands: Sequence[int]) -> Limits:
    """Stored values to show black and white: 2nd and 98th percentile of the valid values of all dates and bands.

    Colours of 8 bits are shown as they are stored.
    """
    if store.dtype == np.uint8 and len(bands) == 3:
        return 0.0, 255.0
    values = np.concatenate([_valid_values(store, t, lod, bands) for t in dates])
    if not values.size:
        return 0.0, 1.0
    low, high = (float(limit) for limit in np.percentile(values, (2, 98)))
    return (low, high) if high > low else (low - 1.0, low + 1.0)


def _valid_values(store: ChronoStore, t: int, lod: int, bands: Sequence[int]) -> NDArray[Any]:
    chosen = list(bands)
    return store.read(t, lod)[chosen][store.read_valid(t, lod)[chosen]]


def draw_picture(panel: Panel, t: int, lod: int) -> Picture:
    """One timestep of a level in the panel's bands and limits, one pixel for each of the level's."""
    bands = list(panel.bands)
    low, high = panel.limits
    valid = panel.store.read_valid(t, lod)[bands].all(axis=0)
    values = np.where(valid, panel.store.read(t, lod)[bands], low)
    shades = np.clip(np.rint((values - low) / (high - low) * 255), 0, 255).astype(np.uint8)
    colors = np.broadcast_to(shades, (3, *valid.shape))
    return np.stack([*colors, np.where(valid, 255, 0).astype(np.uint8)], axis=-1)


def draw_sheet(title: str, panels: Sequence[Panel]) -> Image.Image:
    """Panels below each other on one sheet."""
    width = 2 * MARGIN + LABEL_WIDTH + max(len(panel.dates) * (_tile(panel)[0] + GAP) for panel in panels)
    height = 2 * MARGIN + 2 * TITLE_SIZE + sum(_panel_height(panel) for panel in panels)
    sheet = Image.new("RGB", (width, height), PAPER)
    _write(sheet, (MARGIN, MARGIN), title, TITLE_SIZE)
    top = MARGIN + 2 * TITLE_SIZE
    for panel in panels:
        _draw_panel(sheet, panel, top)
        top += _panel_height(panel)
    return sheet


def _panel_height(panel: Panel) -> int:
    return 2 * HEADING_SIZE + 2 * LABEL_SIZE + len(panel.levels) * (_tile(panel)[1] + GAP) + MARGIN


def _draw_panel(sheet: Image.Image, panel: Panel, top: int) -> None:
    width, height = _tile(panel)
    left = MARGIN + LABEL_WIDTH
    _write(sheet, (MARGIN, top), panel.heading, HEADING_SIZE)
    for column, t in enumerate(panel.dates):
        _write(sheet, (left + column * (width + GAP), top + 2 * HEADING_SIZE), _date(panel.store, t), LABEL_SIZE)
    first = top + 2 * HEADING_SIZE + 2 * LABEL_SIZE - GAP
    for row, lod in enumerate(panel.levels):
        y = first + row * (height + GAP)
        for line, text in enumerate(_level_lines(panel.store, lod)):
            _write(sheet, (MARGIN, y + line * (LABEL_SIZE + 6)), text, LABEL_SIZE, FAINT_INK if line else INK)
        for column, t in enumerate(panel.dates):
            sheet.paste(_draw_tile(panel, t, lod), (left + column * (width + GAP), y))


def _date(store: ChronoStore, t: int) -> str:
    return format_instant(store.times[t]).removesuffix("T00:00:00Z")


def _level_lines(store: ChronoStore, lod: int) -> Iterator[str]:
    level = store.levels[lod]
    yield f"level {level.path}"
    yield f"resolution {level.resolution:.12g}"
    yield f"{level.shape[3]} x {level.shape[2]} pixels"


def _halvings(panel: Panel) -> int:
    """How often level 0 is halved to fit a tile; negative where it is small and pixels are enlarged."""
    grid = panel.store.grids[0]
    return math.ceil(math.log2(max(grid.height, grid.width) / TILE))


def _tile(panel: Panel) -> tuple[int, int]:
    """Width and height of the panel's pictures on the sheet."""
    grid, factor = panel.store.grids[0], 0.5 ** _halvings(panel)
    return math.ceil(grid.width * factor), math.ceil(grid.height * factor)


def _draw_tile(panel: Panel, t: int, lod: int) -> Image.Image:
    """A picture at the panel's scale, a power of two of the level's: coarse pixels stay visible as squares."""
    picture = Image.fromarray(draw_picture(panel, t, lod))
    factor = 2.0 ** (lod - _halvings(panel))
    size = math.ceil(picture.width * factor), math.ceil(picture.height * factor)
    scaled = picture.resize(size, Image.Resampling.BOX if factor < 1 else Image.Resampling.NEAREST)
    tile = _hatch(_tile(panel))
    tile.paste(scaled, (0, 0), scaled)
    return tile


def _hatch(size: tuple[int, int]) -> Image.Image:
    """Slanted stripes in two greys: what missing pixels look like."""
    rows, cols = np.ogrid[: size[1], : size[0]]
    stripes = np.array(HATCH, np.uint8)[(rows + cols) // 4 % 2]
    return Image.fromarray(stripes)


def _write(sheet: Image.Image, at: tuple[int, int], text: str, size: int, ink: tuple[int, int, int] = INK) -> None:
    drawing = ImageDraw.Draw(sheet)
    try:
        drawing.text(at, text, fill=ink, font=ImageFont.load_default(size))
    except TypeError:  # before 10.1 Pillow's own font has one size, and Latin letters only
        drawing.text(at, text.encode("latin-1", "replace").decode("latin-1"), fill=ink, font=ImageFont.load_default())
