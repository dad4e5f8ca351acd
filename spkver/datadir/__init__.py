"""Kaldi's data directories: read, checked, written, and compared with their anonymised twins."""

from spkver.datadir.directory import DataDir, enrolment, write_datadir
from spkver.datadir.reading import read_datadir
from spkver.datadir.twins import check_twin

__all__ = ["DataDir", "check_twin", "enrolment", "read_datadir", "write_datadir"]
