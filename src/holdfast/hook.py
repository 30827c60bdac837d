"""The hook client in pure Python, for places without the native one: `python -I -S hook.py MODE AGENT EVENT`."""

# Mirrors native/hook.c function by function; the protocol is in docs/protocol.md. It imports only what is built into
# the interpreter, because json, socket or re would each double the time an agent waits.

import posix
import sys
import time

VERSION = "0.1.0"

ANSWERED, REFUSED, TIMED_OUT, BROKEN = range(4)
WAITS = {
    b"ask": 2.0,
    b"wait": 600.0,
    b"tell": 0.25,
    b"start": 5.0,
    b"show": 0.2,
    b"hold": 1.5,
}  # how long each mode waits for the daemon
SLOW_WAIT = 0.05
SLOW_FOR, FAILED_FOR = 5.0, 30.0  # how long run/slow and run/failed count
STDIN_WAIT, STDIN_TELL_WAIT = 2.0, 1.0  # how long stdin may keep us waiting, in all
STDOUT_IDLE_MS, LOCK_WAIT = 5000, 0.5
VALUE_MAX, ANSWER_MAX, BODY_MAX = 4096, 16 << 20, 1 << 30
HELD_MAX, PIECE = 4 << 20, 1 << 18  # a longer body is kept in an unnamed file until it is sent
ENVIRONMENT = (
    b"CLAUDECODE CLAUDE_PROJECT_DIR CLAUDE_PID CLAUDE_CODE_SESSION_ID CLAUDE_CODE_ENTRYPOINT CLAUDE_PROJECT "
    b"GEMINI_SESSION_ID GEMINI_PROJECT_DIR CODEX_HOME COPILOT_HOME CURSOR_VERSION CURSOR_PROJECT_DIR "
    b"QWEN_PROJECT_DIR TERM_PROGRAM TMUX_PANE HOLDFAST_PROJECT HOLDFAST_PAUSE CLAUDE_SKIP_REQUIREMENTS"
)
APPEND = posix.O_WRONLY | posix.O_APPEND | posix.O_CREAT | posix.O_NOFOLLOW | posix.O_NONBLOCK
SHARED_LOG = b"spool.log"
TOLD_NOTHING, TOLD_DENY = (b"told", b"none"), b"told=deny\0"  # what the agent was told without the daemon
FALLBACK_FIELDS, FALLBACK_MAX = 8, 1 << 20
PAUSING, MEANS_NO = (b"HOLDFAST_PAUSE", b"CLAUDE_SKIP_REQUIREMENTS"), (b"", b"0", b"no", b"false", b"off")
LOCK_FLAGS = posix.O_RDWR | posix.O_CREAT | posix.O_NOFOLLOW | posix.O_NONBLOCK


# ---- small things ----


def set_signals(ignore):
    import _signal as s

    for number in (s.SIGPIPE, s.SIGXFSZ, s.SIGHUP, s.SIGINT, s.SIGTERM):
        s.signal(number, s.SIG_IGN if ignore else s.SIG_DFL)


def u32(number):
    return number.to_bytes(4, "big")


def young(name, seconds):
    """Whether a file is younger than that. A file from the future is not: the clock was set back."""
    try:
        age = time.time() - int(posix.stat(name).st_mtime)
    except OSError:
        return False
    return -1 <= age < seconds


def poll(fd, events, milliseconds):
    import select

    waiter = select.poll()
    waiter.register(fd, events)
    return waiter.poll(milliseconds)


def write_all(fd, data):
    data = memoryview(data)
    while data:
        try:
            data = data[posix.write(fd, data) :]
        except BlockingIOError:
            if not poll(fd, 4, STDOUT_IDLE_MS):  # 4 = POLLOUT
                raise TimeoutError from None


# ---- the command line and the state directory ----


def working_directory():
    try:
        return posix.getcwdb()
    except OSError:
        return b""


def choose_state(state_folder, cwd):
    env = posix.environ
    if state_folder is None:
        state_folder = env.get(b"HOLDFAST_STATE") or None
    if state_folder is None and env.get(b"XDG_STATE_HOME"):
        state_folder = env[b"XDG_STATE_HOME"] + b"/holdfast"
    if state_folder is None and env.get(b"HOME"):
        state_folder = env[b"HOME"] + b"/.local/state/holdfast"
    if not state_folder or state_folder.startswith(b"/"):
        return state_folder
    return cwd and cwd + b"/" + state_folder


# ---- the frame ----


def start_of(pid):
    """Field 22 of /proc/PID/stat. The name in field 2 may contain spaces and parentheses, so split at the last one."""
    try:
        fd = posix.open(b"/proc/%d/stat" % pid, posix.O_RDONLY)
        line = posix.read(fd, 1023)
        posix.close(fd)
        return line[line.rindex(b")") + 2 :].split(b" ")[19]
    except (OSError, ValueError, IndexError):
        return b"0"


def make_key(at):
    """48 bits of time, so that keys sort, then 80 random bits."""
    return (at.to_bytes(6, "big") + posix.urandom(10)).hex().encode()


def make_header(words, at, key, cwd, state):
    pid = posix.getppid()
    fields = [(b"key", key), *zip((b"mode", b"agent", b"event"), words, strict=True), (b"at", b"%d" % at)]
    fields += [(b"pid", b"%d" % pid), (b"start", start_of(pid)), (b"cwd", cwd), (b"state", state)]
    fields += [(b"client", VERSION.encode()), (b"via", b"python"), (b"confirms", b"1"), TOLD_NOTHING]
    env = posix.environ
    fields += [(b"env." + name, env[name]) for name in ENVIRONMENT.split() if name in env]
    return b"".join([b"%b=%b\0" % (name, value[:VALUE_MAX]) for name, value in fields])


def read_stdin(deadline):
    """Return some bytes; none at the end (an unreadable stdin is empty); None after the deadline.

    What is already there is read even after the deadline: a long body that flows arrives whole, one that drips is cut.
    """
    while True:
        try:
            stalled = not poll(0, 1, int(deadline.remaining() * 1000))  # 1 = POLLIN
        except OSError:
            stalled = False
        try:
            return None if stalled else posix.read(0, 1 << 18)
        except BlockingIOError:
            continue
        except OSError:
            return b""


def drain():
    """Read to the end unless the body is endless: an agent may take a broken pipe for a failing hook."""
    deadline = Deadline(STDIN_WAIT)
    while deadline.remaining() and read_stdin(deadline):
        pass


class Body:
    """In memory up to HELD_MAX, beyond that in a temporary file if one can be created."""

    def __init__(self, state, key):
        self.state, self.key = state, key
        self.held, self.size, self.fd, self.may_spill = [], 0, -1, True

    def add(self, chunk):
        self.held.append(chunk)
        self.size += len(chunk)
        if self.may_spill and (self.fd >= 0 or self.size > HELD_MAX):
            self.spill()

    def spill(self):
        try:
            if self.fd < 0:
                self.fd = open_nameless(self.state, self.key)
            while self.held:
                write_all(self.fd, self.held[0])
                del self.held[0]
        except OSError:  # a full disk: what is written so far is read back, and the rest is held
            self.may_spill = False
            self.recover()

    def recover(self):
        if self.fd >= 0:
            there = self.size - sum(map(len, self.held))
            posix.ftruncate(self.fd, there)
            self.held = [*self.read_file(), *self.held]
            posix.close(self.fd)
            self.fd = -1

    def read_file(self):
        posix.lseek(self.fd, 0, 0)
        while piece := posix.read(self.fd, PIECE):
            yield piece

    def pieces(self):
        return self.held if self.fd < 0 else self.read_file()

    def windows(self, overlap):
        """The body in pieces, each preceded by the end of the previous one, so that nothing is missed in between."""
        before = b""
        for piece in self.pieces():
            yield before + piece
            before = (before + piece)[-overlap:]


def open_nameless(state, key):
    enter_state(state, b"/spool")
    name = key + b".body"
    fd = posix.open(name, posix.O_RDWR | posix.O_CREAT | posix.O_EXCL | posix.O_NOFOLLOW, 0o600)
    posix.unlink(name)
    return fd


def read_body(deadline, body):
    """Return whether it is whole. A cut body is kept, but only spooled."""
    while chunk := read_stdin(deadline):
        body.add(chunk)
        if body.size > BODY_MAX:
            drain()
            return False
    return chunk is not None


class Frame:
    def __init__(self, header, body):
        self.head, self.body = b"".join((b"HFQ1", u32(len(header)), u32(body.size), header)), body

    def pieces(self):
        """A small body in one piece: each more would cost the daemon a read."""
        if self.body.size <= PIECE:
            yield self.head + b"".join(self.body.pieces())
            return
        yield self.head
        yield from self.body.pieces()


# ---- directories ----


def enter(directory):
    """Enter a directory of ours. One of another user, or behind a link, could offer a foreign socket or take our
    events."""
    fd = posix.open(directory, posix.O_RDONLY | posix.O_DIRECTORY | posix.O_NOFOLLOW)
    try:
        posix.fchdir(fd)
    finally:
        posix.close(fd)
    if posix.stat(b".").st_uid != posix.geteuid():
        raise PermissionError(directory)


def make_directory(path):
    try:
        posix.mkdir(path, 0o700)
    except OSError:
        pass


def make_state(state):
    for at in range(1, len(state)):
        if state[at] == 47:
            make_directory(state[:at])
    for below in (b"", b"/run", b"/spool"):
        make_directory(state + below)


def enter_state(state, below):
    try:
        enter(state + below)
    except FileNotFoundError:
        make_state(state)
        enter(state + below)


# ---- the daemon ----


class Deadline:
    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    def remaining(self):
        return max(0.0, self.end - time.monotonic())


def dial(deadline):
    """Return a socket and the outcome. A full backlog returns EAGAIN at once and cannot be polled, so retry."""
    import _socket

    try:
        sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        sock.setblocking(False)
    except OSError:
        return None, BROKEN
    while True:
        try:
            sock.connect(b"hook.sock")
            return sock, ANSWERED
        except BlockingIOError:
            if not deadline.remaining():
                return sock, TIMED_OUT
            time.sleep(0.002)
        except OSError:
            return sock, REFUSED


def receive_exactly(sock, size, deadline):
    data = bytearray()
    while len(data) < size:
        sock.settimeout(deadline.remaining() or 0.0001)
        chunk = sock.recv(min(size - len(data), 1 << 20))
        if not chunk:
            raise ConnectionError
        data += chunk
    return data


def receive(sock, deadline):
    head = receive_exactly(sock, 8, deadline)
    length = int.from_bytes(head[4:], "big")
    if head[:4] != b"HFA1" or length > ANSWER_MAX:
        raise ConnectionError
    return receive_exactly(sock, length, deadline)


def deliver(frame, deadline):
    """Return the outcome, and the answer with the connection to confirm it on."""
    sock, so_far = dial(deadline)
    try:
        if so_far == ANSWERED:
            for piece in frame.pieces():
                sock.settimeout(deadline.remaining() or 0.0001)
                sock.sendall(piece)
            return ANSWERED, (receive(sock, deadline), sock)
    except TimeoutError:
        so_far = TIMED_OUT
    except OSError:
        so_far = BROKEN
    if sock:
        sock.close()
    return so_far, None


def pass_on(answer, sock):
    """A verdict counts as delivered when it was written completely; the daemon records those that were not."""
    if answer:
        write_all(1, answer)
        sock.sendall(b"+")


def mark_slow():
    try:
        posix.close(posix.open(b"slow", posix.O_WRONLY | posix.O_CREAT | posix.O_NOFOLLOW | posix.O_NONBLOCK, 0o600))
        posix.utime(b"slow")
    except OSError:
        pass


# ---- when the daemon cannot be reached ----


def is_inside(path, folder):
    return not folder or path == folder or path.startswith(folder + b"/")


def names_one_of(body, key, values):
    """Whether the first `key` of the body has one of these values. Quotes inside strings are escaped, so no tool text
    is taken for the key."""
    window, at = b"", -1
    for window in body.windows(len(key) + VALUE_MAX):
        at = window.find(key)
        if 0 <= at <= len(window) - len(key) - VALUE_MAX:  # else its value may go on in the next
            break
    if at < 0:
        return False
    value = window[at + len(key) : at + len(key) + VALUE_MAX].lstrip(b" :\t\r\n")
    return any(value.startswith(one) for one in values.split(b"\n") if one)


def concerns(part, words, where, body):
    agent, event, folder, until, sense, key, values = part[:7]
    if (agent, event) != (words[1], words[2]) or not is_inside(where, folder):
        return False
    if int(until) and time.time() * 1000 >= int(until):
        return False
    return not key or names_one_of(body, key, values) == (sense == b"only")


def fallback_answer(words, cwd, state, body):
    """The answer the daemon left for this case (`when_unsure: deny`); empty if there is none."""
    env = posix.environ
    if words[0] != b"ask" or any(env.get(name, b"").lower() not in MEANS_NO for name in PAUSING):
        return b""
    try:
        fd = posix.open(state + b"/when-unsure", posix.O_RDONLY | posix.O_NOFOLLOW)
        parts = posix.read(fd, FALLBACK_MAX).split(b"\0")
        posix.close(fd)
    except OSError:
        return b""
    where = env.get(b"CLAUDE_PROJECT_DIR") or cwd
    records = [parts[at : at + FALLBACK_FIELDS] for at in range(0, len(parts) - FALLBACK_FIELDS, FALLBACK_FIELDS)]
    return next((part[-1] for part in records if concerns(part, words, where, body)), b"")


# ---- the spool ----


class Record:
    def __init__(self, frame):
        from binascii import crc32

        checksum, size = 0, 0
        for piece in frame.pieces():
            checksum, size = crc32(piece, checksum), size + len(piece)
        self.head, self.frame = b"HFS1" + u32(checksum) + u32(size), frame

    def pieces(self):
        """A small body in one piece, so that it is written by one call."""
        first = self.head
        for piece in self.frame.pieces():
            yield first + piece
            first = b""


def on_disk(fd):
    import fcntl

    if hasattr(fcntl, "F_FULLFSYNC"):  # macOS: fsync stops at the drive's cache
        try:
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
        except OSError:
            posix.fsync(fd)
    else:
        posix.fdatasync(fd)


def name_on_disk():
    """A new file's name is in the directory, which not every file system syncs along with the file."""
    try:
        fd = posix.open(b".", posix.O_RDONLY | posix.O_DIRECTORY)
        posix.fsync(fd)
        posix.close(fd)
    except OSError:
        pass


def lock(fd, name, until):
    """On a file system without locks (some network ones) proceed if nobody else writes."""
    import fcntl

    while True:
        try:
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                raise
            time.sleep(0.002)
        except OSError:
            if name == SHARED_LOG:
                raise
            return None


def append_locked(fd, record, size):
    """Append to the locked file; an incomplete or undurable record is removed."""
    try:
        for piece in record.pieces():
            write_all(fd, piece)
        on_disk(fd)
    except OSError:
        posix.ftruncate(fd, size)
        raise
    if size == 0:
        name_on_disk()


def append_once(name, record, until):
    """False if the daemon has just taken the file to read it."""
    fd = posix.open(name, APPEND, 0o600)
    try:
        if posix.fstat(fd).st_mode & 0o170000 != 0o100000:
            raise PermissionError(name)
        lock(fd, name, until)
        mine = posix.fstat(fd)
        try:
            there = posix.lstat(name)
        except FileNotFoundError:
            return False
        if (mine.st_ino, mine.st_dev) != (there.st_ino, there.st_dev):
            return False
        append_locked(fd, record, mine.st_size)
        return True
    finally:
        posix.close(fd)


def append(name, record):
    until = time.monotonic() + LOCK_WAIT
    try:
        while not append_once(name, record, until):
            if time.monotonic() >= until:
                return False
    except OSError:
        return False
    return True


def append_alone(key, record):
    name = key + b".log"
    if append(name, record):
        return True
    try:
        posix.unlink(name)
    except OSError:
        pass
    return False


def append_to_state(state, key, record):
    try:
        enter_state(state, b"/spool")
    except OSError:
        return False
    return append(SHARED_LOG, record) or append_alone(key, record)


def append_elsewhere(directory, key, record):
    """For a full or read-only disk. Such a place is open to all users: it must be a real directory, private and ours."""
    make_directory(directory)
    try:
        if posix.lstat(directory).st_mode & 0o170077 != 0o040000:
            return False
        enter(directory)
    except OSError:
        return False
    return append_alone(key, record)


def spool(state, key, frame):
    record = Record(frame)
    runtime = posix.environ.get(b"XDG_RUNTIME_DIR", b"")
    if append_to_state(state, key, record):
        return
    if runtime.startswith(b"/") and append_elsewhere(runtime + b"/holdfast-spool", key, record):
        return
    append_elsewhere(b"/dev/shm/holdfast-spool-%d" % posix.geteuid(), key, record)


# ---- starting the daemon ----


def become_daemon(state, lock_fd):
    """The agent waits for the end of our stdout: the daemon must inherit nothing of ours but the lock."""
    import fcntl

    posix.setsid()
    set_signals(ignore=False)
    held = fcntl.fcntl(lock_fd, fcntl.F_DUPFD, 10)
    null = posix.open(b"/dev/null", posix.O_RDWR)
    for fd in (0, 1, 2):
        posix.dup2(null, fd)
        posix.set_inheritable(fd, True)  # dup2 leaves this out when null took the number of a closed stream
    posix.dup2(held, 3)
    posix.closerange(4, 65536)
    posix.chdir(b"/")
    env = {**posix.environ, b"HOLDFAST_START_FD": b"3"}
    posix.execve(sys.executable, [sys.executable, "-m", "holdfast.daemon", b"--state", state], env)


def fork_daemon(state, lock_fd):
    child = posix.fork()
    if child == 0:
        try:
            become_daemon(state, lock_fd)
        finally:
            posix._exit(0)
    return child


def start_daemon(state, deadline):
    """Return the started process; 0 if another is starting the daemon or it is there; -1 if none will come."""
    import fcntl

    try:
        enter_state(state, b"/run")
        if not sys.executable or young(b"failed", FAILED_FOR):
            return -1
        fd = posix.open(b"start.lock", LOCK_FLAGS, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # It may have come up, and released the lock, since we were refused.
            return fork_daemon(state, fd) if dial(deadline)[1] == REFUSED else 0
        finally:
            posix.close(fd)
    except BlockingIOError:
        return 0
    except OSError:
        return -1


def is_failing(state):
    """Whether the daemon's last start failed."""
    try:
        enter_state(state, b"/run")
    except OSError:
        return False
    return young(b"failing", float("inf"))


def has_ended(child):
    return child > 0 and posix.waitpid(child, posix.WNOHANG)[0] == child


def wait_for_daemon(state, frame, deadline):
    child = start_daemon(state, deadline)
    end, answer, coming = REFUSED, None, child >= 0
    while coming and end == REFUSED and deadline.remaining():
        time.sleep(0.005)
        coming = not young(b"failed", FAILED_FOR) and not has_ended(child)
        end, answer = deliver(frame, deadline)
    return end, answer


# ---- all of it ----


def may_wait(mode, state):
    """Whether to wait for a daemon that is not there yet: if requirements are in force or files are kept, yes."""
    if mode not in (b"ask", b"wait"):
        return mode == b"start"
    return has(state, b"/gates-in-force") or has(state, b"/workspace/content.sqlite") or is_coming(state)


def has(state, name):
    try:
        posix.stat(state + name)
    except OSError:
        return False
    return True


def is_coming(state):
    """Whether the daemon is being started right now; whoever asks is answered as soon as it serves."""
    import fcntl

    try:
        fd = posix.open(
            state + b"/run/start.lock", posix.O_RDWR | posix.O_NOFOLLOW | posix.O_CLOEXEC | posix.O_NONBLOCK
        )
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        posix.close(fd)
    return False


def ask_daemon(mode, state, frame):
    """Return the outcome and the answer.

    Only a full wait renews the mark, so every few seconds one hook finds out whether the daemon has recovered.
    """
    deadline, slow = Deadline(WAITS[mode]), False
    try:
        enter(state + b"/run")
        slow = mode == b"tell" and young(b"slow", SLOW_FOR)
        if slow:
            deadline = Deadline(SLOW_WAIT)
        end, answer = deliver(frame, deadline)
    except FileNotFoundError:
        end, answer = REFUSED, None
    except OSError:
        end, answer = BROKEN, None
    if end == REFUSED and may_wait(mode, state):
        # A mode that waits long waits for a person, not for a daemon.
        end, answer = wait_for_daemon(state, frame, Deadline(WAITS[b"ask"]) if mode == b"wait" else deadline)
    if end == TIMED_OUT and not slow and mode not in (b"show", b"hold"):
        mark_slow()
    return end, answer


def hook(words, at, cwd, state):
    key = make_key(at)
    header = make_header(words, at, key, cwd, state)
    body = Body(state, key)
    whole = read_body(Deadline(STDIN_TELL_WAIT if words[0] == b"tell" else STDIN_WAIT), body)
    frame = Frame(header, body)
    end, answer = ask_daemon(words[0], state, frame) if whole else (BROKEN, None)
    if words[0] == b"hold":  # git reads the exit code; without an answer it goes on, and branches are compared later
        if end == ANSWERED and answer[0]:
            write_all(2, answer[0])
            posix._exit(1)
        return
    if end == ANSWERED:
        pass_on(*answer)
        return
    if words[0] == b"show":  # a line for the screen: nothing is lost without it
        if end == REFUSED and is_failing(state):
            write_all(1, b"Holdfast cannot start: holdfast status\n")
        return
    if refusal := fallback_answer(words, cwd, state, body):
        write_all(1, refusal)
        frame.head = frame.head.replace(b"told=none\0", TOLD_DENY, 1)
    spool(state, key, frame)
    if end == REFUSED and not may_wait(words[0], state):
        start_daemon(state, Deadline(0))


def main():
    at = time.time_ns() // 1_000_000
    set_signals(ignore=True)
    cwd, state_folder = working_directory(), None
    words = [word.encode(sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()) for word in sys.argv[1:]]
    if len(words) > 1 and words[0] == b"--state":
        state_folder, words = words[1], words[2:]
    state = choose_state(state_folder, cwd)
    if len(words) == 3 and words[0] in WAITS and words[1] and words[2] and state:
        hook(words, at, cwd, state)
    else:
        drain()


def run():
    try:
        main()
    finally:
        posix._exit(0)  # also swallows whatever went wrong: a hook says nothing and never fails


if __name__ == "__main__":
    run()
