"""The states of a job and the only ways between them. Pure.

Hides nothing: `TRANSITIONS` is the whole table. What is not in it is refused, whoever asks.

    pending ─confirm→ queued ─claim→ running ─pack→ packing ─deliver→ ready ─pick-up→ picked-up
                        ↑  ↑            │ │                             └────────┬───────┘
                        │  └─crash──────┘ └─defer→ waiting ─resume→ queued     expire→ expired
                        └──────── retry ── failed, cancelled, nothing-found, expired
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from recollect.errors import RecollectError


class State(StrEnum):
    """Where a job is."""

    PENDING = "pending"
    """Submitted, not confirmed by mail."""
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    """For an archive's quota or pause, or for the operator; holds no worker."""
    PACKING = "packing"
    READY = "ready"
    PICKED_UP = "picked-up"
    EXPIRED = "expired"
    FAILED = "failed"
    CANCELLED = "cancelled"
    NOTHING_FOUND = "nothing-found"


class Action(StrEnum):
    """What can happen to a job."""

    CONFIRM = "confirm"
    CLAIM = "claim"
    DEFER = "defer"
    """The worker gives the job back until an archive may be asked again."""
    PAUSE = "pause"
    """The operator takes the job out of the queue until it is resumed."""
    RESUME = "resume"
    PACK = "pack"
    DELIVER = "deliver"
    FIND_NOTHING = "find-nothing"
    PICK_UP = "pick-up"
    EXPIRE = "expire"
    FAIL = "fail"
    CRASH = "crash"
    """The lease ran out: the worker is dead or cut off."""
    RELEASE = "release"
    """The worker gives the job back because it shuts down."""
    CANCEL = "cancel"
    RETRY = "retry"


_S, _A = State, Action
TRANSITIONS: Mapping[tuple[State, Action], State] = {
    (_S.PENDING, _A.CONFIRM): _S.QUEUED,
    (_S.PENDING, _A.EXPIRE): _S.EXPIRED,
    (_S.PENDING, _A.CANCEL): _S.CANCELLED,
    (_S.QUEUED, _A.CLAIM): _S.RUNNING,
    (_S.QUEUED, _A.PAUSE): _S.WAITING,
    (_S.QUEUED, _A.CANCEL): _S.CANCELLED,
    (_S.RUNNING, _A.PACK): _S.PACKING,
    (_S.RUNNING, _A.DEFER): _S.WAITING,
    (_S.RUNNING, _A.PAUSE): _S.WAITING,
    (_S.RUNNING, _A.FIND_NOTHING): _S.NOTHING_FOUND,
    (_S.RUNNING, _A.FAIL): _S.FAILED,
    (_S.RUNNING, _A.CRASH): _S.QUEUED,
    (_S.RUNNING, _A.RELEASE): _S.QUEUED,
    (_S.RUNNING, _A.CANCEL): _S.CANCELLED,
    (_S.WAITING, _A.RESUME): _S.QUEUED,
    (_S.WAITING, _A.PAUSE): _S.WAITING,
    (_S.WAITING, _A.CANCEL): _S.CANCELLED,
    (_S.PACKING, _A.DELIVER): _S.READY,
    (_S.PACKING, _A.DEFER): _S.WAITING,
    (_S.PACKING, _A.FAIL): _S.FAILED,
    (_S.PACKING, _A.CRASH): _S.QUEUED,
    (_S.PACKING, _A.RELEASE): _S.QUEUED,
    (_S.PACKING, _A.CANCEL): _S.CANCELLED,
    (_S.READY, _A.PICK_UP): _S.PICKED_UP,
    (_S.READY, _A.EXPIRE): _S.EXPIRED,
    (_S.PICKED_UP, _A.PICK_UP): _S.PICKED_UP,
    (_S.PICKED_UP, _A.EXPIRE): _S.EXPIRED,
    (_S.EXPIRED, _A.RETRY): _S.QUEUED,
    (_S.FAILED, _A.RETRY): _S.QUEUED,
    (_S.CANCELLED, _A.RETRY): _S.QUEUED,
    (_S.NOTHING_FOUND, _A.RETRY): _S.QUEUED,
}

CLAIMED = frozenset((State.RUNNING, State.PACKING))
"""States in which a worker holds a lease."""
ACTIVE = frozenset((State.QUEUED, State.RUNNING, State.WAITING, State.PACKING))
"""States from which a result can still come without an operator."""
DELIVERED = frozenset((State.READY, State.PICKED_UP))
"""States in which there is something to download."""
FINAL = frozenset((State.EXPIRED, State.FAILED, State.CANCELLED, State.NOTHING_FOUND))


class BadTransition(RecollectError):
    """An action that the state of a job does not allow."""


def after(state: State, action: Action) -> State:
    """The state that follows; raises BadTransition for what the table does not have."""
    try:
        return TRANSITIONS[state, action]
    except KeyError:
        raise BadTransition(
            f"a job that is {state} cannot {action}", hint=f"possible: {', '.join(allowed(state)) or 'nothing'}"
        ) from None


def allowed(state: State) -> tuple[Action, ...]:
    """The actions a state allows."""
    return tuple(action for (source, action) in TRANSITIONS if source == state)


def progress(processed: int, queued: int, before: float = 0.0) -> float:
    """McCown (2007), equation 19, of what is known so far; never less than `before`, as the queue grows while pages
    are read."""
    total = processed + queued
    return max(before, processed / total if total else 0.0)
