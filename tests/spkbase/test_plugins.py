"""Plug-ins of users: commands with places, a time limit, and an end with ours."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from spkbase.errors import ConfigError, DataError
from spkbase.plugins import TimeLimitError, check_places, files_behind, load_plugin, run_command

pytestmark = pytest.mark.whole

PATIENCE = 20.0  # seconds; the commands below run longer


def is_alive(process):
    """Whether a process runs; one that has ended and waits for init to notice does not."""
    try:
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def wait_for(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def test_a_plugin_is_named_by_its_module_or_file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("def twice(x):\n    return 2 * x\nnumber = 3\n")
    function, file = load_plugin(f"{path}:twice", "attacker", kind="function")
    assert (function(4), file) == (8, path)
    assert load_plugin(f"{path}:number", "number")[0] == 3
    for name, error in (
        (f"{path}:number", "has no function 'number'"),
        (f"{path}:none", "has no function 'none'"),
    ):
        with pytest.raises(ConfigError, match=error):
            load_plugin(name, "attacker", kind="function")
    (tmp_path / "broken.py").write_text("1 / 0\n")
    for name in (f"{tmp_path}/broken.py:x", f"{tmp_path}/absent.py:x", "no_such_module:x", "x"):
        with pytest.raises(
            ConfigError, match=r"cannot be imported: .*give MODULE:FUNCTION.* or FILE.py:FUNCTION"
        ):
            load_plugin(name, "attacker", kind="function")


def test_the_files_of_a_plugin_include_its_imports(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "mine.py": "import numpy, helper\nfrom parts import first\n", "helper.py": "def f():\n    import deeper\n",
        "deeper.py": "import mine\n", "other.py": "", "parts/__init__.py": "", "parts/first.py": "broken(",
        "net.pt": "",
    }.items():  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    found = files_behind("mine.py:attack", tmp_path / "mine.py")
    assert [str(Path(path).relative_to(tmp_path)) for path in found] == [
        "deeper.py", "helper.py", "parts/__init__.py", "parts/first.py",
    ]  # fmt: skip
    command = "python mine.py --net=net.pt {trials} 'helper.py' absent.py"
    assert list(files_behind(command)) == ["helper.py", "mine.py", "net.pt"]
    (tmp_path / "net.pt").write_text("learnt anew")
    assert files_behind(command)["mine.py"] != files_behind(command)["net.pt"]


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("do {in}", "has no {out}"),
        ("do {in} {out} {what}", r"cannot be filled in: 'what' \(placeholders are {in}, {out}"),
        ("do {in} '{out}'", "has a placeholder in quotes"),
        ("do {in} {out} {", "cannot be filled in"),
    ],
)
def test_placeholders_of_commands_are_checked(template, message):
    check_places("do {in} {out} 'as is' {{}}", ["in", "out"], ["out"])
    with pytest.raises(ConfigError, match=message):
        check_places(template, ["in", "out"], ["out"])


def test_commands_have_their_output_folder_and_status(tmp_path):
    with (tmp_path / "out").open("wb") as output:
        # nothing comes on standard input
        run_command("pwd; cat; echo said >&2", output=output, folder=tmp_path)
    assert (tmp_path / "out").read_text() == f"{tmp_path}\n"
    with pytest.raises(DataError, match="the command ended with status 7: wrong"):
        run_command("echo wrong >&2; exit 7")
    with pytest.raises(DataError, match="the command ended with status 137"):
        run_command("kill -KILL $$")
    with pytest.raises(DataError) as caught:
        run_command("yes somebody | head -c 3000000 >&2; echo the end >&2; exit 3")
    assert str(caught.value).endswith("the end")
    assert len(str(caught.value)) < 300


def test_a_command_and_its_children_are_ended_after_the_time_limit(tmp_path):
    children = tmp_path / "children"
    with pytest.raises(TimeLimitError, match=r"ended after 0.5 s, the time limit"):
        run_command(f"sh -c 'echo $$ >> {children}; sleep 600' & sleep 600", seconds=0.5)
    run_command(f"sleep 600 & echo $! >> {children}")  # a child that outlives it
    wait_for(
        lambda: not any(map(is_alive, map(int, children.read_text().split()))),
        "the children should have ended",
    )


@pytest.mark.parametrize("threads", [True, False], ids=["threads", "processes"])
def test_children_of_commands_end_on_an_interrupt(tmp_path, threads):
    command = (
        f"echo $$ >> {tmp_path}/shells; sh -c 'echo $$ >> {tmp_path}/children; sleep 600' | cat"
    )
    code = (
        "from functools import partial\nimport click\nfrom spkbase.console import Command\n"
        "from spkbase.plugins import run_command\nfrom spkbase.work import Work\n"
        "@click.command(cls=Command)\ndef main():\n"
        f"    list(Work(2).map(run_command, [{command!r}] * {9 if threads else 2}, processes={not threads}))\nmain()"
    )
    run = subprocess.Popen(
        [sys.executable, "-c", code], start_new_session=True, stderr=subprocess.PIPE
    )

    def started():
        files = [tmp_path / "shells", tmp_path / "children"]
        return [int(line) for file in files if file.exists() for line in file.read_text().split()]

    wait_for(lambda: len(started()) == 4, "two commands, each with a child, should have begun")
    assert all(map(is_alive, started()))
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=PATIENCE)
    assert run.returncode == 130, err
    wait_for(lambda: not any(map(is_alive, started())), "the commands should have ended with us")


def test_workers_import_nothing_from_their_working_directory(tmp_path):
    """A file named as a module of Python's own, in the folder of somebody's scores."""
    for module in ("pickle", "random", "struct", "argparse", "multiprocessing", "joblib", "psutil"):
        (tmp_path / f"{module}.py").write_text(f"open({str(tmp_path / 'it ran')!r}, 'w')\n")
    script = tmp_path / "elsewhere" / "script.py"
    script.parent.mkdir()
    script.write_text(
        "import os\nfrom spkbase.plugins import run_command\nfrom spkbase.work import Work, use_engine\n"
        "with use_engine('loky'):\n    print(*Work(2).map(abs, [-1, -2], processes=True))\n"
        "    print(*Work(2).map(run_command, ['exec test -z \"$PYTHONSAFEPATH\"'] * 2, processes=True))\n"
        "print(os.environ.get('PYTHONSAFEPATH'))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    run = subprocess.run(
        [sys.executable, script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (run.stdout, run.stderr) == ("1 2\nNone None\nNone\n", "")
    assert not (tmp_path / "it ran").exists()
