"""Series of frames: what every input is to the encoder."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from chronozarr_core.dtypes import Nodata
from chronozarr_core.grid import RasterGrid
from chronozarr_core.instants import Instants
from chronozarr_core.model import Band, Provenance


class Strip(NamedTuple):
    """Some rows of one timestep.

    Attributes
    ----------
    data : ndarray, shape (band, rows, x), the series' dtype
    mask : ndarray of uint8, shape (rows, x), 1 valid and 0 invalid; None without a mask
    coverage : ndarray of uint8, shape (rows, x); None without coverage
    """

    data: NDArray[Any]
    mask: NDArray[np.uint8] | None = None
    coverage: NDArray[np.uint8] | None = None


@runtime_checkable
class FrameSeries(Protocol):
    """Frames on one grid, in time order.

    ``random_access`` says that a window costs about what its pixels cost; otherwise (a PNG) reading rows far down
    costs the rows above them too. Several threads may call :meth:`read` at once, but reads of one timestep never
    overlap, and come top to bottom while a store is written.
    """

    @property
    def grid(self) -> RasterGrid: ...
    @property
    def times(self) -> Instants: ...
    @property
    def bands(self) -> tuple[Band, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def nodata(self) -> Nodata: ...
    @property
    def has_mask(self) -> bool: ...
    @property
    def has_coverage(self) -> bool: ...
    @property
    def provenance(self) -> Provenance | None: ...
    @property
    def random_access(self) -> bool: ...
    @property
    def fingerprint(self) -> str:
        """Text that differs where the values would: what an interrupted run must find unchanged to go on."""
        ...

    def read(self, t: int, rows: slice, cols: slice = slice(None)) -> Strip:
        """Pixels ``rows`` x ``cols`` of timestep ``t``; slices have step 1 and lie within the grid."""
        ...

    def release(self, t: int) -> None:
        """Timestep ``t`` is not read any more for now: close what it holds open."""
        ...
