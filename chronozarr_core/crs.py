"""Coordinate reference systems: what ``EPSG:<code>`` stands for, and which code a definition has (§3.2)."""

from __future__ import annotations

from functools import lru_cache

import pyproj
from pyproj.exceptions import CRSError

from chronozarr_core.errors import ChronozarrError


@lru_cache(maxsize=64)
def epsg_code(definition: str) -> str | None:
    """``EPSG:<code>`` of a CRS given as code, WKT or PROJ string; None where it has no EPSG code.

    Raises
    ------
    ChronozarrError
        PROJ does not understand the definition.
    """
    try:
        crs = pyproj.CRS.from_user_input(definition)
    except CRSError as error:
        raise ChronozarrError(f"{definition[:80]!r} is not a CRS that PROJ knows: {error}") from None
    code = crs.to_epsg()
    if code is None or not pyproj.CRS.from_epsg(code).equals(crs, ignore_axis_order=True):
        return None  # a near match is another CRS
    return f"EPSG:{code}"


@lru_cache(maxsize=64)
def normalize_crs(definition: str) -> str:
    """``EPSG:<code>`` of a CRS definition; refuse one without an EPSG code, which a store needs (§3.2)."""
    code = epsg_code(definition)
    if code is None:
        raise ChronozarrError(
            f"the CRS {describe_crs(definition)!r} has no EPSG code, and a store's crs must be EPSG:<code>: "
            "reproject to one that has, for example a UTM zone"
        )
    return code


@lru_cache(maxsize=64)
def wkt2(crs: str) -> str:
    """WKT 2 (2019) text of ``EPSG:<code>``."""
    return str(pyproj.CRS.from_user_input(crs).to_wkt("WKT2_2019"))


@lru_cache(maxsize=64)
def describe_crs(definition: str) -> str:
    """The name a person knows the CRS by."""
    try:
        return str(pyproj.CRS.from_user_input(definition).name)
    except CRSError:
        return definition[:80]
