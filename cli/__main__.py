"""`python -m cli`, the same program as `agent`."""

from cli.main import main

main()
