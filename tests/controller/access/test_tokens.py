"""Static and signed tokens: what they stand for, and how forged, expired, copied and replaced ones are refused."""

import asyncio
import base64
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from controller.access.authenticator import CredentialsAuthenticator, authenticator
from controller.access.credentials import credentials_of_call
from controller.access.errors import UnauthenticatedError
from controller.access.identity import Identity, Role
from controller.access.options import JwtOptions
from controller.access.reloading_file import ReloadingFiles, UnusableFileError
from controller.access.signed_tokens import thumbprint
from controller.access.tokens import new_token, parse_tokens, token_entry
from hostlib.connection import Connection
from hostlib.credentials import Credentials
from hostlib.errors import RefusalReason, RefusedError
from tests.controller.access.secured import Trial, secured
from tests.controller.access.test_roles import GPT
from tests.patience import PATIENCE_S

SECRET = "s" * 32


class Call:
    """The context of a call, as far as who makes it goes."""

    def __init__(self, token: str | None = None, certificate: str | None = None, *, kind: str = "Bearer") -> None:
        self._metadata = () if token is None else (("authorization", f"{kind} {token}"),)
        self._certificate = certificate

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        return self._metadata

    def auth_context(self) -> Mapping[str, list[bytes]]:
        return {} if self._certificate is None else {"x509_pem_cert": [self._certificate.encode()]}


def claims(**changed: Any) -> dict[str, Any]:
    now_s = int(time.time())
    said = {"sub": "nightly", "role": "job", "tenant": "vision", "aud": "trainyard", "iat": now_s, "exp": now_s + 600}
    return {name: value for name, value in (said | changed).items() if value is not None}


def signed(tmp_path: Path, algorithm: str = "HS256", key: str = SECRET, **settings: Any) -> CredentialsAuthenticator:
    path = tmp_path / "jwt.key"
    path.write_text(key)
    return authenticator(None, JwtOptions(key=path, algorithm=algorithm, **settings))  # type: ignore[arg-type]


def identify(who: CredentialsAuthenticator, call: Call) -> Identity:
    return who.identify(credentials_of_call(call))  # type: ignore[arg-type]


def test_a_token_stands_for_its_entry_until_it_expires(tmp_path: Path) -> None:
    path, now_s = tmp_path / "tokens.yaml", time.time()
    lasting, brief = new_token(), new_token()
    entries = [
        token_entry(lasting, "alice", Role.OPERATOR, "", None),
        token_entry(brief, "nightly", Role.JOB, "vision", datetime.fromtimestamp(now_s + 60, UTC)),
    ]
    path.write_text("".join(f"- {entry}\n" for entry in entries))
    assert lasting not in path.read_text()
    who = CredentialsAuthenticator(ReloadingFiles((path,), parse_tokens), now_s=lambda: now_s)
    assert identify(who, Call(lasting)).roles == {Role.OPERATOR, Role.VIEWER}
    assert identify(who, Call(brief)).tenant == "vision"
    now_s += 61
    with pytest.raises(UnauthenticatedError, match="the token has expired"):
        identify(who, Call(brief))
    assert identify(who, Call(lasting)).name == "alice"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (Call(), "a token or a client certificate is needed"),
        (Call("wrong"), "the token is not known"),
        (Call("a.b.c"), "the token is not known"),
        (Call("x" * 10_000), "expected one token"),
        (Call("abc", kind="Basic"), "expected one token"),
        (Call(""), "expected one token"),
    ],
)
def test_other_tokens_are_refused(tmp_path: Path, call: Call, said: str) -> None:
    path = tmp_path / "tokens.yaml"
    path.write_text(f"- {token_entry(new_token(), 'alice', Role.OPERATOR, '', None)}\n")
    with pytest.raises(UnauthenticatedError, match=said):
        identify(authenticator(path, None), call)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- {name: a, role: root, sha256: " + "ab" * 32 + "}", r"0\.role"),
        ("- {name: a, role: job, sha256: " + "ab" * 32 + "}", "0: a job needs a tenant"),
        ("- {name: a, role: viewer, tenant: t, sha256: " + "ab" * 32 + "}", "0: the role viewer has no tenant"),
        ("- {name: a, role: viewer, sha256: plain}", r"0\.sha256"),
        ("- {name: a, role: viewer, token: x, sha256: " + "ab" * 32 + "}", r"0\.token"),
        ("- {name: a, role: viewer, sha256: " + "ab" * 32 + "}\n" * 2, None),
        ("hello", "tuple"),
        ("- [", "invalid YAML"),
    ],
)
def test_a_bad_file_of_tokens_is_refused_by_its_line(tmp_path: Path, text: str, said: str | None) -> None:
    path = tmp_path / "tokens.yaml"
    path.write_text(text)
    with pytest.raises(UnusableFileError, match=said) as refused:
        authenticator(path, None)
    assert str(refused.value).startswith(f"{path}: ")


def test_a_signed_token_stands_for_its_claims(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    who = signed(tmp_path, "ES256", public.decode(), issuer="scheduler")
    known = identify(who, Call(jwt.encode(claims(iss="scheduler"), key, "ES256")))
    assert (known.name, known.roles, known.tenant) == ("nightly", {Role.JOB}, "vision")
    for wrong in (
        jwt.encode(claims(iss="somebody"), key, "ES256"),
        jwt.encode(claims(iss="scheduler"), ec.generate_private_key(ec.SECP256R1()), "ES256"),
        # The public key as the secret of another algorithm, and no signature at all.
        f"{jwt.encode(claims(iss='scheduler'), 'x' * 64, 'HS256')}",
        jwt.encode(claims(iss="scheduler"), None, "none"),
    ):
        with pytest.raises(UnauthenticatedError, match="token: "):
            identify(who, Call(wrong))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"exp": int(time.time()) - 60}, "expired"),
        ({"exp": None}, "exp"),
        ({"iat": int(time.time()) + 3600, "exp": int(time.time()) + 7200}, "not yet valid"),
        ({"nbf": int(time.time()) + 3600}, "not yet valid"),
        ({"exp": int(time.time()) + 10**7}, "holds for longer than"),
        ({"aud": "another"}, "[Aa]udience"),
        ({"sub": None}, "sub"),
        ({"sub": 7}, "[Ss]ubject must be a string"),
        ({"sub": "a/b"}, "printable text"),
        ({"role": "root"}, "the role must be"),
        ({"role": ["operator"]}, "the role must be"),
        ({"tenant": None}, "a job needs a tenant"),
        ({"role": "operator"}, "has no tenant"),
    ],
)
def test_signed_tokens_that_do_not_hold_are_refused(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    with pytest.raises(UnauthenticatedError, match=said):
        identify(signed(tmp_path), Call(jwt.encode(claims(**changed), SECRET, "HS256")))


def test_a_copied_token_is_refused_where_it_is_bound_to_a_certificate(tmp_path: Path) -> None:
    trial = Trial(tmp_path)
    own, other = ((tmp_path / f"job-{tenant}.pem").read_text() for tenant in ("vision", "speech"))
    token = jwt.encode(claims(cnf={"x5t#S256": thumbprint(own)}), SECRET, "HS256")
    who = signed(trial.folder)
    assert identify(who, Call(token, own)).name == "nightly"
    for replayed in (Call(token), Call(token, other)):
        with pytest.raises(UnauthenticatedError, match="belongs to another client certificate"):
            identify(who, replayed)


@pytest.mark.parametrize(
    ("algorithm", "key", "said"),
    [
        ("HS256", "short", "at least 32 bytes"),
        ("HS256", "-----BEGIN PUBLIC KEY-----" + "x" * 64, "is no secret"),
        ("ES256", "nonsense", "not a public key"),
    ],
)
def test_a_key_that_verifies_nothing_is_refused(tmp_path: Path, algorithm: str, key: str, said: str) -> None:
    with pytest.raises(UnusableFileError, match=said):
        signed(tmp_path, algorithm, key)


def test_files_are_read_again_and_bad_ones_change_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, now_s = tmp_path / "value", 0.0
    path.write_text("1")
    files = ReloadingFiles((path,), int, lambda: now_s)
    assert files.content == 1

    def after(change: Callable[[], object]) -> int:
        nonlocal now_s
        change()
        now_s += 1.0
        return files.content

    assert after(lambda: path.write_text("22")) == 22
    assert after(lambda: path.write_text("none")) == 22
    assert after(path.unlink) == 22
    assert after(lambda: path.write_text("333")) == 333
    assert [record.levelname for record in caplog.records].count("ERROR") == 2


def test_tokens_and_certificates_are_renewed_without_a_restart(tmp_path: Path) -> None:
    trial = Trial(tmp_path)
    first = trial.token("nightly", Role.JOB, "vision")

    async def scenario() -> None:
        tls = {name: path for name, path in trial.tls.items() if name != "ca"}
        async with secured(tls=tls, tokens=tmp_path / "tokens.yaml") as controller:
            known = Credentials(ca=trial.ca, token=first)
            async with Connection(controller.address, "t", PATIENCE_S, credentials=known) as connection:
                await connection.register_job(GPT)
                (tmp_path / "tokens.yaml").unlink()
                second = trial.token("nightly", Role.JOB, "vision")
                # Whoever has copied the withdrawn token gets nowhere.

                async def heartbeats() -> None:
                    while True:
                        await connection.heartbeat("gpt")
                        await asyncio.sleep(0.1)

                with pytest.raises(RefusedError) as refused:
                    await asyncio.wait_for(heartbeats(), PATIENCE_S)
                assert refused.value.reason is RefusalReason.UNAUTHENTICATED
            trial.authority.server("renewed", ["localhost", "127.0.0.1"], days=2).write(tmp_path, "controller")
            await asyncio.sleep(1.1)
            renewed = Credentials(ca=trial.ca, token=second)
            async with Connection(controller.address, "t", PATIENCE_S, credentials=renewed) as connection:
                await connection.heartbeat("gpt")
            import ssl

            port = int(controller.address.rpartition(":")[2])
            pem = await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", port))
            assert ssl.PEM_cert_to_DER_cert(pem) == ssl.PEM_cert_to_DER_cert((tmp_path / "controller.pem").read_text())

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))


def test_tls_alone_tells_nobody_apart(tmp_path: Path) -> None:
    tls = {name: path for name, path in Trial(tmp_path).tls.items() if name != "ca"}

    async def scenario() -> None:
        async with secured(tls=tls):
            pass

    with pytest.raises(ValueError, match="tls: needs ca, tokens or jwt"):
        asyncio.run(scenario())


def test_a_device_in_place_of_a_file_is_refused_unread() -> None:
    with pytest.raises(UnusableFileError, match="/dev/zero: cannot be read: expected a regular file or a pipe"):
        ReloadingFiles((Path("/dev/zero"),), parse_tokens)


@pytest.mark.parametrize("name", ["exp", "iat"])
@pytest.mark.parametrize("value", ["text", [1], {}, True, 1e300, float("inf"), float("nan")])
def test_a_signed_token_with_odd_times_is_refused(tmp_path: Path, name: str, value: object) -> None:
    odd = str(int(time.time()) + 60) if value == "text" else value
    token = jwt.encode(claims(**{name: odd}), SECRET, algorithm="HS256")
    with pytest.raises(UnauthenticatedError, match="token"):
        identify(signed(tmp_path), Call(token))


def test_a_header_nested_deeply_is_refused(tmp_path: Path) -> None:
    header = base64.urlsafe_b64encode(b"[" * 5_000).decode().rstrip("=")
    with pytest.raises(UnauthenticatedError, match="token"):
        identify(signed(tmp_path), Call(f"{header}.e30.AA"))
