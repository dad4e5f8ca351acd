"""Steps of a chain as transformers of scikit-learn, for pipelines, grid searches and cross-validation.

They are made from the table of steps, with its names, parameters and numbers:

>>> import numpy as np
>>> from sklearn.pipeline import make_pipeline
>>> draw = np.random.default_rng(0)
>>> speakers = np.repeat(np.arange(10), 5)
>>> vectors = draw.normal(size=(10, 4))[speakers] + 0.3 * draw.normal(size=(50, 4))
>>> steps = make_pipeline(sklearn_step("whiten"), sklearn_step("length"), sklearn_step("lda", rank=3))
>>> steps.fit_transform(vectors, speakers).shape
(50, 3)
"""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spkbase.errors import ConfigError
from spkbase.work import one_blas_thread
from spkver.backend.chain import parse_chain
from spkver.backend.steps import STEPS, Training
from spkver.backend.transforms import apply_maps

_LEFT_OUT = "on"  # vectors to adapt to have no place in fit(X, y)
_TRANSFORMERS = {step.name: step for step in STEPS if step.role == "map" and "adapt" not in step.needs}


def sklearn_step(name: str, **values: Any) -> Any:
    """Return the step of a chain as an estimator with `fit`, `transform`, `get_params`.

    Parameters
    ----------
    name : str
        A map of vectors that needs no vectors to adapt to; see `spkver.backend.STEPS`. Where it needs speakers, they
        are the `y` of `fit`.
    **values
        Its parameters.

    Raises
    ------
    ConfigError
        If there is no such step.

    Examples
    --------
    >>> sklearn_step("lda", rank=2)
    Lda(rank=2)
    """
    if name not in _TRANSFORMERS:
        raise ConfigError(f"there is no transformer {name!r:.60}: expected one of {', '.join(_TRANSFORMERS)}")
    return _transformer(name)(**values)


def __getattr__(name: str) -> Any:
    """The class of a step, by which pickles of scikit-learn find it: `Lda` of "lda"."""
    if name.lower() not in _TRANSFORMERS or name != name.capitalize():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _transformer(name.lower())


@cache
def _transformer(name: str) -> type:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

    try:
        from sklearn.utils.validation import check_is_fitted, validate_data
    except ImportError as error:
        raise ConfigError("these estimators need scikit-learn 1.6 or later", remedy="update it") from error

    step = _TRANSFORMERS[name]
    parameters = [parameter for parameter in step.parameters if parameter.name != _LEFT_OUT]

    class Transformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
        def __init__(self, **values: Any) -> None:
            inspect.signature(type(self)).bind(**values)
            for parameter in parameters:
                setattr(self, parameter.name, values.get(parameter.name, parameter.default))

        @one_blas_thread()
        def fit(self, X: Any, y: Any = None) -> Any:  # noqa: N803 - scikit-learn's name
            """Learn the maps from vectors `X` (n, R) and, where the step needs them, speakers `y` (n,)."""
            chosen = parse_chain([{name: self.get_params()}])[0]
            codes = np.zeros(0, np.int64)
            if step.needs:
                vectors, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
                codes = np.unique(y, return_inverse=True)[1]
            else:
                vectors = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
            self.maps_ = step.learn(Training(vectors, codes), chosen.values)
            self._n_features_out = apply_maps(self.maps_, vectors).shape[1]
            return self

        def transform(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
            """Return vectors `X` (n, R) after the maps."""
            check_is_fitted(self)
            return apply_maps(self.maps_, validate_data(self, X, dtype=np.float64, reset=False))

        def __sklearn_tags__(self) -> Any:
            tags = super().__sklearn_tags__()
            tags.target_tags.required = bool(step.needs)
            return tags

    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    keyword = inspect.Parameter.KEYWORD_ONLY
    named = [inspect.Parameter(parameter.name, keyword, default=parameter.default) for parameter in parameters]
    Transformer.__init__.__signature__ = inspect.Signature([own, *named])  # type: ignore[attr-defined]
    Transformer.__name__ = Transformer.__qualname__ = name.capitalize()
    Transformer.__module__ = __name__
    Transformer.__doc__ = f"{step.about[:1].upper()}{step.about[1:]}; the step `{name}` of a chain."
    return Transformer
