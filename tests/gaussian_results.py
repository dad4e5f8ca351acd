"""Results of a privacy evaluation as a recipe writes them, from Gaussian scores: what tests of reports read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from scipy.special import gammaln

from evaluation import formats
from evaluation.trials import Key, Scores
from evaluation.uncertainty import evaluate

SCENARIOS = ("original", "ignorant", "lazy-informed", "semi-informed")
ATTACKERS = ("gmm-ubm", "gmm-svm", "supervector-cosine")
# distance between the classes in standard deviations
_STRENGTH = {"original": 4.6, "ignorant": 1.3, "lazy-informed": 1.9, "semi-informed": 2.5}


def make_results(
    folder: Path,
    *,
    datasets: Sequence[str] = ("libri_test",),
    genders: Sequence[str] = ("f", "m", "all"),
    scenarios: Sequence[str] = SCENARIOS,
    attackers: Sequence[str] = ATTACKERS,
    n_speakers: int = 6,
    n_segments: int = 4,
    seed: int = 0,
) -> dict[str, Any]:
    """Write score files and keys into a folder and give the results that name them."""
    conditions = []
    for dataset in datasets:
        speakers = {f"{dataset[:2]}{place:03d}": "fm"[place % 2] for place in range(n_speakers)}
        for gender in genders:
            own = {name: sex for name, sex in speakers.items() if gender in (sex, "all")}
            for scenario in scenarios:
                for attacker in attackers:
                    place = (dataset, gender, scenario, attacker)
                    conditions.append(_condition(folder, place, own, n_segments, seed))
    wer = {"original": {"value": 0.034, "low": 0.03, "high": 0.04}}
    wer["anonymised"] = {"value": 0.0915, "interval": [0.08, 0.1]}  # type: ignore[dict-item]
    checks = (
        ("ok", "speaker overlap", "No speaker is in both training and trials."),
        ("note", "few speakers", f"{n_speakers} speakers make intervals wide."),
        ("warning", "attacker order", "The semi-informed gmm-svm is weaker than the lazy one."),
    )
    return {
        "format": 1,
        "suffix": "_mcadams",
        "anonymiser": {"name": "mcadams", "level": "utterance", "alpha": [0.5, 0.9]},
        "conditions": conditions,
        "summary": [],
        "verdict": "",
        "utility": {
            "wer": dict.fromkeys(datasets, wer),
            "uar": {"original": 0.71, "anonymised": 0.425},
            "f0": {"anonymised": dict.fromkeys(datasets, 0.62)},
        },
        "sanity": [dict(zip(("level", "check", "text"), check, strict=True)) for check in checks],
        "config": {
            "seed": 0,
            "evaluation": {"level": 0.95, "resamples": 1000},
            "attackers": {"gmm-ubm": {"ubm": {"components": 256}}},
            "datasets": list(datasets),
        },
        "versions": {"spkver": "0.3.0", "numpy": "2.1.0", "python": "3.11.2"},
        "lists": {
            f"{dataset}_trials_f/trials": f"{crc32(dataset.encode()):08x}" * 8
            for dataset in datasets
        },
        "timings": {"anonymise": 12.3, "train asv_orig gmm-ubm": 201.75, "evaluate": 3.2},
        "seeds": {"run": 0, "bootstrap": 0},
    }


def _condition(
    folder: Path,
    place: tuple[str, str, str, str],
    speakers: dict[str, str],
    n_segments: int,
    seed: int,
) -> dict[str, Any]:
    dataset, gender, scenario, attacker = place
    rng = np.random.default_rng([seed, crc32("/".join(place).encode())])
    traits = np.random.default_rng([seed, crc32(dataset.encode())]).normal(0, 0.8, 1000)
    names = list(speakers)
    strength = _STRENGTH[scenario] + {"gmm-ubm": 0.0, "gmm-svm": 0.3}.get(attacker, -0.4)
    offsets = np.array([traits[int(name[2:])] for name in names])
    models = [model for model in names for _ in range(len(names) * n_segments)]
    segments = [f"{name}-{number}" for _ in names for name in names for number in range(n_segments)]
    owners = np.array([segment.split("-")[0] for segment in segments])
    is_target = owners == np.array(models)
    values = np.where(is_target, strength**2 / 2, -(strength**2) / 2)
    values = values + strength * rng.normal(0, 1, len(values))
    values = values + is_target * strength * np.repeat(offsets, n_segments * len(names))
    kind = "anon_mcadams" if scenario == "semi-informed" else "orig"
    base = f"exp/asv_{kind}/{dataset}-{gender}-{scenario}"
    key = Key.from_ids(models, segments, is_target)
    scores = Scores.from_ids(models, segments, values)
    (folder / base / attacker).mkdir(parents=True, exist_ok=True)
    formats.write_scores(folder / base / attacker / "scores", scores)
    formats.write_key(folder / base / "trials", key)
    found = evaluate(values[is_target], values[~is_target])
    flat = found.values()
    half = 1.96 * np.sqrt(max(flat["eer.rocch"], 0.01) / len(names)) / 2
    intervals = {
        "eer.rocch": {
            "low": max(0.0, flat["eer.rocch"] - half),
            "high": min(0.5, flat["eer.rocch"] + half),
        }
    }
    population = flat["zebra.population"]
    intervals["zebra.population"] = {"low": 0.8 * population, "high": min(0.721, 1.2 * population)}
    # first recording of each speaker, against all models
    first = values.reshape(len(names), len(names), n_segments)[:, :, 0].T
    beaters = (first > first.diagonal()[:, None]).sum(axis=1)
    sizes = np.arange(1, len(names) + 1)
    curve = _linkability(beaters, len(names) - 1, sizes)
    mean = curve.mean(axis=0)
    of_models = values.reshape(len(names), -1)
    is_first = of_models == of_models.max(axis=0)
    eers = [
        evaluate(values[own & is_target], values[own & ~is_target], priors=()).eer["rocch"]
        for own in (owners == name for name in names)
    ]
    return {
        "dataset": dataset,
        "gender": gender,
        "scenario": scenario,
        "attacker": attacker,
        "n_enrolled": len(names),
        "n_trial_speakers": len(names),
        "scores": f"{base}/{attacker}/scores",
        "key": f"{base}/trials",
        **found.to_dict(),
        "intervals": intervals,
        "notes": dict(found.notes),
        "linkability": {
            "sizes": sizes.tolist(),
            "linkability": mean.tolist(),
            "low": np.maximum(mean - 0.15, 0).tolist(),
            "high": np.minimum(mean + 0.12, 1).tolist(),
            "top": {},
        },
        "speakers": [
            {
                "speaker": name,
                "gender": speakers[name],
                "linkability_mean": float(curve[number].mean()),
                "rank": float(beaters[number] + 1),
                "n_target": n_segments,
                "eer": eers[number],
                "n_nontarget": (len(names) - 1) * n_segments,
                "first": float(is_first[number][owners[: len(is_first[number])] == name].mean()),
                "others_first": float(
                    is_first[number][owners[: len(is_first[number])] != name].mean()
                ),
            }
            for number, name in enumerate(names)
        ],
    }


def _linkability(beaters: np.ndarray, impostors: int, sizes: np.ndarray) -> np.ndarray:
    """Probability that none of the beaters is drawn, C(M - k, N - 1) / C(M, N - 1); shape (speakers, sizes)."""
    rest, drawn = (impostors - beaters)[:, None], (sizes - 1)[None, :]
    logs = gammaln(rest + 1) - gammaln(np.maximum(rest - drawn, 0) + 1)
    logs = logs - gammaln(impostors + 1) + gammaln(impostors - drawn + 1)
    return np.where(drawn <= rest, np.exp(logs), 0.0)
