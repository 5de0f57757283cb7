"""The version of Windlass, alone in a file so that `agent --version` imports nothing else."""

VERSION = "0.1.0"
__version__ = VERSION
