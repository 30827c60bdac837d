"""Every error a person may see; the docstring is the first line of the message."""


class HoldfastError(Exception):
    """Something went wrong in Holdfast."""

    def __init__(self, detail: str = "", *, where: str = "", fix: str = "") -> None:
        self.detail, self.where, self.fix = detail, where, fix
        super().__init__(self.message)

    @property
    def message(self) -> str:
        return f"{self.problem}. {self.fix}" if self.fix else self.problem

    @property
    def problem(self) -> str:
        """What happened and where, without the remedy."""
        head = (self.__doc__ or "").strip().rstrip(".")
        text = f"{head}: {self.detail}" if self.detail else head
        return f"{text} ({self.where})" if self.where else text


class BadSettings(HoldfastError):
    """A settings file cannot be used."""


class UnsafePath(HoldfastError):
    """A folder cannot be used."""


class StoreDamaged(HoldfastError):
    """The database is damaged."""


class SchemaTooNew(HoldfastError):
    """The database was written by a newer Holdfast."""


class StoreUnavailable(HoldfastError):
    """The database cannot be reached or written."""


class KeyUnavailable(HoldfastError):
    """Bodies cannot be encrypted or decrypted."""


class LeaseLost(HoldfastError):
    """Another worker has this job now: what we did is not recorded."""


class DaemonUnreachable(HoldfastError):
    """The daemon does not answer."""


class CommandRefused(HoldfastError):
    """Not possible"""

    @property
    def problem(self) -> str:
        """The reason first: it is what the person wants to know."""
        text = self.detail or "Not possible"
        return f"{text} ({self.where})" if self.where else text


class InstallRefused(HoldfastError):
    """The agent's settings file was left as it is."""
