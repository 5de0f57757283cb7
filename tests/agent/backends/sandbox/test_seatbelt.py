"""The sandbox profile for macOS."""

from dataclasses import replace
from pathlib import Path

from agent.backends.sandbox.seatbelt import seatbelt_profile
from tests.agent.backends.sandbox.test_bwrap_argv import PLAIN


def test_the_complete_profile() -> None:
    system = (
        '(subpath "/usr") (subpath "/bin") (subpath "/sbin") (subpath "/System") (subpath "/Library/Developer") '
        '(subpath "/opt/homebrew") (subpath "/private/etc/ssl") (subpath "/private/var/db/timezone")'
    )
    devices = (
        '(literal "/dev/null") (literal "/dev/zero") (literal "/dev/random") (literal "/dev/urandom") '
        '(literal "/dev/dtracehelper")'
    )
    files = (
        '(literal "/private/etc/localtime") (literal "/private/etc/passwd") (literal "/private/etc/hosts") '
        '(literal "/private/etc/protocols")'
    )
    assert seatbelt_profile(PLAIN).splitlines() == [
        "(version 1)",
        "(deny default)",
        "(allow process-fork)",
        "(allow process-exec)",
        "(allow signal (target same-sandbox))",
        "(allow process-info* (target same-sandbox))",
        "(allow sysctl-read)",
        '(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))',
        "(allow file-read-metadata)",
        f'(allow file-read* (literal "/") {files} {devices})',
        f'(allow file-read* {system} (subpath "/usr") (subpath "/etc/ssl/certs") (subpath "/home/me/.pyenv"))',
        f"(allow file-write-data {devices})",
        '(allow file-read* file-write* (subpath "/home/me/project"))',
        '(deny file-write-unlink (literal "/home/me/project/.git"))',
        '(deny file-write* (subpath "/home/me/project/.git/hooks") (subpath "/home/me/project/.git/config"))',
    ]


def test_the_network_is_open_for_the_proxy_only() -> None:
    assert "network" not in seatbelt_profile(PLAIN)
    lines = seatbelt_profile(replace(PLAIN, proxy_socket=Path("/p.sock"))).splitlines()
    assert lines[-3] == '(allow network-outbound (literal "/p.sock"))'


def test_hidden_folders_are_denied_after_their_parent_is_allowed() -> None:
    hidden = replace(PLAIN, hidden_folders=(Path("/home/me/project/.ssh"),))
    assert seatbelt_profile(hidden).endswith('(deny file-read* file-write* (subpath "/home/me/project/.ssh"))\n')


def test_a_path_cannot_break_out_of_its_quotes() -> None:
    text = seatbelt_profile(replace(PLAIN, writable=(Path('/a") (allow default) ("\\b'),)))
    assert '(subpath "/a\\") (allow default) (\\"\\\\b")' in text
