"""Opens the workspaces according to the settings: their location, archive storage and clean-up."""

from collections.abc import Mapping
from pathlib import Path

from agent.config.service_settings import ServiceSettings
from agent.config.user_dirs import data_dir
from agent.service.workspaces.cleanup import CleanupPolicy, WorkspaceCleaner
from agent.service.workspaces.layout import WorkspaceStore
from agent.service.workspaces.storage import ArchiveStore, BucketSettings, open_archive_store
from tooling.contract.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspaces:
    """The workspaces with their archive store and clean-up policy."""

    store: WorkspaceStore
    archives: ArchiveStore
    cleaner: WorkspaceCleaner
    policy: CleanupPolicy


def open_workspace_store(settings: ServiceSettings, environ: Mapping[str, str]) -> WorkspaceStore:
    """Return the store below `workspace_root`."""
    chosen = Path(settings.workspace_root).expanduser() if settings.workspace_root else None
    return WorkspaceStore(chosen or data_dir(environ) / "workspaces")


def open_workspaces(settings: ServiceSettings, environ: Mapping[str, str]) -> Workspaces:
    """Return the workspaces below `workspace_root`. Raises ConfigError if the library of a bucket is missing."""
    store = open_workspace_store(settings, environ)
    archives = open_archive_store(store.archives, _bucket(settings))
    policy = CleanupPolicy(
        is_enabled=settings.workspace_cleanup_enabled,
        interval_hours=settings.workspace_cleanup_interval_hours,
        max_age_hours=settings.workspace_max_age_hours,
        archives=settings.workspace_archive_enabled,
        archive_days=settings.workspace_archive_days,
    )
    return Workspaces(store=store, archives=archives, cleaner=WorkspaceCleaner(store, archives), policy=policy)


def _bucket(settings: ServiceSettings) -> BucketSettings | None:
    if not settings.s3_bucket:
        return None
    return BucketSettings(
        bucket=settings.s3_bucket,
        endpoint=settings.s3_endpoint or "",
        access_key=settings.s3_access_key or "",
        secret_key=settings.s3_secret_key or "",
        region=settings.s3_region,
        has_path_style=settings.s3_force_path_style,
    )
