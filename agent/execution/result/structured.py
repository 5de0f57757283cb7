"""Structured answers: parsed, validated against a JSON schema, repaired once by the model."""

import json
from collections.abc import Mapping
from pathlib import Path

from agent.model.metered_client import MeteredModel
from agent.model.port import ModelRequest
from agent.prompts.load import load_prompt
from agent.vocabulary.errors import InputError
from agent.vocabulary.message import Message


def schema_mismatch(problem: str) -> str:
    return f"the answer does not match the output schema: {problem}"


def unresolvable_schema(problem: object) -> str:
    return f"the output schema contains a reference that cannot be resolved: {problem}"


class OutputSchema:
    """The JSON schema an answer must match."""

    def __init__(self, schema: str, source: str = "of the run") -> None:
        self._schema = _load_schema(schema, source)
        self.text = json.dumps(self._schema, ensure_ascii=False)

    @classmethod
    def from_file(cls, path: Path) -> "OutputSchema":
        """Read the schema from a file."""
        try:
            text = path.read_text("utf-8")
        except OSError as error:
            raise InputError(f"cannot read the output schema {path}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise InputError(f"the output schema {path} is not JSON: {error}") from error
        return cls(text, str(path))

    @property
    def constraints(self) -> str:
        """The instruction for models about the form of the answer."""
        return (
            "The final answer to the request must be one JSON document, without a fence, valid against this "
            f"JSON schema: {self.text}"
        )

    async def coerce(self, answer: str, client: MeteredModel, model: str) -> tuple[object | None, str, str | None]:
        """Return the data, the answer as text, and the problem if one repair did not fix it."""
        data, problem = self._check(answer)
        if problem is None:
            return data, json.dumps(data, ensure_ascii=False), None
        if not model:
            return None, answer, schema_mismatch(problem)
        request = ModelRequest(
            model=model,
            purpose="repair",
            messages=(
                Message(role="system", content=load_prompt("schema_repair")),
                Message(role="user", content=f"Schema: {self.text}\n\nAnswer:\n{answer}\n\nProblem: {problem}"),
            ),
        )
        reply = await client.ask(request)
        data, problem = self._check(reply.message.content)
        if problem is None:
            return data, json.dumps(data, ensure_ascii=False), None
        return None, answer, schema_mismatch(problem)

    def _check(self, answer: str) -> tuple[object | None, str | None]:
        import jsonschema
        import referencing
        import referencing.exceptions

        try:
            data = json.loads(_strip_fence(answer))
        except (ValueError, RecursionError) as error:
            return None, f"not JSON: {error}"
        # Without an empty registry, jsonschema would fetch remote references over the network.
        validator = jsonschema.Draft202012Validator(self._schema, registry=referencing.Registry())
        try:
            problems = sorted(validator.iter_errors(data), key=lambda problem: list(problem.path))
        except referencing.exceptions.Unresolvable as error:
            raise InputError(unresolvable_schema(error)) from error
        if not problems:
            return data, None
        path = "/".join(map(str, problems[0].path)) or "the document"
        return None, f"{path}: {problems[0].message}"


def _load_schema(text: str, source: str) -> Mapping[str, object]:
    import jsonschema

    try:
        schema: Mapping[str, object] = json.loads(text)
        jsonschema.Draft202012Validator.check_schema(schema)
    except ValueError as error:
        raise InputError(f"the output schema {source} is not JSON: {error}") from error
    except jsonschema.SchemaError as error:
        raise InputError(f"the output schema {source} is not a JSON schema: {error.message}") from error
    return schema


def _strip_fence(answer: str) -> str:
    text = answer.strip()
    if text.startswith("```"):
        text = text.partition("\n")[2].rpartition("```")[0]
    return text
