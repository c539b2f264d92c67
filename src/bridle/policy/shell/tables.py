"""What is known of programs that run other programs, and of what a shell does itself. Tables."""

from __future__ import annotations

from msgspec import Struct


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


class Wrapper(Struct, frozen=True):
    """How a wrapper's own options are read: those alone, those with a value, words before."""

    flags: frozenset[str] = frozenset()
    valued: frozenset[str] = frozenset()
    leading: int = 0
    assigns: bool = False
    is_clear: bool = True
    appends: bool = False


def _wrapper(flags: str = "", valued: str = "", leading: int = 0, **more: bool) -> Wrapper:
    return Wrapper(words(flags), words(valued), leading, **more)


WRAPPERS = {
    "builtin": _wrapper(),
    "busybox": _wrapper(is_clear=False),
    "caffeinate": _wrapper("-d -i -m -s -u", "-t -w"),
    "chronic": _wrapper(),
    "command": _wrapper("-p"),
    "doas": _wrapper("-n", "-u", is_clear=False),
    "env": _wrapper("-i --ignore-environment -", "-u --unset", assigns=True),
    "exec": _wrapper("-c -l", "-a"),
    "ionice": _wrapper("-t", "-c -n --class --classdata"),
    "nice": _wrapper("", "-n --adjustment"),
    "nocorrect": _wrapper(),
    "noglob": _wrapper(),
    "nohup": _wrapper(),
    "setsid": _wrapper("-c -f -w --ctty --fork --wait"),
    "stdbuf": _wrapper("", "-i -o -e --input --output --error"),
    "sudo": _wrapper("-n -E -H -b -k -S", "-u -g --user --group", assigns=True, is_clear=False),
    "time": _wrapper("-p -v --verbose --portability"),
    "timeout": _wrapper(
        "-v --verbose --foreground --preserve-status", "-k -s --kill-after --signal", 1
    ),
    "unbuffer": _wrapper(),
    "xargs": _wrapper(
        "-0 -r -t -x --null --no-run-if-empty --verbose --exit",
        "-n -P -L -d -s -E -I -a --max-args --max-procs --delimiter --max-chars --arg-file",
        appends=True,
    ),
}

#: What runs other commands in ways that are not judged, or changes what commands mean.
OPAQUE = words(
    """- alias at autoload batch bind bye chroot compgen complete compopt coproc crontab
    declare disable disown emulate enable entr eval fc float flock foreach functions getopts
    hash history integer jobs let logout ltrace mapfile nsenter parallel print private r
    readarray readonly repeat runuser sched screen script select setopt shopt strace su
    systemd-run tmux trap typeset ulimit unalias unfunction unhash unset unsetopt unshare
    vared watch zargs zcompile zformat zle zmodload zparseopts zregexparse
    zsh-newuser-install zstyle"""
)
#: What runs the command that its words end with, behind options and words of its own: at once, or
#: behind a word that says so. They need a rule for themselves; deny rules see what they run.
RUNNERS = words("bunx chrt dotenv npx numactl pnpx ssh taskset uvx")
RUNNERS_BY_WORD = words(
    """aws-vault bundle conda direnv dotenvx doppler hatch infisical mamba micromamba mise npm op
    pdm pipenv pipx pixi pnpm podman-compose poetry rtx rye uv yarn"""
)
RUN_WORDS = words("-- dlx exec run x")
SHELLS = frozenset(("sh", "bash", "zsh", "dash", "ksh", "ash", "mksh", "rbash"))
SHELL_FLAGS = frozenset(("--login", "--noprofile", "--norc"))

EXECUTES = frozenset(("-exec", "-execdir", "-ok", "-okdir"))
#: Those whose names of files are of another folder.
UNREAD = frozenset(("-execdir", "-okdir"))
#: What find does for itself: words of GNU's and of bfs that only look, alone or before a value.
FIND_DELETES = frozenset(("-delete", "-rm"))
FIND_PLAIN = words(
    """-H -L -P -a -and -o -or -not -daystart -depth -d -follow -ignore_readdir_race
    -noignore_readdir_race -mount -xdev -noleaf -warn -nowarn -empty -executable -readable
    -writable -false -true -nogroup -nouser -ls -print -print0 -prune -quit -help -version"""
)
FIND_VALUED = words(
    """-maxdepth -mindepth -regextype -fstype -gid -group -ilname -iname -inum -ipath -iregex
    -iwholename -links -lname -name -newer -path -perm -printf -regex -samefile -size -type
    -uid -used -user -wholename -xtype"""
)
#: Options of git before its command: those that change nothing, and those that can change which
#: programs it runs or in which repository.
GIT_QUIET = frozenset(
    ("--no-pager", "--no-optional-locks", "--literal-pathspecs", "--no-replace-objects")
)
GIT_VALUED = frozenset(("-c", "-C", "--git-dir", "--work-tree", "--namespace", "--config-env"))

#: Variables that no program takes for the name of another, for a path or for its options.
SAFE_VARIABLES = words(
    """CGO_ENABLED CI CLICOLOR COLOR DEBUG FORCE_COLOR GOARCH GOOS LANG LANGUAGE LC_ALL
    LC_CTYPE LC_MESSAGES NODE_ENV NO_COLOR PORT HOST PYTHONDONTWRITEBYTECODE PYTHONHASHSEED
    PYTHONUNBUFFERED RAILS_ENV RUST_BACKTRACE RUST_LOG TERM TZ VERBOSE"""
)


#: What only the shell itself feels: needs no rule beside a command that has one.
SILENT = words(
    ": true false exit return break continue shift wait test [ read export local set pwd"
)
#: Options of `set` that change no command's meaning.
SET_OPTIONS = words("-e -u -x -eu -ex -ux -eux -euo -eo -uo -o pipefail +e +x")
#: Names in lower case that are a shell's own: to set them changes what it does.
SHELLS_OWN = words(
    """aliases argv builtins cdpath commands dirstack fignore fpath functions histchars http_proxy
    https_proxy all_proxy ftp_proxy no_proxy keymaps mailpath manpath module_path modules options
    parameters path pipestatus prompt psvar signals status watch widgets zsh_eval_context"""
)
#: With these a word names other files than it seems to.
MISLEADING = words("BASHOPTS CDPATH FIGNORE GLOBIGNORE SHELLOPTS")
#: Numbers of zsh's own: what they are set to is evaluated.
EVALUATED = words(
    """ARGC COLUMNS DIRSTACKSIZE EGID ERRNO EUID FUNCNEST GID HISTCMD HISTSIZE KEYTIMEOUT LINENO
    LINES LISTMAX LOGCHECK MAILCHECK OPTIND PERIOD PPID RANDOM REPORTMEMORY REPORTTIME SAVEHIST
    SECONDS SHLVL TMOUT TRY_BLOCK_ERROR TRY_BLOCK_INTERRUPT TTYIDLE UID ZLE_RPROMPT_INDENT"""
)
