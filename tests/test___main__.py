import subprocess
import sys

import cleanrank


def test_the_module_is_the_command_line():
    done = subprocess.run(
        [sys.executable, "-m", "cleanrank", "--version"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert cleanrank.__version__ in done.stdout


def test_an_unknown_command_is_a_usage_error():
    done = subprocess.run(
        [sys.executable, "-m", "cleanrank", "celan"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "celan" in done.stderr
