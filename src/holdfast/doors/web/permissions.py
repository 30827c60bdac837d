"""The permission that each route declares."""

import enum
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from starlette.routing import BaseRoute, Match

from holdfast.core.errors import HoldfastError


class Permission(enum.Enum):
    READ = "read"
    """Our own pages (cookie), or a script with the token."""
    WRITE = "write"
    """The same, and a page must also show the CSRF token."""
    TOKEN = "token"  # noqa: S105 - the name of a permission
    """Only callers that can read the token file: never a page."""
    LINK = "link"
    """Anyone with a one-time link: the route itself redeems it."""
    ANSWER = "answer"
    """Anyone with a link that answers one question, also at the address that the user set: the route verifies it."""
    HOOK = "hook"
    """Seed 004's endpoints: programs of the owner, never a page."""


class NoPermission(HoldfastError):
    """A route does not declare who may use it."""


class Routes:
    """The only way to add a route."""

    def __init__(self, web: FastAPI) -> None:
        self.web = web
        self._permissions: dict[int, Permission] = {}

    def add(self, method: str, path: str, permission: Permission, handler: Callable[..., Any], **options: Any) -> None:
        # OpenAPI describes the API, whose routes have tags; pages have none.
        self.web.add_api_route(path, handler, methods=[method], include_in_schema="tags" in options, **options)
        # FastAPI has just appended it. By identity, because two routes may have the same path.
        self._permissions[id(self.web.router.routes[-1])] = permission

    def check(self) -> None:
        for route in self.web.router.routes:
            if not isinstance(self._permissions.get(id(route)), Permission):
                raise NoPermission(
                    str(getattr(route, "path", route)), fix="Register it with Routes.add and a Permission."
                )

    def of(self, scope: Any) -> tuple[Permission | None, int]:
        """The permission of a request; else None and the status that says why there is none."""
        status = 404
        for route in self.web.router.routes:
            match, _ = route.matches(scope)
            if match is Match.FULL:
                return self._permissions[id(route)], 200
            # The path exists with another method.
            if match is Match.PARTIAL:
                status = 405
        return None, status

    def listed(self) -> list[tuple[str, str, Permission]]:
        """(method, path, permission) of each, for tests."""
        all_routes: list[BaseRoute] = list(self.web.router.routes)
        return [
            (method, route.path, self._permissions[id(route)])  # type: ignore[attr-defined]
            for route in all_routes
            for method in sorted(getattr(route, "methods", ()))
        ]
