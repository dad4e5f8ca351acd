"""The pictures of the rarer plots in the API pages, from drawn numbers: `python docs/pictures.py`.

Those of the common plots are drawn from the scores of the demo, by the commands of the gallery.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from evaluation import linkage, plots
from evaluation.uncertainty import Interval, Resampling

FOLDER = Path(__file__).parent
SPEAKERS = 200


def main() -> None:
    """Draw all pictures."""
    draw = np.random.default_rng(0)
    voices = draw.normal(size=(SPEAKERS, 16))
    similar = {
        (name, count): cosines(
            voices + spread * draw.normal(size=voices.shape) / np.sqrt(count), voices
        )
        for name, spread in (("original", 0.5), ("anonymised", 1.2))
        for count in (1, 3)
    }
    ranks = {of: linkage.ranks_of_matrix(matrix) for of, matrix in similar.items()}
    sizes, resampling = linkage.log_spaced_sizes(SPEAKERS, 40), Resampling(100)
    curves = {
        of: linkage.linkability_curve(one, sizes, resampling=resampling)
        for of, one in ranks.items()
    }
    means = {
        name: linkage.linkability_over_sizes(one)
        for (name, count), one in ranks.items()
        if count == 1
    }
    # twice a log-likelihood ratio
    targets, impostors = draw.normal(4, 4, 500), draw.normal(-4, 4, 5000)
    ease = draw.uniform(size=SPEAKERS)
    conditions = {
        (("anonymiser", anonymiser), ("utterances", count)): dict(
            zip(map(str, range(SPEAKERS)), ease + 0.4 * draw.uniform(size=SPEAKERS), strict=True)
        )
        for anonymiser in ("mcadams", "vtln")
        for count in ("1", "3")
    }
    agreement = linkage.compare_conditions(conditions)
    exposed = sorted(
        ((value, "fm"[place % 2]) for place, value in enumerate(means["anonymised"][:40])),
        reverse=True,
    )
    trade_offs = [
        plots.TradeOff("original", Interval(0.03, 0.02, 0.05), Interval(0.02, 0.01, 0.04)),
        plots.TradeOff("mcadams", Interval(0.10, 0.08, 0.13), Interval(0.07, 0.04, 0.12)),
        plots.TradeOff("neural", Interval(0.06, 0.04, 0.08), Interval(0.31, 0.25, 0.38)),
    ]
    beyond = linkage.extrapolate(
        ranks["anonymised", 1], np.geomspace(SPEAKERS, 1e5, 20), resampling=resampling
    )
    some = {
        kind: 1 / (1 + np.exp(-8 * (similar[of, 1][:12, :12] - 0.5)))
        for kind, of in (("oo", "original"), ("oa", "anonymised"))
    }
    panels = {
        f"L = {count}": {
            ("cosine", name): curve for (name, other), curve in curves.items() if other == count
        }
        for count in (1, 3)
    }
    matches = {
        name: linkage.cumulative_match(one) for (name, count), one in ranks.items() if count == 1
    }
    save("ape", plots.plot_ape, [("scores", targets, impostors)], width=5)
    save("tippett", plots.plot_tippett, [("ratios", targets / 2, impostors / 2)], width=5)
    save("privacy-utility", plots.plot_privacy_utility, trade_offs, width=5)
    save(
        "likelihood",
        plots.plot_likelihood,
        {"64 Gaussians": -60 - 8 / np.arange(1, 25)},
        doublings=[(0, 2), (6, 8), (14, 64)],
        width=5,
    )
    save("similarity", plots.plot_similarity, some, [f"s{place}" for place in range(12)])
    save("cmc", plots.plot_cmc, matches, width=5)
    save("exposure", plots.plot_exposure, exposed, width=5)
    save("extrapolation", plots.plot_extrapolation, curves["anonymised", 1], beyond, width=5)
    save("linkability-panels", plots.plot_linkability_panels, panels)
    save(
        "speaker-grid",
        plots.plot_speaker_grid,
        {("", name): values for name, values in means.items()},
    )
    save("jaccard", plots.plot_jaccard, agreement, width=5)
    save("intersections", plots.plot_intersections, agreement.pairs, width=5)


def cosines(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the cosine of each row with each row."""
    one, other = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (one, other))
    return one @ other.T


def save(name: str, plot: object, *given: object, **options: object) -> None:
    """Draw a plot with few colours, which makes a small file."""
    path = FOLDER / f"plot-{name}.png"
    plot(*given, path=path, **options)  # type: ignore[operator]
    Image.open(path).convert("RGB").quantize(128).save(path, optimize=True)


if __name__ == "__main__":
    main()
