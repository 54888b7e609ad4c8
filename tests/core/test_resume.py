"""A store appears whole or not at all, and an interrupted run goes on where it stopped."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from chronozarr_core import ArraySeries, ChronozarrError, Compression, EncodeOptions, encode_series, open_store
from tests.core.builders import LazySeries, drifting, files, lazy, months, planes, series_of

SHAPE = (9, 1, 40, 20)
DATA: NDArray[np.uint16] = drifting(SHAPE)
STRIPS = 3
OPTIONS = EncodeOptions(encoding="star-delta", anchor_interval=3, chunk_size=16, workers=2)


@pytest.fixture
def whole(tmp_path: Path) -> dict[str, bytes]:
    """The files of an uninterrupted run."""
    return files(encode_series(lazy(DATA), tmp_path / "whole", OPTIONS).path)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def partial(out: Path) -> Path:
    return out.with_name("out.partial")


def stop_after(reads: int, error: type[BaseException] = KeyboardInterrupt) -> Callable[[int], None]:
    count = itertools.count(1)

    def on_read(_: int) -> None:
        if next(count) > reads:
            raise error

    return on_read


def interrupt(out: Path, reads: int = 20, options: EncodeOptions = OPTIONS) -> None:
    """Run until a read is interrupted from the keyboard; the partial store stays."""
    with pytest.raises(KeyboardInterrupt):
        encode_series(lazy(DATA, on_read=stop_after(reads)), out, options, resumable=True)
    assert partial(out).is_dir()


@pytest.mark.parametrize("reads", [0, 1, 8, 13, 20, 26])
def test_an_interrupted_run_resumes_to_the_files_of_an_uninterrupted_one(
    out: Path, whole: dict[str, bytes], reads: int
) -> None:
    interrupt(out, reads)
    assert not out.exists()
    assert not (partial(out) / "zarr.json").exists()
    encode_series(lazy(DATA), out, OPTIONS, resume=True)
    assert files(out) == whole
    assert not partial(out).exists()


def test_resuming_reads_only_the_unfinished_groups(out: Path) -> None:
    interrupt(out, reads=STRIPS * 8)
    read: list[int] = []
    encode_series(lazy(DATA, on_read=read.append), out, OPTIONS, resume=True)
    assert 0 < len(read) < STRIPS * 9
    assert 0 not in read


def test_a_run_may_be_interrupted_again_and_again(out: Path, whole: dict[str, bytes]) -> None:
    for attempt in range(20):
        series = lazy(DATA, on_read=stop_after(13))
        try:
            encode_series(series, out, OPTIONS, resumable=True, resume=attempt > 0)
            break
        except KeyboardInterrupt:
            assert not out.exists()
    assert files(out) == whole


def test_the_choice_of_auto_is_kept_and_not_measured_again(out: Path, tmp_path: Path) -> None:
    options = EncodeOptions(anchor_interval=3, chunk_size=16, workers=2)
    expected = files(encode_series(lazy(DATA), tmp_path / "whole", options).path)
    sampled = 3 * len(DATA)
    interrupt(out, sampled + 20, options)
    read: list[int] = []
    encode_series(lazy(DATA, on_read=read.append), out, options, resume=True)
    assert len(read) <= STRIPS * len(DATA)
    assert files(out) == expected


def test_infinite_sums_survive_an_interruption(out: Path, tmp_path: Path) -> None:
    data = np.where(DATA % 7 == 0, np.inf, DATA).astype(np.float32)

    class Interrupted(ArraySeries):
        def read(self, t: int, rows: slice, cols: slice = slice(None)):  # type: ignore[no-untyped-def]
            if t == 7:
                raise KeyboardInterrupt
            return super().read(t, rows, cols)

    options = EncodeOptions(anchor_interval=3, chunk_size=16)
    expected = files(encode_series(series_of(data), tmp_path / "whole", options).path)
    made = series_of(data)
    with pytest.raises(KeyboardInterrupt):
        encode_series(
            Interrupted(data, grid=made.grid, times=made.times, bands=made.bands), out, options, resumable=True
        )
    encode_series(made, out, options, resume=True)
    assert files(out) == expected


def test_a_left_partial_store_is_neither_overwritten_nor_removed_unasked(out: Path) -> None:
    interrupt(out)
    before = files(partial(out))
    with pytest.raises(
        ChronozarrError, match=r"out.partial is left from an interrupted run: continue it with --resume, or"
    ):
        encode_series(lazy(DATA), out, OPTIONS)
    assert files(partial(out)) == before


def _later(series: LazySeries) -> None:
    series.times = series.times + np.timedelta64(1, "D")


def _renamed(series: LazySeries) -> None:
    series.bands = series_of(DATA, bands=["other"]).bands


def _signed(series: LazySeries) -> None:
    series.dtype = np.dtype(np.uint8)


def _source(series: LazySeries) -> None:
    series.fingerprint = "other files"


def _nodata(series: LazySeries) -> None:
    series.nodata = 7


def _grid(series: LazySeries) -> None:
    series.grid = series.grid.coarser()


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (_later, "times"),
        (_renamed, "bands"),
        (_signed, "dtype"),
        (_source, "source"),
        (_nodata, "validity"),
        (_grid, "grid"),
    ],
)
def test_other_data_are_refused_by_what_changed_and_the_partial_store_kept(
    out: Path, whole: dict[str, bytes], change: Callable[[LazySeries], None], what: str
) -> None:
    interrupt(out)
    before = files(partial(out))
    changed = lazy(DATA)
    change(changed)
    with pytest.raises(
        ChronozarrError, match=f"out.partial was begun with other {what}: run the same command as before"
    ):
        encode_series(changed, out, OPTIONS, resume=True)
    assert files(partial(out)) == before
    encode_series(lazy(DATA), out, OPTIONS, resume=True)
    assert files(out) == whole


@pytest.mark.parametrize(
    "options",
    [
        {"encoding": "none"},
        {"anchor_interval": 4},
        {"chunk_size": 8},
        {"n_lods": 1},
        {"compression": Compression("zstd", 6)},
        {"compression": Compression("gzip", 5)},
    ],
    ids=str,
)
def test_other_options_are_refused(out: Path, options: dict[str, object]) -> None:
    interrupt(out)
    same = {"encoding": "star-delta", "anchor_interval": 3, "chunk_size": 16}
    with pytest.raises(ChronozarrError, match="was begun with other options"):
        encode_series(lazy(DATA), out, EncodeOptions(**(same | options)), resume=True)  # type: ignore[arg-type]
    assert partial(out).is_dir()


def test_the_number_of_threads_may_differ(out: Path, whole: dict[str, bytes]) -> None:
    interrupt(out)
    same = EncodeOptions(encoding="star-delta", anchor_interval=3, chunk_size=16, workers=5)
    encode_series(lazy(DATA), out, same, resume=True)
    assert files(out) == whole


def test_what_a_run_without_a_plan_left_is_not_trusted(out: Path, whole: dict[str, bytes]) -> None:
    """A run killed while it published has chunks and group entries, and no plan to compare with."""
    interrupt(out)
    (partial(out) / ".encode" / "plan.json").unlink()
    stale = partial(out) / "0/data/c/0/0/9/9"
    stale.parent.mkdir(parents=True, exist_ok=True)
    stale.write_bytes(b"of another grid")
    encode_series(lazy(DATA), out, OPTIONS, resume=True)
    assert files(out) == whole


def test_a_folder_that_no_run_left_is_refused_and_kept(out: Path) -> None:
    partial(out).mkdir()
    (partial(out) / "mine").write_text("kept")
    with pytest.raises(ChronozarrError, match=r"out.partial is not what an interrupted run leaves: move it elsewhere"):
        encode_series(lazy(DATA), out, OPTIONS, resume=True)
    assert files(partial(out)) == {"mine": b"kept"}


def test_a_run_killed_between_its_last_two_steps_is_written_again(out: Path, whole: dict[str, bytes]) -> None:
    shutil.copytree(out.with_name("whole"), partial(out))
    encode_series(lazy(DATA), out, OPTIONS, resume=True)
    assert files(out) == whole


def test_resuming_where_nothing_was_begun_is_a_plain_run(out: Path, whole: dict[str, bytes]) -> None:
    encode_series(lazy(DATA), out, OPTIONS, resume=True)
    assert files(out) == whole


def test_two_runs_at_once_are_refused_and_the_first_goes_on(out: Path, whole: dict[str, bytes]) -> None:
    refused: list[str] = []

    def second(t: int) -> None:
        if t == 4 and not refused:
            with pytest.raises(ChronozarrError) as caught:
                encode_series(lazy(DATA), out, OPTIONS, resume=True)
            refused.append(str(caught.value))

    encode_series(lazy(DATA, on_read=second), out, OPTIONS)
    assert len(refused) == 1
    assert "out.partial is being written by another process: wait for it to end" in refused[0]
    assert files(out) == whole


def test_an_interruption_leaves_nothing_unless_the_run_is_resumable(out: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        encode_series(lazy(DATA, on_read=stop_after(9)), out, OPTIONS)
    assert list(out.parent.iterdir()) == []


class CancelledError(Exception):
    """What a progress callback raises."""


@pytest.mark.parametrize("steps", [1, 14, 27])
def test_a_progress_callback_that_raises_cancels_and_leaves_nothing(out: Path, steps: int) -> None:
    def progress(done: int, _: int) -> None:
        if done == steps:
            raise CancelledError

    with pytest.raises(CancelledError):
        encode_series(lazy(DATA), out, OPTIONS, resumable=True, progress=progress)
    assert list(out.parent.iterdir()) == []


def test_progress_counts_every_strip_once_and_finished_groups_at_once(out: Path) -> None:
    total = STRIPS * len(DATA)
    seen: list[tuple[int, int]] = []
    encode_series(lazy(DATA), out, OPTIONS, progress=lambda done, all_: seen.append((done, all_)))
    assert seen == [(done, total) for done in range(1, total + 1)]
    shutil.rmtree(out)
    interrupt(out, STRIPS * 8)
    resumed: list[int] = []
    encode_series(lazy(DATA), out, OPTIONS, resume=True, progress=lambda done, _: resumed.append(done))
    assert resumed == sorted(resumed)
    assert resumed[-1] == total


CHILD = """
    import time
    from chronozarr_core import EncodeOptions, encode_series
    from tests.core.builders import drifting, lazy
    data = drifting({shape})
    slow = lazy(data, on_read=lambda t: time.sleep(0.01))
    options = EncodeOptions(encoding="star-delta", anchor_interval=3, chunk_size=16, workers=2)
    print("ready", flush=True)
    encode_series(slow, {out!r}, options)
"""


def _killed(out: Path, after: float) -> None:
    """Kill -9 a run so many seconds after it began."""
    code = textwrap.dedent(CHILD.format(shape=SHAPE, out=str(out)))
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(after)
        child.kill()


def _moments() -> Iterator[float]:
    """Ten moments of a run that takes about a sixth of a second, and one long after its end."""
    chooser = random.Random(7)
    yield from (chooser.uniform(0, 0.25) for _ in range(10))
    yield 2.0


def test_killed_at_any_moment_a_store_is_absent_or_whole_and_resumes(out: Path, whole: dict[str, bytes]) -> None:
    left = 0
    for moment in _moments():
        _killed(out, moment)
        if out.exists():
            assert files(out) == whole
            assert not partial(out).exists()
        else:
            left += partial(out).exists()
            encode_series(lazy(DATA), out, OPTIONS, resume=True)
            assert files(out) == whole
        shutil.rmtree(out)
    assert left > 3


@pytest.mark.parametrize("encoding", ["none", "star-delta", "auto"])
def test_any_number_of_threads_writes_the_same_files(tmp_path: Path, encoding: str) -> None:
    parts = {"mask": planes(SHAPE, 1), "coverage": planes(SHAPE, 9), "nodata": 65535}
    written = []
    for workers in (1, 2, 5):
        options = EncodeOptions(encoding=encoding, anchor_interval=4, chunk_size=16, workers=workers)
        written.append(files(encode_series(series_of(DATA, **parts), tmp_path / str(workers), options).path))
    assert written[0] == written[1] == written[2]


def test_the_result_counts_the_objects_and_bytes_of_the_folder(out: Path) -> None:
    result = encode_series(lazy(DATA), out, OPTIONS)
    found = files(out)
    assert (result.path, result.objects, result.nbytes) == (out, len(found), sum(map(len, found.values())))
    assert result.levels == len(open_store(out).levels)
    assert (open_store(out).times == months(9)).all()
