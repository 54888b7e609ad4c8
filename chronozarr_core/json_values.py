"""What a JSON value can be: checks of documents that anyone may have written."""

from __future__ import annotations

import re
import reprlib
import sys
from collections.abc import Callable
from typing import Any

Check = Callable[[Any], bool]

_LARGEST_INTEGER = 2**53
_NAME_LENGTH = 200


def shown(value: Any) -> str:
    """A JSON value in a message, cut where it is long."""
    text = reprlib.repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def is_number(value: Any) -> bool:
    """A finite JSON number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def is_integer(value: Any) -> bool:
    """A JSON integer that a double holds."""
    return is_number(value) and value == int(value) and abs(value) <= _LARGEST_INTEGER and isinstance(value, int)


def is_count(value: Any) -> bool:
    """A length: an integer of at least 1."""
    return is_integer(value) and value >= 1


def is_text(value: Any) -> bool:
    """A string that is not empty."""
    return isinstance(value, str) and bool(value)


def is_object(value: Any) -> bool:
    """A JSON object."""
    return isinstance(value, dict)


def is_node_path(value: Any) -> bool:
    """Names joined with ``/`` that every kind of storage can hold, and that stay inside the store."""
    return is_text(value) and all(_is_node_name(name) for name in value.split("/"))


def _is_node_name(name: str) -> bool:
    return name.isprintable() and name.strip(".") != "" and "\\" not in name and len(name.encode()) <= _NAME_LENGTH


def is_variable(value: Any) -> bool:
    """The name of one node."""
    return is_node_path(value) and "/" not in value


def list_of(check: Check, length: int | None = None) -> Check:
    """A check of lists: of ``length``, or of any length but 0."""

    def is_list(value: Any) -> bool:
        if not isinstance(value, list | tuple) or (len(value) != length if length else not value):
            return False
        return all(check(each) for each in value)

    return is_list


def is_references(value: Any) -> bool:
    """Anchors by timestep in decimal, as ``delta_reference`` has them (§4.1)."""
    keys = re.compile("0|[1-9][0-9]{0,9}")
    return isinstance(value, dict) and all(keys.fullmatch(key) and is_integer(each) for key, each in value.items())


def is_epsg(value: Any) -> bool:
    """``EPSG:<code>`` (§3.2)."""
    return isinstance(value, str) and re.fullmatch(r"EPSG:[1-9][0-9]{0,8}", value) is not None


def is_codec(value: Any) -> bool:
    """An entry of ``codecs``."""
    return isinstance(value, dict) and is_text(value.get("name")) and isinstance(value.get("configuration", {}), dict)
