"""Settings of git that run nothing and lead nowhere, by section and key. Pure.

Everything else counts as what runs a program or changes where git looks: its keys are many, and new
ones come with each version. Owns which settings are harmless; who asks about the others is not
known here.
"""

from __future__ import annotations

import re

#: Not one by which git would start a program to speak to it (`ext::sh -c …`).
_URL = re.compile(r"(?:(?:https?|ssh|git|file)://(?!-)|(?!-)(?!.*(?:::|://)))[^\\\"]*", re.DOTALL)


def _keys(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: By section, and None for all of its keys.
_HARMLESS = {
    "advice": None,
    "apply": _keys("ignorewhitespace whitespace"),
    "author": _keys("name email"),
    "blame": _keys("coloring date ignorerevsfile markignoredlines markunblamablelines"),
    "branch": _keys(
        """remote merge rebase description pushremote autosetupmerge autosetuprebase base sort
        vscode-merge-base gh-merge-base github-pr-owner-number"""
    ),
    "checkout": _keys("defaultremote guess workers"),
    "color": None,
    "column": None,
    "commit": _keys("gpgsign verbose cleanup status template"),
    "committer": _keys("name email"),
    "core": _keys(
        """repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode
        symlinks autocrlf eol safecrlf abbrev quotepath untrackedcache preloadindex trustctime
        checkstat compression longpaths fscache hidedotfiles protecthfs protectntfs sparsecheckout
        sparsecheckoutcone commitgraph multipackindex bigfilethreshold whitespace
        packedrefstimeout fsyncobjectfiles maxtreedepth commentchar excludesfile"""
    ),
    "diff": _keys(
        """algorithm renames renamelimit colormoved colormovedws context interhunkcontext
        mnemonicprefix noprefix ignoresubmodules statgraphwidth wserrorhighlight"""
    ),
    "extensions": _keys(
        """worktreeconfig objectformat partialclone refstorage preciousobjects compatobjectformat
        relativeworktrees noop"""
    ),
    "feature": None,
    "fetch": _keys("prune prunetags parallel fsckobjects writecommitgraph"),
    "format": _keys("signoff"),
    "gc": _keys("auto autodetach autopacklimit pruneexpire reflogexpire reflogexpireunreachable"),
    "grep": _keys("column extendedregexp linenumber patterntype"),
    "http": _keys("postbuffer version"),
    "i18n": _keys("commitencoding logoutputencoding"),
    "index": _keys("version threads sparse skiphash recordendofindexentries recordoffsettable"),
    "init": _keys("defaultbranch"),
    "lfs": _keys("repositoryformatversion access locksverify"),
    "log": _keys("date decorate follow abbrevcommit"),
    "maintenance": _keys("auto strategy"),
    "merge": _keys("ff conflictstyle renames renamelimit log"),
    "pack": _keys("windowmemory window depth threads writereverseindex"),
    "protocol": _keys("version"),
    "pull": _keys("rebase ff"),
    "push": _keys("default autosetupremote followtags recursesubmodules"),
    "rebase": _keys("autosquash autostash updaterefs"),
    "receive": _keys("denycurrentbranch denynonfastforwards advertisepushoptions"),
    "remote": _keys(
        """url pushurl fetch push tagopt mirror prune prunetags skipdefaultupdate skipfetchall
        promisor partialclonefilter gh-resolved followremotehead pushdefault"""
    ),
    "rerere": _keys("enabled autoupdate"),
    "stash": _keys("showstat showpatch showincludeuntracked"),
    "status": _keys(
        "aheadbehind branch displaycommentprefix relativepaths renames short showstash "
        "showuntrackedfiles"
    ),
    "submodule": _keys("active url recurse fetchjobs"),
    "tag": _keys("gpgsign sort"),
    "user": _keys("name email signingkey useconfigonly"),
    "versionsort": _keys("suffix"),
    "worktree": _keys("guessremote"),
}
#: Addresses, of which some have git start a program.
_ADDRESSES = frozenset(
    (
        *(("remote", "url"), ("remote", "pushurl"), ("submodule", "url")),
        *(("branch", "remote"), ("branch", "pushremote"), ("remote", "pushdefault")),
    )
)
#: Settings that name a program, with values that name none, or one that does nothing.
_VALUES = {
    ("core", "fsmonitor"): _keys("true false"),  # git's own
    ("core", "editor"): _keys("true :"),
    ("core", "pager"): _keys("cat"),
    ("sequence", "editor"): _keys("true :"),
}
_SWITCHES = _keys("true false yes no on off")


def is_harmless(section: str, key: str, value: str | None) -> bool:
    """Whether git, told this, runs nothing more than before. None is a value that is not known."""
    section, key = section.lower(), key.lower()
    if values := _VALUES.get((section, key)):
        return value in values
    if section == "pager":
        return value in _SWITCHES
    if section not in _HARMLESS:
        return False
    keys = _HARMLESS[section]
    if keys is not None and key not in keys:
        return False
    if (section, key) not in _ADDRESSES:
        return True
    return value is not None and _URL.fullmatch(value) is not None


def is_harmless_name(name: str, value: str | None) -> bool:
    """The same for a name as it is given to `git config`: `branch.main.remote`."""
    section, dot, rest = name.partition(".")
    return bool(dot) and is_harmless(section, rest.rpartition(".")[2], value)


def is_harmless_section(name: str) -> bool:
    """Whether any settings at all may come to stand in this section."""
    section = name.partition(".")[0].lower()
    return section in _HARMLESS and _HARMLESS[section] is None
