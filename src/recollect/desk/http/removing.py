"""Files of what was deleted: results, listings, folders of workers on this machine, copies of mails."""

from __future__ import annotations

import asyncio
import shutil

from recollect.desk import erasing, people, queue
from recollect.desk.erasing import Erased
from recollect.desk.http.context import Desk
from recollect.desk.outbox import remove_copies
from recollect.desk.processes import remove_unused


async def forget(desk: Desk, person: people.Recipient) -> None:
    """Delete everything that is stored of a person, now."""
    await remove(desk, await desk.run(erasing.forget, person, desk.now()))
    desk.changed(person.job)


async def delete(desk: Desk, job: str, actor: str, words: str = queue.REMOVED) -> None:
    """Delete a job, now."""
    await remove(desk, await desk.run(erasing.delete, job, desk.now(), actor, words))


async def remove(desk: Desk, erased: Erased) -> None:
    """Delete the files of what is gone from the database, and its copies there."""
    for job in erased.jobs:
        desk.taken_away(job)
    await asyncio.to_thread(_remove_files, desk, erased)
    await asyncio.to_thread(desk.database.scrub)


def _remove_files(desk: Desk, erased: Erased) -> None:
    for job in erased.jobs:
        shutil.rmtree(desk.results(job), ignore_errors=True)
        for folder in (desk.folder / "work").glob(f"{job}*"):
            remove_unused(folder)  # a worker that uses it removes it when it learns that the job is over
    for key in erased.listings:
        shutil.rmtree(desk.folder / "listings" / key, ignore_errors=True)
    remove_copies(desk.transport, erased.mails)
