"""How fragile are these labels, and what should be done first?"""

from cleanrank.diagnose.advice import Advice
from cleanrank.diagnose.diagnosis import Diagnosis, diagnose
from cleanrank.verbs import make_callable

make_callable(__name__, diagnose)

__all__ = ["Advice", "Diagnosis", "diagnose"]
