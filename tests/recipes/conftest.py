"""The tiny corpus and a way to run a recipe in this process."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from recipe_runs import COMMANDS, Outcome, options
from tiny_corpus import write_tiny_corpus
from voiceprivacy_runs import write_layout, write_originals


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """The tiny corpus; read only."""
    return write_tiny_corpus(tmp_path_factory.mktemp("tiny") / "corpus")


@pytest.fixture(scope="session")
def finished(tiny, tmp_path_factory):
    """Output of the SVM-GMM recipe with its plots; read only."""
    output = tmp_path_factory.mktemp("finished") / "out"
    with pytest.raises(SystemExit) as end:
        COMMANDS["svm_gmm"].main(
            [*options(tiny, output), "--set", "report.formats=[png, pdf, svg]"]
        )
    assert not end.value.code
    return output


@pytest.fixture(scope="session")
def layout(tmp_path_factory):
    """The tiny set of VoicePrivacy with anonymised twins; read only."""
    return write_layout(tmp_path_factory.mktemp("layout"))


@pytest.fixture(scope="session")
def originals(tmp_path_factory):
    """The tiny set of VoicePrivacy without twins; read only."""
    return write_originals(tmp_path_factory.mktemp("originals"))


@pytest.fixture
def own(layout, tmp_path):
    """A copy of the tiny set with twins for a test to change."""
    return Path(shutil.copytree(layout, tmp_path / "data"))


@pytest.fixture
def own_corpus(tiny, tmp_path):
    """A copy of the tiny corpus for a test to damage."""
    return Path(shutil.copytree(tiny, tmp_path / "own"))


@pytest.fixture
def recipe(capsys, monkeypatch):
    """Run a recipe in this process, as its command line does; plots take their time and are left out unless asked."""

    def run(corpus, output, *arguments, name="svm_gmm", plots=False, **settings):
        if not plots:
            monkeypatch.setattr("spkver.rsr2015.results._plot", lambda *_: [])
        capsys.readouterr()
        command = COMMANDS[name]
        with pytest.raises(SystemExit) as end:
            command.main(options(corpus, output, *arguments, **settings))
        out, err = capsys.readouterr()
        return Outcome(int(end.value.code or 0), out, err)

    return run
