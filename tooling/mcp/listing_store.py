"""Store of the last listings of servers and the user's approvals of their tools; readable only by this user."""

import json
from pathlib import Path

from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import DecodeError, decode, encode
from tooling.files.atomic_write import write_atomic
from tooling.files.open_regular import read_regular
from tooling.mcp.listing import ServerListing
from tooling.mcp.servers import McpServer

_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """The listing of a server, and the configuration it belongs to."""

    v: int
    server: str
    listing: ServerListing


class ListingStore:
    """Listings by server, and the digests of approved tools; an unreadable file counts as missing.

    Ephemeral runs save nothing.
    """

    def __init__(self, folder: Path, *, is_saved: bool = True) -> None:
        self._folder = folder
        self._is_saved = is_saved
        self._approved: dict[str, str] | None = None

    def load(self, server: McpServer) -> ServerListing | None:
        """Return the listing of a server, unless its configuration has changed."""
        try:
            stored = decode(_Stored, json.loads(read_regular(self._file(server))))
        except (OSError, ValueError, DecodeError):
            return None
        return stored.listing if (stored.v, stored.server) == (_FORMAT, server.digest) else None

    def save(self, server: McpServer, listing: ServerListing) -> None:
        """Replace the listing of a server; does nothing if the disk is full."""
        if self.load(server) != listing:
            self._write(self._file(server), _Stored(v=_FORMAT, server=server.digest, listing=listing))

    def approved(self, tool: str) -> str:
        """Return the digest of a tool at its last allowed call; empty if there is none."""
        return self._read_approved().get(tool, "")

    def approve(self, tool: str, digest: str) -> None:
        """Store that a call of the tool, with its current description, was allowed."""
        if self.approved(tool) != digest:
            # Another run may have added entries.
            self._approved = None
            approved = self._read_approved()
            approved[tool] = digest
            self._write(self._folder / "approved.json", approved)

    def _read_approved(self) -> dict[str, str]:
        if self._approved is None:
            try:
                found = json.loads(read_regular(self._folder / "approved.json"))
            except (OSError, ValueError):
                found = {}
            entries = found.items() if isinstance(found, dict) else ()
            self._approved = {str(tool): str(digest) for tool, digest in entries}
        return self._approved

    def _file(self, server: McpServer) -> Path:
        return self._folder / "servers" / f"{server.name}.json"

    def _write(self, path: Path, value: object) -> None:
        if not self._is_saved:
            return
        try:
            for folder in (self._folder, path.parent):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomic(path, json.dumps(encode(value)).encode(), is_synced=False)
        except OSError:
            return
