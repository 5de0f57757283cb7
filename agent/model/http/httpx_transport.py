"""The transport of unusual routes, such as SOCKS proxies: httpx, which takes long to import."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import urlsplit

from agent.model.faults import ModelFault
from agent.model.http.stream_transport import KEEP_ALIVE_S, create_tls_context
from agent.model.http.transport_port import HttpRequest, HttpResponse, SendLimits
from tooling.web.http.httpx_import import httpx

_REQUEST_SENT = "http11.send_request_body.complete"


class HttpxTransport:
    """A Transport over an httpx client."""

    def __init__(self, environ: Mapping[str, str], proxy: str) -> None:
        try:
            self._client = httpx.AsyncClient(
                verify=create_tls_context(environ),
                proxy=proxy or None,
                trust_env=False,
                # The key must only be sent to the URL it was set for.
                follow_redirects=False,
                limits=httpx.Limits(
                    max_connections=None, max_keepalive_connections=None, keepalive_expiry=KEEP_ALIVE_S
                ),
            )
        except ImportError as error:
            raise ModelFault("connect", "a SOCKS proxy needs another package: pip install 'httpx[socks]'") from error
        except (ValueError, httpx.InvalidURL) as error:
            raise ModelFault("connect", f"the proxy is not a URL such as http://127.0.0.1:3128: {error}") from error

    async def send(self, request: HttpRequest, limits: SendLimits, on_sent: Callable[[], None]) -> HttpResponse:
        async def on_event(name: str, info: Mapping[str, object]) -> None:
            if name == _REQUEST_SENT:
                on_sent()

        with _faults(request.url):
            sent = self._client.build_request(
                request.method,
                request.url,
                headers=dict(request.headers),
                content=request.content,
                timeout=httpx.Timeout(None, connect=limits.connect_s, write=limits.write_s),
                extensions={"trace": on_event},
            )
            return HttpxResponse(await self._client.send(sent, stream=True))

    async def close(self) -> None:
        await self._client.aclose()


class HttpxResponse:
    """A response of httpx, its body unread."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self._chunks = aiter(response.aiter_bytes())
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers

    @property
    def is_complete(self) -> bool:
        # httpx tells only at the end of the body.
        return False

    async def read_chunk(self) -> bytes:
        with _faults(str(self._response.url)):
            return await anext(self._chunks, b"")

    async def close(self) -> None:
        await self._response.aclose()


@contextmanager
def _faults(url: str) -> Iterator[None]:
    try:
        yield
    except (httpx.ReadTimeout, httpx.WriteTimeout) as error:
        raise TimeoutError from error
    except (httpx.ConnectTimeout, httpx.ConnectError, httpx.ProxyError, httpx.PoolTimeout) as error:
        raise ModelFault("connect", f"{urlsplit(url).netloc}: {error or 'timed out'}") from error
    except (httpx.UnsupportedProtocol, httpx.InvalidURL, UnicodeError) as error:
        raise ModelFault("connect", f"{url!r} is not a URL: {error}") from error
    except httpx.DecodingError as error:
        raise ModelFault("malformed", str(error)) from error
    except httpx.LocalProtocolError as error:
        # Its message quotes the invalid header, which may be the key.
        raise ModelFault("refused", "the request has an invalid header") from error
    except TimeoutError:
        raise
    except (httpx.TransportError, OSError) as error:
        raise ModelFault("reset", str(error)) from error
