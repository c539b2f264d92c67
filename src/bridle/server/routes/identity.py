"""Who the caller is, what others may come with, and how a browser gets in."""

from __future__ import annotations

from litestar import MediaType, Response, delete, get, post
from litestar.params import FromPath, FromQuery, JSONBody
from litestar.response import Redirect

from ..access import Caller, HttpRequest, caller_of, takes
from ..door import check_peer, peer_in
from ..guards import header
from ..house import TheHouse
from ..login import login_cookie, login_url, no_cookie
from ..outsiders import admit, stop_with
from ..pages import PAGE_POLICY, page_for, page_for_nobody
from ..peers import Unseen
from ..problems import Problem
from ..shapes.tokens import MadeToken, NewToken, TicketView, TokenView
from ..token_file import renew_first_token
from ..tokens import Token

LONGEST_NAME = 200


@get("/me", opt=takes("person", "reader", "agent"))
async def me(request: HttpRequest) -> Caller:
    """Who you are to the server."""
    return request.user


@get("/tokens")
async def list_tokens(house: TheHouse) -> list[TokenView]:
    """Every token and every browser that is logged in."""
    return [_view(token) for token in house.tokens.list()]


@post("/tokens")
async def create_token(
    request: HttpRequest, house: TheHouse, data: JSONBody[NewToken]
) -> MadeToken:
    """Make a token for a program. Its text is in this answer alone."""
    name = data.name.strip()
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        words = f"A name has 1 to {LONGEST_NAME} characters that can be printed."
        raise Problem(400, "invalid_name", words, "Give another name.")
    of_session = bool(data.session) + (data.external is not None)
    if of_session != (data.role == "agent"):
        words = "An agent's token is for one session, and others are for none."
        remedy = "Give `session` or `external` with the role agent alone."
        raise Problem(400, "invalid_body", words, remedy)
    if data.external:
        token, text = await admit(house, name, data.external, request.user.person)
    else:
        session = house.supervisor.get(data.session).id if data.session else ""
        token, text = await house.tokens.create(data.role, name, session)
    return MadeToken(token=_view(token), text=text)


@delete("/tokens/{token:str}")
async def delete_token(request: HttpRequest, house: TheHouse, token: FromPath[str]) -> None:
    """Take a token away, or log a browser out. The home's own is replaced by a new one. If it is of
    an agent elsewhere, that has ended then."""
    found = house.tokens.revocable(token)
    if found is None:
        raise Problem(404, "unknown_token", "There is no such token.", "GET /tokens lists them.")
    if found.is_first:
        await renew_first_token(house.home, house.tokens)
    else:
        await house.tokens.revoke(found)
        await stop_with(house, found, request.user.name)


@post("/tickets")
async def create_ticket(
    house: TheHouse, request: HttpRequest, is_here: FromQuery[bool] = False
) -> TicketView:
    """Make an address that logs a browser in as you; with `is_here`, one of the server's machine
    alone."""
    if not house.url:
        raise Problem(409, "asleep", "No server is up.", "Start one with `bridle up`.")
    ticket = house.tickets.make(request.user.name, is_here=is_here)
    return TicketView(url=login_url(house.url, ticket))


@get("/login", opt=takes(), include_in_schema=False)
async def log_in(
    house: TheHouse, request: HttpRequest, ticket: FromQuery[str]
) -> Redirect | Response[str]:
    """Turn a ticket into a cookie, and leave it out of the address from there on."""
    peer = peer_in(request.scope)
    standing = await check_peer(peer, house.supervisor, "whoever has a ticket")
    is_unseen = isinstance(standing, Unseen)
    name = house.tickets.take(ticket, is_unseen=is_unseen)
    if name is None:
        raise Problem(
            403,
            "ticket_used",
            "This address was used already, or is older than 10 minutes.",
            "Run `bridle url` for a new one.",
        )
    _, text = await house.tokens.log_in(name, is_unseen=is_unseen)
    cookies = [login_cookie(house.url, text)]
    if header(request.scope, b"sec-fetch-site") == "cross-site":
        # A page elsewhere led here, such as the file of `--open`: along a redirect from there the
        # browser would not send the cookie.
        return Response("", headers={"refresh": "0; url=/"}, cookies=cookies)
    return Redirect("/", status_code=303, cookies=cookies)


@post("/logout", opt=takes("person", "reader"), include_in_schema=False)
async def log_out(house: TheHouse, request: HttpRequest) -> Redirect:
    """Forget the browser that asks. For one who came with a token nothing changes."""
    found = next((one for one in house.tokens.list() if one.id == request.user.token), None)
    if found and found.kind == "login":
        await house.tokens.revoke(found)
    return Redirect("/", status_code=303, cookies=[no_cookie(house.url)])


@get("/", opt=takes(), include_in_schema=False, media_type=MediaType.HTML)
async def front_page(house: TheHouse, request: HttpRequest) -> Response[str]:
    """A page that says where things are."""
    caller = caller_of(request)
    is_known = caller is not None and not caller.is_agent
    return Response(
        page_for(caller, house.url) if caller and is_known else page_for_nobody(),
        status_code=200 if is_known else 401,
        headers={"content-security-policy": PAGE_POLICY},
        media_type=MediaType.HTML,
    )


def _view(token: Token) -> TokenView:
    return TokenView(**{name: getattr(token, name) for name in TokenView.__struct_fields__})


HANDLERS = [me, list_tokens, create_token, delete_token, create_ticket]
ROOT_HANDLERS = [log_in, log_out, front_page]
