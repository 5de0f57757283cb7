"""Race-free file access: open by descriptor beneath a folder, replace atomically, keep blobs for undo."""
