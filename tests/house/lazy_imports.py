"""What may be imported inside a function, and why it is not at the top."""

LAZY_LIBRARIES = {
    "litellm": "seconds of CPU",
    "openai": "comes with litellm and is as slow",
    "httpx": "a run with a scripted or recorded model does without it",
    "logging": "only to quieten litellm",
    "jsonschema": "only for --output-schema",
    "referencing": "only for --output-schema",
    "platformdirs": "as slow as a whole `--version`, not needed on Linux",
    "tomllib": "only when there is a settings file",
    "json": "settings without a list or table do without it",
    "ast": "only for replies that are Python instead of JSON",
    "warnings": "only around ast",
    "ctypes": "only with the first file that a tool opens",
    "difflib": "only to name what was probably meant",
    "tree_sitter": "the grammar loads with the first command",
    "tree_sitter_bash": "the grammar loads with the first command",
    "importlib": "only to find litellm's data files without importing litellm",
}

LAZY_MODULES: dict[str, str] = {
    "agent.model.http_client": "brings httpx; a run with a scripted or recorded model does without it",
    "agent.model.litellm_client": "only for providers without a direct client",
    "agent.model.script": "only for script:FILE",
    "agent.model.recording": "only for --record",
    "agent.model.replaying": "only for --replay",
    "tooling.safety.shell_code": "its tables load with the first program text",
    "tooling.safety.shell_judge": "the reader of commands and its rules load with the first command",
    "agent.backends.landlock": "brings ctypes; loads with the first command, in the thread that needs it",
    "agent.version": "`agent --version` imports nothing else",
    "cli.application": "`agent --version` does without it",
    "cli.leave": "`agent --version` does without it",
    "agent.backends.sandbox": "the box is opened while the model thinks, after the first request went out",
    "agent.backends.self_test": "comes with the box",
    "agent.backends.egress": "only for allowed hosts",
    "agent.backends.egress_rules": "only for allowed hosts",
    "tooling.web.extraction": "brings lxml and trafilatura; loads with the first page, in a worker",
}
