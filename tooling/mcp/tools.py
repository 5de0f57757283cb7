"""Tools of MCP servers as tools of a run: subject to approval, with results marked as untrusted."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tooling.contract.action import Action
from tooling.contract.context import ExecCtx
from tooling.contract.json_codec import DecodeError, JsonObject
from tooling.contract.result import ToolError, ToolMeta, ToolResult
from tooling.contract.tool import Tool, ToolServices, ToolSpec
from tooling.images.header import ImageProblem
from tooling.images.prepare import keep_image, prepare_image
from tooling.mcp.connection import ServerConnection
from tooling.mcp.listing import OfferedResource, OfferedTool, full_name
from tooling.mcp.listing_store import ListingStore
from tooling.web.html.hidden_unicode import strip_invisible
from tooling.web.page import wrap_untrusted

if TYPE_CHECKING:
    from tooling.contract.image import Image
    from tooling.mcp.client import McpClient, ServerReply

# Maximum size of a result before it is trimmed for the model; the rest is not saved.
MAX_RESULT_CHARS = 400_000
MAX_IMAGES = 4
CHANGED = "its description or parameters have changed since you allowed it"
READ_RESOURCE = "read_resource"
_LISTED_RESOURCES = 20


def tool_spec(server: str, offered: OfferedTool) -> ToolSpec:
    """Return the spec of a tool; hints of the server, such as "read-only", are ignored."""
    return ToolSpec(
        name=full_name(server, offered.name),
        description=offered.description,
        parameters=offered.parameters,
        effect="external",
        # The connection enforces the server's limits, and its clock stops while the user is asked.
        timeout_ms=0,
        tags=("mcp",),
    )


class McpTool(Tool[JsonObject]):
    """One tool of a server."""

    def __init__(
        self, services: ToolServices, connection: ServerConnection, offered: OfferedTool, store: ListingStore
    ) -> None:
        super().__init__(services)
        self.offered = offered
        self._connection = connection
        self._store = store
        self.spec = tool_spec(connection.server.name, offered)

    def parse_arguments(self, args: object) -> JsonObject:
        """Return the arguments unchanged: the server validates them."""
        if not isinstance(args, Mapping):
            raise DecodeError("expected an object")
        return {str(key): value for key, value in args.items()}

    def action(self, params: JsonObject, ctx: ExecCtx) -> Action:
        """Return the call with its arguments; a tool that changed since its approval needs approval again."""
        return self._action(params, ctx, self.offered)

    def _action(self, params: JsonObject, ctx: ExecCtx, offered: OfferedTool) -> Action:
        approved = self._store.approved(self.spec.name)
        return Action(
            tool=self.spec.name,
            effect="external",
            subject=f"{self.spec.name} {json.dumps(params, ensure_ascii=False)}",
            cwd=ctx.working_dir,
            changed=CHANGED if approved and approved != offered.digest else "",
            preview=(lambda: _describe(offered)) if approved and approved != offered.digest else None,
        )

    async def run(self, params: JsonObject, ctx: ExecCtx) -> ToolResult:
        """Call the tool, after asking again if its description has changed."""
        self._store.approve(self.spec.name, self.offered.digest)
        connection = self._connection
        now = (await connection.refresh(ctx)).tool(self.offered.name)
        if now is None:
            raise ToolError(f"The MCP server {connection.server.name} no longer has the tool {self.offered.name}.")
        if now.digest != self.offered.digest:
            if refusal := await self._services.action_gate.refusal(self._action(params, ctx, now), ctx):
                raise ToolError(f"{refusal} The server has changed the tool.", status="denied")
            self._store.approve(self.spec.name, now.digest)
            self.offered = now

        async def call(client: "McpClient") -> "ServerReply":
            return await client.call_tool(self.offered.name, params, lambda text: _report(text, ctx))

        reply = await connection.use(ctx, call)
        return untrusted_result(reply, f"MCP server {connection.server.name}, {self.offered.name}", ctx)


class ReadResource(Tool[JsonObject]):
    """Reads the resources of one server."""

    def __init__(
        self, services: ToolServices, connection: ServerConnection, resources: tuple[OfferedResource, ...]
    ) -> None:
        super().__init__(services)
        self._connection = connection
        listed = "\n".join(f"{resource.uri} {resource.name}" for resource in resources[:_LISTED_RESOURCES])
        more = f"\nand {len(resources) - _LISTED_RESOURCES} more" if len(resources) > _LISTED_RESOURCES else ""
        server = connection.server.name
        self.spec = ToolSpec(
            name=full_name(server, READ_RESOURCE),
            description=f"Read a resource of the MCP server {server} by its URI:\n{listed}{more}",
            parameters={"type": "object", "properties": {"uri": {"type": "string"}}, "required": ["uri"]},
            effect="external",
            timeout_ms=0,
            tags=("mcp",),
        )

    def parse_arguments(self, args: object) -> JsonObject:
        """Return the URI."""
        uri = args.get("uri") if isinstance(args, Mapping) else None
        if not isinstance(uri, str):
            raise DecodeError("missing field uri (text)")
        return {"uri": uri}

    def action(self, params: JsonObject, ctx: ExecCtx) -> Action:
        """Return the resource as the subject."""
        subject = f"{self.spec.name} {params['uri']}"
        return Action(tool=self.spec.name, effect="external", subject=subject, cwd=ctx.working_dir)

    async def run(self, params: JsonObject, ctx: ExecCtx) -> ToolResult:
        """Read the resource."""
        uri = str(params["uri"])
        reply = await self._connection.use(ctx, lambda client: client.read_resource(uri))
        return untrusted_result(reply, f"MCP server {self._connection.server.name}, {uri}", ctx)


def untrusted_result(reply: "ServerReply", origin: str, ctx: ExecCtx) -> ToolResult:
    """Return a server's reply as data that the model must not treat as instructions."""
    text = reply.text
    if len(text) > MAX_RESULT_CHARS:
        text = f"{text[:MAX_RESULT_CHARS]}\n[... the server sent {len(text):,} characters; the rest was dropped]"
    text, hidden = strip_invisible(text)
    images, notes = _keep_images(reply.images, ctx)
    if hidden:
        notes.append("[invisible text was left out]")
    body = wrap_untrusted("\n".join((text or "(no text)", *notes)), origin=origin)
    meta = ToolMeta(status="error" if reply.is_error else "ok")
    return ToolResult(body, 1 if reply.is_error else 0, meta=meta, images=images)


def _keep_images(found: tuple[bytes, ...], ctx: ExecCtx) -> "tuple[tuple[Image, ...], list[str]]":
    images: list[Image] = []
    notes: list[str] = []
    for number, data in enumerate(found[:MAX_IMAGES], 1):
        try:
            prepared = prepare_image(data)
            if prepared is None:
                raise ToolError("it is no image")
            images.append(keep_image(*prepared, f"image {number}", ctx))
        except (ImageProblem, ToolError) as problem:
            notes.append(f"[image {number} cannot be shown: {problem}]")
    if len(found) > MAX_IMAGES:
        notes.append(f"[{len(found) - MAX_IMAGES} more images are not shown]")
    return tuple(images), notes


def _report(text: str, ctx: ExecCtx) -> None:
    if ctx.on_output is not None:
        ctx.on_output(f"{text}\n".encode())


def _describe(offered: OfferedTool) -> str:
    return f"{offered.description}\n{json.dumps(offered.parameters, indent=2, ensure_ascii=False)}"
