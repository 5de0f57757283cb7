"""ExecutorClient: sends a task to an executor over HTTP; results arrive by callback."""

import uuid
from collections.abc import Mapping

from agent.service.staging import config_as_json
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import AgentError
from agent.vocabulary.task_config import TaskConfig
from tooling.web.http.httpx_import import httpx

_TIMEOUT_S = 30.0


class ExecutorUnreachable(AgentError):
    """An executor does not accept a task now; another attempt may succeed."""

    exit_code = exit_codes.RETRY_LATER


class ExecutorClient:
    """Client of executors. `trace_id` connects their telemetry to the task; by default a new one is created."""

    def __init__(self, *, trace_id: str = "", token: str = "", timeout_s: float = _TIMEOUT_S) -> None:
        self._trace_id = trace_id or uuid.uuid4().hex
        self._token = token
        self._timeout_s = timeout_s

    async def execute_task(
        self,
        executor_url: str,
        session_id: str,
        prompt: str,
        callback_url: str,
        callback_token: str,
        config: TaskConfig,
        callback_base_url: str | None = None,
        sdk_session_id: str | None = None,
    ) -> str:
        """Submit a task and return the id of its session. Raises ExecutorUnreachable if it is not accepted."""
        body = {
            "session_id": session_id,
            "prompt": prompt,
            "callback_url": callback_url,
            "callback_token": callback_token,
            "config": config_as_json(config),
            "callback_base_url": callback_base_url,
            "sdk_session_id": sdk_session_id,
        }
        reply = await self._post(f"{executor_url.rstrip('/')}/v1/tasks/execute", body)
        if reply.get("status") != "accepted":
            raise ExecutorUnreachable(f"the executor at {executor_url} did not accept the task")
        return str(reply.get("session_id") or session_id)

    async def _post(self, url: str, body: Mapping[str, object]) -> Mapping[str, object]:
        try:
            async with httpx.AsyncClient(timeout=self._timeout_s, trust_env=False) as client:
                response = await client.post(url, json=body, headers=self._headers())
                response.raise_for_status()
                reply = response.json()
        except (httpx.HTTPError, ValueError) as error:
            raise ExecutorUnreachable(f"the executor cannot be reached: {type(error).__name__}: {error}") from error
        return reply if isinstance(reply, Mapping) else {}

    def _headers(self) -> dict[str, str]:
        headers = {"X-Request-ID": uuid.uuid4().hex, "X-Trace-ID": self._trace_id}
        return {**headers, "Authorization": f"Bearer {self._token}"} if self._token else headers
