"""The published package accepts every store that we write, and reads our values from it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from chronozarr_core import ChronoStore, Compression
from tests.core.builders import write_store
from tests.interop.cases import Case, differences, matrix, read_all
from tests.interop.peer import Peer

CODECS = ("zstd", "gzip", "blosc-zstd-shuffle", "blosc-zstd-noshuffle", "blosc-lz4-shuffle", "blosc-lz4-noshuffle")
BANDS = [
    {"name": "NIR", "common_name": "nir", "scale": 1e-4, "offset": -0.1, "units": "reflectance"},
    {"name": "height", "scale": 0.5, "units": "m"},
]

pytestmark = pytest.mark.interop


def written(case: Case, out: Path) -> ChronoStore:
    options = {"encoding": case.encoding, "anchor_interval": 3, "compression": Compression.parse(case.codec)}
    return write_store(out, case.data(), options=options, nodata=case.nodata, **case.planes())


@pytest.mark.parametrize("case", matrix(CODECS), ids=str)
def test_peer_accepts_our_store_and_reads_every_level_as_we_do(case: Case, peer: Peer, tmp_path: Path) -> None:
    store = written(case, tmp_path / "store")
    assert peer.problems(tmp_path / "store") == []
    theirs = peer.read_all(tmp_path / "store")
    assert differences([{"data": case.data(), **case.planes()}], theirs[:1]) == []
    assert differences(read_all(store), theirs) == []


@pytest.mark.parametrize(
    "case",
    [
        Case("uint16", "star-delta", 0),
        Case("uint8", "none", 255, ("mask", "coverage")),
        Case("int16", "none", -32768, codec="gzip"),
        Case("float32", "none", -9999.0, codec="blosc-lz4-shuffle"),
    ],
    ids=str,
)
def test_peers_command_validates_our_store(case: Case, peer: Peer, tmp_path: Path) -> None:
    written(case, tmp_path / "store")
    conforms, text = peer.validate(tmp_path / "store")
    assert conforms, text


def test_peer_finds_times_bands_nodata_and_dtype_of_our_store(peer: Peer, tmp_path: Path) -> None:
    case = Case("uint16", "star-delta", 65535)
    store = write_store(tmp_path / "store", case.data(), nodata=65535, bands=BANDS)
    assert peer.info(tmp_path / "store") == {
        "times": [str(time) for time in store.times],
        "bands": ["NIR", "height"],
        "levels": len(store.levels),
        "nodata": 65535,
        "dtype": "uint16",
    }


@pytest.mark.parametrize("extra", [(), ("mask",)])
def test_peer_computes_our_physical_values(extra: tuple[str, ...], peer: Peer, tmp_path: Path) -> None:
    case = Case("uint16", "none", 0, extra)
    write_store(tmp_path / "store", case.data(), nodata=case.nodata, bands=BANDS, **case.planes())
    stored = case.data()[0]
    valid = case.planes()["mask"][0] == 1 if extra else stored != case.nodata
    expected = np.where(valid, stored * np.array([[[1e-4]], [[0.5]]]) + np.array([[[-0.1]], [[0.0]]]), np.nan)
    np.testing.assert_allclose(peer.physical(tmp_path / "store", 0), expected, rtol=1e-6, atol=1e-7)


def test_peer_refuses_a_store_of_ours_that_is_damaged(peer: Peer, tmp_path: Path) -> None:
    written(Case("uint16", "none"), tmp_path / "store")
    (tmp_path / "store" / "1" / "data" / "zarr.json").unlink()
    assert peer.problems(tmp_path / "store")
    assert not peer.validate(tmp_path / "store")[0]
