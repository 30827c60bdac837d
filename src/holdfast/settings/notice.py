"""What a person is told about a settings file, and where a value came from."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Notice:
    """Lines and columns count from 1; line 0 means the file as a whole (or a variable of the environment)."""

    file: str
    line: int
    column: int
    message: str
    fix: str = ""
    path: str = ""
    """The dotted name of the setting, where one is concerned."""

    @property
    def problem(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{where}: {self.message}"

    def __str__(self) -> str:
        return f"{self.problem} {self.fix}" if self.fix else self.problem


@dataclass(frozen=True)
class Origin:
    """`layer` is one of default, user, project, local, environment."""

    layer: str
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        if not self.file:
            return self.layer
        return f"{self.layer} {self.file}:{self.line}" if self.line else f"{self.layer} {self.file}"


DEFAULT = Origin("default")
