"""Semi-informed error rates by how many anonymised versions of the training set the strongest attacker learnt from.

``training_draws`` of the results has an entry for each data set: ``dataset``, ``attacker``, and ``eer``, by number of
versions. Results of earlier versions of the program, and those of one version of the training set, have none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evaluation.reports.privacy_results import Results, as_number
from spkbase.showing import one_line


@one_line
@dataclass(frozen=True)
class ByVersions:
    """The rates of an attacker on a data set.

    Attributes
    ----------
    dataset, attacker : str
    rates : dict of int to float
        Number of versions to equal error rate, the smaller numbers first.
    """

    dataset: str
    attacker: str
    rates: dict[int, float]


def rates_by_versions(results: Results) -> list[ByVersions]:
    """Return the rates of each data set that has them for more than one number; what is no rate is left out."""
    entries = results.raw.get("training_draws")
    found = [
        ByVersions(str(entry.get("dataset")), str(entry.get("attacker")), _rates(entry.get("eer")))
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, Mapping)
    ]
    return [one for one in found if len(one.rates) > 1]


def _rates(value: Any) -> dict[int, float]:
    if not isinstance(value, Mapping):
        return {}
    known = {
        int(count): as_number(rate) for count, rate in value.items() if str(count).isdecimal() and len(str(count)) < 10
    }
    return {count: known[count] for count in sorted(known) if math.isfinite(known[count]) and 0 <= known[count] <= 1}
