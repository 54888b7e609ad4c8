"""Memory follows neither the number of timesteps nor the height of a frame."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from chronozarr_core import EncodeOptions, encode_series
from tests.core.builders import LazySeries


def drawn(shape: tuple[int, int, int, int]) -> LazySeries:
    """Frames that exist only while they are read, compress well and fill no chunk with nodata."""

    def frame(t: int, rows: slice, cols: slice) -> NDArray[np.uint16]:
        y = np.arange(shape[2], dtype=np.uint16)[rows, None]
        x = np.arange(shape[3], dtype=np.uint16)[cols]
        return np.broadcast_to(y // 16 + x // 16 + np.uint16(t + 1), (shape[1], y.size, x.size)).copy()

    return LazySeries(shape, frame)


def peak(series: LazySeries, out: Path, encoding: str) -> int:
    options = EncodeOptions(encoding=encoding, anchor_interval=2, chunk_size=64, workers=2)
    tracemalloc.start()
    encode_series(series, out, options)
    reached = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return reached


@pytest.mark.parametrize("encoding", ["none", "star-delta", "auto"])
def test_memory_does_not_grow_with_the_number_of_timesteps(tmp_path: Path, encoding: str) -> None:
    peak(drawn((2, 2, 64, 64)), tmp_path / "imports", encoding)
    few = peak(drawn((8, 4, 192, 256)), tmp_path / "few", encoding)
    many = peak(drawn((64, 4, 192, 256)), tmp_path / "many", encoding)
    frame = 4 * 192 * 256 * 2
    assert many - few < frame, f"{few / frame:.1f} frames for 8 timesteps, {many / frame:.1f} for 64"


@pytest.mark.parametrize("encoding", ["none", "star-delta"])
def test_memory_does_not_grow_with_the_height_of_a_frame(tmp_path: Path, encoding: str) -> None:
    peak(drawn((2, 2, 64, 64)), tmp_path / "imports", encoding)
    low = peak(drawn((4, 4, 512, 256)), tmp_path / "low", encoding)
    high = peak(drawn((4, 4, 4096, 256)), tmp_path / "high", encoding)
    extra = 4 * (4096 - 512) * 256 * 2
    assert high - low < extra / 4, f"{low} bytes for 512 rows, {high} for 4096"
