"""Pages of reports: what the data, the annotators and the answers are worth."""

from fastapi import APIRouter

router = APIRouter()
# (path, title) of the pages that the owner of the project finds in the navigation.
NAVIGATION: tuple[tuple[str, str], ...] = ()
