"""Instants: int64 milliseconds since the Unix epoch, and their ISO-8601 renderings (§2.2)."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chronozarr_core.errors import ChronozarrError

UNITS = "milliseconds since 1970-01-01T00:00:00"
CALENDAR = "proleptic_gregorian"

_FRACTION = re.compile(r"[.,](\d+)")
_YEARS = np.array(["0001-01-01T00:00:00.000", "9999-12-31T23:59:59.999"], "datetime64[ms]")

Instants = NDArray[np.datetime64]
"""One-dimensional array of ``datetime64[ms]``, UTC."""


def parse_instant(text: str) -> np.datetime64:
    """Read one ISO-8601 date or date and time as an instant in UTC.

    A date is its first moment, ``YYYY-MM`` the first moment of the month, a time without an offset is UTC.

    Raises
    ------
    ChronozarrError
        The text is no ISO-8601 date, or is finer than a millisecond.
    """
    cleaned = text.strip()
    if len(cleaned) == len("YYYY-MM") and cleaned[4] == "-" and cleaned[5] != "W":
        cleaned += "-01"
    try:
        moment = _in_utc(datetime.fromisoformat(cleaned))
    except (ValueError, OverflowError):
        raise ChronozarrError(
            f"{text!r} is not a date: expected ISO 8601, for example 2024-03-01 or 2024-03-01T10:30:00Z"
        ) from None
    fraction = _FRACTION.search(cleaned)  # fromisoformat drops digits after the sixth without a word
    if moment.microsecond % 1000 or (fraction and fraction[1][3:].strip("0")):
        raise ChronozarrError(f"{text!r} is finer than a millisecond, which a store cannot hold: round it")
    return np.datetime64(moment, "ms")


def _in_utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)


def format_instant(instant: np.datetime64) -> str:
    """ISO-8601 rendering of an instant, as ``chronozarr.times`` holds it: ``2024-01-01T00:00:00Z``."""
    text = str(np.datetime_as_string(instant.astype("datetime64[ms]")))
    return text.removesuffix(".000") + "Z"


def as_instants(times: ArrayLike) -> Instants:
    """Times as ``datetime64[ms]``: ISO strings, ``datetime64`` of any unit, ``datetime`` objects.

    Raises
    ------
    ChronozarrError
        A time is no date, is missing, is finer than a millisecond, or has no ISO-8601 form of four-digit years.
    """
    values = np.atleast_1d(np.asarray(times))
    if values.dtype.kind in "US" or values.dtype == object:
        return np.array([_instant(value) for value in values.ravel()], "datetime64[ms]")
    if values.dtype.kind != "M":
        raise ChronozarrError(f"times have dtype {values.dtype}: expected ISO-8601 strings or datetime64 values")
    instants = values.astype("datetime64[ms]")
    if np.isnat(instants).any():
        raise ChronozarrError("times hold NaT: give every timestep a date")
    if (instants.astype(values.dtype) != values).any():
        raise ChronozarrError("times are finer than a millisecond, which a store cannot hold: round them")
    if (instants < _YEARS[0]).any() or (instants > _YEARS[1]).any():
        raise ChronozarrError("times lie outside the years 1 to 9999, which ISO-8601 dates of a store can name")
    return instants


def _instant(value: object) -> np.datetime64:
    if isinstance(value, bytes):
        value = value.decode()
    if isinstance(value, datetime):
        value = value.isoformat()
    calendar = getattr(value, "calendar", "standard")
    if calendar not in ("standard", "gregorian", CALENDAR):
        raise ChronozarrError(
            f"{value} is a date of the calendar {calendar}: a store holds Gregorian ones, convert it first"
        )
    if isinstance(value, np.datetime64):
        return np.datetime64(as_instants(np.array([value]))[0])
    return parse_instant(str(value))


def check_increasing(instants: Instants) -> None:
    """Raise unless the instants are strictly increasing (§2.2)."""
    steps = np.flatnonzero(np.diff(instants.astype("int64")) <= 0)
    if steps.size:
        at = int(steps[0])
        raise ChronozarrError(
            f"times must be strictly increasing: timestep {at + 1} ({format_instant(instants[at + 1])}) "
            f"is not after timestep {at} ({format_instant(instants[at])}); sort them and remove duplicates"
        )
