"""Fake vendors: real HTTP servers on loopback, with faults that can be switched on.

One process serves all of them, each on a port and under a path of its own:

    payment   /payment/v1/customers/{id}       deletes at once, takes PATCH
    crm       /crm/contacts/{id}               deletes at once, takes PATCH
    mailing   /mailing/subscribers/{e-mail}    can only let data expire: 202, gone a while later
    files     /files/objects?prefix={prefix}   deletes everything under a prefix
"""

from effaced.demo.vendors.faults import Fault, FaultKind
from effaced.demo.vendors.handler import Call
from effaced.demo.vendors.server import DEMO_TOKEN, Vendors
from effaced.demo.vendors.store import CANARIES, VENDORS

__all__ = ["CANARIES", "DEMO_TOKEN", "VENDORS", "Call", "Fault", "FaultKind", "Vendors"]
