"""`python -m cli` is `agent`."""

from cli.main import main

main()
