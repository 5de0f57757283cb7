"""The two places where DBOS is used beyond its public interface; `test_private_api.py` fails when they change.

Taking over the work of a dead worker is part of its paid conductor otherwise. A limit for one worker over several
queues, and queues that are closed for a while, do not exist: the settings of a queue are the same for all workers.
"""

import copy
import threading
from collections.abc import Callable, Sequence
from typing import TypeAlias

from dbos import DBOS

ClaimLimit: TypeAlias = Callable[[str], int | None]
_NO_ROOM = "worker_concurrency"


def take_over(worker_ids: Sequence[str]) -> int:
    """Put the tasks of dead workers back into their queues; return how many.

    A task that another worker has claimed meanwhile stays with it, however often this is called.
    """
    return len(DBOS._recover_pending_workflows(list(worker_ids)))


def limit_claims(dbos: DBOS, room: ClaimLimit, on_claim: Callable[[str, Sequence[str]], None]) -> None:
    """Ask `room` before every claim how many tasks of a queue may be taken: None for no limit, 0 for none at all.

    The number is used in the same call, unlike the settings of a queue, which are read before the polling interval.
    """
    system_database = dbos._sys_db
    claim = system_database.start_queued_workflows
    # DBOS has a thread per queue, and all of them share the room.
    lock = threading.Lock()

    def limited(queue, executor_id, app_version, partition, running=0, *rest, **options):  # type: ignore[no-untyped-def]
        with lock:
            limit = room(queue.name)
            if limit is None:
                return claim(queue, executor_id, app_version, partition, running, *rest, **options)
            if limit <= 0:
                return [], _NO_ROOM
            narrowed = copy.copy(queue)
            narrowed._worker_concurrency = limit
            claimed, reason = claim(narrowed, executor_id, app_version, partition, 0, *rest, **options)
            on_claim(queue.name, claimed)
            return claimed, reason

    system_database.start_queued_workflows = limited  # type: ignore[method-assign, assignment]
