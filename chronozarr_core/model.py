"""What the attributes of a store say, as values that round-trip through JSON (§3, §4.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chronozarr_core.dtypes import Nodata
from chronozarr_core.errors import CorruptStoreError
from chronozarr_core.grid import Transform
from chronozarr_core.json_values import (
    Check,
    is_count,
    is_epsg,
    is_integer,
    is_node_path,
    is_number,
    is_object,
    is_references,
    is_text,
    is_variable,
    list_of,
    shown,
)

SPEC_VERSION = "0.2.0"

Json = dict[str, Any]


_REQUIRED = object()


def _member(
    document: Any,
    name: str,
    where: str,
    expected: str = "a value",
    check: Check = lambda _: True,
    default: Any = _REQUIRED,
) -> Any:
    """A member of a JSON object that is as it must be; ``default`` where it is absent or null and may be."""
    if not isinstance(document, Mapping):
        raise CorruptStoreError(f"{where} is {shown(document)}: expected an object")
    value = document.get(name)
    if value is None and default is not _REQUIRED:
        return default
    if name not in document:
        raise CorruptStoreError(f"{where} has no {name!r}, which the specification requires")
    if not check(value):
        raise CorruptStoreError(f"{where} has {name} {shown(value)}: expected {expected}")
    return value


def _present(**members: Any) -> Json:
    return {name: value for name, value in members.items() if value is not None}


@dataclass(frozen=True)
class Band:
    """A band object (§3.6): physical value = stored * scale + offset."""

    name: str
    common_name: str | None = None
    scale: float = 1.0
    offset: float = 0.0
    units: str | None = None

    @classmethod
    def from_json(cls, document: str | Mapping[str, Any]) -> Band:
        """Read a band object, or the v0.1 form, a name alone."""
        if isinstance(document, str):
            return cls(document)
        return cls(
            name=_member(document, "name", "an entry of chronozarr.bands"),
            common_name=document.get("common_name"),
            scale=document.get("scale", 1.0),
            offset=document.get("offset", 0.0),
            units=document.get("units"),
        )

    def to_json(self) -> Json:
        """The band object, scale and offset always explicit."""
        return _present(
            name=self.name,
            common_name=self.common_name,
            scale=float(self.scale),
            offset=float(self.offset),
            units=self.units,
        )


def _is_band(document: Any) -> bool:
    return is_text(document) or is_object(document)


def _stored_band(document: Any) -> Band:
    """A band of a store, whose numbers are JSON's; those that a user gives are checked where they are used."""
    where = "an entry of chronozarr.bands"
    if not isinstance(document, str):
        _member(document, "name", where, "text", is_text)
        for name in ("scale", "offset"):
            _member(document, name, where, "a finite number", is_number, 0.0)
    return Band.from_json(document)


@dataclass(frozen=True)
class Selection:
    """How ``auto`` chose the encoding (§4.3)."""

    sampled_cells: int
    ratio: float
    mode: str = "auto"

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Selection:
        where = "chronozarr.temporal.selection"
        return cls(
            _member(document, "sampled_cells", where), _member(document, "ratio", where), document.get("mode", "auto")
        )

    def to_json(self) -> Json:
        return {"mode": self.mode, "sampled_cells": self.sampled_cells, "ratio": self.ratio}


@dataclass(frozen=True)
class TemporalEncoding:
    """The ``temporal`` block (§4.1). ``delta_reference`` maps each non-anchor timestep to its anchor."""

    encoding: str = "none"
    anchor_interval: int | None = None
    anchor_indices: tuple[int, ...] = ()
    delta_reference: Mapping[int, int] = field(default_factory=dict)
    selection: Selection | None = None

    @property
    def is_star_delta(self) -> bool:
        return self.encoding == "star-delta"

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> TemporalEncoding:
        where = "chronozarr.temporal"
        selection = _member(document, "selection", where, default=None)
        common = {
            "encoding": _member(document, "encoding", where, default="star-delta"),  # a v0.1 store is star-delta (§10)
            "selection": None if selection is None else Selection.from_json(selection),
        }
        if common["encoding"] != "star-delta":
            return cls(**common)
        references = _member(document, "delta_reference", where, "anchors by timestep (§4.1)", is_references)
        return cls(
            anchor_interval=_member(document, "anchor_interval", where, "an integer of at least 1", is_count),
            anchor_indices=tuple(
                _member(document, "anchor_indices", where, "a list of timesteps", list_of(is_integer))
            ),
            delta_reference={int(t): anchor for t, anchor in references.items()},
            **common,
        )

    def to_json(self) -> Json:
        document: Json = {"encoding": self.encoding}
        if self.is_star_delta:
            document["anchor_interval"] = self.anchor_interval
            document["anchor_indices"] = list(self.anchor_indices)
            document["delta_reference"] = {str(t): anchor for t, anchor in self.delta_reference.items()}
        if self.selection is not None:
            document["selection"] = self.selection.to_json()
        return document


@dataclass(frozen=True)
class Level:
    """One entry of the ``levels`` mirror (§3.7): shape is (time, band, y, x), grid is (rows, cols) of cells."""

    path: str
    resolution: float
    transform: Transform
    shape: tuple[int, int, int, int]
    grid: tuple[int, int]

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Level:
        where = "an entry of chronozarr.levels"
        return cls(
            path=_member(document, "path", where, "the name of a level group", is_variable),
            resolution=_member(document, "resolution", where, "a number", is_number),
            transform=tuple(_member(document, "transform", where, "six numbers", list_of(is_number, 6))),
            shape=tuple(_member(document, "shape", where, "four lengths", list_of(is_count, 4))),
            grid=tuple(_member(document, "grid", where, "rows and columns", list_of(is_count, 2))),
        )

    def to_json(self) -> Json:
        return {
            "path": self.path,
            "resolution": self.resolution,
            "transform": list(self.transform),
            "shape": list(self.shape),
            "grid": list(self.grid),
        }


@dataclass(frozen=True)
class Provenance:
    """Where the data come from and what was done to them (§3.8)."""

    sources: tuple[str, ...]
    composite: str
    gap_fill: str = "none"
    notes: str | None = None

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Provenance:
        where = "chronozarr.provenance"
        sources = _member(document, "sources", where)
        if not isinstance(sources, list | tuple):
            raise CorruptStoreError(f"sources of {where} is {sources!r}: expected a list (§3.8)")
        return cls(
            sources=tuple(sources),
            composite=_member(document, "composite", where),
            gap_fill=_member(document, "gap_fill", where),
            notes=document.get("notes"),
        )

    def to_json(self) -> Json:
        return _present(sources=list(self.sources), composite=self.composite, gap_fill=self.gap_fill, notes=self.notes)


@dataclass(frozen=True)
class StoreMetadata:
    """The ``chronozarr`` block of the root group (§3.2). ``times`` are ISO-8601 strings."""

    times: tuple[str, ...]
    bands: tuple[Band, ...]
    nodata: Nodata
    crs: str
    temporal: TemporalEncoding
    levels: tuple[Level, ...] = ()
    spec_version: str = SPEC_VERSION
    variable: str = "data"
    volatility_path: str = "volatility"
    mask_variable: str | None = None
    coverage_variable: str | None = None
    provenance: Provenance | None = None
    shard_bytes: Mapping[str, Mapping[str, int]] | None = None

    @property
    def band_names(self) -> tuple[str, ...]:
        return tuple(band.name for band in self.bands)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> StoreMetadata:
        where = "the chronozarr block of zarr.json"
        provenance = _member(document, "provenance", where, default=None)
        bands = _member(document, "bands", where, "a list of band objects", list_of(_is_band))
        levels = _member(document, "levels", where, "a list of objects", list_of(is_object), ())
        return cls(
            times=tuple(_member(document, "times", where, "a list of ISO-8601 strings", list_of(is_text))),
            bands=tuple(_stored_band(band) for band in bands),
            nodata=_member(document, "nodata", where, "a finite number or null", is_number, None),
            crs=_member(document, "crs", where, "EPSG:<code>", is_epsg),
            temporal=TemporalEncoding.from_json(_member(document, "temporal", where)),
            levels=tuple(Level.from_json(level) for level in levels),
            spec_version=_member(document, "spec_version", where, "text", is_text),
            variable=_member(document, "variable", where, "the name of an array", is_variable, "data"),
            volatility_path=_member(document, "volatility_path", where, "a path", is_node_path, "volatility"),
            mask_variable=_member(document, "mask_variable", where, "the name of an array", is_variable, None),
            coverage_variable=_member(document, "coverage_variable", where, "the name of an array", is_variable, None),
            provenance=None if provenance is None else Provenance.from_json(provenance),
            shard_bytes=_member(document, "shard_bytes", where, "an object", is_object, None),
        )

    def to_json(self) -> Json:
        document: Json = {
            "spec_version": self.spec_version,
            "variable": self.variable,
            "times": list(self.times),
            "bands": [band.to_json() for band in self.bands],
            "band_names": list(self.band_names),
            "nodata": self.nodata,
            "crs": self.crs,
            "temporal": self.temporal.to_json(),
            "volatility_path": self.volatility_path,
        }
        document |= _present(mask_variable=self.mask_variable, coverage_variable=self.coverage_variable)
        if self.provenance is not None:
            document["provenance"] = self.provenance.to_json()
        document["levels"] = [level.to_json() for level in self.levels]
        document |= _present(shard_bytes=self.shard_bytes)
        return document
