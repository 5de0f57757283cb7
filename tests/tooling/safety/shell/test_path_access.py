"""Paths in commands, in every form that leads outside the workspace."""

from pathlib import Path

import pytest

from tests.tooling.safety.judge_harness import WORKSPACE, decision, judge_command
from tooling.contract.action import Decision
from tooling.safety.check import check_command_path_escape, check_workspace_isolation

OUTSIDE = r"""
cat /etc/passwd
cat ../secret
cat ../../etc/passwd
cat src/../../secret
cat ./a/../../secret
cat ~/.ssh/id_rsa
cat ~root/x
cat $HOME/x
cat ${HOME}/x
cat "$HOME"/x
cat '/etc/passwd'
cat "/etc"/passwd
cat /etc//passwd
cat /etc/./passwd
cat /usr/../etc/passwd
cat </etc/passwd
cat</etc/passwd
cat 0</etc/passwd
echo x>/etc/x
echo x >>../x
make 2>~/log
grep x --file=/etc/passwd
grep -f/etc/passwd x
tar -C/root -xf a.tar
dd if=/etc/shadow of=a
cp a /usr/bin/a
cp -t /usr/bin a
ln -s /etc x
cd .. && cat x
cd / ; cat etc/passwd
cd a/../..; cat x
cd && cat x
pushd /etc; cat passwd
(cd /etc; cat passwd)
cat /etc/{passwd,group}
cat /e[t]c/passwd
cat /e*/passwd
x=/etc; cat $x/passwd
x=..; cat $x/x
cat $(echo /etc/passwd)
cat $'\x2fetc/passwd'
cat file:///etc/passwd
for f in /etc/passwd; do cat "$f"; done
while read l; do echo; done < /etc/passwd
echo "$(< /etc/passwd)"
find / -name x
bash /etc/profile
python3 -c 'print(open("/etc/passwd").read())'
awk '{print}' /etc/passwd
sed -n 1p /etc/passwd
unzip a.zip -d /opt
vim /usr/lib/x
""".strip().splitlines()

INSIDE = r"""
cat a.txt ./b.txt src/../c.txt
cat /srv/project/a
cat "$PWD"/a
cd src && cat ../a
cd src/deep && cd ../.. && cat a
cat /usr/include/stdio.h
ls /usr/bin /bin
gcc -I/usr/include -L/usr/lib a.c
echo x > /dev/null 2>/dev/stderr
echo x > /tmp/x && cat /tmp/x
cat /proc/cpuinfo /etc/os-release
grep /etc/passwd src
sed s/a/b/ x
awk '/etc/' x
git log main..HEAD origin/main
git commit -m /etc/passwd
echo /etc/passwd ../x ~
test -f /etc/passwd
[ -d ~/.nvm ] && echo
cut -d/ -f1 x
tr / _ < x
. ~/.nvm/nvm.sh
~/.cargo/bin/cargo build
curl http://localhost/etc/passwd
find . -path './a/*' -name '/x'
""".strip().splitlines()


@pytest.mark.parametrize("command", OUTSIDE)
def test_a_path_outside_the_workspace_needs_approval(command: str) -> None:
    assert decision(command) is Decision.ASK
    blocked, message = check_command_path_escape(command, str(WORKSPACE))
    assert blocked
    assert message


@pytest.mark.parametrize("command", INSIDE)
def test_a_path_inside_or_public_is_allowed(command: str) -> None:
    assert judge_command(command).reasons == ()
    assert check_command_path_escape(command, str(WORKSPACE)) == (False, None)


def test_the_refusal_names_the_system_folder() -> None:
    blocked, message = check_workspace_isolation("cat /etc/passwd", "/srv/project")
    assert blocked
    assert "/etc/passwd" in (message or "")
    assert check_workspace_isolation("cat /etc/passwd", "") == (False, None)


@pytest.mark.parametrize("workspace", ["/root/project", "/var/lib/project", "/proc-like", "/run/user/1/x"])
def test_a_workspace_below_a_system_folder_works(workspace: str) -> None:
    assert check_workspace_isolation(f"cat {workspace}/a > {workspace}/b", workspace) == (False, None)
    assert judge_command(f"cat {workspace}/a", cwd=Path(workspace)).decision is Decision.ALLOW


@pytest.mark.parametrize("command", ['cat "/etc/passwd', "cat '/etc/passwd", "cat $(cat /etc/passwd"])
def test_an_unparsable_text_counts_as_leaving_the_workspace(command: str) -> None:
    assert decision(command) is Decision.ASK
    assert check_command_path_escape(command, str(WORKSPACE))[0]


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to("/etc")
    (tmp_path / "in").symlink_to(tmp_path / "src")
    (tmp_path / "src").mkdir()
    (tmp_path / "key").symlink_to("/etc/shadow")
    for command in ("cat out/passwd", "cat key", "cd out && cat passwd", "echo x > out/y", "cat src/../out/x"):
        assert judge_command(command, cwd=tmp_path).decision is Decision.ASK
    assert judge_command("cat in/x", cwd=tmp_path).decision is Decision.ALLOW


def test_a_workspace_below_tmp_is_protected_like_any_other(tmp_path: Path) -> None:
    for command in ("rm -rf src", "cat ../x", "rm -rf ."):
        assert judge_command(command, cwd=tmp_path).decision is not Decision.ALLOW


def test_a_folder_with_the_same_prefix_is_outside() -> None:
    assert decision("cat /srv/project-evil/x") is Decision.ASK
