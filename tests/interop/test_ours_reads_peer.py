"""We accept every store that the published package writes, read its values, and build the same pyramid."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import zarr

from chronozarr_core import encode, open_store
from chronozarr_core.validate import validate
from tests.core.builders import CRS, TRANSFORM, months
from tests.interop.cases import Case, differences, matrix, read_all
from tests.interop.peer import Peer

CODECS = ("zstd", "blosc-zstd-shuffle")
BANDS = [
    {"name": "NIR", "common_name": "nir", "scale": 1e-4, "offset": -0.1, "units": "reflectance"},
    {"name": "other"},
]

pytestmark = pytest.mark.interop


def keywords(case: Case) -> dict[str, object]:
    """What both writers call by the same names."""
    return {
        "crs": CRS,
        "transform": TRANSFORM,
        "times": months(case.shape[0]),
        "bands": [f"B{number + 1}" for number in range(case.shape[1])],
        "encoding": case.encoding,
        "anchor_interval": 3,
        "codec": case.codec,
        "nodata": case.nodata,
        "chunk_size": 16,
        **case.planes(),
    }


@pytest.mark.parametrize("case", matrix(CODECS), ids=str)
def test_we_accept_the_peers_store_and_read_every_level_as_the_peer_does(
    case: Case, peer: Peer, tmp_path: Path
) -> None:
    peer.encode(case.data(), tmp_path / "theirs", **keywords(case))
    assert validate(tmp_path / "theirs") == []
    ours = read_all(open_store(tmp_path / "theirs"))
    assert differences(ours[:1], [{"data": case.data(), **case.planes()}]) == []
    assert differences(ours, peer.read_all(tmp_path / "theirs")) == []


@pytest.mark.parametrize("case", matrix(("zstd",)), ids=str)
def test_both_writers_build_the_same_pyramid(case: Case, peer: Peer, tmp_path: Path) -> None:
    peer.encode(case.data(), tmp_path / "theirs", **keywords(case))
    encode(case.data(), tmp_path / "ours", **keywords(case))
    ours, theirs = (read_all(open_store(tmp_path / name)) for name in ("ours", "theirs"))
    assert differences(ours, theirs) == []


@pytest.mark.parametrize("encoding", ["none", "star-delta"])
def test_both_writers_find_the_same_volatility(encoding: str, peer: Peer, tmp_path: Path) -> None:
    case = Case("uint16", encoding)
    peer.encode(case.data(), tmp_path / "theirs", **keywords(case))
    encode(case.data(), tmp_path / "ours", **keywords(case))
    ours, theirs = (tmp_path.joinpath(name, "volatility") for name in ("ours", "theirs"))
    np.testing.assert_allclose(zarr.open_array(ours)[:], zarr.open_array(theirs)[:], rtol=1e-6)


def test_both_writers_choose_the_same_encoding_by_themselves(peer: Peer, tmp_path: Path) -> None:
    for name, case in (("noise", Case("uint16", "none")), ("drift", Case("uint16", "star-delta"))):
        options = keywords(case) | {"encoding": "auto"}
        theirs = peer.encode(case.data(), tmp_path / f"{name}-theirs", **options)
        ours = encode(case.data(), tmp_path / f"{name}-ours", **options)
        assert (name, ours.temporal.encoding) == (name, theirs["encoding"])


def test_we_find_times_bands_crs_and_nodata_of_the_peers_store(peer: Peer, tmp_path: Path) -> None:
    case = Case("int16", "none", -32768)
    peer.encode(case.data(), tmp_path / "theirs", **keywords(case) | {"bands": BANDS})
    store = open_store(tmp_path / "theirs")
    assert list(store.times) == list(months(5))
    assert [(b.name, b.common_name, b.scale, b.offset, b.units) for b in store.bands] == [
        ("NIR", "nir", 1e-4, -0.1, "reflectance"),
        ("other", None, 1.0, 0.0, None),
    ]
    assert (store.crs, store.nodata, store.dtype) == (CRS, -32768, np.dtype("int16"))
    assert store.grids[0].transform == TRANSFORM
