"""Steps of a chain, and whole chains, as estimators of scikit-learn: pipelines, grid searches, cross-validation.

They are made from the table of steps, with its names, parameters and numbers:

>>> import numpy as np
>>> from sklearn.pipeline import make_pipeline
>>> draw = np.random.default_rng(0)
>>> speakers = np.repeat(np.arange(10), 5)
>>> vectors = draw.normal(size=(10, 4))[speakers] + 0.3 * draw.normal(size=(50, 4))
>>> steps = make_pipeline(sklearn_step("whiten"), sklearn_step("length"), sklearn_step("lda", rank=3))
>>> steps.fit_transform(vectors, speakers).shape
(50, 3)

A chain with its scorer also scores pairs of vectors, an enrolled and a tested one, of shape (n, 2, R):

>>> plda = sklearn_step("chain", steps="lda:3,length,plda").fit(vectors, speakers)
>>> plda.pair_score(vectors[[[0, 1], [0, 49]]]).shape
(2,)
"""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.trials import Trials, check_dimensions, check_index
from spkbase.errors import ConfigError, DataError
from spkbase.work import one_blas_thread
from spkver.backend.chain import parse_chain, train_chain
from spkver.backend.plda import Sessions
from spkver.backend.scoring import numbered_ids
from spkver.backend.steps import STEPS, Step, Training
from spkver.backend.transforms import apply_maps

_LEFT_OUT = "on"  # fit(X, y) takes no vectors to adapt to
_TRANSFORMERS = {
    step.name: step for step in STEPS if step.role == "map" and "adapt" not in step.needs
}
_NAMES = [*_TRANSFORMERS, "chain"]


def sklearn_step(name: str, **values: Any) -> Any:
    """Return the step of a chain as an estimator with `fit`, `transform`, `get_params`.

    Parameters
    ----------
    name : str
        A map of vectors that needs no vectors to adapt to; see `spkver.backend.STEPS`. Where it needs speakers, they
        are the `y` of `fit`. Or ``"chain"``: a whole chain, which has the method `pair_score` too.
    **values
        Its parameters; of a chain `steps`, see `spkver.backend.parse_chain`, and the `seed` of its calibration.

    Raises
    ------
    ConfigError
        If there is no such step.

    Examples
    --------
    >>> sklearn_step("lda", rank=2)
    Lda(rank=2)
    """
    if name not in _NAMES:
        raise ConfigError(
            f"there is no transformer {name!r:.60}: expected one of {', '.join(_NAMES)}"
        )
    return _transformer(name)(**values)


def __getattr__(name: str) -> Any:
    """The class of a step, such as `Lda` for "lda"; pickles of scikit-learn look it up here."""
    if name.lower() not in _NAMES or name != name.capitalize():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _transformer(name.lower())


@cache
def _transformer(name: str) -> type:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

    try:
        from sklearn.utils.validation import check_is_fitted, validate_data
    except ImportError as error:
        raise ConfigError(
            "these estimators need scikit-learn 1.6 or later", remedy="update it"
        ) from error

    step = _TRANSFORMERS.get(name)
    defaults = _defaults(step)
    needs_speakers = step is None or bool(step.needs)

    class Transformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
        def __init__(self, **values: Any) -> None:
            inspect.signature(type(self)).bind(**values)
            for parameter, default in defaults.items():
                setattr(self, parameter, values.get(parameter, default))

        @one_blas_thread()
        def fit(self, X: Any, y: Any = None) -> Any:  # noqa: N803 - scikit-learn's name
            """Learn the maps from vectors `X` (n, R) and, where the step needs them, speakers `y` (n,)."""
            codes = np.zeros(0, np.int64)
            if needs_speakers:
                check_index(X=X, y=y)
                vectors, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
                codes = np.unique(y, return_inverse=True)[1]
            else:
                vectors = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
            check_dimensions(X, vectors, "X")
            if step is None:
                # numbers of equal length have the same order as texts
                speakers = 10**9 + codes
                self.backend_ = train_chain(vectors, self.steps, speakers=speakers, seed=self.seed)
                self.maps_ = self.backend_.maps
            else:
                values = parse_chain([{name: self.get_params()}])[0].values
                self.maps_ = step.learn(Training(vectors, codes), values)
            self._n_features_out = apply_maps(self.maps_, vectors).shape[1]
            return self

        def transform(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
            """Return vectors `X` (n, R) after the maps."""
            check_is_fitted(self)
            return apply_maps(self.maps_, validate_data(self, X, dtype=np.float64, reset=False))

        def __sklearn_tags__(self) -> Any:
            tags = super().__sklearn_tags__()
            tags.target_tags.required = needs_speakers
            return tags

    if step is None:
        about = "maps of vectors and a scorer, a chain"
        Transformer.pair_score = _pair_score
    else:
        about = f"{step.about}; the step `{name}` of a chain"
    Transformer.__init__.__signature__ = _signature(defaults)  # type: ignore[attr-defined]
    Transformer.__name__ = Transformer.__qualname__ = name.capitalize()
    Transformer.__module__ = __name__
    Transformer.__doc__ = f"{about[:1].upper()}{about[1:]}."
    return Transformer


def _defaults(step: Step | None) -> dict[str, Any]:
    """The defaults of an estimator's parameters, by name."""
    if step is None:
        return {"steps": "lda,plda", "seed": 0}
    return {
        parameter.name: parameter.default
        for parameter in step.parameters
        if parameter.name != _LEFT_OUT
    }


def _signature(defaults: dict[str, Any]) -> inspect.Signature:
    """The signature of a constructor that takes these parameters by name."""
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    for name, default in defaults.items():
        parameter = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
        parameters.append(parameter)
    return inspect.Signature(parameters)


def _pair_score(estimator: Any, pairs: Any) -> NDArray[np.float64]:
    """Return the score of each pair (n, 2, R) of an enrolled and a tested vector."""
    both = np.asarray(pairs)
    if both.ndim != 3 or both.shape[1] != 2:
        text = f"expected pairs of shape (n, 2, R), got {both.shape}"
        raise DataError(text, remedy="np.stack([enrolled, tested], axis=1)")
    enrolled = estimator.transform(both[:, 0])
    tested = estimator.transform(both[:, 1])
    ids = numbered_ids(len(enrolled))
    rows = np.arange(len(enrolled))
    trials = Trials(ids, ids, rows, rows)
    values: NDArray[np.float64] = estimator.backend_.score_vectors(
        Sessions(enrolled, rows), tested, trials
    ).values
    return values
