"""Validity of a converted series: one nodata sentinel, or one mask, or every pixel valid (§2.3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chronozarr_core.dtypes import Nodata
from gdal_tools.sources import Source, SourceOptions


@dataclass(frozen=True)
class Validity:
    """How the store says which pixels are valid; ``reason`` tells a person why."""

    nodata: Nodata
    has_mask: bool
    reason: str


def decide_validity(sources: Sequence[Source], options: SourceOptions, complete: bool) -> Validity:
    """One sentinel where every band of every source has the same finite one; otherwise a mask where one is needed.

    ``complete`` says that every source has a pixel everywhere on the target grid, unwarped.
    """
    planes = [source for source in sources if source.has_plane]
    missing = {values for source in sources for values in source.missing}
    if not planes and missing == {()} and complete:
        return Validity(None, False, "no nodata and no mask: every pixel is valid")
    only = next(iter(missing)) if len(missing) == 1 else ()
    if not planes and len(only) == 1 and math.isfinite(only[0]):
        return Validity(_number(only[0], sources[0]), False, f"nodata {only[0]:.12g}, in every band of every source")
    given = [value for value in options.nodata if math.isfinite(value)]
    nodata = _number(given[0], sources[0]) if len(given) == 1 and not planes else None
    return Validity(nodata, True, f"a mask: {_why(planes, missing)}")


def _number(value: float, source: Source) -> Nodata:
    return float(value) if np.dtype(source.dtype).kind == "f" else int(value)


def _why(planes: Sequence[Source], missing: set[tuple[float, ...]]) -> str:
    if planes:
        kind = "an alpha band" if planes[0].header.alpha is not None else "an internal mask"
        return f"{len(planes)} of the sources have {kind}"
    if missing == {()}:
        return "pixels outside a source have no value, and no nodata is declared"
    if len(missing) > 1:
        return f"sources or bands have different nodata ({'; '.join(sorted(map(_listed, missing)))})"
    return f"nodata {_listed(next(iter(missing)))} cannot be a store's"


def _listed(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:.12g}" for value in values) or "none"


def valid_pixels(
    data: NDArray[Any], missing: Sequence[tuple[float, ...]], plane: NDArray[np.uint8] | None
) -> NDArray[np.bool_]:
    """Pixels that are valid in every band.

    Parameters
    ----------
    data : shape (band, rows, cols)
    missing : for each band, the values that are missing
    plane : alpha or dataset mask, shape (rows, cols), nonzero is valid; None without one

    Returns
    -------
    ndarray of bool, shape (rows, cols). NaN is missing in every band.
    """
    valid = np.ones(data.shape[1:], bool) if plane is None else plane != 0
    for band, values in zip(data, missing, strict=True):
        for value in values:
            if not math.isnan(value):
                valid &= band != data.dtype.type(value)
        if data.dtype.kind == "f":
            valid &= ~np.isnan(band)
    return valid


def nan_as(data: NDArray[Any], value: float) -> NDArray[Any]:
    """The data with NaN replaced; the same array where there is none."""
    if data.dtype.kind != "f" or not np.isnan(data).any():
        return data
    return np.where(np.isnan(data), data.dtype.type(value), data)
