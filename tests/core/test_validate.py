"""Every rule of the validator on a store that breaks it, and none on stores that do not (§2 to §8)."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numcodecs
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from chronozarr_core import ChronozarrError, Provenance, StoreNotFoundError
from chronozarr_core.chunks import Compression
from chronozarr_core.storage import LocalStorage
from chronozarr_core.store import ChronoStore
from chronozarr_core.validate import RULES, Finding, Rule, validate
from tests.core.builders import DTYPES, drifting, edit_block, edit_json, noise, planes, write_store

SHAPE = (9, 2, 35, 50)
DATA = drifting(SHAPE)
STAR_DELTA = {"encoding": "star-delta", "anchor_interval": 4}
NONE = {"encoding": "none"}
PROVENANCE = Provenance(("sentinel-2-l2a",), "monthly median", "none")
BASES: dict[str, dict[str, Any]] = {
    "star": {
        "data": DATA,
        "options": STAR_DELTA,
        "mask": planes(SHAPE, 1),
        "coverage": planes(SHAPE, 9),
        "provenance": PROVENANCE,
    },
    "auto": {"data": DATA, "options": {"encoding": "auto"}},
    "plain": {"data": noise((3, 1, 20, 20)), "options": NONE},
    "int16": {"data": noise((5, 1, 20, 20), "int16")},
    "still": {"data": noise((1, 1, 16, 16)), "options": NONE},
    "blosc": {
        "data": drifting((3, 1, 20, 20)),
        "options": STAR_DELTA | {"compression": Compression("blosc", 1)},
        "mask": planes((3, 1, 20, 20), 1),
    },
}

Edit = Callable[[Path], object]


class Case(NamedTuple):
    """A rule, a change of one member or object that breaks it, and what is to be found."""

    rule: str
    edit: Edit
    section: str
    part: str
    base: str = "star"


@pytest.fixture(scope="session")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Conforming stores, built once and never altered."""
    folder = tmp_path_factory.mktemp("bases")
    return {name: Path(write_store(folder / name, **parts).location) for name, parts in BASES.items()}


def at(document: Any, path: str) -> tuple[Any, Any]:
    """The container and the key of a member, by a path such as ``levels.1.shape``."""
    *parents, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    for step in parents:
        document = document[step]
    return document, last if isinstance(document, dict | list) else None


def put(path: str, value: Any) -> Callable[[Any], object]:
    def change(document: Any) -> None:
        container, key = at(document, path)
        container[str(key) if isinstance(container, dict) else key] = value

    return change


def drop(path: str) -> Callable[[Any], object]:
    def change(document: Any) -> None:
        container, key = at(document, path)
        container.pop(str(key) if isinstance(container, dict) else key)

    return change


def root(change: Callable[[Any], object]) -> Edit:
    return lambda store: edit_json(store / "zarr.json", change)


def block(change: Callable[[Any], object]) -> Edit:
    return lambda store: edit_block(store, change)


def multiscale(change: Callable[[Any], object]) -> Edit:
    return root(lambda document: change(document["attributes"]["multiscales"][0]))


def node(path: str, change: Callable[[Any], object]) -> Edit:
    """Alter a node's document and its consolidated copy."""

    def edit(store: Path) -> None:
        edit_json(store / path / "zarr.json", change)
        edit_json(store / "zarr.json", lambda document: change(document["consolidated_metadata"]["metadata"][path]))

    return edit


def values(key: str, dtype: str, change: Callable[[Any], object]) -> Edit:
    """Alter the elements of a zstd chunk, given as a flat array."""

    def edit(store: Path) -> None:
        codec = numcodecs.Zstd()
        elements = np.frombuffer(codec.decode((store / key).read_bytes()), dtype).copy()
        change(elements)
        (store / key).write_bytes(codec.encode(elements))

    return edit


def element(key: str, dtype: str, index: int, value: float) -> Edit:
    return values(key, dtype, lambda elements: elements.__setitem__(index, value))


def plus_one(key: str, dtype: str, index: int) -> Edit:
    return values(key, dtype, lambda elements: elements.__setitem__(index, elements[index] + 1))


def flip(key: str, index: int) -> Edit:
    return values(key, "u1", lambda elements: elements.__setitem__(index, 1 - elements[index]))


def remove(path: str) -> Edit:
    return lambda store: (store / path).unlink()


def write(path: str, value: bytes) -> Edit:
    return lambda store: (store / path).write_bytes(value)


def everywhere(old: str, new: str) -> Edit:
    """Replace text in every document."""

    def edit(store: Path) -> None:
        for document in store.rglob("zarr.json"):
            document.write_text(document.read_text().replace(old, new))

    return edit


def both(*edits: Edit) -> Edit:
    return lambda store: [edit(store) for edit in edits]


def strings(key: str, names: list[str]) -> Edit:
    return write(key, bytes(numcodecs.Zstd().encode(numcodecs.VLenUTF8().encode(np.array(names, object)))))


def south_up(store: Path) -> None:
    for level in range(3):
        node(str(level), put("attributes.transform.4", 10.0 * 2**level))(store)
        block(put(f"levels.{level}.transform.4", 10.0 * 2**level))(store)


def same_month_twice(store: Path) -> None:
    block(lambda found: found["times"].__setitem__(1, found["times"][0]))(store)
    for level in range(3):
        values(f"{level}/time/c/0", "<i8", lambda elements: elements.__setitem__(1, elements[0]))(store)


SCHEDULE = {
    "encoding": "star-delta",
    "anchor_interval": 5,
    "anchor_indices": [0],
    "delta_reference": {str(t): 0 for t in (1, 2, 3, 4)},
}
SHARDING = [{"name": "sharding_indexed", "configuration": {"chunk_shape": [1, 2, 16, 16]}}]
ZSTD = {"name": "zstd", "configuration": {"level": 5, "checksum": False}}
LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}

CASES = [
    Case("root_is_a_group", root(drop("zarr_format")), "§2", "expected a Zarr v3 group"),
    Case("root_is_a_group", root(put("attributes", [])), "§2", "not a chronozarr store"),
    Case("every_level_has_its_nodes", remove("1/y/zarr.json"), "§2", "1/y/zarr.json is missing"),
    Case("every_level_has_its_nodes", remove("1/zarr.json"), "§2", "expected the level's group"),
    Case("every_level_has_its_nodes", write("2/data/zarr.json", b"{"), "§2", "is not JSON"),
    Case("level_is_a_group", node("1", put("node_type", "array")), "§2", "no Zarr v3 group"),
    Case(
        "array_has_its_members", node("0/data", put("chunk_key_encoding.configuration.separator", ".")), "§2.1", "'/'"
    ),
    Case("array_has_its_members", node("1/data", drop("fill_value")), "§2.1", "fill_value is missing"),
    Case("array_has_its_members", node("0/y", put("zarr_format", 2)), "§2.2", "zarr_format is 2: expected 3"),
    Case("array_has_its_members", node("0/mask", put("shape", [9, -35, 50])), "§2.4", "shape is [9, -35, 50]"),
    Case("array_has_its_members", node("0/mask", put("chunk_grid.name", "rectangular")), "§2.4", "a regular grid"),
    Case(
        "array_has_its_dimensions",
        node("1/mask", put("chunk_grid.configuration.chunk_shape", [16, 16])),
        "§2.4",
        "one length for each of",
    ),
    Case("array_has_its_dimensions", node("2/data", put("shape", [9, 9, 13])), "§2.1", "shape is [9, 9, 13]"),
    Case("data_type_is_one_of_its_role", node("0/time", put("data_type", "int32")), "§2.2", "expected int64"),
    Case("data_type_is_one_of_its_role", node("1/coverage", put("data_type", "uint16")), "§2.5", "expected uint8"),
    Case(
        "data_type_is_one_of_its_role", node("0/data", put("data_type", "uint32")), "§2.1", "expected uint8 or uint16"
    ),
    Case("data_type_is_that_of_every_level", node("1/data", put("data_type", "uint8")), "§2.1", "expected uint16"),
    Case(
        "array_has_every_timestep_band_and_cell", node("0/mask", put("shape.0", 8)), "§2.4", "8 along time: expected 9"
    ),
    Case(
        "array_has_every_timestep_band_and_cell", node("0/data", put("shape.0", 8)), "§2.1", "8 along time: expected 9"
    ),
    Case(
        "array_has_every_timestep_band_and_cell", node("volatility", put("shape.0", 1)), "§5", "along row: expected 3"
    ),
    Case(
        "chunk_is_a_cell_of_a_timestep",
        node("1/data", put("chunk_grid.configuration.chunk_shape", [1, 2, 32, 32])),
        "§2.1",
        "expected [1, 2, 16, 16]",
    ),
    Case(
        "chunk_is_a_cell_of_a_timestep",
        node("1/coverage", put("chunk_grid.configuration.chunk_shape", [9, 16, 16])),
        "§2.5",
        "expected [1, 16, 16]",
    ),
    Case(
        "chunk_size_is_even",
        node("0/data", put("chunk_grid.configuration.chunk_shape", [1, 1, 17, 17])),
        "§2.1",
        "even",
        "still",
    ),
    Case(
        "chunk_fits_a_codec",
        node("0/data", put("chunk_grid.configuration.chunk_shape", [1, 1, 10**9, 10**9])),
        "§2.1",
        "at most 2147483647",
        "still",
    ),
    Case("chunk_decodes", write("1/data/c/3/0/0/0", b"junk"), "§2.1", "1/data/c/3/0/0/0: the chunk does not decode"),
    Case("chunk_decodes", write("0/data/c/4/0/0/0", bytes(numcodecs.Zstd().encode(b"short"))), "§2.1", "fewer than"),
    Case("chunk_decodes", write("2/mask/c/0/0/0", b""), "§2.4", "does not decode"),
    Case("padding_is_fill_or_0", element("0/data/c/0/0/0/3", "<u2", 15, 7), "§2.1", "holds 7 beyond the array's edge"),
    Case("padding_is_fill_or_0", element("0/data/c/1/0/2/0", "<u2", 511, 7), "§2.1", "holds 7 beyond the array's edge"),
    Case("dimensions_are_named", node("0/x", put("dimension_names", ["lon"])), "§2.2", "expected ['x']"),
    Case("dimensions_are_named", node("volatility", drop("dimension_names")), "§2.2", "expected ['row', 'col']"),
    Case("dimensions_are_named_in_attributes", node("0/data", drop("attributes._ARRAY_DIMENSIONS")), "§2.2", "is None"),
    Case(
        "time_says_what_it_counts", node("0/time", put("attributes.units", "days since 1970-01-01")), "§2.2", "units is"
    ),
    Case("values_decode", write("0/x/c/0", b"junk"), "§2.2", "does not decode"),
    Case("values_decode", write("volatility/c/0/0", b"junk"), "§5", "does not decode"),
    Case("times_are_dates", block(put("times.2", "spring")), "§2.2", "chronozarr.times[2] is no ISO-8601 time"),
    Case("times_increase", same_month_twice, "§2.2", "chronozarr.times[1] is not after"),
    Case("time_is_identical_at_every_level", plus_one("1/time/c/0", "<i8", 4), "§2.2", "timestep 4 is"),
    Case("band_holds_the_names_or_indices", strings("0/band/c/0", ["B1", "B9"]), "§2.2", "holds ['B1', 'B9']"),
    Case(
        "band_has_one_data_type",
        both(
            node("1/band", put("data_type", "int32")),
            node("1/band", put("codecs", [LITTLE, ZSTD])),
            node("1/band", put("fill_value", 0)),
            write("1/band/c/0", bytes(numcodecs.Zstd().encode(np.array([0, 1], "<i4")))),
        ),
        "§2.2",
        "identical at every level",
    ),
    Case("coordinates_are_pixel_centres", plus_one("1/y/c/0", "<f8", 3), "§2.2", "y[3] is"),
    Case("coordinates_are_pixel_centres", element("0/x/c/0", "<f8", 0, np.nan), "§2.2", "x[0] is nan"),
    Case("grid_is_north_up", south_up, "§2.2", "expected a > 0, e < 0"),
    Case("nodata_is_a_value_of_the_data_type", block(put("nodata", 70000)), "§2.3", "70000 is not a uint16 value"),
    Case("fill_value_is_nodata", node("0/data", put("fill_value", 1)), "§2.3", "fill_value is 1: expected 0"),
    Case("fill_value_is_nodata", node("0/data", put("fill_value", "NaN")), "§2.3", "fill_value is 'NaN'"),
    Case("fill_value_is_nodata", node("0/data", put("fill_value", 5)), "§2.3", "since there is no nodata", "int16"),
    Case("nodata_attribute_is_nodata", node("1/data", drop("attributes.nodata")), "§2.3", "attribute nodata is None"),
    Case(
        "nodata_attribute_is_nodata",
        node("1/data", put("attributes.nodata", 3)),
        "§2.3",
        "chronozarr.nodata is null",
        "int16",
    ),
    Case(
        "star_delta_is_for_unsigned_integers",
        block(put("temporal", SCHEDULE)),
        "§2.3",
        "expected none for int16",
        "int16",
    ),
    Case("mask_is_at_every_level_or_none", remove("1/mask/zarr.json"), "§2.4", "every level has it"),
    Case("mask_is_at_every_level_or_none", block(drop("mask_variable")), "§2.4", "is missing, and there is 0/mask"),
    Case("mask_is_at_every_level_or_none", block(put("mask_variable", "valid")), "§2.4", "'valid': expected 'mask'"),
    Case("mask_is_0_or_1", element("0/mask/c/0/0/0", "u1", 0, 2), "§2.4", "holds 2: expected 0 (invalid) and 1"),
    Case("mask_is_the_maximum", flip("2/mask/c/5/0/0", 17), "§2.4", "pixel (1, 1) is"),
    Case("plane_is_filled_with_0", node("0/mask", put("fill_value", 1)), "§2.4", "fill_value is 1: expected 0"),
    Case("coverage_is_at_every_level_or_none", block(drop("coverage_variable")), "§2.5", "there is 0/coverage"),
    Case("coverage_is_the_rounded_mean", plus_one("1/coverage/c/0/1/1", "u1", 0), "§2.5", "pixel (16, 16) is"),
    Case(
        "multiscales_has_one_entry",
        root(lambda found: found["attributes"]["multiscales"].append({})),
        "§3.1",
        "2 entries",
    ),
    Case("multiscales_has_one_entry", root(put("attributes.multiscales", {"layout": []})), "§3.1", "expected a list"),
    Case("block_is_an_object", root(drop("attributes.chronozarr")), "§3.1", "not a chronozarr store"),
    Case("consolidated_metadata_is_an_object", root(put("consolidated_metadata", [])), "§3.1", "expected an object"),
    Case(
        "consolidated_metadata_is_that_of_the_nodes",
        root(drop("consolidated_metadata.metadata.0/y")),
        "§3.1",
        "lacks 0/y",
    ),
    Case(
        "consolidated_metadata_is_that_of_the_nodes",
        root(put("consolidated_metadata.metadata.old", {})),
        "§3.1",
        "has old",
    ),
    Case(
        "consolidated_metadata_is_that_of_the_nodes",
        root(put("consolidated_metadata.metadata", 1)),
        "§3.1",
        "has metadata 1",
    ),
    Case(
        "consolidated_metadata_is_that_of_the_nodes",
        lambda store: edit_json(store / "0/y/zarr.json", put("attributes.units", "m")),
        "§3.1",
        "differs from 0/y",
    ),
    Case("block_has_its_members", block(put("spec_version", "0.3.0")), "§3.2", "expected 0.1.x or 0.2.x"),
    Case("block_has_its_members", block(drop("times")), "§3.2", "chronozarr.times is missing"),
    Case("block_has_its_members", block(put("times", "2024-01-01")), "§3.2", "chronozarr.times is '2024-01-01'"),
    Case("block_has_its_members", block(put("variable", "../data")), "§3.2", "chronozarr.variable is '../data'"),
    Case("block_has_its_members", block(drop("band_names")), "§3.2", "chronozarr.band_names is missing"),
    Case("block_has_its_members", block(put("nodata", float("nan"))), "§3.2", "chronozarr.nodata is nan"),
    Case("block_has_its_members", block(put("crs", "WGS 84")), "§3.2", "expected EPSG:<code>"),
    Case("block_has_its_members", block(drop("levels")), "§3.2", "chronozarr.levels is missing"),
    Case("crs_is_that_of_the_levels", block(put("crs", "EPSG:32632")), "§3.2", "is EPSG:32632, and the levels have"),
    Case("crs_is_known", everywhere("EPSG:32631", "EPSG:999999"), "§3.2", "no code that PROJ knows"),
    Case("there_is_a_time_per_timestep", block(drop("times.8")), "§3.2", "has 8 entries: expected 9"),
    Case("there_is_a_band_object_per_band", block(drop("bands.1")), "§3.2", "has 1 entries: expected 2"),
    Case(
        "level_has_its_attributes", node("1", drop("attributes.resolution")), "§3.3", "attributes.resolution is missing"
    ),
    Case("level_has_the_crs", node("1", put("attributes.crs", "EPSG:4326")), "§3.3", "crs is 'EPSG:4326'"),
    Case(
        "level_has_the_transform_of_its_resolution",
        node("2", put("attributes.transform.0", 30.0)),
        "§3.3",
        "level 0 times 2**2",
    ),
    Case(
        "level_has_its_resolution",
        node("2", put("attributes.resolution", 30.0)),
        "§3.3",
        "resolution is 30.0: expected 40.0",
    ),
    Case("multiscale_follows_the_schema", multiscale(drop("metadata.method")), "§3.4", "metadata.method is missing"),
    Case("multiscale_follows_the_schema", multiscale(drop("type")), "§3.4", "type is missing"),
    Case("datasets_have_path_and_crs", multiscale(drop("datasets.1.crs")), "§3.4", "datasets[1].crs is missing"),
    Case("datasets_are_in_order", multiscale(lambda found: found["datasets"].reverse()), "§3.4", "without gaps"),
    Case("datasets_are_in_order", multiscale(drop("datasets.1")), "§3.4", "lists ['0', '2']"),
    Case("datasets_have_the_crs", multiscale(put("datasets.2.crs", "EPSG:3857")), "§3.4", "expected EPSG:32631"),
    Case(
        "times_mirror_the_coordinate",
        block(put("times.1", "2024-02-02T00:00:00Z")),
        "§3.5",
        "expected 2024-02-01T00:00:00Z",
    ),
    Case(
        "band_names_mirror_the_bands",
        block(lambda found: found["band_names"].reverse()),
        "§3.5",
        "expected ['B1', 'B2']",
    ),
    Case("bands_are_band_objects", block(put("bands.0", "B1")), "§3.6", "the form of v0.1"),
    Case("bands_are_band_objects", block(put("bands.1.scale", "0.1")), "§3.6", "bands[1].scale is '0.1'"),
    Case("bands_have_the_names_of_the_coordinate", block(put("bands.1.name", "B9")), "§3.6", "expected ('B1', 'B2')"),
    Case("band_names_are_unique", block(put("bands.1.name", "B1")), "§3.6", "expected a name of its own"),
    Case("mirrors_have_their_members", block(drop("levels.1.grid")), "§3.7", "levels[1].grid is missing"),
    Case("mirrors_are_the_levels", block(drop("levels.2")), "§3.7", "as multiscales does"),
    Case("mirrors_have_the_shapes", block(put("levels.1.shape.3", 26)), "§3.7", "levels[1].shape is [9, 2, 18, 26]"),
    Case("mirrors_have_the_cell_grids", block(put("levels.0.grid", [4, 3])), "§3.7", "expected [3, 4]"),
    Case("mirrors_have_the_transforms", block(put("levels.1.transform.2", 0.0)), "§3.7", "levels[1].transform"),
    Case("mirrors_have_the_resolutions", block(put("levels.1.resolution", 10.0)), "§3.7", "is 10.0: expected 20.0"),
    Case("provenance_has_its_members", block(drop("provenance.sources")), "§3.8", "provenance.sources is missing"),
    Case(
        "provenance_has_its_members", block(put("provenance.gap_fill", "linear")), "§3.8", "'carry-forward' or 'none'"
    ),
    Case("temporal_encoding_is_one_of_two", block(put("temporal.encoding", "chain-delta")), "§4.1", "'chain-delta'"),
    Case("none_has_no_schedule", block(put("temporal.anchor_interval", 6)), "§4.1", "only with star-delta", "plain"),
    Case("star_delta_has_its_schedule", block(put("temporal.anchor_interval", 0)), "§4.1", "an integer of at least 1"),
    Case(
        "anchors_follow_from_the_interval", block(put("temporal.anchor_indices", [0, 4])), "§4.1", "expected [0, 4, 8]"
    ),
    Case(
        "every_other_timestep_has_a_reference", block(drop("temporal.delta_reference.5")), "§4.1", "has no timestep 5"
    ),
    Case(
        "every_other_timestep_has_a_reference", block(put("temporal.delta_reference.99", 8)), "§4.1", "has timestep 99"
    ),
    Case(
        "references_name_a_near_anchor", block(put("temporal.delta_reference.1", 8)), "§4.2", "fewer than 4 timesteps"
    ),
    Case(
        "selection_has_its_members",
        block(drop("temporal.selection.ratio")),
        "§4.1",
        "selection.ratio is missing",
        "auto",
    ),
    Case("selection_is_what_was_chosen", block(put("temporal.selection.ratio", 0.9)), "§4.3", "is 0.9", "auto"),
    Case(
        "selection_sampled_enough_cells",
        block(put("temporal.selection.sampled_cells", 2)),
        "§4.3",
        "of 12 cells",
        "auto",
    ),
    Case(
        "selection_is_for_unsigned_integers",
        block(put("temporal.selection", {"mode": "auto", "sampled_cells": 3, "ratio": 1.0})),
        "§4.3",
        "int16",
        "int16",
    ),
    Case("there_is_a_volatility", remove("volatility/zarr.json"), "§5", "expected the volatility array"),
    Case(
        "volatility_is_a_single_chunk",
        node("volatility", put("chunk_grid.configuration.chunk_shape", [1, 4])),
        "§5",
        "single chunk of [3, 4]",
    ),
    Case("volatility_is_from_0_to_1", element("volatility/c/0/0", "<f4", 0, np.nan), "§5", "expected 0 to 1", "plain"),
    Case(
        "volatility_is_0_without_deltas",
        write("volatility/c/0/0", bytes(numcodecs.Zstd().encode(np.array([[0.5]], "<f4")))),
        "§5",
        "expected 0",
        "still",
    ),
    Case(
        "volatility_is_the_mean_difference",
        values("volatility/c/0/0", "<f4", lambda found: found.__setitem__(5, found[5] * 1.001)),
        "§5",
        "cell (1, 1)",
    ),
    Case(
        "level_has_half_the_pixels_of_the_one_below",
        node("1/data", put("shape", [9, 2, 17, 25])),
        "§6",
        "17 along y: expected 18",
    ),
    Case(
        "level_has_half_the_pixels_of_the_one_below", node("2/x", put("shape", [12])), "§6", "12 along x: expected 13"
    ),
    Case(
        "level_is_the_block_mean", plus_one("2/data/c/3/0/0/0", "<u2", 256), "§6", "the block mean of level 1", "auto"
    ),
    Case(
        "sharded_arrays_are_not_checked", node("0/data", put("codecs", SHARDING)), "§7", "not checked by this version"
    ),
    Case("shard_bytes_belong_to_sharded_stores", block(put("shard_bytes", {})), "§7.3", "only in a store whose arrays"),
    Case(
        "codecs_are_bytes_and_a_compression",
        node("0/data", put("codecs", [LITTLE])),
        "§8",
        "expected bytes, then one of",
    ),
    Case(
        "codecs_are_bytes_and_a_compression", node("0/data", put("codecs.1", {"name": "lz4"})), "§8", "codec is 'lz4'"
    ),
    Case(
        "codecs_are_bytes_and_a_compression",
        node("0/mask", put("codecs.1", {"name": "gzip", "configuration": {"level": 0}})),
        "§8",
        "from 1 to 9",
    ),
    Case(
        "codecs_are_bytes_and_a_compression",
        node("0/data", put("codecs.1.configuration.shuffle", "bitshuffle")),
        "§8",
        "'shuffle'",
        "blosc",
    ),
    Case(
        "bytes_are_little_endian",
        node("0/data", put("codecs.0.configuration.endian", "big")),
        "§8",
        "expected 'little'",
    ),
    Case(
        "blosc_has_the_element_size",
        node("0/data", put("codecs.1.configuration.typesize", 4)),
        "§8",
        "typesize is 4: expected 2",
        "blosc",
    ),
    Case(
        "data_and_planes_have_one_codec",
        node("1/mask", put("codecs.1.configuration.level", 3)),
        "§8",
        "as other arrays",
    ),
]


@pytest.fixture
def fired(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of the rules that find something during the test."""
    names: set[str] = set()
    original = Rule.findings

    def findings(rule: Rule, thing: Any) -> Iterator[Finding]:
        for finding in original(rule, thing):
            names.add(rule.name)
            yield finding

    monkeypatch.setattr(Rule, "findings", findings)
    return names


def copied(base: Path, out: Path) -> Path:
    return Path(shutil.copytree(base, out))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}-{case.part}")
def test_a_broken_store_gives_findings_of_the_section_it_breaks(
    case: Case, bases: dict[str, Path], tmp_path: Path, fired: set[str]
) -> None:
    store = copied(bases[case.base], tmp_path / "store")
    case.edit(store)
    findings = validate(store)
    assert {finding.section for finding in findings} == {case.section}, findings
    assert any(case.part in f"{finding.key} {finding.message}" for finding in findings), findings
    assert case.rule in fired


def test_every_rule_has_a_store_that_breaks_it() -> None:
    registered = [rule.name for rules in RULES.values() for rule in rules]
    assert len(registered) == len(set(registered))
    assert {case.rule for case in CASES} == set(registered)


@pytest.mark.parametrize("base", BASES)
def test_what_the_cases_break_conforms_before(base: str, bases: dict[str, Path]) -> None:
    assert validate(bases[base]) == []


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(7, 2, 33, 18), (1, 1, 1, 1), (3, 1, 64, 16)], ids=str)
@pytest.mark.parametrize("masked", [True, False], ids=["masked", "unmasked"])
def test_stores_of_every_data_type_and_shape_conform(
    tmp_path: Path, dtype: str, shape: tuple[int, int, int, int], masked: bool
) -> None:
    extras: dict[str, Any] = {"mask": planes(shape, 1), "coverage": planes(shape, 255)} if masked else {}
    assert validate(write_store(tmp_path / "out", noise(shape, dtype), **extras).location) == []


@pytest.mark.parametrize("options", [NONE, STAR_DELTA, {"encoding": "star-delta", "anchor_interval": 1}], ids=str)
@pytest.mark.parametrize("nodata", [0, 255, 65535, None])
def test_stores_of_every_nodata_conform(tmp_path: Path, options: dict[str, Any], nodata: int | None) -> None:
    data = np.where(planes(SHAPE, 1)[:, None] == 1, drifting(SHAPE), nodata or 0).astype(np.uint16)
    assert validate(write_store(tmp_path / "out", data, options=options, nodata=nodata).location) == []


@pytest.mark.parametrize("codec", ["zstd", "gzip", "blosc", "blosc-lz4-noshuffle"])
def test_stores_of_every_codec_conform(tmp_path: Path, codec: str) -> None:
    options = STAR_DELTA | {"compression": Compression.parse(codec)}
    assert validate(write_store(tmp_path / "out", DATA, options=options, mask=planes(SHAPE, 1)).location) == []


def test_float_means_and_infinite_values_conform(tmp_path: Path) -> None:
    data = noise((3, 1, 40, 40), "float32") * np.float32(1e30)
    data[0, 0, 3, 3], data[1, 0, :4, :4] = np.inf, -9999.0
    assert validate(write_store(tmp_path / "out", data, nodata=-9999.0).location) == []


def old(store: Path) -> Path:
    """The store as v0.1 had it: names for bands, none of the members that v0.2 added."""

    def change(found: Any) -> None:
        found["spec_version"] = "0.1.0"
        found["bands"] = found.pop("band_names")
        for name in ("levels", "nodata"):
            found.pop(name)
        found["temporal"].pop("encoding")

    edit_block(store, change)
    return store


def test_a_store_of_version_0_1_conforms_without_what_0_2_added(tmp_path: Path) -> None:
    store = old(Path(write_store(tmp_path / "out", DATA, options=STAR_DELTA).location))
    multiscale(put("pixels_per_tile", 16))(store)
    assert validate(store) == []
    plus_one("1/data/c/3/0/0/0", "<u2", 0)(store)
    plus_one("0/time/c/0", "<i8", 0)(store)
    assert {finding.section for finding in validate(store)} == {"§2.2"}


@pytest.mark.parametrize("edit", [
    root(drop("consolidated_metadata")),
    write("zarr.json.aux.xml", b"<PAMDataset/>"),
    write("0/data/zarr.json.aux.xml", b"<PAMDataset/>"),
    multiscale(put("pixels_per_tile", 512)),
    node("0/mask", put("codecs.0", {"name": "bytes"})),
    both(remove("0/data/c/0/0/0/0"), remove("0/mask/c/0/0/0"))
], ids=["no-consolidated", "aux", "array-aux", "pixels-per-tile", "endian", "absent"])  # fmt: skip
def test_what_is_allowed_is_no_finding_of_the_documents(edit: Edit, bases: dict[str, Path], tmp_path: Path) -> None:
    store = copied(bases["star"], tmp_path / "store")
    edit(store)
    assert validate(store, content=False) == []


def test_int32_indices_may_stand_for_band_names(bases: dict[str, Path], tmp_path: Path) -> None:
    store = copied(bases["star"], tmp_path / "store")
    for level in range(3):
        for change in (put("data_type", "int32"), put("codecs", [LITTLE, ZSTD]), put("fill_value", 0)):
            node(f"{level}/band", change)(store)
        write(f"{level}/band/c/0", bytes(numcodecs.Zstd().encode(np.array([0, 1], "<i4"))))(store)
    assert validate(store) == []


def test_a_null_nodata_attribute_is_read_as_absent(bases: dict[str, Path], tmp_path: Path) -> None:
    store = copied(bases["int16"], tmp_path / "store")
    node("0/data", put("attributes.nodata", None))(store)
    assert validate(store) == []


def test_residuals_may_be_padded_with_the_fill_value(tmp_path: Path) -> None:
    store = Path(write_store(tmp_path / "out", drifting((2, 1, 20, 20)), options=STAR_DELTA, nodata=9).location)
    element("0/data/c/1/0/1/1", "<u2", 255, 9)(store)
    assert validate(store) == []
    element("0/data/c/0/0/1/1", "<u2", 255, 0)(store)
    assert [finding.key for finding in validate(store)] == ["0/data/c/0/0/1/1"]


def test_findings_are_collected_and_name_their_chunks(bases: dict[str, Path], tmp_path: Path) -> None:
    store = copied(bases["star"], tmp_path / "store")
    broken = ["0/data/c/1/0/0/0", "0/data/c/4/0/2/3", "1/mask/c/2/0/0", "2/coverage/c/8/0/0"]
    for key in broken:
        write(key, b"torn")(store)
    assert sorted(finding.key for finding in validate(store)) == broken


def test_without_content_no_chunk_of_data_is_read(bases: dict[str, Path], tmp_path: Path) -> None:
    store = copied(bases["star"], tmp_path / "store")
    shutil.rmtree(store / "0" / "data" / "c")
    assert validate(store, content=False) == []


def test_each_chunk_is_read_once(bases: dict[str, Path]) -> None:
    class Counting(LocalStorage):
        def __init__(self, base: Path) -> None:
            super().__init__(base)
            self.keys: list[str] = []

        def get(self, key: str) -> bytes | None:
            self.keys.append(key)
            return super().get(key)

    storage = Counting(bases["star"])
    assert validate(storage) == []
    chunks = [key for key in storage.keys if "/data/c/" in key or "/mask/c/" in key]
    assert len(chunks) == len(set(chunks)) == 2 * 9 * (12 + 4 + 1)


def test_progress_counts_strips_of_timesteps(bases: dict[str, Path]) -> None:
    calls: list[tuple[int, int]] = []
    validate(bases["star"], progress=lambda done, total: calls.append((done, total)))
    assert calls == [(done, 27) for done in range(1, 28)]


def test_no_store_is_an_error_and_a_torn_root_a_finding(tmp_path: Path) -> None:
    with pytest.raises(StoreNotFoundError, match="no chronozarr store"):
        validate(tmp_path)
    (tmp_path / "zarr.json").write_bytes(b'{"zarr_format": 3, ')
    assert [(finding.section, finding.key) for finding in validate(tmp_path)] == [("§2", "zarr.json")]
    (tmp_path / "zarr.json").write_bytes(b"[" * 200_000)
    assert [(finding.section, finding.key) for finding in validate(tmp_path)] == [("§2", "zarr.json")]


ODD: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([10**9, 2**63, 10**400, -(10**30), 0.5, 1e308, float("nan"), float("inf")]),
    st.sampled_from(["", "0", "data", "..", "/etc", "a\0b", "\ud800", "x" * 300, "NaN", "EPSG:0", "2024"]),
    st.sampled_from([[], {}, [[]], [{}], [None], ["0"], [1, 2], {"a": []}, {"name": []}, {"0": 0}]),
)


def members_of(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of every member and entry of a document."""
    items = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in items:
        yield (*path, key)
        yield from members_of(value, (*path, key))


@st.composite
def mutations(draw: st.DrawFn, documents: dict[str, Any]) -> dict[str, Any]:
    """The documents with one or two members of one of them replaced or deleted."""
    name = draw(st.sampled_from(sorted(documents)))
    mutated = copy.deepcopy(documents)
    for _ in range(draw(st.integers(1, 2))):
        *parents, last = draw(st.sampled_from(list(members_of(mutated[name]))))
        container = mutated[name]
        for step in parents:
            container = container[step]
        if draw(st.booleans()):
            container[last] = copy.deepcopy(draw(ODD))
        else:
            del container[last]
    return mutated


class Patched(LocalStorage):
    """A store some of whose objects are replaced in memory."""

    def __init__(self, base: Path, documents: dict[str, Any]) -> None:
        super().__init__(base)
        self._documents = {key: json.dumps(document).encode() for key, document in documents.items()}

    def get(self, key: str) -> bytes | None:
        return self._documents.get(key) or super().get(key)


SMALL: dict[str, dict[str, Any]] = {
    "star": {"options": STAR_DELTA, "mask": planes((5, 1, 20, 20), 1), "provenance": PROVENANCE},
    "auto": {"options": {"encoding": "auto"}},
}


@pytest.fixture(scope="session", params=SMALL)
def small(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A store of two levels and its documents, once without the consolidated copy."""
    folder = tmp_path_factory.mktemp("small") / "store"
    store = Path(write_store(folder, drifting((5, 1, 20, 20)), **SMALL[request.param]).location)
    if request.param == "auto":
        root(drop("consolidated_metadata"))(store)
    return store, {
        path.relative_to(store).as_posix(): json.loads(path.read_bytes()) for path in store.rglob("zarr.json")
    }


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(drawn=st.data())
def test_odd_documents_give_findings_and_never_a_traceback(
    small: tuple[Path, dict[str, Any]], drawn: st.DataObject
) -> None:
    base, documents = small
    storage = Patched(base, drawn.draw(mutations(documents)))
    findings = validate(storage)
    assert all(finding.section.startswith("§") and finding.key and finding.message for finding in findings)


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(drawn=st.data())
def test_odd_documents_open_or_are_refused_by_name(small: tuple[Path, dict[str, Any]], drawn: st.DataObject) -> None:
    base, documents = small
    mutated = drawn.draw(mutations(documents))
    mutated["zarr.json"].pop("consolidated_metadata", None)
    assume(isinstance(mutated["zarr.json"].get("attributes"), dict))
    with suppress(ChronozarrError):
        store = ChronoStore(Patched(base, mutated))
        assert len(store.grids) == len(store.levels) >= 1
        assert store.dtype.name in DTYPES
