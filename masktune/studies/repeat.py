"""Carrying out an experiment, as a study whose folder also has its table."""

from pathlib import Path
from typing import Any

from masktune.compute import accelerator
from masktune.progress import Watcher, unwatched
from masktune.studies.carry_out import carry_out
from masktune.studies.given import ask_given, check_given
from masktune.studies.reproduce import Request, folder_of, plan
from masktune.studies.results_page import markdown
from masktune.studies.study import Study
from masktune.studies.tables import document

TABLE = "table.json"


def reproduce(request: Request, *, out: Path, watcher: Watcher = unwatched) -> dict[str, Any]:
    """Do every run of an experiment that is not done yet, or go on where one was interrupted.

    ``out`` is the folder of all experiments. The watcher hears the steps of each run, with the run
    and how long all of them still take before the stage. Return the table as a JSON document.
    """
    check_given(request)
    folder, runs = folder_of(request, out=out), [*plan(request, out=out)]
    about = {"recipe": request.recipe, "scale": request.scale, "changes": request.changes()}
    compute = accelerator(request.device)
    study = Study.claim(folder, runs, kind="reproduction", about=about, compute=compute)
    with study.recording():
        given = ask_given(request, compute=compute, watcher=watcher)
        carry_out(
            study,
            watcher=watcher,
            table=lambda done: document(request, [*done.items()], given=given),
        )
        study.folder.write_json(TABLE, study.table)
        study.folder.write("table.md", markdown(study.table).encode())
    return {**study.table}
