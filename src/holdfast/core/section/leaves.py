"""What one value of a settings file may be: taken as people write it in YAML or in the environment."""

from typing import Any

Path = tuple[Any, ...]
Fault = tuple[Path, str]
"""Where inside the value, and what is wrong there."""
Faults = list[Fault]

YES, NO = ("1", "on", "t", "true", "y", "yes"), ("0", "off", "f", "false", "n", "no")
TRUTHS = dict.fromkeys(YES, True) | dict.fromkeys(NO, False)


class Kind:
    called = "a value"

    @property
    def alternatives(self) -> "tuple[Kind, ...]":
        return (self,)

    def read(self, value: Any, faults: Faults) -> Any:
        """What is wrong is added to `faults`; then the answer means nothing."""
        raise NotImplementedError

    def refuse(self, faults: Faults) -> None:
        faults.append(((), f"must be {self.called}"))


class Anything(Kind):
    def read(self, value: Any, _faults: Faults) -> Any:
        return value


class Text(Kind):
    called = "text"

    def read(self, value: Any, faults: Faults) -> Any:
        if isinstance(value, str):
            return value
        quoted = isinstance(value, int | float)  # YAML read `1.0` or `yes` before we could
        faults.append(((), "must be text; put it in quotes" if quoted else "must be text"))
        return None


class Whole(Kind):
    called = "a whole number"

    def read(self, value: Any, faults: Faults) -> Any:
        if type(value) is int:
            return value
        number = _number(value)
        if isinstance(number, int) or (number is not None and number.is_integer()):
            return int(number)
        return self.refuse(faults)


class Number(Kind):
    called = "a number"

    def read(self, value: Any, faults: Faults) -> Any:
        number = _number(value)
        try:
            return float(number) if number is not None else self.refuse(faults)
        except OverflowError:
            return self.refuse(faults)


class Truth(Kind):
    called = "true or false"

    def read(self, value: Any, faults: Faults) -> Any:
        if isinstance(value, bool):
            return value
        if isinstance(value, int | float) and value in (0, 1):
            return bool(value)
        if isinstance(value, str) and (said := TRUTHS.get(value.strip().lower())) is not None:
            return said
        return self.refuse(faults)


class Choice(Kind):
    def __init__(self, values: tuple[Any, ...]) -> None:
        self._by_text = {str(one): one for one in values}
        self._types = {type(one) for one in values}
        self.called = f"one of {', '.join(text or '(nothing)' for text in self._by_text)}"

    def read(self, value: Any, faults: Faults) -> Any:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if (isinstance(value, str) or type(value) in self._types) and str(value) in self._by_text:
            return self._by_text[str(value)]
        return self.refuse(faults)


def _number(value: Any) -> int | float | None:
    """Also of text: the environment has nothing else. `false` is none of it; what `true` would be nobody can say."""
    if value is True or not isinstance(value, int | float | str):
        return None
    for read in (int, float) if isinstance(value, str) else ():
        try:
            return read(value)
        except ValueError:
            continue
    return None if isinstance(value, str) else value
