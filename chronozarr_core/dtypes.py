"""Data types and nodata values a store can hold (§2.3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from chronozarr_core.errors import ChronozarrError

DTYPES = ("uint8", "uint16", "int16", "float32")
STAR_DELTA_DTYPES = ("uint8", "uint16")

Nodata = int | float | None


def check_dtype(dtype: Any) -> np.dtype[Any]:
    """The dtype in native byte order, where a store can hold it.

    Raises
    ------
    ChronozarrError
        It is none of uint8, uint16, int16 and float32.
    """
    checked: np.dtype[Any] = np.dtype(dtype)
    if checked.name not in DTYPES:
        raise ChronozarrError(f"data type {checked.name} cannot be stored: expected one of {', '.join(DTYPES)}")
    return checked.newbyteorder("=")


def default_nodata(dtype: Any) -> Nodata:
    """The writer default: 0 for unsigned integers, None for int16 and float32."""
    return 0 if np.dtype(dtype).kind == "u" else None


def check_nodata(nodata: Nodata, dtype: Any) -> Nodata:
    """The nodata value as the plain Python number that ``dtype`` holds, or None.

    Raises
    ------
    ChronozarrError
        The dtype cannot hold the value exactly, or it is NaN or infinite.
    """
    if nodata is None:
        return None
    dtype = np.dtype(dtype)
    try:
        number = float(nodata)
    except (TypeError, ValueError):
        raise ChronozarrError(f"nodata {nodata!r} is not a number: expected one, or None where there is none") from None
    if not np.isfinite(number):
        raise ChronozarrError(f"nodata {nodata} cannot be stored: expected a finite number; mark such gaps with a mask")
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            stored = np.float32(number)
        if not np.isfinite(stored) or float(stored) != number:
            raise ChronozarrError(f"nodata {nodata} is not a {dtype.name} value: the nearest is {float(stored)!r}")
        return number
    limits = np.iinfo(dtype)
    if not number.is_integer() or not limits.min <= number <= limits.max:
        raise ChronozarrError(
            f"nodata {nodata} is not a {dtype.name} value: expected an integer from {limits.min} to {limits.max}"
        )
    return int(number)


def fill_value(nodata: Nodata, dtype: Any) -> int | float:
    """The arrays' ``fill_value``: nodata when it is a number, otherwise 0 (§2.1)."""
    if nodata is not None:
        return nodata
    return 0.0 if np.dtype(dtype).kind == "f" else 0
