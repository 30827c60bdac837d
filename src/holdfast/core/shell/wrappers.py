"""Programs that start another program: what is left when they are taken off."""

import re

import msgspec

from holdfast.core.shell.syntax import UNKNOWN

ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*(?:%%|\(\))?=")


class Unwrapped(msgspec.Struct, kw_only=True):
    """The command inside of a wrapper."""

    words: list[str]
    name: str
    environment: dict[str, str] = {}
    directory: str = ""
    repeated: bool = False
    code_hidden: bool = False
    uncertain: bool = False
    """Whether it was started at all, and how it ended, does not show in the status."""


class _Spec(msgspec.Struct, frozen=True):
    takes_value: frozenset[str] = frozenset()
    operands: int = 0
    """Words of its own before the command."""
    runs_nothing: frozenset[str] = frozenset()
    directory_flags: frozenset[str] = frozenset()
    any_operands: bool = False
    """Words of its own up to `--`, where one is given: `mise x python@3.12 -- pytest`."""
    text_flags: frozenset[str] = frozenset()
    """Flags whose value is the command as one shell text."""
    waits_with: frozenset[str] = frozenset()
    """Flags of which one is needed for it to wait for the command and to end as it does."""


def _wrapper_spec(
    takes: str = "", operands: int = 0, nothing: str = "", directory: str = "", texts: str = "", waits: str = "",
    *, any_operands: bool = False,
) -> _Spec:  # fmt: skip
    return _Spec(
        frozenset(f"{takes} {directory}".split()),
        operands,
        frozenset(f"{nothing} --help --version".split()),
        frozenset(directory.split()),
        any_operands,
        frozenset(texts.split()),
        frozenset(waits.split()),
    )


# Options whose value is the next word: where they end, the wrapped command begins.
_UV = "--extra --group --with --python -p --package --env-file --index-url --with-requirements --with-editable --no-group --only-group -c --constraint"
_COMPOSE = "-e --env -u --user -w --workdir -v --volume -p --publish --name --entrypoint -l --label"
_DOCKER = f"{_COMPOSE} --network --mount -m --memory --cpus --platform --env-file -h --hostname --add-host --pull --gpus --shm-size --tmpfs --user"

_COVERAGE = "-r --reporter -o --reports-dir --report-dir -t --temp-dir --temp-directory -n --include -x --exclude -e --extension"

# A name of several words is a program and its verb; other verbs of the program wrap nothing.
SIMPLE: dict[str, _Spec] = {
    "timeout": _wrapper_spec("-s -k --signal --kill-after", 1),
    "gtimeout": _wrapper_spec("-s -k --signal --kill-after", 1),
    "nice": _wrapper_spec("-n --adjustment"),
    "ionice": _wrapper_spec("-c -n --class --classdata", nothing="-p"),
    "time": _wrapper_spec("-f -o --format --output"),
    "nohup": _wrapper_spec(),
    "stdbuf": _wrapper_spec("-i -o -e --input --output --error"),
    "setsid": _wrapper_spec(),
    "unbuffer": _wrapper_spec(),
    "chrt": _wrapper_spec("", 1),
    "taskset": _wrapper_spec("", 1),
    "sudo": _wrapper_spec("-u -g -h -p -C -D -R -T", nothing="-l -v -k -V"),
    "doas": _wrapper_spec("-u -C"),
    "xvfb-run": _wrapper_spec("-s --server-args -n --server-num -e -f -w -p"),
    "dbus-run-session": _wrapper_spec(),
    "caffeinate": _wrapper_spec("-t -w"),
    "flock": _wrapper_spec("-w -E --timeout", 1, texts="-c --command"),
    "faketime": _wrapper_spec("-f", 1, nothing="-p"),
    "firejail": _wrapper_spec(nothing="--list --tree --top --shutdown --join"),
    "prlimit": _wrapper_spec("-p --pid", nothing="-p --pid"),
    "numactl": _wrapper_spec("-N -m -C -i -p --cpunodebind --membind --physcpubind --interleave", nothing="-s -H --show --hardware"),
    "setarch": _wrapper_spec(nothing="--list"),
    "proxychains4": _wrapper_spec("-f"),
    "proxychains": _wrapper_spec("-f"),
    "torsocks": _wrapper_spec(),
    "eatmydata": _wrapper_spec(),
    "fakeroot": _wrapper_spec("-l -s -i -f -b"),
    "winpty": _wrapper_spec(),
    "tini": _wrapper_spec("-p -e"),
    "dumb-init": _wrapper_spec("-r --rewrite"),
    "gosu": _wrapper_spec("", 1),
    "su-exec": _wrapper_spec("", 1),
    "setpriv": _wrapper_spec("--reuid --regid --groups", nothing="-d --dump"),
    "runuser": _wrapper_spec("-u --user -g --group"),
    "valgrind": _wrapper_spec(),
    "rlwrap": _wrapper_spec("-H -f -p"),
    "unshare": _wrapper_spec("-S -G -R -w --setuid --setgid --root --wd --propagation --map-users --map-groups"),
    "nsenter": _wrapper_spec("-t --target -S -G", nothing="-V"),
    "ltrace": _wrapper_spec("-o -e -p -s -n -u", nothing="-p"),
    "perf stat": _wrapper_spec("-e --event -o --output -r --repeat -p -x", nothing="-p --pid"),
    "perf record": _wrapper_spec("-e --event -o --output -F -p", nothing="-p --pid"),
    "cgexec": _wrapper_spec("-g"),
    "retry": _wrapper_spec("-t --times -d --delay -s --sleep -m --max -n"),
    "kcov": _wrapper_spec(operands=1),
    "su": _wrapper_spec("-s --shell -g --group -G --supp-group -w", 2, texts="-c --command"),
    "kubectl exec": _wrapper_spec("-n --namespace -c --container --context -f --filename", 1),
    "oc exec": _wrapper_spec("-n --namespace -c --container --context", 1),
    "lando ssh": _wrapper_spec("-s --service -u --user", texts="-c --command"),
    "distrobox enter": _wrapper_spec("-n --name", any_operands=True),
    "distrobox-enter": _wrapper_spec("-n --name", any_operands=True),
    "guix shell": _wrapper_spec(any_operands=True),
    "wsl": _wrapper_spec("-d --distribution -u --user --cd", nothing="-l --list --shutdown"),
    "py-spy record": _wrapper_spec("-o --output -r --rate -d --duration -f --format -p --pid", nothing="-p --pid"),
    "corepack": _wrapper_spec(nothing="enable disable prepare pack install use up cache hydrate"),
    "lerna exec": _wrapper_spec("--scope --ignore --concurrency", any_operands=True),
    "cProfile": _wrapper_spec("-o -s"),
    "profile": _wrapper_spec("-o -s"),
    "trace": _wrapper_spec("-C -f --coverdir --file --ignore-module --ignore-dir"),
    "slipcover": _wrapper_spec("--source --omit --out --fail-under"),
    "memray run": _wrapper_spec("-o --output"),
    "pyinstrument": _wrapper_spec("-o --outfile -r --renderer -t --timeline"),
    "scalene": _wrapper_spec("--outfile --profile-interval"),
    "systemd-run": _wrapper_spec("-p --property -u --unit --slice -E --setenv --uid --gid --nice --working-directory --description",
                         waits="--scope --wait"),
    "nix-shell": _wrapper_spec("-p -I -A --attr --arg --argstr", texts="--run --command"),
    "nix shell": _wrapper_spec("-f --file -I --override-input", waits="-c --command"),
    "nix run": _wrapper_spec("-f --file", any_operands=True),
    "devbox run": _wrapper_spec("-c --config -e --env --env-file"),
    "devenv shell": _wrapper_spec(),
    "pixi run": _wrapper_spec("-e --environment -p --platform --manifest-path"),
    "pixi exec": _wrapper_spec("-s --spec -c --channel"),
    "rbenv exec": _wrapper_spec(),
    "pyenv exec": _wrapper_spec(),
    "nodenv exec": _wrapper_spec(),
    "goenv exec": _wrapper_spec(),
    "jenv exec": _wrapper_spec(),
    "volta run": _wrapper_spec("--node --npm --pnpm --yarn"),
    "fnm exec": _wrapper_spec("--using"),
    "nvm exec": _wrapper_spec("", 1),
    "rtx exec": _wrapper_spec(any_operands=True),
    "rtx x": _wrapper_spec(any_operands=True),
    "chamber exec": _wrapper_spec(any_operands=True),
    "teller run": _wrapper_spec("-c --config"),
    "envchain": _wrapper_spec("", 1),
    "devcontainer exec": _wrapper_spec("--workspace-folder --container-id --config --remote-env --docker-path"),
    "apptainer exec": _wrapper_spec("-B --bind --env --env-file -H --home -W --pwd", 1),
    "singularity exec": _wrapper_spec("-B --bind --env --env-file -H --home -W --pwd", 1),
    "toolbox run": _wrapper_spec("-c --container -d --distro -r --release"),
    "ddev exec": _wrapper_spec("-s --service -d --dir"),
    "dotenv-cli": _wrapper_spec("-e -c -v"),
    "gdb": _wrapper_spec(nothing="-p --pid -x --batch", waits="--args"),
    "command": _wrapper_spec(nothing="-v -V"),
    "builtin": _wrapper_spec(),
    "exec": _wrapper_spec("-a"),
    "uvx": _wrapper_spec(f"{_UV} --from"),
    "pipx run": _wrapper_spec("--spec --python"),
    "uv run": _wrapper_spec(f"{_UV}", directory="--directory --project"),
    "uv tool run": _wrapper_spec(f"{_UV} --from"),
    "poetry run": _wrapper_spec(directory="-C --directory"),
    "pdm run": _wrapper_spec(directory="-p --project", nothing="-l --list"),
    "pipenv run": _wrapper_spec(),
    "rye run": _wrapper_spec(nothing="-l --list"),
    "hatch run": _wrapper_spec(),
    "conda run": _wrapper_spec("-n --name -p --prefix --cwd"),
    "mamba run": _wrapper_spec("-n --name -p --prefix"),
    "micromamba run": _wrapper_spec("-n --name -p --prefix"),
    "mise exec": _wrapper_spec("-c --command", any_operands=True),
    "mise x": _wrapper_spec("-c --command", any_operands=True),
    "asdf exec": _wrapper_spec(),
    "direnv exec": _wrapper_spec("", 1),
    "bunx": _wrapper_spec(),
    "bun x": _wrapper_spec(),
    "pnpm exec": _wrapper_spec(directory="-C --dir"),
    "pnpm dlx": _wrapper_spec(),
    "yarn exec": _wrapper_spec(),
    "yarn dlx": _wrapper_spec("-p --package"),
    "bundle exec": _wrapper_spec(),
    "coverage run": _wrapper_spec("--source --omit --include --rcfile --data-file --context --concurrency"),
    "doppler run": _wrapper_spec("-p --project -c --config"),
    "op run": _wrapper_spec("--env-file"),
    "infisical run": _wrapper_spec("--env --path"),
    "dotenv run": _wrapper_spec("-f --file"),
    "dotenv": _wrapper_spec("-f --file -e -c"),
    "dotenvx run": _wrapper_spec("-f --env-file -e --env"),
    "env-cmd": _wrapper_spec("-f --file -e --environments -r --rc-file"),
    "cross-env": _wrapper_spec(),
    "c8": _wrapper_spec(_COVERAGE),
    "nyc": _wrapper_spec(_COVERAGE),
    "chronic": _wrapper_spec(),
    "catchsegv": _wrapper_spec(),
    "strace": _wrapper_spec("-o -e -p -s -u"),
    "aws-vault exec": _wrapper_spec("-d --duration", 1),
    "nix develop": _wrapper_spec("--file -f", waits="-c --command"),
    "docker run": _wrapper_spec(_DOCKER, 1, nothing="-d --detach"),
    "podman run": _wrapper_spec(_DOCKER, 1, nothing="-d --detach"),
    "nerdctl run": _wrapper_spec(_DOCKER, 1, nothing="-d --detach"),
    "docker exec": _wrapper_spec(_COMPOSE, 1),
    "podman exec": _wrapper_spec(_COMPOSE, 1),
    **{f"{program} {verb}": _wrapper_spec(_COMPOSE, 1, nothing="-d --detach")
       for program in ("docker compose", "docker-compose", "podman compose", "podman-compose") for verb in ("run", "exec")},
    "npx": _wrapper_spec("-p --package -w --workspace", directory="--prefix", texts="-c --call"),
    "npm exec": _wrapper_spec("-p --package -w --workspace", directory="--prefix", texts="-c --call"),
    "env": _wrapper_spec("-u --unset -S --split-string", directory="-C --chdir"),
    "xargs": _wrapper_spec("-n -P -I -d -L -s -a -E --max-args --max-procs --replace --delimiter --max-lines --arg-file"),
}  # fmt: skip
_PROFILERS = frozenset(("cProfile", "profile", "trace", "slipcover", "memray run", "pyinstrument", "scalene"))
"""They run a module of Python inside of themselves; some end with 0 whatever the module did."""
_MODULES = frozenset(
    ("coverage", "poetry", "pipenv", "pdm", "hatch", "uv", "pipx", *(name.split()[0] for name in _PROFILERS))
)
"""Wrappers that are also called as `python -m NAME`."""
_FETCHERS = frozenset(
    ("npx", "npm exec", "pnpm dlx", "yarn dlx", "bunx", "bun x", "uvx", "uv tool run", "pipx run", "pnpm exec")
)
"""They take a package with its version: `npx jest@29`, `uvx pytest==8.3`."""
# Behind the name, so that the scope of `@vitest/cli` stays.
_VERSION = re.compile(r"(?<=\w)(?:@|==)[\w.^~*-]+$")
_BEGINS_AT_FLAG = frozenset(("nix develop", "nix shell", "gdb"))
# In words: `docker compose run`.
_LONGEST = 3
_PREFIXES = frozenset(name.split()[0] for name in SIMPLE)
# Options with a value between the program and its verb: `docker compose -f FILE run`.
_GLOBAL_VALUES = {
    "docker": frozenset(
        ("-f", "--file", "-p", "--project-name", "-c", "--context", "--project-directory", "--profile")
    ),
    "uv": frozenset(("--directory", "--project", "--cache-dir", "--config-file", "--color")),
    "poetry": frozenset(("-C", "--directory", "-P", "--project")),
    "hatch": frozenset(("-e", "--env", "-p", "--project", "--config")),
    "bundle": frozenset(),
    "pnpm": frozenset(("-C", "--dir", "-F", "--filter")),
    "kubectl": frozenset(("-n", "--namespace", "--context", "--kubeconfig")),
}
_GLOBAL_VALUES["oc"] = _GLOBAL_VALUES["kubectl"]
_GLOBAL_VALUES["docker-compose"] = _GLOBAL_VALUES["docker"]
_DIRECTORY_GLOBALS = frozenset(("--directory", "-C", "--dir"))


def unwrap_command(words: list[str]) -> Unwrapped | None:
    """The command that a wrapper starts; None when the first word is no wrapper or starts nothing."""
    name = words[0].rpartition("/")[2]
    if name in _LAUNCHERS:
        return _LAUNCHERS[name](words)
    # `python -m coverage run ...` is `coverage run ...`.
    if words[1:2] == ["-m"] and len(words) > 3 and words[2] in _MODULES:
        words = [words[2], *words[3:]]
        name = words[0]
    if name not in _PREFIXES:
        return None
    matched, rest, directory = _match_prefix(name, words)
    if matched is None:
        return None
    unwrapped = _take_options(matched, SIMPLE[matched], rest)
    if unwrapped is not None and directory and not unwrapped.directory:
        unwrapped.directory = directory
    return unwrapped


def _match_prefix(name: str, words: list[str]) -> tuple[str | None, list[str], str]:
    """The longest known prefix, such as `docker compose run`, with options between its words skipped."""
    if name in SIMPLE:
        return name, words[1:], ""
    prefix, at, directory = [name], 1, ""
    takes = _GLOBAL_VALUES.get(name, frozenset())
    while at < len(words) and len(prefix) < _LONGEST:
        word = words[at]
        if word.startswith("-"):
            flag, _, value = word.partition("=")
            if flag in _DIRECTORY_GLOBALS:
                directory = value or (words[at + 1] if at + 1 < len(words) else "")
            at += 2 if word in takes else 1
            continue
        prefix.append(word)
        at += 1
        if " ".join(prefix) in SIMPLE:
            return " ".join(prefix), words[at:], directory
    return None, [], ""


def _take_options(name: str, spec: _Spec, rest: list[str]) -> Unwrapped | None:
    environment: dict[str, str] = {}
    directory, operands, at = "", spec.operands, 0
    module = uncertain = False
    # Without such a flag the status is not the command's (systemd-run), or no command is run (nix develop).
    if spec.waits_with and not any(word.partition("=")[0] in spec.waits_with for word in rest):
        return None
    if spec.any_operands and "--" in rest:
        rest = rest[rest.index("--") :]
    while at < len(rest):
        word = rest[at]
        flag, equals, value = word.partition("=")
        if word == "--":
            at += 1
            break
        if flag in spec.runs_nothing:
            return None
        # Here the flag marks where the command begins, whatever stands before it.
        if name in _BEGINS_AT_FLAG:
            at += 1
            if word in spec.waits_with:
                break
            continue
        if word in spec.text_flags:
            return Unwrapped(words=["sh", "-c", *rest[at + 1 : at + 2]], name=name)
        if name == "env" and flag in ("-S", "--split-string"):
            split = (value or " ".join(rest[at + 1 : at + 2])).split()
            # What `-S` splits may hold options and assignments again: all is read from the beginning.
            rest, at = split + rest[at + (1 if equals else 2) :], 0
            continue
        if word in ("-m", "--module") and (name in _PROFILERS or name in ("uv run", "coverage run", "pdm run")):
            module = True
            at += 1
            break
        if name == "env" and word == "-":
            at += 1
        elif word.startswith("-") and len(word) > 1:
            if flag in spec.directory_flags:
                directory = value if equals else (rest[at + 1] if at + 1 < len(rest) else "")
            at += 2 if flag in spec.takes_value and not equals else 1
        elif name == "env" and word == UNKNOWN:
            # `env $(cat .env) pytest`: assignments, if all is well. Only what the command prints shows that it ran.
            uncertain = True
            at += 1
        elif name in ("env", "sudo", "doas", "cross-env") and ASSIGNMENT.match(word):
            environment[flag] = value
            at += 1
        elif operands and not (name == "faketime" and "-f" in rest[:at]):
            operands -= 1
            at += 1
        else:
            break
    inner = rest[at:]
    # The dotenv of Python wants `run` before the command, that of npm does not; both lead here.
    if name == "dotenv" and inner[:1] == ["run"]:
        inner = inner[1:]
    if inner and inner[0] == "--" and operands == 0:
        inner = inner[1:]
    if not inner:
        return None
    if name in _FETCHERS:
        inner = [_VERSION.sub("", inner[0]), *inner[1:]]
    if module:
        inner = ["python", "-m", *inner]
    elif name == "coverage run" or name in _PROFILERS:
        inner = ["python", *inner]
    elif name == "hatch run":
        # `hatch run ENV:COMMAND`; the command sees its environment's name in this variable.
        named, _, command = inner[0].rpartition(":")
        inner, environment = [command, *inner[1:]], {**environment, **({"HATCH_ENV": named} if named else {})}
    many = name == "retry" or (
        name == "xargs" and any(re.match(r"-[nPIL]|--max|--replace", word) for word in rest[:at])
    )
    return Unwrapped(
        words=inner, name=name, environment=environment, directory=directory, repeated=many, code_hidden=name == "xargs",
        uncertain=uncertain or name in _PROFILERS,
    )  # fmt: skip


def _unwrap_find(words: list[str]) -> Unwrapped | None:
    for at, word in enumerate(words):
        if word in ("-exec", "-execdir", "-ok", "-okdir"):
            inner = words[at + 1 :]
            end = next((n for n, w in enumerate(inner) if w in (";", "+")), len(inner))
            if not inner[:end]:
                return None
            # find may match no file, and mostly ends with 0 whatever the command returned.
            return Unwrapped(words=inner[:end], name="find", repeated=True, code_hidden=True, uncertain=True)
    return None


_SCRIPT_VALUES = frozenset("-I -O -B -T -m -o --log-in --log-out --log-io --log-timing --logging-format".split())


def _unwrap_script(words: list[str]) -> Unwrapped | None:
    """`script -qec CMD FILE`: what it prints is shown, but only with `-e` it ends as the command does."""
    text, returns, skip = "", False, False
    for at, word in enumerate(words[1:], 1):
        flag, equals, value = word.partition("=")
        if skip or not word.startswith("-"):
            skip = False
        elif flag in ("--version", "--help", "-V", "-h"):
            return None
        elif word.startswith("--"):
            returns = returns or flag == "--return"
            text = text or (value if equals else "".join(words[at + 1 : at + 2]) if flag == "--command" else "")
            skip = not equals and flag in ("--command", *_SCRIPT_VALUES)
        else:
            returns = returns or "e" in word
            if "c" in word:
                text = word.partition("c")[2] or "".join(words[at + 1 : at + 2])
                skip = word.endswith("c")
    if not text:
        return None
    return Unwrapped(words=["sh", "-c", text], name="script", uncertain=not returns)


_PARALLEL_VALUES = frozenset(
    "-j --jobs -P --max-procs -N -n --max-args --halt --delay --retries --timeout --joblog --results --tmpdir --colsep -C "
    "-I --tagstring --workdir --wd --shellquote --env --load --memfree --nice -S --sshlogin".split()
)
_PARALLEL_SEPARATORS = frozenset((":::", ":::+"))
MAX_JOBS = 12


def _unwrap_parallel(words: list[str]) -> Unwrapped | None:
    """`parallel CMD ::: a b`: its status is 0 when every job's was. Where the jobs come from a file they are not known."""
    at = 1
    while at < len(words) and words[at].startswith("-"):
        flag = words[at].partition("=")[0]
        if flag in ("--dry-run", "--dryrun", "--version", "--help", "-V", "-h", "--show-limits"):
            return None
        at += 2 if flag in _PARALLEL_VALUES and "=" not in words[at] else 1
    split = next((n for n in range(at, len(words)) if words[n] in _PARALLEL_SEPARATORS), len(words))
    template, arguments = words[at:split], words[split + 1 :]
    # Several `:::` lists are combined with one another, which is not spelled out here.
    if not arguments or len(arguments) > MAX_JOBS or any(word in _PARALLEL_SEPARATORS for word in arguments):
        return None
    jobs = [_parallel_job(" ".join(template), argument) for argument in arguments]
    # Joined by `&&`: every job succeeded exactly when the status is 0.
    return Unwrapped(words=["sh", "-c", " && ".join(jobs)], name="parallel", code_hidden=True)


def _parallel_job(template: str, argument: str) -> str:
    if not template:
        return argument
    return template.replace("{}", argument) if "{}" in template else f"{template} {argument}"


# Everything but plain words has a meaning of its own in these shells.
_PLAIN_TEXT = re.compile(r"[\w .,:=/\\+-]+")
_TEXT_FLAGS = frozenset(("/c", "-c", "-command"))
_VALUE_FLAGS = frozenset(("-executionpolicy", "-ep", "-workingdirectory", "-wd"))


def _unwrap_windows_shell(words: list[str]) -> Unwrapped | None:
    """`pwsh -NoProfile -Command "pytest -q"`, `cmd /c pytest -q`: a single program in plain words."""
    at = 1
    while at < len(words) and words[at].lower() not in _TEXT_FLAGS:
        at += 2 if words[at].lower() in _VALUE_FLAGS else 1
    text = " ".join(words[at + 1 :])
    if not _PLAIN_TEXT.fullmatch(text):
        return None
    # PowerShell tells that the program failed, not with which status.
    return Unwrapped(words=text.split(), name="windows shell", code_hidden=True)


_LAUNCHERS = {
    "find": _unwrap_find,
    "script": _unwrap_script,
    "parallel": _unwrap_parallel,
    **dict.fromkeys(("cmd", "cmd.exe", "pwsh", "pwsh.exe", "powershell", "powershell.exe"), _unwrap_windows_shell),
}
