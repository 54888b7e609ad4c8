"""The errors a user meets. Each message names the file or key, what was found, what was expected, what to do."""


class ChronozarrError(ValueError):
    """Base of every error this project raises on purpose."""


class UnsupportedStoreError(ChronozarrError):
    """A store of another version, encoding, data type or codec than the specification allows (§10)."""


class CorruptStoreError(ChronozarrError):
    """A store whose metadata or chunks contradict the specification or do not decode."""


class StoreNotFoundError(ChronozarrError, FileNotFoundError):
    """No chronozarr store at the path."""

    def __str__(self) -> str:
        return str(self.args[0])


class SelectionError(ChronozarrError, IndexError):
    """A timestep, level, cell, window or coordinate that the store does not have."""
