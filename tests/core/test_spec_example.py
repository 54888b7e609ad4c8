"""The complete example of §3.9, from the specification's own JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
from numpy.typing import NDArray

from chronozarr_core import ChronoStore, RasterGrid, encode, open_store
from tests.core import reference
from tests.core.builders import drifting, planes

EXAMPLE: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "spec_3_9.json").read_text())
ROOT = EXAMPLE["zarr.json"]["attributes"]
BLOCK = ROOT["chronozarr"]
SHAPE = (5, 2, 700, 600)
GEOREFERENCE = {
    "_CRS",
    "proj:code",
    "spatial:bbox",
    "spatial:dimensions",
    "spatial:shape",
    "spatial:transform",
    "zarr_conventions",
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> ChronoStore:
    result = encode(
        drifting(SHAPE),
        tmp_path_factory.mktemp("example") / "store",
        crs=BLOCK["crs"],
        transform=BLOCK["levels"][0]["transform"],
        times=BLOCK["times"],
        bands=BLOCK["bands"],
        anchor_interval=2,
        mask=planes(SHAPE, 1),
        coverage=planes(SHAPE, 9),
        provenance=BLOCK["provenance"],
    )
    return open_store(result.path)


def unsharded(array: dict[str, Any]) -> dict[str, Any]:
    """The same array without ``sharding_indexed``: its inner chunks and codecs (§7.1)."""
    codec = array["codecs"][0]
    if codec["name"] != "sharding_indexed":
        return array
    grid = {"name": "regular", "configuration": {"chunk_shape": codec["configuration"]["chunk_shape"]}}
    return array | {"chunk_grid": grid, "codecs": codec["configuration"]["codecs"]}


def comparable(array: dict[str, Any]) -> dict[str, Any]:
    """Without what §2.3 and §3.3 leave open: the byte order of one-byte data, georeferencing, empty members."""
    attributes = {name: value for name, value in array["attributes"].items() if name not in GEOREFERENCE}
    first, *others = array["codecs"]
    codecs = [{"name": "bytes"}, *others] if array["data_type"] == "uint8" else [first, *others]
    plain = {name: value for name, value in array.items() if value != [] or name != "storage_transformers"}
    return plain | {"attributes": attributes, "codecs": codecs}


def found(store: ChronoStore, path: str) -> dict[str, Any]:
    return reference.document(Path(store.location), path)


def test_the_root_attributes_are_the_examples_apart_from_shards_and_the_measured_ratio(store: ChronoStore) -> None:
    attributes = found(store, "")["attributes"]
    selection = attributes["chronozarr"]["temporal"].pop("selection")
    expected = json.loads(json.dumps(ROOT))
    del expected["chronozarr"]["shard_bytes"]
    measured = expected["chronozarr"]["temporal"].pop("selection")
    assert attributes == expected
    assert selection.keys() == measured.keys()
    assert (selection["mode"], selection["sampled_cells"]) == (measured["mode"], measured["sampled_cells"])
    assert 0 < selection["ratio"] <= 0.85


def test_members_of_the_chronozarr_block_come_in_the_examples_order(store: ChronoStore) -> None:
    assert list(found(store, "")["attributes"]["chronozarr"]) == [name for name in BLOCK if name != "shard_bytes"]


def test_level_groups_are_the_examples(store: ChronoStore) -> None:
    assert found(store, "0") == EXAMPLE["0/zarr.json"]
    coarser = EXAMPLE["0/zarr.json"]["attributes"] | EXAMPLE["1/zarr.json"]
    assert found(store, "1")["attributes"] == coarser


@pytest.mark.parametrize(
    ("path", "example"), [("data", "data"), ("mask", "mask"), ("coverage", "mask"), ("time", "time")]
)
def test_level_0_arrays_are_the_examples_unsharded(store: ChronoStore, path: str, example: str) -> None:
    expected = unsharded(EXAMPLE[f"0/{example}/zarr.json"])
    assert comparable(found(store, f"0/{path}")) == comparable(expected)


@pytest.mark.parametrize(("path", "example"), [("data", "data"), ("mask", "mask"), ("coverage", "mask")])
def test_level_1_arrays_differ_only_in_shape(store: ChronoStore, path: str, example: str) -> None:
    expected = unsharded(EXAMPLE[f"0/{example}/zarr.json"])
    expected["shape"] = [*expected["shape"][:-2], 350, 300]
    assert comparable(found(store, f"1/{path}")) == comparable(expected)


def test_time_decodes_to_the_examples_milliseconds_at_every_level(store: ChronoStore) -> None:
    for level in "01":
        raw = (Path(store.location) / level / "time/c/0").read_bytes()
        assert np.frombuffer(numcodecs.Zstd().decode(raw), "<i8").tolist() == EXAMPLE["0/time/c/0"]


def test_band_y_and_x_follow_the_pattern_of_time(store: ChronoStore) -> None:
    for name, data_type, codec in (
        ("band", "string", "vlen-utf8"),
        ("y", "float64", "bytes"),
        ("x", "float64", "bytes"),
    ):
        array = found(store, f"0/{name}")
        assert array["data_type"] == data_type
        assert array["codecs"][0]["name"] == codec
        assert array["dimension_names"] == array["attributes"]["_ARRAY_DIMENSIONS"] == [name]
        assert array["chunk_grid"]["configuration"]["chunk_shape"] == array["shape"]


def test_volatility_is_the_examples(store: ChronoStore) -> None:
    array = found(store, "volatility")
    expected = EXAMPLE["volatility/zarr.json"]
    assert array["chunk_grid"]["configuration"]["chunk_shape"] == expected["chunk_shape"]
    for name in ("shape", "data_type", "fill_value", "dimension_names"):
        assert array[name] == expected[name]


def test_objects_are_one_for_each_timestep_cell_and_level(store: ChronoStore) -> None:
    root = Path(store.location)
    cells = {0: [(0, 0), (0, 1), (1, 0), (1, 1)], 1: [(0, 0)]}
    for level, places in cells.items():
        keys = {p.relative_to(root / f"{level}/data/c").as_posix() for p in root.glob(f"{level}/data/c/*/*/*/*")}
        assert keys == {f"{t}/0/{r}/{c}" for t in range(5) for r, c in places}


def test_georeferencing_of_the_arrays_is_what_3_3_says(store: ChronoStore) -> None:
    for level in BLOCK["levels"]:
        attributes = found(store, f"{level['path']}/data")["attributes"]
        height, width = level["shape"][2:]
        a, _, c, _, e, f = level["transform"]
        assert attributes["proj:code"] == "EPSG:32631"
        assert attributes["spatial:dimensions"] == ["y", "x"]
        assert attributes["spatial:shape"] == [height, width]
        assert attributes["spatial:transform"] == level["transform"]
        assert attributes["spatial:bbox"] == [c, f + e * height, c + a * width, f]
        assert attributes["_CRS"]["url"] == "http://www.opengis.net/def/crs/EPSG/0/32631"


def test_every_array_names_its_dimensions_twice_and_is_consolidated(store: ChronoStore) -> None:
    consolidated = found(store, "")["consolidated_metadata"]
    assert consolidated["kind"] == "inline"
    root = Path(store.location)
    nodes = {p.parent.relative_to(root).as_posix(): json.loads(p.read_bytes()) for p in root.glob("**/zarr.json")}
    del nodes["."]
    assert consolidated["metadata"] == nodes
    for node in nodes.values():
        assert node["node_type"] == "group" or node["dimension_names"] == node["attributes"]["_ARRAY_DIMENSIONS"]


@pytest.mark.parametrize(("encoding", "block"), [("none", {"encoding": "none"}), ("star-delta", None)])
def test_a_forced_encoding_writes_no_selection(tmp_path: Path, encoding: str, block: dict[str, Any] | None) -> None:
    small: NDArray[np.uint16] = drifting((5, 1, 4, 4))
    transform = BLOCK["levels"][0]["transform"]
    encode(
        small,
        tmp_path / "s",
        crs="EPSG:32631",
        transform=transform,
        times=BLOCK["times"],
        encoding=encoding,
        anchor_interval=2,
    )
    temporal = reference.document(tmp_path / "s", "")["attributes"]["chronozarr"]["temporal"]
    expected = {name: value for name, value in BLOCK["temporal"].items() if name != "selection"}
    assert temporal == (block or expected)


def test_the_examples_metadata_read_and_written_again_are_the_same() -> None:
    from chronozarr_core import StoreMetadata

    assert StoreMetadata.from_json(BLOCK).to_json() == BLOCK


def test_the_examples_levels_follow_from_its_first_grid() -> None:
    first = BLOCK["levels"][0]
    grids = RasterGrid(BLOCK["crs"], first["transform"], *first["shape"][2:]).levels(512)
    assert [list(grid.transform) for grid in grids] == [level["transform"] for level in BLOCK["levels"]]
    assert [list(grid.cells(512)) for grid in grids] == [level["grid"] for level in BLOCK["levels"]]
    assert [grid.resolution for grid in grids] == [level["resolution"] for level in BLOCK["levels"]]
