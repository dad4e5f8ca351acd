"""What checks a change outside the tests: the workflow, the hooks of commits, `.ci/run` and the oldest requirements.

None of them runs here, so their commands are compared with the Makefile and setup.cfg.
"""

import re
from configparser import ConfigParser
from pathlib import Path

import lower_bounds
import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
TARGETS = set(re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)[1].split())
VARIABLES = set(re.findall(r"^(\w+) *[?:]=", MAKEFILE, re.MULTILINE))
PYTHON = "Programming Language :: Python :: 3."


def read_yaml(name):
    """Return a YAML file as texts, so that the key `on` stays a word and 3.10 is not a number."""
    return yaml.load((ROOT / name).read_text("utf-8"), yaml.BaseLoader)


JOBS = read_yaml(".github/workflows/ci.yml")["jobs"]
STEPS = [(name, step) for name, job in JOBS.items() for step in job["steps"]]
COMMANDS = [(name, step["run"]) for name, step in STEPS if "run" in step]
ACTIONS = [(name, step["uses"]) for name, step in STEPS if "uses" in step]
HOOKS = read_yaml(".pre-commit-config.yaml")["repos"]


@pytest.fixture(scope="module")
def configuration():
    parser = ConfigParser()
    parser.read(ROOT / "setup.cfg")
    return parser


# --- the Makefile -----------------------------------------------------------------------------------------------------


def test_all_targets_are_in_the_help_and_in_the_documents():
    rules = re.findall(r"^([\w-]+):", MAKEFILE, re.MULTILINE)
    assert set(rules) == TARGETS
    helped = re.findall(r'@echo "make ([\w-]+) ', MAKEFILE)
    assert set(helped) == TARGETS - {"help", "lint"}
    page = (ROOT / "docs/install.md").read_text("utf-8")
    rows = re.findall(r"^\| `make ([\w-]+)`", page, re.MULTILINE)
    assert set(rows) == TARGETS - {"help", "lint", "venv", "clean"}


# --- the workflow -----------------------------------------------------------------------------------------------------


def call_of(command):
    """Return the target of a command `make TARGET NAME=VALUE ...`, whose names are variables of the Makefile."""
    program, target, *settings = command.split()
    assert program == "make"
    assert target in TARGETS
    assert {setting.partition("=")[0] for setting in settings} <= VARIABLES
    return target


@pytest.mark.parametrize(("job", "command"), COMMANDS)
def test_jobs_call_targets_of_the_makefile(job, command):
    assert call_of(command) == job


@pytest.mark.parametrize(("job", "action"), ACTIONS)
def test_actions_are_those_of_the_forge_at_a_major_version(job, action):
    assert re.fullmatch(r"actions/(checkout|setup-python|upload-artifact)@v\d+", action)


def test_each_job_checks_out_then_chooses_python_then_calls_make():
    for job in JOBS.values():
        checkout, python, make, *_ = job["steps"]
        assert checkout["uses"].startswith("actions/checkout@")
        assert python["uses"].startswith("actions/setup-python@")
        assert "run" in make


def test_every_supported_python_is_tested_and_the_oldest_with_the_oldest_requirements(
    configuration,
):
    classifiers = configuration["metadata"]["classifiers"].split("\n")
    supported = [
        f"3.{line.removeprefix(PYTHON)}" for line in classifiers if line.startswith(PYTHON)
    ]
    assert JOBS["test"]["strategy"]["matrix"]["python"] == supported
    _, python, _ = JOBS["oldest"]["steps"]
    assert configuration["options"]["python_requires"] == f">={python['with']['python-version']}"


def test_the_script_for_a_machine_without_a_forge_calls_targets_of_the_makefile():
    lines = (ROOT / ".ci/run").read_text("utf-8").splitlines()
    calls = [line.removeprefix("exec ") for line in lines if "make " in line and line[0] != "#"]
    assert {call_of(call) for call in calls} == {"test", "docs", "kernels"}


# --- the hooks of commits ---------------------------------------------------------------------------------------------


def test_hooks_run_the_linters_of_the_makefile():
    (local,) = [repository for repository in HOOKS if repository["repo"] == "local"]
    linters = set()
    for hook in local["hooks"]:
        command = hook["entry"].removesuffix(" --force-exclude")
        assert hook["language"] == "system"
        linters.add(command.replace(".venv/", "$(VENV)/").replace("$(VENV)/bin", "$(BIN)"))
    called = set(re.findall(r"^\t(\$\(BIN\)/ruff \w+)", MAKEFILE, re.MULTILINE))
    assert linters == called


def test_third_party_hooks_have_a_fixed_version():
    others = [repository for repository in HOOKS if repository["repo"] != "local"]
    assert others
    for repository in others:
        assert re.fullmatch(r"v\d+\.\d+\.\d+", repository["rev"])


# --- the oldest requirements ------------------------------------------------------------------------------------------


def test_every_requirement_of_users_has_a_lower_bound_that_is_tested(configuration):
    extras = dict(configuration["options.extras_require"])
    for name in ("all", "docs", "dev"):
        del extras[name]
    lines = "\n".join([configuration["options"]["install_requires"], *extras.values()]).split("\n")
    required = {re.match(r"[\w.-]*", line)[0] for line in lines if "==" not in line} - {""}
    bounded = {constraint.partition("==")[0] for constraint in lower_bounds.constraints()}
    assert required <= bounded
