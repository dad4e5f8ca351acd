"""Who attacked, in the words of the report: each attacker in a line, and what kinds of attackers there were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.reports import TRIAL_BY_TRIAL
from spkver.attackers import find_row, is_outside
from spkver.voiceprivacy.choosing import attacker_name, attacker_specs
from spkver.voiceprivacy.settings import Config

Json = dict[str, Any]

_CLASSIC = {
    "gmm-ubm": "the log-likelihood ratio of a mixture adapted to the speaker and one of all voices",
    "gmm-svm": "a support vector machine for each speaker, on the adapted means of a mixture (supervectors)",
    "gmm-svm-cms": "the support vector machines of gmm-svm, on features whose mean over each recording is taken off",
    "supervector-cosine": "the angle between projected supervectors of the two recordings",
}
_UNDONE = "-undone"
_ENDINGS = {
    _UNDONE: "with the anonymisation estimated and turned back first, learnt from draws of the background",
    "-adapted": "adapted to the trials: each side without its mean, what spreads the recordings of a speaker narrowed",
    "-single-test": "adapted to the enrolled speakers alone, each tested recording on its own",
    "-aligned": "with anonymised vectors turned into the space of the original ones, learnt from the background",
}
_FUSIONS = {
    f"-{TRIAL_BY_TRIAL}": "the scores of those attackers alone that score trial by trial",
    _UNDONE: "the same with the scores of those that undo or align, which learn from draws of the background",
}
_NETWORKS = ("campplus", "ge2e", "onnx", "vectors", "adapted")
_MODULES = {
    "scores": "scores made elsewhere",
    "vectors": "vectors made elsewhere, by a network as a rule",
    "adapted": "vectors made elsewhere, by a network as a rule, adapted to the trials",
}


def attackers_run(config: Config, conditions: Sequence[Mapping[str, Any]] = ()) -> Json:
    """Say which attackers were run, what each is, and that their figure is an upper bound of privacy.

    Parameters
    ----------
    config : Config
    conditions : sequence of mapping, optional
        Entries of ``results.json``: an attacker without one was not run. All were, without any.

    Returns
    -------
    dict
        ``names``, ``of_others``, ``networks``, ``undoing``, ``explained`` (a line for each) and ``text``.
    """
    served = {condition["attacker"] for condition in conditions}
    specs = {attacker_name(entry): spec for entry, spec in attacker_specs(config).items()}
    fusions = [name for name, spec in specs.items() if spec == "fusion"]
    specs |= {name + end: f"fusion{end}" for name in fusions for end in _FUSIONS if name + end in served}
    run = {name: spec for name, spec in specs.items() if not conditions or name in served}
    others = [name for name, spec in run.items() if is_outside(spec)]
    networks = [name for name, spec in run.items() if is_network(spec)]
    undoing = [name for name, spec in run.items() if undoes(spec)]
    kinds = ["classic ones (Gaussian mixtures)"] if any(spec in _CLASSIC for spec in run.values()) else []
    kinds.append(f"networks: {', '.join(networks)}" if networks else "no neural network")
    if undoing:
        kinds.append(f"undoing the anonymisation: {', '.join(undoing)}")
    if "fusion" in run.values():
        kinds.append("all together (fusion)")
    if strangers := [name for name in others if name not in networks]:
        kinds.append(f"of others: {', '.join(strangers)}")
    text = f"Attackers that were run: {', '.join(run) or 'none'}; {', '.join(kinds)}. The figure is an upper bound of"
    if left := [name for name in specs if name not in run]:
        text = f"Attackers without any result: {', '.join(left)}. {text}"
    return {
        "names": list(run),
        "of_others": others,
        "networks": networks,
        "undoing": undoing,
        "explained": {name: explained(spec) for name, spec in run.items()},
        "text": f"{text} the privacy that is left: a stronger attacker may leave less.",
    }


def explained(spec: str) -> str:
    """Return in a line what an attacker is, by its preset or what a door opens to.

    Examples
    --------
    >>> explained("supervector-cosine")
    'the angle between projected supervectors of the two recordings'
    >>> explained("scores:elsewhere")
    'scores made elsewhere'
    """
    if spec in (further := {f"fusion{end}": words for end, words in _FUSIONS.items()}):
        return further[spec]
    for ending, words in _ENDINGS.items():
        base = spec.removesuffix(ending)
        if base != spec:
            return f"{explained(base)}, {words}"
    if spec == "supervector":  # which comes with an ending alone
        return "the angle between the adapted means of a mixture (supervectors)"
    if spec in _CLASSIC:
        return _CLASSIC[spec]
    if spec == "fusion":
        return "the scores of all other attackers together, weighed by logistic regression on background speakers"
    kind = spec.partition(":")[0]
    if is_outside(spec):
        return _MODULES.get(kind, "code or scores of the user, which the configuration names")
    found = find_row(spec)
    return found[1].summary if found is not None else "an attacker that the configuration describes"


def is_network(spec: str) -> bool:
    """Return whether an attacker rests on a neural network, by its preset or what a door opens to.

    Examples
    --------
    >>> [is_network(spec) for spec in ("campplus:wheels", "ge2e-adapted-undone", "extractor:ge2e", "ivector-adapted")]
    [True, True, True, False]
    """
    kind = spec.removeprefix("extractor:").partition(":")[0]
    for ending in _ENDINGS:  # -undone is the last of several
        kind = kind.removesuffix(ending)
    return kind in _NETWORKS


def adapts(spec: str) -> bool:
    """Return whether an attacker adapts to the trials, by its preset or what a door opens to.

    Examples
    --------
    >>> [adapts(spec) for spec in ("ge2e-adapted-undone", "adapted:ecapa", "campplus", "scores:ecapa/exp")]
    [True, True, False, False]
    """
    return "-adapted" in spec.partition(":")[0] or spec.startswith("adapted:")


def undoes(spec: str) -> bool:
    """Return whether an attacker learns to invert the anonymisation, or to align what comes of it."""
    return spec.endswith(("-undone", "-aligned"))
