"""What servers offered when they were last asked, and what the user has allowed of it; on disk, for this user only."""

import json
from pathlib import Path

from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import DecodeError, decode, encode
from tooling.files.atomic_write import write_atomic
from tooling.mcp.listing import ServerListing
from tooling.mcp.servers import McpServer

_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """The listing of a server, and the configuration that it belongs to."""

    v: int
    server: str
    listing: ServerListing


class ListingStore:
    """Listings by server, and the digests of approved tools; a file that cannot be read counts as missing.

    Runs that leave nothing behind do not save.
    """

    def __init__(self, folder: Path, *, is_saved: bool = True) -> None:
        self._folder = folder
        self._is_saved = is_saved
        self._approved: dict[str, str] | None = None

    def load(self, server: McpServer) -> ServerListing | None:
        """Return what the server offered, unless it is configured differently now."""
        try:
            stored = decode(_Stored, json.loads(self._file(server).read_text("utf-8")))
        except (OSError, ValueError, DecodeError):
            return None
        return stored.listing if (stored.v, stored.server) == (_FORMAT, server.digest) else None

    def save(self, server: McpServer, listing: ServerListing) -> None:
        """Replace what is known of the server; without effect if the disk is full."""
        if self.load(server) != listing:
            self._write(self._file(server), _Stored(v=_FORMAT, server=server.digest, listing=listing))

    def approved(self, tool: str) -> str:
        """Return the digest of a tool when a call of it was last allowed; empty if none was."""
        return self._read_approved().get(tool, "")

    def approve(self, tool: str, digest: str) -> None:
        """Remember that a call of the tool, as it describes itself now, was allowed."""
        if self.approved(tool) != digest:
            # Another run may have added to it.
            self._approved = None
            approved = self._read_approved()
            approved[tool] = digest
            self._write(self._folder / "approved.json", approved)

    def _read_approved(self) -> dict[str, str]:
        if self._approved is None:
            try:
                found = json.loads((self._folder / "approved.json").read_text("utf-8"))
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
