"""The environment that commands get."""

from agent.backends.process.environment import clean_environment


def test_toolchain_variables_are_passed_on_and_secrets_are_not() -> None:
    clean = clean_environment(
        {
            "PATH": "/bin",
            "HOME": "/home/me",
            "LC_ALL": "C",
            "VIRTUAL_ENV": "/v",
            "CARGO_HOME": "/c",
            "TERM": "xterm-256color",
            "OPENAI_API_KEY": "k",
            "CARGO_REGISTRY_TOKEN": "t",
            "PIP_INDEX_URL": "https://me:pw@example.org/simple",
            "UV_PUBLISH_PASSWORD": "p",
            "AGENT_MODEL": "m",
            "GOOGLE_APPLICATION_CREDENTIALS": "/k.json",
            "SSH_AUTH_SOCK": "/s",
            "RANDOM_THING": "1",
            "BASH_ENV": "/evil",
        }
    )
    assert clean == {
        "PATH": "/bin",
        "HOME": "/home/me",
        "LC_ALL": "C",
        "VIRTUAL_ENV": "/v",
        "CARGO_HOME": "/c",
        "TERM": "dumb",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
        "NO_COLOR": "1",
    }


def test_path_is_always_set() -> None:
    assert clean_environment({})["PATH"] == "/usr/local/bin:/usr/bin:/bin"
