"""Asks a web service by Pulsar's admin paths: other clusters, before topics go there."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache, partial
from http.client import HTTPException, HTTPMessage
from ssl import SSLCertVerificationError
from typing import IO, Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import (
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    Request,
    build_opener,
)

from pydantic import SecretStr

from sinks.deadline import within
from sinks.green_access import NO_ACCESS, NOT_TRUSTED, WHO_ASKS, GreenAccess
from trimtab.migration.migration import Target

TIMEOUT_S: Final = 3.0
"""For one request. Shorter: a busy cluster counts as absent; longer: the operator waits."""
BROKERS: Final = "brokers/"
"""Begins the path of a cluster's brokers. Pulsar answers for other clusters with a redirect."""
_MEANS: Final = {404: ": a server is there, but no web service of Pulsar's; is the port right?"}
_MOST_BYTES: Final = 1 << 20

Ask = Callable[[str, str], Any]
"""What an admin path of a web service answers; raises NoAnswer and Misconfigured."""


class NoAnswer(Exception):
    """Green does not answer what it is asked; says why."""


class Elsewhere(NoAnswer):
    """Raised if green answers that another host must be asked."""


class TooSlow(NoAnswer):
    """It is there, and has not answered in time."""


class NotAllowed(NoAnswer):
    """Raised if green requires a login or refuses this one; the text says which setting helps."""


class _Redirects(HTTPRedirectHandler):
    """Follows redirects; raises Elsewhere where one leads to the brokers of another cluster."""

    def redirect_request(  # noqa: PLR0913 - as in urllib
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        away = urlsplit(newurl).hostname != urlsplit(req.full_url).hostname
        if away and f"/admin/v2/{BROKERS}" in req.selector:
            raise Elsewhere(f"{req.full_url} redirects to {newurl}")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def asking(green: Target, access: GreenAccess) -> Ask:
    """Asks green with what ``access`` has, and other clusters without its token; remembers what
    they answered, or that they did not."""
    others = access.model_copy(update={"token": SecretStr(""), "token_file": None})
    slow, refused = dict[str, TooSlow](), dict[tuple[str, str], NoAnswer]()

    @cache
    def asked(web: str, path: str) -> Any:
        if web in slow:
            # Each further question would take as long.
            raise slow[web]
        if (web, path) in refused:
            raise refused[web, path]
        try:
            return ask(web, path, access if web == green.web else others)
        except TooSlow as error:
            slow[web] = error
            raise
        except NoAnswer as error:
            # Without its cause, which keeps the connection.
            refused[web, path] = type(error)(str(error))
            raise

    return asked


def ask(web: str, path: str, access: GreenAccess = NO_ACCESS) -> Any:
    """What an admin path answers, or another one, which begins with a slash; raises NoAnswer and
    Misconfigured. ``web`` may name several servers after commas: the first that is there answers.
    """
    opener = build_opener(_Redirects, HTTPSHandler(context=access.context()))
    scheme, _, rest = web.partition("://")
    servers, _, below = rest.partition("/")
    problems, is_slow = list[str](), False
    for server in filter(None, servers.split(",")):
        root = f"{scheme}://{server}/{below}".rstrip("/")
        url = root + (path if path.startswith("/") else f"/admin/v2/{path}")
        # S310: `target_flaws` has checked that it begins with http or https.
        request = Request(url)
        for name, value in access.headers().items():
            # A redirect may lead to a host that must not learn it.
            request.add_unredirected_header(name, value)
        try:
            return within(TIMEOUT_S, partial(_read, opener, request))
        except HTTPError as error:
            if error.code in WHO_ASKS:
                said = f"{url} answers {error.code}: {access.say_refused()}"
                raise NotAllowed(said) from error
            raise NoAnswer(f"{url} answers {error.code}{_MEANS.get(error.code, '')}") from error
        except (URLError, HTTPException, OSError, ValueError) as error:
            is_slow = is_slow or isinstance(error, TimeoutError)
            problems.append(f"{url} does not answer: {_say(error)}")
    raise (TooSlow if is_slow else NoAnswer)("; ".join(problems))


def _read(opener: OpenerDirector, request: Request) -> Any:
    with opener.open(request, timeout=TIMEOUT_S) as answer:
        return json.loads(answer.read(_MOST_BYTES))


def _say(error: Exception) -> str:
    why = getattr(error, "reason", error)
    return f"{why}; {NOT_TRUSTED}" if isinstance(why, SSLCertVerificationError) else str(why)
