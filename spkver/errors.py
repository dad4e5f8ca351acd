"""The errors that a user can mend; the same classes as on the evaluation side, so that one handler serves both."""

from evaluation.errors import ConfigError, DataError, Problems, SpkverError

__all__ = ["ConfigError", "DataError", "Problems", "SpkverError"]
