"""Clicks: users who click (models), their logs, and what clicks say about grades (evidence)."""

from cleanrank.clicks.evidence import click_evidence as click_evidence
from cleanrank.clicks.evidence import estimate_examination as estimate_examination
from cleanrank.clicks.logs import clicks_from_log as clicks_from_log
from cleanrank.clicks.models import make_click_model as make_click_model
from cleanrank.clicks.models import pbm as pbm
from cleanrank.clicks.simulate import online_clicks as online_clicks
from cleanrank.clicks.simulate import simulate_clicks as simulate_clicks
from cleanrank.clicks.simulate import static_clicks as static_clicks
