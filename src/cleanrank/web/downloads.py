"""What was judged, as files, for the owner of the project."""

import tempfile
from functools import partial
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import Response

from cleanrank.labeling.export import export_judgements
from cleanrank.labeling.store import open_project
from cleanrank.web.security import Owner, Refused, site_of

router = APIRouter()
# The name of a file -> its format, and what it holds.
FILES = {
    "labels.csv": ("labels", "one grade per document"),
    "labels.qrels": ("qrels", "the same for TREC tools"),
    "judgements.csv": ("judgements", "everybody's grades"),
    "preferences.csv": ("preferences", "everybody's comparisons"),
    "label-studio.json": ("label-studio", "tasks with everybody's answers"),
}


@router.get("/export/{name}")
async def export(request: Request, name: str, person: Owner) -> Response:
    """A file of what was judged so far."""
    if name not in FILES:
        raise Refused(404, "There is no such file.")
    site = site_of(request)
    make = partial(_file, site.project.path, name)
    content = await site.background.value(f"export {name}", site.project.version, make)
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type="application/octet-stream", headers=headers)


def _file(path: Path, name: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder, open_project(path) as project:
        return export_judgements(project, Path(folder) / name, form=FILES[name][0]).path.read_bytes()
