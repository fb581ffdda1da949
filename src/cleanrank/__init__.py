"""Find, measure and survive label noise in learning to rank.

The public names are loaded when first used, so that importing the package is fast and pulls in neither
torch nor numba.
"""

import importlib
import sys
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

PUBLIC: dict[str, str] = {
    "CleanrankError": "cleanrank.errors",
    "RankingData": "cleanrank.types",
    "from_arrays": "cleanrank.data.arrays",
    "read_letor": "cleanrank.data.letor",
    "write_letor": "cleanrank.data.letor",
    "from_frame": "cleanrank.data.frames",
    "to_frame": "cleanrank.data.frames",
    "read_csv": "cleanrank.data.frames",
    "read_parquet": "cleanrank.data.frames",
    "read_any": "cleanrank.data.frames",
    "write_csv": "cleanrank.data.frames",
    "write_parquet": "cleanrank.data.frames",
    "read_qrels": "cleanrank.data.trec",
    "read_run": "cleanrank.data.trec",
    "from_qrels_run": "cleanrank.data.trec",
    "write_qrels": "cleanrank.data.trec",
    "write_run": "cleanrank.data.trec",
    "load": "cleanrank.data.catalogue",
    "verify": "cleanrank.data.verify",
    "make_ranking": "cleanrank.data.synthetic",
    "make_ranking_chunks": "cleanrank.data.synthetic",
    "make_haddad": "cleanrank.data.synthetic",
    "split": "cleanrank.data.split",
    "folds": "cleanrank.data.split",
    "NoiseProfile": "cleanrank.noise.profiles",
    "Corruption": "cleanrank.noise.profiles",
    "corrupt": "cleanrank.noise.inject",
    "PairNoise": "cleanrank.noise.pnoise",
    "pnoise": "cleanrank.noise.pnoise",
    "pnoise_curve": "cleanrank.noise.pnoise",
    "signal_left": "cleanrank.noise.pnoise",
    "Measure": "cleanrank.evaluate.measures",
    "Evaluation": "cleanrank.evaluate.compare",
    "Comparison": "cleanrank.evaluate.compare",
    "evaluate": "cleanrank.evaluate.compare",
    "compare": "cleanrank.evaluate.compare",
    "select": "cleanrank.evaluate.select",
    "diagnose": "cleanrank.diagnose.diagnosis",
    "plan": "cleanrank.plan.planning",
    "pnoise_expected": "cleanrank.noise.pnoise",
    "merge_grades": "cleanrank.noise.grades",
    "best_proportions": "cleanrank.noise.grades",
    "simulate_clicks": "cleanrank.noise.clicks.simulate",
    "NoiseEstimate": "cleanrank.noise.estimate",
    "gold_sample": "cleanrank.noise.gold",
    "from_gold": "cleanrank.noise.gold",
    "from_repeated": "cleanrank.noise.annotators",
    "train_lambdarank": "cleanrank.rankers.trees",
    "SOURRanker": "cleanrank.pipelines.sour",
    "RobustRanker": "cleanrank.pipelines.robust",
    "RobustLGBMRanker": "cleanrank.rankers.robust_trees",
    "BoostedRanker": "cleanrank.rankers.estimators",
    "PeerRanker": "cleanrank.rankers.estimators",
    "load_trees": "cleanrank.rankers.trees",
    "NeuralRanker": "cleanrank.rankers.neural",
    "clean": "cleanrank.clean",
    "find_label_issues": "cleanrank.pipelines.issues",
    "DoubtTable": "cleanrank.doubt.table",
}

if TYPE_CHECKING:
    from cleanrank.clean import clean as clean
    from cleanrank.data.arrays import from_arrays as from_arrays
    from cleanrank.data.catalogue import load as load
    from cleanrank.data.frames import from_frame as from_frame
    from cleanrank.data.frames import read_any as read_any
    from cleanrank.data.frames import read_csv as read_csv
    from cleanrank.data.frames import read_parquet as read_parquet
    from cleanrank.data.frames import to_frame as to_frame
    from cleanrank.data.frames import write_csv as write_csv
    from cleanrank.data.frames import write_parquet as write_parquet
    from cleanrank.data.letor import read_letor as read_letor
    from cleanrank.data.letor import write_letor as write_letor
    from cleanrank.data.split import folds as folds
    from cleanrank.data.split import split as split
    from cleanrank.data.synthetic import make_haddad as make_haddad
    from cleanrank.data.synthetic import make_ranking as make_ranking
    from cleanrank.data.synthetic import make_ranking_chunks as make_ranking_chunks
    from cleanrank.data.trec import from_qrels_run as from_qrels_run
    from cleanrank.data.trec import read_qrels as read_qrels
    from cleanrank.data.trec import read_run as read_run
    from cleanrank.data.trec import write_qrels as write_qrels
    from cleanrank.data.trec import write_run as write_run
    from cleanrank.data.verify import verify as verify
    from cleanrank.diagnose.diagnosis import diagnose as diagnose
    from cleanrank.doubt.table import DoubtTable as DoubtTable
    from cleanrank.errors import CleanrankError as CleanrankError
    from cleanrank.evaluate.compare import Comparison as Comparison
    from cleanrank.evaluate.compare import Evaluation as Evaluation
    from cleanrank.evaluate.compare import compare as compare
    from cleanrank.evaluate.compare import evaluate as evaluate
    from cleanrank.evaluate.measures import Measure as Measure
    from cleanrank.evaluate.select import select as select
    from cleanrank.noise.annotators import from_repeated as from_repeated
    from cleanrank.noise.clicks.simulate import simulate_clicks as simulate_clicks
    from cleanrank.noise.estimate import NoiseEstimate as NoiseEstimate
    from cleanrank.noise.gold import from_gold as from_gold
    from cleanrank.noise.gold import gold_sample as gold_sample
    from cleanrank.noise.grades import best_proportions as best_proportions
    from cleanrank.noise.grades import merge_grades as merge_grades
    from cleanrank.noise.inject import corrupt as corrupt
    from cleanrank.noise.pnoise import PairNoise as PairNoise
    from cleanrank.noise.pnoise import pnoise as pnoise
    from cleanrank.noise.pnoise import pnoise_curve as pnoise_curve
    from cleanrank.noise.pnoise import pnoise_expected as pnoise_expected
    from cleanrank.noise.pnoise import signal_left as signal_left
    from cleanrank.noise.profiles import Corruption as Corruption
    from cleanrank.noise.profiles import NoiseProfile as NoiseProfile
    from cleanrank.pipelines.issues import find_label_issues as find_label_issues
    from cleanrank.pipelines.robust import RobustRanker as RobustRanker
    from cleanrank.pipelines.sour import SOURRanker as SOURRanker
    from cleanrank.plan.planning import plan as plan
    from cleanrank.rankers.estimators import BoostedRanker as BoostedRanker
    from cleanrank.rankers.estimators import PeerRanker as PeerRanker
    from cleanrank.rankers.neural import NeuralRanker as NeuralRanker
    from cleanrank.rankers.robust_trees import RobustLGBMRanker as RobustLGBMRanker
    from cleanrank.rankers.trees import load_trees as load_trees
    from cleanrank.rankers.trees import train_lambdarank as train_lambdarank
    from cleanrank.types import RankingData as RankingData

__all__ = [
    "BoostedRanker",
    "CleanrankError",
    "Comparison",
    "Corruption",
    "DoubtTable",
    "Evaluation",
    "Measure",
    "NeuralRanker",
    "NoiseEstimate",
    "NoiseProfile",
    "PairNoise",
    "PeerRanker",
    "RankingData",
    "RobustLGBMRanker",
    "RobustRanker",
    "SOURRanker",
    "__version__",
    "best_proportions",
    "clean",
    "compare",
    "corrupt",
    "diagnose",
    "evaluate",
    "find_label_issues",
    "folds",
    "from_arrays",
    "from_frame",
    "from_gold",
    "from_qrels_run",
    "from_repeated",
    "gold_sample",
    "load",
    "load_trees",
    "make_haddad",
    "make_ranking",
    "make_ranking_chunks",
    "merge_grades",
    "plan",
    "pnoise",
    "pnoise_curve",
    "pnoise_expected",
    "read_any",
    "read_csv",
    "read_letor",
    "read_parquet",
    "read_qrels",
    "read_run",
    "select",
    "signal_left",
    "simulate_clicks",
    "split",
    "to_frame",
    "train_lambdarank",
    "verify",
    "write_csv",
    "write_letor",
    "write_parquet",
    "write_qrels",
    "write_run",
]


def __getattr__(name: str) -> Any:
    if name not in PUBLIC:
        raise AttributeError(f"module 'cleanrank' has no attribute {name!r}")
    value = getattr(importlib.import_module(PUBLIC[name]), name)
    # A room of that name is the callable room itself (see verbs.py), whichever way it was first reached.
    value = sys.modules.get(f"cleanrank.{name}", value)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *PUBLIC})
