"""Writes frozen.json; see cases.py."""

import json
import sys
from pathlib import Path

from tests.frozen.cases import CASES, described, machine

PATH = Path(__file__).with_name("frozen.json")

if __name__ == "__main__":
    kept = json.loads(PATH.read_text()) if PATH.exists() else {"cases": {}}
    if len(sys.argv) == 1:  # else most cases are of the machine that recorded them
        kept["machine"] = machine()
    for name, case in CASES.items():
        if len(sys.argv) == 1 or name in sys.argv[1:]:
            try:
                kept["cases"][name] = described(case())
            except Exception as error:
                print(name, repr(error)[:300])
    PATH.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
