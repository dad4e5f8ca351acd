"""What would take all memory or leave no number is refused before the work, not after."""

from __future__ import annotations

import pytest

from evaluation.metrics.detection import effective_prior
from evaluation.uncertainty.resampling import Resampling
from spkbase.errors import ConfigError, DataError
from spkver.rsr2015.lists import ReportConfig
from spkver.voiceprivacy.settings import Config, EvaluationConfig


@pytest.mark.parametrize("replicates", [10**12, -1, 1])
def test_replicates(replicates: int) -> None:
    with pytest.raises(DataError, match="2 to 1,000,000 replicates"):
        Resampling(replicates)
    with pytest.raises(ConfigError, match=r"evaluation\.replicates is .*: expected 0, or 2 to 1,000,000"):
        EvaluationConfig(replicates=replicates)
    with pytest.raises(ConfigError, match=r"report\.replicates is .*: expected 0, or 2 to 1,000,000"):
        ReportConfig(replicates=replicates)


@pytest.mark.parametrize("costs", [(1e300, 1e-300), (1e-300, 1e300)])
def test_costs(costs: tuple[float, float]) -> None:
    with pytest.raises(DataError, match="leave no trade-off"):
        effective_prior(0.5, *costs)
    with pytest.raises(ConfigError, match=r"report\.p_target, report\.c_miss, report\.c_fa: costs of"):
        ReportConfig(c_miss=costs[0], c_fa=costs[1])


def test_a_data_set_twice() -> None:
    with pytest.raises(ConfigError, match=r"datasets is \['x', 'x'\]: expected names, each once"):
        Config(datasets=("x", "x"))
