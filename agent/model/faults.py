"""The table of model faults: retries, backoff, exit code, message and hint of each kind."""

from typing import Literal, TypeAlias

from agent.vocabulary import exit_codes
from tooling.contract.fast_dataclass import dataclass

FaultKind: TypeAlias = Literal[
    "connect",
    "first_byte",
    "between_chunks",
    "rate_limit",
    "overloaded",
    "server",
    "disconnect",
    "reset",
    "time_limit",
    "malformed",
    "empty",
    "overflow",
    "auth",
    "quota",
    "unknown_model",
    "blind",
    "refused",
    "filtered",
    "cut_off",
    "paused",
    "missing",
    "script",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultPolicy:
    """Policy for one class of faults."""

    retries: int
    backoff_s: float
    exit_code: int
    message: str
    hint: str


# The beginning of the reply is there.
INCOMPLETE: frozenset[FaultKind] = frozenset({"cut_off", "paused"})

FAULTS: dict[FaultKind, FaultPolicy] = {
    "connect": FaultPolicy(
        retries=2,
        backoff_s=0.5,
        exit_code=exit_codes.RETRY_LATER,
        message="could not connect to the provider",
        hint="check your network, that the server is running, and its address (`agent config get api_base`)",
    ),
    "first_byte": FaultPolicy(
        retries=1,
        backoff_s=0.5,
        exit_code=exit_codes.RETRY_LATER,
        message="the provider accepted the request but did not reply",
        hint="try again, or raise `first_byte_timeout_s` for slow local models",
    ),
    "between_chunks": FaultPolicy(
        retries=1,
        backoff_s=0.5,
        exit_code=exit_codes.RETRY_LATER,
        message="the reply stalled",
        hint="try again, or raise `chunk_timeout_s` for slow local models",
    ),
    "rate_limit": FaultPolicy(
        retries=4,
        backoff_s=1.0,
        exit_code=exit_codes.RETRY_LATER,
        message="the provider's rate limit was reached",
        hint="wait a moment, lower `--concurrency`, or use another model",
    ),
    "overloaded": FaultPolicy(
        retries=3,
        backoff_s=1.0,
        exit_code=exit_codes.RETRY_LATER,
        message="the provider is overloaded",
        hint="try again later or use another model",
    ),
    "server": FaultPolicy(
        retries=3,
        backoff_s=0.5,
        exit_code=exit_codes.RETRY_LATER,
        message="the provider returned a server error",
        hint="try again later",
    ),
    "disconnect": FaultPolicy(
        retries=2,
        backoff_s=0.3,
        exit_code=exit_codes.RETRY_LATER,
        message="the provider closed the connection before it replied",
        hint="try again; if it happens again, look at the server's log",
    ),
    "reset": FaultPolicy(
        retries=2,
        backoff_s=0.3,
        exit_code=exit_codes.RETRY_LATER,
        message="the connection was lost during the reply",
        hint="try again",
    ),
    "time_limit": FaultPolicy(
        retries=0,
        backoff_s=0.0,
        exit_code=exit_codes.RETRY_LATER,
        message="the reply was not complete within its time limit",
        hint="try again, or raise `reply_timeout_s` for slow models",
    ),
    "malformed": FaultPolicy(
        retries=1,
        backoff_s=0.3,
        exit_code=exit_codes.RETRY_LATER,
        message="the provider's reply could not be parsed",
        hint="check that the server at `api_base` uses the protocol of the chosen provider",
    ),
    "empty": FaultPolicy(
        retries=1,
        backoff_s=0.3,
        exit_code=exit_codes.FAILED,
        message="the model returned an empty reply",
        hint="try again or use another model",
    ),
    "overflow": FaultPolicy(
        retries=0,
        backoff_s=0.0,
        exit_code=exit_codes.FAILED,
        message="the conversation is too long for the model",
        hint="use a model with a larger context window, or split the task",
    ),
    "auth": FaultPolicy(
        retries=0,
        backoff_s=0.0,
        exit_code=exit_codes.NO_KEY,
        message="the provider rejected the API key",
        hint="replace the key in your environment, or save one: agent config set keys.PROVIDER -",
    ),
    "quota": FaultPolicy(
        retries=0,
        backoff_s=0.0,
        exit_code=exit_codes.NO_KEY,
        message="the account has no credit or quota left",
        hint="check the provider's billing page, or use another model",
    ),
    "unknown_model": FaultPolicy(
        retries=0,
        backoff_s=0.0,
        exit_code=exit_codes.BAD_CONFIG,
        message="the provider does not know this model",
        hint="check the name given with `--model`",
    ),
    "blind": FaultPolicy(
        retries=0,
        backoff_s=0.0,
        exit_code=exit_codes.BAD_INPUT,
        message="the model cannot see images",
        hint="choose a model that can, or leave images out with `--set vision=no`",
    ),
    "refused": FaultPolicy(
        retries=0,
        backoff_s=0.0,
        exit_code=exit_codes.FAILED,
        message="the provider rejected the request",
        hint="see the provider's message",
    ),
    "filtered": FaultPolicy(
        retries=0,
        backoff_s=0.0,
        exit_code=exit_codes.FAILED,
        message="the model refused to answer, or a content filter stopped its reply",
        hint="reword the task, or use another model",
    ),
    "cut_off": FaultPolicy(
        retries=0,
        backoff_s=0.0,
        exit_code=exit_codes.FAILED,
        message="the reply was cut off at its length limit, twice",
        hint="raise `max_output_tokens`, or split the task",
    ),
    "paused": FaultPolicy(
        retries=0,
        backoff_s=0.0,
        exit_code=exit_codes.FAILED,
        message="the provider paused the reply again and again",
        hint="try again, or split the task",
    ),
    "missing": FaultPolicy(
        retries=0,
        backoff_s=0.0,
        exit_code=exit_codes.NO_KEY,
        message="no key is set for this provider",
        hint="set it in the environment or with `agent config set`",
    ),
    "script": FaultPolicy(
        retries=0,
        backoff_s=0.0,
        exit_code=exit_codes.FAILED,
        message="the scripted model has no reply for this request",
        hint="the script or cassette does not match this run",
    ),
}


class ModelFault(Exception):
    """A model call failed; `kind` selects the policy, `detail` is the provider's message without secrets."""

    def __init__(self, kind: FaultKind, detail: str = "", *, retry_after_s: float | None = None) -> None:
        super().__init__(f"{FAULTS[kind].message}: {detail}" if detail else FAULTS[kind].message)
        self.kind = kind
        self.detail = detail
        self.retry_after_s = retry_after_s

    @property
    def policy(self) -> FaultPolicy:
        return FAULTS[self.kind]
