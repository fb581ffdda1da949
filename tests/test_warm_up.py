"""Compiling ahead of the first call."""

import os
import subprocess
import sys

import pytest


@pytest.mark.slow
def test_what_is_compiled_ahead_is_not_compiled_by_the_first_call(tmp_path):
    (tmp_path / "a.txt").write_text("".join(f"{k % 3} qid:{k // 9} 1:{k} 2:0.5\n" for k in range(90)))
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "compiled")}
    call = f"import cleanrank as cr; cr.read_letor({str(tmp_path / 'a.txt')!r}, cache=False)"
    found = []
    for words in (["-m", "cleanrank.warm_up"], ["-c", call]):
        subprocess.run([sys.executable, *words], env=env, check=True, capture_output=True)
        found.append({file.name for file in (tmp_path / "compiled").rglob("*.nbc")})
    assert found[0] == found[1] != set()
