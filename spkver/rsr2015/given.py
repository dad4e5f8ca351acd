"""Stages that are done already: statistics, supervectors and machines of SIDEKIT's tutorial or of another run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from spkbase.errors import ConfigError, DataError, Problems
from spkver.idmap import IdMap
from spkver.mixture import find_stat_rows
from spkver.pipeline import RowsFile, machine_files

# What files are called: by a recipe, by the tutorial, and by the tutorial for normalised supervectors.
_NAMES = {
    "statistics": ("stat_{name}.h5", "stat_rsr2015_{sex}_{name}.h5"),
    "supervectors": ("sv_{name}.h5", "sv_rsr2015_{sex}_{name}.h5", "sv_norm_rsr2015_{sex}_{name}.h5"),
}


@dataclass(frozen=True)
class GivenConfig:
    """Results of SIDEKIT, or of another run, that take the place of stages; the UBM is given by `ubm.file`.

    Attributes
    ----------
    statistics, supervectors : str, optional
        Folder of StatServers, one for each list: ``stat_enroll.h5`` or ``stat_rsr2015_male_enroll.h5``, and
        ``sv_...`` alike.
    machines, machines_nap : str, optional
        Folder of SIDEKIT's machines, ``{model}.svm``, or a file of ours: without NAP and with it.
    vectors : str, optional
        Vectors of all recordings in the place of i-vectors, such as `spkver embed` writes.
    """

    statistics: str | None = None
    supervectors: str | None = None
    machines: str | None = None
    machines_nap: str | None = None
    vectors: str | None = None

    def names(self) -> list[str]:
        """Return what is given."""
        return [key.name for key in fields(self) if getattr(self, key.name) is not None]


@dataclass(frozen=True)
class Given:
    """The files that take the place of stages; None where a stage does its own work.

    Attributes
    ----------
    config : GivenConfig
    maps : dict of str to IdMap
        The lists that the recipe uses, by name.
    gender : {"m", "f"}
    """

    config: GivenConfig
    maps: dict[str, IdMap]
    gender: str

    def statistics(self, name: str) -> Path | None:
        """Return the file of the statistics of a list."""
        return self.file("statistics", name)

    def supervectors(self, name: str) -> RowsFile | None:
        """Return the file of the supervectors of a list, and the list."""
        path = self.file("supervectors", name)
        return None if path is None else RowsFile(path, self.maps[name])

    def vectors(self, name: str) -> RowsFile | None:
        """Return the file of the vectors, and a list."""
        return None if self.config.vectors is None else RowsFile(Path(self.config.vectors), self.maps[name])

    def machines(self, *, nap: bool) -> Path | None:
        """Return the folder or file of the machines."""
        given = self.config.machines_nap if nap else self.config.machines
        return None if given is None else Path(given)

    def file(self, kind: str, name: str) -> Path | None:
        """Return the file of "statistics" or "supervectors" of a list; a DataError if it is not there."""
        given = getattr(self.config, kind)
        if given is None:
            return None
        sex = "male" if self.gender == "m" else "female"
        names = [form.format(name=name, sex=sex) for form in _NAMES[kind]]
        for file in names:
            if (Path(given) / file).is_file():
                return Path(given) / file
        raise DataError(
            f"{kind} of list {name!r} are not there: expected {' or '.join(names)}",
            file=given,
            remedy=f"copy them there, or leave given.{kind} out",
        )


def check_given(given: Given, *, takes: Sequence[str], ubm_file: str | None) -> None:
    """Check that all files that are wanted are there, and hold the rows of their lists.

    Parameters
    ----------
    given : Given
    takes : sequence of str
        The keys of `GivenConfig` that the recipe has a use for.
    ubm_file : str, optional
        The mixture that is given.

    Raises
    ------
    DataError
        With all problems.
    """
    problems = Problems()
    for key in given.config.names():
        if key not in takes:
            text = f"given.{key} has no place in this recipe, which takes {', '.join(takes)}"
            problems.note(ConfigError(text, remedy="leave it out"))
    if given.config.statistics is not None and ubm_file is None:
        text = "given.statistics are of a mixture that is not given"
        problems.note(ConfigError(text, remedy="name the mixture that they were made with in ubm.file"))
    models = sorted(set(given.maps["enroll"].models))
    for key in [key for key in given.config.names() if key in takes]:
        try:
            if key.startswith("machines"):
                machine_files(Path(getattr(given.config, key)), models)
                continue
            if key == "vectors":  # read where the chains are checked, which need the dimensions
                continue
            for name, idmap in given.maps.items():
                path = given.file(key, name)
                assert path is not None
                find_stat_rows(path, idmap.models, idmap.segments)
        except DataError as error:
            problems.note(error)
    problems.raise_if_any()
