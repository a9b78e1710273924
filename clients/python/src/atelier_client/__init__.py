"""Client of Atelier's JSON API, with and without asyncio. The methods are named after the operations of `/openapi.json`."""

from ._async import AsyncClient
from ._common import ProblemError, RefusedEventsError, UnreachableError
from ._sync import Client

__all__ = ["AsyncClient", "Client", "ProblemError", "RefusedEventsError", "UnreachableError"]
