"""How fragile are these labels, and what should be done first?"""

from cleanrank.diagnosis.advice import Advice
from cleanrank.diagnosis.diagnose import Diagnosis, diagnose

__all__ = ["Advice", "Diagnosis", "diagnose"]
