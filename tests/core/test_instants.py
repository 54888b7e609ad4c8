"""ISO-8601 dates to instants and back (§2.2)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chronozarr_core import ChronozarrError
from chronozarr_core.instants import as_instants, check_increasing, format_instant, parse_instant

FIRST = int(np.datetime64("0001-01-01T00:00:00.000", "ms").astype("int64"))
LAST = int(np.datetime64("9999-12-31T23:59:59.999", "ms").astype("int64"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-03-01", "2024-03-01T00:00:00Z"),
        ("2024-03", "2024-03-01T00:00:00Z"),
        ("20240301", "2024-03-01T00:00:00Z"),
        ("2024-03-01T10:30", "2024-03-01T10:30:00Z"),
        ("2024-03-01 10:30:15", "2024-03-01T10:30:15Z"),
        ("2024-03-01T10:30:00Z", "2024-03-01T10:30:00Z"),
        ("2024-03-01T10:30:00.5Z", "2024-03-01T10:30:00.500Z"),
        ("2024-03-01T10:30:00.123000Z", "2024-03-01T10:30:00.123Z"),
        ("2024-03-01T10:30:00.123000000Z", "2024-03-01T10:30:00.123Z"),
        ("2024-03-01T00:30:00+02:00", "2024-02-29T22:30:00Z"),
        ("2024-02-29", "2024-02-29T00:00:00Z"),
        ("2024-W09-5", "2024-03-01T00:00:00Z"),
        (" 2024-03-01 ", "2024-03-01T00:00:00Z"),
        ("1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z"),
        ("0001-01-01", "0001-01-01T00:00:00Z"),
        ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
    ],
)
def test_dates_are_read_as_instants_in_utc(text: str, expected: str) -> None:
    assert format_instant(parse_instant(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "2023-02-29",
        "2024-13-01",
        "2024",
        "01/03/2024",
        "2024-03-01T25:00",
        "None",
        "NaT",
        "10000-01-01",
        "-0001-01-01",
    ],
)
def test_what_is_no_date_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ChronozarrError, match="is not a date: expected ISO 8601, for example 2024-03-01"):
        parse_instant(text)


@pytest.mark.parametrize("fraction", ["1234", "123456", "0001", "1230004", "123000001"])
def test_text_finer_than_a_millisecond_is_refused(fraction: str) -> None:
    with pytest.raises(ChronozarrError, match="finer than a millisecond"):
        parse_instant(f"2024-03-01T10:30:00.{fraction}Z")


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00"])
def test_an_offset_that_leaves_the_calendar_is_refused(text: str) -> None:
    with pytest.raises(ChronozarrError, match="is not a date"):
        parse_instant(text)


@given(st.integers(FIRST, LAST))
def test_every_millisecond_of_years_1_to_9999_survives_text(milliseconds: int) -> None:
    instant = np.datetime64(milliseconds, "ms")
    assert parse_instant(format_instant(instant)) == instant


@given(st.datetimes(timezones=st.just(timezone(timedelta(hours=-3)))))
def test_aware_datetimes_are_moved_to_utc(moment: datetime) -> None:
    moment = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    milliseconds = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    if FIRST <= milliseconds <= LAST:
        assert as_instants([moment]).astype("int64").tolist() == [milliseconds]


def test_times_of_any_form_are_the_same_instants() -> None:
    expected = np.array(["2024-01-01", "2024-02-01"], "datetime64[ms]")
    forms = (
        ["2024-01-01", "2024-02-01T00:00:00Z"],
        np.array(["2024-01-01", "2024-02-01"]),
        np.array(["2024-01-01", "2024-02-01"], "datetime64[ns]"),
        np.array(["2024-01", "2024-02"], "datetime64[M]"),
        [datetime.fromisoformat("2024-01-01"), datetime(2024, 2, 1, tzinfo=UTC)],
        [np.datetime64("2024-01-01"), "2024-02-01"],
    )
    for form in forms:
        found = as_instants(form)
        assert found.dtype == "datetime64[ms]"
        assert (found == expected).all()


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([1704067200000], "times have dtype int64: expected ISO-8601 strings or datetime64 values"),
        (np.array(["2024-01-01", "NaT"], "datetime64[ms]"), "times hold NaT: give every timestep a date"),
        (np.array(["2024-01-01T00:00:00.000001"], "datetime64[us]"), "times are finer than a millisecond"),
        (np.array(["12024-01-01"], "datetime64[s]"), "outside the years 1 to 9999"),
        (np.array(["-0044-03-15"], "datetime64[D]"), "outside the years 1 to 9999"),
        (["2024-01-01", None], "'None' is not a date"),
    ],
)
def test_times_that_are_no_instants_are_refused(times: object, message: str) -> None:
    with pytest.raises(ChronozarrError, match=message):
        as_instants(times)  # type: ignore[arg-type]


@pytest.mark.parametrize("times", [["2024-02-01", "2024-01-01"], ["2024-01-01", "2024-01-01"]])
def test_times_that_do_not_increase_are_refused_by_name(times: list[str]) -> None:
    with pytest.raises(ChronozarrError, match=r"strictly increasing: timestep 1 \(2024-0.*is not after timestep 0"):
        check_increasing(as_instants(times))
