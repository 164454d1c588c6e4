"""Where messages to registered targets may go, as a table of addresses that somebody might try."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest

from effaced.notify.guard import AddressNotAllowed, Guard, is_public

CLOSED = Guard()
OPENED = Guard((ip_network("10.1.0.0/16"), ip_network("fd00:1::/32")))


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.8.8.8", "169.254.169.254",
        "169.254.170.2", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.192", "192.0.2.1",
        "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.9",
        "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "168.63.129.16",
        "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254",
        "64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1",
        "2002:7f00:1::", "2002:a9fe:a9fe::1", "3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254",
        "fd20:ce::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "4000::1",
    ],
)  # fmt: skip
def test_what_is_not_on_the_internet_is_not_public(address: str) -> None:
    assert not is_public(ip_address(address))
    with pytest.raises(AddressNotAllowed):
        CLOSED.require_allowed([address], "https")
    with pytest.raises(AddressNotAllowed):
        CLOSED.require_allowed(["93.184.215.14", address], "https")


@pytest.mark.parametrize(
    "address",
    ["93.184.215.14", "8.8.8.8", "172.32.0.1", "2606:2800:21f:cb07::1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"],
)
def test_hosts_of_the_internet_are_public_but_need_https(address: str) -> None:
    assert CLOSED.require_allowed([address], "https") == [address]
    with pytest.raises(AddressNotAllowed):
        OPENED.require_allowed([address], "http")


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        ("10.1.2.3", True),
        ("::ffff:10.1.2.3", True),
        ("fd00:1::7", True),
        ("10.2.0.1", False),
        ("fd00:2::7", False),
        ("169.254.169.254", False),
    ],
)
def test_only_the_networks_that_the_operator_has_opened_are_open(address: str, allowed: bool) -> None:
    for scheme in ("https", "http"):
        if allowed:
            assert OPENED.require_allowed([address], scheme) == [address]
        else:
            with pytest.raises(AddressNotAllowed):
                OPENED.require_allowed([address], scheme)


@pytest.mark.parametrize("addresses", [[], ["nonsense"], [""], ["1.2.3"]])
def test_a_name_that_leads_nowhere_is_refused_like_one_that_leads_inside(addresses: list[str]) -> None:
    with pytest.raises(AddressNotAllowed):
        CLOSED.require_allowed(addresses, "https")


@pytest.mark.parametrize(
    "url",
    [
        "", "hooks.example", "//hooks.example", "ftp://hooks.example", "file:///etc/passwd",
        "gopher://hooks.example", "javascript:alert(1)", "http://hooks.example", "HTTP://hooks.example",
        "https://", "https:///path", "https://user@hooks.example", "https://user:pw@hooks.example",
        "https://@hooks.example", "https://hooks.example#fragment", "https://hooks.example/a b",
        "https://hooks.example\\@evil.example", "https:\\\\hooks.example", "https://hooks.example/\u00e9",
        "https://hooks.example\r\nX: y", "https://hooks.example:0", "https://hooks.example:22",
        "https://hooks.example:80", "https://hooks.example:25", "https://hooks.example:65536",
        "https://hooks.example:99999999999", "https://hooks.example:port", "https://[::1", "https://[fe80::1%25eth0]/",
        "https://exa%6dple.org", "https://hooks.example/" + "a" * 2_000,
    ],
)  # fmt: skip
def test_addresses_that_are_wrong_as_they_are_written(url: str) -> None:
    assert CLOSED.why_not(url) is not None


@pytest.mark.parametrize(
    "url",
    [
        "https://hooks.example",
        "https://hooks.example/path?token=1&at=2",
        "HTTPS://hooks.example:443/",
        "https://hooks.example:8443/x",
        "https://93.184.215.14/",
        "https://[2606:2800:21f:cb07::1]:1024/",
        "https://hooks.example/@user",
    ],
)
def test_addresses_that_are_right_as_they_are_written(url: str) -> None:
    assert CLOSED.why_not(url) is None


def test_plain_http_is_for_networks_that_are_opened() -> None:
    assert OPENED.why_not("http://hooks.example:8080/") is None
    assert OPENED.why_not("http://hooks.example/") is None
    assert OPENED.why_not("http://hooks.example:443/") is not None
