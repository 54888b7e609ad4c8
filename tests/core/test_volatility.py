"""The volatility array against the formula of §5."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.core import reference
from tests.core.builders import drifting, noise, write_store


def volatility(store: Path) -> NDArray[np.float32]:
    values = reference.decode(reference.document(store, "volatility"), (store / "volatility/c/0/0").read_bytes())
    assert values.dtype == np.float32
    return values


@pytest.mark.parametrize("interval", [2, 3, 6])
@pytest.mark.parametrize(
    ("dtype", "encoding"),
    [
        ("uint8", "none"),
        ("uint8", "star-delta"),
        ("uint16", "none"),
        ("uint16", "star-delta"),
        ("int16", "none"),
        ("float32", "none"),
    ],
)
def test_each_cell_is_the_mean_difference_to_its_references_edges_included(
    tmp_path: Path, dtype: str, encoding: str, interval: int
) -> None:
    data = noise((8, 2, 35, 20), dtype)
    write_store(tmp_path / "out", data, options={"encoding": encoding, "anchor_interval": interval})
    expected = reference.volatility(data, interval, 16)
    assert expected.shape == (3, 2)
    np.testing.assert_allclose(volatility(tmp_path / "out"), expected, rtol=1e-6)


def test_invalid_pixels_count(tmp_path: Path) -> None:
    data = np.zeros((2, 1, 4, 4), np.uint16)
    data[1, 0, 0, 0] = 16000
    write_store(tmp_path / "out", data, mask=np.zeros((2, 4, 4), bool), nodata=16000)
    assert volatility(tmp_path / "out").tolist() == [[pytest.approx(0.1)]]


def test_it_is_clipped_to_one(tmp_path: Path) -> None:
    data = np.array([0, 65535], np.uint16).reshape(2, 1, 1, 1)
    write_store(tmp_path / "out", data)
    assert volatility(tmp_path / "out").tolist() == [[1.0]]


@pytest.mark.parametrize(("n_time", "interval"), [(1, 6), (5, 1)])
@pytest.mark.parametrize("encoding", ["none", "star-delta"])
def test_it_is_zero_without_delta_timesteps(tmp_path: Path, n_time: int, interval: int, encoding: str) -> None:
    write_store(
        tmp_path / "out", noise((n_time, 1, 20, 20)), options={"encoding": encoding, "anchor_interval": interval}
    )
    assert volatility(tmp_path / "out").tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_int16_extremes_differ_by_65535_not_by_minus_one(tmp_path: Path) -> None:
    data = np.full((2, 1, 100, 100), 32767, np.int16)
    data[1, 0, 0, 0] = -32768
    write_store(tmp_path / "out", data, options={"chunk_size": 100})
    assert volatility(tmp_path / "out")[0, 0] == pytest.approx(65535 / 100**2 / 10000)


def test_infinite_differences_give_one_and_stay_finite(tmp_path: Path) -> None:
    data = np.array([np.inf, -np.inf, np.inf], np.float32).reshape(3, 1, 1, 1)
    write_store(tmp_path / "out", data)
    assert volatility(tmp_path / "out").tolist() == [[1.0]]


def test_a_steady_scene_orders_below_a_changing_one(tmp_path: Path) -> None:
    data = drifting((6, 1, 16, 32))
    data[..., 16:] = noise((6, 1, 16, 16))
    write_store(tmp_path / "out", data)
    calm, wild = volatility(tmp_path / "out")[0]
    assert calm < 1e-3 < wild
